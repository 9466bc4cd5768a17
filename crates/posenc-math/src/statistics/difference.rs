//! Tests whether two samples differ.

use super::interval::t_quantile;
use super::{
    Interval, check, check_level, check_pairs, is_constant, mean_of, no_spread, two_sided_p,
    variance_of,
};
use crate::Error;

/// Result of a t-test on the difference of two means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TTest {
    /// First mean minus second.
    pub mean_difference: f64,
    /// The difference in units of its standard error.
    pub t: f64,
    /// Degrees of freedom; not whole in Welch's test.
    pub degrees_of_freedom: f64,
    pub p: f64,
    pub interval: Interval,
}

impl TTest {
    fn new(mean_difference: f64, standard_error: f64, df: f64, level: f64) -> Self {
        let t = mean_difference / standard_error;
        let half_width = t_quantile(level, df) * standard_error;
        let (lower, upper) = (mean_difference - half_width, mean_difference + half_width);
        Self {
            mean_difference,
            t,
            degrees_of_freedom: df,
            p: two_sided_p(t, df),
            interval: Interval { lower, upper },
        }
    }
}

/// Paired t-test of `a_i − b_i`, for instance two methods on the same images.
///
/// # Errors
///
/// Samples of different lengths or with fewer than two pairs, values that are not finite, a level outside of (0, 1), and
/// differences that are all equal.
pub fn paired_t_test(a: &[f64], b: &[f64], level: f64) -> Result<TTest, Error> {
    check_pairs(a, b, 2)?;
    check_level(level)?;
    let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    check(&differences, 2)?;
    if is_constant(&differences) {
        return Err(no_spread(differences[0]));
    }
    let n = differences.len() as f64;
    let standard_error = (variance_of(&differences) / n).sqrt();
    Ok(TTest::new(mean_of(&differences), standard_error, n - 1.0, level))
}

/// Welch's t-test of two independent samples of possibly different variance, with the
/// Welch–Satterthwaite degrees of freedom.
///
/// # Errors
///
/// Samples with fewer than two values, values that are not finite, a level outside of (0, 1), and samples that are both constant.
pub fn welch_t_test(a: &[f64], b: &[f64], level: f64) -> Result<TTest, Error> {
    check(a, 2)?;
    check(b, 2)?;
    check_level(level)?;
    let mean_difference = mean_of(a) - mean_of(b);
    let (n_a, n_b) = (a.len() as f64, b.len() as f64);
    let (share_a, share_b) = (variance_of(a) / n_a, variance_of(b) / n_b);
    let squared_error = share_a + share_b;
    if squared_error == 0.0 {
        return Err(no_spread(mean_difference));
    }
    // Relative shares, so that tiny variances do not underflow when squared.
    let (part_a, part_b) = (share_a / squared_error, share_b / squared_error);
    let df = 1.0 / (part_a * part_a / (n_a - 1.0) + part_b * part_b / (n_b - 1.0));
    Ok(TTest::new(mean_difference, squared_error.sqrt(), df, level))
}
