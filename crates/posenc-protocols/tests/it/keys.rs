//! The tables of keys in `FORMAT.md`, which are generated from the JSON Schema of experiment files.
//!
//! A table is between `<!-- keys of NAME -->`, where NAME is a definition of the schema, and `<!-- /keys -->`. Each key is a row with its default,
//! allowed values and description. A sentence `Default: …` or `Allowed: …` of the description replaces what follows from the type. Rows keep
//! their order; new ones come last. `POSENC_UPDATE=1` writes the tables.

use std::fmt::Write;

use posenc_experiments::record::picture::NAMES;
use posenc_experiments::schema::claim::KINDS;
use posenc_experiments::schema::json_schema;
use posenc_experiments::schema::paper::Paper;
use serde_json::Value;

use crate::root;

/// All definitions by name, with those of whole files.
fn definitions() -> Value {
    let mut file = json_schema(posenc_protocols::KINDS);
    let mut all = file["definitions"].take();
    all["Definition"] = file;
    all["Paper"] = schemars::schema_for!(Paper).to_value();
    all
}

/// The values that a type allows.
fn allowed(definitions: &Value, schema: &Value) -> String {
    let texts = |value: &Value| value.as_str().map(str::to_owned);
    let parts = ["allOf", "anyOf"].into_iter().filter_map(|key| schema[key].as_array());
    let mut references = parts.flatten().chain([schema]).filter_map(|part| texts(&part["$ref"]));
    if let Some(name) = references.next() {
        let own = &definitions[name.rsplit('/').next().unwrap()];
        let variants = own["oneOf"].as_array().into_iter().flatten().chain([own]);
        let names = variants.flat_map(|variant| {
            let several = variant["enum"].as_array().into_iter().flatten();
            several.chain([&variant["const"]]).filter_map(texts)
        });
        let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
        return if names.is_empty() { "mapping".to_owned() } else { names.join(", ") };
    }
    let kind = schema["type"].as_array().map_or(&schema["type"], |kinds| &kinds[0]);
    let words = match kind.as_str().unwrap_or_default() {
        "string" => "text",
        "integer" => "integer",
        "number" => "number",
        "boolean" => "`true`, `false`",
        "array" if schema["items"]["type"] == "string" => "list of texts",
        "array" => "list",
        _ => "mapping",
    };
    words.to_owned()
}

/// The default of a key that is not required.
fn default(schema: &Value) -> String {
    match &schema["default"] {
        Value::String(text) if text.is_empty() => "empty".to_owned(),
        Value::String(text) => format!("`{text}`"),
        Value::Array(list) if !list.is_empty() => {
            let names: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
            format!("`[{}]`", names.join(", "))
        }
        value @ (Value::Bool(_) | Value::Number(_)) => format!("`{value}`"),
        _ => "none".to_owned(),
    }
}

/// Removes the sentence that begins with `label` from a text and returns it without the label.
fn take_sentence(text: &mut String, label: &str) -> Option<String> {
    let start = text.find(label)?;
    let rest = &text[start + label.len()..];
    let end = rest.find(". ").map_or(rest.len(), |end| end + 1);
    let sentence = rest[..end].trim().trim_end_matches('.').to_owned();
    let whole = format!("{} {}", text[..start].trim_end(), rest[end..].trim_start());
    *text = whole.trim().to_owned();
    Some(sentence)
}

/// The table of a definition, with rows in the order of an earlier one.
fn table(definitions: &Value, name: &str, earlier: &str) -> String {
    let own = &definitions[name];
    let keys = own["properties"].as_object().unwrap_or_else(|| panic!("no definition {name}"));
    let mut rows: Vec<(usize, String)> = Vec::new();
    for (key, schema) in keys {
        let mut meaning = schema["description"].as_str().unwrap_or_default().replace('\n', " ");
        let is_required =
            own["required"].as_array().is_some_and(|all| all.contains(&key[..].into()));
        let default = take_sentence(&mut meaning, "Default: ").unwrap_or_else(|| default(schema));
        let default = if is_required { "required" } else { &default };
        let allowed = take_sentence(&mut meaning, "Allowed: ");
        let allowed = allowed.unwrap_or_else(|| self::allowed(definitions, schema));
        assert!(!meaning.is_empty(), "`{key}` of {name} has no description");
        let place = earlier.find(&format!("\n| `{key}` |")).unwrap_or(usize::MAX);
        rows.push((place, format!("| `{key}` | {default} | {allowed} | {meaning} |\n")));
    }
    rows.sort_by_key(|(place, _)| *place);
    let rows: String = rows.into_iter().map(|(_, row)| row).collect();
    format!("| key | default | allowed | meaning |\n|---|---|---|---|\n{rows}")
}

/// `FORMAT.md` with regenerated tables, and their number.
fn page(found: &str) -> (String, usize) {
    let definitions = definitions();
    let (mut page, mut count, mut rest) = (String::new(), 0, found);
    while let Some((before, after)) = rest.split_once("<!-- keys of ") {
        let (name, after) = after.split_once(" -->").expect("a marker ends with -->");
        let (earlier, after) =
            after.split_once("<!-- /keys -->").expect("a table ends with <!-- /keys -->");
        let table = table(&definitions, name, earlier);
        write!(page, "{before}<!-- keys of {name} -->\n{table}<!-- /keys -->").unwrap();
        rest = after;
        count += 1;
    }
    (page + rest, count)
}

/// Catches a key that is missing from a table of `FORMAT.md`, or that has an outdated default or meaning there.
#[test]
fn the_tables_of_keys_are_up_to_date() {
    let file = root().join("FORMAT.md");
    let found = std::fs::read_to_string(&file).unwrap().replace("\r\n", "\n");
    let (page, count) = page(&found);
    assert!(count >= 15, "{count} tables");
    // Checks and pictures have tables that are written by hand.
    let checks = definitions()["Check"]["allOf"].take();
    let checks = checks.as_array().unwrap().iter().map(|case| &case["then"]["properties"]);
    let keys = checks.flat_map(|keys| keys.as_object().unwrap().keys().map(String::as_str));
    for name in KINDS.iter().copied().chain(keys).chain(NAMES.iter().map(|own| own.name)) {
        assert!(found.contains(&format!("`{name}`")), "FORMAT.md does not mention `{name}`");
    }
    if std::env::var_os("POSENC_UPDATE").is_some_and(|value| value == "1") {
        std::fs::write(file, page).unwrap();
        return;
    }
    let line = found.lines().zip(page.lines()).position(|(found, own)| found != own);
    assert!(
        found == page,
        "FORMAT.md:{}: the table differs from the code; to write it again: POSENC_UPDATE=1 cargo xtask test the_tables_of_keys",
        line.map_or(0, |line| line + 1)
    );
}
