//! Largest eigenvalue of a symmetric positive semidefinite operator, by Lanczos iterations.

use faer::{Mat, Side};

use super::{all_zero, dot, no_convergence};
use crate::Error;

/// Accepted residual, relative to the eigenvalue.
const TOLERANCE: f64 = 1e-8;

/// Maximum number of iterations, which bounds memory. For narrow kernels, the eigenvalue converges long
/// before its residual does.
const MAX_KRYLOV_DIMENSION: usize = 600;

/// λ_max of the operator `apply(v, out)`: `out = A v`, both of the length of `start`.
///
/// Full reorthogonalization (twice) keeps the tridiagonal matrix exact. The iteration ends when the residual of the largest
/// Ritz value, which bounds its error, is small. (The sharper bound, the squared residual over the gap to the next value, fails
/// for narrow kernels: their largest eigenvalues are clustered, and unseparated values have no gap.) `start` must have a component
/// along the wanted eigenvector, so callers add noise.
pub(super) fn largest_eigenvalue(
    mut apply: impl FnMut(&[f64], &mut [f64]),
    start: Vec<f64>,
) -> Result<f64, Error> {
    let n = start.len();
    let mut basis: Vec<Vec<f64>> = vec![normalized(start).ok_or_else(all_zero)?];
    let mut diagonal: Vec<f64> = Vec::new();
    let mut off_diagonal: Vec<f64> = Vec::new();
    let mut next_check = 4;
    loop {
        let k = diagonal.len();
        let mut image = vec![0.0; n];
        apply(&basis[k], &mut image);
        diagonal.push(dot(&basis[k], &image));
        for _ in 0..2 {
            for vector in &basis {
                let component = dot(vector, &image);
                for (value, direction) in image.iter_mut().zip(vector) {
                    *value -= component * direction;
                }
            }
        }
        let beta = dot(&image, &image).sqrt();
        let k = diagonal.len();
        let scale = diagonal.iter().copied().fold(0.0, f64::max);
        let is_last = k == n.min(MAX_KRYLOV_DIMENSION) || beta <= 1e-14 * scale;
        if k == next_check || is_last {
            let (largest, residual) = ritz(&diagonal, &off_diagonal, beta)?;
            if is_last || residual <= TOLERANCE * largest {
                return Ok(largest);
            }
            next_check = k + (k / 4).max(3);
        }
        for value in &mut image {
            *value /= beta;
        }
        off_diagonal.push(beta);
        basis.push(image);
    }
}

/// The largest Ritz value and the norm of its residual, which bounds its error.
fn ritz(diagonal: &[f64], off_diagonal: &[f64], beta: f64) -> Result<(f64, f64), Error> {
    let k = diagonal.len();
    let tridiagonal = Mat::from_fn(k, k, |i, j| match i.abs_diff(j) {
        0 => diagonal[i],
        1 => off_diagonal[i.min(j)],
        _ => 0.0,
    });
    let eigen = tridiagonal.self_adjoint_eigen(Side::Lower).map_err(no_convergence)?;
    Ok((eigen.S().column_vector()[k - 1], (beta * eigen.U()[(k - 1, k - 1)]).abs()))
}

fn normalized(mut vector: Vec<f64>) -> Option<Vec<f64>> {
    let norm = dot(&vector, &vector).sqrt();
    if !(norm > 0.0 && norm.is_finite()) {
        return None;
    }
    for value in &mut vector {
        *value /= norm;
    }
    Some(vector)
}
