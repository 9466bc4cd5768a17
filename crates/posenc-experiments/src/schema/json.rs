//! JSON Schema of experiment files, which editors use to complete and check them.
//!
//! It is generated from the types that read the files, the kinds of protocols and the registry of embedders. Only the loader checks
//! ranges of protocol settings and references between parts of a file.

use posenc_math::embedder::{self, Parameter, ParameterValue, Presence, Rule};
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use super::experiment::Profile;
use super::protocol::{Kind, Kinds};
use super::wire::WireExperiment;

/// First line of an experiment file, which names its schema for editors.
pub const MODELINE: &str = "# yaml-language-server: $schema=../schema.json\n";

/// A mapping in JSON.
pub(super) type Object = Map<String, Value>;

/// Any value in JSON.
pub(super) type AnyValue = Value;

/// The JSON Schema of experiment files with protocols of these kinds. It uses draft 7, which YAML editors support.
pub fn experiment(kinds: Kinds) -> Value {
    // JSON Schema does not define formats such as `uint32`.
    let without_format = RecursiveTransform(|schema: &mut Schema| {
        schema.remove("format");
    });
    let mut generator = SchemaSettings::draft07().with_transform(without_format).into_generator();
    let mut cases = Vec::new();
    for kind in kinds.all {
        let mut settings = (kind.schema)(&mut generator);
        // A variant or a profile may have any of the settings, so none is required there.
        let required = settings.remove("required");
        cases.push(group_of(kind, &settings, required.as_ref()));
        generator.definitions_mut().insert(kind.name.to_owned(), settings.to_value());
    }
    let mut root = generator.into_root_schema_for::<WireExperiment>().to_value();
    root["title"] = "posenc experiment".into();
    let group = &mut root["definitions"]["WireGroup"];
    group["properties"]["protocol"] = json!({
        "type": "object",
        "required": ["kind"],
        "properties": { "kind": { "enum": kinds.names().collect::<Vec<_>>() } },
    });
    group["allOf"] = cases.into();
    root
}

/// The schema of groups with this kind of protocol, whose settings are under `definitions`.
fn group_of(kind: &Kind, settings: &Schema, required: Option<&Value>) -> Value {
    let place = format!("#/definitions/{}", kind.name);
    let names =
        settings.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys);
    let mut keys: Object = names
        .map(|key| (key.clone(), json!({ "$ref": format!("{place}/properties/{key}") })))
        .collect();
    keys.insert("kind".into(), json!({ "const": kind.name }));
    let own = json!({ "properties": { "settings": { "$ref": place } } });
    let mut variant = own.clone();
    if kind.needs_embedder {
        variant["required"] = json!(["embedder"]);
    }
    let mut group = json!({ "properties": {
        "protocol": { "properties": keys, "additionalProperties": false },
        "variants": { "items": variant },
        "profiles": { "additionalProperties": own },
    } });
    // A required key is in the protocol, or in the settings of each variant.
    let required = required.and_then(Value::as_array).into_iter().flatten().map(|key| {
        let settings = json!({ "required": ["settings"], "properties": { "settings": { "required": [key] } } });
        json!({ "anyOf": [
            { "properties": { "protocol": { "required": [key] } } },
            { "properties": { "variants": { "items": settings } } },
        ] })
    });
    let required: Vec<Value> = required.collect();
    if !required.is_empty() {
        group["allOf"] = required.into();
    }
    json!({
        "if": { "required": ["protocol"], "properties": { "protocol": is_kind(kind.name) } },
        "then": group,
    })
}

/// The schema of objects whose `kind` determines their other keys.
pub(super) fn tagged<'a>(kinds: impl IntoIterator<Item = (&'a str, Schema)>) -> Schema {
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
pub(super) fn labeled(schema: Schema) -> Schema {
    let mut schema = schema;
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.insert("label".into(), json!({ "type": "string" }));
    }
    schema
}

fn is_kind(name: &str) -> Value {
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
