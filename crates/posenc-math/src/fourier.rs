//! Discrete Fourier transforms in double precision.
//!
//! rustfft is generic, so each crate that plans a transform compiles all of its algorithms. Other crates use these functions instead.

use std::sync::Arc;

use rustfft::FftPlanner;
pub use rustfft::{Fft, num_complex::Complex};

/// Plans X_k = Σ_j x_j exp(−2πi jk/n) for n = `length` values.
pub fn forward(length: usize) -> Arc<dyn Fft<f64>> {
    FftPlanner::new().plan_fft_forward(length)
}

/// Plans x_j = Σ_k X_k exp(2πi jk/n) for n = `length` values, without the factor 1/n.
pub fn inverse(length: usize) -> Arc<dyn Fft<f64>> {
    FftPlanner::new().plan_fft_inverse(length)
}

/// The forward transform of real values.
pub(crate) fn of_real(values: &[f64]) -> Vec<Complex<f64>> {
    let mut spectrum: Vec<_> = values.iter().map(|&value| Complex::new(value, 0.0)).collect();
    forward(values.len()).process(&mut spectrum);
    spectrum
}
