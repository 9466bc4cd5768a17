//! How one quantity goes with another.

use super::{
    Undefined, check, check_pairs, is_constant, mean_of, mid_ranks, squared_deviations, two_sided_p,
};

/// Spearman's rank correlation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Correlation {
    /// Correlation of the ranks, in [−1, 1].
    pub rho: f64,
    /// Two-sided p-value from `t = ρ √((n − 2)/(1 − ρ²))` with n − 2 degrees of freedom, an
    /// approximation for small n; 0 for ρ = ±1.
    pub p: f64,
    /// Number of pairs.
    pub n: usize,
}

/// Spearman's correlation of paired values; ties share their mean rank.
///
/// # Errors
///
/// [`Undefined::Unpaired`], [`Undefined::TooFew`] below three pairs, [`Undefined::NotFinite`];
/// [`Undefined::NoSpread`] when all `x` or all `y` are equal.
pub fn spearman(x: &[f64], y: &[f64]) -> Result<Correlation, Undefined> {
    check_pairs(x, y, 3)?;
    for sample in [x, y] {
        if is_constant(sample) {
            return Err(Undefined::NoSpread { value: sample[0] });
        }
    }
    let (x, y) = (mid_ranks(x), mid_ranks(y));
    let scale = (squared_deviations(&x) * squared_deviations(&y)).sqrt();
    let rho = (products_of_deviations(&x, &y) / scale).clamp(-1.0, 1.0);
    let df = (x.len() - 2) as f64;
    let p = two_sided_p(rho * (df / (1.0 - rho * rho)).sqrt(), df);
    Ok(Correlation { rho, p, n: x.len() })
}

/// Least-squares line `y = intercept + slope · x`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinearFit {
    /// Change of y per unit of x.
    pub slope: f64,
    /// Value at x = 0.
    pub intercept: f64,
    /// Standard error of the slope, residual variance with divisor n − 2; `None` for two points.
    pub slope_standard_error: Option<f64>,
    /// Standard error of the intercept; `None` for two points.
    pub intercept_standard_error: Option<f64>,
    /// Share of the variance of y that the line explains; 1 when y is constant.
    pub r_squared: f64,
    /// Number of points.
    pub n: usize,
}

/// Least-squares line through points (x_i, y_i).
///
/// # Errors
///
/// [`Undefined::Unpaired`], [`Undefined::TooFew`] below two points, [`Undefined::NotFinite`];
/// [`Undefined::NoSpread`] when all `x` are equal.
pub fn linear_fit(x: &[f64], y: &[f64]) -> Result<LinearFit, Undefined> {
    check_pairs(x, y, 2)?;
    if is_constant(x) {
        return Err(Undefined::NoSpread { value: x[0] });
    }
    let n = x.len();
    let (mean_x, mean_y) = (mean_of(x), mean_of(y));
    let spread_x = squared_deviations(x);
    let spread_y = squared_deviations(y);
    let slope = if spread_y == 0.0 { 0.0 } else { products_of_deviations(x, y) / spread_x };
    let intercept = mean_y - slope * mean_x;
    let residual: f64 =
        x.iter().zip(y).map(|(x, y)| ((y - mean_y) - slope * (x - mean_x)).powi(2)).sum();
    let variance = (n > 2).then(|| residual / (n - 2) as f64);
    Ok(LinearFit {
        slope,
        intercept,
        slope_standard_error: variance.map(|variance| (variance / spread_x).sqrt()),
        intercept_standard_error: variance
            .map(|variance| (variance * (1.0 / n as f64 + mean_x * mean_x / spread_x)).sqrt()),
        r_squared: if spread_y == 0.0 { 1.0 } else { 1.0 - residual / spread_y },
        n,
    })
}

/// Power law `y = exp(intercept) · x^slope`, the least-squares line through (ln x_i, ln y_i): `slope` is
/// the fitted exponent.
///
/// # Errors
///
/// As [`linear_fit`], and [`Undefined::NotPositive`].
pub fn power_law_fit(x: &[f64], y: &[f64]) -> Result<LinearFit, Undefined> {
    let logarithms = |sample: &[f64]| {
        check(sample, 0)?;
        match sample.iter().position(|&value| value <= 0.0) {
            Some(index) => Err(Undefined::NotPositive { index, value: sample[index] }),
            None => Ok(sample.iter().map(|value| value.ln()).collect::<Vec<f64>>()),
        }
    };
    linear_fit(&logarithms(x)?, &logarithms(y)?)
}

fn products_of_deviations(x: &[f64], y: &[f64]) -> f64 {
    let (mean_x, mean_y) = (mean_of(x), mean_of(y));
    x.iter().zip(y).map(|(x, y)| (x - mean_x) * (y - mean_y)).sum()
}
