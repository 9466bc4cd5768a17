//! Parts of the JSON Schema of experiment files that the types do not tell.

use posenc_math::embedder::{self, Parameter, ParameterValue, Presence, Rule};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use crate::profile::Profile;

pub(super) type Object = Map<String, Value>;

pub(super) type AnyValue = Value;

/// The schema of objects whose `kind` determines their other keys.
pub(crate) fn tagged<'a>(kinds: impl IntoIterator<Item = (&'a str, Schema)>) -> Schema {
    let (mut names, mut cases) = (Vec::new(), Vec::new());
    for (name, schema) in kinds {
        let mut schema = schema.to_value();
        schema["properties"]["kind"] = json!({ "const": name });
        cases.push(json!({ "if": is_kind(name), "then": schema }));
        names.push(name);
    }
    json_schema!({
        "type": "object",
        "required": ["kind"],
        "properties": { "kind": { "enum": names } },
        "allOf": cases,
    })
}

/// The schema of a check, which may have a label.
pub(crate) fn labeled(schema: Schema) -> Schema {
    let mut schema = schema;
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.insert("label".into(), json!({ "type": "string" }));
    }
    schema
}

pub(super) fn is_kind(name: &str) -> Value {
    json!({ "required": ["kind"], "properties": { "kind": { "const": name } } })
}

/// The schema of the embedders in the registry.
pub(super) fn embedder(_: &mut SchemaGenerator) -> Schema {
    tagged(embedder::registry().iter().map(|kind| {
        let is_required = |parameter: &&Parameter| parameter.presence == Presence::Required;
        let names = kind.parameters.iter().filter(is_required).map(|parameter| parameter.name);
        let properties: Object = kind
            .parameters
            .iter()
            .map(|parameter| {
                let is_auto = kind.fit.parameter.is_some_and(|fit| fit.name == parameter.name);
                let schema = of_parameter(parameter);
                let schema = match is_auto {
                    true => json!({ "anyOf": [{ "const": "auto" }, schema] }),
                    false => schema,
                };
                (parameter.name.to_owned(), schema)
            })
            .collect();
        let others =
            if kind.takes_extra_numbers { json!({ "type": "number" }) } else { false.into() };
        let schema = json_schema!({
            "properties": properties,
            "required": names.collect::<Vec<_>>(),
            "additionalProperties": others,
        });
        (kind.name, schema)
    }))
}

fn of_parameter(parameter: &Parameter) -> Value {
    let mut schema = match parameter.rule {
        Rule::Positive { most } => {
            json!({ "type": "number", "exclusiveMinimum": 0, "maximum": most })
        }
        Rule::Between { least, most } => {
            json!({ "type": "number", "minimum": least, "maximum": most })
        }
        Rule::Multiple { step, most } => {
            json!({ "type": "number", "multipleOf": step, "minimum": step, "maximum": most })
        }
        Rule::OneOf(words) => json!({ "enum": words }),
        Rule::Text { longest } => json!({ "type": "string", "minLength": 1, "maxLength": longest }),
    };
    schema["description"] = parameter.meaning.into();
    match parameter.default() {
        Some(ParameterValue::Number(number)) => schema["default"] = number.into(),
        Some(ParameterValue::Text(text)) => schema["default"] = text.into(),
        None => {}
    }
    schema
}

/// The schema of a mapping from profiles to `T`.
pub(super) fn of_profiles<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let schema = generator.subschema_for::<T>();
    let profiles: Object = Profile::ALL
        .into_iter()
        .map(|profile| (profile.name().to_owned(), schema.clone().to_value()))
        .collect();
    json_schema!({ "type": "object", "properties": profiles, "additionalProperties": false })
}
