//! Confidence intervals.

use statrs::distribution::{ContinuousCDF, Normal};
use statrs::function::beta::inv_beta_reg;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    pub lower: f64,
    pub upper: f64,
}

/// `q` with `P(|t| ≤ q) = level` for Student's t with `df > 0` degrees of freedom, from the
/// distribution of `df/(df + t²)`.
pub(super) fn t_quantile(level: f64, df: f64) -> f64 {
    let share = inv_beta_reg(df / 2.0, 0.5, 1.0 - level);
    (df * (1.0 - share) / share).sqrt()
}

/// Factor of the standard error in a two-sided Student's t interval at a `level` in (0, 1) with `df > 0` degrees of freedom; NaN
/// for other arguments.
pub fn t_factor(level: f64, df: f64) -> f64 {
    if level > 0.0 && level < 1.0 && df > 0.0 { t_quantile(level, df) } else { f64::NAN }
}

/// Share of resamples beyond each end of an expanded bootstrap percentile interval at `level` for `n ≥ 2` values,
/// `Φ(−√(n/(n − 1)) t)`. The expansion is necessary because the plain percentile interval is too short for few values. 0 for
/// other arguments.
pub fn expanded_tail(level: f64, n: usize) -> f64 {
    if n < 2 {
        return 0.0;
    }
    let (n, df) = (n as f64, (n - 1) as f64);
    let z = (n / df).sqrt() * t_factor(level, df);
    if z.is_nan() { 0.0 } else { Normal::standard().sf(z) }
}
