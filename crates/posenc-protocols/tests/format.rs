//! `FORMAT.md` and the examples of protocols document every key that the schema knows, and errors in experiment files are
//! clear.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use posenc_experiments::schema::paper::Paper;
use posenc_experiments::schema::protocol::Kind;
use posenc_experiments::yaml::Document;
use posenc_experiments::{Experiment, Profile, Protocol};
use serde_yaml::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

const FILE: &str = r#"
paper: extensions
item: mexican-hat
kind: extra
title: A title
shows: What it shows
groups:
  - id: images
    data: { set: div2k-test }
    protocol: { kind: closed-form }
    variants:
      - { id: Gau, embedder: { kind: gaussian, dimension: 256, sigma: 0.0025 }, settings: {} }
    profiles:
      smoke: { reduced: one image, signals: 1 }
  - id: rank
    protocol: { kind: stable-rank, samples: [1, 2], sweep: { parameter: sigma, values: [0.1] } }
    variants:
      - { id: Gau, embedder: { kind: gaussian, dimension: 16, sigma: 0.1 } }
claims:
  - id: first
    says: it rises
    source: nowhere
    check: { kind: trend, of: { group: rank, metric: stable_rank }, direction: increasing }
plots:
  - id: picture
    caption: A caption
    panels:
      - title: Panel
        group: rank
        metric: stable_rank
        x: { label: N }
        y: { label: rank }
tables:
  - id: table
    title: A table
    groups: [rank]
    columns:
      - { metric: stable_rank, label: rank }
pictures:
  - id: grid
    title: A grid
    groups: [images]
    show: [truth, reconstruction, error]
    caption: { metric: test_psnr }
"#;

fn parse(text: &str) -> Result<Experiment, String> {
    let document = Document::parse(Path::new("a.yaml"), text).map_err(|e| e.to_string())?;
    Experiment::from_document(&document, posenc_protocols::KINDS).map_err(|e| e.to_string())
}

/// Names in backquotes after "expected" in serde's message about an unknown field.
fn expected_names(message: &str) -> Vec<String> {
    let after = message.split("expected").nth(1).unwrap_or("");
    let list = after.split("; did you mean").next().unwrap_or("");
    list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Catches a key that was added to the schema and not to FORMAT.md. Keys of protocols are in their examples, see below.
#[test]
fn format_documents_every_key() {
    let documentation = std::fs::read_to_string(root().join("FORMAT.md")).unwrap();
    // What is replaced must be there: a probe that no longer matches would check nothing.
    let probe = |from: &str, to: &str| {
        assert!(FILE.contains(from), "the file of the probes does not contain `{from}`");
        FILE.replacen(from, to, 1)
    };
    let mut probes = Vec::new();
    for check in posenc_experiments::schema::claim::KINDS {
        probes.push(probe(
            "{ kind: trend, of: { group: rank, metric: stable_rank }, direction: increasing }",
            &format!("{{ kind: {check}, zz: 1 }}"),
        ));
    }
    for (from, to) in [
        ("title: A title", "title: A title\nzz: 1"),
        ("data: { set: div2k-test }", "data: { set: div2k-test }\n    zz: 1"),
        ("set: div2k-test", "set: div2k-test, zz: 1"),
        ("settings: {} }", "settings: {}, zz: 1 }"),
        ("signals: 1 }", "signals: 1, zz: 1 }"),
        ("says: it rises", "says: it rises\n    zz: 1"),
        ("of: { group: rank,", "of: { zz: 1, group: rank,"),
        ("caption: A caption", "caption: A caption\n    zz: 1"),
        ("- title: Panel", "- title: Panel\n        zz: 1"),
        ("x: { label: N }", "x: { label: N, zz: 1 }"),
        ("x: { label: N }", "more: [{ zz: 1 }]\n        x: { label: N }"),
        ("x: { label: N }", "reference: { zz: 1 }\n        x: { label: N }"),
        ("x: { label: N }", "markers: [{ zz: 1 }]\n        x: { label: N }"),
        ("x: { label: N }", "published_as: [{ zz: 1 }]\n        x: { label: N }"),
        ("title: A table", "title: A table\n    zz: 1"),
        ("title: A grid", "title: A grid\n    zz: 1"),
        ("metric: test_psnr }", "metric: test_psnr, zz: 1 }"),
        ("- { metric: stable_rank, label: rank }", "- { metric: a, label: b, zz: 1 }"),
    ] {
        probes.push(probe(from, to));
    }
    let mut checked = 0;
    for probe in probes {
        let message = parse(&probe).expect_err("zz is no key anywhere");
        assert!(message.contains("unknown field `zz`"), "another mistake is told first: {message}");
        let names = expected_names(&message);
        assert!(!names.is_empty(), "no list of keys in: {message}");
        for name in names {
            assert!(
                documentation.contains(&format!("`{name}`")),
                "FORMAT.md does not mention `{name}` ({message})"
            );
            checked += 1;
        }
    }
    assert!(checked > 80, "only {checked} keys were checked");
    for name in posenc_experiments::record::picture::NAMES {
        assert!(documentation.contains(&format!("`{}`", name.name)), "picture {}", name.name);
    }
}

/// A group with a protocol, given as YAML, and with `data` if the protocol needs it.
fn with_protocol(kind: &Kind, data: &str, protocol: &str) -> Result<Protocol, String> {
    let head = FILE.split("groups:").next().unwrap();
    let embedder = "{ kind: gaussian, dimension: 64, sigma: 0.01 }";
    let embedder =
        if kind.needs_embedder { format!(", embedder: {embedder}") } else { String::new() };
    let settings: String = protocol.lines().map(|line| format!("      {line}\n")).collect();
    let group = format!("  - id: example\n{data}    variants: [{{ id: Method{embedder} }}]\n");
    let experiment = parse(&format!("{head}groups:\n{group}    protocol:\n{settings}"))?;
    Ok(experiment.groups[0].resolved(Profile::Paper, 0).unwrap().protocol.clone())
}

/// The `data` that the example of a protocol needs, as a line of a group: none if it does without.
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
    /// The line without the mark of a comment in front.
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

/// An example with the keys that are commented out.
fn complete(keys: &[Key]) -> String {
    keys.iter().map(|key| format!("{}\n", key.text)).collect()
}

/// The same without the keys that may be left out because they have their defaults.
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

/// The settings in an example as JSON, with types but without ranges: keys may exclude each other.
fn typed(kind: &Kind, example: &str) -> Result<String, String> {
    let document = Document::parse(Path::new("a.yaml"), example).map_err(|e| e.to_string())?;
    let mut settings: Value = serde_yaml::from_str(example).map_err(|e| e.to_string())?;
    settings.as_mapping_mut().unwrap().remove("kind");
    (kind.parse)(&document, "", settings).map(|(_, json)| json).map_err(|e| e.to_string())
}

/// The value with a key `zz` in each of its mappings in turn, and the keys that this mapping has.
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
    for kind in posenc_protocols::KINDS.0 {
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

/// Catches a key of a protocol, also in a mapping inside, that its example does not show, and a commented key of a wrong type.
#[test]
fn every_example_shows_all_keys() {
    let mut checked = 0;
    for kind in posenc_protocols::KINDS.0 {
        let text: String = keys(kind.example).iter().map(|key| format!("{}\n", key.text)).collect();
        let complete: Value = serde_yaml::from_str(&text).unwrap();
        for (i, (shown, probe)) in probes(&complete).into_iter().enumerate() {
            let text = serde_yaml::to_string(&probe).unwrap();
            let message = with_protocol(kind, data_of(kind), &text).err().unwrap_or_default();
            let is_named = message.contains("unknown field `zz`");
            // The first probe is that of the whole mapping; lists of numbers and free mappings refuse `zz` in other words.
            assert!(is_named || i > 0, "another mistake in {} comes first: {message}", kind.name);
            for name in expected_names(&message).iter().filter(|_| is_named) {
                assert!(shown.contains(&name.as_str()), "{} does not show `{name}`", kind.name);
                checked += 1;
            }
        }
    }
    assert!(checked > 400, "only {checked} keys were checked");
}

/// The first lines of a protocol's module, its documentation.
fn description(kind: &Kind) -> String {
    let file = format!("crates/posenc-protocols/src/{}/mod.rs", kind.name.replace('-', "_"));
    let source = std::fs::read_to_string(root().join(&file)).expect(&file);
    let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
    lines.map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(line))).collect()
}

/// What groups with this protocol need, and how their units run.
fn requirements(kind: &Kind) -> String {
    let repeats = kind
        .repeats_key
        .map(|key| format!("`{key}` is the number of runs; the group's `seeds` must be 1."));
    let sentences = [
        kind.needs_embedder.then_some("Every variant needs an `embedder`."),
        (!data_of(kind).is_empty()).then_some("The group needs `data`."),
        kind.takes_held_out.then_some("With `data.set`, the group needs `data.held_out`."),
        kind.takes_weights.then_some("The group may name `data.weights`."),
        repeats.as_deref(),
        kind.emits_as_batch.then_some("The units of a job are computed together."),
        kind.measures_time.then_some("The protocol measures time, so its units run alone."),
        kind.reads_published.then_some("Results depend on the published values of the paper."),
    ];
    sentences.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// `docs/protocols.md` as it should be.
fn page() -> String {
    let mut page = "\
# Protocols

This page is generated from the documentation and the example of each protocol in `crates/posenc-protocols/src`; a test compares
them. [FORMAT.md](../FORMAT.md#protocols) explains what all protocols share: groups, lists of numbers, position encodings.

Each example has all keys that are allowed under `protocol:` of a group. A key whose comment begins with `default` has its default value
and may be left out. A key that is commented out is optional, or excludes another one. All other keys are required unless their
comment says `optional`. Ranges include both ends.

| `kind` | purpose |
|---|---|
"
    .to_owned();
    let mut sections = String::new();
    for kind in posenc_protocols::KINDS.0 {
        let (name, description) = (kind.name, description(kind));
        let purpose = description.lines().next().unwrap_or_default();
        writeln!(page, "| [`{name}`](#{name}) | {purpose} |").unwrap();
        let requirements = match requirements(kind) {
            none if none.is_empty() => none,
            some => format!("{some}\n\n"),
        };
        let example = kind.example;
        write!(sections, "\n## {name}\n\n{description}\n{requirements}```yaml\n{example}```\n")
            .unwrap();
    }
    page + &sections
}

/// Catches a protocol that is not in `docs/protocols.md`, or is there as it was earlier.
#[test]
fn the_page_of_protocols_is_up_to_date() {
    let (file, page) = (root().join("docs/protocols.md"), page());
    if std::env::var_os("POSENC_UPDATE").is_some_and(|value| value == "1") {
        std::fs::write(file, page).unwrap();
        return;
    }
    let found = std::fs::read_to_string(file).unwrap_or_default();
    let differs = found.lines().zip(page.lines()).position(|(found, own)| found != own);
    let line = differs.unwrap_or_else(|| found.lines().count().min(page.lines().count())) + 1;
    assert!(
        found.lines().eq(page.lines()),
        "docs/protocols.md:{line} is not what the protocols say; to write the page anew: \
         POSENC_UPDATE=1 cargo xtask test the_page_of_protocols"
    );
}

/// Catches a description that does not name the format of the files that its protocol reads.
#[cfg(feature = "run")]
#[test]
fn descriptions_name_the_formats_of_files() {
    let mut named = 0;
    for kind in posenc_protocols::KINDS.0 {
        let protocol = with_protocol(kind, data_of(kind), kind.example).unwrap();
        // Builds without attention models do not have all.
        let Ok(own) = posenc_harness::protocol::of(&protocol) else { continue };
        let weights = kind.takes_weights.then(|| own.weights());
        for format in own.reads().into_iter().chain(weights) {
            let name = format!("`{}`", format.name().replace(' ', "-"));
            assert!(description(kind).contains(&name), "{} reads {name}", kind.name);
            named += 1;
        }
    }
    assert!(named > 0 || cfg!(not(feature = "attention")), "no protocol reads files");
}

/// One row per way a file can be wrong: what is written, and what the message must contain.
#[test]
fn mistakes_are_named_with_line_and_remedy() {
    assert!(parse(FILE).is_ok(), "{:?}", parse(FILE).err());
    let cases: &[(&str, &str, &[&str])] = &[
        ("item: mexican-hat", "itme: mexican-hat", &["a.yaml:3", "did you mean `item`"]),
        ("samples: [1, 2]", "samples: many", &["a.yaml:16", "groups[1].protocol.samples"]),
        ("samples: [1, 2]", "samples: [0]", &["samples", "whole numbers from 1"]),
        ("sigma: 0.1 }", "sigma: 0 }", &["a.yaml:18", "embedder.sigma", "0"]),
        ("sigma: 0.1 }", "sigma: -1 }", &["a.yaml:18", "embedder.sigma"]),
        ("sigma: 0.1 }", "sigma: .nan }", &["a.yaml:18", "embedder.sigma"]),
        ("dimension: 16", "dimension: 0", &["a.yaml:18", "embedder.dimension"]),
        ("dimension: 16", "dimension: 1.5", &["embedder.dimension"]),
        ("dimension: 16, sigma", "dimension: 16, sgima", &["a.yaml:18", "sigma"]),
        (
            "kind: gaussian, dimension: 16",
            "kind: gausian, dimension: 16",
            &["a.yaml:18", "gaussian"],
        ),
        (
            "{ kind: gaussian, dimension: 16, sigma: 0.1 }",
            "{ kind: formula, dimension: 16, psi: \"exp(-u*\" }",
            &["a.yaml:18", "psi"],
        ),
        (
            "{ kind: gaussian, dimension: 16, sigma: 0.1 }",
            "{ kind: formula, dimension: 16, psi: \"ln(-1-u*u)\" }",
            &["a.yaml:18", "psi", "NaN"],
        ),
        ("id: rank", "id: images", &["a.yaml:15", "appears twice"]),
        ("kind: stable-rank", "kind: stable-rnak", &["did you mean `stable-rank`"]),
        ("group: rank, metric", "group: rang, metric", &["a.yaml:23", "allowed: images, rank"]),
        ("signals: 1", "signals: 0", &["a.yaml:14", "allowed: 1 to"]),
        ("smoke: {", "paper: {", &["cannot be reduced"]),
        ("data: { set: div2k-test }", "seeds: 1", &["a.yaml:14", "no `data`"]),
        ("kind: extra", "kind: picture", &["a.yaml:4", "kind"]),
        ("paper: extensions", "paper: \"a/b\"", &["a.yaml:2", "a-z"]),
        ("groups:\n", "groups: 3\nextra:\n", &["a.yaml"]),
        (
            "direction: increasing }",
            "direction: increasing }\n  - id: second\n    says: a\n    source: b\n    check: { kind: position, of: { group: rank, metric: a }, feature: highest, level: 3, at: 1 }",
            &["claims[1].check.level", "last-above"],
        ),
        (
            "direction: increasing }",
            "direction: increasing }\n  - id: second\n    says: a\n    source: b\n    check: { kind: position, of: { group: rank, metric: a }, feature: highest }",
            &["claims[1].check.at", "exactly one of `at` and `with`"],
        ),
        (
            "direction: increasing }",
            "direction: increasing }\n  - id: second\n    says: a\n    source: b\n    check: { kind: agreement, of: { group: rank, metric: a }, tolerance: { standard_errors: 2 } }",
            &["claims[1].check.tolerance", "`published_runs`"],
        ),
        (
            "x: { label: N }",
            "markers: [{ label: a, shape: star, at: { Gua: 3 } }]\n        x: { label: N }",
            &["a.yaml:31", "plots[0].panels[0].markers[0].at", "no variant `Gua`"],
        ),
        (
            "x: { label: N }",
            "more: [{ metric: a, label: b }]\n        x: { label: N }",
            &["plots[0].panels[0].series", "`more` belongs to `metric`"],
        ),
    ];
    for (from, to, needles) in cases {
        assert!(FILE.contains(from), "{from}");
        let text = FILE.replacen(from, to, 1);
        let message = parse(&text).expect_err(to);
        assert!(message.starts_with("a.yaml"), "{to}: {message}");
        for needle in *needles {
            assert!(message.contains(needle), "{to}: no `{needle}` in: {message}");
        }
    }
}

/// As above, for pictures and for the single values behind tables.
#[test]
fn mistakes_in_what_is_shown_are_named_with_line_and_remedy() {
    let cases: &[(&str, &str, &[&str])] = &[
        ("title: A grid", "titel: A grid", &["a.yaml:41", "did you mean `title`"]),
        ("id: grid", "id: A grid", &["a.yaml:40", "pictures[0].id", "a-z"]),
        (
            "groups: [images]\n    show",
            "groups: [imags]\n    show",
            &["a.yaml:42", "pictures[0].groups[0]", "Did you mean `images`"],
        ),
        ("groups: [images]\n    show", "groups: []\n    show", &["pictures[0].groups", "empty"]),
        (
            "truth, reconstruction",
            "truth, recontruction",
            &["a.yaml:43", "pictures[0].show[1]", "Did you mean `reconstruction`", "truth-frames"],
        ),
        ("truth, reconstruction", "truth, truth", &["pictures[0].show[1]", "appears twice"]),
        ("[truth, reconstruction, error]", "[]", &["pictures[0].show", "empty"]),
        (
            "metric: test_psnr }",
            "metric: test_psnr, digits: 13 }",
            &["a.yaml:44", "pictures[0].caption.digits", "0 to 12"],
        ),
        (
            "title: A grid",
            "title: A grid\n    methods: [Gaus]",
            &["a.yaml:42", "pictures[0].methods[0]", "Did you mean `Gau`"],
        ),
        (
            "title: A grid",
            "title: A grid\n    kind: gird",
            &["pictures[0].kind", "did you mean `grid`"],
        ),
        (
            "title: A grid",
            "title: A grid\n    signals: some",
            &["pictures[0].signals", "`some`", "`first`, `all`, a number from 1 on"],
        ),
        ("title: A grid", "title: A grid\n    signals: 0", &["a.yaml:42", "`first`, `all`"]),
        ("title: A grid", "title: A grid\n    signals: -1", &["signals", "`first`, `all`"]),
        ("title: A grid", "title: A grid\n    signals: []", &["signals", "an empty list"]),
        ("title: A grid", "title: A grid\n    signals: 1.5", &["signals", "`first`, `all`"]),
        (
            "title: A table",
            "title: A table\n    rows: x\n    per_signal: true",
            &["a.yaml:37", "tables[0].per_signal", "methods"],
        ),
    ];
    for (from, to, needles) in cases {
        assert!(FILE.contains(from), "{from}");
        let text = FILE.replacen(from, to, 1);
        let message = parse(&text).expect_err(to);
        assert!(message.starts_with("a.yaml"), "{to}: {message}");
        for needle in *needles {
            assert!(message.contains(needle), "{to}: no `{needle}` in: {message}");
        }
    }
    let accepted = ["first", "all", "3", "[image-00, \"image 1\"]"];
    for signals in accepted {
        let text = FILE
            .replacen("title: A grid", &format!("title: A grid\n    signals: {signals}"), 1)
            .replacen("title: A table", "title: A table\n    per_signal: true", 1);
        assert!(parse(&text).is_ok(), "{signals}: {:?}", parse(&text).err());
    }
}

/// As above, for the settings of training.
#[test]
fn mistakes_in_training_are_named_with_line_and_remedy() {
    let settings = "lines: { rows: [5] }, learning_rate: 1e-3, epochs: 10";
    let with = |more: &str, embedder: &str| {
        let protocol = format!("{{ kind: network-1d, {more} }}");
        let text = FILE.replace("{ kind: closed-form }", &protocol);
        parse(&text.replace("{ kind: gaussian, dimension: 256, sigma: 0.0025 }", embedder))
    };
    let gaussian = "{ kind: gaussian, dimension: 256, sigma: 0.0025 }";
    let accepted = [
        "",
        "width: 8, depth: 2, curve_every: 5, mean_of_first: 4, layers: true, reconstruction: {}",
        "sweep: { parameter: sigma, values: [0.1, 0.01] }, abscissa: stable-rank",
        "sweep: { parameter: step, values: [1, 2] }, abscissa: samples",
    ];
    for more in accepted {
        let parsed = with(&format!("{settings}, {more}"), gaussian);
        assert!(parsed.is_ok(), "{more}: {:?}", parsed.err());
    }
    let rule = settings.replace("1e-3", "{ base: 1e-3, sigma: 0.1, exponent: -0.5 }");
    assert!(with(&rule, gaussian).is_ok());
    let cases: &[(&str, &[&str])] = &[
        ("width: 0", &["protocol.width", "allowed: 1 to"]),
        ("depth: 17", &["protocol.depth", "0 to 16"]),
        ("depth: -1", &["protocol.depth"]),
        ("step: 0", &["protocol.step", "1 to"]),
        ("repeats: 0", &["protocol.repeats"]),
        ("repeats: 100001", &["protocol.repeats"]),
        ("weight_decay: 1", &["protocol.weight_decay", "below 1"]),
        ("value_scale: 0", &["protocol.value_scale", "above 0"]),
        ("value_scale: .nan", &["protocol.value_scale", "above 0"]),
        ("mean_of_last: 0", &["protocol.mean_of_last"]),
        ("curve_every: 11", &["protocol.curve_every", "0 to 10"]),
        ("mean_of_first: 5", &["protocol.mean_of_first", "curve_every"]),
        ("layers: true", &["protocol.layers", "curve_every"]),
        ("scale: bach", &["protocol.scale", "did you mean `batch`"]),
        ("test: al", &["protocol.test", "midpoints"]),
        ("reconstruction: { outside: 2 }", &["protocol.reconstruction.outside", "0 to 1"]),
        (
            "sweep: { parameter: sgima, values: [1] }",
            &["protocol.sweep.parameter", "sigma", "`step`"],
        ),
        ("sweep: { parameter: sigma, values: [1, 0] }", &["protocol.sweep.values", "sigma"]),
        ("sweep: { parameter: step, values: [0] }", &["protocol.sweep.values", "whole numbers"]),
        (
            "sweep: { parameter: sigma, values: [1] }, abscissa: samples",
            &["protocol.abscissa", "stable-rank"],
        ),
        (
            "sweep: { parameter: sigma, values: [1] }, curve_every: 2",
            &["protocol.curve_every", "without a sweep"],
        ),
        (
            "sweep: { parameter: sigma, values: [1] }, reconstruction: {}",
            &["protocol.reconstruction", "without a sweep"],
        ),
    ];
    for (more, needles) in cases {
        let message = with(&format!("{settings}, {more}"), gaussian).expect_err(more);
        assert!(message.starts_with("a.yaml:10"), "{more}: {message}");
        for needle in *needles {
            assert!(message.contains(needle), "{more}: no `{needle}` in: {message}");
        }
    }
    let replaced: &[(&str, &str, &[&str])] = &[
        ("rows: [5]", "rows: [-1]", &["protocol.lines.rows", "whole numbers"]),
        ("rows: [5]", "rows: [0.5]", &["protocol.lines.rows", "whole numbers"]),
        ("{ rows: [5] }", "{}", &["protocol.lines", "no line"]),
        ("1e-3", "0", &["protocol.learning_rate", "1e-30 to 1e3"]),
        ("1e-3", "fast", &["protocol.learning_rate", "a number or {base, sigma, exponent}"]),
        ("1e-3", "{ base: 1, sigma: 0, exponent: 1 }", &["learning_rate.sigma", "above 0"]),
        ("epochs: 10", "epochs: 0", &["protocol.epochs"]),
    ];
    for (from, to, needles) in replaced {
        let message = with(&settings.replace(from, to), gaussian).expect_err(to);
        assert!(message.starts_with("a.yaml:10"), "{to}: {message}");
        for needle in *needles {
            assert!(message.contains(needle), "{to}: no `{needle}` in: {message}");
        }
    }
    let steep = rule.replace("-0.5", "10").replace("0.1", "1e9");
    let message = with(&steep, gaussian).expect_err("a rate of nothing");
    assert!(message.contains("learning_rate") && message.contains("sigma = 0.0025"), "{message}");
    let message = with(&rule, "{ kind: impulse, dimension: 256 }").expect_err("no sigma");
    assert!(message.contains("learning_rate") && message.contains("impulse"), "{message}");
    let text =
        FILE.replace("{ kind: closed-form }", &format!("{{ kind: network-1d, {settings} }}"));
    let seeds =
        text.replace("data: { set: div2k-test }", "data: { set: div2k-test }\n    seeds: 2");
    let message = parse(&seeds).expect_err("seeds");
    assert!(message.contains("a.yaml:10") && message.contains("`repeats`"), "{message}");
}

/// Catches a definition in the repository that no longer loads.
#[test]
fn all_definitions_load() {
    let catalog = posenc_experiments::Catalog::read(&root(), posenc_protocols::KINDS).unwrap();
    assert!(catalog.experiments.len() >= 20, "{}", catalog.experiments.len());
}

/// Catches numbers that would fill the memory or the week before anything runs: each is an error with line, key and what is
/// allowed.
#[test]
fn absurd_numbers_are_refused() {
    let protocol = |settings: &str| FILE.replace("{ kind: closed-form }", settings);
    let one_line = "kind: network-1d, lines: { random: 1 }, learning_rate: 0.1";
    let image = "kind: image-model, side: 8, levels: 4, held_out: 4, encoding: { features: sine }, steps: 9, learning_rate: 0.1, \
                 warm_up: 1, measure_every: 1, heads: 1";
    let scenes = "kind: detection, encoding: { features: sine }, heads: 1, decoder_layers: 1, queries: 2, steps: 9, \
                  learning_rate: 0.1, warm_up: 1, measure_every: 1";
    let words = "kind: translation, lengths: constant, held_out: 4, heads: 1, deviation: 1, steps: 9, learning_rate: 0.1, \
                 warm_up: 1, bin: 1";
    let variants: String = (0..1001)
        .map(|i| format!("      - {{ id: v{i}, embedder: {{ kind: gaussian, dimension: 16, sigma: 0.1 }} }}\n"))
        .collect();
    let gaussian = "      - { id: Gau, embedder: { kind: gaussian, dimension: 16, sigma: 0.1 } }\n";
    let many = |count: usize| -> String {
        variants.lines().take(count).map(|l| format!("{l}\n")).collect()
    };
    let sweep = "values: { from: 0.01, to: 1, count: 100 } }";
    for (text, expected) in [
        (FILE.replace("samples: [1, 2]", "samples: { from: 0, to: 1e18, step: 1e-9 }"), "1 to 10000 numbers"),
        (FILE.replace("samples: [1, 2]", "samples: { from: 1, to: 2, count: 1000000000 }"), "2 to 10000"),
        (FILE.replace("dimension: 256", "dimension: 1000000000000"), "10000000"),
        (FILE.replace("- id: images", "- id: images\n    seeds: 1000000000"), "allowed: 1 to 100000"),
        (FILE.replace("signals: 1 }", "signals: 1000000000 }"), "allowed: 1 to 100000"),
        (FILE.replace(gaussian, &variants), "1002 variants; allowed: 1000"),
        (
            FILE.replace(gaussian, &many(500)).replace("- id: rank", "- id: rank\n    seeds: 1000"),
            "variants × seeds of the file: 100001 up to here; allowed: 100000",
        ),
        (
            FILE.replace(gaussian, &many(500)).replace("values: [0.1] }", sweep),
            "values of sweeps over all variants and profiles of the file: 20100 up to here; allowed: 20000",
        ),
        (
            FILE.replace(gaussian, &many(900)).replace("samples: [1, 2]", "samples: { from: 1, to: 8000, step: 1 }"),
            "bytes of settings over all variants and profiles of the file",
        ),
        (protocol(&format!("{{ {one_line}, epochs: 10, width: 1000000000 }}")), "allowed: 1 to 8192"),
        (protocol(&format!("{{ {one_line}, epochs: 1000000000000 }}")), "allowed: 1 to 100000000"),
        (protocol(&format!("{{ {one_line}, epochs: 10, repeats: 1000000000 }}")), "allowed: 1 to 100000"),
        (
            protocol(&format!("{{ {one_line}, epochs: 10000000, curve_every: 1 }}")),
            "yields 2.0e7 points over 2 runs; allowed: 1e6",
        ),
        (
            protocol(&format!("{{ {image}, layers: 48, width: 4096, feed_forward: 65536, batch: 1 }}")),
            "2.9e10 weights; allowed: 2e9",
        ),
        (
            protocol(&format!("{{ {image}, layers: 48, width: 64, feed_forward: 64, batch: 4096, side: 64 }}")
                .replace("side: 8, ", "")),
            "a step would keep",
        ),
        (
            protocol(&format!(
                "{{ {scenes}, sides: [512], held_out: 100000, width: 8, feed_forward: 8, encoder_layers: 0, batch: 1 }}"
            )),
            "the scenes would take 315 GB; allowed: 64 GB",
        ),
        (
            protocol(&format!(
                "{{ {scenes}, sides: [18446744073709551608], held_out: 1, width: 8, feed_forward: 8, encoder_layers: 0, \
                 batch: 1 }}"
            )),
            "at most 512",
        ),
        (
            protocol(&format!("{{ {words}, words: 9, max_len: 512, layers: 48, width: 8, feed_forward: 8, batch: 4096 }}"))
                .replace("data: { set: div2k-test }", "")
                .replace("signals: 1 }", "}"),
            "a step would keep",
        ),
    ] {
        let message = parse(&text).unwrap_err();
        assert!(message.starts_with("a.yaml:") && message.contains(expected), "`{expected}`: {message}");
    }
}

/// Catches keys of papers and items, which become names of files, that lead elsewhere.
#[test]
fn keys_are_names_of_files() {
    for bad in ["../x", "/x", "a/b", "a\\\\b", "C:", "..", ".", "", "a\\0", "A", "é"] {
        for key in ["paper: extensions", "item: mexican-hat"] {
            let name = key.split(':').next().unwrap();
            let message = parse(&FILE.replace(key, &format!("{name}: \"{bad}\""))).unwrap_err();
            assert!(
                message.contains(&format!("`{name}`")) && message.contains("a-z, 0-9"),
                "{message}"
            );
        }
        let paper = "{ key: K, title: t, authors: [], venue: v, year: 1, summary: s, items: [{ item: I, name: n, title: t }] }";
        for (from, other, path) in [("K", "I", "key"), ("I", "K", "items[0].item")] {
            let text = paper.replace(&format!(": {from}"), &format!(": \"{bad}\""));
            let document = Document::parse(
                Path::new("paper.yaml"),
                &text.replace(&format!(": {other}"), ": x"),
            );
            let message = Paper::from_document(&document.unwrap()).unwrap_err().to_string();
            assert!(message.contains(path) && message.contains("a-z, 0-9"), "{message}");
        }
    }
}

/// Catches documents that cite a claim which was renamed or removed.
#[test]
fn documents_cite_claims_that_exist() {
    use posenc_experiments::schema::claim::ClaimName;
    let catalog = posenc_experiments::Catalog::read(&root(), posenc_protocols::KINDS).unwrap();
    let papers: Vec<&str> = catalog.papers.iter().map(|p| p.key.as_str()).collect();
    let mut cited = 0;
    for name in ["METHODOLOGY", "BIAS", "EXTENDING", "decisions"] {
        let text = std::fs::read_to_string(root().join(format!("docs/{name}.md"))).unwrap();
        let names = text.split('`').filter_map(|code| ClaimName::parse(code, None));
        for claim in names.filter(|claim| papers.contains(&claim.paper.as_str())) {
            cited += 1;
            assert!(
                catalog.claim(&claim).is_some(),
                "docs/{name}.md cites {claim}, which does not exist"
            );
        }
    }
    assert!(cited > 10, "{cited}");
}

/// Catches claims of the project that load but mislead; `allow` in a claim switches a lint off where it is wrong.
#[test]
fn claims_have_no_lints() {
    let catalog = posenc_experiments::Catalog::read(&root(), posenc_protocols::KINDS).unwrap();
    let findings = posenc_experiments::lint::findings(&catalog);
    let text: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(text.is_empty(), "{}", text.join("\n"));
}

/// Catches an erratum whose printed statement and correction are tested with different tolerances.
#[test]
fn errata_are_tested_alike() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("experiments/demo");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::create_dir_all(root.path().join("data/papers")).unwrap();
    let paper = "key: demo\ntitle: T\nauthors: [A]\nvenue: V\nyear: 2021\nsummary: S\nitems:\n  - { item: fig1, name: F, title: T }\n";
    std::fs::write(folder.join("paper.yaml"), paper).unwrap();
    let id = posenc_math_id();
    for (tolerance, is_read) in [("0.1", true), ("0.2", false)] {
        let check = |tolerance: &str| {
            format!(
                "{{ kind: value, of: {{ group: rank, metric: stable_rank }}, expect: 1, tolerance: {{ absolute: {tolerance} }} }}"
            )
        };
        let text = format!(
            "paper: demo\nitem: fig1\nkind: figure\ntitle: T\nshows: S\ngroups:\n  - id: rank\n    protocol: {{ kind: stable-rank, samples: [1] }}\n    \
             variants: [{{ id: A, embedder: {{ kind: identity }} }}]\nclaims:\n  - id: c\n    says: s\n    source: s\n    check: {}\n    \
             erratum: {{ id: {id}, corrected: c, check: {} }}\n",
            check("0.1"),
            check(tolerance)
        );
        std::fs::write(folder.join("01-fig1.yaml"), text).unwrap();
        let catalog = posenc_experiments::Catalog::read(root.path(), posenc_protocols::KINDS);
        match catalog {
            Ok(_) => assert!(is_read, "{tolerance}"),
            Err(error) => {
                let message = error.to_string();
                assert!(!is_read && message.contains("`tolerance`"), "{message}");
            }
        }
    }
}

/// Some erratum.
fn posenc_math_id() -> &'static str {
    posenc_math::errata::all().first().expect("an erratum").id
}
