//! The propositions of `rethinking` and `trading` as functions, in corrected form.
//!
//! | embedder | D(Δ), D(0) = 1 | stable rank of N samples | source |
//! |---|---|---|---|
//! | Gaussian | exp(-Δ²/(4σ²)) | min(N, 1/(2√π σ)) | Prop. 2 |
//! | random Fourier features | exp(-2π²σ²Δ²) | min(N, √(2π) σ) | Prop. 3 |
//! | rectangle of width w | max(0, 1 - \|Δ\|/w) | min(N, 1/w) | `trading` Prop. 4 |
//! | triangle of width w | cubic B-spline of base ±w | min(N, 4/(3w)) | `trading` Prop. 5 |
//!
//! The minimum is an upper envelope. Equally spaced samples have the stable rank [`exact_stable_rank`],
//! which is up to 8 % less near the corner. Coordinates and widths are in units of the line [0, 1).

use std::f64::consts::{LN_10, PI};

use crate::fourier::of_real;
use faer::{Mat, MatRef};

use crate::Error;
use crate::spectrum::{check_finite, no_convergence, numerical_rank};
use crate::trigonometry::sin_turns;

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
/// square `(1 - |Δ|/w)²` printed in `trading` Eq. 39 is not the autocorrelation of a triangle.
pub fn triangle_law(width: f64, delta: f64) -> f64 {
    let v = 2.0 * delta.abs() / width;
    if v <= 1.0 {
        1.0 + v * v * (0.75 * v - 1.5)
    } else {
        let rest = (2.0 - v).max(0.0);
        0.25 * rest * rest * rest
    }
}

/// max(0, 1 - |Δ|/w)²: the law of the triangle of full width w as printed in `trading` (Prop. 5, Eq. 39)
/// and used for blending in its code. The true autocorrelation is [`triangle_law`].
pub fn printed_triangle_law(width: f64, delta: f64) -> f64 {
    let rest = (1.0 - delta.abs() / width).max(0.0);
    rest * rest
}

/// The sum of the images of a law on a circle of circumference 1: `Δ -> Σ_m D(Δ + m)` for |m| up to 3, which suffices for every law
/// that has decayed at a distance of 3.
pub fn periodized(law: impl Fn(f64) -> f64) -> impl Fn(f64) -> f64 {
    move |delta| {
        let nearest = delta - delta.round();
        let pair = |image| law(nearest + image) + law(nearest - image);
        [3.0, 2.0, 1.0].map(pair).into_iter().sum::<f64>() + law(nearest)
    }
}

/// N·D(0) / max_k λ_k with λ_k = Σ_j D(j/N) cos 2πjk/N: the stable rank of N equally spaced samples of a periodic embedder.
///
/// `kernel` is D on the circle of circumference 1, up to a factor. The Gram matrix is then circulant with eigenvalues λ_k, which makes the
/// value exact. If D is nowhere negative, the largest is the row sum λ_0. Returns NaN for `n = 0`, and if an eigenvalue is clearly
/// negative: then D is not periodic, and no embedder has it on the circle.
pub fn exact_stable_rank(n: usize, kernel: impl Fn(f64) -> f64) -> f64 {
    let row: Vec<f64> = (0..n).map(|j| kernel(j as f64 / n as f64)).collect();
    let row_sum: f64 = row.iter().sum();
    let values = of_real(&row);
    let least = values.iter().map(|value| value.re).fold(f64::INFINITY, f64::min);
    let most = values.iter().map(|value| value.re).fold(row_sum, f64::max);
    // The transform rounds, so the row sum itself is the largest unless another one clearly is.
    let most = if most > row_sum * (1.0 + 1e-12) { most } else { row_sum };
    let rank = n as f64 * kernel(0.0) / most;
    if least < -1e-3 * most || rank < 1.0 - 1e-9 { f64::NAN } else { rank }
}

/// √(k ln 10/π)/l: the stable rank of a Gaussian embedder that preserves distances up to l.
///
/// The curve on which all embedders trade memorization against generalization (`rethinking`
/// notebooks, k = 1).
pub fn stable_rank_for_interval(l: f64, k: f64) -> f64 {
    (k * LN_10 / PI).sqrt() / l
}

/// The smallest ‖Xw + b - y‖ over w ∈ ℝ^d and b ∈ ℝ: the norm of the part of y that is not memorized.
///
/// Projects `y` on the left singular vectors of [X, 1] whose singular values exceed
/// `relative_tolerance` times the largest.
pub fn memorization_residual(
    x: MatRef<'_, f64>,
    y: &[f64],
    relative_tolerance: f64,
) -> Result<f64, Error> {
    check_finite(x)?;
    if y.len() != x.nrows() {
        return Err(Error(format!(
            "expected one value per row, got {} for {} rows",
            y.len(),
            x.nrows()
        )));
    }
    let with_bias =
        Mat::from_fn(x.nrows(), x.ncols() + 1, |i, j| if j < x.ncols() { x[(i, j)] } else { 1.0 });
    let svd = with_bias.thin_svd().map_err(no_convergence)?;
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

#[cfg(test)]
mod tests;
