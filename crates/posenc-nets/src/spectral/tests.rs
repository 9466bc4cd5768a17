use posenc_math::random::uniform_vector;
use posenc_math::spectrum::{singular_values, stable_rank_of};
use posenc_math::tolerance::{Tolerance, assert_close};
use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::*;

fn by_svd(h: MatRef<'_, f32>) -> f64 {
    let double = Mat::from_fn(h.nrows(), h.ncols(), |i, j| f64::from(h[(i, j)]));
    stable_rank_of(&singular_values(double.as_ref()).unwrap()).unwrap()
}

fn check(h: MatRef<'_, f32>) {
    assert_close(stable_rank(h), by_svd(h), Tolerance::relative(1e-6));
}

fn uniform(rows: usize, columns: usize, seed: u64) -> Mat<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let draws = uniform_vector(&mut rng, rows * columns, -1.0, 1.0);
    Mat::from_fn(rows, columns, |i, j| draws[i * columns + j])
}

fn orthonormal(rows: usize, columns: usize, seed: u64) -> Mat<f64> {
    uniform(rows, columns, seed).qr().compute_thin_Q()
}

fn single(h: &Mat<f64>) -> Mat<f32> {
    Mat::from_fn(h.nrows(), h.ncols(), |i, j| h[(i, j)] as f32)
}

/// A matrix with the singular values `values` and random singular vectors.
fn with_values(rows: usize, columns: usize, values: &[f64], seed: u64) -> Mat<f32> {
    let u = orthonormal(rows, values.len(), 2 * seed);
    let v = orthonormal(columns, values.len(), 2 * seed + 1);
    let scaled = Mat::from_fn(rows, values.len(), |i, k| u[(i, k)] * values[k]);
    single(&(scaled * v.transpose()))
}

/// max(W ψ, 0) with random W and ψ, like the activations of an untrained layer.
fn relu_layer(points: usize, width: usize, features: usize, seed: u64) -> Mat<f32> {
    let product = uniform(points, features, seed) * uniform(features, width, seed + 1);
    Mat::from_fn(points, width, |i, j| product[(i, j)].max(0.0) as f32)
}

/// Gaussian bumps of one width: a non-negative matrix whose largest singular values are close.
fn bumps(points: usize, width: f64) -> Mat<f32> {
    let bump = |u: f64| (-0.5 * (u / width).powi(2)).exp() as f32;
    Mat::from_fn(points, points, |i, j| bump((i as f64 - j as f64) / points as f64))
}

#[test]
fn values_computed_manually() {
    let ones = Mat::<f32>::full(30, 20, 1.0);
    assert_close(stable_rank(ones.as_ref()), 1.0, Tolerance::relative(1e-12));
    let diagonal =
        Mat::from_fn(5, 5, |i, j| if i == j { [4.0, 2.0, 2.0, 1.0, 0.0][i] } else { 0.0 });
    assert_close(stable_rank(diagonal.as_ref()), 25.0 / 16.0, Tolerance::relative(1e-7));
    for n in [2, 3, 7, 100, 600] {
        let identity = Mat::<f32>::identity(n, n);
        assert_close(stable_rank(identity.as_ref()), n as f64, Tolerance::relative(1e-12));
    }
    let row = Mat::from_fn(1, 7, |_, j| j as f32 - 2.0);
    assert_eq!((stable_rank(row.as_ref()), stable_rank(row.transpose())), (1.0, 1.0));
}

#[test]
fn zero_matrices_have_rank_zero_and_non_finite_entries_yield_nan() {
    assert_eq!(stable_rank(Mat::<f32>::zeros(9, 4).as_ref()), 0.0);
    for (rows, columns) in [(0, 0), (0, 3), (3, 0)] {
        assert_eq!(stable_rank(Mat::<f32>::zeros(rows, columns).as_ref()), 0.0);
    }
    for broken in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut h = Mat::<f32>::full(9, 4, 1.0);
        h[(8, 3)] = broken;
        assert!(stable_rank(h.as_ref()).is_nan());
    }
}

#[test]
fn layers_of_all_shapes_agree_with_the_svd() {
    // The shapes cover HHᵀ and HᵀH, several blocks, and the remainders of lanes and of groups of columns.
    for (points, width) in [(256, 256), (255, 257), (61, 31), (31, 61), (1000, 24), (515, 130)] {
        for features in [1, 2, 100] {
            let layer = relu_layer(points, width, features, 5);
            check(layer.as_ref());
            assert!(!Gram::new(layer.as_ref()).unwrap().has_negative());
        }
        check(bumps(points.min(width), 0.01).as_ref());
        // With entries of both signs, the sums are a poor start vector.
        let signed = single(&uniform(points, width, 7));
        check(signed.as_ref());
        assert!(Gram::new(signed.as_ref()).unwrap().has_negative());
    }
}

#[test]
fn hard_spectra_agree_with_the_svd() {
    let geometric = |ratio: f64, n: usize| (0..n).map(move |k| ratio.powi(k as i32));
    let mut spectra: Vec<Vec<f64>> = vec![
        vec![1.0],
        vec![1.0, 1.0],
        vec![1.0; 60],
        geometric(0.5, 60).collect(),
        geometric(0.99, 60).collect(),
        // Equal largest values above a decaying tail.
        [1.0; 3].into_iter().chain(geometric(0.9, 50)).collect(),
        // A flat tail just below the largest value.
        std::iter::once(1.0).chain([0.99; 59]).collect(),
    ];
    // Catches a stop before two close values are distinguished; differences below 1e-6 do not matter.
    for distance in [1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6] {
        spectra.push([1.0, 1.0 - distance].into_iter().chain(geometric(0.95, 58)).collect());
        spectra.push([1.0, 1.0 - distance].into_iter().chain([0.5; 58]).collect());
    }
    for (seed, values) in spectra.iter().enumerate() {
        for (rows, columns) in [(60, 60), (80, 300), (300, 80)] {
            check(with_values(rows, columns, values, seed as u64).as_ref());
        }
    }
}

#[test]
fn the_iteration_is_bounded() {
    // 700 distinct values close together: more than the maximum dimension of the Krylov space.
    let values: Vec<f64> = (0..700).map(|k| 1.0 - 1e-6 * k as f64).collect();
    let diagonal = Mat::from_fn(700, 700, |i, j| if i == j { values[i] as f32 } else { 0.0 });
    let found = stable_rank(diagonal.as_ref());
    assert_close(found, by_svd(diagonal.as_ref()), Tolerance::relative(1e-4));
}

#[test]
fn the_second_start_finds_what_the_first_misses() {
    // Products with a diagonal matrix never reach coordinates that are 0 in the start vector.
    let values: Vec<f64> = (0..40).map(|k| 0.97f64.powi(k)).collect();
    let h = Mat::from_fn(40, 40, |i, j| if i == j { values[i] as f32 } else { 0.0 });
    let mut gram = Gram::new(h.as_ref()).unwrap();
    let trace = gram.trace();
    let mut blind = vec![1.0; 40];
    blind[0] = 0.0;
    let misled = largest_eigenvalue(&mut gram, trace, blind.clone(), None);
    assert_close(misled, values[1] * values[1], Tolerance::relative(1e-6));
    let found = largest_eigenvalue(&mut gram, trace, blind, Some(noise(40, 1)));
    assert_close(found, 1.0, Tolerance::relative(1e-9));
}

#[test]
fn scaling_does_not_change_the_stable_rank() {
    let h = relu_layer(70, 50, 20, 1);
    let expected = stable_rank(h.as_ref());
    for scale in [1e-30, 1e-12, 1e12, 1e30] {
        let scaled = Mat::from_fn(70, 50, |i, j| h[(i, j)] * scale);
        assert_close(stable_rank(scaled.as_ref()), expected, Tolerance::relative(1e-6));
    }
    // Scaling by powers of two does not change the bits, and the ends of single precision are covered.
    for power in [-100, 100] {
        let scaled = Mat::from_fn(70, 50, |i, j| h[(i, j)] * 2f32.powi(power));
        assert_eq!(stable_rank(scaled.as_ref()), expected);
    }
    let least = Mat::full(9, 9, f32::from_bits(1));
    assert_close(stable_rank(least.as_ref()), 1.0, Tolerance::relative(1e-12));
    let most = Mat::full(900, 900, f32::MAX);
    assert_close(stable_rank(most.as_ref()), 1.0, Tolerance::relative(1e-12));
}

#[test]
fn the_layout_in_memory_changes_no_bit() {
    let h = relu_layer(45, 70, 8, 3);
    let expected = stable_rank(h.as_ref());
    let rows_first: Vec<f32> = (0..45 * 70).map(|k| h[(k / 70, k % 70)]).collect();
    let by_rows = MatRef::from_row_major_slice(&rows_first, 45, 70);
    assert_eq!(stable_rank(by_rows.transpose()), stable_rank(by_rows));
    assert_close(stable_rank(by_rows), expected, Tolerance::relative(1e-6));
    // A part of a larger matrix, and rows in reverse order, where neither stride is 1.
    let large = Mat::from_fn(90, 140, |i, j| if i < 45 && j < 70 { h[(i, j)] } else { 7.0 });
    assert_eq!(stable_rank(large.as_ref().submatrix(0, 0, 45, 70)), expected);
    let reversed = h.as_ref().reverse_rows();
    assert_close(stable_rank(reversed), expected, Tolerance::relative(1e-6));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Catches wrong stable ranks at any shape, rank, scale and sign.
    #[test]
    fn agrees_with_the_svd(
        rows in 1usize..40, columns in 1usize..40, rank in 1usize..40, seed in 0u64..1000,
        exponent in -30i32..30, has_relu in any::<bool>(),
    ) {
        let product = uniform(rows, rank, seed) * uniform(rank, columns, seed + 1);
        let scale = 10f64.powi(exponent);
        let h = Mat::from_fn(rows, columns, |i, j| {
            let value = product[(i, j)];
            (if has_relu { value.max(0.0) } else { value } * scale) as f32
        });
        if (0..columns).all(|j| h.col_as_slice(j).iter().all(|&v| v == 0.0)) {
            prop_assert_eq!(stable_rank(h.as_ref()), 0.0);
        } else {
            let (found, expected) = (stable_rank(h.as_ref()), by_svd(h.as_ref()));
            prop_assert!((found / expected - 1.0).abs() < 1e-6, "{} for {}", found, expected);
        }
    }

    /// Catches a wrong sign or a wrong Ritz value in the bound from the trace: it must hold at every dimension, also
    /// for start vectors that are almost orthogonal to the wanted eigenvector.
    #[test]
    fn the_proved_bound_holds(
        top in 0.0f64..3.0, second in 0.0f64..1.0, ratio in 0.3f64..0.9, hidden in 0i32..12,
        seed in 0u64..1000,
    ) {
        let values: Vec<f64> = [1.0 + top, 1.0 + top * second]
            .into_iter()
            .chain((0..28).map(|k| f64::powi(ratio, k)))
            .collect();
        let h = Mat::from_fn(30, 30, |i, j| if i == j { values[i] as f32 } else { 0.0 });
        let mut gram = Gram::new(h.as_ref()).unwrap();
        let (trace, largest) = (gram.trace(), f64::from(values[0] as f32).powi(2));
        let mut start = noise(30, seed);
        start[0] *= 10f64.powi(-hidden);
        let mut checks = Vec::new();
        lanczos(&mut gram, start, &mut |ritz| { checks.push(*ritz); false });
        for ritz in checks {
            prop_assert!(ritz.first <= largest * (1.0 + 1e-12));
            if let Some(bound) = ritz.error_bound(trace) {
                prop_assert!(largest - ritz.first <= bound + 1e-11 * largest, "{:?}", ritz);
            }
        }
    }
}
