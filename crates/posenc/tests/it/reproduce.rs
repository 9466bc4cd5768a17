//! `reproduce` end to end: the real binary, real records.

use crate::common;

use common::{EXPERIMENT, Repository};

/// Catches a run without a report page, an item without a line about its verdicts, a run that repeats finished work, and pages and tables
/// that a run without units leaves although they or their inputs have changed.
#[test]
fn a_second_run_has_nothing_to_do() {
    let repository = Repository::with_experiment(EXPERIMENT);
    let first = repository.ok(&["reproduce", "--profile", "smoke"]);
    first.says(&["6 of 6 units to run"]);
    // The last line names the page of the only item.
    let page = first.stdout.lines().last().unwrap();
    assert!(page.ends_with("out/report/extensions/mexican-hat.md"), "{page}");
    assert!(std::fs::read_to_string(page).unwrap().contains("Mexican hat"));
    let summary = repository.read("out/report/README.md");
    assert!(summary.contains("# Are the papers right"), "{summary}");
    let mut lines: Vec<&str> = first.stderr.lines().collect();
    // The only item finishes after the last interim report.
    let about = lines.iter().filter(|line| line.starts_with("extensions/mexican-hat: "));
    assert_eq!(about.count(), 1, "{}", first.stderr);
    let count = lines.len();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), count, "a line repeats: {}", first.stderr);

    let run = ["reproduce", "--profile", "smoke"];
    repository.ok(&run).says(&["0 of 6 units to run, 6 on record"]);
    let page = "out/report/extensions/mexican-hat.md";
    let before = repository.read(page);
    for (file, text) in
        [(page, "edited"), ("out/record/extensions/mexican-hat/values.csv", "damaged")]
    {
        repository.write(file, text);
        repository.ok(&run);
        assert_eq!(repository.read(page), before, "{file}");
    }
    std::fs::remove_file(repository.path().join(page)).unwrap();
    repository.ok(&run);
    assert_eq!(repository.read(page), before);
    let prose = EXPERIMENT.replace("says: The stable rank rises.", "says: Other words.");
    repository.write("experiments/extensions/01-mexican-hat.yaml", &prose);
    repository.ok(&run);
    assert!(repository.read(page).contains("Other words."));
    // Rows without raw records disappear from the table.
    std::fs::remove_dir_all(repository.path().join("out/raw")).unwrap();
    repository.ok(&[&run[..], &["extensions/mexican-hat/rank/RFF"]].concat());
    assert!(!repository.table("out/record").contains("Gaussian formula"));
}

/// Catches a refused profile that silently runs something smaller instead.
#[test]
fn a_refused_profile_says_what_is_missing() {
    let refused = "profiles: { paper: { refused: missing are the images } }";
    let text = common::experiment(&format!(
        "  - id: rank\n    protocol: {{ kind: stable-rank, samples: [4] }}\n    variants: [{{ id: a, embedder: {{ kind: gaussian, dimension: 16, sigma: 0.1 }} }}]\n    {refused}\n"
    ));
    let run = Repository::with_experiment(&text).ok(&["reproduce", "--profile", "paper"]);
    let line = "not run at `paper`: extensions/mexican-hat/rank: missing are the images";
    run.says(&[line, "0 of 0 units"]);
}

/// Catches signals that run although they were not selected, and results that replace those of other signals on record.
#[test]
fn results_of_different_signals_join_on_record() {
    let repository = Repository::with_experiment(EXPERIMENT);
    let group = "extensions/mexican-hat/images";
    let reproduce = |signals: &str, out: &str| {
        repository.ok(&["reproduce", group, "--signals", signals, "--out", out, "--record"])
    };
    let first = reproduce("1..", "a");
    first.says(&["6 of 6 units to run"]);
    reproduce("0", "b");
    let joined = repository.table("report/record");
    repository.ok(&["reproduce", group, "--out", "whole"]);
    // Three signals are all signals of `quick` and a part of those of `paper`.
    let numbers = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| line.contains(",test_psnr,"));
        lines.map(|line| line.replace(",quick,", ",paper,")).collect()
    };
    let whole = numbers(&repository.table("whole/record"));
    assert_eq!(whole.len(), 9);
    assert_eq!(numbers(&joined), whole);
    let none = repository.run(&["reproduce", group, "--signals", "3"]);
    none.says(&["--signals selects no signal"]);
}

/// Catches results that depend on the number of workers or on the run, a formula that is evaluated differently from the built-in embedder,
/// in rank or in closed form, a seed without effect, and one that changes deterministic results.
#[test]
fn workers_and_formulas_give_the_same_results_and_seeds_do_not() {
    let repository = Repository::with_experiment(EXPERIMENT);
    let first = repository.ok(&["reproduce", "--jobs", "1", "--out", "one"]).stderr;
    // A first run changes no verdict.
    let verdict = "claims with a first verdict: 1\n  extensions/mexican-hat rises: ";
    assert!(first.contains(verdict) && !first.contains("verdicts that changed"), "{first}");
    repository.ok(&["reproduce", "--jobs", "2", "--out", "two"]);
    let rows = repository.rows("one");
    assert!(rows.len() > 50, "{} rows", rows.len());
    assert_eq!(rows, repository.rows("two"));
    let values = |method, metric| common::values(&rows, ["", method, metric]);
    for metric in ["stable_rank", "test_psnr", "condition_number"] {
        let (built_in, formula) = (values("Gaussian", metric), values("Gaussian formula", metric));
        assert!(!built_in.is_empty(), "{metric}");
        assert_eq!(built_in.len(), formula.len());
        for (a, b) in built_in.iter().zip(&formula) {
            assert!((a - b).abs() <= 1e-12 * a.abs(), "{metric}: {a} and {b}");
        }
    }
    assert_eq!(values("Mexican hat", "test_psnr").len(), 3);
    repository.ok(&["reproduce", "extensions/mexican-hat/rank", "--seed", "1", "--out", "seed"]);
    let seed = repository.rows("seed");
    let ranks = |rows, method| common::values(rows, ["rank", method, "stable_rank"]);
    assert_eq!(ranks(&seed, "Gaussian"), ranks(&rows, "Gaussian"));
    assert_ne!(ranks(&seed, "RFF"), ranks(&rows, "RFF"));
}

/// Catches a plan without the reason why a unit would run, and a dry run that runs units.
#[test]
fn a_dry_run_names_the_reason_and_runs_nothing() {
    let repository = Repository::with_experiment(EXPERIMENT);
    let rank = "extensions/mexican-hat/rank";
    repository
        .ok(&["reproduce", rank, "--dry-run"])
        .prints(&["rank/Gaussian seed 0  [paper]: no record", "3 of 3 units would run"]);
    assert!(repository.raw("out").is_empty());

    repository.ok(&["reproduce", rank]);
    let file = "experiments/extensions/01-mexican-hat.yaml";
    repository.write(file, &EXPERIMENT.replace("sigma: 5", "sigma: 6"));
    repository.ok(&["reproduce", rank, "--dry-run"]).prints(&[
        "rank/RFF",
        "key changed: specification",
        "1 of 3 units would run",
    ]);

    // A changed comment or text does not repeat any unit.
    let prose = EXPERIMENT.replace("shows: A test", "shows: Another text # and a comment");
    repository.write(file, &prose);
    repository.ok(&["reproduce", rank, "--dry-run"]).prints(&["0 of 3 units would run"]);
}

/// Catches a plan that is longer than a screen, one that leaves units out of its sum, and `--verbose` that does not print each unit.
#[test]
fn a_dry_run_fits_on_a_screen() {
    let repository = Repository::new();
    for (profile, selectors) in
        [("smoke", &["*"][..]), ("quick", &["trading"]), ("paper", &["*", "trading/table1"])]
    {
        for selector in selectors {
            let arguments = ["reproduce", selector, "--dry-run", "--profile", profile];
            let plan = repository.ok(&arguments);
            let lines = plan.stdout.lines().count() + plan.stderr.lines().count();
            assert!((3..=24).contains(&lines), "{lines}: {}{}", plan.stderr, plan.stdout);
            let whole = repository.ok(&[&arguments[..], &["--verbose"]].concat()).stdout;
            let total = |text: &str| -> usize {
                text.lines().last().unwrap().split(' ').next().unwrap().parse().unwrap()
            };
            // A line about one unit does not count it.
            let units = |line: &str| -> usize {
                let counts = line.split(": ").filter_map(|part| part.split_once(" unit"));
                counts.filter_map(|(count, _)| count.parse().ok()).next().unwrap_or(1)
            };
            let count = plan.stdout.lines().count();
            let listed: usize = plan.stdout.lines().take(count - 1).map(units).sum();
            assert_eq!(whole.lines().count(), total(&whole) + 1);
            assert_eq!(total(&plan.stdout), total(&whole));
            assert_eq!(listed, total(&whole), "{}", plan.stdout);
        }
    }
}

/// Catches options and selectors whose typos look like success.
#[test]
fn wrong_options_are_named_with_what_is_allowed() {
    let repository = Repository::with_experiment(EXPERIMENT);
    repository.fails(&["reproduce", "trading"], &["selector `trading` selects nothing", "list"]);
    repository.fails(&["reproduce", "a/b/c/d/e"], &["`a/b/c/d/e` selects nothing"]);
    repository.fails(&["list", "mexcian-hat"], &["Did you mean extensions/mexican-hat?"]);
    repository.fails(&["reproduce", "--profile", "fast"], &["smoke, quick, long, paper"]);
    repository.fails(&["reproduce", "--data", "nowhere"], &["nowhere"]);
    repository.fails(&["reproduce", "--images", "div2k-test"], &["SET=DIR"]);
    repository.fails(&["reproduce", "--images", "div2k-tset=out"], &["div2k-test"]);
    repository.fails(&["reproduce", "--jobs", "0"], &["--jobs"]);
    repository.fails(&["bench", "closed-from"], &["closed-form"]);
    let elsewhere = tempfile::tempdir().unwrap();
    let root = elsewhere.path().to_str().unwrap();
    repository.fails(&["--root", root, "list"], &["experiments/"]);
}

/// Catches a run of one item that leaves pages outdated, or renders others than a complete run.
#[test]
fn a_run_of_one_item_renders_all_pages() {
    let repository = Repository::with_experiment(EXPERIMENT);
    let paper = repository.read("experiments/extensions/paper.yaml");
    let item = "items:\n  - { item: other, name: Other, title: Another item }\n";
    repository.write("experiments/extensions/paper.yaml", &paper.replace("items:\n", item));
    let other = EXPERIMENT.replace("item: mexican-hat", "item: other");
    repository.write("experiments/extensions/10-other.yaml", &other);
    let run = ["reproduce", "--profile", "smoke"];
    let page = |name: &str| format!("out/report/{name}.md");
    let names = ["extensions/mexican-hat", "extensions/other", "README", "claims"];
    let last = repository.ok(&run).stdout;
    assert!(last.ends_with("out/report/extensions.md\n"), "{last}");
    let before = names.map(|name| repository.read(&page(name)));
    names.iter().for_each(|name| repository.write(&page(name), "edited"));
    let one = [&run[..], &["extensions/mexican-hat"]].concat();
    let last = repository.ok(&one).stdout;
    assert!(last.ends_with("out/report/extensions/mexican-hat.md\n"), "{last}");
    assert_eq!(names.map(|name| repository.read(&page(name))), before);
}
