//! Numerical helpers for the checks: quadrature, stable rank, least squares, normal samples.

use crate::Error;
pub(crate) use crate::embedder::wrap;
use crate::random::gaussian_vector;
pub use crate::spectrum::{circulant_stable_rank, singular_values, stable_rank};
use crate::spectrum::{no_convergence, numerical_rank, toeplitz_stable_rank};
use faer::{Mat, MatRef};
use rand_chacha::ChaCha8Rng;
use statrs::distribution::{ContinuousCDF, Normal};

/// Whether $|a - b| \le r\,|b|$, or $|a| \le r$ if `b` is zero.
pub fn close(a: f64, b: f64, relative: f64) -> bool {
    let scale = if b == 0.0 { 1.0 } else { b.abs() };
    (a - b).abs() <= relative * scale
}

/// Simpson's rule with `panels` pairs of intervals.
pub fn simpson(from: f64, to: f64, panels: usize, f: impl Fn(f64) -> f64) -> f64 {
    let step = (to - from) / (2 * panels) as f64;
    let inner: f64 = (1..2 * panels)
        .map(|i| f(from + i as f64 * step) * if i % 2 == 1 { 4.0 } else { 2.0 })
        .sum();
    step / 3.0 * (f(from) + inner + f(to))
}

/// Midpoint rule with `cells` cells; unlike Simpson's rule it also works for integrands with jumps.
pub fn midpoint(from: f64, to: f64, cells: usize, f: impl Fn(f64) -> f64) -> f64 {
    let step = (to - from) / cells as f64;
    step * (0..cells).map(|i| f(from + (i as f64 + 0.5) * step)).sum::<f64>()
}

/// $\exp(-u^2/2\sigma^2)$: the Gaussian embedder at displacement `u`.
pub fn gaussian(u: f64, sigma: f64) -> f64 {
    (-u * u / (2.0 * sigma * sigma)).exp()
}

/// $\max(1-|u|, 0)$.
pub fn tri(u: f64) -> f64 {
    (1.0 - u.abs()).max(0.0)
}

/// A matrix of independent standard normal entries, filled row by row.
pub fn normal_matrix(rows: usize, columns: usize, rng: &mut ChaCha8Rng) -> Mat<f64> {
    let draws = gaussian_vector(rng, rows * columns);
    Mat::from_fn(rows, columns, |i, j| draws[i * columns + j])
}

/// Number of singular values above `relative` times the largest.
pub fn rank(matrix: MatRef<'_, f64>, relative: f64) -> Result<f64, Error> {
    Ok(numerical_rank(&singular_values(matrix)?, relative) as f64)
}

/// Stable rank of $n$ equispaced points on $[0, 1)$ under a stationary kernel.
pub fn kernel_stable_rank(n: usize, kernel: impl Fn(f64) -> f64) -> Result<f64, Error> {
    let row: Vec<f64> = (0..n).map(|lag| kernel(lag as f64 / n as f64)).collect();
    toeplitz_stable_rank(&row)
}

/// $\|y - X\hat w\|/\|y\|$ for the least-squares $\hat w$ of one target column.
pub fn relative_residual(design: &Mat<f64>, target: &Mat<f64>) -> Result<f64, Error> {
    let svd = design.thin_svd().map_err(no_convergence)?;
    let values = svd.S().column_vector();
    let kept = (0..values.nrows()).filter(|i| values[*i] > 1e-10 * values[0]).count();
    let basis = svd.U().subcols(0, kept);
    let residual = target - basis * (basis.transpose() * target);
    Ok(residual.norm_l2() / target.norm_l2())
}

/// Vectorizes a matrix: stacks its columns.
pub fn vec(matrix: MatRef<'_, f64>) -> Mat<f64> {
    let rows = matrix.nrows();
    Mat::from_fn(rows * matrix.ncols(), 1, |i, _| matrix[(i % rows, i / rows)])
}

/// $\|A - B\|_F/\|B\|_F$.
pub fn relative_error(a: &Mat<f64>, b: &Mat<f64>) -> f64 {
    (a - b).norm_l2() / b.norm_l2()
}

/// `count` frequencies at the medians of equally probable strata of $N(0, \sigma^2)$: they approximate
/// an infinite embedding dimension.
pub fn stratified_normal(count: usize, sigma: f64) -> Vec<f64> {
    let standard = Normal::standard();
    (0..count).map(|k| sigma * standard.inverse_cdf((k as f64 + 0.5) / count as f64)).collect()
}

/// Mean of $\cos 2\pi b\delta$ over the frequencies `b`.
pub fn mean_cosine(frequencies: &[f64], delta: f64) -> f64 {
    let turn = std::f64::consts::TAU * delta;
    frequencies.iter().map(|b| (turn * b).cos()).sum::<f64>() / frequencies.len() as f64
}
