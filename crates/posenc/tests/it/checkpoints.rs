//! Which units a checkpoint belongs to, and which checkpoints are removed: the real binary, real files.

use crate::common;

use std::path::PathBuf;

use common::{Repository, Run, finished};

/// A joint training of four images, and a group without training.
fn experiment(sigma: &str, epochs: usize) -> String {
    format!(
        "paper: extensions
item: mexican-hat
kind: extra
title: A test
shows: A test
groups:
  - id: lines
    data: {{ set: embedded-images }}
    protocol: {{ kind: network-1d, lines: {{ rows: [3] }}, learning_rate: 1e-3, epochs: {epochs}, repeats: 2 }}
    variants: [{{ id: v, embedder: {{ kind: gaussian, dimension: 1024, sigma: {sigma} }} }}]
    profiles: {{ smoke: {{ reduced: a test, signals: 2 }} }}
  - id: rank
    protocol: {{ kind: stable-rank, samples: [4, 16] }}
    variants: [{{ id: v, embedder: {{ kind: gaussian, dimension: 128, sigma: 0.02 }} }}]
"
    )
}

const RANK: &str = "extensions/mexican-hat/rank";
// Long enough that half of the images train past the first checkpoint (0.5 s) on a fast machine.
const EPOCHS: usize = 20_000;

/// Training steps of each unit of `lines` that a run with `--verbose` wrote.
fn steps(run: &Run) -> Vec<u64> {
    let of_lines = finished(&run.stderr).filter(|(name, _)| name.contains("/lines/"));
    of_lines.map(|(_, steps)| steps).collect()
}

/// The only checkpoint below `out`.
fn checkpoint(repository: &Repository) -> PathBuf {
    let files = repository.checkpoint_files("out");
    assert_eq!(files.len(), 1, "{files:?}");
    files.into_iter().next().unwrap()
}

/// The record of a unit of `lines`.
fn record(repository: &Repository, out: &str, image: usize) -> PathBuf {
    let files = repository.raw(out);
    let wanted = format!("dead-leaves-{image:02}");
    let is_its = |file: &&PathBuf| {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        name.starts_with("lines") && name.contains(&wanted)
    };
    files.iter().find(is_its).unwrap_or_else(|| panic!("{wanted} in {files:?}")).clone()
}

/// Catches a training that starts over because one of its records could not be written, records that are written twice, and a
/// checkpoint that remains.
#[test]
fn an_error_between_the_records_of_a_training_costs_no_step() {
    let repository = Repository::with_experiment(&experiment("0.1", EPOCHS));
    let whole = repository.ok(&["reproduce", "--out", "whole", "--verbose"]);
    assert_eq!(steps(&whole), [EPOCHS as u64, 0, 0, 0]);
    // A folder in the way of the third record.
    let third = record(&repository, "whole", 2);
    let place = repository.path().join("out/raw/extensions/mexican-hat");
    let blocked = place.join(third.file_name().unwrap());
    std::fs::create_dir_all(&blocked).unwrap();
    let run = repository.run(&["reproduce"]);
    assert!(run.code == 1 && run.stderr.contains("cannot be written"), "{}", run.stderr);
    let first = record(&repository, "out", 0);
    let before = std::fs::read(&first).unwrap();
    checkpoint(&repository);
    std::fs::remove_dir(&blocked).unwrap();
    let again = repository.ok(&["reproduce", "--verbose"]);
    assert!(again.stderr.contains("2 of 5 units to run, 3 on record"), "{}", again.stderr);
    assert_eq!(steps(&again), [0, 0], "{}", again.stderr);
    assert_eq!(std::fs::read(first).unwrap(), before, "a record was written again");
    assert_eq!(repository.rows("out"), repository.rows("whole"));
    assert_eq!(repository.checkpoints("out"), 0);
}

/// Catches a checkpoint that resumes other units than those it was written for: after a smaller profile, or after the loss of a
/// record.
#[test]
fn a_checkpoint_belongs_to_its_own_units() {
    let repository = Repository::with_experiment(&experiment("0.1", EPOCHS));
    repository.ok(&["reproduce", "--out", "whole"]);
    // Two of the four units have records when the others are trained, so the training has only two units.
    repository.ok(&["reproduce", "--profile", "smoke"]);
    let wait = || repository.kill_at_checkpoint("out");
    wait();
    let more = repository.ok(&["reproduce", "--verbose"]);
    assert!(more.stderr.contains("2 of 5 units to run"), "{}", more.stderr);
    assert!(more.stderr.contains("resumes where it was interrupted"), "{}", more.stderr);
    assert!(steps(&more)[0] < EPOCHS as u64, "{}", more.stderr);
    assert_eq!(repository.rows("out"), repository.rows("whole"));

    // Another record is lost while a checkpoint for the missing two exists: all missing units are trained again.
    for image in [2, 3] {
        std::fs::remove_file(record(&repository, "out", image)).unwrap();
    }
    wait();
    std::fs::remove_file(record(&repository, "out", 0)).unwrap();
    let anew = repository.ok(&["reproduce", "--verbose"]);
    assert!(anew.stderr.contains("belongs to other units of the job"), "{}", anew.stderr);
    assert_eq!(steps(&anew), [EPOCHS as u64, 0, 0]);
    assert_eq!(repository.rows("out"), repository.rows("whole"));
    assert_eq!(repository.checkpoints("out"), 0);
}

/// Catches a checkpoint that is removed although another run resumes from it (another profile, group or seed), and one that remains
/// although no run can: its job changed, or all its records exist.
#[test]
fn checkpoints_that_no_run_resumes_from_are_removed() {
    let text = experiment("0.1", 200_000);
    let repository = Repository::with_experiment(&text);
    repository.kill_at_checkpoint("out");
    let file = checkpoint(&repository);
    for more in [&[][..], &["--profile", "smoke"], &["--seed", "1"], &["--force"]] {
        repository.ok(&[&["reproduce", RANK], more].concat());
        assert_eq!(checkpoint(&repository), file, "{more:?}");
    }
    // Other files are left alone, wherever they are.
    let root = repository.path().join("out/checkpoints");
    let others = ["notes.bin", "a/b/notes.bin", "a/README"].map(|name| root.join(name));
    for other in &others {
        std::fs::create_dir_all(other.parent().unwrap()).unwrap();
        std::fs::write(other, "mine").unwrap();
    }
    let yaml = "experiments/extensions/01-mexican-hat.yaml";
    repository.write(yaml, &experiment("0.2", 200_000));
    let run = repository.ok(&["reproduce", RANK]);
    let named = format!("removed: {}: no run resumes from this checkpoint", file.display());
    assert!(run.stderr.contains(&named), "{}", run.stderr);
    assert!(!file.exists() && others.iter().all(|other| other.exists()));
    others.iter().for_each(|other| std::fs::remove_file(other).unwrap());

    // Killed after the last record and before its checkpoint was removed.
    repository.write(yaml, &experiment("0.1", EPOCHS));
    repository.kill_at_checkpoint("out");
    let file = checkpoint(&repository);
    let bytes = std::fs::read(&file).unwrap();
    repository.ok(&["reproduce"]);
    std::fs::write(&file, bytes).unwrap();
    let run = repository.ok(&["reproduce", RANK]);
    assert!(!file.exists(), "{}", run.stderr);
}

/// Catches checkpoints of other versions that are never removed, or removed without a word.
#[test]
fn checkpoints_of_other_versions_are_removed() {
    let repository = Repository::with_experiment(&experiment("0.1", EPOCHS));
    repository.kill_at_checkpoint("out");
    let (file, root) = (checkpoint(&repository), repository.path().join("out/checkpoints"));
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[11] = b'0';
    std::fs::write(&file, bytes).unwrap();
    let orphan = root.join(format!("{}.bin", "0123456789abcdef".repeat(4)));
    std::fs::write(&orphan, "posenc-job-0, of a job that is no more").unwrap();
    let run = repository.ok(&["reproduce", RANK]);
    assert!(!file.exists() && !orphan.exists(), "{}", run.stderr);
    let removed = run.stderr.matches("no run resumes from this checkpoint").count();
    assert_eq!(removed, 2, "{}", run.stderr);
}

/// Catches a training that is lost because its file has an error for a while, or because a run does not include its folder.
#[test]
fn checkpoints_of_absent_experiments_are_kept() {
    let repository = Repository::with_experiment(&experiment("0.1", EPOCHS));
    repository.kill_at_checkpoint("out");
    let file = checkpoint(&repository);
    let (path, text) = ("experiments/extensions/01-mexican-hat.yaml", experiment("0.1", EPOCHS));
    let other = text.replace("item: mexican-hat", "item: auto-width-network");
    repository.write("experiments/extensions/09-auto-width-network.yaml", &other);
    repository.write(path, "groups: [");
    let rank = &RANK.replace("mexican-hat", "auto-width-network");
    assert_eq!(repository.run(&["reproduce", rank]).code, 1);
    assert!(file.exists());
    repository.write(path, &text);
    let included = file.parent().unwrap().parent().unwrap().with_file_name("mine/item");
    std::fs::create_dir_all(&included).unwrap();
    let copy = included.join(file.file_name().unwrap());
    std::fs::copy(&file, &copy).unwrap();
    repository.ok(&["reproduce", rank]);
    assert!(file.exists() && copy.exists());
}
