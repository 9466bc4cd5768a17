//! The examples of protocols document every key that the schema knows.

use std::fmt::Write as _;
use std::path::Path;

use posenc_experiments::schema::json_schema;
use posenc_experiments::schema::protocol::Kind;
use posenc_experiments::yaml::Document;
use posenc_experiments::{Profile, Protocol};
use posenc_protocols::KINDS;
use serde_json::Value;

use crate::{FILE, parse};

/// The part of a schema that a node refers to.
fn resolved<'a>(schema: &'a Value, node: &'a Value) -> &'a Value {
    let place = node["$ref"].as_str().and_then(|place| place.strip_prefix('#'));
    place.map_or(node, |place| schema.pointer(place).unwrap())
}

/// The schemas that together describe a node.
fn parts<'a>(schema: &'a Value, node: &'a Value) -> Vec<&'a Value> {
    let node = resolved(schema, node);
    let several =
        ["anyOf", "allOf"].into_iter().flat_map(|key| node[key].as_array().into_iter().flatten());
    let inner = several.chain(node.get("then")).flat_map(|inner| parts(schema, inner));
    std::iter::once(node).chain(inner).collect()
}

/// Parses an experiment with one group that has the given YAML as `protocol` and `data`.
fn with_protocol(kind: &Kind, data: &str, protocol: &str) -> Result<Protocol, String> {
    let head = FILE.split("groups:").next().unwrap();
    let sigma = if kind.takes_auto { "auto" } else { "0.01" };
    let embedder = format!("{{ kind: gaussian, dimension: 64, sigma: {sigma} }}");
    let embedder =
        if kind.needs_embedder { format!(", embedder: {embedder}") } else { String::new() };
    let settings: String = protocol.lines().map(|line| format!("      {line}\n")).collect();
    let group = format!("  - id: example\n{data}    variants: [{{ id: Method{embedder} }}]\n");
    let experiment = parse(&format!("{head}groups:\n{group}    protocol:\n{settings}"))?;
    Ok(experiment.groups[0].resolved(Profile::Paper, 0).unwrap().protocol.clone())
}

/// The line with `data` that the example of a protocol needs; empty if it needs none.
fn data_of(kind: &Kind) -> &'static str {
    let data = ["", "    data: { set: div2k-test }\n"];
    let failure = |data| with_protocol(kind, data, kind.example).err();
    data.into_iter().find(|data| failure(data).is_none()).unwrap_or_else(|| {
        panic!("the example of {} does not parse: {:?}", kind.name, data.map(failure))
    })
}

/// A line of an example that has a key.
struct Key {
    line: usize,
    indent: usize,
    is_commented: bool,
    /// The line without a leading comment mark.
    text: String,
    name: String,
    comment: String,
}

/// All keys of an example, including those that are commented out as `# key: value`.
fn keys(example: &str) -> Vec<Key> {
    let mut keys = Vec::new();
    for (line, whole) in example.lines().enumerate() {
        let is_commented = whole.trim_start().starts_with("# ");
        let text = if is_commented { whole.replacen("# ", "", 1) } else { whole.to_owned() };
        let Some((name, rest)) = text.trim_start().split_once(':') else { continue };
        let is_name = name.chars().all(|c| c.is_ascii_lowercase() || "0123456789_".contains(c));
        if is_name && (rest.is_empty() || rest.starts_with(' ')) {
            let comment = text.split_once("  # ").map_or("", |(_, comment)| comment).to_owned();
            let indent = text.len() - text.trim_start().len();
            let name = name.to_owned();
            keys.push(Key { line, indent, is_commented, text, name, comment });
        }
    }
    keys
}

/// An example in which no key is commented out.
fn complete(keys: &[Key]) -> String {
    keys.iter().map(|key| format!("{}\n", key.text)).collect()
}

/// An example in which no key is commented out, without the keys that have their defaults.
fn without_defaults(keys: &[Key]) -> String {
    let kept: Vec<&Key> = keys.iter().filter(|key| !key.comment.starts_with("default")).collect();
    let mut text = String::new();
    for (i, key) in kept.iter().enumerate() {
        let line = key.text.split("  # ").next().unwrap().trim_end();
        let is_parent = kept.get(i + 1).is_some_and(|next| next.indent > key.indent);
        let value = if line.ends_with(':') && !is_parent { " {}" } else { "" };
        writeln!(text, "{line}{value}").unwrap();
    }
    text
}

/// The settings of an example as JSON. Types are checked, but not ranges and conflicts between keys.
fn typed(kind: &Kind, example: &str) -> Result<String, String> {
    let document = Document::parse(Path::new("a.yaml"), example).map_err(|e| e.to_string())?;
    let mut settings: serde_yaml::Value =
        serde_yaml::from_str(example).map_err(|e| e.to_string())?;
    settings.as_mapping_mut().unwrap().remove("kind");
    (kind.parse)(&document.root(), settings).map(|(_, json)| json).map_err(|e| e.to_string())
}

/// Catches an example that does not parse, a key without an explanation, a `default` that is not the default, and a key that
/// is required but not shown as such.
#[test]
fn every_example_parses_and_shows_its_defaults() {
    for kind in KINDS.all {
        let (example, data) = (kind.example, data_of(kind));
        let canonical = |text: &str| with_protocol(kind, data, text).map(|p| p.canonical());
        assert!(canonical(example).unwrap().starts_with(&format!("{} ", kind.name)));
        let keys = keys(example);
        let whole = typed(kind, &complete(&keys)).unwrap();
        let short = typed(kind, &without_defaults(&keys)).unwrap();
        assert_eq!(whole, short, "the example of {} without defaults", kind.name);
        for (i, key) in keys.iter().enumerate().filter(|(_, key)| key.name != "kind") {
            let name = format!("`{}` in the example of {}", key.name, kind.name);
            assert!(!key.comment.is_empty(), "{name} has no comment");
            let is_optional = ["default", "optional"].iter().any(|w| key.comment.starts_with(w));
            if !key.is_commented && !is_optional {
                let rest = keys[i + 1..].iter().filter(|k| !k.is_commented);
                let mut next = rest.filter(|k| k.indent <= key.indent).map(|k| k.line);
                let end = next.next().unwrap_or(usize::MAX);
                let lines = example.lines().enumerate();
                let left = lines.filter(|(line, _)| !(key.line..end).contains(line));
                let text: String = left.map(|(_, line)| format!("{line}\n")).collect();
                assert!(canonical(&text).is_err(), "{name} is not required");
            }
        }
    }
}

/// Catches a number that no computation can use and that is accepted.
#[test]
fn numbers_outside_the_ranges_of_examples_are_refused() {
    for (name, from, to, allowed) in [
        ("distance", "threshold_exponent: 1", "threshold_exponent: -1", "above 0, at most 16"),
        ("distance", "threshold_exponent: 1", "threshold_exponent: .nan", "above 0, at most 16"),
        ("feature-curve", "threshold_exponent: 1", "threshold_exponent: 0", "above 0, at most 16"),
        ("similarity", "distances: [2,", "distances: [0,", "above 0, at most 1000000"),
    ] {
        let kind = KINDS.all.iter().find(|kind| kind.name == name).unwrap();
        assert!(kind.example.contains(from) && kind.example.contains(allowed), "{name}: {from}");
        let example = kind.example.replace(from, to);
        let message = with_protocol(kind, data_of(kind), &example).expect_err(to);
        assert!(message.contains(allowed), "{name}, {to}: {message}");
    }
}

/// Catches a key of a protocol, also in a nested mapping, that its example does not show.
#[test]
fn every_example_shows_all_keys() {
    /// The keys of a node that an example lacks, and the number of all.
    fn missing(schema: &Value, node: &Value, shown: &Value, lacking: &mut Vec<String>) -> usize {
        let Value::Object(shown) = shown else { return 0 };
        let properties =
            parts(schema, node).into_iter().flat_map(|part| part["properties"].as_object());
        let own = properties.flatten().map(|(name, inner)| match shown.get(name) {
            // A list of numbers has several forms.
            Some(_) if inner.to_string().contains("/NumberList") => 1,
            Some(value) => 1 + missing(schema, inner, value, lacking),
            None => {
                lacking.push(name.clone());
                1
            }
        });
        own.sum()
    }
    let (schema, mut checked) = (json_schema(KINDS), 0);
    for kind in KINDS.all {
        let complete: Value = serde_yaml::from_str(&complete(&keys(kind.example))).unwrap();
        let mut lacking = Vec::new();
        checked += missing(&schema, &schema["definitions"][kind.name], &complete, &mut lacking);
        assert!(lacking.is_empty(), "the example of {} does not show {lacking:?}", kind.name);
    }
    assert!(checked > 200, "only {checked} keys were checked");
}

/// Catches a description that does not name the format of the files that its protocol reads.
#[test]
fn descriptions_name_the_formats_of_files() {
    let mut named = 0;
    for kind in KINDS.all {
        let protocol = with_protocol(kind, data_of(kind), kind.example).unwrap();
        // Builds without attention models lack some runners.
        let Ok(own) = posenc_harness::protocol::of(&protocol) else { continue };
        let weights = kind.takes_weights.then(|| own.weights());
        for format in own.reads().into_iter().chain(weights) {
            let name = format!("`{}`", format.name().replace(' ', "-"));
            assert!(kind.description().contains(&name), "{} reads {name}", kind.name);
            named += 1;
        }
    }
    assert!(named > 0 || cfg!(not(feature = "attention")), "no protocol reads files");
}
