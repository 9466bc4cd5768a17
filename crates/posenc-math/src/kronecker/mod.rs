//! Kronecker products and the separable products that replace them.
//!
//! For `A` (n × k) and `B` (m × l) the Kronecker product `A ⊗ B` is the (n·m) × (k·l) matrix with
//! entry `A[i, p] · B[j, q]` at row `i·m + j`, column `p·l + q`. With `vec` reading a matrix row by
//! row (the last index runs fastest),
//!
//! ```text
//! (A ⊗ B) vec(W)      = vec(A W Bᵀ)                 W: k × l          (trading, Eq. 10)
//! (A ⊗ B ⊗ C) vec(W)  = vec(W ×₀ A ×₁ B ×₂ C)       W: k × l × o      (trading, Eq. 17)
//! ```
//!
//! so that a grid of N² points with K features per axis costs `NK(N + K)` instead of `N²K²`
//! multiply-adds. [`dense`] forms the matrix of the left side, as a reference. [`separable_2d`] computes the
//! right side for two axes, [`Separable`](crate::closed_form::Separable) for any number.
//!
//! Convention for grids: the first index of an image is the row, the coordinate y; the second is the
//! column, the coordinate x. [`dense`] and [`simple_features`] list the points of a grid in the same order, x fastest.

use faer::linalg::matmul::matmul;
use faer::traits::RealField;
use faer::{Accum, Mat, MatRef, Par};

use crate::Error;

/// Kronecker product `A ⊗ B` written out: (n·m) × (k·l) for `A` n × k and `B` m × l. With `Ψy` and `Ψx`, these are the features of
/// the *complex* encoding on a grid (trading, Sec. 5.2).
///
/// Memory grows with the product of the sizes; use it for small matrices and checks only.
pub fn dense<T: RealField + Copy>(a: MatRef<'_, T>, b: MatRef<'_, T>) -> Mat<T> {
    let (m, l) = b.shape();
    Mat::from_fn(a.nrows() * m, a.ncols() * l, |row, column| {
        a[(row / m, column / l)] * b[(row % m, column % l)]
    })
}

/// Features of the *simple* encoding on a grid, the concatenation `[ψ(x), ψ(y)]` (trading, Eq. 7).
///
/// `Ψx` is N × Kx, `Ψy` is M × Ky; the point of row `j` and column `i` is row `j·N + i` of the
/// (M·N) × (Kx + Ky) result. Its rank is at most Kx + Ky, and an image that is linear in it has rank
/// at most 2 (Eq. 8).
pub fn simple_features<T: RealField + Copy>(psi_y: MatRef<'_, T>, psi_x: MatRef<'_, T>) -> Mat<T> {
    let (n, k_x) = psi_x.shape();
    Mat::from_fn(psi_y.nrows() * n, k_x + psi_y.ncols(), |point, feature| {
        if feature < k_x { psi_x[(point % n, feature)] } else { psi_y[(point / n, feature - k_x)] }
    })
}

/// `A W Bᵀ`: n × m for `A` n × k, `W` k × l, `B` m × l. With Ψy, W, Ψx this is trading's Eq. 10.
pub fn separable_2d<T: RealField + Copy>(
    a: MatRef<'_, T>,
    w: MatRef<'_, T>,
    b: MatRef<'_, T>,
) -> Result<Mat<T>, Error> {
    let mismatch = |left: &str, (m, n), right: &str, (k, l)| {
        Err(Error(format!(
            "A W Bᵀ: {left} is {m}×{n} and {right} is {k}×{l}; the first must have as many columns as the second has rows"
        )))
    };
    if a.ncols() != w.nrows() {
        return mismatch("A", a.shape(), "W", w.shape());
    }
    if w.ncols() != b.ncols() {
        return mismatch("W", w.shape(), "Bᵀ", (b.ncols(), b.nrows()));
    }
    let mut half = Mat::zeros(a.nrows(), w.ncols());
    multiply(half.as_mut(), a, w);
    let mut out = Mat::zeros(a.nrows(), b.nrows());
    multiply(out.as_mut(), half.as_ref(), b.transpose());
    Ok(out)
}

/// `out = left · right`, sequential: the order of summation never depends on the machine's load.
pub(crate) fn multiply<T: RealField + Copy>(
    out: faer::MatMut<'_, T>,
    left: MatRef<'_, T>,
    right: MatRef<'_, T>,
) {
    matmul(out, Accum::Replace, left, right, T::one_impl(), Par::Seq);
}

#[cfg(test)]
mod tests;
