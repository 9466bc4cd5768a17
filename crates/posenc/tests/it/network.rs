//! `network-1d` end to end: the real binary, real records.

use crate::common;

use common::Repository;

/// An experiment with one group.
fn experiment(group: &str) -> String {
    common::experiment(&format!("  - id: lines\n{group}"))
}

fn fields(rows: &[String], metric: &str) -> Vec<Vec<String>> {
    rows.iter()
        .map(|r| r.split(',').map(str::to_owned).collect::<Vec<_>>())
        .filter(|f| f[6] == metric)
        .collect()
}

/// Catches a killed training that starts over, that ends with other numbers than an uninterrupted
/// one, or that leaves its checkpoint behind.
#[test]
fn a_killed_training_resumes_with_the_same_bits() {
    let repository = Repository::with_experiment(&experiment(
        r#"
    protocol:
      kind: network-1d
      lines: { rows: [5, 6, 7] }
      learning_rate: 1e-3
      epochs: 3000
      repeats: 2
      sweep: { parameter: sigma, values: [0.05, 0.2] }
    variants:
      - { id: Gaussian, embedder: { kind: gaussian, dimension: 2000, sigma: 0.1 } }
"#,
    ));
    repository.kill_at_checkpoint("killed");
    assert!(repository.raw("killed").is_empty(), "the unit had ended");

    let resumed = repository.ok(&["reproduce", "--out", "killed"]);
    assert!(resumed.stderr.contains("resumes where it was interrupted"), "{}", resumed.stderr);
    assert_eq!(repository.checkpoints("killed"), 0, "a checkpoint is left");
    let whole = repository.ok(&["reproduce", "--out", "whole"]);
    assert!(!whole.stderr.contains("resumes"), "{}", whole.stderr);
    assert_eq!(repository.checkpoints("whole"), 0);
    let rows = repository.rows("whole");
    assert_eq!(fields(&rows, "test_psnr").len(), 12);
    assert_eq!(repository.rows("killed"), rows);
}

/// Catches results of an image that depend on other images of the run, results of the shared embedding that are repeated for each
/// image, and signals without distinct names.
#[test]
fn images_added_later_change_nothing() {
    let repository = Repository::with_experiment(&experiment(
        r#"
    data: { set: div2k-test }
    protocol:
      kind: network-1d
      lines: { rows: [3], random: 1 }
      learning_rate: 1e-2
      epochs: 20
      repeats: 2
      mean_of_last: 5
    variants:
      - { id: Linear, embedder: { kind: rff, dimension: 64, sigma: 5 } }
      - { id: Deep, embedder: { kind: rff, dimension: 64, sigma: 5 }, settings: { depth: 2, width: 16 } }
    profiles:
      smoke: { reduced: 1 image, signals: 1 }
      quick: { reduced: 3 images, signals: 3 }
"#,
    ));
    repository.ok(&["reproduce", "--profile", "smoke", "--out", "grown"]);
    let smoke = repository.rows("grown");
    repository.ok(&["reproduce", "--out", "grown"]);
    let run = repository.ok(&["reproduce", "--jobs", "1", "--out", "at-once"]);
    assert!(run.stderr.contains("6 of 6 units to run"), "{}", run.stderr);
    let rows = repository.rows("grown");
    assert_eq!(rows, repository.rows("at-once"));

    // 3 images, 3 lines, 2 repeats, 2 variants.
    let tests = fields(&rows, "test_psnr");
    assert_eq!(tests.len(), 36);
    let mut runs: Vec<_> = tests.iter().map(|f| (&f[3], &f[4], &f[5])).collect();
    runs.sort_unstable();
    runs.dedup();
    assert_eq!(runs.len(), 36, "two runs under one name and seed");
    let mut names: Vec<&str> = tests.iter().map(|f| f[4].as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 9, "{names:?}");
    assert_eq!(names.iter().filter(|n| n.ends_with(" row 3")).count(), 3, "{names:?}");
    assert!(names.iter().any(|n| n.contains(" column ")), "{names:?}");
    let ranks = fields(&rows, "stable_rank");
    assert_eq!(ranks.len(), 2, "{ranks:?}");
    assert!(ranks.iter().all(|f| f[4] == "-"));
    assert_eq!(fields(&rows, "params").len(), 2);
    // The runs of the smaller profile belong to the larger one, and have its name.
    for row in &smoke {
        assert!(rows.contains(&row.replace(",smoke,", ",quick,")), "{row}");
    }
    let provenance = repository.read("grown/record/extensions/mexican-hat/provenance.json");
    if cfg!(target_os = "linux") {
        assert!(provenance.contains("\"peak_memory\""), "{provenance}");
    }
}

/// Catches a unit that fails because all its runs diverge, and a failure that is not named.
#[test]
fn divergence_is_recorded_and_a_missing_row_is_named() {
    let text = experiment(
        r#"
    protocol:
      kind: network-1d
      lines: { rows: [3] }
      learning_rate: 1000
      epochs: 40
      depth: 8
      width: 16
      curve_every: 10
    variants:
      - { id: Deep, embedder: { kind: rff, dimension: 16, sigma: 5 } }
"#,
    );
    let repository = Repository::with_experiment(&text);
    repository.ok(&["reproduce"]);
    let rows = repository.rows("out");
    assert_eq!(fields(&rows, "diverged_epoch").len(), 1);
    assert_eq!(fields(&rows, "test_psnr")[0][9], "NaN");
    assert!(std::fs::read_to_string(&repository.raw("out")[0]).unwrap().contains("diverged"));

    let file = "experiments/extensions/01-mexican-hat.yaml";
    repository.write(file, &text.replace("rows: [3]", "rows: [512]"));
    repository.fails(&["reproduce"], &["extensions/mexican-hat/lines/Deep", "row 512"]);
}
