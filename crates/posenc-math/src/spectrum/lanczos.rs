//! Lanczos iterations on a symmetric positive semidefinite operator, and its largest eigenvalue.

use faer::{Mat, Side};

use super::{all_zero, dot, no_convergence};
use crate::Error;
use crate::vectorized::vectorized;

/// Accepted residual, relative to the eigenvalue.
const TOLERANCE: f64 = 1e-8;

/// Maximum number of iterations, which bounds memory. For narrow kernels, the eigenvalue converges long
/// before its residual does.
const MAX_KRYLOV_DIMENSION: usize = 600;

/// The operator in the orthonormal basis of a Krylov space.
#[derive(Debug, Default)]
pub struct Tridiagonal {
    pub diagonal: Vec<f64>,
    pub off_diagonal: Vec<f64>,
    /// The off-diagonal entry after the last one: what the basis misses of the operator's image.
    pub next: f64,
}

/// Runs Lanczos iterations with the operator `apply(v, out)`: `out = A v`, both of the length of `start`, which is not zero. They end
/// when `is_enough` returns true, when the space is exhausted, or at `limit` dimensions. The first check is after four dimensions, and
/// the next one `pause(k)` after the one at k; the last space is always checked.
///
/// Full reorthogonalization (twice) keeps the tridiagonal matrix exact.
pub fn lanczos(
    apply: &mut dyn FnMut(&[f64], &mut [f64]),
    mut start: Vec<f64>,
    limit: usize,
    pause: fn(usize) -> usize,
    is_enough: &mut dyn FnMut(&Tridiagonal) -> bool,
) {
    let size = start.len();
    let length = norm(&start);
    start.iter_mut().for_each(|value| *value /= length);
    let mut basis = vec![start];
    let mut matrix = Tridiagonal::default();
    let mut next_check = 4;
    loop {
        let mut image = vec![0.0; size];
        let latest = &basis[matrix.diagonal.len()];
        apply(latest, &mut image);
        matrix.diagonal.push(dot(latest, &image));
        for _ in 0..2 {
            orthogonalize(&mut image, &basis);
        }
        let k = matrix.diagonal.len();
        matrix.next = norm(&image);
        let scale = matrix.diagonal.iter().copied().fold(0.0, f64::max);
        let is_last = k == size.min(limit) || matrix.next <= 1e-14 * scale;
        if k == next_check || is_last {
            if is_enough(&matrix) || is_last {
                return;
            }
            next_check = k + pause(k);
        }
        image.iter_mut().for_each(|value| *value /= matrix.next);
        matrix.off_diagonal.push(matrix.next);
        basis.push(image);
    }
}

/// Removes the components along the vectors of an orthonormal basis.
fn orthogonalize(image: &mut [f64], basis: &[Vec<f64>]) {
    vectorized(
        #[inline(always)]
        || {
            for vector in basis {
                let component = dot(vector, image);
                for (value, direction) in image.iter_mut().zip(vector) {
                    *value -= component * direction;
                }
            }
        },
    );
}

/// The Euclidean norm, summed as by [`dot`].
pub fn norm(vector: &[f64]) -> f64 {
    dot(vector, vector).sqrt()
}

/// λ_max of the operator `apply(v, out)`: `out = A v`, both of the length of `start`.
///
/// The iteration ends when the residual of the largest Ritz value, which bounds its error, is small. (The sharper bound, the squared
/// residual over the gap to the next value, fails for narrow kernels: their largest eigenvalues are clustered, and unseparated values
/// have no gap.) `start` must have a component along the wanted eigenvector, so callers add noise.
pub(super) fn largest_eigenvalue(
    mut apply: impl FnMut(&[f64], &mut [f64]),
    start: Vec<f64>,
) -> Result<f64, Error> {
    let length = norm(&start);
    if !(length > 0.0 && length.is_finite()) {
        return Err(all_zero());
    }
    let mut found = Err(all_zero());
    lanczos(&mut apply, start, MAX_KRYLOV_DIMENSION, |k| (k / 4).max(3), &mut |matrix| {
        found = ritz(matrix);
        found.as_ref().map_or(true, |(largest, residual)| *residual <= TOLERANCE * largest)
    });
    found.map(|(largest, _)| largest)
}

/// The largest Ritz value and the norm of its residual, which bounds its error.
fn ritz(matrix: &Tridiagonal) -> Result<(f64, f64), Error> {
    let k = matrix.diagonal.len();
    let tridiagonal = Mat::from_fn(k, k, |i, j| match i.abs_diff(j) {
        0 => matrix.diagonal[i],
        1 => matrix.off_diagonal[i.min(j)],
        _ => 0.0,
    });
    let eigen = tridiagonal.self_adjoint_eigen(Side::Lower).map_err(no_convergence)?;
    Ok((eigen.S().column_vector()[k - 1], (matrix.next * eigen.U()[(k - 1, k - 1)]).abs()))
}
