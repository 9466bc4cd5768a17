//! Tests whether two samples differ.

use super::interval::t_quantile;
use super::{
    Interval, Undefined, check, check_level, check_pairs, is_constant, mean_of, mid_ranks,
    two_sided_p, variance_of,
};
use statrs::distribution::{ContinuousCDF, Normal};

/// Result of a t-test on the difference of two means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TTest {
    /// First mean minus second.
    pub mean_difference: f64,
    /// The difference in units of its standard error.
    pub t: f64,
    /// Degrees of freedom; not whole in Welch's test.
    pub degrees_of_freedom: f64,
    /// Two-sided p-value.
    pub p: f64,
    /// Interval for the difference.
    pub interval: Interval,
}

impl TTest {
    fn new(mean_difference: f64, standard_error: f64, df: f64, level: f64) -> Self {
        let t = mean_difference / standard_error;
        let half_width = t_quantile(level, df) * standard_error;
        Self {
            mean_difference,
            t,
            degrees_of_freedom: df,
            p: two_sided_p(t, df),
            interval: Interval::around(mean_difference, half_width, level),
        }
    }
}

/// Paired t-test of `a_i − b_i`, for instance two methods on the same images.
///
/// ```
/// use posenc_math::statistics::{paired_t_test, t_interval};
/// // PSNRs of two methods on the same four images.
/// let (a, b) = ([30.1, 28.4, 33.0, 27.2], [29.0, 27.5, 31.6, 26.4]);
/// let test = paired_t_test(&a, &b, 0.95)?;
/// assert!(test.mean_difference > 1.0 && test.interval.lower > 0.0 && test.p < 0.01);
/// // One mean by itself says less: images differ more than methods.
/// assert!(t_interval(&a, 0.95)?.contains(27.0));
/// # Ok::<(), posenc_math::statistics::Undefined>(())
/// ```
///
/// # Errors
///
/// [`Undefined::Unpaired`], [`Undefined::TooFew`] below two pairs, [`Undefined::NotFinite`],
/// [`Undefined::Level`]; [`Undefined::NoSpread`] with the common difference when all are equal.
pub fn paired_t_test(a: &[f64], b: &[f64], level: f64) -> Result<TTest, Undefined> {
    check_pairs(a, b, 2)?;
    check_level(level, 1)?;
    let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    check(&differences, 2)?;
    if is_constant(&differences) {
        return Err(Undefined::NoSpread { value: differences[0] });
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
/// [`Undefined::TooFew`] below two values in a sample, [`Undefined::NotFinite`], [`Undefined::Level`];
/// [`Undefined::NoSpread`] with the difference of the means when both samples are constant.
pub fn welch_t_test(a: &[f64], b: &[f64], level: f64) -> Result<TTest, Undefined> {
    check(a, 2)?;
    check(b, 2)?;
    check_level(level, 1)?;
    let mean_difference = mean_of(a) - mean_of(b);
    let (n_a, n_b) = (a.len() as f64, b.len() as f64);
    let (share_a, share_b) = (variance_of(a) / n_a, variance_of(b) / n_b);
    let squared_error = share_a + share_b;
    if squared_error == 0.0 {
        return Err(Undefined::NoSpread { value: mean_difference });
    }
    // Relative shares, so that tiny variances do not underflow when squared.
    let (part_a, part_b) = (share_a / squared_error, share_b / squared_error);
    let df = 1.0 / (part_a * part_a / (n_a - 1.0) + part_b * part_b / (n_b - 1.0));
    Ok(TTest::new(mean_difference, squared_error.sqrt(), df, level))
}

/// Result of Wilcoxon's signed-rank test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SignedRankTest {
    /// Sum of the ranks of the positive differences.
    pub positive_rank_sum: f64,
    /// Sum of the ranks of the negative differences.
    pub negative_rank_sum: f64,
    /// Pairs that differ; the others are left out.
    pub n_used: usize,
    /// Two-sided p-value.
    pub p: f64,
    /// Whether `p` is exact (all sign patterns counted) or the normal approximation.
    pub exact: bool,
}

/// Largest number of pairs for which all sign patterns are counted.
const LARGEST_EXACT: usize = 50;

/// Wilcoxon's signed-rank test of `a_i − b_i`: no assumption about the distribution but symmetry.
///
/// Differences of zero are left out, equal magnitudes share their mean rank. Up to 50 pairs `p` is the
/// exact share of the sign patterns at least as extreme, given these ranks; above that it is the
/// normal approximation with the variance `Σ rank²/4` and no continuity correction. With n pairs `p`
/// is never below `2^{1−n}`: five pairs cannot reach 0.05.
///
/// # Errors
///
/// [`Undefined::Unpaired`], [`Undefined::TooFew`] without pairs, [`Undefined::NotFinite`];
/// [`Undefined::NoSpread`] when all differences are zero.
pub fn wilcoxon_signed_rank(a: &[f64], b: &[f64]) -> Result<SignedRankTest, Undefined> {
    check_pairs(a, b, 1)?;
    let differences: Vec<f64> =
        a.iter().zip(b).map(|(a, b)| a - b).filter(|&difference| difference != 0.0).collect();
    check(&differences, 0)?;
    if differences.is_empty() {
        return Err(Undefined::NoSpread { value: 0.0 });
    }
    let magnitudes: Vec<f64> = differences.iter().map(|difference| difference.abs()).collect();
    let ranks = mid_ranks(&magnitudes);
    let positive_rank_sum: f64 =
        ranks.iter().zip(&differences).filter(|(_, d)| **d > 0.0).map(|(rank, _)| rank).sum();
    let total: f64 = ranks.iter().sum();
    let exact = ranks.len() <= LARGEST_EXACT;
    let p = if exact {
        exact_signed_rank_p(&ranks, positive_rank_sum)
    } else {
        let variance = ranks.iter().map(|rank| rank * rank).sum::<f64>() / 4.0;
        let z = (positive_rank_sum - total / 2.0) / variance.sqrt();
        2.0 * Normal::standard().sf(z.abs())
    };
    Ok(SignedRankTest {
        positive_rank_sum,
        negative_rank_sum: total - positive_rank_sum,
        n_used: ranks.len(),
        p,
        exact,
    })
}

/// Share of the 2^n sign patterns whose positive rank sum is at least as far from the middle.
/// Mean ranks are multiples of ½, so doubled sums index an array; counts up to 2^50 are exact in f64.
fn exact_signed_rank_p(ranks: &[f64], positive: f64) -> f64 {
    let doubled: Vec<usize> = ranks.iter().map(|rank| (2.0 * rank).round() as usize).collect();
    let total: usize = doubled.iter().sum();
    let mut patterns = vec![0.0; total + 1];
    patterns[0] = 1.0;
    for &rank in &doubled {
        for sum in (rank..=total).rev() {
            patterns[sum] += patterns[sum - rank];
        }
    }
    let distance = |sum: usize| (2 * sum).abs_diff(total);
    let observed = distance((2.0 * positive).round() as usize);
    let extreme: f64 =
        (0..=total).filter(|&sum| distance(sum) >= observed).map(|sum| patterns[sum]).sum();
    extreme / (ranks.len() as f64).exp2()
}
