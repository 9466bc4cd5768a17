//! Unless noted otherwise, expected numbers are from SciPy 1.17.1; each test names the call.

use super::*;
use crate::tolerance::{Tolerance, assert_close};

const A: [f64; 6] = [24.1, 26.3, 22.8, 25.0, 27.4, 23.9];
const B: [f64; 6] = [23.6, 25.1, 23.0, 24.2, 26.1, 23.5];
const NARROW: Tolerance = Tolerance::relative(1e-9);

fn refused<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn mean_and_standard_deviations() {
    // numpy: mean(), std(), std(ddof=1).
    assert_close(mean(&A).unwrap(), 24.916_666_666_666_668, NARROW);
    assert_close(population_std(&A).unwrap(), 1.542_094_535_220_054, NARROW);
    assert_close(sample_std(&A).unwrap(), 1.689_279_925_490_937, NARROW);
    assert_eq!(population_std(&[3.0]), Ok(0.0));
    assert_eq!(refused(sample_std(&[3.0])), "1 values; at least 2 are needed");
    assert_eq!(refused(mean(&[])), "0 values; at least 1 are needed");
    // 0.1 + 0.1 + 0.1 is not 3 · 0.1: the spread must still be exactly zero.
    assert_eq!(sample_std(&[0.1; 3]), Ok(0.0));
    assert_eq!(refused(mean(&[1.0, f64::NAN])), "value 1 is NaN; every value must be finite");
}

#[test]
fn interval_of_the_mean() {
    // stats.t.interval(level, 5, mean, s/√6).
    let interval = |sample: &[f64], level| {
        paired_t_test(sample, &vec![0.0; sample.len()], level).map(|test| test.interval)
    };
    let own = interval(&A, 0.95).unwrap();
    assert_close(own.lower, 23.143_876_107_095_647, NARROW);
    assert_close(own.upper, 26.689_457_226_237_69, NARROW);
    assert_close(interval(&A, 0.99).unwrap().lower, 22.135_916_831_360_29, NARROW);
    for level in [0.0, 1.0, 95.0, f64::NAN] {
        assert!(refused(interval(&A, level)).contains("between 0 and 1"), "{level}");
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
fn paired_test() {
    // stats.ttest_rel(A, B).
    let test = paired_t_test(&A, &B, 0.95).unwrap();
    assert_close(test.mean_difference, 2.0 / 3.0, NARROW);
    assert_close(test.t, 2.929_793_676_545_24, NARROW);
    assert_close(test.p, 0.032_640_562_489_303_75, NARROW);
    assert_close(test.interval.lower, 0.081_737_687_716_062_71, Tolerance::relative(1e-8));
    assert_close(test.interval.upper, 1.251_595_645_617_269_4, NARROW);
    let paired = |a: &[f64], b: &[f64]| refused(paired_t_test(a, b, 0.95));
    assert!(paired(&A, &B[..5]).contains("6 values are paired with 5"));
    assert!(paired(&[2.0, 3.0], &[1.0, 2.0]).contains("all values are 1;"));
    assert!(paired(&[2.0], &[1.0]).contains("at least 2"));
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
    assert_eq!(welch_t_test(&[1.0; 3], &[3.0; 2], 0.95), Err(no_spread(-2.0)));
    // One constant sample is valid: only the spread of the other one counts.
    assert_close(welch_t_test(&A, &[24.0; 4], 0.95).unwrap().degrees_of_freedom, 5.0, NARROW);
}

#[test]
fn exponents_of_power_laws() {
    // stats.linregress of the logarithms.
    let (x, y) = ([1.0, 2.0, 4.0, 8.0, 16.0], [3.1, 5.8, 12.6, 23.0, 50.1]);
    assert_close(power_law_exponent(&x, &y).unwrap(), 1.001_645_002_143_347, NARROW);
    assert_eq!(power_law_exponent(&x, &[0.1; 5]), Ok(0.0));
    assert_eq!(power_law_exponent(&[1.0, 1.0], &[1.0, 3.0]), Err(no_spread(0.0)));
    let negative = refused(power_law_exponent(&[1.0, -2.0], &[1.0, 3.0]));
    assert_eq!(negative, "value 1 is -2; a power law needs positive values");
    assert!(power_law_exponent(&[1.0, f64::NAN], &[1.0, 3.0]).is_err());
}

/// Catches squares that overflow into a panic of the distribution functions.
#[test]
fn huge_values_do_not_panic() {
    for sample in [[1e308, -1e308, 3e307], [1.7e308, 1.7e308, -1.7e308], [1e200, 1e200, 3e200]] {
        if let Ok(test) = paired_t_test(&sample, &[0.0; 3], 0.95) {
            assert!(test.p.is_nan() || (0.0..=1.0).contains(&test.p), "{}", test.p);
        }
    }
}

/// Catches a wrong factor or tail, and a tail that is NaN. Expected numbers are from R: `qt(0.975, 4)` and
/// `pnorm(-sqrt(5/4) * qt(0.975, 4))`.
#[test]
fn factors_and_tails_of_intervals() {
    assert_close(t_factor(0.95, 4.0), 2.776_445_105_197_793_4, Tolerance::relative(1e-8));
    assert!(t_factor(0.95, 0.0).is_nan() && t_factor(1.0, 4.0).is_nan());
    assert_close(expanded_tail(0.95, 5), 9.54e-4, Tolerance::absolute(2e-6));
    assert_eq!((expanded_tail(0.95, 1), expanded_tail(f64::NAN, 5)), (0.0, 0.0));
    assert_close(expanded_tail(0.95, 1_000_000), 0.025, Tolerance::absolute(1e-5));
}

/// Catches positions that are off by one, and values that are not sorted numerically.
#[test]
fn quantiles_interpolate_between_neighbors() {
    let values = [10.0, 9.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 0.0];
    assert_eq!([0.0, 0.5, 0.9, 1.0].map(|q| quantile(&values, q)), [0.0, 5.0, 9.0, 10.0]);
    assert_eq!([median(&[2.0, 1.0]), median(&[4.0])], [1.5, 4.0]);
    assert!(quantile(&[], 0.5).is_nan());
}
