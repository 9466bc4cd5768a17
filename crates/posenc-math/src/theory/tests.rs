use proptest::prelude::*;

use super::*;
use crate::{
    embedder::EmbedderSpec,
    random::{gaussian_vector, stream},
    spectrum::{line_stable_rank, toeplitz_stable_rank},
    testing::{built, spec},
    tolerance::{Tolerance, assert_close},
};

fn measured(spec: &EmbedderSpec, n: usize) -> f64 {
    line_stable_rank(&*built(spec), n).unwrap()
}

/// N = d = 1000: printed values of the open and of the periodic interval, and the theory.
#[track_caller]
fn check_proposition(kind: &str, key: &str, rows: &[(f64, f64, f64)], theory: fn(f64) -> f64) {
    for &(parameter, open, periodic) in rows {
        let spec = spec(kind, 1000, key, parameter);
        assert_close(measured(&spec, 1000), open, Tolerance::decimals(2));
        let periodic_spec = spec.text("boundary", "periodic");
        assert_close(measured(&periodic_spec, 1000), periodic, Tolerance::decimals(2));
        assert_close(periodic, theory(parameter), Tolerance::new(0.005, 2e-4));
    }
}

#[test]
fn proposition_2_gaussian() {
    let rows = [(0.1, 2.88, 2.82), (0.01, 28.08, 28.21), (0.001, 282.00, 282.12)];
    check_proposition("gaussian", "sigma", &rows, gaussian_stable_rank);
}

#[test]
fn proposition_4_rectangle() {
    let rows = [(0.201, 4.87, 4.98), (0.051, 19.40, 19.61), (0.011, 90.67, 90.91)];
    check_proposition("rectangle", "width", &rows, rectangle_stable_rank);
}

#[test]
fn proposition_5_triangle() {
    let rows = [(0.201, 6.57, 6.63), (0.051, 26.00, 26.14), (0.021, 63.34, 63.49)];
    check_proposition("triangle", "width", &rows, triangle_stable_rank);
}

#[test]
fn the_minimum_is_an_envelope() {
    // Errata E-R5: σ = 0.01, d = 1000, periodic; the formula and the singular values.
    let spec = spec("gaussian", 1000, "sigma", 0.01).text("boundary", "periodic");
    for (n, expected) in [
        (8, 8.00),
        (16, 16.00),
        (24, 23.39),
        (28, 25.87),
        (32, 27.25),
        (48, 28.20),
        (64, 28.21),
        (128, 28.21),
    ] {
        let exact = exact_stable_rank(n, periodized(|delta| gaussian_law(0.01, delta)));
        assert_close(exact, expected, Tolerance::decimals(2));
        assert_close(measured(&spec, n), exact, Tolerance::relative(2e-4));
    }
    let rff = |n| exact_stable_rank(n, periodized(|delta| rff_law(10.0, delta)));
    assert_close(rff(24), 22.54, Tolerance::decimals(2));
    assert_close(rff(28), 24.11, Tolerance::decimals(2));
    // The corner, N = bound, is the worst case: 1/1.0864 of the minimum.
    let corner =
        exact_stable_rank(100, periodized(|delta| rff_law(100.0 / (2.0 * PI).sqrt(), delta)));
    assert_close(corner / 100.0, 1.0 / 1.0864, Tolerance::decimals(4));
}

/// Catches the row sum of D in place of its largest eigenvalue, which is impossible if D has negative values, and a law of embedders whose
/// D is not periodic.
#[test]
fn laws_with_negative_values_are_stable_ranks() {
    let law = |spec: &EmbedderSpec, n: usize| {
        let embedder = built(spec);
        exact_stable_rank(n, periodized(|delta| embedder.distance_law(delta).unwrap()))
    };
    for (kind, limit) in [("sine", 2.0), ("square", PI * PI / 4.0)] {
        let spec = EmbedderSpec::new(kind).number("dimension", 2000.0);
        for n in [1, 2, 5, 20, 40, 200, 1000] {
            assert_close(law(&spec, n), measured(&spec, n), Tolerance::relative(1e-9));
        }
        assert_close(law(&spec, 1000), limit, Tolerance::relative(1e-5));
    }
    for n in [5, 16, 64] {
        assert!(law(&spec("linf", 64, "sigma", 2.0), n).is_nan(), "{n}");
        assert!(law(&spec("logf", 64, "sigma", 2.0), n).is_nan(), "{n}");
    }
    assert_close(measured(&spec("linf", 64, "sigma", 2.0), 64), 6.195, Tolerance::decimals(2));
}

#[test]
fn proposition_3_for_infinitely_many_frequencies() {
    for (sigma, open) in [
        (1.0, 2.74),
        (2.0, 5.15),
        (5.0, 12.59),
        (10.0, 25.10),
        (20.0, 50.15),
        (40.0, 100.27),
        (70.0, 175.47),
        (100.0, 250.67),
    ] {
        let row: Vec<f64> = (0..1000).map(|j| rff_law(sigma, f64::from(j) / 1000.0)).collect();
        assert_close(toeplitz_stable_rank(&row).unwrap(), open, Tolerance::decimals(2));
        let periodic = exact_stable_rank(1000, periodized(|delta| rff_law(sigma, delta)));
        assert_close(periodic, rff_stable_rank(sigma), Tolerance::relative(1e-4));
    }
}

#[test]
fn a_layer_with_bias_memorizes_only_full_rank_features() {
    let mut rng = stream(4, "targets");
    let y = gaussian_vector(&mut rng, 12);
    let features = gaussian_vector(&mut rng, 12 * 12);
    let residual = |x: Mat<f64>| memorization_residual(x.as_ref(), &y, 1e-10).unwrap();
    // Rank 11 suffices: the bias adds the vector of ones.
    for (d, memorizes) in [(12, true), (11, true), (10, false)] {
        let residual = residual(Mat::from_fn(12, d, |i, j| features[12 * j + i]));
        assert_eq!(residual < 1e-10, memorizes, "{d}: {residual}");
    }
    // Rank 11 does not suffice if the range contains the ones: here every row sums to 1.
    assert!(residual(Mat::from_fn(12, 11, |i, j| f64::from(u8::from(i.min(10) == j)))) > 1e-3);
}

#[test]
fn broken_matrices_are_errors() {
    let refused = |x: Mat<f64>, y: &[f64]| {
        memorization_residual(x.as_ref(), y, 1e-10).unwrap_err().to_string()
    };
    assert!(refused(Mat::zeros(0, 3), &[]).contains("0 x 3"));
    let broken = Mat::from_fn(2, 2, |i, _| if i == 1 { f64::NAN } else { 1.0 });
    assert!(refused(broken, &[1.0; 2]).contains("sample 1"));
    assert_eq!(refused(Mat::zeros(3, 1), &[1.0]), "expected one value per row, got 1 for 3 rows");
}

proptest! {
    #[test]
    fn the_gaussian_lies_on_the_trade_off_curve(sigma in 1e-4_f64..0.2, k in 0.5_f64..4.0) {
        // Prop. 2: l = 2σ√(k ln 10).
        let l = 2.0 * sigma * (k * LN_10).sqrt();
        // D at the end of the interval is 10^-k, and the trade-off curve passes through the bound.
        let end = gaussian_law(sigma, l);
        prop_assert!(Tolerance::relative(1e-12).accepts(end, 10f64.powf(-k)));
        let rank = stable_rank_for_interval(l, k);
        prop_assert!(Tolerance::relative(1e-13).accepts(rank, gaussian_stable_rank(sigma)));
    }

    #[test]
    fn laws_are_autocorrelations(width in 0.01_f64..1.0, delta in -2.0_f64..2.0) {
        for law in [triangle_law, rectangle_law] {
            let value = law(width, delta * width);
            prop_assert!((0.0..=1.0).contains(&value));
            prop_assert_eq!(value, law(width, -delta * width));
        }
        prop_assert!(Tolerance::absolute(1e-15).accepts(triangle_law(width, width), 0.0));
    }

    #[test]
    fn exact_stable_ranks_lie_below_the_minimum(sigma in 0.005_f64..0.08, n in 1_usize..200) {
        // Poisson summation: the denominator exceeds both limits.
        let rank = exact_stable_rank(n, periodized(|delta| gaussian_law(sigma, delta)));
        let minimum = gaussian_stable_rank(sigma).min(n as f64);
        prop_assert!(rank <= minimum * (1.0 + 1e-12));
        prop_assert!(rank >= minimum / 1.0865);
    }
}
