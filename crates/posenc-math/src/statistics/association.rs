//! How one quantity goes with another.

use super::{Undefined, check, check_pairs, is_constant, mean_of, squared_deviations};

/// Exponent of the power law `y = c x^exponent`: the slope of the least-squares line through (ln x_i, ln y_i).
///
/// # Errors
///
/// [`Undefined::Unpaired`], [`Undefined::TooFew`] below two points, [`Undefined::NotFinite`], [`Undefined::NotPositive`];
/// [`Undefined::NoSpread`] when all `x` are equal.
pub fn power_law_exponent(x: &[f64], y: &[f64]) -> Result<f64, Undefined> {
    let logarithms = |sample: &[f64]| {
        check(sample, 0)?;
        match sample.iter().position(|&value| value <= 0.0) {
            Some(index) => Err(Undefined::NotPositive { index, value: sample[index] }),
            None => Ok(sample.iter().map(|value| value.ln()).collect::<Vec<f64>>()),
        }
    };
    let (x, y) = (logarithms(x)?, logarithms(y)?);
    check_pairs(&x, &y, 2)?;
    if is_constant(&x) {
        return Err(Undefined::NoSpread { value: x[0] });
    }
    if is_constant(&y) {
        return Ok(0.0);
    }
    let (mean_x, mean_y) = (mean_of(&x), mean_of(&y));
    let products: f64 = x.iter().zip(&y).map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    Ok(products / squared_deviations(&x))
}
