//! Which units a checkpoint belongs to: the real binary, real files.

use crate::common;

use std::path::PathBuf;

use common::{Repository, Run, finished};

/// A joint training of four images, and a group without training.
fn experiment(epochs: usize) -> String {
    common::experiment(&format!(
        "  - id: lines
    data: {{ set: embedded-images }}
    protocol: {{ kind: network-1d, lines: {{ rows: [3] }}, learning_rate: 1e-3, epochs: {epochs}, repeats: 2 }}
    variants: [{{ id: v, embedder: {{ kind: gaussian, dimension: 1024, sigma: 0.1 }} }}]
    profiles: {{ smoke: {{ reduced: a test, signals: 2 }} }}
  - id: rank
    protocol: {{ kind: stable-rank, samples: [4, 16] }}
    variants: [{{ id: v, embedder: {{ kind: gaussian, dimension: 128, sigma: 0.02 }} }}]
"
    ))
}

// Long enough that half of the images train past the first checkpoint (0.5 s) on a fast machine.
const EPOCHS: usize = 12_000;

/// Training steps of each unit of `lines` that a run with `--verbose` wrote.
fn steps(run: &Run) -> Vec<u64> {
    let of_lines = finished(&run.stderr).filter(|(name, _)| name.contains("/lines/"));
    of_lines.map(|(_, steps)| steps).collect()
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
    let epochs = 2_000;
    let repository = Repository::with_experiment(&experiment(epochs));
    let whole = repository.ok(&["reproduce", "--out", "whole", "--verbose"]);
    assert_eq!(steps(&whole), [epochs as u64, 0, 0, 0]);
    // A folder in the way of the third record.
    let third = record(&repository, "whole", 2);
    let place = repository.path().join("out/raw/extensions/mexican-hat");
    let blocked = place.join(third.file_name().unwrap());
    std::fs::create_dir_all(&blocked).unwrap();
    repository.run(&["reproduce"]).ends_with(1).says(&["cannot be written"]);
    let first = record(&repository, "out", 0);
    let before = std::fs::read(&first).unwrap();
    assert_eq!(repository.checkpoints("out"), 1);
    std::fs::remove_dir(&blocked).unwrap();
    let again = repository.ok(&["reproduce", "--verbose"]);
    again.says(&["2 of 5 units to run, 3 on record"]);
    assert_eq!(steps(&again), [0, 0], "{}", again.stderr);
    assert_eq!(std::fs::read(first).unwrap(), before, "a record was written again");
    assert_eq!(repository.rows("out"), repository.rows("whole"));
    assert_eq!(repository.checkpoints("out"), 0);
}

/// Catches a checkpoint that resumes other units than those it was written for: after a smaller profile, or after the loss of a
/// record.
#[test]
fn a_checkpoint_belongs_to_its_own_units() {
    let repository = Repository::with_experiment(&experiment(EPOCHS));
    repository.ok(&["reproduce", "--out", "whole"]);
    // Two of the four units have records when the others are trained, so the training has only two units.
    repository.ok(&["reproduce", "--profile", "smoke"]);
    let wait = || repository.kill_at_checkpoint("cpu", "out");
    wait();
    let more = repository.ok(&["reproduce", "--verbose"]);
    more.says(&["2 of 5 units to run", "resumes where it was interrupted"]);
    assert!(steps(&more)[0] < EPOCHS as u64, "{}", more.stderr);
    assert_eq!(repository.rows("out"), repository.rows("whole"));

    // Another record is lost while a checkpoint for the missing two exists: all missing units are trained again.
    for image in [2, 3] {
        std::fs::remove_file(record(&repository, "out", image)).unwrap();
    }
    wait();
    std::fs::remove_file(record(&repository, "out", 0)).unwrap();
    let anew = repository.ok(&["reproduce", "--verbose"]);
    anew.says(&["belongs to other units of the job"]);
    assert_eq!(steps(&anew), [EPOCHS as u64, 0, 0]);
    assert_eq!(repository.rows("out"), repository.rows("whole"));
    assert_eq!(repository.checkpoints("out"), 0);
}
