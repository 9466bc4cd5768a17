use super::super::tests::{
    check_close, entries, fourier, narrow, of_rank, random, reference_inverse, widen,
};
use super::super::{Factorization, Solver};
use crate::tolerance::{Tolerance, assert_all_close};
use faer::Mat;
use proptest::prelude::*;

/// Reference results of LAPACK's xGELSY (SciPy 1.17.1), with pivoting and with a fixed column order: rank and solution for the
/// right-hand side `b_i = i² mod 7 − 3`.
struct Gelsy {
    psi: Mat<f64>,
    rcond: f64,
    pivoted: (usize, &'static [f64]),
    fixed: (usize, &'static [f64]),
}

fn gelsy_examples() -> Vec<Gelsy> {
    let hilbert = |n, k| Mat::from_fn(n, k, |i, j| 1.0 / (i + j + 1) as f64);
    let rank_two = [
        [1.0, 2.0, 3.0, 4.0],
        [2.0, 4.0, 6.0, 8.0],
        [1.0, 0.0, 1.0, 0.0],
        [0.0, 2.0, 2.0, 4.0],
        [3.0, 2.0, 5.0, 4.0],
    ];
    let of_rank_two =
        &[0.18957871396895787, -0.15964523281596452, 0.029933481152993435, -0.31929046563192903];
    vec![
        Gelsy {
            psi: Mat::from_fn(5, 4, |i, j| rank_two[i][j]),
            rcond: 1e-6,
            pivoted: (2, of_rank_two),
            fixed: (2, of_rank_two),
        },
        Gelsy {
            psi: hilbert(8, 6),
            rcond: 1e-4,
            pivoted: (
                4,
                &[
                    153.0992108152601,
                    -1244.7606107479394,
                    1340.2357165780375,
                    1102.1844334091763,
                    -91.6115644931213,
                    -1426.147952580214,
                ],
            ),
            fixed: (
                4,
                &[
                    152.53535549999458,
                    -1240.8054359957523,
                    1337.3937913494265,
                    1097.070214516914,
                    -92.71600973079177,
                    -1419.9528718384352,
                ],
            ),
        },
        Gelsy {
            psi: hilbert(5, 8),
            rcond: 1e-3,
            pivoted: (
                3,
                &[
                    -8.879277840323756,
                    13.179685132356113,
                    6.579989060565726,
                    0.9027989015344065,
                    -2.7778397972693685,
                    -5.071740421552253,
                    -6.486078230091849,
                    -7.34436479282537,
                ],
            ),
            fixed: (
                3,
                &[
                    -5.759315051022688,
                    5.032479292033702,
                    2.8661080190832404,
                    0.7708852139431361,
                    -0.6285594995117578,
                    -1.5180127551790183,
                    -2.0774065986669763,
                    -2.425582904997123,
                ],
            ),
        },
        Gelsy {
            psi: fourier(12, 12, |t| 1.0 + 2.0 * t),
            rcond: 1e-3,
            pivoted: (
                11,
                &[
                    10.176516081767637,
                    69.40579562611268,
                    -150.6289447976732,
                    -16.229745924228894,
                    76.39452552459966,
                    -7.516212766812425,
                    -19.92636034717528,
                    66.73019197090873,
                    73.1962751241266,
                    -155.58038053228935,
                    18.470518687332312,
                    14.11498021189093,
                ],
            ),
            fixed: (
                10,
                &[
                    2.9515905932552644,
                    -4.806407522000069,
                    -3.3497648609467285,
                    -7.482821007326263,
                    -0.6255683763892619,
                    6.061471276670831,
                    3.7801195917852337,
                    4.464261961294026,
                    -0.7650792094659682,
                    -0.4404325400765057,
                    -9.891753012263285,
                    -0.16446623143364114,
                ],
            ),
        },
    ]
}

/// Catches a rank rule other than LAPACK's, a lost permutation, and a basic solution instead of the one of least norm.
#[test]
fn solvers_by_qr_agree_with_gelsy() {
    for example in gelsy_examples() {
        let Gelsy { psi, rcond, pivoted, fixed } = example;
        let right = Mat::from_fn(psi.nrows(), 1, |i, _| ((i * i) % 7) as f64 - 3.0);
        for (solver, (rank, expected)) in
            [(Solver::PivotedQr, pivoted), (Solver::FixedOrderQr, fixed)]
        {
            let size = expected.iter().fold(0.0_f64, |most, v| most.max(v.abs()));
            let double = Factorization::with_solver(psi.as_ref(), rcond, solver).unwrap();
            let single = Factorization::with_solver(narrow(&psi).as_ref(), rcond, solver).unwrap();
            assert_eq!((double.report().rank, single.report().rank), (rank, rank), "{solver:?}");
            let solution = entries(&(double.pseudo_inverse() * &right));
            assert_all_close(&solution, expected, Tolerance::absolute(1e-9 * size));
            let solution = entries(&(widen(&single.pseudo_inverse()) * &right));
            assert_all_close(&solution, expected, Tolerance::absolute(1e-3 * size));
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
