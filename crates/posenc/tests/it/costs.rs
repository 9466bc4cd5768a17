//! The report's page of costs, with the real binary.

use crate::common;

use common::{EXPERIMENT, Repository};

/// Catches estimates that depend on the machine's data or cores, so that the page would differ between machines.
#[test]
fn the_estimate_is_the_same_on_any_machine() {
    let repository = Repository::new();
    repository.ok(&["report", "--out", "one"]);
    let one = repository.read("one/costs.md");
    assert!(one.contains("(trading/table1.md)") && one.contains("## Total"), "{one}");
    assert!(repository.read("one/README.md").contains("(costs.md)"));
    std::fs::create_dir_all(repository.path().join("data/div2k")).unwrap();
    repository.write("data/div2k/data_div2k.npz", "no archive");
    let mut command = repository.command(&["report", "--out", "two"]);
    command.env("SLURM_CPUS_PER_TASK", "7").env("POSENC_DATA", repository.path());
    assert!(command.output().unwrap().status.success());
    assert_eq!(repository.read("two/costs.md"), one);
}

/// Catches a ratio that counts other units than those of the record.
#[test]
fn recorded_times_are_compared_with_their_own_units() {
    let repository = Repository::with_experiment(EXPERIMENT);
    let ratio = |repository: &Repository| {
        repository.ok(&["report", "--out", "pages"]);
        let page = repository.read("pages/costs.md");
        let row = page.lines().find(|line| line.contains("mexican-hat.md")).unwrap();
        let last = row.trim_end_matches([' ', '|']).rsplit('|').next().unwrap();
        last.split_whitespace().next().unwrap().to_owned()
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
