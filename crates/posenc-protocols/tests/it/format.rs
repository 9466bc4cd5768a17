//! The examples of protocols document every key that the schema knows.

use std::fmt::Write as _;
use std::path::Path;

use posenc_experiments::schema::protocol::Kind;
use posenc_experiments::yaml::Document;
use posenc_experiments::{Profile, Protocol};
use serde_yaml::Value;

use crate::{FILE, parse};

/// Names in backticks after "expected" in serde's message about an unknown field.
fn expected_names(message: &str) -> Vec<String> {
    let after = message.split("expected").nth(1).unwrap_or("");
    let list = after.split("; did you mean").next().unwrap_or("");
    list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
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
    let mut settings: Value = serde_yaml::from_str(example).map_err(|e| e.to_string())?;
    settings.as_mapping_mut().unwrap().remove("kind");
    (kind.parse)(&document.root(), settings).map(|(_, json)| json).map_err(|e| e.to_string())
}

/// Copies of the value, each with a key `zz` in another of its mappings, and the keys of this mapping.
fn probes(value: &Value) -> Vec<(Vec<&str>, Value)> {
    let Value::Mapping(mapping) = value else { return Vec::new() };
    let mut wrong = mapping.clone();
    wrong.insert("zz".into(), 1.into());
    let own = mapping.keys().filter_map(Value::as_str).collect();
    let mut all = vec![(own, Value::Mapping(wrong))];
    for (key, inner) in mapping {
        for (names, probe) in probes(inner) {
            let mut outer = mapping.clone();
            outer.insert(key.clone(), probe);
            all.push((names, Value::Mapping(outer)));
        }
    }
    all
}

/// Catches an example that does not parse, a key without an explanation, a `default` that is not the default, and a key that
/// is required but not shown as such.
#[test]
fn every_example_parses_and_shows_its_defaults() {
    for kind in posenc_protocols::KINDS.all {
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
        let kind = posenc_protocols::KINDS.all.iter().find(|kind| kind.name == name).unwrap();
        assert!(kind.example.contains(from) && kind.example.contains(allowed), "{name}: {from}");
        let example = kind.example.replace(from, to);
        let message = with_protocol(kind, data_of(kind), &example).expect_err(to);
        assert!(message.contains(allowed), "{name}, {to}: {message}");
    }
}

/// Catches a key of a protocol, also in a nested mapping, that its example does not show, and a commented-out key with a wrong type.
#[test]
fn every_example_shows_all_keys() {
    let mut checked = 0;
    for kind in posenc_protocols::KINDS.all {
        let text: String = keys(kind.example).iter().map(|key| format!("{}\n", key.text)).collect();
        let complete: Value = serde_yaml::from_str(&text).unwrap();
        for (i, (shown, probe)) in probes(&complete).into_iter().enumerate() {
            let text = serde_yaml::to_string(&probe).unwrap();
            let message = with_protocol(kind, data_of(kind), &text).err().unwrap_or_default();
            let is_named = message.contains("unknown field `zz`");
            // The first probe is that of the whole mapping. Number lists and free mappings refuse `zz` with another message.
            assert!(is_named || i > 0, "another error in {} comes first: {message}", kind.name);
            for name in expected_names(&message).iter().filter(|_| is_named) {
                assert!(shown.contains(&name.as_str()), "{} does not show `{name}`", kind.name);
                checked += 1;
            }
        }
    }
    assert!(checked > 350, "only {checked} keys were checked");
}

/// Catches a description that does not name the format of the files that its protocol reads.
#[test]
fn descriptions_name_the_formats_of_files() {
    let mut named = 0;
    for kind in posenc_protocols::KINDS.all {
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
