//! `report`, `--record` and the reference records.

use crate::common;

use common::{EXPERIMENT, Repository};

/// Catches a report that is not a function of its records, and a check that accepts a changed page.
#[test]
fn check_finds_a_report_that_is_not_fresh() {
    let repository = Repository::with_experiment(EXPERIMENT);
    repository.ok(&["reproduce", "--record"]);
    repository.ok(&["report", "--check"]);
    let first = repository.read("report/extensions/mexican-hat.md");
    repository.ok(&["report"]);
    assert_eq!(repository.read("report/extensions/mexican-hat.md"), first);

    let changed = first.replacen("Stable", "Table", 1);
    assert_ne!(changed, first);
    repository.write("report/extensions/mexican-hat.md", &changed);
    repository.fails(&["report", "--check"], &["extensions/mexican-hat.md", "cargo xtask report"]);
    repository.ok(&["report"]);
    repository.ok(&["report", "--check"]);
}

/// Catches a damaged reference record that is accepted, or reported without its line.
#[test]
fn a_damaged_reference_record_is_named_by_line() {
    let repository = Repository::with_experiment(EXPERIMENT);
    repository.ok(&["reproduce", "--profile", "smoke", "--record"]);
    let file = "report/record/extensions/mexican-hat/values.csv";
    let whole = repository.read(file);
    let lines: Vec<&str> = whole.lines().collect();
    let with_line = |n: usize, text: &str| {
        let mut lines: Vec<&str> = lines.clone();
        lines[n - 1] = text;
        lines.join("\n") + "\n"
    };
    let third = lines[2];
    let number = third.split(',').nth(4).unwrap();
    for (text, needle) in [
        (with_line(3, &third.replacen(number, "twelve", 1)), "twelve"),
        (with_line(3, &format!("{third},extra")), "7 fields"),
        (with_line(3, &format!("99{third}")), "not in"),
    ] {
        repository.write(file, &text);
        repository.fails(&["report"], &["mexican-hat/values.csv:3", needle]);
    }
    repository.write(file, &with_line(1, &lines[0].replacen("metric", "metrik", 1)));
    repository.fails(&["report"], &["mexican-hat/values.csv:1", "metric"]);
    repository.write(file, "");
    repository.fails(&["report"], &["mexican-hat/values.csv"]);
    repository.write(file, &whole);
    repository.ok(&["report"]);
}

/// Catches a smaller run that replaces a larger one in the reference.
#[test]
fn a_smaller_profile_never_replaces_a_larger_one() {
    let repository = Repository::with_experiment(EXPERIMENT);
    let file = "report/record";
    repository.ok(&["reproduce", "--record"]);
    let large = repository.table(file);
    let run = repository.ok(&["reproduce", "--profile", "smoke", "--record", "--out", "small"]);
    assert!(run.stderr.contains("kept: extensions/mexican-hat/"), "{}", run.stderr);
    assert_eq!(repository.table(file), large);

    let other = Repository::with_experiment(EXPERIMENT);
    other.ok(&["reproduce", "--profile", "smoke", "--record"]);
    let small = other.table(file);
    other.ok(&["reproduce", "--record"]);
    assert_ne!(other.table(file), small);
    let without_times = |text: &str| -> Vec<String> {
        text.lines().filter(|l| !l.contains(",time")).map(str::to_owned).collect()
    };
    let (other, large) = (without_times(&other.table(file)), without_times(&large));
    assert_eq!(other, large, "the order of runs does not matter");
}

/// Catches a run of one method, at a larger profile, that removes the other methods of its group.
#[test]
fn a_run_of_one_method_leaves_the_others_in_the_reference() {
    let repository = Repository::with_experiment(EXPERIMENT);
    let file = "report/record";
    repository.ok(&["reproduce", "--record"]);
    let count = |method: &str, profile: &str| {
        let (part, label) = (format!(",images,{method},"), format!(",{profile},cpu,"));
        let text = repository.table(file);
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
}

/// Catches a local run that changes the reference report.
#[test]
fn a_local_run_does_not_change_the_reference() {
    let repository = Repository::with_experiment(EXPERIMENT);
    repository.ok(&["reproduce", "--record"]);
    let before = repository.read("report/extensions/mexican-hat.md");
    repository.ok(&["reproduce", "--seed", "3"]);
    assert_eq!(repository.read("report/extensions/mexican-hat.md"), before);
    let local = repository.read("out/report/extensions/mexican-hat.md");
    assert!(local.contains("this machine"), "{local}");
    assert!(local.contains("embedded:dead-leaves"), "{local}");
}

/// Catches a panic when the reader closes the pipe early, as `head` does.
#[test]
fn a_closed_pipe_ends_quietly() {
    let repository = Repository::new();
    let mut command = repository.command(&["list"]);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!errors.contains("panicked"), "{errors}");
    assert_ne!(output.status.code(), Some(0));
}

/// Catches a speed table that differs from the record, and a check that ignores it.
#[test]
fn the_speed_page_has_the_recorded_times() {
    let repository = Repository::with_experiment(EXPERIMENT);
    let page = "# x\n\n<!-- speed: made -->\n<!-- /speed -->\n\nbelow\n";
    repository.write("docs/SPEED.md", page);
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
    let changed = repository.ok(&["report"]).stderr;
    assert!(
        changed.contains("verdicts that changed: 1\n  extensions/mexican-hat high: ☑ → ❌"),
        "{changed}"
    );
    assert!(!repository.ok(&["report"]).stderr.contains("verdicts that changed"));
    let run = repository.ok(&["reproduce", "--profile", "smoke"]).stderr;
    assert!(!run.contains("verdicts that changed"), "{run}");
    repository.write(file, &with("0.5"));
    let run = repository.ok(&["reproduce", "--profile", "smoke"]).stderr;
    assert!(run.contains("  extensions/mexican-hat high: ❌ → ☑ (holds)"), "{run}");
}
