//! Power laws.

use super::{check, check_pairs, is_constant, mean_of, no_spread, squared_deviations};
use crate::Error;

/// Slope of the least-squares line.
fn slope(x: &[f64], y: &[f64]) -> Result<f64, Error> {
    check_pairs(x, y, 2)?;
    if is_constant(x) {
        return Err(no_spread(x[0]));
    }
    let (mean_x, mean_y, spread_x) = (mean_of(x), mean_of(y), squared_deviations(x));
    let products: f64 = x.iter().zip(y).map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    Ok(if is_constant(y) { 0.0 } else { products / spread_x })
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
    slope(&logarithms(x)?, &logarithms(y)?)
}
