use faer::Mat;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::blending::{AxisBlending, GridConvention, VirtualGrid, Weights};
use crate::closed_form::{Factorization, solve};
use crate::testing::{gaussian, kronecker, narrow, random, times};
use crate::tolerance::{Tolerance, assert_all_close, assert_close};

fn vector(length: usize, seed: u64) -> Vec<f64> {
    random(length, 1, seed).col_as_slice(0).to_vec()
}

fn norm(v: &[f64]) -> f64 {
    v.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// Minimum-norm least squares from the singular value decomposition of the dense matrix.
fn reference(a: &Mat<f64>, target: &[f64]) -> Vec<f64> {
    let svd = a.thin_svd().unwrap();
    let values: Vec<f64> = svd.S().column_vector().iter().copied().collect();
    let projected = times(&svd.U().transpose().to_owned(), target);
    let divided: Vec<f64> = projected
        .iter()
        .zip(&values)
        .map(|(x, value)| if *value > 1e-9 * values[0] { x / value } else { 0.0 })
        .collect();
    times(&svd.V().to_owned(), &divided)
}

const EXACT: LeastSquaresOptions = LeastSquaresOptions { tolerance: 1e-13, max_iterations: 5000 };

/// Blending at `n_points` random positions on a grid with the given numbers of nodes, and its dense matrix.
fn blended<const D: usize>(
    nodes: [usize; D],
    n_points: usize,
    seed: u64,
) -> (Blending<f64, D>, Mat<f64>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let axes: [AxisBlending; D] = nodes.map(|nodes| {
        let grid = VirtualGrid::new(nodes, GridConvention::Consistent).unwrap();
        let coordinates: Vec<f64> = (0..n_points).map(|_| rng.random_range(0.0..1.0)).collect();
        let distance = |delta: f64| (-20.0 * delta * delta).exp();
        AxisBlending::new(&grid, &coordinates, &distance, Weights::Normalized).unwrap()
    });
    let points = (0..n_points as u32).map(|p| [p; D]).collect();
    let blending = Blending::new(std::array::from_fn(|axis| &axes[axis]), points).unwrap();
    let matrix = blending.matrix();
    let mut dense = Mat::zeros(matrix.nrows(), matrix.ncols());
    for (i, j, weight) in matrix.triplet_iter() {
        dense[(i, j)] = *weight;
    }
    (blending, dense)
}

/// Blending whose points are nodes of the grid, given by index with the first axis slowest.
fn at_nodes<T: Real, const D: usize>(
    sides: [usize; D],
    nodes: impl IntoIterator<Item = usize>,
) -> Blending<T, D> {
    let axes: [AxisBlending; D] = sides.map(|side| {
        let grid = VirtualGrid::new(side, GridConvention::Consistent).unwrap();
        let distance = |delta: f64| (-delta * delta).exp();
        let positions = grid.encoded_positions();
        AxisBlending::new(&grid, &positions, &distance, Weights::Normalized).unwrap()
    });
    let place = |mut node: usize| {
        let mut place = [0; D];
        for axis in (0..D).rev() {
            place[axis] = (node % sides[axis]) as u32;
            node /= sides[axis];
        }
        place
    };
    let points = nodes.into_iter().map(place).collect();
    Blending::new(std::array::from_fn(|axis| &axes[axis]), points).unwrap()
}

fn all_nodes<T: Real>(side: usize) -> Blending<T, 2> {
    at_nodes([side; 2], 0..side * side)
}

fn check_operator<const D: usize>(psi: [Mat<f64>; D]) {
    let nodes: [usize; D] = std::array::from_fn(|axis| psi[axis].nrows());
    let full = kronecker(&psi);
    let n_nodes = full.nrows();
    let (blending, b) = blended(nodes, 17, 5);
    // One node twice.
    let chosen = [n_nodes - 1, 3, 0, 3];
    let selection = Mat::from_fn(4, n_nodes, |i, j| if chosen[i] == j { 1.0 } else { 0.0 });
    for (points, map) in [(at_nodes(nodes, chosen), selection), (blending, b)] {
        let expected = map * &full;
        let system = ScatteredSystem::new(psi.each_ref().map(Mat::as_ref), &points).unwrap();
        assert_eq!((system.n_points(), system.n_weights()), expected.shape());
        let weights = vector(system.n_weights(), 8);
        let values = vector(system.n_points(), 9);
        let tolerance = Tolerance::absolute(1e-11);
        assert_all_close(&system.apply(&weights).unwrap(), &times(&expected, &weights), tolerance);
        let transposed = expected.transpose().to_owned();
        let mut actual = vec![0.0; system.n_weights()];
        system.apply_transposed_into(&values, &mut actual, &mut Workspace::default());
        assert_all_close(&actual, &times(&transposed, &values), tolerance);
    }
}

#[test]
fn the_operator_equals_the_matrix_written_out() {
    // Catches swapped axes, and a workspace that is too small for the grid between two products. All
    // sizes differ, and some matrices have more rows than columns, others fewer.
    check_operator([random(9, 4, 1)]);
    check_operator([random(5, 4, 1), random(3, 7, 2)]);
    check_operator([random(4, 6, 1), random(7, 2, 2), random(3, 5, 3)]);
    // Banded matrices with several tiles, a zero matrix, and a matrix with zero rows, each with a dense one.
    check_operator([gaussian(70, 90, 0.005), random(3, 2, 4)]);
    check_operator([random(3, 2, 4), gaussian(90, 70, 0.004)]);
    check_operator([Mat::zeros(4, 3), random(3, 2, 4)]);
    let gap = Mat::from_fn(100, 40, |i, j| if i < 40 && i == j { 1.0 } else { 0.0 });
    check_operator([gap, random(2, 2, 1)]);
}

#[test]
fn banded_matrices_are_tiled_and_dense_ones_are_not() {
    let narrow = Tiled::new(gaussian(256, 256, 0.005).as_ref());
    assert_eq!(narrow.n_tiles(), 8);
    assert_eq!(Tiled::new(random(256, 256, 1).as_ref()).n_tiles(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    // Catches a solution that is not the minimum-norm one, for more and fewer points than weights and for deficient rank.
    #[test]
    fn the_solution_equals_dense_least_squares(
        nodes in prop::array::uniform2(3..6usize), k in prop::array::uniform2(1..5usize),
        n_points in 2..30usize, deficient: bool, seed in 0..10_000u64,
    ) {
        let mut psi = [random(nodes[0], k[0], seed), random(nodes[1], k[1], seed + 1)];
        if deficient && k[0] > 1 {
            for i in 0..nodes[0] {
                psi[0][(i, 1)] = psi[0][(i, 0)];
            }
        }
        let (blending, b) = blended(nodes, n_points, seed + 2);
        let a = b * kronecker(&psi);
        // Skips matrices with singular values near the cutoff, since their rank is ambiguous.
        let values = a.singular_values().unwrap();
        prop_assume!(values.iter().all(|v| *v > 1e-3 * values[0] || *v < 1e-11 * values[0]));
        let target = vector(n_points, seed + 3);
        let system = ScatteredSystem::new(psi.each_ref().map(Mat::as_ref), &blending).unwrap();
        let solution = system.solve(&[&target], &EXACT).unwrap().remove(0);
        // If the residual is near zero, rounding keeps the gradient from falling further.
        prop_assert!(solution.converged() || solution.stop == Stop::Rounding, "{:?}", solution);
        let expected = reference(&a, &target);
        assert_all_close(&solution.weights, &expected, Tolerance::absolute(1e-5 * norm(&expected).max(1e-6)));
    }
}

#[test]
fn three_axes_equal_dense_least_squares() {
    let psi = [random(4, 3, 1), random(5, 2, 2), random(3, 3, 3)];
    let (blending, b) = blended([4, 5, 3], 60, 4);
    let a = b * kronecker(&psi);
    let target = vector(60, 5);
    let system = ScatteredSystem::new(psi.each_ref().map(Mat::as_ref), &blending).unwrap();
    let solution = system.solve(&[&target], &EXACT).unwrap().remove(0);
    assert_eq!(solution.stop, Stop::SmallGradient);
    assert_all_close(&solution.weights, &reference(&a, &target), Tolerance::absolute(1e-8));
    // The reported norms are those of the weights.
    let residual: Vec<f64> =
        times(&a, &solution.weights).iter().zip(&target).map(|(x, s)| s - x).collect();
    assert_close(solution.residual_norm, norm(&residual), Tolerance::relative(1e-10));
    assert!(solution.gradient_norm < 1e-11 * norm(&target));
}

#[test]
fn all_nodes_equal_the_separable_closed_form() {
    let psi = gaussian(24, 24, 0.03);
    let factorization = Factorization::new(psi.as_ref()).unwrap();
    let signal = vector(24 * 24, 6);
    let expected = solve(&[&factorization; 2], std::slice::from_ref(&signal)).unwrap().remove(0);
    let points = all_nodes(24);
    let system = ScatteredSystem::new([psi.as_ref(); 2], &points).unwrap();
    let solution = system.solve(&[&signal], &EXACT).unwrap().remove(0);
    assert!(solution.converged());
    assert_all_close(&solution.weights, &expected, Tolerance::absolute(1e-7));
}

#[test]
fn recurrences_agree_with_norms_computed_from_the_iterates() {
    // Catches errors in the recurrences, with which the iteration would stop too early or never.
    let psi = gaussian(12, 10, 0.08);
    let (blending, b) = blended([12, 12], 50, 3);
    let a = b * kronecker(&[psi.clone(), psi.clone()]);
    let system = ScatteredSystem::new([psi.as_ref(); 2], &blending).unwrap();
    let target = vector(50, 4);
    let options = LeastSquaresOptions { tolerance: 1e-14, max_iterations: 12 };
    let mut seen = 0;
    let transposed = a.transpose().to_owned();
    let observe = &mut |weights: &[f64], residual_norm: f64, gradient_norm: f64| {
        seen += 1;
        let fitted = times(&a, weights);
        let residual: Vec<f64> = target.iter().zip(&fitted).map(|(s, x)| s - x).collect();
        assert_close(residual_norm, norm(&residual), Tolerance::relative(1e-8));
        let gradient = times(&transposed, &residual);
        assert_close(gradient_norm, norm(&gradient), Tolerance::relative(1e-6));
        true
    };
    lsmr::solve(&system, &target, &options, observe).unwrap();
    assert_eq!(seen, 12);
}

/// Catches an observer that gets the weights of another iteration, or that cannot end the solve.
#[test]
fn an_observer_sees_each_iteration_and_may_end_it() {
    let psi = gaussian(16, 16, 0.1);
    let points = all_nodes(16);
    let system = ScatteredSystem::new([psi.as_ref(); 2], &points).unwrap();
    let target = vector(256, 1);
    let of = |max_iterations| LeastSquaresOptions { max_iterations, ..EXACT };
    let mut seen = Vec::new();
    let observe = &mut |iteration: usize, weights: &[f64]| {
        seen.push(weights.to_vec());
        iteration < 4
    };
    let ended = system.solve_observed(&target, &of(9), observe).unwrap();
    assert_eq!((ended.stop, ended.iterations, seen.len()), (Stop::IterationLimit, 4, 4));
    for (index, weights) in seen.iter().enumerate() {
        let limited = system.solve(&[&target], &of(index + 1)).unwrap().remove(0);
        assert_eq!(weights, &limited.weights);
    }
}

#[test]
fn a_tolerance_below_rounding_is_not_reported_as_converged() {
    // The condition number exceeds single precision and the tolerance is at its limit: the recurrences
    // report convergence, but rounding limits the true residual.
    let psi = narrow(&gaussian(48, 48, 0.1));
    let points = all_nodes(48);
    let system = ScatteredSystem::new([psi.as_ref(); 2], &points).unwrap();
    let target: Vec<f32> = vector(48 * 48, 1).into_iter().map(|x| x as f32).collect();
    let options = LeastSquaresOptions { tolerance: 1.2e-7, max_iterations: 20_000 };
    let solution = system.solve(&[&target], &options).unwrap().remove(0);
    assert_eq!(solution.stop, Stop::Rounding, "{} iterations", solution.iterations);
}

#[test]
fn channels_have_the_same_bits_together_and_alone() {
    let psi = narrow(&gaussian(40, 32, 0.03));
    let points = at_nodes([40; 2], (0..1600).step_by(3));
    let system = ScatteredSystem::new([psi.as_ref(); 2], &points).unwrap();
    let channel = |seed| -> Vec<f32> {
        vector(points.n_points(), seed).into_iter().map(|x| x as f32).collect()
    };
    // Two channels are equal, with which a block method would break down.
    let channels = [channel(1), channel(2), channel(1)];
    let options = LeastSquaresOptions { max_iterations: 40, ..LeastSquaresOptions::default() };
    let views: Vec<&[f32]> = channels.iter().map(Vec::as_slice).collect();
    let together = system.solve(&views, &options).unwrap();
    for (view, expected) in views.iter().zip(&together) {
        assert_eq!(&system.solve(&[view], &options).unwrap()[0], expected);
    }
    assert_eq!(together[0], together[2]);
}

#[test]
fn single_precision_agrees_with_double() {
    let psi = gaussian(20, 20, 0.03);
    let nodes = || (0..400).filter(|i| i % 4 != 1);
    let target = vector(nodes().count(), 2);
    let options = LeastSquaresOptions { tolerance: 1e-6, max_iterations: 3000 };
    let points = at_nodes([20; 2], nodes());
    let wide = ScatteredSystem::new([psi.as_ref(); 2], &points).unwrap();
    let wide = wide.solve(&[&target], &options).unwrap().remove(0);
    let psi = narrow(&psi);
    let target: Vec<f32> = target.into_iter().map(|x| x as f32).collect();
    let points = at_nodes([20; 2], nodes());
    let single = ScatteredSystem::new([psi.as_ref(); 2], &points).unwrap();
    let single = single.solve(&[&target], &options).unwrap().remove(0);
    assert!(wide.converged() && single.converged());
    let single: Vec<f64> = single.weights.into_iter().map(f64::from).collect();
    let largest = wide.weights.iter().fold(0.0, |m: f64, w| m.max(w.abs()));
    assert_all_close(&single, &wide.weights, Tolerance::absolute(1e-3 * largest));
}

#[test]
fn zero_targets_and_zero_operators_have_zero_weights() {
    let points = all_nodes(5);
    for (psi, target, residual) in
        [(random(5, 4, 1), [0.0; 25], 0.0), (Mat::zeros(5, 4), [1.0; 25], 5.0)]
    {
        let system = ScatteredSystem::new([psi.as_ref(); 2], &points).unwrap();
        let solution = system.solve(&[&target], &EXACT).unwrap().remove(0);
        assert!(solution.converged() && solution.weights == [0.0; 16]);
        assert_eq!(solution.iterations, 0);
        assert_close(solution.residual_norm, residual, Tolerance::relative(1e-15));
    }
    // One equation is solved in one step.
    let one = Mat::from_fn(2, 1, |_, _| 2.0);
    let points = at_nodes([2; 2], [0]);
    let system = ScatteredSystem::new([one.as_ref(); 2], &points).unwrap();
    let solution = system.solve(&[&[8.0]], &EXACT).unwrap().remove(0);
    assert!(solution.converged() && solution.iterations == 1);
    assert_close(solution.weights[0], 2.0, Tolerance::relative(1e-14));
}

#[test]
fn errors_name_the_invalid_input() {
    let psi = random(3, 2, 1);
    let views = [psi.as_ref(); 2];
    let points = all_nodes(3);
    let system = ScatteredSystem::new(views, &points).unwrap();
    let mut target = vec![0.5; 9];
    target[7] = f64::NAN;
    let message = system.solve(&[&[1.0; 9], &target], &EXACT).unwrap_err().to_string();
    assert!(message.contains("channel 1") && message.contains("NaN at point 7"), "{message}");
    let message = system.solve(&[&[1.0; 8]], &EXACT).unwrap_err().to_string();
    assert!(message.contains("values of channel 0: expected 9, got 8"), "{message}");
    let mut broken = psi.clone();
    broken[(1, 1)] = f64::INFINITY;
    let refused = ScatteredSystem::new([psi.as_ref(), broken.as_ref()], &points).unwrap_err();
    assert!(refused.to_string().contains("contains inf at row 1, column 1"), "{refused}");
    assert!(ScatteredSystem::new(views, &at_nodes([3; 2], [])).is_err());
    let (blending, _) = blended([3, 4], 5, 1);
    let refused = ScatteredSystem::new(views, &blending).unwrap_err();
    assert!(refused.to_string().contains("embedding matrix 1"), "{refused}");
    for options in [
        LeastSquaresOptions { tolerance: 1e-17, ..EXACT },
        LeastSquaresOptions { tolerance: f64::NAN, ..EXACT },
        LeastSquaresOptions { max_iterations: 0, ..EXACT },
    ] {
        let refused = system.solve(&[&[1.0; 9]], &options).unwrap_err();
        assert!(refused.to_string().contains(" must be at least "), "{options:?}");
    }
    let huge = [f64::MAX; 9];
    let refused = system.solve(&[&huge], &EXACT).unwrap_err();
    assert!(refused.to_string().contains("values overflowed in iteration"), "{refused}");
}
