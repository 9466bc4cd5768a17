//! Lanczos iterations, and the largest eigenvalues of their tridiagonal matrix.

use posenc_math::spectrum::{self, Tridiagonal, norm};

use super::MAX_KRYLOV_DIMENSION;
use super::gram::Gram;

/// Approximation of the largest eigenvalues by a Krylov space.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ritz {
    /// θ₁, at most λ₁.
    pub first: f64,
    /// θ₂; 0 in a space of one dimension.
    pub second: f64,
    pub sum: f64,
    /// Residual ‖A y − θ₁ y‖ of the unit Ritz vector y. Some eigenvalue is within this distance of θ₁.
    pub residual: f64,
}

impl Ritz {
    /// A proved bound of λ₁ − θ₁ from the `trace` of the Gram matrix; `None` if the Krylov space does not yet cover
    /// enough of the trace. See [`super`].
    pub fn error_bound(&self, trace: f64) -> Option<f64> {
        let gap = self.first - self.second - (trace - self.sum);
        (gap > self.residual).then(|| self.residual * self.residual / gap)
    }
}

/// Runs Lanczos iterations from `start` until `is_enough` returns true, the space is exhausted, or
/// [`MAX_KRYLOV_DIMENSION`] is reached.
pub(super) fn lanczos(
    gram: &mut Gram<'_>,
    start: Vec<f64>,
    is_enough: &mut dyn FnMut(&Ritz) -> bool,
) -> Ritz {
    let mut latest = Ritz { first: 0.0, second: 0.0, sum: 0.0, residual: f64::INFINITY };
    let apply = &mut |x: &[f64], out: &mut [f64]| gram.apply(x, out);
    // A check costs a fraction of an iteration, but the cost grows with k.
    let pause = |k: usize| (k / 8).max(1);
    spectrum::lanczos(apply, start, MAX_KRYLOV_DIMENSION, pause, &mut |matrix| {
        latest = ritz(matrix);
        is_enough(&latest)
    });
    latest
}

/// Ritz values from the tridiagonal matrix T.
fn ritz(Tridiagonal { diagonal, off_diagonal, next }: &Tridiagonal) -> Ritz {
    let k = diagonal.len();
    let squares: Vec<f64> = off_diagonal.iter().map(|b| b * b).collect();
    let (first, above) = eigenvalue(diagonal, &squares, off_diagonal, 0);
    let second = if k > 1 { eigenvalue(diagonal, &squares, off_diagonal, 1).0 } else { 0.0 };
    let sum = diagonal.iter().sum();
    let residual = next * last_component(diagonal, off_diagonal, above);
    Ritz { first, second, sum, residual }
}

/// Bisects for the eigenvalue of T that has `larger` eigenvalues above it. Returns the ends of an interval: the lower
/// end is at most the eigenvalue, the upper end at least.
fn eigenvalue(
    diagonal: &[f64],
    squares: &[f64],
    off_diagonal: &[f64],
    larger: usize,
) -> (f64, f64) {
    let k = diagonal.len();
    let radius = |i: usize| {
        let before = if i > 0 { off_diagonal[i - 1] } else { 0.0 };
        before + off_diagonal.get(i).copied().unwrap_or(0.0)
    };
    // T is positive semidefinite. Gershgorin's theorem bounds its eigenvalues from above.
    let mut above = (0..k).map(|i| diagonal[i] + radius(i)).fold(0.0, f64::max) * (1.0 + 1e-12);
    let mut below = 0.0;
    let accuracy = 1e-13 * above;
    while above - below > accuracy {
        let middle = 0.5 * (below + above);
        if middle <= below || middle >= above {
            break;
        }
        if count_above(diagonal, squares, middle) > larger {
            below = middle;
        } else {
            above = middle;
        }
    }
    (below, above)
}

/// Number of eigenvalues of T above x: the number of negative pivots of xI − T, by Sylvester's law of inertia.
fn count_above(diagonal: &[f64], squares: &[f64], x: f64) -> usize {
    let mut pivot = x - diagonal[0];
    let mut count = usize::from(pivot < 0.0);
    for (d, square) in diagonal[1..].iter().zip(squares) {
        // Replace a zero pivot by a tiny one.
        let before = if pivot.abs() < f64::MIN_POSITIVE { f64::MIN_POSITIVE } else { pivot };
        pivot = x - d - square / before;
        count += usize::from(pivot < 0.0);
    }
    count
}

/// Absolute value of the last component of the unit eigenvector of T's largest eigenvalue. Two inverse iterations use
/// a shift just `above` the eigenvalue, so that `above`·I − T is positive definite and needs no pivoting.
fn last_component(diagonal: &[f64], off_diagonal: &[f64], above: f64) -> f64 {
    let k = diagonal.len();
    let tiny = 1e-14 * above;
    let mut pivots = Vec::with_capacity(k);
    for i in 0..k {
        let mut pivot = above - diagonal[i];
        if i > 0 {
            pivot -= off_diagonal[i - 1] * off_diagonal[i - 1] / pivots[i - 1];
        }
        pivots.push(pivot.max(tiny));
    }
    let mut vector = vec![1.0; k];
    for _ in 0..2 {
        // The off-diagonal entries of xI − T are −off_diagonal.
        for i in 1..k {
            vector[i] += off_diagonal[i - 1] / pivots[i - 1] * vector[i - 1];
        }
        vector[k - 1] /= pivots[k - 1];
        for i in (0..k - 1).rev() {
            vector[i] = (vector[i] + off_diagonal[i] * vector[i + 1]) / pivots[i];
        }
        let length = norm(&vector);
        vector.iter_mut().for_each(|value| *value /= length);
    }
    vector[k - 1].abs()
}
