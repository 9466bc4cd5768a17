//! Confidence intervals.

use super::{Undefined, check, check_level, mean_of, quantile, variance_of};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use statrs::distribution::{ContinuousCDF, Normal};
use statrs::function::beta::inv_beta_reg;

/// A confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub lower: f64,
    /// Upper end.
    pub upper: f64,
    /// Confidence level, for instance 0.95.
    pub level: f64,
}

impl Interval {
    /// Whether `value` lies in the interval, ends included.
    pub fn contains(&self, value: f64) -> bool {
        self.lower <= value && value <= self.upper
    }

    pub(super) fn around(center: f64, half_width: f64, level: f64) -> Self {
        Self { lower: center - half_width, upper: center + half_width, level }
    }
}

/// `mean ± t_{n−1} s/√n`, the interval for the mean of a normal population. A sample without spread
/// gives an interval of length 0.
///
/// # Errors
///
/// [`Undefined::TooFew`] below two values, [`Undefined::NotFinite`], [`Undefined::Level`].
pub fn t_interval(sample: &[f64], level: f64) -> Result<Interval, Undefined> {
    check(sample, 2)?;
    check_level(level, 1)?;
    let n = sample.len() as f64;
    let half_width = t_quantile(level, n - 1.0) * (variance_of(sample) / n).sqrt();
    Ok(Interval::around(mean_of(sample), half_width, level))
}

/// Percentile bootstrap: the middle `level` of the statistic over `resamples` samples drawn with
/// replacement. Percentiles are interpolated linearly between order statistics. One value gives an
/// interval of length 0.
///
/// ```
/// # use posenc_math::statistics::bootstrap_interval;
/// # use rand::SeedableRng;
/// let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(7);
/// let psnr = [24.1, 26.3, 22.8, 25.0, 27.4, 23.9];
/// let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
/// let interval = bootstrap_interval(&psnr, mean, 0.95, 2000, &mut rng)?;
/// assert!(interval.contains(24.9));
/// # Ok::<(), posenc_math::statistics::Undefined>(())
/// ```
///
/// # Errors
///
/// [`Undefined::TooFew`] for an empty sample; [`Undefined::NotFinite`] for a value of the sample or of
/// the statistic (then with the number of the resample); [`Undefined::Level`].
pub fn bootstrap_interval(
    sample: &[f64],
    statistic: impl Fn(&[f64]) -> f64,
    level: f64,
    resamples: usize,
    rng: &mut ChaCha8Rng,
) -> Result<Interval, Undefined> {
    check(sample, 1)?;
    check_level(level, resamples)?;
    let mut drawn = vec![0.0; sample.len()];
    let mut values = Vec::with_capacity(resamples);
    for _ in 0..resamples {
        for slot in &mut drawn {
            *slot = sample[rng.random_range(0..sample.len())];
        }
        values.push(statistic(&drawn));
    }
    check(&values, 1)?;
    let tail = (1.0 - level) / 2.0;
    Ok(Interval { lower: quantile(&values, tail), upper: quantile(&values, 1.0 - tail), level })
}

/// `q` with `P(|t| ≤ q) = level` for Student's t with `df > 0` degrees of freedom, from the
/// distribution of `df/(df + t²)`.
pub(super) fn t_quantile(level: f64, df: f64) -> f64 {
    let share = inv_beta_reg(df / 2.0, 0.5, 1.0 - level);
    (df * (1.0 - share) / share).sqrt()
}

/// Factor of the standard error in a two-sided Student's t interval at `level`, which is in (0, 1), with `df > 0` degrees of freedom;
/// NaN for other arguments.
pub fn t_factor(level: f64, df: f64) -> f64 {
    if level > 0.0 && level < 1.0 && df > 0.0 { t_quantile(level, df) } else { f64::NAN }
}

/// Share of resamples beyond each end of an expanded percentile interval at `level` for `n ≥ 2` values, `Φ(−√(n/(n − 1)) t)`: a plain
/// percentile interval is too short for few values. 0 for other arguments.
pub fn expanded_tail(level: f64, n: usize) -> f64 {
    if n < 2 {
        return 0.0;
    }
    let (n, df) = (n as f64, (n - 1) as f64);
    let z = (n / df).sqrt() * t_factor(level, df);
    if z.is_nan() { 0.0 } else { Normal::standard().sf(z) }
}
