use super::*;
use crate::testing::{self, entries, gaussian, narrow, of_rank, random, shifted, times, widen};
use crate::tolerance::{Tolerance, assert_all_close, assert_close};
use faer::Mat;
use faer::linalg::solvers::DenseSolveCore as _;
use proptest::prelude::*;
use std::f64::consts::TAU;

/// Triangle of half width `d`, as in the authors' scripts.
fn triangle(n: usize, k: usize, d: f64) -> Mat<f64> {
    shifted(n, k, |delta| (1.0 - delta.abs() / d).max(0.0))
}

/// K/2 sines, then K/2 cosines.
pub(super) fn fourier(n: usize, k: usize, frequency: impl Fn(f64) -> f64) -> Mat<f64> {
    let half = k / 2;
    Mat::from_fn(n, k, |i, j| {
        let angle = TAU * frequency((j % half) as f64 / (half - 1) as f64) * i as f64 / n as f64;
        if j < half { angle.sin() } else { angle.cos() }
    })
}

#[track_caller]
pub(super) fn check_close(actual: &Mat<f64>, expected: &Mat<f64>, tolerance: Tolerance) {
    assert_all_close(&entries(actual), &entries(expected), tolerance);
}

/// The definition: all singular values of the whole matrix, those at or below the cutoff left out.
pub(super) fn reference_inverse(psi: &Mat<f64>, rcond: f64) -> (Mat<f64>, usize) {
    let svd = psi.thin_svd().expect("small matrices converge");
    let values: Vec<f64> = svd.S().column_vector().iter().copied().collect();
    let rank = values.iter().filter(|&&value| value > rcond * values[0]).count();
    let scaled = Mat::from_fn(psi.ncols(), rank, |i, l| svd.V()[(i, l)] / values[l]);
    (scaled * svd.U().subcols(0, rank).transpose(), rank)
}

fn check_against_reference(psi: &Mat<f64>, tolerance: Tolerance) -> RankReport {
    let factorization = Factorization::new(psi.as_ref()).expect("valid input");
    let report = factorization.report().clone();
    let (expected, rank) = reference_inverse(psi, default_rcond(psi.nrows(), psi.ncols()));
    assert_eq!(report.rank, rank, "{report:?}");
    check_close(&factorization.pseudo_inverse(), &expected, tolerance);
    report
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    // Catches a lost permutation, a transposed factor and a wrong truncation, in tall, wide and square
    // matrices of full and deficient rank.
    #[test]
    fn pseudo_inverse_equals_the_definition(n in 1..12usize, k in 1..12usize, lost in 0..4usize, seed in 0..10_000u64) {
        let rank = n.min(k).saturating_sub(lost).max(1);
        let psi = of_rank(n, k, rank, seed);
        check_against_reference(&psi, Tolerance::new(1e-8, 1e-8));
    }

    // Catches even and odd halves that are assembled wrongly, also if one of them is singular, and
    // halves with different cutoffs.
    #[test]
    fn centrosymmetric_matrices_equal_the_definition(n in 1..7usize, k in 1..7usize, rank in 1..7usize, seed in 0..10_000u64) {
        let (n, k) = (2 * n, 2 * k);
        let a = of_rank(n, k, rank, seed);
        let psi = Mat::from_fn(n, k, |i, j| a[(i, j)] + a[(n - 1 - i, k - 1 - j)]);
        let report = check_against_reference(&psi, Tolerance::new(1e-8, 1e-8));
        prop_assert!(report.even_odd);
    }

    // Catches a bound of the fast path that is too small; it may be loose.
    #[test]
    fn the_condition_number_is_a_bound(n in 2..12usize, k in 2..12usize, seed in 0..10_000u64) {
        let psi = random(n, k, seed);
        let report = Factorization::new(psi.as_ref()).unwrap().report().clone();
        let values = psi.singular_values().unwrap();
        let truth = values[0] / values[values.len() - 1];
        let condition = report.condition;
        if report.method == Method::CertifiedQr {
            prop_assert!(condition >= truth * (1.0 - 1e-12) && condition * default_rcond(n, k) < 1.0);
        } else {
            assert_close(condition, truth, Tolerance::relative(1e-6));
        }
    }

    // trading, Eqs. 11 and 12: the separable solution is the least-squares solution of least norm of
    // the written-out Kronecker system, also for M ≠ N and deficient factors.
    #[test]
    fn solutions_equal_dense_least_squares(
        n in prop::collection::vec(2..6usize, 1..4), k in prop::array::uniform3(1..4usize), lost in 0..2usize, seed in 0..10_000u64,
    ) {
        let psi: Vec<Mat<f64>> = n.iter().zip(k).zip(seed..).map(|((&n, k), seed)| {
            of_rank(n, k, n.min(k).saturating_sub(lost).max(1), 10 * seed)
        }).collect();
        let factors: Vec<_> = psi.iter().map(|psi| Factorization::new(psi.as_ref()).unwrap()).collect();
        let signal = entries(&random(n.iter().product(), 1, seed + 3));
        let w = solve(&factors.iter().collect::<Vec<_>>(), std::slice::from_ref(&signal)).unwrap().remove(0);
        let system = testing::kronecker(&psi);
        // 1e-9 instead of the default: the cutoffs of the factors do not correspond to one of the product.
        let (inverse, _) = reference_inverse(&system, 1e-9);
        assert_all_close(&w, &times(&inverse, &signal), Tolerance::new(1e-6, 1e-6));
        let views: Vec<_> = psi.iter().map(Mat::as_ref).collect();
        let predicted = predict(&views, std::slice::from_ref(&w)).unwrap().remove(0);
        assert_all_close(&predicted, &times(&system, &w), Tolerance::new(1e-9, 1e-9));
    }
}

#[test]
fn numerical_ranks_of_the_published_encoders_in_single_precision() {
    // Protocol sheet, "Closed form": K = N with the scripts' cutoff. PyTorch 2.15's
    // `torch.linalg.lstsq(...).rank` on the CPU gives 57, 140, 129 and 256 for the first five too.
    let linear = |top: f64| move |u: f64| 1.0 + u * (top - 1.0);
    let cases = [
        ("LinF 4.5", fourier(256, 256, linear(4.5f64.exp2())), 57),
        ("LinF 6", fourier(256, 256, linear(64.0)), 140),
        ("LogF 6.5", fourier(256, 256, |u| (6.5 * u).exp2()), 129),
        ("Gau 0.004", gaussian(256, 256, 0.004), 256),
        ("Gau 0.0025", gaussian(256, 256, 0.0025), 256),
        ("LinF 3", fourier(64, 64, linear(8.0)), 26),
        ("LinF 4", fourier(64, 64, linear(16.0)), 42),
        ("LogF 3", fourier(64, 64, |u| (3.0 * u).exp2()), 25),
    ];
    for (name, psi, rank) in cases {
        let report = Factorization::new(narrow(&psi).as_ref()).unwrap().report().clone();
        assert_eq!(report.rank, rank, "{name}: {report:?}");
        let certified = report.method == Method::CertifiedQr;
        assert_eq!(certified, rank == psi.ncols(), "{name}: {report:?}");
    }
}

#[test]
fn a_nearly_singular_triangle_uses_the_singular_values() {
    // Protocol sheet: Tri 2/256 has full rank with condition number 2.7e4, close to 1/rcond = 3.3e4.
    let psi = narrow(&triangle(256, 256, 2.0 / 256.0));
    let report = Factorization::new(psi.as_ref()).unwrap().report().clone();
    assert_eq!((report.rank, report.method), (256, Method::SingularValues));
    assert_close(report.condition, 2.677e4, Tolerance::relative(0.03));
}

#[test]
fn single_precision_of_the_even_odd_path_agrees_with_double() {
    // Catches a wrong factor in the butterflies, which causes errors by powers of two.
    let psi = gaussian(64, 64, 0.012);
    let single = Factorization::new(narrow(&psi).as_ref()).unwrap();
    assert!(single.report().even_odd && single.report().method == Method::CertifiedQr);
    let (expected, _) = reference_inverse(&psi, 1e-5);
    assert_all_close(
        &entries(&widen(&single.pseudo_inverse())),
        &entries(&expected),
        Tolerance::new(1e-4, 1e-3),
    );
}

#[test]
fn one_changed_bit_leaves_the_even_odd_path() {
    let mut psi = gaussian(16, 16, 0.05);
    psi[(3, 5)] = psi[(3, 5)].next_up();
    let broken = Factorization::new(psi.as_ref()).unwrap();
    assert!(!broken.report().even_odd);
    let whole = Factorization::new(gaussian(16, 16, 0.05).as_ref()).unwrap();
    assert!(whole.report().even_odd);
    check_close(&broken.pseudo_inverse(), &whole.pseudo_inverse(), Tolerance::new(1e-7, 1e-7));
}

#[test]
fn channels_have_the_same_bits_together_and_alone() {
    // Callers rely on this to distribute channels over any number of threads.
    let factorization = Factorization::new(narrow(&gaussian(64, 64, 0.01)).as_ref()).unwrap();
    let random = |length, c| -> Vec<f32> {
        random(length, 1, c).col_as_slice(0).iter().map(|v| *v as f32).collect()
    };
    let channels: Vec<_> = (0..5).map(|c| random(64 * 64, c)).collect();
    let together = solve(&[&factorization; 2], &channels).unwrap();
    for (channel, expected) in channels.iter().zip(&together) {
        assert_eq!(
            &solve(&[&factorization; 2], std::slice::from_ref(channel)).unwrap()[0],
            expected
        );
    }
    // Catches results that depend on the old contents or size of reused memory.
    let mut solver = Separable::solver(&[&factorization; 2]);
    let mut weights = random(210, 1);
    for (channel, expected) in channels.iter().zip(&together) {
        solver.apply_into(channel, &mut weights).unwrap();
        assert_eq!(&weights, expected);
    }
}

#[test]
fn a_zero_matrix_has_rank_zero_and_zero_weights() {
    for (n, k) in [(4, 4), (5, 3), (3, 5)] {
        let factorization = Factorization::new(Mat::<f64>::zeros(n, k).as_ref()).unwrap();
        assert_eq!((factorization.report().rank, factorization.report().condition), (0, 1.0));
        let w = solve(&[&factorization; 2], &[entries(&random(n, n, 1))]).unwrap();
        assert_eq!(w[0], vec![0.0; k * k]);
    }
}

#[test]
fn diagonal_matrices_equal_the_definition() {
    // One entry is negative and one is negligible. A rectangular matrix must not take this path.
    let psi = Mat::from_fn(4, 4, |i, j| if i == j { [2.0, -0.5, 1e-9, 1.0][i] } else { 0.0 });
    let report = check_against_reference(&psi, Tolerance::EXACT);
    assert_eq!((report.method, report.rank), (Method::Diagonal, 3));
    assert_close(report.condition, 4.0, Tolerance::EXACT);
    let tall = Mat::from_fn(5, 4, |i, j| if i == j { 1.0 } else { 0.0 });
    assert_ne!(check_against_reference(&tall, Tolerance::absolute(1e-12)).method, Method::Diagonal);
    // Rectangular channel: every entry is scaled by its row's and its column's reciprocal.
    let factorization = Factorization::new(
        Mat::from_fn(20, 20, |i, j| if i == j { (i + 1) as f64 } else { 0.0 }).as_ref(),
    )
    .unwrap();
    let other = Factorization::new(random(18, 5, 1).as_ref()).unwrap();
    let signal = entries(&random(20, 18, 2));
    let w = solve(&[&factorization, &other], std::slice::from_ref(&signal)).unwrap().remove(0);
    let inverses = [factorization.pseudo_inverse(), other.pseudo_inverse()];
    let expected = times(&testing::kronecker(&inverses), &signal);
    assert_all_close(&w, &expected, Tolerance::absolute(1e-12));
}

#[test]
fn the_cutoff_decides_the_rank() {
    let psi = Mat::from_fn(3, 3, |i, j| if i == j { [1.0, 1e-3, 1e-6][i] } else { 0.0 });
    // The same singular values without the diagonal shape.
    let turned = Mat::from_fn(3, 3, |i, j| psi[(i, (j + 1) % 3)]);
    let factored = |psi: &Mat<f64>, rcond| {
        Factorization::with_solver(psi.as_ref(), rcond, Solver::TruncatedSvd)
    };
    for psi in [&psi, &turned] {
        let ranks = [0.0, 1e-4, 1e-2].map(|rcond| factored(psi, rcond).unwrap().report().rank);
        assert_eq!(ranks, [3, 2, 1]);
    }
    assert!(factored(&psi, 1.0).unwrap_err().to_string().starts_with("rcond is 1;"));
    assert!(factored(&psi, f64::NAN).is_err());
}

#[test]
fn errors_name_the_invalid_input() {
    let message = |error: Error| error.to_string();
    let empty = message(Factorization::new(Mat::<f64>::zeros(0, 3).as_ref()).unwrap_err());
    assert!(empty.contains("0×3"), "{empty}");
    let mut psi = random(4, 3, 1);
    psi[(2, 1)] = f64::NAN;
    let not_finite = message(Factorization::new(psi.as_ref()).unwrap_err());
    assert!(not_finite.contains("NaN at row 2, column 1"), "{not_finite}");

    let (rows, columns) = (random(4, 3, 1), random(5, 2, 2));
    let (y, x) =
        (Factorization::new(rows.as_ref()).unwrap(), Factorization::new(columns.as_ref()).unwrap());
    let (good, short) = (vec![0.5; 20], vec![0.5; 16]);
    let shape = message(solve(&[&y, &x], &[good.clone(), short.clone()]).unwrap_err());
    assert!(
        ["channel 1 has 16 values", "4×3, 5×2", "need 4×5"].iter().all(|part| shape.contains(part)),
        "{shape}"
    );
    let weights = message(predict(&[rows.as_ref(), columns.as_ref()], &[good]).unwrap_err());
    assert!(
        ["weights 0 has 20 values", "need 3×2"].iter().all(|part| weights.contains(part)),
        "{weights}"
    );
    assert!(predict(&[psi.as_ref(), columns.as_ref()], &[vec![0.5; 6]]).is_err());
    let mut cube = vec![0.0; 80];
    cube[20 + 4 * 4 + 2] = f64::INFINITY;
    let not_finite = message(solve(&[&y, &x, &y], &[cube]).unwrap_err());
    assert!(not_finite.contains("inf at [1, 4, 2]"), "{not_finite}");
}

/// Catches a soft cutoff that a shortcut bypasses, or that enters without its square.
#[test]
fn ridge_damps_singular_values() {
    let cutoff = 0.05;
    for psi in [
        random(9, 6, 1),
        of_rank(8, 10, 3, 2),
        gaussian(12, 12, 0.2),
        triangle(6, 6, 1.0 / 6.0),
        fourier(16, 12, |t| 1.0 + 5.0 * t),
    ] {
        let svd = psi.thin_svd().unwrap();
        let values: Vec<f64> = svd.S().column_vector().iter().copied().collect();
        let c = cutoff * values[0];
        let damped = Mat::from_fn(psi.ncols(), values.len(), |i, l| {
            svd.V()[(i, l)] * values[l] / (values[l] * values[l] + c * c)
        });
        let wanted = damped * svd.U().transpose();
        let factorization =
            Factorization::with_solver(psi.as_ref(), cutoff, Solver::Ridge).unwrap();
        check_close(&factorization.pseudo_inverse(), &wanted, Tolerance::new(1e-9, 1e-9));
    }
    let zero = Mat::<f64>::zeros(4, 3);
    let factorization = Factorization::with_solver(zero.as_ref(), cutoff, Solver::Ridge).unwrap();
    assert!(entries(&factorization.pseudo_inverse()).iter().all(|&value| value == 0.0));
}

/// Catches scores that differ from those of a Gaussian process with the explicit covariance.
#[test]
fn ridge_scores_by_their_definitions() {
    let (n, ridge) = (6, 1e-3);
    let full = Mat::from_fn(2 * n, n, |i, j| {
        (-(i as f64 / 2.0 - j as f64).powi(2) / (2.0 * 0.9 * 0.9)).exp()
    });
    let psi = Mat::from_fn(n, n, |i, j| full[(2 * i, j)]);
    let axis = RidgeAxis::new(psi.as_ref(), full.as_ref()).unwrap();
    let gram = &psi * psi.transpose();
    let largest = psi.thin_svd().unwrap().S().column_vector()[0].powi(2);
    let one = Mat::from_fn(n, n, |i, j| gram[(i, j)] + if i == j { ridge * largest } else { 0.0 });
    let cross = &full * psi.transpose();
    for (is_image, kind) in
        [(false, Ridge::Axes(ridge)), (true, Ridge::Axes(ridge)), (true, Ridge::Samples(ridge))]
    {
        let samples = random(n, if is_image { n } else { 1 }, 7);
        let channels = std::slice::from_ref(&samples);
        let fit = match is_image {
            true => RidgeFit::image(&axis, channels).unwrap(),
            false => RidgeFit::line(&axis, channels).unwrap(),
        };
        let squared = |m: &Mat<f64>| testing::kronecker(&[m.clone(), m.clone()]);
        let (mut covariance, cross) = match (is_image, kind) {
            (false, _) => (one.clone(), cross.clone()),
            (true, Ridge::Axes(_)) => (squared(&one), squared(&cross)),
            (true, Ridge::Samples(_)) => (squared(&gram), squared(&cross)),
        };
        let m = covariance.nrows();
        if kind == Ridge::Samples(ridge) {
            (0..m).for_each(|i| covariance[(i, i)] += ridge * largest * largest);
        }
        let s = Mat::from_fn(m, 1, |i, _| entries(&samples)[i]);
        let inverse = covariance.partial_piv_lu().inverse();
        let solved = &inverse * &s;
        let predicted = entries(&fit.predict(kind)[0]);
        assert_all_close(&predicted, &entries(&(cross * &solved)), Tolerance::absolute(1e-8));
        let mean = |f: &dyn Fn(usize) -> f64| (0..m).map(f).sum::<f64>() / m as f64;
        let scores = fit.scores(kind);
        let left_out = mean(&|i| (solved[(i, 0)] / inverse[(i, i)]).powi(2)).ln();
        assert_close(scores.leave_one_out, left_out, Tolerance::absolute(1e-8));
        let trace = mean(&|i| inverse[(i, i)]);
        let generalized = (mean(&|i| solved[(i, 0)].powi(2)) / trace.powi(2)).ln();
        assert_close(scores.cross_validation, generalized, Tolerance::absolute(1e-8));
        let values = covariance.self_adjoint_eigenvalues(faer::Side::Lower).unwrap();
        let determinant = values.iter().map(|value| value.ln()).sum::<f64>() / m as f64;
        let energy = mean(&|i| s[(i, 0)] * solved[(i, 0)]).ln();
        assert_close(scores.likelihood, energy + determinant, Tolerance::absolute(1e-8));
        if !is_image {
            // Leave-one-out error of sample 2, predicted from the other samples.
            let others: Vec<usize> = (0..n).filter(|&i| i != 2).collect();
            let rest = Mat::from_fn(n - 1, n - 1, |i, j| one[(others[i], others[j])]);
            let values = Mat::from_fn(n - 1, 1, |i, _| samples[(others[i], 0)]);
            let weights = rest.partial_piv_lu().inverse() * values;
            let prediction: f64 = (0..n - 1).map(|i| one[(2, others[i])] * weights[(i, 0)]).sum();
            assert_close(
                samples[(2, 0)] - prediction,
                solved[(2, 0)] / inverse[(2, 2)],
                Tolerance::absolute(1e-8),
            );
        }
    }
    assert!(RidgeFit::image(&axis, &[random(n, 1, 3)]).is_err());
    // The right number of samples in the wrong shape.
    let refused = RidgeFit::line(&axis, &[random(2, n / 2, 3)]).unwrap_err().to_string();
    assert!(refused.ends_with("expected 6×1, got 2×3"), "{refused}");
    assert!(RidgeFit::image(&axis, &[random(4, n * n / 4, 3)]).is_err());
}
