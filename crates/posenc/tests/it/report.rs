//! `report`, `--record` and the reference records.

use crate::common;

use common::{EXPERIMENT, Repository, has};

/// Catches a report that is not a function of its records, a check that accepts a changed page, a local run that changes the reference, a
/// smaller run that replaces a larger one, a run of one method that removes the others of its group, and a speed table that differs from
/// the record.
#[test]
fn the_reference_changes_only_for_the_better() {
    let repository = Repository::with_experiment(EXPERIMENT);
    let (page, record) = ("report/extensions/mexican-hat.md", "report/record");
    repository.ok(&["reproduce", "--record"]);
    repository.ok(&["report", "--check"]);
    let first = repository.read(page);
    let changed = first.replacen("Stable", "Table", 1);
    assert_ne!(changed, first);
    repository.write(page, &changed);
    repository.fails(&["report", "--check"], &["extensions/mexican-hat.md", "cargo xtask report"]);
    repository.ok(&["report"]);
    assert_eq!(repository.read(page), first);

    repository.ok(&["reproduce", "--seed", "3"]);
    assert_eq!(repository.read(page), first);
    let local = repository.read("out/report/extensions/mexican-hat.md");
    has(&local, &["this machine", "embedded:dead-leaves"]);

    let large = repository.table(record);
    repository
        .ok(&["reproduce", "--profile", "smoke", "--record", "--out", "small"])
        .says(&["kept: extensions/mexican-hat/"]);
    assert_eq!(repository.table(record), large);

    let count = |method: &str, profile: &str| {
        let (part, label) = (format!(",images,{method},"), format!(",{profile},cpu,"));
        let text = repository.table(record);
        text.lines().filter(|l| l.contains(&part) && l.contains(&label)).count()
    };
    let before = count("Gaussian", "quick");
    assert!(before > 0);
    let hat = "extensions/mexican-hat/images/Mexican hat";
    repository.ok(&["reproduce", hat, "--profile", "paper", "--record", "--out", "one"]);
    assert_eq!(count("Gaussian", "quick"), before);
    assert_eq!(count("Mexican hat", "quick"), 0);
    assert!(count("Mexican hat", "paper") > before);
    repository.ok(&["report", "--check"]);

    // The page outside with the recorded times.
    let speed = "# x\n\n<!-- speed: made -->\n<!-- /speed -->\n\nbelow\n";
    repository.write("docs/SPEED.md", speed);
    let benchmark = r#"{ "complex-2d": { "title": "a grid", "unit": "s per step", "ours_s": 0.002, "torch_s": 0.007,
        "jax_s": null, "gemm_gflops": 100.0, "share_of_gemm": 0.5, "threads": 2, "peers": ["torch 2"],
        "machine": "M", "commit": "" } }"#;
    repository.write("report/record/benchmarks.json", benchmark);
    repository.ok(&["report"]);
    let written = repository.read("docs/SPEED.md");
    assert!(written.contains("| a grid <sub>per step</sub> | 2 ms | 7 ms | 3.5 |"), "{written}");
    assert!(written.ends_with("<!-- /speed -->\n\nbelow\n"), "{written}");
    repository.ok(&["report", "--check"]);
    repository.write("report/record/benchmarks.json", &benchmark.replace("0.007", "0.008"));
    repository.fails(&["report", "--check"], &["docs/SPEED.md", "cargo xtask report"]);
}

/// Catches a changed claim or published value whose verdict changes without a word, and a list of all claims in the first report.
#[test]
fn changed_verdicts_are_printed() {
    let repository = Repository::with_experiment(EXPERIMENT);
    repository.ok(&["reproduce", "--profile", "smoke", "--record"]);
    let file = "experiments/extensions/01-mexican-hat.yaml";
    let text = repository.read(file);
    let claim = "  - { id: high, says: s, source: s, ours: true, check: { kind: bound, of: { group: rank, method: Gaussian, metric: stable_rank }, at_least: 0.5 } }\n";
    let with = |limit: &str| {
        let claim = claim.replace("at_least: 0.5", &format!("at_least: {limit}"));
        match text.contains("\nclaims:\n") {
            true => text.replacen("\nclaims:\n", &format!("\nclaims:\n{claim}"), 1),
            false => format!("{text}claims:\n{claim}"),
        }
    };
    repository.write(file, &with("0.5"));
    repository.ok(&["report"]);
    repository.write(file, &with("1000"));
    let changed = "verdicts that changed: 1\n  extensions/mexican-hat high: ✓ → ✗";
    repository.ok(&["report"]).says(&[changed]);
    assert!(!repository.ok(&["report"]).stderr.contains("verdicts that changed"));
    let run = repository.ok(&["reproduce", "--profile", "smoke"]).stderr;
    assert!(!run.contains("verdicts that changed"), "{run}");
    repository.write(file, &with("0.5"));
    repository
        .ok(&["reproduce", "--profile", "smoke"])
        .says(&["  extensions/mexican-hat high: ✗ → ✓ (holds)"]);
}
