//! `diff` and `verify` end to end: the real binary, real records.

use crate::common;

use std::path::PathBuf;

use common::{EXPERIMENT, Repository, Run};
use posenc_experiments::record::item::Sources;
use posenc_experiments::record::{ItemRecord, Provenance, Row};

const RANK: &str = "extensions/mexican-hat/rank";
const DEFINITION: &str = "experiments/extensions/01-mexican-hat.yaml";

/// The folder of the only record in a directory of records.
fn record(repository: &Repository, directory: &str) -> PathBuf {
    repository.path().join(directory).join("extensions/mexican-hat")
}

/// Copies a directory of records with its rows changed.
fn edited(repository: &Repository, from: &str, to: &str, mut edit: impl FnMut(&mut Row)) {
    let read = ItemRecord::read_tables(&record(repository, from)).unwrap();
    let (mut table, provenance) = read.unwrap();
    table.rows.iter_mut().for_each(&mut edit);
    ItemRecord::write(&record(repository, to), &table, &provenance, &Sources::new()).unwrap();
}

/// Lowers the last stable rank of the Gaussian embedder, so that its curve falls and a claim fails.
fn falls(row: &mut Row) {
    if row.method == "Gaussian" && row.metric == "stable_rank" && row.x == Some(64.0) {
        row.value = 0.5;
    }
}

/// Catches false differences between two runs of one definition, such as times and the order of rows, a changed verdict that is not
/// printed first or not in the exit status, numbers that are missing after it, and sources without records that end in a panic, in success,
/// or in a message without a remedy.
#[test]
fn only_changes_are_listed_and_a_changed_claim_comes_first() {
    let repository = Repository::with_experiment(EXPERIMENT);
    for out in ["out", "b"] {
        repository.ok(&["reproduce", "--out", out]);
    }
    assert_eq!(repository.ok(&["diff", "out/record", "b"]).stdout, "no difference\n");
    // Times are compared only with `--times`.
    let delayed = |row: &mut Row| row.value += if row.metric == "time" { 9.0 } else { 0.0 };
    edited(&repository, "out/record", "slow", delayed);
    assert_eq!(repository.ok(&["diff", "out", "slow"]).stdout, "no difference\n");
    repository
        .ok(&["diff", "out", "slow", "--times"])
        .prints(&["numbers that differ significantly", " time"]);

    edited(&repository, "out/record", "edited", falls);
    let run = repository.run(&["diff", "out/record", "edited"]).ends_with(1);
    let changed = "claims that changed: 1\n  extensions/mexican-hat rises: reproduced → not reproduced\n    before: Gaussian:";
    assert!(run.stdout.starts_with(changed), "{}", run.stdout);
    let numbers = "\nnumbers that differ significantly: 1\n  extensions/mexican-hat rank/Gaussian stable_rank: 1 of 3 points; largest \
                   difference at x = 64:";
    run.prints(&["\n    after: Gaussian:", numbers]);
    // The claim reads only the Gaussian embedder, and nothing else changed.
    let run = repository.ok(&["diff", "out/record", "edited", "extensions/mexican-hat/rank/RFF"]);
    assert_eq!(run.stdout, "no difference\n");

    for name in ["HEAD", "no-such", "experiments", "report/record", ""] {
        let needles = ["has no records", "out/record", "git worktree add"];
        repository.fails(&["diff", name, "out"], &needles).ends_with(2);
    }
    std::fs::write(record(&repository, "edited").join("values.csv"), "unit,metric\n1\n").unwrap();
    repository.fails(&["diff", "edited", "out"], &["mexican-hat/values.csv"]).ends_with(2);
}

/// Catches noise over signals that is listed, a shift of all signals that is not, changed parameters that are ignored, and entries
/// of only one record that are not listed.
#[test]
fn differences_are_compared_with_their_noise() {
    let repository = Repository::with_experiment(EXPERIMENT);
    repository.ok(&["reproduce", "extensions/mexican-hat/images"]);
    let is_psnr = |row: &Row| row.metric == "test_psnr" && row.method == "Mexican hat";
    let mut sign = 1.0;
    edited(&repository, "out/record", "noisy", |row| {
        if is_psnr(row) {
            row.value += 0.3 * sign;
            sign = -sign;
        }
    });
    let run = repository.ok(&["diff", "out/record", "noisy"]);
    assert_eq!(run.stdout, "no difference\n");
    edited(&repository, "noisy", "shifted", |row| {
        if is_psnr(row) {
            row.value -= 3.0;
            row.data = "div2k-test".into();
        }
    });
    let run = repository.ok(&["diff", "out/record", "shifted"]);
    let expected = "numbers that differ significantly: 1\n  extensions/mexican-hat images/Mexican hat test_psnr: ";
    assert!(run.stdout.starts_with(expected), "{}", run.stdout);
    run.prints(&[", 3 pairs)", "parameters that differ: 1\n  data embedded:"]);
    assert!(!run.stdout.contains("only in"), "{}", run.stdout);

    repository.ok(&["reproduce", RANK]);
    let run = repository.run(&["diff", "noisy", "out/record"]).ends_with(1);
    run.prints(&["rises: not run → reproduced"]);
    let only = "only in one record: 1\n  only in out/record: extensions/mexican-hat/rank\n";
    assert!(run.stdout.ends_with(only), "{}", run.stdout);
}

/// Runs `verify --from` with these arguments, which must end with this status and print these texts.
#[track_caller]
fn verify(repository: &Repository, arguments: &[&str], status: i32, texts: &[&str]) -> Run {
    let run = repository.run(&[&["verify", "--from"], arguments].concat()).ends_with(status);
    run.prints(texts);
    run
}

const EQUAL: &str = " values, bitwise equal\n";

/// A group whose data files are missing.
const ABSENT: &str = "  - id: boxes
    data: { set: rico-semantics }
    protocol: { kind: box-positions }
    variants: [{ id: all }]
";

/// Catches a sample that leaves out a protocol, and methods without data that stop the command or are skipped silently.
#[test]
fn a_sample_of_units_is_repeated() {
    let repository = Repository::with_experiment(EXPERIMENT);
    repository.ok(&["reproduce", "--profile", "smoke"]);
    for jobs in ["1", "2"] {
        // One of each protocol.
        let both = ["extensions/mexican-hat: 2 units, ", EQUAL];
        verify(&repository, &["out", "--sample", "2", "--jobs", jobs], 0, &both)
            .says(&["2 of 6 recorded units are repeated"]);
    }
    // The record also has a group whose data are gone.
    let text = EXPERIMENT.replace("claims:\n", &format!("{ABSENT}claims:\n"));
    repository.write(DEFINITION, &text);
    edited(&repository, "out/record", "other", |row| {
        if row.method == "RFF" {
            (row.group, row.method) = ("boxes".into(), "all".into());
        }
    });
    let folder = record(&repository, "other");
    let (table, mut provenance) = ItemRecord::read_tables(&folder).unwrap().unwrap();
    let origin = provenance.origins.remove("rank/RFF").unwrap();
    provenance.origins.insert("boxes/all".to_owned(), origin);
    ItemRecord::write(&folder, &table, &provenance, &Sources::new()).unwrap();
    let skipped = "skipped: extensions/mexican-hat/boxes/all: rico-semantics";
    verify(&repository, &["other", "--all"], 0, &[skipped, EQUAL]);
}

/// Catches a repetition with another profile or seed than the record's, a changed bit that is accepted, and changed definitions or data
/// that run anyway or do not count.
#[test]
fn a_record_is_repeated_as_it_was_made() {
    let repository = Repository::with_experiment(EXPERIMENT);
    repository.ok(&["reproduce", "--profile", "smoke", "--seed", "3"]);
    let all = ["out/record", "--all"];
    verify(&repository, &all, 0, &["extensions/mexican-hat: 6 units, ", EQUAL])
        .says(&["6 of 6 recorded units are repeated"]);

    // Flips the last bit of a random result; then a value that only one side has; then other data.
    let is_rank = |row: &Row| row.method == "RFF" && row.metric == "stable_rank";
    edited(&repository, "out/record", "other", |row| {
        if is_rank(row) {
            row.value = f64::from_bits(row.value.to_bits() ^ 1);
        }
    });
    let flipped = ["1 of ", "rank/RFF stable_rank seed 0 at x = 4 is ", "same kind of processor"];
    verify(&repository, &["other", "--all"], 1, &flipped);
    edited(&repository, "out/record", "other", |row| {
        if is_rank(row) {
            row.metric = "rank".into();
        }
    });
    let lost = "1 values of the record were not measured again; 1 values are not on record";
    verify(&repository, &["other", "--all"], 1, &[lost]);
    edited(&repository, "out/record", "other", |row| {
        if row.method == "Mexican hat" {
            row.data = "div2k-test".into();
        }
    });
    let skipped = "images/Mexican hat: data div2k-test on record, embedded:";
    verify(&repository, &["other", "--all"], 0, &[skipped]);

    // Older records lack specifications.
    let folder = record(&repository, "out/record");
    let (table, whole) = ItemRecord::read_tables(&folder).unwrap().unwrap();
    let write = |provenance: &Provenance| {
        ItemRecord::write(&folder, &table, provenance, &Sources::new()).unwrap();
    };
    write(&Provenance { origins: Default::default(), ..whole.clone() });
    verify(&repository, &all, 0, &[EQUAL]);
    write(&whole);

    let rff = "extensions/mexican-hat/rank/RFF";
    repository.write(DEFINITION, &EXPERIMENT.replace("sigma: 5", "sigma: 6"));
    let changed =
        format!("changed: {rff}: definition, revision or data differ (record → here): embedder");
    verify(&repository, &all, 1, &[&changed]);
    // Nothing of the selection can be repeated.
    verify(&repository, &["out/record", "--all", rff], 1, &["changed: "]);
    let run = verify(&repository, &["out/record", rff], 2, &[]);
    assert!(!run.stderr.contains("--from"), "{}", run.stderr);
    // What did not change can still be repeated.
    verify(&repository, &["out/record", "extensions/mexican-hat/*/Gau*"], 0, &[EQUAL]);
    // A removed method does not count as bitwise equal.
    repository.write(DEFINITION, &EXPERIMENT.replace("RFF", "Fourier"));
    verify(&repository, &all, 1, &[&format!("changed: {rff}: not defined here")]);
    verify(&repository, &["out/record", "extensions/mexican-hat/rank/Gaussian"], 0, &[EQUAL]);
    repository.fails(&["verify", "--from", "nowhere"], &["nowhere"]);
}

/// Catches a reference of two runs whose methods are repeated with one seed and profile.
#[test]
fn a_reference_of_several_runs_is_repeated_run_by_run() {
    let repository = Repository::with_experiment(EXPERIMENT);
    for (method, options) in [("RFF", ["--seed", "7"]), ("Gaussian", ["--profile", "smoke"])] {
        let method = format!("{RANK}/{method}");
        repository
            .ok(&[&["reproduce", &method, "--out", &method, "--record"], &options[..]].concat());
    }
    let file = record(&repository, "report/record").join("provenance.json");
    let origins = Provenance::read(&file).unwrap().origins;
    let seeds: Vec<(&str, u64)> = origins.iter().map(|(k, o)| (k.as_str(), o.seed)).collect();
    assert_eq!(seeds, [("rank/Gaussian", 0), ("rank/RFF", 7)]);
    repository.ok(&["verify"]).prints(&["extensions/mexican-hat: 2 units, ", EQUAL]);
}
