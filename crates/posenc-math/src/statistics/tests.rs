//! Expected numbers without another note are from scipy 1.17.1, called as the test names it.

use super::*;
use crate::tolerance::{Tolerance, assert_close};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const A: [f64; 6] = [24.1, 26.3, 22.8, 25.0, 27.4, 23.9];
const B: [f64; 6] = [23.6, 25.1, 23.0, 24.2, 26.1, 23.5];
const NARROW: Tolerance = Tolerance::relative(1e-9);

fn mean_unchecked(sample: &[f64]) -> f64 {
    sample.iter().sum::<f64>() / sample.len() as f64
}

#[test]
fn mean_and_standard_deviations() {
    // numpy: mean(), std(), std(ddof=1).
    assert_close(mean(&A).unwrap(), 24.916_666_666_666_668, NARROW);
    assert_close(population_std(&A).unwrap(), 1.542_094_535_220_054, NARROW);
    assert_close(sample_std(&A).unwrap(), 1.689_279_925_490_937, NARROW);
    assert_eq!(population_std(&[3.0]), Ok(0.0));
    assert_eq!(sample_std(&[3.0]), Err(Undefined::TooFew { needed: 2, found: 1 }));
    assert_eq!(mean(&[]), Err(Undefined::TooFew { needed: 1, found: 0 }));
    // 0.1 + 0.1 + 0.1 is not 3 · 0.1: the spread must still be exactly zero.
    assert_eq!(sample_std(&[0.1; 3]), Ok(0.0));
    assert!(matches!(mean(&[1.0, f64::NAN]), Err(Undefined::NotFinite { index: 1, .. })));
}

#[test]
fn t_interval_of_the_mean() {
    // stats.t.interval(level, 5, mean, s/√6).
    let interval = t_interval(&A, 0.95).unwrap();
    assert_close(interval.lower, 23.143_876_107_095_647, NARROW);
    assert_close(interval.upper, 26.689_457_226_237_69, NARROW);
    let wider = t_interval(&A, 0.99).unwrap();
    assert_close(wider.lower, 22.135_916_831_360_29, NARROW);
    assert_eq!(t_interval(&[0.1; 3], 0.95).map(|i| i.upper - i.lower), Ok(0.0));
    assert_eq!(t_interval(&[2.0], 0.95), Err(Undefined::TooFew { needed: 2, found: 1 }));
    for level in [0.0, 1.0, 95.0, f64::NAN] {
        assert!(matches!(t_interval(&A, level), Err(Undefined::Level { .. })), "{level}");
    }
}

#[test]
fn quantiles_and_tails_of_students_t() {
    // stats.t.ppf and stats.t.sf; statrs inverts numerically.
    for (level, df, expected) in [
        (0.95, 1.0, 12.706_204_736_174_694),
        (0.95, 4.0, 2.776_445_105_197_793_4),
        (0.99, 15.0, 2.946_712_883_475_238),
        (0.95, 1e4, 1.960_201_239_890_626),
        // The median of |t| with one degree of freedom is tan(π/4).
        (0.5, 1.0, 1.0),
    ] {
        assert_close(interval::t_quantile(level, df), expected, Tolerance::relative(1e-8));
    }
    // The last level below 1, at fractional degrees of freedom, still has a finite quantile.
    assert!(interval::t_quantile(1.0f64.next_down(), 3.5).is_finite());
    assert_close(two_sided_p(40.0, 5.0), 1.841_196_217_177_295_4e-7, NARROW);
    assert_close(two_sided_p(-12.0, 30.0), 5.580_185_415_199_261e-13, NARROW);
    assert_close(two_sided_p(0.0, 3.0), 1.0, Tolerance::EXACT);
    assert_close(two_sided_p(f64::INFINITY, 3.0), 0.0, Tolerance::EXACT);
}

#[test]
fn bootstrap_is_repeatable_and_near_the_normal_interval() {
    let run = |seed| {
        bootstrap_interval(&A, mean_unchecked, 0.95, 4000, &mut ChaCha8Rng::seed_from_u64(seed))
            .unwrap()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
    // mean ± 1.96 · population std / √n, with the coarseness of six values.
    let (center, half) = (mean_unchecked(&A), 1.96 * 1.542 / 6f64.sqrt());
    assert_close(run(1).lower, center - half, Tolerance::absolute(0.1));
    assert_close(run(1).upper, center + half, Tolerance::absolute(0.1));
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let single = bootstrap_interval(&[2.5], mean_unchecked, 0.9, 10, &mut rng).unwrap();
    assert_eq!((single.lower, single.upper), (2.5, 2.5));
    assert!(bootstrap_interval(&[], mean_unchecked, 0.9, 10, &mut rng).is_err());
    assert!(bootstrap_interval(&A, mean_unchecked, 0.9, 0, &mut rng).is_err());
    assert!(bootstrap_interval(&A, |_| f64::NAN, 0.9, 10, &mut rng).is_err());
}

#[test]
fn bootstrap_percentiles_interpolate() {
    // The statistic counts 0, 1, …, 10, whose 10th and 90th percentiles are 1 and 9.
    let counter = std::cell::Cell::new(-1.0);
    let count = |_: &[f64]| {
        counter.set(counter.get() + 1.0);
        counter.get()
    };
    let interval =
        bootstrap_interval(&A, count, 0.8, 11, &mut ChaCha8Rng::seed_from_u64(0)).unwrap();
    assert_close(interval.lower, 1.0, Tolerance::absolute(1e-12));
    assert_close(interval.upper, 9.0, Tolerance::absolute(1e-12));
}

#[test]
fn paired_test() {
    // stats.ttest_rel(A, B).
    let test = paired_t_test(&A, &B, 0.95).unwrap();
    assert_close(test.mean_difference, 2.0 / 3.0, NARROW);
    assert_close(test.t, 2.929_793_676_545_24, NARROW);
    assert_close(test.p, 0.032_640_562_489_303_75, NARROW);
    assert_close(test.interval.lower, 0.081_737_687_716_062_71, Tolerance::relative(1e-8));
    assert_close(test.interval.upper, 1.251_595_645_617_269_4, NARROW);
    assert_eq!(paired_t_test(&A, &B[..5], 0.95), Err(Undefined::Unpaired { left: 6, right: 5 }));
    assert_eq!(
        paired_t_test(&[2.0, 3.0], &[1.0, 2.0], 0.95),
        Err(Undefined::NoSpread { value: 1.0 })
    );
    assert_eq!(paired_t_test(&[2.0], &[1.0], 0.95), Err(Undefined::TooFew { needed: 2, found: 1 }));
    assert!(paired_t_test(&[f64::MAX, 1.0], &[f64::MIN, 2.0], 0.95).is_err());
}

#[test]
fn welch_test() {
    // stats.ttest_ind(A, c, equal_var=False).
    let test = welch_t_test(&A, &[20.1, 25.5, 21.7, 30.2], 0.95).unwrap();
    assert_close(test.t, 0.230_383_786_800_624_82, NARROW);
    assert_close(test.degrees_of_freedom, 3.572_416_857_588_946, NARROW);
    assert_close(test.p, 0.830_374_065_102_010_6, NARROW);
    assert_close(test.interval.lower, -6.306_159_155_441_391, Tolerance::relative(1e-8));
    assert_close(test.interval.upper, 7.389_492_488_774_727, Tolerance::relative(1e-8));
    assert_eq!(welch_t_test(&[1.0; 3], &[3.0; 2], 0.95), Err(Undefined::NoSpread { value: -2.0 }));
    // One constant sample is fine: only the other one's spread counts.
    assert_close(welch_t_test(&A, &[24.0; 4], 0.95).unwrap().degrees_of_freedom, 5.0, NARROW);
}

#[test]
fn signed_rank_test() {
    // stats.wilcoxon(A, B), exact.
    let test = wilcoxon_signed_rank(&A, &B).unwrap();
    assert_close(test.negative_rank_sum, 1.0, Tolerance::EXACT);
    assert_close(test.p, 0.0625, Tolerance::EXACT);
    // stats.wilcoxon([1..9, -10.5], method="exact").
    let mut differences: Vec<f64> = (1..10).map(f64::from).collect();
    differences.push(-10.5);
    let test = wilcoxon_signed_rank(&differences, &[0.0; 10]).unwrap();
    assert_close(test.p, 0.083_984_375, Tolerance::EXACT);
    // Ties: all 2^8 sign patterns listed in Python, mid-ranks from stats.rankdata; the zero is left out.
    let test =
        wilcoxon_signed_rank(&[1.0, 1.0, 2.0, -2.0, 3.0, 3.0, -1.0, 4.0, 0.0], &[0.0; 9]).unwrap();
    assert_eq!((test.n_used, test.positive_rank_sum, test.exact), (8, 29.5, true));
    assert_close(test.p, 0.140_625, Tolerance::EXACT);
    // stats.wilcoxon(d, method="approx", correction=False) with d_i = 9 + i (−1)^(i−1), i = 1..70.
    let long: Vec<f64> =
        (1..=70).map(|i| 9.0 + f64::from(i) * if i % 2 == 1 { 1.0 } else { -1.0 }).collect();
    let test = wilcoxon_signed_rank(&long, &[0.0; 70]).unwrap();
    assert!(!test.exact);
    assert_close(test.negative_rank_sum, 963.0, Tolerance::EXACT);
    assert_close(test.p, 0.101_902_588_888_814_93, Tolerance::relative(1e-8));
    assert_eq!(
        wilcoxon_signed_rank(&[1.0, 2.0], &[1.0, 2.0]),
        Err(Undefined::NoSpread { value: 0.0 })
    );
    assert!(wilcoxon_signed_rank(&[], &[]).is_err());
}

#[test]
fn rank_correlation() {
    // stats.spearmanr, without and with ties.
    let plain =
        spearman(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], &[2.0, 1.0, 4.0, 3.0, 7.0, 5.0, 6.0])
            .unwrap();
    assert_close(plain.rho, 0.821_428_571_428_571_5, NARROW);
    assert_close(plain.p, 0.023_448_808_345_691_5, NARROW);
    let tied = spearman(
        &[1.0, 2.0, 2.0, 3.0, 5.0, 5.0, 8.0, 9.0],
        &[10.0, 9.0, 9.5, 7.0, 7.0, 6.0, 3.0, 4.0],
    )
    .unwrap();
    assert_close(tied.rho, -0.951_532_627_022_311_3, NARROW);
    assert_close(tied.p, 0.000_274_388_755_757_778_75, Tolerance::relative(1e-8));
    let perfect = spearman(&[1.0, 2.0, 3.0], &[-1.0, -10.0, -100.0]).unwrap();
    assert_eq!((perfect.rho, perfect.p), (-1.0, 0.0));
    assert_eq!(spearman(&[1.0, 2.0, 3.0], &[4.0; 3]), Err(Undefined::NoSpread { value: 4.0 }));
    assert_eq!(spearman(&[1.0, 2.0], &[1.0, 2.0]), Err(Undefined::TooFew { needed: 3, found: 2 }));
}

#[test]
fn line_and_power_law() {
    // stats.linregress(x, y) and of the logarithms.
    let (x, y) = ([1.0, 2.0, 4.0, 8.0, 16.0], [3.1, 5.8, 12.6, 23.0, 50.1]);
    let line = linear_fit(&x, &y).unwrap();
    assert_close(line.slope, 3.119_489_247_311_827_6, NARROW);
    assert_close(line.intercept, -0.420_833_333_333_334_3, NARROW);
    assert_close(line.slope_standard_error.unwrap(), 0.084_447_938_178_120_19, NARROW);
    assert_close(line.intercept_standard_error.unwrap(), 0.697_398_867_725_585_5, NARROW);
    assert_close(line.r_squared, 0.997_806_293_062_79, NARROW);
    let power = power_law_fit(&x, &y).unwrap();
    assert_close(power.slope, 1.001_645_002_143_347, NARROW);
    assert_close(power.intercept, 1.105_919_595_088_933, NARROW);
    assert_close(power.slope_standard_error.unwrap(), 0.023_228_754_370_611_778, NARROW);

    let two = linear_fit(&[0.0, 1.0], &[1.0, 3.0]).unwrap();
    assert_eq!((two.slope, two.intercept, two.slope_standard_error), (2.0, 1.0, None));
    assert_eq!(linear_fit(&[1.0, 1.0], &[1.0, 3.0]), Err(Undefined::NoSpread { value: 1.0 }));
    assert_eq!(linear_fit(&x, &[0.1; 5]).unwrap().slope_standard_error, Some(0.0));
    assert_eq!(
        power_law_fit(&[1.0, -2.0], &[1.0, 3.0]),
        Err(Undefined::NotPositive { index: 1, value: -2.0 })
    );
    assert!(power_law_fit(&[1.0, f64::NAN], &[1.0, 3.0]).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    // An exact power law must be found whatever its exponent and factor.
    #[test]
    fn exponents_of_exact_power_laws_are_found(exponent in -4.0..4.0f64, factor in 0.01..100.0f64) {
        let x = [0.5, 1.0, 3.0, 10.0];
        let y = x.map(|x: f64| factor * x.powf(exponent));
        let fit = power_law_fit(&x, &y).unwrap();
        assert_close(fit.slope, exponent, Tolerance::absolute(1e-12));
        assert_close(fit.intercept, factor.ln(), Tolerance::absolute(1e-12));
    }

    // The interval and the p-value of a t-test must agree about zero.
    #[test]
    fn interval_and_p_value_agree(seed in 0..10_000u64, shift in -1.0..1.0f64) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let a: Vec<f64> = (0..8).map(|_| rng.random_range(-1.0..1.0) + shift).collect();
        let b: Vec<f64> = (0..8).map(|_| rng.random_range(-1.0..1.0)).collect();
        for test in [paired_t_test(&a, &b, 0.95).unwrap(), welch_t_test(&a, &b, 0.95).unwrap()] {
            prop_assert_eq!(test.interval.contains(0.0), test.p > 0.05);
        }
    }

    // A monotone transformation changes no rank.
    #[test]
    fn rank_correlation_ignores_monotone_transformations(seed in 0..10_000u64) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let x: Vec<f64> = (0..9).map(|_| rng.random_range(-1.0..1.0)).collect();
        let y: Vec<f64> = (0..9).map(|_| rng.random_range(-1.0..1.0)).collect();
        let bent: Vec<f64> = y.iter().map(|y| (3.0 * y).exp()).collect();
        prop_assert_eq!(spearman(&x, &y), spearman(&x, &bent));
    }
}

/// Catches squares that overflow into a panic of the distribution functions.
#[test]
fn the_largest_numbers_give_no_panic() {
    for sample in [[1e308, -1e308, 3e307], [1.7e308, 1.7e308, -1.7e308], [1e200, 1e200, 3e200]] {
        if let Ok(test) = paired_t_test(&sample, &[0.0; 3], 0.95) {
            assert!(test.p.is_nan() || (0.0..=1.0).contains(&test.p), "{}", test.p);
        }
    }
}

/// Numbers of R: `qt(0.975, 4)`, `pnorm(-sqrt(5/4) * qt(0.975, 4))`; and nothing that is no number.
#[test]
fn factors_and_tails_of_intervals() {
    assert_close(t_factor(0.95, 4.0), 2.776_445_105_197_793_4, Tolerance::relative(1e-8));
    assert!(t_factor(0.95, 0.0).is_nan() && t_factor(1.0, 4.0).is_nan());
    assert_close(expanded_tail(0.95, 5), 9.54e-4, Tolerance::absolute(2e-6));
    assert_eq!((expanded_tail(0.95, 1), expanded_tail(f64::NAN, 5)), (0.0, 0.0));
    assert_close(expanded_tail(0.95, 1_000_000), 0.025, Tolerance::absolute(1e-5));
}

/// Catches ranks that are off by one, and an order that is not numerical.
#[test]
fn quantiles_interpolate_between_neighbors() {
    let values = [10.0, 9.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 0.0];
    assert_eq!([0.0, 0.5, 0.9, 1.0].map(|q| quantile(&values, q)), [0.0, 5.0, 9.0, 10.0]);
    assert_eq!([median(&[2.0, 1.0]), median(&[4.0])], [1.5, 4.0]);
    assert!(quantile(&[], 0.5).is_nan());
}
