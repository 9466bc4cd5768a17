//! Least-squares lines and power laws.

use super::{check, check_pairs, is_constant, mean_of, no_spread, squared_deviations, t_factor};
use crate::Error;

/// Least-squares line through points (x_i, y_i).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinearFit {
    /// Change of y per unit of x.
    pub slope: f64,
    mean_x: f64,
    mean_y: f64,
    /// `Σ (x_i − mean)²`.
    spread_x: f64,
    residual: f64,
    n: usize,
}

impl LinearFit {
    /// The value at `x`, and the half-width of its prediction interval at `level`, assuming normal residuals; `None` for a line through
    /// two points.
    pub fn predict(&self, x: f64, level: f64) -> (f64, Option<f64>) {
        let (n, offset) = (self.n as f64, x - self.mean_x);
        let half_width = || {
            let variance =
                self.residual / (n - 2.0) * (1.0 + 1.0 / n + offset * offset / self.spread_x);
            t_factor(level, n - 2.0) * variance.sqrt()
        };
        (self.mean_y + self.slope * offset, (self.n > 2).then(half_width))
    }
}

pub fn linear_fit(x: &[f64], y: &[f64]) -> Result<LinearFit, Error> {
    check_pairs(x, y, 2)?;
    if is_constant(x) {
        return Err(no_spread(x[0]));
    }
    let (mean_x, mean_y, spread_x) = (mean_of(x), mean_of(y), squared_deviations(x));
    let products: f64 = x.iter().zip(y).map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let slope = if is_constant(y) { 0.0 } else { products / spread_x };
    let residual =
        x.iter().zip(y).map(|(x, y)| ((y - mean_y) - slope * (x - mean_x)).powi(2)).sum();
    Ok(LinearFit { slope, mean_x, mean_y, spread_x, residual, n: x.len() })
}

/// Exponent of the power law `y = c x^exponent`: the slope of the least-squares line through (ln x_i, ln y_i).
///
/// # Errors
///
/// Samples of different lengths or with fewer than two points, values that are not finite and positive, and `x` that are all equal.
pub fn power_law_exponent(x: &[f64], y: &[f64]) -> Result<f64, Error> {
    let logarithms = |sample: &[f64]| {
        check(sample, 0)?;
        match sample.iter().position(|&value| value <= 0.0) {
            Some(index) => Err(Error(format!(
                "value {index} is {}; a power law needs positive values",
                sample[index]
            ))),
            None => Ok(sample.iter().map(|value| value.ln()).collect::<Vec<f64>>()),
        }
    };
    Ok(linear_fit(&logarithms(x)?, &logarithms(y)?)?.slope)
}
