//! Units that fail, do not fit into a budget or cannot be written: the real binary, real files.

use crate::common;

use std::path::Path;
use std::process::Command;

use common::{EXPERIMENT, RANK, Repository, begun, experiment, wait, with_a_failing_unit};
use posenc_experiments::record::UnitRecord;
use posenc_files::testing::{Need, skip};

/// A training of hours that checks for a stop after every epoch.
const LONG: &str = "  - id: long
    protocol: { kind: network-1d, lines: { rows: [5] }, learning_rate: 1e-3, epochs: 100000000 }
    variants: [{ id: Gaussian, embedder: { kind: gaussian, dimension: 400, sigma: 0.1 } }]
";

/// Catches a failed unit that is not named, counts as done, ends the others or does not run again.
#[test]
fn a_failed_unit_is_named_and_runs_again() {
    let text = with_a_failing_unit();
    let repository = Repository::with_experiment(&text);
    let smoke = ["reproduce", "--profile", "smoke"];
    let failed = "failed: extensions/mexican-hat/rank/RFF";
    let needles = [failed, "sigma = 1000000", "run the same command again"];
    repository.run(&smoke).ends_with(1).says(&needles);
    assert_eq!(repository.raw("out").len(), 5);
    repository.run(&smoke).ends_with(1).says(&["1 of 6 units to run"]);

    let file = "experiments/extensions/01-mexican-hat.yaml";
    repository.write(file, &text.replace("values: [5, 1000000]", "values: [5, 1]"));
    repository.ok(&smoke);
}

/// Catches a unit that fails on the user's images and ends the others, and a group that needs more images than exist and ends the run
/// instead of being skipped with a message.
#[test]
fn a_failure_on_the_users_images_ends_no_other_unit() {
    let on_images = "  - id: own
    data: { set: div2k-test }
    protocol: { kind: network-nd, side: 100, epochs: 1, learning_rate: 0.01 }
    variants: [{ id: Gau, embedder: { kind: gaussian, dimension: 16, sigma: 0.1 } }]
  - id: tenth
    data: { set: div2k-test, pick: [9] }
    protocol: { kind: closed-form, step: 64 }
    variants: [{ id: Gau, embedder: { kind: gaussian, dimension: 16, sigma: 0.1 } }]
";
    let repository = Repository::with_experiment(&experiment(&format!("{on_images}{RANK}")));
    repository.picture("photos/one.png", 512);
    let left_out = "not run: extensions/mexican-hat/tenth: needs at least 10 signals of `div2k-test`, and user:photos has 1";
    let run = repository.run(&["reproduce", "--images", "div2k-test=photos"]);
    run.ends_with(1).says(&[left_out]);
    assert_eq!(repository.raw("out").len(), 2);
}

/// Catches a budget that is exceeded or starts nothing, a training of unknown time that comes first or loses its progress, and remaining
/// units that are not reported.
#[test]
fn a_budget_runs_the_units_that_fit_and_counts_the_rest() {
    let repository = Repository::with_experiment(&experiment(&format!("{LONG}{RANK}")));
    let run = repository.ok(&["reproduce", "--verbose", "--budget", "3s", "--jobs", "1"]);
    let paths: Vec<&str> = begun(&run.stderr).map(|(path, _)| path).collect();
    let groups = paths.iter().map(|path| path.split('/').nth(2).unwrap()).collect::<Vec<_>>();
    assert_eq!(groups, ["rank", "rank", "long"], "{}", run.stderr);
    assert_eq!(repository.raw("out").len(), 2, "{}", run.stderr);
    run.says(&["1 unit left (time unknown); "]);
    assert_eq!(repository.checkpoints("out"), 1, "progress is lost");
    run.says(&["to continue: cargo xtask reproduce --verbose --budget 3s --jobs 1"]);
    for text in ["2 hours", "0s", ""] {
        repository.fails(&["reproduce", "--budget", text], &["1h30m"]);
    }
}

/// Catches a record that is trusted although it is truncated or changed at any byte, and one that runs again without a warning.
#[test]
fn a_damaged_record_is_run_again_with_a_warning() {
    let repository = Repository::with_experiment(EXPERIMENT);
    let run = ["reproduce", "--profile", "smoke"];
    repository.ok(&run);
    let (files, rows) = (repository.raw("out"), repository.rows("out"));
    let whole = std::fs::read(&files[0]).unwrap();
    let record = UnitRecord::read(&files[0]).unwrap();
    for place in 0..whole.len() {
        let mut changed = whole.clone();
        changed[place] ^= 1;
        for damaged in [&whole[..place], &changed] {
            std::fs::write(&files[0], damaged).unwrap();
            // A last digit may change without changing the number.
            let read = UnitRecord::read(&files[0]);
            assert!(read.is_err() || read.is_ok_and(|read| read == record), "byte {place}");
        }
    }
    for (place, file) in files.iter().enumerate() {
        let mut bytes = std::fs::read(file).unwrap();
        let half = bytes.len() / 2;
        if place % 2 == 0 {
            bytes[half] ^= 1
        } else {
            bytes.truncate(half)
        }
        std::fs::write(file, bytes).unwrap();
    }
    let again = repository.ok(&run);
    assert_eq!(again.stderr.matches("running it again").count(), 6, "{}", again.stderr);
    again.says(&["6 of 6 units to run"]);
    assert_eq!(repository.rows("out"), rows);
}

/// Catches a process that is killed by a file size limit, and an error that names neither the file nor the size. Complete files
/// stay, and the next run continues.
#[cfg(unix)]
#[test]
fn a_limit_on_files_is_an_error_that_names_the_file() {
    let repository = Repository::with_experiment(EXPERIMENT);
    let smoke = ["reproduce", "--profile", "smoke"];
    let run = repository.run_after("ulimit -f 1", &smoke);
    assert!([1, 2].contains(&run.code), "{}: {}", run.code, run.stderr);
    run.says(&[".json cannot be written", "bytes are needed"]);
    let run = repository.ok(&smoke);
    // Records of a few numbers are below the limit.
    run.says(&[" of 6 units to run"]);
    assert!(!run.stderr.contains(" 0 of 6 units to run"), "{}", run.stderr);
}

/// A small file system, unmounted on drop.
struct Small<'a>(&'a Path);

impl Drop for Small<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

/// Catches records that a full disk destroys, and units that run although nothing can be written.
#[cfg(unix)]
#[test]
fn a_full_disk_is_named_and_costs_no_record() {
    let repository = Repository::with_experiment(EXPERIMENT);
    let folder = repository.path().join("small");
    std::fs::create_dir(&folder).unwrap();
    let mount = ["-t", "tmpfs", "-o", "size=24k", "tmpfs"];
    let mounted = Command::new("mount").args(mount).arg(&folder).output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        skip(Need::Mount, "no file system may be mounted here");
        return;
    }
    let small = Small(&folder);
    let run = repository.run(&["reproduce", "--jobs", "1", "--out", "small"]);
    assert!(matches!(run.code, 1 | 2), "{}: {}", run.code, run.stderr);
    run.says(&["No space left on device", "bytes are needed, so free some disk space"]);
    let kept = repository.raw("small");
    assert!(!kept.is_empty() && kept.len() < 12, "{} records", kept.len());
    let larger =
        Command::new("mount").args(["-o", "remount,size=64m"]).arg(&folder).status().unwrap();
    assert!(larger.success());
    let again = repository.ok(&["reproduce", "--out", "small"]);
    assert!(again.stderr.contains(&format!("{} on record", kept.len())), "{}", again.stderr);
    repository.ok(&["reproduce", "--out", "whole"]);
    assert_eq!(repository.rows("small"), repository.rows("whole"));
    drop(small);
}

/// Catches two processes that write into one directory, an error that does not name the owner, and lost records.
#[test]
fn a_second_process_names_the_owner_of_the_directory() {
    // Large images, so that the first process still runs when the second one starts.
    let large = EXPERIMENT.replace(", side: 64", "").replace("dimension: 64", "dimension: 256");
    let repository = Repository::with_experiment(&large);
    let mut first = repository.start(&["reproduce", "--jobs", "1"]);
    let lock = repository.path().join("out/.lock");
    wait("lock", || std::fs::read_to_string(&lock).is_ok_and(|owner| !owner.is_empty()));
    let owner = format!("process {}", first.id());
    repository.fails(&["reproduce"], &["another reproduce is running", &owner, "--out"]);
    assert!(first.wait().unwrap().success());
    assert_eq!(repository.raw("out").len(), 12);
    repository.ok(&["reproduce"]).says(&["0 of 12 units to run"]);
}
