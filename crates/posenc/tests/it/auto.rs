//! `sigma: auto`: the width that it selects, where it is allowed, and the study that compares it with other widths.

use crate::common::{Repository, parse_error, values};

const EXPERIMENT: &str = include_str!("auto.yaml");

/// Catches a choice from the samples that differs from the study's, a rule that depends on more than the number of samples and the
/// solver, and choices that are not compared with the best width.
#[test]
fn auto_matches_the_width_selection_study() {
    let repository = Repository::with_experiment(EXPERIMENT);
    repository.ok(&["reproduce", "extensions/mexican-hat"]);
    let rows = repository.rows("out");
    let of = |group: &str, method: &str, metric: &str| values(&rows, [group, method, metric]);
    // Without the solver `ridge`, `auto` depends only on the number of samples.
    for metric in ["test_psnr", "train_psnr", "rank", "condition_number"] {
        let rule = of("minimum-norm", "minimum norm", metric);
        assert_eq!(rule.len(), 1, "{metric}: {rows:?}");
        assert_eq!(of("minimum-norm", "auto", metric), rule);
        assert_ne!(
            of("minimum-norm", "ridge", "test_psnr"),
            of("minimum-norm", "auto", "test_psnr")
        );
    }
    let is_close = |a: f64, b: f64| assert!((a - b).abs() < 1e-6, "{a} {b}");
    is_close(of("ridge", "ridge", "test_psnr")[0], of("choice", "auto", "test_psnr")[0]);
    let regret = of("choice", "auto", "regret_auto")[0];
    is_close(of("ridge", "auto", "test_psnr")[0], of("choice", "auto", "best_psnr")[0] - regret);
    let [sigma, cutoff] = ["sigma", "cutoff"].map(|metric| of("ridge", "auto", metric)[0]);
    assert!((0.01..0.5).contains(&sigma) && (1e-4..=0.1).contains(&cutoff), "{sigma} {cutoff}");
    assert!(repository.table("out/record").contains(",selection_time,"));
    assert!(of("ridge", "ridge", "sigma").is_empty());
    // At random positions, the two agree up to single precision.
    let reached = of("random", "auto", "test_psnr")[0];
    let choice = |metric: &str| of("random-choice", "auto", metric)[0];
    let expected = choice("best_psnr") - choice("regret_auto");
    assert!((reached - expected).abs() < 0.01, "{reached} {expected}");
    assert!(reached > choice("test_psnr") && choice("regret_rule") > choice("regret_auto"));
    let [iterations, own] = ["iterations", "sigma"].map(|metric| of("random", "auto", metric)[0]);
    assert!(iterations < 100.0, "{iterations}");
    // Gradient descent is compared with 100 iterations, for which wider embedders are better.
    let of_descent = of("random-descent", "auto", "sigma")[0];
    assert!(of_descent > own && of_descent < 0.5, "{of_descent} {own}");
    // On a grid, gradient descent chooses by training.
    assert_eq!(of("descent", "auto", "sigma").len(), 1);
    for (group, count) in [("choice", 1), ("rows", 2)] {
        let (best, rule) = (of(group, "auto", "best_psnr"), of(group, "auto", "test_psnr"));
        assert_eq!(best.len(), count, "{rows:?}");
        for (k, regret) in of(group, "auto", "regret_rule").into_iter().enumerate() {
            assert!(regret >= 0.0 && (best[k] - rule[k] - regret).abs() < 1e-9, "{regret}");
        }
        for octaves in of(group, "auto", "best_octaves") {
            assert!(octaves.abs() <= 2.5 && (8.0 * octaves).fract() == 0.0, "{octaves}");
        }
        for criterion in ["paper", "likelihood", "gcv", "loo", "hold_out", "auto", "half_test"] {
            let regrets = of(group, "auto", &format!("regret_{criterion}"));
            assert!(regrets.len() == count && regrets.iter().all(|r| r.is_finite()), "{criterion}");
        }
    }
}

/// Catches `auto` in a protocol without a number of samples, which would fail only after planning.
#[test]
fn auto_without_a_number_of_samples_is_refused() {
    let refused = |from: &str, to: &str, parts: &[&str]| {
        let error = parse_error(&EXPERIMENT.replacen(from, to, 1));
        assert!(parts.iter().all(|part| error.contains(part)), "{parts:?}: {error}");
    };
    let protocol = "{ kind: closed-form, step: 2, side: 32, solver: ridge }";
    refused(
        &format!("    data: {{ set: div2k-test }}\n    protocol: {protocol}"),
        "    protocol: { kind: stable-rank, samples: [8] }",
        &["a.yaml:10", "sigma", "auto", "closed-form, network-nd, width-selection"],
    );
    refused("axes: 1, rows: 2", "axes: 1, fraction: 0.5", &["fraction", "axes: 2"]);
    refused(
        "{ id: auto, embedder: { kind: gaussian, dimension: 16, sigma: auto } }\n    profiles: *profiles\n  - id: rows",
        "{ id: auto, embedder: { kind: gaussian, dimension: 16, sigma: 0.1 } }\n    profiles: *profiles\n  - id: rows",
        &["width-selection", "sigma: auto"],
    );
    refused("sigma: auto", "sigma: automatic", &["sigma", "automatic"]);
}
