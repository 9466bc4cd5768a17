//! Least squares for scattered points: an iterative solver on the Kronecker and blending operator.
//!
//! For scattered points the system does not decouple by axis, and its matrix (65,536 × 65,536 for a
//! quarter of an image) is too large to factor. Applying it is cheap:
//!
//! ```text
//! A = B (Ψ0 ⊗ Ψ1 [⊗ Ψ2]),        A vec(W) = B vec(W ×₀ Ψ0 ×₁ Ψ1 [×₂ Ψ2]),
//! ```
//!
//! with `B` a blending matrix. [`ScatteredSystem`] is this operator. [`ScatteredSystem::solve`]
//! minimizes `‖A w − s‖²` with LSMR (Fong and Saunders, SIAM J. Sci. Comput. 33, 2011). Started
//! from zero, LSMR converges to the solution of least norm. The papers have no such solver.
//!
//! Early stopping regularizes, since directions of small singular values converge last. The number of
//! iterations is therefore a hyperparameter and not only a limit.
//!
//! faer's own LSMR is unsuitable: it advances all right-hand sides as one block. The bits of a channel
//! would depend on the other channels, and equal channels (a gray image) would make the block singular.
//! It also reports no residual.

mod lsmr;
mod operator;

#[cfg(test)]
mod tests;

use faer::MatRef;

use super::apply::Along;
use super::{Real, check_entries, check_finite, check_length};
use crate::{Error, blending::Blending};
use operator::Tiled;

/// The linear map from weights (K0 × K1 [× K2], last index fastest) to the values at scattered points.
///
/// All channels and threads can share it.
#[derive(Clone, Debug)]
pub struct ScatteredSystem<'a, T, const D: usize> {
    forward: [Tiled<T>; D],
    backward: [Tiled<T>; D],
    points: &'a Blending<T, D>,
}

/// Scratch memory for applying the operator.
type Workspace<T> = [Vec<T>; 2];

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LeastSquaresOptions {
    /// τ, from the machine epsilon of the precision to below 1: the solution is accepted when
    /// `‖r‖ ≤ τ (‖s‖ + ‖A‖‖w‖)` or `‖Aᵀr‖ ≤ τ ‖A‖‖r‖`, with r = s − A w. ‖A‖ is the estimate of the
    /// Frobenius norm by the iterations so far.
    pub tolerance: f64,
    /// Largest number of iterations, at least 1. Each applies A and its transpose once.
    pub max_iterations: usize,
}

impl Default for LeastSquaresOptions {
    fn default() -> Self {
        Self { tolerance: 1e-6, max_iterations: 1000 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The residual is small: the targets are met.
    SmallResidual,
    /// The gradient is small: least squares is reached.
    SmallGradient,
    /// The largest number of iterations was reached, or an observer ended the iteration.
    IterationLimit,
    /// The recurrences report convergence, but the recomputed residual and gradient miss ten times the
    /// tolerance: the tolerance is too small for the precision.
    Rounding,
}

#[derive(Clone, Debug, PartialEq)]
pub struct LeastSquares<T> {
    /// w, K0·K1[·K2] numbers, last index fastest.
    pub weights: Vec<T>,
    pub iterations: usize,
    /// ‖s − A w‖, computed from the weights.
    pub residual_norm: f64,
    /// ‖Aᵀ(s − A w)‖, computed from the weights: half the gradient, zero at the solution.
    pub gradient_norm: f64,
    pub stop: Stop,
}

impl<T> LeastSquares<T> {
    /// Whether the tolerance was met.
    pub fn converged(&self) -> bool {
        matches!(self.stop, Stop::SmallResidual | Stop::SmallGradient)
    }
}

impl<'a, T: Real, const D: usize> ScatteredSystem<'a, T, D> {
    /// The system of embedding matrices `psi` (nodes × features, one for each axis) and `points`.
    ///
    /// The matrices of triangles and narrow Gaussians are banded. In each block of rows, products
    /// therefore skip the outer columns whose entries are below ε² times the largest entry of the matrix.
    pub fn new(psi: [MatRef<'_, T>; D], points: &'a Blending<T, D>) -> Result<Self, Error> {
        for (axis, matrix) in psi.iter().enumerate() {
            check_entries(|| format!("embedding matrix {axis}"), *matrix)?;
        }
        for (axis, needed) in points.shape().into_iter().enumerate() {
            let what = format!("rows of embedding matrix {axis} (one for each node)");
            check_length(&what, psi[axis].nrows(), needed)?;
        }
        if points.n_points() == 0 {
            let columns: usize = psi.iter().map(|matrix| matrix.ncols()).product();
            return Err(Error(format!(
                "the system of scattered points is 0×{columns}; it needs at least one row and one column"
            )));
        }
        Ok(Self {
            forward: psi.map(Tiled::new),
            backward: psi.map(|matrix| Tiled::new(matrix.transpose())),
            points,
        })
    }

    pub fn n_points(&self) -> usize {
        self.points.n_points()
    }

    /// Number of weights, K0·K1[·K2].
    pub fn n_weights(&self) -> usize {
        self.forward.iter().map(|axis| axis.shape().1).product()
    }

    /// `A w`: the P values at the points for the given weights.
    pub fn apply(&self, weights: &[T]) -> Result<Vec<T>, Error> {
        check_length("weights", weights.len(), self.n_weights())?;
        let mut values = vec![T::zero_impl(); self.n_points()];
        self.apply_into(weights, &mut values, &mut Workspace::default());
        Ok(values)
    }

    /// Weights that minimize `‖A w − s‖²` for every channel `s` of `targets` (P numbers each).
    ///
    /// Channels are independent: callers may distribute them over threads, and the number of threads changes no bit. The
    /// result reports whether the tolerance was met; running out of iterations is not an error.
    ///
    /// # Errors
    ///
    /// Options out of range, channels of the wrong length or with values that are not finite, and numbers that grow beyond the
    /// range of `T`.
    pub fn solve(
        &self,
        targets: &[&[T]],
        options: &LeastSquaresOptions,
    ) -> Result<Vec<LeastSquares<T>>, Error> {
        let channels = targets.iter().enumerate();
        let solve = |(channel, target): (usize, &&[T])| {
            let go_on = &mut |_: usize, _: &[T]| true;
            self.solve_channel(&format!("channel {channel}"), target, options, go_on)
        };
        channels.map(solve).collect()
    }

    /// Solves for one channel, like [`Self::solve`]. After each iteration, `observe` gets its number, from 1, and the weights, and
    /// returns whether to continue.
    pub fn solve_observed(
        &self,
        target: &[T],
        options: &LeastSquaresOptions,
        observe: &mut dyn FnMut(usize, &[T]) -> bool,
    ) -> Result<LeastSquares<T>, Error> {
        self.solve_channel("the channel", target, options, observe)
    }

    fn solve_channel(
        &self,
        what: &str,
        target: &[T],
        options: &LeastSquaresOptions,
        observe: &mut dyn FnMut(usize, &[T]) -> bool,
    ) -> Result<LeastSquares<T>, Error> {
        check_length(&format!("values of {what}"), target.len(), self.n_points())?;
        check_finite(target, what, |at| format!("point {at}"))?;
        options.check::<T>()?;
        let mut iteration = 0;
        lsmr::solve(self, target, options, &mut |weights, _, _| {
            iteration += 1;
            observe(iteration, weights)
        })
    }
}

impl LeastSquaresOptions {
    fn check<T: Real>(&self) -> Result<(), Error> {
        let setting = |name: &str, value: f64, allowed: &str| {
            Err(Error(format!("{name} must be {allowed}, got {value}")))
        };
        if !(T::EPSILON..1.0).contains(&self.tolerance) {
            return setting(
                "tolerance",
                self.tolerance,
                &format!("at least {:e} (the machine epsilon) and below 1", T::EPSILON),
            );
        }
        if self.max_iterations == 0 {
            return setting("max_iterations", 0.0, "at least 1");
        }
        Ok(())
    }
}
