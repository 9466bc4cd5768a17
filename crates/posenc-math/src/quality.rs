//! Measures of reconstruction quality.
//!
//! For predictions `p` and targets `t` of the same n values,
//!
//! ```text
//! MSE = (1/n) Σ (p_i − t_i)²,          PSNR = −10 log10(MSE) dB  (peak value 1)
//! ```
//!
//! A zero error has PSNR +∞. NaN stays NaN, so that a run that diverged is visible.

/// `−10 log10(mean_squared_error)`: +∞ for 0, NaN for NaN and for negative numbers.
pub fn psnr_of(mean_squared_error: f64) -> f64 {
    -10.0 * mean_squared_error.log10()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tolerance::{Tolerance, assert_close};

    /// Catches another base of the logarithm, and a diverged run that has a PSNR.
    #[test]
    fn values_computed_manually() {
        assert_close(psnr_of(0.05), 13.010_299_956_639_813, Tolerance::relative(1e-13));
        assert_eq!(psnr_of(0.0), f64::INFINITY);
        assert!(psnr_of(-1.0).is_nan() && psnr_of(f64::NAN).is_nan());
    }
}
