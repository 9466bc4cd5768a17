//! `experiments/schema.json`, which editors use to complete and check experiment files. `POSENC_UPDATE=1` writes it.

use std::path::Path;

use jsonschema::{Draft, JSONSchema};
use posenc_experiments::schema::{MODELINE, json_schema};
use posenc_experiments::yaml::Document;
use posenc_protocols::KINDS;
use serde::Serialize;
use serde_json::ser::{PrettyFormatter, Serializer};
use serde_json::{Value, json};

use crate::root;

/// The generated schema, compiled by an independent validator.
fn generated() -> JSONSchema {
    let schema = json_schema(KINDS);
    let compiled = JSONSchema::options().with_draft(Draft::Draft7).compile(&schema);
    compiled.unwrap_or_else(|e| panic!("not a schema: {e}"))
}

/// The validation errors of a file, if any.
fn problem(schema: &JSONSchema, file: &Value) -> Option<String> {
    let errors = schema.validate(file).err()?;
    Some(errors.map(|e| format!("{}: {e}", e.instance_path)).collect::<Vec<_>>().join("; "))
}

fn read(file: &Path) -> Value {
    let document = Document::read(file).map_err(|e| e.to_string()).unwrap();
    serde_json::to_value(document.value).unwrap()
}

/// Catches a key, a kind or a parameter that is missing in the schema.
#[test]
fn the_schema_of_experiments_is_up_to_date() {
    let file = root().join("experiments/schema.json");
    let schema = json_schema(KINDS);
    if std::env::var_os("POSENC_UPDATE").is_some_and(|value| value == "1") {
        // Single spaces, since the schema is deeply nested.
        let mut text = Vec::new();
        let formatter = PrettyFormatter::with_indent(b" ");
        schema.serialize(&mut Serializer::with_formatter(&mut text, formatter)).unwrap();
        text.push(b'\n');
        std::fs::write(file, text).unwrap();
        return;
    }
    let found: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    assert!(
        found == schema,
        "experiments/schema.json differs from the code; to write it again: \
         POSENC_UPDATE=1 cargo xtask test the_schema_of_experiments"
    );
}

/// Catches a schema that refuses files of the repository, and a file without a reference to the schema.
#[test]
fn every_experiment_is_valid() {
    let schema = generated();
    let folders = std::fs::read_dir(root().join("experiments")).unwrap();
    let mut count = 0;
    for folder in folders.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
        for file in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if file.file_name().unwrap() == "paper.yaml" {
                continue;
            }
            let text = std::fs::read_to_string(&file).unwrap();
            assert!(text.starts_with(MODELINE), "{} does not name its schema", file.display());
            let problem = problem(&schema, &read(&file));
            assert!(problem.is_none(), "{}: {}", file.display(), problem.unwrap());
            count += 1;
        }
    }
    assert!(count >= 59, "{count} experiments");
}

/// Catches a setting of a protocol that the schema lacks; the examples contain all settings.
#[test]
fn every_example_of_a_protocol_is_valid() {
    let schema = generated();
    for kind in KINDS.all {
        let document = Document::parse(Path::new("example.yaml"), kind.example).unwrap();
        let file = json!({
            "paper": "extensions", "item": "example", "kind": "extra", "title": "T", "shows": "S",
            "groups": [{
                "id": "example",
                "protocol": document.value,
                "variants": [{ "id": "A", "embedder": { "kind": "rff", "dimension": 4, "sigma": 1 } }],
            }],
        });
        let problem = problem(&schema, &file);
        assert!(problem.is_none(), "{}: {}", kind.name, problem.unwrap());
    }
}

/// Catches a schema that accepts mistakes. Each mistake is a single change of a valid file.
#[test]
fn mistakes_are_refused() {
    let schema = generated();
    let file = read(&root().join("experiments/extensions/01-mexican-hat.yaml"));
    assert_eq!(problem(&schema, &file), None);
    let claim = |file: &Value, kind: &str| {
        let mut claims = file["claims"].as_array().unwrap().iter();
        claims.position(|claim| claim["check"]["kind"] == kind).unwrap()
    };
    let group = "/groups/0";
    let variant = "/groups/0/variants/0";
    let check = format!("/claims/{}/check", claim(&file, "ordering"));
    let rff =
        |parameter: &str, value: i32| json!({ "kind": "rff", "dimension": 4, parameter: value });
    // The key of a mapping, and its wrong value; without one, the key is removed.
    for (mapping, key, value) in [
        ("", "zz", Some(json!(1))),
        (group, "zz", Some(json!(1))),
        ("/groups/0/protocol", "zz", Some(json!(1))),
        (variant, "settings", Some(json!({ "zz": 1 }))),
        (group, "profiles", Some(json!({ "smoke": { "settings": { "zz": 1 } } }))),
        (group, "profiles", Some(json!({ "fast": {} }))),
        (variant, "embedder", Some(rff("sigmo", 1))),
        (variant, "embedder", Some(rff("sigma", -1))),
        (variant, "embedder", Some(json!({ "kind": "gauss", "dimension": 4, "sigma": 1 }))),
        (variant, "embedder", None),
        (group, "seeds", Some("three".into())),
        (group, "protocol", Some(json!({ "kind": "stable-rang", "samples": [4] }))),
        (group, "protocol", Some(json!({ "kind": "stable-rank" }))),
        ("", "title", None),
        (&check, "kind", Some("order".into())),
        (&check, "numerator", Some(json!({ "group": "a", "metric": "b" }))),
    ] {
        let mut wrong = file.clone();
        let mistake = format!("{key} of {mapping} as {value:?}");
        let own = wrong.pointer_mut(mapping).unwrap().as_object_mut().unwrap();
        match value {
            Some(value) => drop(own.insert(key.to_owned(), value)),
            None => drop(own.remove(key).unwrap()),
        }
        assert!(problem(&schema, &wrong).is_some(), "{mistake} is not refused");
    }
}
