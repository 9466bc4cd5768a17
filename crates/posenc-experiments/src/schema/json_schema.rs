//! JSON Schema of experiment files, which editors use to complete and check them.
//!
//! It is generated from the types that read the files, the kinds of protocols and the registry of embedders. Only the loader checks
//! ranges of protocol settings and references between parts of a file.

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use serde_json::{Map, Value, json};

use super::json::{Object, is_kind};
use super::protocol::{Kind, Kinds};
use super::wire::Definition;

/// First line of an experiment file, which names its schema for editors.
pub const MODELINE: &str = "# yaml-language-server: $schema=../schema.json\n";

/// The JSON Schema of experiment files with protocols of these kinds. It uses draft 7, which YAML editors support.
pub fn json_schema(kinds: Kinds) -> Value {
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
    let mut root = generator.into_root_schema_for::<Definition>().to_value();
    root["title"] = "posenc experiment".into();
    let group = &mut root["definitions"]["WireGroup"];
    let protocol = &mut group["properties"]["protocol"];
    protocol["required"] = json!(["kind"]);
    protocol["properties"] = json!({ "kind": { "enum": kinds.names().collect::<Vec<_>>() } });
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
