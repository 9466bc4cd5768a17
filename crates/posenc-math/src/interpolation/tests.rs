use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};

use super::grid::{GridMethod, upsample};
use super::kriging::{Covariance, Kriging};
use super::lattice::LatticeSamples;
use super::selection::{Pattern, Prediction, choose_for_image};
use super::steering::metrics;
use super::*;
use crate::random::{gaussian_vector, sample_without_replacement, stream, uniform_vector};
use crate::tolerance::{Tolerance, assert_close};

fn scattered<const D: usize>(count: usize) -> Vec<[f64; D]> {
    let flat = uniform_vector(&mut stream(1, "positions"), count * D, 0.0, 10.0);
    flat.chunks_exact(D).map(|p| std::array::from_fn(|axis| p[axis])).collect()
}

fn plane<const D: usize>(position: &[f64; D]) -> f64 {
    0.5 + position.iter().zip([0.3, -0.2, 0.7]).map(|(x, slope)| slope * x).sum::<f64>()
}

fn samples<const D: usize>(positions: Vec<[f64; D]>, f: impl Fn(&[f64; D]) -> f64) -> Samples<D> {
    let values = positions.iter().map(f).collect();
    Samples::new(positions, values, 1).unwrap()
}

fn at<const D: usize>(interpolant: &dyn Interpolant<D>, queries: &[[f64; D]]) -> Vec<f64> {
    predict(interpolant, queries, &Sequential)
}

const COVARIANCE: Covariance = Covariance { length: 6.0, nugget: 0.0 };

proptest! {
    /// Catches a cell that is not visited, and ties broken by the order of cells.
    #[test]
    fn closest_samples_are_those_of_a_full_search(
        positions in prop::collection::vec((0u8..9, 0u8..9), 1..60),
        query in (-3.0..12.0, -3.0..12.0),
        count in 1usize..12,
    ) {
        let positions: Vec<[f64; 2]> =
            positions.into_iter().map(|(x, y)| [f64::from(x), f64::from(y)]).collect();
        let query = [query.0, query.1];
        let samples = samples(positions.clone(), |_| 0.0);
        let mut found = Vec::new();
        samples.closest(&query, count, &mut found);
        let mut all: Vec<Neighbor> = (0..positions.len() as u32)
            .map(|index| {
                let p = positions[index as usize];
                let squared = (0..2).map(|axis| (p[axis] - query[axis]).powi(2)).sum();
                Neighbor { squared, index }
            })
            .collect();
        all.sort_by(|a, b| a.squared.total_cmp(&b.squared).then(a.index.cmp(&b.index)));
        all.truncate(count);
        prop_assert_eq!(found, all);
    }

    /// Catches weights that do not add up to one, and samples that are not reproduced.
    #[test]
    fn kriging_reproduces_constants_and_samples(
        length in 1.0..20.0,
        neighbors in 1usize..30,
    ) {
        let covariance = Covariance { length, nugget: 0.0 };
        let positions = scattered::<2>(40);
        let constant = samples(positions.clone(), |_| 0.7);
        for value in at(&Kriging::new(&constant, covariance, neighbors), &scattered::<2>(20)) {
            prop_assert!((value - 0.7).abs() < 1e-9);
        }
        let linear = samples(positions.clone(), plane);
        for (value, position) in at(&Kriging::new(&linear, covariance, neighbors), &positions).iter().zip(&positions) {
            prop_assert!((value - plane(position)).abs() < 1e-7);
        }
    }
}

/// Catches weights that differ from those of the ordinary kriging system with a Lagrange multiplier.
#[test]
fn kriging_solves_the_system_with_a_multiplier() {
    let covariance = Covariance { nugget: 0.05, ..COVARIANCE };
    let samples = samples(scattered::<2>(12), |p| (p[0] * 0.7).sin() + p[1]);
    let query = [3.3, 4.4];
    let n = samples.len();
    let squared = |a: &[f64; 2], b: &[f64; 2]| (a[0] - b[0]).powi(2) + (a[1] - b[1]).powi(2);
    let mut matrix = vec![0.0; (n + 1) * (n + 1)];
    let mut b = vec![1.0; n + 1];
    for i in 0..n {
        for j in 0..n {
            let noise = if i == j { covariance.nugget } else { 0.0 };
            matrix[i * (n + 1) + j] =
                covariance.at(squared(&samples.positions()[i], &samples.positions()[j])) + noise;
        }
        matrix[i * (n + 1) + n] = 1.0;
        matrix[n * (n + 1) + i] = 1.0;
        b[i] = covariance.at(squared(&samples.positions()[i], &query));
    }
    assert!(dense::solve(&mut matrix, n + 1, &mut b));
    let expected: f64 = (0..n).map(|i| b[i] * samples.value(i)[0]).sum();
    let own = at(&Kriging::new(&samples, covariance, n), &[query])[0];
    assert_close(own, expected, Tolerance::absolute(1e-10));
}

/// Catches extrapolation beyond the hull, and a failure for samples on a line, which have no triangles.
#[test]
fn queries_outside_the_hull_get_the_closest_sample() {
    let known = samples(vec![[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]], plane);
    let queries = [[5.0, 0.0], [3.0, 3.9], [-1.0, -1.0]];
    let expected = [plane(&[4.0, 0.0]), plane(&[0.0, 4.0]), plane(&[0.0, 0.0])];
    assert_eq!(at(&Linear::new(&known), &queries), expected);
    assert_eq!(at(&CloughTocher::new(&known), &queries), expected);
    let line = samples((0..5).map(|i| [f64::from(i), 1.0]).collect(), plane);
    assert_eq!(at(&Linear::new(&line), &[[2.2, 1.0]]), [plane(&[2.0, 1.0])]);
    assert_eq!(at(&CloughTocher::new(&line), &[[2.2, 1.0]]), [plane(&[2.0, 1.0])]);
    assert_eq!(at(&ThinPlate::new(&line, 4), &[[2.2, 1.0]]), [plane(&[2.0, 1.0])]);
}

/// Catches a grid that is shorter than its step, and a spline through too few nodes.
#[test]
fn short_grids_are_interpolated_or_refused() {
    let error = upsample(&[0.0; 4], &[2, 2], 3, 1, GridMethod::Linear).unwrap_err();
    assert!(
        error.to_string().contains("step must be 1 to 2 on a side of 2 positions, got 3"),
        "{error}"
    );
    assert!(upsample(&[0.0; 3], &[2, 2], 1, 1, GridMethod::Linear).is_err());
    // Too few nodes for a spline.
    for side in 2..8usize {
        let known: Vec<f64> = (0..side.div_ceil(2)).map(|i| 2.0 * i as f64).collect();
        let own = upsample(&known, &[side], 2, 1, GridMethod::Cubic).unwrap();
        for (i, own) in own.iter().enumerate().take(2 * known.len() - 1) {
            assert_close(*own, i as f64, Tolerance::absolute(1e-12));
        }
    }
}

/// Catches a metric that stretches distances along edges, and one that changes areas.
#[test]
fn distances_are_longer_across_an_edge() {
    let (rows, columns) = (24, 24);
    let angle: f64 = 0.4;
    // Level lines in direction (cos, sin) of (column, row).
    let image: Vec<f64> = (0..rows * columns)
        .map(|i| {
            let (y, x) = ((i / columns) as f64 - 12.0, (i % columns) as f64 - 12.0);
            1.0 / (1.0 + (-(y * angle.cos() - x * angle.sin())).exp())
        })
        .collect();
    let all = metrics(&image, [rows, columns], 1, 2.0, 0.5);
    let [xx, xy, yy] = all[12 * columns + 12];
    let length = |x: f64, y: f64| xx * x * x + 2.0 * xy * x * y + yy * y * y;
    let along = length(angle.cos(), angle.sin());
    let across = length(-angle.sin(), angle.cos());
    assert!(across > 1.5 && along < 0.7, "{across} {along}");
    for [xx, xy, yy] in all {
        assert_close(xx * yy - xy * xy, 1.0, Tolerance::absolute(1e-9));
    }
    // Without edges, the metric is Euclidean.
    for metric in metrics(&vec![0.3; 64], [8, 8], 1, 2.0, 0.5) {
        assert_eq!(metric, [1.0, 0.0, 1.0]);
    }
}

/// Catches a reconstruction that changes known values or swaps positions, and a split that loses samples.
#[test]
fn known_nodes_keep_their_values() {
    let sides = [20, 16];
    let mut rng = stream(2, "lattice");
    let image = gaussian_vector(&mut rng, 2 * 320);
    let nodes: Vec<u32> = (0..320).filter(|node| node % 3 != 1).collect();
    let values = nodes.iter().flat_map(|&n| &image[2 * n as usize..][..2]).copied().collect();
    let known = LatticeSamples::new(sides, nodes.clone(), values, 2).unwrap();
    assert_eq!(known.sides(), sides);
    let own = adaptive::reconstruct(&known, &adaptive::PLAIN, &Sequential);
    for &node in &nodes {
        let at = 2 * node as usize;
        assert_eq!(own[at..at + 2], image[at..at + 2]);
    }
    let [held_out, rest] = known.split(|i| i % 4 == 0).unwrap();
    assert_eq!(held_out.nodes().len() + rest.nodes().len(), nodes.len());
    assert_eq!(held_out.samples().value(1), known.samples().value(4));
}

/// Catches invalid samples that are accepted.
#[test]
fn invalid_samples_are_rejected() {
    let error = |positions: Vec<[f64; 2]>, values: Vec<f64>, channels| {
        Samples::new(positions, values, channels).unwrap_err().to_string()
    };
    assert!(error(vec![], vec![], 1).contains("at least one"));
    assert!(error(vec![[0.0, 0.0]], vec![1.0, 2.0], 1).contains("expected 1"));
    assert!(error(vec![[0.0, f64::NAN]], vec![1.0], 1).contains("sample 0"));
}

/// Samples of a 48 × 48 image.
fn known(pattern: Pattern, image: &[f64]) -> LatticeSamples<2> {
    let nodes: Vec<u32> = match pattern {
        Pattern::Grid { step } => (0..48 * 48)
            .filter(|&node| {
                let position = lattice::position(&[48, 48], node);
                position.iter().all(|&c| (c as usize).is_multiple_of(step))
            })
            .collect(),
        Pattern::Random => sample_without_replacement(&mut stream(4, "known"), 48 * 48, 700)
            .into_iter()
            .map(|node| node as u32)
            .collect(),
    };
    let values = nodes.iter().map(|&node| image[node as usize]).collect();
    LatticeSamples::new([48, 48], nodes, values, 1).unwrap()
}

/// Mean squared error at unknown positions.
fn error(known: &LatticeSamples<2>, settings: &adaptive::Settings, image: &[f64]) -> f64 {
    let own = adaptive::reconstruct(known, settings, &Sequential);
    let unknown = (image.len() - known.nodes().len()) as f64;
    own.iter().zip(image).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / unknown
}

/// Catches a selection that prefers a larger error, and settings other than those that were tried.
#[test]
fn selection_follows_edges_if_that_reduces_the_error() {
    let stripes: Vec<f64> = (0..48 * 48)
        .map(|node| {
            let [y, x] = lattice::position(&[48, 48], node);
            if (x + 0.6 * y).rem_euclid(16.0) < 8.0 { 0.2 } else { 0.9 }
        })
        .collect();
    for pattern in [Pattern::Random, Pattern::Grid { step: 2 }] {
        let samples = known(pattern, &stripes);
        let selection = choose_for_image(&samples, pattern, &Sequential);
        assert!(selection.settings.steering.is_some(), "{pattern:?}");
        assert!(selection.settings.to_string().contains("along edges"));
        assert!(selection.reason().unwrap().contains("Euclidean distances"));
        let least = selection.candidates.iter().map(|c| c.1).fold(f64::INFINITY, f64::min);
        let chosen = selection.candidates.iter().find(|c| c.0 == selection.settings).unwrap();
        assert_eq!(chosen.1, least);
        let plain = adaptive::Settings { steering: None, ..selection.settings };
        let (own, plain) =
            (error(&samples, &selection.settings, &stripes), error(&samples, &plain, &stripes));
        assert!(own < 0.8 * plain, "{pattern:?}: {own} {plain}");
    }
}

/// Catches predictions in other units, and intervals with swapped ends.
#[test]
fn errors_at_random_positions_are_predicted() {
    let noise = gaussian_vector(&mut stream(3, "noise"), 48 * 48);
    let samples = known(Pattern::Random, &noise);
    let selection = choose_for_image(&samples, Pattern::Random, &Sequential);
    let own = error(&samples, &selection.settings, &noise);
    let Prediction { mean, low, high } = selection.predicted;
    assert!(low < mean && mean < high);
    assert!(low < own && own < high, "{own} {low} {high}");
}

/// Catches a prediction of NaN from held-out errors of 0.
#[test]
fn the_error_of_a_black_image_is_predicted() {
    let black = vec![0.0; 48 * 48];
    for pattern in [Pattern::Random, Pattern::Grid { step: 2 }] {
        let selection = choose_for_image(&known(pattern, &black), pattern, &Sequential);
        let zero = Prediction { mean: 0.0, low: 0.0, high: 0.0 };
        assert_eq!(selection.predicted, zero, "{pattern:?}");
    }
}

/// Catches a split that leaves too few samples to predict from.
#[test]
fn few_samples_are_not_held_out() {
    let nodes: Vec<u32> = (0..64).filter(|node| node % 3 == 0).collect();
    let values = vec![0.5; nodes.len()];
    let samples = LatticeSamples::new([4, 4, 4], nodes, values, 1).unwrap();
    let selection = selection::choose(&samples, Pattern::Random, &Sequential);
    assert!(selection.candidates.is_empty() && selection.reason().is_none());
    assert!(selection.predicted.mean.is_nan());
}
