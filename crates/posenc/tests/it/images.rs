//! `network-nd` and the closed form at random positions, end to end: the real binary, generated data.

use crate::common;

use std::collections::BTreeSet;

use common::{Repository, experiment};

fn values(rows: &[String], group: &str, metric: &str) -> Vec<f64> {
    common::values(rows, [group, "", metric])
}

/// Catches encodings that do not learn, results that depend on the number of workers or on images that are added later, results of a
/// shared embedding that are repeated for each image, signals without distinct names, and wrong parameter counts.
#[test]
fn images_are_fitted_by_simple_and_complex_encodings() {
    let repository = Repository::with_experiment(include_str!("images.yaml"));
    repository.ok(&["reproduce", "--profile", "smoke", "--out", "grown"]);
    let smoke = repository.rows("grown");
    repository.ok(&["reproduce", "--out", "grown"]);
    repository.ok(&["reproduce", "--jobs", "1", "--out", "alone"]);
    let rows = repository.rows("grown");
    assert_eq!(rows, repository.rows("alone"));
    // The runs of the smaller profile belong to the larger one, and have its name.
    for row in &smoke {
        assert!(rows.contains(&row.replace(",smoke,", ",quick,")), "{row}");
    }
    // Two images, three lines, two repeats, two variants, each with a name or seed of its own.
    let cells = rows.iter().map(|row| row.split(',').collect::<Vec<_>>());
    let runs: BTreeSet<[&str; 3]> = cells
        .filter(|cells| cells[2] == "lines" && cells[6] == "test_psnr")
        .map(|cells| [cells[3], cells[4], cells[5]])
        .collect();
    let names: BTreeSet<&str> = runs.iter().map(|run| run[1]).collect();
    assert!(runs.len() == 24 && names.len() == 6, "{runs:?}");
    assert_eq!(names.iter().filter(|n| n.ends_with(" row 3")).count(), 2, "{names:?}");
    // Results of the shared embedding are not repeated for each image.
    for metric in ["stable_rank", "params"] {
        assert_eq!(values(&rows, "lines", metric).len(), 2, "{metric}");
    }
    for group in ["simple", "complex", "residual", "random", "deep", "least-squares"] {
        let (train, test) = (values(&rows, group, "train_psnr"), values(&rows, group, "test_psnr"));
        assert_eq!(train.len(), if group == "simple" { 4 } else { 2 }, "{group}");
        // The mean color of an image has a PSNR of about 12 dB.
        assert!(train.iter().all(|&p| p > 15.0), "{group}: {train:?}");
        assert!(test.iter().all(|&p| p > 13.0), "{group}: {test:?}");
    }
    // Both forms of the products start from the same weights.
    let (gram, residual) =
        (values(&rows, "complex", "test_psnr"), values(&rows, "residual", "test_psnr"));
    for (a, b) in gram.iter().zip(&residual) {
        assert!((a - b).abs() < 0.01, "{a} against {b}");
    }
    // LinF has no constant feature, so it lacks the brightness.
    let (bright, centered) =
        (values(&rows, "bright", "test_psnr"), values(&rows, "centered", "test_psnr"));
    for (a, b) in bright.iter().zip(&centered) {
        assert!(b - a > 3.0, "{a} against {b}");
    }
    assert_eq!(values(&rows, "complex", "params")[0], 3.0 * 256.0);
    assert_eq!(values(&rows, "deep", "params")[0], 8.0 * 256.0 + 8.0 * 3.0 + 3.0);
    assert_eq!(values(&rows, "simple", "params")[0], 65.0 * 32.0 + 33.0 * 32.0 + 33.0 * 3.0);
}

/// Catches clips that are treated as images, and frames that are mixed up.
#[test]
fn clips_are_fitted_in_three_dimensions() {
    let repository = Repository::with_experiment(include_str!("clips.yaml"));
    repository.ok(&["reproduce"]);
    let rows = repository.rows("out");
    for group in ["simple", "complex", "random", "closed-form", "least-squares"] {
        let test = values(&rows, group, "test_psnr");
        assert!(test.len() == 1 && test[0] > 12.0, "{group}: {test:?}");
    }
    assert_eq!(values(&rows, "complex", "params"), [3.0 * 512.0]);
    // Gradient descent cannot do better on the training positions than least squares.
    let (descent, exact) =
        (values(&rows, "complex", "train_psnr")[0], values(&rows, "closed-form", "train_psnr")[0]);
    assert!(descent < exact + 0.05, "{descent} against {exact}");
}

/// Catches sizes and signals that are refused too late, or without the key.
#[test]
fn impossible_sizes_and_signals_are_refused() {
    let repository = Repository::with_experiment(&experiment(
        "  - id: g\n    data: { set: embedded-images, pick: [9] }\n    protocol: { kind: network-nd, side: 100, \
         learning_rate: 0.1, epochs: 1 }\n    variants: [{ id: Gau, embedder: { kind: gaussian, dimension: 16, sigma: 0.1 } }]\n",
    ));
    repository.fails(&["reproduce"], &["pick", "signal 9", "4 (from 0)"]);
    repository.write(
        "experiments/extensions/01-mexican-hat.yaml",
        &repository.read("experiments/extensions/01-mexican-hat.yaml").replace(", pick: [9]", ""),
    );
    repository.fails(&["reproduce"], &["side: 100", "does not divide 512"]);
}
