//! Linear maps along one axis, the kernel of solving and predicting.
//!
//! A map `P` (m × n) acts on the columns of an n × r matrix `X` and leaves the result transposed,
//! `(P X)ᵀ` (r × m). The entries of the next axis are then contiguous, and applying the maps of all axes
//! restores the order of the axes.
//!
//! For even n let `B` be the n × n *butterfly* `[I, J; J, −I]`, J reversing the order of n/2 entries.
//! It is symmetric with `B² = 2I`. A centrosymmetric `P` satisfies `B_m P B_n = 2 diag(E, O)`, hence
//! `P = ½ B_m diag(E, O) B_n`: two half-size products between two sweeps of additions.

use super::Real;
use crate::kronecker::multiply;
use faer::reborrow::{Reborrow, ReborrowMut};
use faer::{Mat, MatMut, MatRef};

/// A linear map `P` along one axis.
pub(super) trait Along<T> {
    fn shape(&self) -> (usize, usize);

    /// `out = (P X)ᵀ` for `x` n × r and `out` r × m, both with contiguous columns; `x` is overwritten.
    fn apply_transposed(&self, x: MatMut<'_, T>, out: MatMut<'_, T>);
}

/// Replaces `values`, a grid with the last axis fastest, by its mode products with the maps of all axes.
///
/// Starts with the last axis, whose lines are contiguous. Each product makes those of the next axis contiguous.
pub(super) fn mode_products<'a, T: Real, M: Along<T> + 'a>(
    axes: impl DoubleEndedIterator<Item = &'a M>,
    values: &mut Vec<T>,
    scratch: &mut Vec<T>,
) {
    for axis in axes.rev() {
        let (m, n) = axis.shape();
        let lines = values.len() / n;
        scratch.resize(lines * m, T::zero_impl());
        axis.apply_transposed(
            MatMut::from_column_major_slice_mut(values, n, lines),
            MatMut::from_column_major_slice_mut(scratch, lines, m),
        );
        std::mem::swap(values, scratch);
    }
}

/// The map `P`: as a matrix, as the diagonal blocks `½E`, `½O` between two butterflies, or as the diagonal of a square
/// matrix.
#[derive(Clone, Debug)]
pub(super) enum AxisMap<T> {
    Plain(Mat<T>),
    EvenOdd { half_even: Mat<T>, half_odd: Mat<T> },
    Diagonal(Vec<T>),
}

impl<T: Real> Along<T> for AxisMap<T> {
    fn shape(&self) -> (usize, usize) {
        match self {
            Self::Plain(matrix) => matrix.shape(),
            Self::EvenOdd { half_even, .. } => (2 * half_even.nrows(), 2 * half_even.ncols()),
            Self::Diagonal(diagonal) => (diagonal.len(), diagonal.len()),
        }
    }

    fn apply_transposed(&self, mut x: MatMut<'_, T>, mut out: MatMut<'_, T>) {
        match self {
            Self::Plain(matrix) => multiply(out, x.rb().transpose(), matrix.transpose()),
            Self::EvenOdd { half_even, half_odd } => {
                butterfly_along_columns(x.rb_mut());
                let (x_even, x_odd) = x.rb().split_at_row(half_even.ncols());
                let (out_even, out_odd) = out.rb_mut().split_at_col_mut(half_even.nrows());
                multiply(out_even, x_even.transpose(), half_even.transpose());
                multiply(out_odd, x_odd.transpose(), half_odd.transpose());
                butterfly_across_columns(out);
            }
            Self::Diagonal(diagonal) => scaled_transpose(diagonal, x.rb(), out),
        }
    }
}

/// Diagonal blocks `E` (first) and `O` (second) of `½ B_N Ψ B_K`, if Ψ (N × K) is centrosymmetric.
///
/// `None` when a size is odd or `Ψ[N−1−i, K−1−j] = Ψ[i, j]` fails for a single bit: the
/// off-diagonal blocks are then not exactly zero.
pub(super) fn even_odd_blocks<T: Real>(psi: MatRef<'_, T>) -> Option<(Mat<T>, Mat<T>)> {
    let (n, k) = psi.shape();
    if n % 2 == 1 || k % 2 == 1 {
        return None;
    }
    let (half_n, half_k) = (n / 2, k / 2);
    let symmetric = (0..half_k).all(|j| (0..n).all(|i| psi[(i, j)] == psi[(n - 1 - i, k - 1 - j)]));
    if !symmetric {
        return None;
    }
    // ½ B Ψ B gives E = A + C J and O = J (A − C J) J, where A and C are the upper left and right blocks.
    let even = Mat::from_fn(half_n, half_k, |i, j| psi[(i, j)] + psi[(i, k - 1 - j)]);
    let odd = Mat::from_fn(half_n, half_k, |i, j| {
        let (row, mirrored) = (half_n - 1 - i, half_k - 1 - j);
        psi[(row, mirrored)] - psi[(row, k - 1 - mirrored)]
    });
    Some((even, odd))
}

/// The diagonal of a square matrix without any other non-zero entry.
pub(super) fn diagonal_of<T: Real>(psi: MatRef<'_, T>) -> Option<Vec<T>> {
    let (n, k) = psi.shape();
    let diagonal =
        n == k && (0..k).all(|j| (0..n).all(|i| i == j || psi[(i, j)] == T::zero_impl()));
    diagonal.then(|| (0..n).map(|i| psi[(i, i)]).collect())
}

/// `out = (diag X)ᵀ`, in square tiles that stay in the first-level cache.
fn scaled_transpose<T: Real>(diagonal: &[T], x: MatRef<'_, T>, mut out: MatMut<'_, T>) {
    const TILE: usize = 16;
    let (n, r) = x.shape();
    for i in (0..n).step_by(TILE) {
        for j in (0..r).step_by(TILE) {
            for row in i..n.min(i + TILE) {
                for column in j..r.min(j + TILE) {
                    out[(column, row)] = diagonal[row] * x[(row, column)];
                }
            }
        }
    }
}

/// `X ← B X`: within each column, entry i and entry n−1−i become their sum and difference.
fn butterfly_along_columns<T: Real>(x: MatMut<'_, T>) {
    let half = x.nrows() / 2;
    for column in x.col_iter_mut() {
        let Some(column) = column.try_as_col_major_mut() else {
            unreachable!("scratch matrices have contiguous columns")
        };
        let (front, back) = column.as_slice_mut().split_at_mut(half);
        for (a, b) in front.iter_mut().zip(back.iter_mut().rev()) {
            (*a, *b) = (*a + *b, *a - *b);
        }
    }
}

/// `X ← X B`: column j and column m−1−j become their sum and difference.
fn butterfly_across_columns<T: Real>(x: MatMut<'_, T>) {
    let half = x.ncols() / 2;
    let (front, back) = x.split_at_col_mut(half);
    for (left, right) in front.col_iter_mut().zip(back.col_iter_mut().rev()) {
        let (Some(left), Some(right)) = (left.try_as_col_major_mut(), right.try_as_col_major_mut())
        else {
            unreachable!("results have contiguous columns")
        };
        for (a, b) in left.as_slice_mut().iter_mut().zip(right.as_slice_mut()) {
            (*a, *b) = (*a + *b, *a - *b);
        }
    }
}
