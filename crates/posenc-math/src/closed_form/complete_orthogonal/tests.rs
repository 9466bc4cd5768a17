use super::super::tests::{check_close, fourier, reference_inverse};
use super::super::{Factorization, Solver};
use crate::testing::{entries, narrow, of_rank, random, widen};
use crate::tolerance::{Tolerance, assert_all_close};
use faer::Mat;
use proptest::prelude::*;
use serde::Deserialize;

/// Rank and solution by LAPACK's xGELSY for the right-hand side `b_i = i² mod 7 − 3`.
#[derive(Deserialize)]
struct Solved {
    rank: usize,
    solution: Vec<f64>,
}

#[derive(Deserialize)]
struct Example {
    psi: Vec<Vec<f64>>,
    rcond: f64,
    pivoted: Solved,
    fixed: Solved,
}

/// Made by `benches/peers/gelsy_examples.py`.
#[derive(Deserialize)]
struct Examples {
    examples: Vec<Example>,
}

/// Catches a rank rule other than LAPACK's, a lost permutation, and a basic solution instead of the one of least norm.
#[test]
fn solvers_by_qr_agree_with_gelsy() {
    let text = include_str!("../../../tests/data/gelsy_examples.json");
    let Examples { examples } = serde_json::from_str(text).unwrap();
    assert_eq!(examples.len(), 4);
    for Example { psi, rcond, pivoted, fixed } in examples {
        let psi = Mat::from_fn(psi.len(), psi[0].len(), |i, j| psi[i][j]);
        let right = Mat::from_fn(psi.nrows(), 1, |i, _| ((i * i) % 7) as f64 - 3.0);
        for (solver, Solved { rank, solution: expected }) in
            [(Solver::PivotedQr, pivoted), (Solver::FixedOrderQr, fixed)]
        {
            let size = expected.iter().fold(0.0_f64, |most, v| most.max(v.abs()));
            let double = Factorization::with_solver(psi.as_ref(), rcond, solver).unwrap();
            let single = Factorization::with_solver(narrow(&psi).as_ref(), rcond, solver).unwrap();
            assert_eq!((double.report().rank, single.report().rank), (rank, rank), "{solver:?}");
            let solution = entries(&(double.pseudo_inverse() * &right));
            assert_all_close(&solution, &expected, Tolerance::absolute(1e-9 * size));
            let solution = entries(&(widen(&single.pseudo_inverse()) * &right));
            assert_all_close(&solution, &expected, Tolerance::absolute(1e-3 * size));
        }
    }
}

/// Ranks of LinF and LogF of trading's Table 1 by sgelsy and dgelsy (SciPy 1.17.1). Catches column lengths that lose all digits
/// to repeated updates in single precision.
#[test]
fn ranks_of_published_encoders_are_those_of_gelsy() {
    let linear = fourier(256, 256, |t| 1.0 + 63.0 * t);
    let logarithmic = fourier(256, 256, |t| 2.0_f64.powf(6.5 * t));
    let rcond = f64::from(f32::EPSILON) * 256.0;
    for (psi, pivoted, fixed) in [(linear, 140, 131), (logarithmic, 129, 4)] {
        for (solver, rank) in [(Solver::PivotedQr, pivoted), (Solver::FixedOrderQr, fixed)] {
            let double = Factorization::with_solver(psi.as_ref(), rcond, solver).unwrap();
            let single = Factorization::with_solver(narrow(&psi).as_ref(), rcond, solver).unwrap();
            assert_eq!((double.report().rank, single.report().rank), (rank, rank), "{solver:?}");
        }
    }
}

/// Catches a solver that differs from the definition for matrices of clear rank, and a zero matrix whose rank is not 0.
#[test]
fn solvers_agree_where_the_rank_is_clear() {
    for solver in [Solver::TruncatedSvd, Solver::PivotedQr, Solver::FixedOrderQr] {
        for psi in [random(9, 6, 1), random(6, 9, 2), random(7, 7, 3), of_rank(9, 8, 3, 4)] {
            let factorization = Factorization::with_solver(psi.as_ref(), 1e-9, solver).unwrap();
            let (expected, rank) = reference_inverse(&psi, 1e-9);
            assert_eq!(factorization.report().rank, rank, "{solver:?}");
            let inverse = factorization.pseudo_inverse();
            check_close(&inverse, &expected, Tolerance::absolute(1e-9));
        }
        let zero = Mat::<f64>::zeros(4, 3);
        let factorization = Factorization::with_solver(zero.as_ref(), 1e-9, solver).unwrap();
        assert_eq!(factorization.report().rank, 0);
        assert!(entries(&factorization.pseudo_inverse()).iter().all(|v| *v == 0.0));
        let error = Factorization::with_solver(zero.as_ref(), 1.0, solver).unwrap_err();
        assert!(error.to_string().starts_with("rcond is 1;"), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    // Catches a condition estimate of a tall matrix that exceeds the true value, or that is too low by a factor above 20.
    #[test]
    fn condition_estimates_are_close(extra in 0..6usize, k in 2..12usize, seed in 0..10_000u64) {
        let psi = random(k + extra, k, seed);
        let report = Factorization::with_solver(psi.as_ref(), 0.0, Solver::PivotedQr).unwrap().report().clone();
        let svd = psi.thin_svd().expect("small matrices converge");
        let values: Vec<f64> = svd.S().column_vector().iter().copied().collect();
        let truth = values[0] / values[k - 1];
        prop_assert_eq!(report.rank, k);
        prop_assert!(report.condition <= truth * (1.0 + 1e-9));
        prop_assert!(report.condition >= truth / 20.0);
    }
}
