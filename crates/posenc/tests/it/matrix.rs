//! Encodings computed elsewhere: features from a file yield the same results as the embedder that computed them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use posenc_math::embedder::{EmbedderSpec, build, line, matrix};
use posenc_math::random::stream;

use crate::common::{Repository, experiment, write_npy};

const GROUPS: &str = r#"  - id: rank
    protocol: { kind: stable-rank, samples: [16, 64, 128] }
    variants: &variants
      - { id: Gaussian, embedder: { kind: gaussian, dimension: 48, sigma: 0.02 } }
      - { id: Matrix, embedder: { kind: matrix, file: features.npy, coordinates: x.npy } }
  - id: distance
    protocol: { kind: distance, displacements: { from: -0.125, to: 0.125, step: 0.0625 } }
    variants: *variants
  - id: closed-form
    data: { set: div2k-test }
    protocol: { kind: closed-form, step: 2, side: 64 }
    seeds: 1
    variants: *variants
    profiles:
      quick: { reduced: 1 of 16 images, signals: 1 }
  - id: network
    data: { set: div2k-test }
    protocol: { kind: network-nd, step: 2, side: 16, depth: 0, epochs: 5, learning_rate: 0.01 }
    variants: *variants
    profiles:
      quick: { reduced: 1 of 16 images, signals: 1 }
"#;

fn file(repository: &Repository, name: &str) -> PathBuf {
    repository.path().join("experiments/extensions").join(name)
}

/// Writes the features of the Gaussian embedder, multiplied by `factor`, in reverse order of rows.
fn write_features(repository: &Repository, factor: f64) {
    let spec = EmbedderSpec::new("gaussian").number("dimension", 48.0).number("sigma", 0.02);
    let mut xs = line(128);
    xs.reverse();
    let psi = matrix(&*build(&spec, &mut stream(0, "test")).unwrap(), &xs);
    let features =
        (0..128).flat_map(|i| (0..48).map(move |j| (i, j))).map(|(i, j)| factor * psi[(i, j)]);
    write_npy(&file(repository, "features.npy"), &[128, 48], features);
    write_npy(&file(repository, "x.npy"), &[128], xs.iter().copied());
}

/// Values of a method, by the other cells of their row.
fn values(repository: &Repository, method: &str) -> BTreeMap<String, f64> {
    let rows = repository.rows("out").into_iter().filter_map(|row| {
        let mut cells: Vec<&str> = row.split(',').collect();
        (cells.get(3) == Some(&method)).then_some(())?;
        let value = cells.remove(9).parse().unwrap();
        cells.remove(3);
        Some((cells.join(","), value))
    });
    rows.collect()
}

/// Catches rows at a wrong coordinate, features in another order, a protocol that does not receive the features, and a changed file
/// whose units do not run again.
#[test]
fn features_from_a_file_give_what_their_embedder_gives() {
    let repository = Repository::with_experiment(&experiment(GROUPS));
    write_features(&repository, 1.0);
    repository.ok(&["reproduce", "extensions/mexican-hat"]);
    let (expected, found) = (values(&repository, "Gaussian"), values(&repository, "Matrix"));
    let mut metrics: Vec<&str> = found.keys().map(|row| row.split(',').nth(5).unwrap()).collect();
    metrics.sort_unstable();
    metrics.dedup();
    for metric in ["stable_rank", "distance", "test_psnr", "train_psnr", "rank"] {
        assert!(metrics.contains(&metric), "{metrics:?}");
    }
    for (row, value) in found {
        // Networks sample their initial weights by the name of their variant.
        if row.contains(",network,") {
            assert!(value.is_finite(), "{row}: {value}");
            continue;
        }
        let expected = expected[&row];
        assert!((value - expected).abs() <= 1e-9 * expected.abs(), "{row}: {value} {expected}");
    }

    let dry = |part: &str| {
        let run = repository.ok(&["reproduce", "extensions/mexican-hat", "--dry-run"]);
        assert!(run.stdout.contains(part) || run.stderr.contains(part), "{part}: {}", run.stdout);
    };
    dry("0 of 8 units would run");
    write_features(&repository, 2.0);
    dry("4 of 8 units would run");
}

/// Catches a missing or unusable file that is reported without the line that names it.
#[test]
fn features_that_cannot_be_read_are_reported_at_their_line() {
    let repository = Repository::with_experiment(&experiment(GROUPS));
    let arguments = ["reproduce", "extensions/mexican-hat"];
    repository
        .fails(&arguments, &["01-mexican-hat.yaml:11", "file", "features.npy: file not found"]);
    write_features(&repository, 1.0);
    write_npy(&file(&repository, "x.npy"), &[127], line(127).into_iter());
    repository.fails(&arguments, &["01-mexican-hat.yaml:11", "coordinates", "[127]", "128 rows"]);
    repository.picture("a.png", 8);
    let fit = ["fit", "a.png", "--embedder", "matrix", "--set", "file=features.npy"];
    repository.fails(&[&fit[..], &["--out", "b.png"]].concat(), &["experiment file"]);
}
