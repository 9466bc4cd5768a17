//! `costs` and the report's page of costs, with the real binary.

use crate::common;

use common::{EXPERIMENT, Repository};

/// Catches estimates that depend on the machine's data or cores, so that the page would differ between machines.
#[test]
fn the_estimate_is_the_same_on_any_machine() {
    let repository = Repository::new();
    let before = repository.ok(&["costs"]).stdout;
    assert!(
        before.contains("trading/table1") && before.contains("not run: lff/table3"),
        "{before}"
    );
    std::fs::create_dir_all(repository.path().join("data/div2k")).unwrap();
    repository.write("data/div2k/data_div2k.npz", "no archive");
    assert_eq!(repository.ok(&["costs"]).stdout, before);
    // The same through the page, which `report --check` compares byte for byte.
    repository.ok(&["report", "--out", "one"]);
    let one = repository.read("one/costs.md");
    assert!(one.contains("## Total") && repository.read("one/README.md").contains("(costs.md)"));
    let mut command = repository.command(&["report", "--out", "two"]);
    command.env("SLURM_CPUS_PER_TASK", "7").env("POSENC_DATA", repository.path());
    assert!(command.output().unwrap().status.success());
    assert_eq!(repository.read("two/costs.md"), one);
}

/// Catches options without effect, selectors that are ignored, and rates that make times infinite or negative.
#[test]
fn options_take_effect_and_are_checked() {
    let repository = Repository::new();
    let all = repository.ok(&["costs", "trading/table1"]).stdout;
    assert!(!all.contains("trading/table2"), "{all}");
    for more in
        [["--nodes", "2"], ["--cores", "64"], ["--gpu-tflops", "0.5"], ["--profile", "quick"]]
    {
        let other = repository.ok(&[&["costs", "trading/table1"][..], &more[..]].concat()).stdout;
        assert_ne!(other, all, "{more:?}");
    }
    for wrong in ["0", "-1", "NaN", "inf", "fast"] {
        let option = format!("--gpu-tflops={wrong}");
        repository.fails(&["costs", &option], &["above 0"]);
    }
    repository.fails(&["costs", "--nodes", "0"], &["--nodes"]);
    repository.fails(&["costs", "trading/table99"], &["selects nothing"]);
}

/// Catches a ratio that counts other units than those of the record.
#[test]
fn recorded_times_are_compared_with_their_own_units() {
    let repository = Repository::with_experiment(EXPERIMENT);
    let ratio = |repository: &Repository| {
        let text = repository.ok(&["costs"]).stdout;
        let line = text.lines().find(|l| l.contains("mexican-hat")).unwrap().to_owned();
        line.split_whitespace().last().unwrap().to_owned()
    };
    assert_eq!(ratio(&repository), "–");
    repository.ok(&["reproduce", "--profile", "smoke", "--record"]);
    assert!(ratio(&repository).parse::<f64>().unwrap() > 0.0);
    // One unit more than the definition has.
    let file = "report/record/extensions/mexican-hat.provenance.json";
    let text = repository.read(file);
    assert!(text.contains("\"units\": 6"), "{text}");
    let text = common::without_checksum(&text);
    repository.write(file, &text.replace("\"units\": 6", "\"units\": 7"));
    assert_eq!(ratio(&repository), "–");
}
