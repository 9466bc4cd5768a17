//! Minimum-norm least squares by a complete orthogonal factorization, with the rank rule of LAPACK's xGELSY.
//!
//! `Ψ P = Q R` is a QR factorization. The leading r × r triangle of R counts as well conditioned as long as incremental
//! condition estimation (Bischof 1990; LAPACK xLAIC1) yields `σ_max · rcond ≤ σ_min` for it. The rows of R below are dropped,
//! and `[R_11 R_12] = Tᵀ Zᵀ` with orthonormal columns of Z gives
//!
//! ```text
//! Ψ⁺ ≈ P Z T⁻ᵀ Q_1ᵀ
//! ```
//!
//! This is the inverse of R_11 alone, not of a nearest matrix of rank r: where singular values decay slowly, it differs from
//! the truncated singular value decomposition with the same `rcond`.

use super::Real;
use crate::kronecker::multiply;
use faer::{Mat, MatRef};

/// Column order of a QR factorization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnOrder {
    /// The longest remaining column first.
    Pivoted,
    /// In the order of the matrix.
    Fixed,
}

/// Pseudo-inverse of the part of Ψ that the rank rule keeps.
pub(super) struct CompleteOrthogonal<T> {
    /// K × N.
    pub inverse: Mat<T>,
    /// Order of the triangle that was inverted.
    pub rank: usize,
    /// Estimated ratio of its extreme singular values; 1 for rank 0.
    pub condition: f64,
}

impl<T: Real> CompleteOrthogonal<T> {
    /// Factors Ψ (N × K, any shape).
    pub(super) fn new(psi: MatRef<'_, T>, rcond: f64, order: ColumnOrder) -> Self {
        let (n, k) = psi.shape();
        let Householder { q, r, places } = Householder::new(psi, order);
        let (rank, condition) = numerical_rank(r.as_ref(), rcond);
        let mut ordered = Mat::zeros(k, n);
        if rank > 0 {
            let rows = r.subrows(0, rank).transpose().qr();
            let mut right = q.subcols(0, rank).transpose().to_owned();
            rows.thin_R().transpose().solve_lower_triangular_in_place(right.as_mut());
            multiply(ordered.as_mut(), rows.compute_thin_Q().as_ref(), right.as_ref());
        }
        let mut inverse = Mat::zeros(k, n);
        for (row, place) in places.into_iter().enumerate() {
            inverse.row_mut(place).copy_from(ordered.row(row));
        }
        Self { inverse, rank, condition }
    }
}

/// `Ψ P = Q R` by Householder reflections, column after column.
///
/// faer's pivoted factorization is faster. In single precision, however, it misorders columns that have become short compared
/// with their original length, and the numerical rank depends on their order. Like LAPACK, this code recomputes such lengths
/// (Drmač and Bujanović 2008).
struct Householder<T> {
    /// N × min(N, K).
    q: Mat<T>,
    /// min(N, K) × K, zeros below the diagonal.
    r: Mat<T>,
    /// For each column of R, the column of Ψ.
    places: Vec<usize>,
}

impl<T: Real> Householder<T> {
    fn new(psi: MatRef<'_, T>, order: ColumnOrder) -> Self {
        let (n, k) = psi.shape();
        let steps = n.min(k);
        let mut a = psi.to_owned();
        let mut places: Vec<usize> = (0..k).collect();
        // Column lengths from the current row on: updated, and as last computed from the entries.
        let mut lengths: Vec<f64> = (0..k).map(|j| length(a.as_ref(), 0, j)).collect();
        let mut computed = lengths.clone();
        let mut reflections: Vec<(Vec<T>, T)> = Vec::with_capacity(steps);
        for i in 0..steps {
            if order == ColumnOrder::Pivoted {
                let longest = (i..k).fold(i, |p, j| if lengths[j] > lengths[p] { j } else { p });
                for row in 0..n {
                    let value = a[(row, i)];
                    a[(row, i)] = a[(row, longest)];
                    a[(row, longest)] = value;
                }
                places.swap(i, longest);
                lengths.swap(i, longest);
                computed.swap(i, longest);
            }
            let (vector, tau, diagonal) = reflection(a.as_ref(), i);
            a[(i, i)] = diagonal;
            for row in i + 1..n {
                a[(row, i)] = T::zero_impl();
            }
            for j in i + 1..k {
                reflect(&mut a, (i, j), &vector, tau);
                if lengths[j] == 0.0 {
                    continue;
                }
                let left = (1.0 - (a[(i, j)].to_f64() / lengths[j]).powi(2)).max(0.0);
                // Recompute the length if cancellation leaves too few digits.
                if left * (lengths[j] / computed[j]).powi(2) <= T::EPSILON.sqrt() {
                    lengths[j] = length(a.as_ref(), i + 1, j);
                    computed[j] = lengths[j];
                } else {
                    lengths[j] *= left.sqrt();
                }
            }
            reflections.push((vector, tau));
        }
        let mut q =
            Mat::from_fn(n, steps, |i, j| if i == j { T::one_impl() } else { T::zero_impl() });
        for (i, (vector, tau)) in reflections.iter().enumerate().rev() {
            for j in i..steps {
                reflect(&mut q, (i, j), vector, *tau);
            }
        }
        Self { q, r: a.subrows(0, steps).to_owned(), places }
    }
}

/// Length of column `j` from row `from` on.
fn length<T: Real>(a: MatRef<'_, T>, from: usize, j: usize) -> f64 {
    (from..a.nrows()).fold(0.0, |length: f64, i| length.hypot(a[(i, j)].to_f64()))
}

/// The reflection `I − τ v vᵀ` with `v = (1, vector)` that maps column `i`, from its diagonal on, to a multiple of the first
/// unit vector: vector, τ and the diagonal entry.
fn reflection<T: Real>(a: MatRef<'_, T>, i: usize) -> (Vec<T>, T, T) {
    let alpha = a[(i, i)];
    let rest = length(a, i + 1, i);
    let below = || (i + 1..a.nrows()).map(|row| a[(row, i)]);
    if rest == 0.0 {
        return (below().collect(), T::zero_impl(), alpha);
    }
    let beta = T::from_f64(-alpha.to_f64().hypot(rest).copysign(alpha.to_f64()));
    let scale = alpha - beta;
    (below().map(|value| value / scale).collect(), (beta - alpha) / beta, beta)
}

/// Applies a reflection to a column from row `i` on.
fn reflect<T: Real>(a: &mut Mat<T>, (i, j): (usize, usize), vector: &[T], tau: T) {
    let mut sum = a[(i, j)];
    for (offset, v) in vector.iter().enumerate() {
        sum += *v * a[(i + 1 + offset, j)];
    }
    let step = tau * sum;
    a[(i, j)] -= step;
    for (offset, v) in vector.iter().enumerate() {
        a[(i + 1 + offset, j)] -= step * *v;
    }
}

/// Order of the largest leading triangle of R that counts as well conditioned, and the estimate of its condition number.
fn numerical_rank<T: Real>(r: MatRef<'_, T>, rcond: f64) -> (usize, f64) {
    let first = r[(0, 0)].to_f64().abs();
    if first == 0.0 {
        return (0, 1.0);
    }
    let mut smallest = Estimate { vector: vec![1.0], value: first };
    let mut largest = smallest.clone();
    for rank in 1..r.nrows() {
        let column: Vec<f64> = (0..rank).map(|i| r[(i, rank)].to_f64()).collect();
        let corner = r[(rank, rank)].to_f64();
        let next_smallest = smallest.extended(&column, corner, Extreme::Smallest);
        let next_largest = largest.extended(&column, corner, Extreme::Largest);
        // Also false for NaN, which comes from overflow.
        let is_kept = next_largest.value * rcond <= next_smallest.value;
        if !is_kept || next_smallest.value == 0.0 {
            return (rank, largest.value / smallest.value);
        }
        (smallest, largest) = (next_smallest, next_largest);
    }
    (r.nrows(), largest.value / smallest.value)
}

/// Which singular value of a triangle is estimated.
#[derive(Clone, Copy)]
enum Extreme {
    Smallest,
    Largest,
}

/// An approximate singular vector x of a triangle L, of unit length, and `value = ‖L x‖`.
#[derive(Clone)]
struct Estimate {
    vector: Vec<f64>,
    value: f64,
}

impl Estimate {
    /// The estimate for `[L 0; wᵀ γ]`, with the vector `[s x; c]` for the best s and c.
    ///
    /// `value²` is an eigenvalue of `[[value² + α², α γ], [α γ, γ²]]` with `α = wᵀ x`, and (s, c) its eigenvector.
    fn extended(&self, w: &[f64], gamma: f64, extreme: Extreme) -> Self {
        let alpha: f64 = self.vector.iter().zip(w).map(|(x, w)| x * w).sum();
        let (f, h) = (self.value, gamma.abs());
        // Singular values of [[f, 0], [α, γ]].
        let largest = 0.5 * ((f + h).hypot(alpha) + (f - h).hypot(alpha));
        let value = match extreme {
            Extreme::Largest => largest,
            Extreme::Smallest => f * h / largest,
        };
        let square = value * value;
        let (first, second) = (square - gamma * gamma, square - f * f - alpha * alpha);
        // Two forms of the eigenvector; the longer one loses fewer digits.
        let (s, c) = match first.abs() > second.abs() {
            true => (first, alpha * gamma),
            false => (alpha * gamma, second),
        };
        let length = s.hypot(c);
        let (s, c) = match (length > 0.0, extreme, f <= h) {
            (true, ..) => (s / length, c / length),
            // A multiple of the identity, or a diagonal matrix.
            (false, Extreme::Smallest, true) | (false, Extreme::Largest, false) => (1.0, 0.0),
            (false, ..) => (0.0, 1.0),
        };
        let vector = self.vector.iter().map(|x| s * x).chain([c]).collect();
        Self { vector, value }
    }
}

#[cfg(test)]
mod tests;
