//! The propositions of `rethinking` and `trading` as functions, in the corrected form.
//!
//! | embedder | D(Δ), D(0) = 1 | stable rank of N samples | source |
//! |---|---|---|---|
//! | Gaussian | exp(-Δ²/(4σ²)) | min(N, 1/(2√π σ)) | Prop. 2 |
//! | random Fourier features | exp(-2π²σ²Δ²) | min(N, √(2π) σ) | Prop. 3 |
//! | rectangle of width w | max(0, 1 - \|Δ\|/w) | min(N, 1/w) | `trading` Prop. 4 |
//! | triangle of width w | cubic B-spline of base ±w | min(N, 4/(3w)) | `trading` Prop. 5 |
//!
//! The minimum is an envelope: [`exact_stable_rank`] is what equally spaced samples have, up to 8 %
//! less near the corner. Coordinates and widths are in units of the line [0, 1).

use std::f64::consts::{LN_10, PI};

use faer::{Mat, MatRef};

use crate::spectrum::{SpectrumError, check_finite, numerical_rank, singular_values};
use crate::trigonometry::sin_turns;

/// σ_g·σ_f = 1/(2√2 π) = 0.11254 for a Gaussian embedder and random Fourier features of equal
/// stable rank and equal distance law.
///
/// `rethinking` Sec. 5.1 uses this value; its Sec. 4.1 prints 1/(2√(2π)) = 0.1995.
pub const GAUSSIAN_RFF_PRODUCT: f64 = 1.0 / (2.0 * std::f64::consts::SQRT_2 * PI);

/// 1/(2√π σ) (Prop. 2).
pub fn gaussian_stable_rank(sigma: f64) -> f64 {
    1.0 / (2.0 * PI.sqrt() * sigma)
}

/// √(2π) σ (Prop. 3, d → ∞).
pub fn rff_stable_rank(sigma: f64) -> f64 {
    (2.0 * PI).sqrt() * sigma
}

/// 1/w for the full width w (`trading` Prop. 4).
pub fn rectangle_stable_rank(width: f64) -> f64 {
    1.0 / width
}

/// 4/(3w) for the full width w (`trading` Prop. 5; its text ends with the 1/w of Prop. 4).
pub fn triangle_stable_rank(width: f64) -> f64 {
    4.0 / (3.0 * width)
}

/// exp(-Δ²/(4σ²)) (Prop. 2, normalized).
pub fn gaussian_law(sigma: f64, delta: f64) -> f64 {
    let ratio = delta / (2.0 * sigma);
    (-ratio * ratio).exp()
}

/// exp(-2π²σ²Δ²) (Prop. 3, normalized, d → ∞).
pub fn rff_law(sigma: f64, delta: f64) -> f64 {
    let phase = PI * sigma * delta;
    (-2.0 * phase * phase).exp()
}

/// sin(2√3πσΔ)/(2√3πσΔ): frequencies uniform with mean 0 and standard deviation σ, d → ∞.
pub fn uniform_frequencies_law(sigma: f64, delta: f64) -> f64 {
    let turns = 3f64.sqrt() * sigma * delta.abs();
    if turns < 1e-9 { 1.0 } else { sin_turns(turns) / (2.0 * PI * turns) }
}

/// 1/(1 + 2π²σ²Δ²): Laplace frequencies with mean 0 and standard deviation σ, d → ∞.
pub fn laplace_frequencies_law(sigma: f64, delta: f64) -> f64 {
    let phase = PI * sigma * delta;
    1.0 / (1.0 + 2.0 * phase * phase)
}

/// exp(-2πσ|Δ|): Cauchy frequencies with scale σ, d → ∞. The equivalent kernel is the exponential one.
pub fn cauchy_frequencies_law(sigma: f64, delta: f64) -> f64 {
    (-2.0 * PI * sigma * delta.abs()).exp()
}

/// max(0, 1 - |Δ|/w) (`trading` Prop. 4, normalized).
pub fn rectangle_law(width: f64, delta: f64) -> f64 {
    (1.0 - delta.abs() / width).max(0.0)
}

/// The normalized autocorrelation of a triangle of full width w: a cubic B-spline.
///
/// With `v = 2|Δ|/w`: `1 - 3v²/2 + 3v³/4` for `v <= 1`, `(2 - v)³/4` for `1 < v < 2`, then 0. The
/// square `(1 - |Δ|/w)²` that `trading` Eq. 39 prints is no autocorrelation of a triangle.
pub fn triangle_law(width: f64, delta: f64) -> f64 {
    let v = 2.0 * delta.abs() / width;
    if v <= 1.0 {
        1.0 + v * v * (0.75 * v - 1.5)
    } else {
        let rest = (2.0 - v).max(0.0);
        0.25 * rest * rest * rest
    }
}

/// max(0, 1 - |Δ|/w)²: what `trading` prints for the triangle of full width w (Prop. 5, Eq. 39), and
/// what its code blends with. [`triangle_law`] is the autocorrelation.
pub fn printed_triangle_law(width: f64, delta: f64) -> f64 {
    let rest = (1.0 - delta.abs() / width).max(0.0);
    rest * rest
}

/// The sum of the images of a law on a circle of circumference 1: `Δ -> Σ_m D(Δ + m)` for |m| up to
/// `n_images`.
///
/// Three images suffice for every law that has decayed at a distance of 3.
pub fn periodized(law: impl Fn(f64) -> f64, n_images: u32) -> impl Fn(f64) -> f64 {
    move |delta| {
        let nearest = delta - delta.round();
        let sum_of_pairs: f64 = (1..=n_images)
            .rev()
            .map(|image| law(nearest + f64::from(image)) + law(nearest - f64::from(image)))
            .sum();
        sum_of_pairs + law(nearest)
    }
}

/// N·D(0) / Σ_j D(j/N): the stable rank of N equally spaced samples of a periodic embedder.
///
/// `kernel` is D on the circle of circumference 1 and must not be negative; its scale is
/// immaterial. The Gram matrix is then circulant and its largest eigenvalue is the row sum, which
/// makes the value exact. `n = 0` gives NaN.
pub fn exact_stable_rank(n: usize, kernel: impl Fn(f64) -> f64) -> f64 {
    let row_sum: f64 = (0..n).map(|j| kernel(j as f64 / n as f64)).sum();
    n as f64 * kernel(0.0) / row_sum
}

/// First row of the Gram matrix of random Fourier features for d → ∞ on the open interval:
/// `exp(-2π²σ²(j/n)²)`, to be given to [`toeplitz_stable_rank`](crate::spectrum::toeplitz_stable_rank).
pub fn rff_limit_first_row(n: usize, sigma: f64) -> Vec<f64> {
    (0..n).map(|j| rff_law(sigma, j as f64 / n as f64)).collect()
}

/// σ = l/(2√(k ln 10)): the Gaussian embedder whose D falls to 10^-k at the distance l (Prop. 2).
pub fn sigma_for_interval(l: f64, k: f64) -> f64 {
    l / (2.0 * (k * LN_10).sqrt())
}

/// l = 2σ√(k ln 10), the inverse of [`sigma_for_interval`].
pub fn interval_for_sigma(sigma: f64, k: f64) -> f64 {
    2.0 * sigma * (k * LN_10).sqrt()
}

/// √(k ln 10/π)/l: the stable rank of a Gaussian embedder that preserves distances up to l.
///
/// The curve on which all embedders trade memorization against generalization (`rethinking`
/// notebooks, k = 1).
pub fn stable_rank_for_interval(l: f64, k: f64) -> f64 {
    (k * LN_10 / PI).sqrt() / l
}

/// σ = 1/(2N), where the train PSNR of N samples peaks (`rethinking` Fig. 7, star).
pub fn sigma_of_train_peak(n_samples: usize) -> f64 {
    1.0 / (2.0 * n_samples as f64)
}

/// σ = 1/(4N√(1.6 ln 10)): below it the test PSNR of N samples collapses (`rethinking` Fig. 7).
///
/// [`sigma_for_interval`] at l = 1/(2N), the distance of a mid-point to its nearest sample.
pub fn smallest_sigma(n_samples: usize) -> f64 {
    sigma_for_interval(1.0 / (2.0 * n_samples as f64), 1.6)
}

/// Ten times [`smallest_sigma`]: the other end of the plateau of the test PSNR.
pub fn largest_sigma(n_samples: usize) -> f64 {
    10.0 * smallest_sigma(n_samples)
}

/// σ = k/(4d√ln 10) for d samples along each direction (`rethinking` Fig. 11, k = 3.5; this k stands
/// outside of the root).
pub fn sigma_for_directions(samples_per_direction: usize, k: f64) -> f64 {
    k / (4.0 * samples_per_direction as f64 * LN_10.sqrt())
}

/// Whether a linear layer with a bias fits every target: rank [X, 1] = N (Prop. 1, exact form).
///
/// `x` is the N × d matrix of features; singular values below `relative_tolerance` times the
/// largest count as zero.
///
/// # Errors
///
/// An empty matrix or entries that are not finite.
pub fn memorizes_every_target(
    x: MatRef<'_, f64>,
    relative_tolerance: f64,
) -> Result<bool, SpectrumError> {
    check_finite(x)?;
    let with_bias = append_ones(x);
    let values = singular_values(with_bias.as_ref())?;
    Ok(numerical_rank(&values, relative_tolerance) == x.nrows())
}

/// The smallest ‖Xw + b - y‖ over w ∈ ℝ^d and b ∈ ℝ: what remains of a target that is not memorized.
///
/// Computed by projecting `y` on the left singular vectors of [X, 1] whose singular values exceed
/// `relative_tolerance` times the largest.
///
/// # Errors
///
/// An empty matrix, entries that are not finite, or a target whose length is not N.
pub fn memorization_residual(
    x: MatRef<'_, f64>,
    y: &[f64],
    relative_tolerance: f64,
) -> Result<f64, SpectrumError> {
    check_finite(x)?;
    if y.len() != x.nrows() {
        return Err(SpectrumError::Shape { expected: x.nrows(), actual: y.len() });
    }
    let with_bias = append_ones(x);
    let svd = with_bias.thin_svd().map_err(|_| SpectrumError::NoConvergence)?;
    let values: Vec<f64> = svd.S().column_vector().iter().copied().collect();
    let rank = numerical_rank(&values, relative_tolerance);
    let mut residual = y.to_vec();
    for k in 0..rank {
        let direction = svd.U().col(k);
        let component: f64 = (0..y.len()).map(|i| direction[i] * y[i]).sum();
        for i in 0..y.len() {
            residual[i] -= component * direction[i];
        }
    }
    Ok(residual.iter().map(|value| value * value).sum::<f64>().sqrt())
}

fn append_ones(x: MatRef<'_, f64>) -> Mat<f64> {
    Mat::from_fn(x.nrows(), x.ncols() + 1, |i, j| if j < x.ncols() { x[(i, j)] } else { 1.0 })
}

#[cfg(test)]
mod tests;
