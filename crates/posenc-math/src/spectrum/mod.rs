//! Singular values, stable rank and numerical rank.
//!
//! The stable rank of X is `‖X‖_F² / ‖X‖_2² = Σ s_i² / max s_i²`, between 1 and the rank. It needs only
//! the trace and the largest eigenvalue of the smaller of the Gram matrices `XXᵀ` and `XᵀX`. An
//! embedding of 100,000 columns is therefore never in memory as a whole: blocks of columns are embedded
//! and added to the Gram matrix. Equally spaced samples of Fourier embedders have a Toeplitz Gram matrix,
//! whose largest eigenvalue is computed without forming it.
//!
//! Everything runs on one thread and sums in a fixed order.

mod circulant;
mod gram;
mod lanczos;
mod toeplitz;

#[cfg(test)]
mod tests;

use faer::MatRef;

use crate::Error;

pub use circulant::circulant_stable_rank;
pub use gram::{line_stable_rank, stable_rank};
pub use lanczos::{Tridiagonal, lanczos, norm};
pub use toeplitz::toeplitz_stable_rank;

/// Returns an error if the matrix is empty or contains an entry that is not finite.
pub(crate) fn check_finite(x: MatRef<'_, f64>) -> Result<(), Error> {
    if x.nrows() == 0 || x.ncols() == 0 {
        return Err(empty(x.nrows(), x.ncols()));
    }
    let is_broken = |&i: &usize| (0..x.ncols()).any(|j| !x[(i, j)].is_finite());
    match (0..x.nrows()).find(is_broken) {
        Some(sample) => Err(not_finite(sample)),
        None => Ok(()),
    }
}

/// Returns an error if the list is empty or contains a value that is not finite.
pub(crate) fn check_values(values: &[f64]) -> Result<(), Error> {
    if values.is_empty() {
        return Err(empty(0, 0));
    }
    match values.iter().position(|value| !value.is_finite()) {
        Some(sample) => Err(not_finite(sample)),
        None => Ok(()),
    }
}

fn empty(rows: usize, columns: usize) -> Error {
    Error(format!("the matrix is {rows} x {columns}; it needs at least one row and one column"))
}

/// Error for a row with NaN or an infinity.
pub(crate) fn not_finite(sample: usize) -> Error {
    Error(format!(
        "the features of sample {sample} are not finite; check the embedder's formula and parameters and the coordinates"
    ))
}

/// Error for features that are all zero.
pub(crate) fn all_zero() -> Error {
    Error(
        "all features are zero, which leaves the ratio undefined; use an embedder that does not vanish on the samples"
            .to_owned(),
    )
}

/// Error for a decomposition that failed.
pub(crate) fn no_convergence<E>(_: E) -> Error {
    Error("the singular values did not converge; check the matrix for extreme entries".to_owned())
}

/// The min(N, d) singular values of an N × d matrix in decreasing order.
pub fn singular_values(x: MatRef<'_, f64>) -> Result<Vec<f64>, Error> {
    check_finite(x)?;
    x.singular_values().map_err(no_convergence)
}

/// The number of singular values above `relative_tolerance` times the largest; 0 for a zero matrix.
pub fn numerical_rank(singular_values: &[f64], relative_tolerance: f64) -> usize {
    let largest = singular_values.iter().copied().fold(0.0, f64::max);
    singular_values.iter().filter(|&&value| value > relative_tolerance * largest).count()
}

/// Largest over smallest singular value; infinite when the smallest is 0, NaN without values.
pub fn condition_number(singular_values: &[f64]) -> f64 {
    let largest = singular_values.iter().copied().fold(f64::NAN, f64::max);
    let smallest = singular_values.iter().copied().fold(f64::NAN, f64::min);
    largest / smallest
}

/// Σ s_i² / max s_i² of given singular values.
///
/// # Errors
///
/// No values, values that are not finite, or all zero.
pub fn stable_rank_of(singular_values: &[f64]) -> Result<f64, Error> {
    check_values(singular_values)?;
    let largest = singular_values.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
    if largest == 0.0 {
        return Err(all_zero());
    }
    Ok(singular_values.iter().map(|value| (value / largest) * (value / largest)).sum())
}

/// Inner product in eight interleaved partial sums of fixed order.
#[inline(always)]
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    const LANES: usize = 8;
    let mut partial = [0.0; LANES];
    let (a_chunks, b_chunks) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let tail: f64 = a_chunks.remainder().iter().zip(b_chunks.remainder()).map(|(x, y)| x * y).sum();
    for (x, y) in a_chunks.zip(b_chunks) {
        for lane in 0..LANES {
            partial[lane] += x[lane] * y[lane];
        }
    }
    partial.iter().sum::<f64>() + tail
}
