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
//! multiply-adds. [`dense`] forms the matrix of the left side, as a reference; [`separable_2d`] and
//! [`separable_3d`] compute the right side.
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

/// `W ×₀ A ×₁ B ×₂ C`, the mode products one after another, first axis first (trading, Eq. 17).
///
/// # Errors
///
/// A factor that does not fit the cube; the error names the first such axis.
pub fn separable_3d<T: RealField + Copy>(
    factors: [MatRef<'_, T>; 3],
    w: &Cube<T>,
) -> Result<Cube<T>, Error> {
    w.mode_product(0, factors[0])?.mode_product(1, factors[1])?.mode_product(2, factors[2])
}

/// Three-way array, stored with the last index fastest (the order of npz files and image buffers).
#[derive(Clone, Debug, PartialEq)]
pub struct Cube<T> {
    shape: [usize; 3],
    values: Vec<T>,
}

impl<T: RealField + Copy> Cube<T> {
    /// Cube of `shape` from its values, last index fastest.
    pub fn new(shape: [usize; 3], values: Vec<T>) -> Result<Self, Error> {
        let needed: usize = shape.iter().product();
        if needed != values.len() {
            let ([a, b, c], found) = (shape, values.len());
            return Err(Error(format!(
                "a cube of shape {a}×{b}×{c} must have {needed} values, got {found}"
            )));
        }
        Ok(Self { shape, values })
    }

    /// Cube whose entry `[i, j, k]` is `f([i, j, k])`.
    pub fn from_fn(shape: [usize; 3], mut f: impl FnMut([usize; 3]) -> T) -> Self {
        let mut values = Vec::with_capacity(shape.iter().product());
        for i in 0..shape[0] {
            for j in 0..shape[1] {
                for k in 0..shape[2] {
                    values.push(f([i, j, k]));
                }
            }
        }
        Self { shape, values }
    }

    /// Like [`Cube::new`], for a number of values that is known to match.
    pub(crate) fn from_values(shape: [usize; 3], values: Vec<T>) -> Self {
        debug_assert_eq!(shape.iter().product::<usize>(), values.len());
        Self { shape, values }
    }

    /// Number of entries along each axis.
    pub fn shape(&self) -> [usize; 3] {
        self.shape
    }

    /// All entries, last index fastest.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// All entries, last index fastest, without a copy.
    pub fn into_values(self) -> Vec<T> {
        self.values
    }

    /// Mode product along `axis` (0, 1 or 2): multiplies every line of the cube in that direction by
    /// `matrix` (m × `shape[axis]`), so that the axis then has length m.
    ///
    /// # Errors
    ///
    /// A matrix that does not have `shape[axis]` columns.
    ///
    /// # Panics
    ///
    /// When `axis` is above 2.
    pub fn mode_product(&self, axis: usize, matrix: MatRef<'_, T>) -> Result<Self, Error> {
        if matrix.ncols() != self.shape[axis] {
            let ((m, n), [a, b, c]) = (matrix.shape(), self.shape);
            return Err(Error(format!(
                "mode product along axis {axis}: the matrix is {m}×{n} and the cube {a}×{b}×{c}; the matrix needs {} columns",
                self.shape[axis]
            )));
        }
        let (n, m) = (self.shape[axis], matrix.nrows());
        // Axes before and after `axis` are merged: `outer` blocks, each an n × inner matrix.
        let outer: usize = self.shape[..axis].iter().product();
        let inner: usize = self.shape[axis + 1..].iter().product();
        let mut shape = self.shape;
        shape[axis] = m;
        let mut values = vec![T::zero_impl(); outer * m * inner];
        for block in 0..outer {
            let from = MatRef::from_row_major_slice(
                &self.values[block * n * inner..][..n * inner],
                n,
                inner,
            );
            let to = faer::MatMut::from_row_major_slice_mut(
                &mut values[block * m * inner..][..m * inner],
                m,
                inner,
            );
            multiply(to, matrix, from);
        }
        Ok(Self { shape, values })
    }
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
