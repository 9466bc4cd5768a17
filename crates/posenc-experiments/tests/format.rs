//! `FORMAT.md` documents every key that the schema knows, and what the schema refuses is said well.

use std::path::{Path, PathBuf};

use posenc_experiments::Experiment;
use posenc_experiments::yaml::Document;

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
"#;

fn parse(text: &str) -> Result<Experiment, String> {
    let document = Document::parse(Path::new("a.yaml"), text).map_err(|e| e.to_string())?;
    Experiment::from_document(&document).map_err(|e| e.to_string())
}

/// Names in backquotes after "expected" in serde's message about an unknown field.
fn expected_names(message: &str) -> Vec<String> {
    let after = message.split("expected").nth(1).unwrap_or("");
    let list = after.split("; did you mean").next().unwrap_or("");
    list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Catches a key that was added to the schema and not to the documentation.
#[test]
fn format_documents_every_key() {
    let documentation = std::fs::read_to_string(root().join("FORMAT.md")).unwrap();
    let protocols = [
        "{ kind: embedding, zz: 1 }",
        "{ kind: stable-rank, zz: 1 }",
        "{ kind: distance, zz: 1 }",
        "{ kind: feature-curve, zz: 1 }",
        "{ kind: singular-values, zz: 1 }",
        "{ kind: memorization, zz: 1 }",
        "{ kind: closed-form, zz: 1 }",
        "{ kind: complexity, zz: 1 }",
        "{ kind: kronecker-rank, zz: 1 }",
        "{ kind: similarity, zz: 1 }",
        "{ kind: parameter-count, zz: 1 }",
    ];
    let mut probes: Vec<String> =
        protocols.iter().map(|p| FILE.replace("{ kind: closed-form }", p)).collect();
    for check in ["value", "ordering", "ratio", "trend", "bound", "equality"] {
        probes.push(FILE.replace(
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
        ("values: [0.1] }", "values: [0.1], zz: 1 }"),
        ("says: it rises", "says: it rises\n    zz: 1"),
        ("of: { group: rank,", "of: { zz: 1, group: rank,"),
        ("caption: A caption", "caption: A caption\n    zz: 1"),
        ("- title: Panel", "- title: Panel\n        zz: 1"),
        ("x: { label: N }", "x: { label: N, zz: 1 }"),
        ("title: A table", "title: A table\n    zz: 1"),
        ("label: rank }\n\"", "label: rank, zz: 1 }"),
    ] {
        if FILE.contains(from) {
            probes.push(FILE.replacen(from, to, 1));
        }
    }
    probes.push(
        FILE.replace("- { metric: stable_rank, label: rank }", "- { metric: a, label: b, zz: 1 }"),
    );
    let mut checked = 0;
    for probe in probes {
        let message = parse(&probe).expect_err("zz is no key anywhere");
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
    for kind in posenc_experiments::schema::protocol::NAMES {
        assert!(documentation.contains(&format!("| `{kind}` |")), "protocol {kind}");
    }
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
        ("id: rank", "id: images", &["a.yaml:15", "stands twice"]),
        ("kind: stable-rank", "kind: stable-rnak", &["did you mean `stable-rank`"]),
        ("group: rank, metric", "group: rang, metric", &["a.yaml:23", "allowed: images, rank"]),
        ("signals: 1", "signals: 0", &["a.yaml:14", "allowed: 1 to"]),
        ("smoke: {", "paper: {", &["cannot be reduced"]),
        ("data: { set: div2k-test }", "seeds: 1", &["a.yaml:14", "no `data`"]),
        ("kind: extra", "kind: picture", &["a.yaml:4", "kind"]),
        ("paper: extensions", "paper: \"a/b\"", &["a.yaml:2", "a-z"]),
        ("groups:\n", "groups: 3\nextra:\n", &["a.yaml"]),
    ];
    for (from, to, needles) in cases {
        let text = FILE.replacen(from, to, 1);
        let message = parse(&text).expect_err(to);
        assert!(message.starts_with("a.yaml"), "{to}: {message}");
        for needle in *needles {
            assert!(message.contains(needle), "{to}: no `{needle}` in: {message}");
        }
    }
}

/// Catches a definition in the repository that no longer loads.
#[test]
fn all_definitions_load() {
    let catalog = posenc_experiments::Catalog::read(&root()).unwrap();
    assert!(catalog.experiments.len() >= 20, "{}", catalog.experiments.len());
}
