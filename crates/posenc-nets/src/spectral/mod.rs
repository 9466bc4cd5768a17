//! Stable rank of activations.
//!
//! ‖H‖²_F/σ₁² needs only the largest eigenvalue λ₁ = σ₁² of the smaller Gram matrix A of H (HᵀH or
//! HHᵀ). Lanczos iterations find it without forming A; each iteration reads H once. Products are computed in double
//! precision, so that no scale of H overflows and the residuals below are accurate.
//!
//! **Start vector.** Activations after ReLU are non-negative. By the Perron–Frobenius theorem, so are the left and
//! right singular vectors u and v of σ₁. Let A = HHᵀ, so that u is the wanted eigenvector; the other case is
//! analogous. The start vector is H·1. Since uᵀH·1 = σ₁ Σ v_j ≥ σ₁ and ‖H·1‖ ≤ σ₁√n, its cosine with u is at least
//! 1/√n, so the iteration cannot miss u. For matrices with negative entries, fixed noise is added to the start vector,
//! and unless the first result is proved, a second iteration starts from pure noise; the larger result counts.
//!
//! **Stopping criterion.** Let θ₁ ≥ θ₂ ≥ … be the Ritz values after k iterations, r the residual of the
//! first, and F = ‖H‖²_F = Σ λ_i. Since θ_i ≤ λ_i,
//! λ₂ = F − λ₁ − Σ_{i≥3} λ_i ≤ F − Σ_{i≠2} θ_i. The part of the trace that the Krylov space misses thus
//! bounds the gap from below: g = θ₁ − θ₂ − (F − Σ θ_i) ≤ θ₁ − λ₂. If g > r, then
//! θ₁ ≤ λ₁ ≤ θ₁ + r²/g for any start vector. If the stable rank is small, this bound is tight after a few iterations.
//! Without the bound, r itself must be small: in the plane of two close eigenvectors, the error is r times the tangent
//! of the angle to u, which is at most that of the start vector.
//!
//! The start vectors are fixed and every sum has one order on all machines, so the same matrix gives the same bits.

mod gram;
mod krylov;

#[cfg(test)]
mod tests;

use faer::{Mat, MatRef};
use posenc_math::spectrum::norm;

use gram::Gram;
use krylov::{Ritz, lanczos};

/// Accepted relative error of λ₁ if the error is bounded.
const ACCEPTED: f64 = 1e-7;

/// Accepted relative residual of λ₁ if the gap has no bound. The relative error may be √n times as large.
const ACCEPTED_RESIDUAL: f64 = 1e-8;

/// Maximum dimension of a Krylov space. Smaller Gram matrices are exhausted before. For larger ones, the result is
/// based on the largest Ritz value at this limit and is an upper bound of the stable rank.
const MAX_KRYLOV_DIMENSION: usize = 512;

/// Stable rank ‖H‖²_F/σ₁² of a matrix H, between 1 and the rank of H.
///
/// The relative error is below 1e-6 unless the iteration reaches its limit of 512 steps on a
/// matrix with more than 512 rows and columns. Returns 0 if the matrix is zero or has no entries, and NaN if an entry
/// is NaN or infinite.
pub fn stable_rank(activations: MatRef<'_, f32>) -> f64 {
    // Columns must be contiguous: use the matrix, its transpose, or a copy.
    let copy: Mat<f32>;
    let columns = if activations.row_stride() == 1 {
        activations
    } else if activations.col_stride() == 1 {
        activations.transpose()
    } else {
        copy = activations.to_owned();
        copy.as_ref()
    };
    let Some(mut gram) = Gram::new(columns) else { return 0.0 };
    let trace = gram.trace();
    if !trace.is_finite() {
        return f64::NAN;
    }
    if trace == 0.0 {
        return 0.0;
    }
    if gram.size() == 1 {
        return 1.0;
    }
    let mut start = gram.sums();
    let mut second_start = None;
    if gram.has_negative() {
        let length = norm(&start);
        let weight = if length > 0.0 { 0.1 * length } else { 1.0 };
        let noises = noise(gram.size(), 0);
        start.iter_mut().zip(noises).for_each(|(value, noise)| *value += weight * noise);
        second_start = Some(noise(gram.size(), 1));
    }
    (trace / largest_eigenvalue(&mut gram, trace, start, second_start)).max(1.0)
}

/// λ₁ of a nonzero Gram matrix. `second_start` is needed if `start` might be orthogonal to the eigenvector.
fn largest_eigenvalue(
    gram: &mut Gram<'_>,
    trace: f64,
    start: Vec<f64>,
    second_start: Option<Vec<f64>>,
) -> f64 {
    let mut is_proved = false;
    let mut is_enough = |ritz: &Ritz| {
        let bound = ritz.error_bound(trace);
        is_proved = bound.is_some_and(|bound| bound <= ACCEPTED * ritz.first);
        is_proved || ritz.residual <= ACCEPTED_RESIDUAL * ritz.first
    };
    let first = lanczos(gram, start, &mut is_enough).first;
    match second_start {
        Some(start) if !is_proved => {
            let is_enough = &mut |ritz: &Ritz| ritz.residual <= ACCEPTED_RESIDUAL * ritz.first;
            first.max(lanczos(gram, start, is_enough).first)
        }
        _ => first,
    }
}

/// A fixed pseudorandom unit vector: SplitMix64 of the index.
fn noise(size: usize, stream: u64) -> Vec<f64> {
    let mut vector: Vec<f64> = (0..size as u64)
        .map(|index| {
            let mut z = (index + 1 + (stream << 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        })
        .collect();
    let length = norm(&vector);
    vector.iter_mut().for_each(|value| *value /= length);
    vector
}
