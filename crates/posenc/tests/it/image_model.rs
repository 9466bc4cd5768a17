//! `image-model` and `translation` end to end: the real binary, real records.

use crate::common;

use common::{Repository, experiment};

const PROTOCOL: &str = "kind: image-model, side: 6, levels: 4, held_out: 8, layers: 1, width: 16, heads: 2, \
     feed_forward: 16, batch: 4, steps: 6, learning_rate: 0.01, warm_up: 2, measure_every: 2";

const FOURIER: &str = "{ features: fourier, learned: true, gamma: 1 }";

fn group(variants: &str) -> String {
    experiment(&format!(
        "  - id: images\n    seeds: 2\n    protocol: {{ {PROTOCOL}, encoding: {FOURIER} }}\n    variants:\n{variants}"
    ))
}

/// Value of a metric without abscissa, by method and seed.
fn value(rows: &[String], method: &str, seed: &str, metric: &str) -> String {
    let row = rows
        .iter()
        .map(|r| r.split(',').collect::<Vec<_>>())
        .find(|f| f[3] == method && f[5] == seed && f[6] == metric)
        .unwrap_or_else(|| panic!("{method} {seed} {metric}: {rows:#?}"));
    row[9].to_owned()
}

/// Catches results that depend on the number of workers or on earlier units, seeds without effect, and methods that do not share
/// their random samples. A method under two names must have the same results, and so must random frequencies that are fixed or
/// learned at a rate near zero.
#[test]
fn same_seed_gives_same_bits_and_methods_share_samples() {
    let repository = Repository::with_experiment(&group(&format!(
        "      - {{ id: one }}\n      - {{ id: other }}\n      - {{ id: drawn, settings: {{ encoding: {{ features: fourier, gamma: 1 }}, learning_rate: 1e-9 }} }}\n      - {{ id: slow, settings: {{ encoding: {FOURIER}, learning_rate: 1e-9 }} }}\n"
    )));
    repository.ok(&["reproduce", "--jobs", "1", "--out", "one"]);
    repository.ok(&["reproduce", "--jobs", "2", "--out", "two"]);
    let (rows, two) = (repository.rows("one"), repository.rows("two"));
    let bits = |rows: &[String], method: &str, seed: &str| value(rows, method, seed, "bits");
    for method in ["one", "other", "drawn", "slow"] {
        for seed in ["0", "1"] {
            assert_eq!(bits(&rows, method, seed), bits(&two, method, seed), "{method} {seed}");
        }
    }
    assert_eq!(bits(&rows, "one", "0"), bits(&rows, "other", "0"));
    assert_ne!(bits(&rows, "one", "0"), bits(&rows, "one", "1"));
    let [drawn, slow] = ["drawn", "slow"].map(|m| bits(&rows, m, "0").parse::<f64>().unwrap());
    assert!((drawn - slow).abs() < 1e-4, "{drawn} {slow}");
    assert_ne!(bits(&rows, "one", "0"), bits(&rows, "slow", "0"));
}

/// Catches models of photographs that are evaluated on their training set, and sets that are not named.
#[test]
fn photographs_require_a_held_out_set() {
    let text = |data: &str| {
        experiment(&format!(
            "  - id: images\n    data: {data}\n    protocol: {{ {PROTOCOL}, encoding: {FOURIER}, reduce: 2 }}\n    variants: [{{ id: one }}]\n"
        ))
    };
    let repository =
        Repository::with_experiment(&text("{ set: div2k-train, held_out: div2k-test }"));
    repository.ok(&["reproduce", "--out", "crops"]);
    let rows = repository.rows("crops");
    let own = rows.iter().filter(|r| r.contains(",one,"));
    assert!(own.clone().count() > 10 && own.clone().all(|r| r.contains(",one,all,")), "{rows:#?}");
    let bits: f64 = value(&rows, "one", "0", "bits").parse().unwrap();
    assert!(bits > 0.0 && bits < 4.0, "{bits}");
    let run = Repository::with_experiment(&text("{ set: div2k-train, held_out: no-set }")).run(&[
        "reproduce",
        "--out",
        "crops",
    ]);
    assert!(run.code == 2 && run.stderr.contains("no-set"), "{}", run.stderr);
}

/// Catches a refused profile that silently runs something smaller instead.
#[test]
fn a_refused_profile_says_what_is_missing() {
    let text = group(
        "      - { id: one }\n    profiles: { paper: { refused: missing are the images } }\n",
    );
    let repository = Repository::with_experiment(&text);
    let run = repository.ok(&["reproduce", "--profile", "paper", "--out", "none"]);
    let line = "not run at `paper`: extensions/mexican-hat/images: missing are the images";
    assert!(run.stderr.contains(line) && run.stderr.contains("0 of 0 units"), "{}", run.stderr);
}

/// Catches translation results that depend on the number of workers, corpora that do not share language and initial weights, and
/// settings that are not checked.
#[test]
fn translations_have_the_same_bits_and_share_samples() {
    let text = |variants: &str| {
        experiment(&format!(
            "  - id: pairs\n    protocol: {{ kind: translation, words: 8, max_len: 12, lengths: log-normal, held_out: 8, layers: 1, width: 16, heads: 2, feed_forward: 16, deviation: 0.02, batch: 4, steps: 6, learning_rate: 0.01, warm_up: 2, bin: 4 }}\n    variants:\n{variants}"
        ))
    };
    let repository = Repository::with_experiment(&text(
        "      - { id: one }\n      - { id: other }\n      - { id: uniform, settings: { lengths: uniform } }\n",
    ));
    repository.ok(&["reproduce", "--jobs", "1", "--out", "one"]);
    repository.ok(&["reproduce", "--jobs", "2", "--out", "two"]);
    let rows = repository.rows("one");
    assert_eq!(rows, repository.rows("two"));
    let loss = |method| value(&rows, method, "0", "loss");
    assert_eq!(loss("one"), loss("other"));
    assert_ne!(loss("one"), loss("uniform"));
    let peaks = rows.iter().filter(|r| r.contains(",one,") && r.contains(",source_peak,")).count();
    assert_eq!(peaks, 3);
}
