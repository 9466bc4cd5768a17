//! Least squares for scattered points: an iterative solver on the Kronecker and blending operator.
//!
//! At points that are no grid the system does not decouple, and its matrix (65,536 × 65,536 for a
//! quarter of an image) is too large to factor. It is cheap to apply, though,
//!
//! ```text
//! A = B (Ψ0 ⊗ Ψ1 [⊗ Ψ2]),        A vec(W) = B vec(W ×₀ Ψ0 ×₁ Ψ1 [×₂ Ψ2]),
//! ```
//!
//! with `B` a blending matrix. [`ScatteredSystem`] is that operator, [`ScatteredSystem::solve`] minimizes `‖A w − s‖² + λ‖w‖²` with LSMR (Fong and
//! Saunders, SIAM J. Sci. Comput. 33, 2011), which started from zero tends to the solution of least
//! norm. The papers have no such solver.
//!
//! Stopping early regularizes: directions of small singular values come last. The number of iterations
//! is therefore a setting as much as a limit.
//!
//! faer's own LSMR does not serve: it advances all right-hand sides as one block, so that a channel's
//! bits would depend on the others and equal channels (a grey picture) make the block singular, and it
//! knows no λ and no residual.

mod lsmr;
mod operator;

#[cfg(test)]
mod tests;

use faer::MatRef;

use super::{Real, check_entries, check_length, not_finite};
use crate::{Error, blending::Blending};
use operator::Tiled;

/// The linear map from weights (K0 × K1 [× K2], last index fastest) to the values at scattered points.
///
/// It is shared by all channels, and by threads.
#[derive(Clone, Debug)]
pub struct ScatteredSystem<'a, T, const D: usize> {
    forward: [Tiled<T>; D],
    backward: [Tiled<T>; D],
    points: &'a Blending<T, D>,
}

/// Memory for one application at a time.
#[derive(Clone, Debug)]
struct Workspace<T> {
    nodes: Vec<T>,
    scratch: Vec<T>,
}

/// When the iteration stops, and λ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LeastSquaresOptions {
    /// τ, from the machine epsilon of the precision to below 1: the solution is accepted when
    /// `‖r‖ ≤ τ (‖s‖ + ‖A‖‖w‖)` or `‖Aᵀr − λw‖ ≤ τ ‖A‖‖r‖`, with r = s − A w and the Frobenius norm of
    /// A as far as the iteration has seen it.
    pub tolerance: f64,
    /// Largest number of iterations, at least 1. One applies A once and its transpose once.
    pub max_iterations: usize,
    /// λ ≥ 0 of the Tikhonov term λ‖w‖².
    pub lambda: f64,
}

impl Default for LeastSquaresOptions {
    /// A tolerance of 1e-6, 1000 iterations, no Tikhonov term.
    fn default() -> Self {
        Self { tolerance: 1e-6, max_iterations: 1000, lambda: 0.0 }
    }
}

/// Why an iteration ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The residual is small: the targets are met.
    SmallResidual,
    /// The gradient is small: least squares is reached.
    SmallGradient,
    /// The largest number of iterations came first.
    IterationLimit,
    /// The recurrences report convergence, but residual and gradient computed again miss ten times
    /// the tolerance: it asks for more than the precision gives.
    Rounding,
}

/// Weights of one channel, and how they were reached.
#[derive(Clone, Debug, PartialEq)]
pub struct LeastSquares<T> {
    /// w, K0·K1[·K2] numbers, last index fastest.
    pub weights: Vec<T>,
    /// Number of iterations.
    pub iterations: usize,
    /// ‖s − A w‖, computed from the weights.
    pub residual_norm: f64,
    /// ‖Aᵀ(s − A w) − λw‖, computed from the weights: half the gradient, zero at the solution.
    pub gradient_norm: f64,
    /// Why the iteration ended.
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
    /// Products leave out what lies below ε² of a matrix' largest entry, in blocks of rows: the
    /// matrices of triangles and narrow Gaussians are bands.
    ///
    /// # Errors
    ///
    /// Matrices that are empty, not finite or encode another number of nodes; no points.
    pub fn new(psi: [MatRef<'_, T>; D], points: &'a Blending<T, D>) -> Result<Self, Error> {
        for (axis, matrix) in psi.iter().enumerate() {
            check_entries(|| format!("embedding matrix {axis}"), *matrix)?;
        }
        for (axis, needed) in points.shape().into_iter().enumerate() {
            let what = format!("nodes that embedding matrix {axis} encodes");
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

    /// Number of points P.
    pub fn n_points(&self) -> usize {
        self.points.n_points()
    }

    /// Number of weights, K0·K1[·K2].
    pub fn n_weights(&self) -> usize {
        self.forward.iter().map(|axis| axis.shape().1).product()
    }

    /// `A w`: the values (P) that weights give at the points.
    ///
    /// # Errors
    ///
    /// Another number of weights.
    pub fn apply(&self, weights: &[T]) -> Result<Vec<T>, Error> {
        check_length("weights", weights.len(), self.n_weights())?;
        let mut values = vec![T::zero_impl(); self.n_points()];
        self.apply_into(weights, &mut values, &mut self.workspace());
        Ok(values)
    }

    /// Weights that minimize `‖A w − s‖² + λ‖w‖²` for every channel `s` of `targets` (P numbers each).
    ///
    /// Channels are independent: any number of threads may each solve some of them, and the bits do not depend on the
    /// number. The result reports whether the tolerance was met; running out of iterations is not an error.
    ///
    /// ```
    /// use posenc_math::blending::{AxisBlending, Blending, GridConvention, VirtualGrid, WeightVariant};
    /// use posenc_math::closed_form::{LeastSquaresOptions, ScatteredSystem};
    /// use posenc_math::faer::Mat;
    ///
    /// let kernel = |delta: f64| (-delta * delta).exp();
    /// let psi = Mat::from_fn(8, 8, |i, j| kernel(i as f64 - j as f64));
    /// // Five points between 8 × 8 nodes.
    /// let grid = VirtualGrid::new(8, GridConvention::Consistent)?;
    /// let coordinates = [0.0, 0.2, 0.45, 0.7, 1.0];
    /// let axis = AxisBlending::new(&grid, &coordinates, &|x| kernel(5.0 * x), WeightVariant::Normalized)?;
    /// let points = [[0, 4], [1, 1], [2, 3], [3, 0], [4, 2]];
    /// let blending = Blending::new([&axis, &axis], points.to_vec())?;
    /// let system = ScatteredSystem::new([psi.as_ref(), psi.as_ref()], &blending)?;
    /// let target = [0.1, 0.5, 0.9, 0.3, 0.7];
    /// let solution = &system.solve(&[&target], &LeastSquaresOptions::default())?[0];
    /// assert!(solution.converged());
    /// let fitted = system.apply(&solution.weights)?;
    /// assert!(fitted.iter().zip(target).all(|(f, t)| (f - t).abs() < 1e-4));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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

    /// As [`Self::solve`] for one channel. `observe` gets the number of each iteration, from 1, and the weights after it, and returns
    /// whether to go on.
    ///
    /// # Errors
    ///
    /// As [`Self::solve`].
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
        check_length(what, target.len(), self.n_points())?;
        if let Some(at) = target.iter().position(|value| !value.to_f64().is_finite()) {
            return Err(not_finite(what, target[at], &format!("point {at}")));
        }
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
            Err(Error(format!("{name} is {value}; allowed is {allowed}")))
        };
        if !(T::EPSILON..1.0).contains(&self.tolerance) {
            return setting(
                "tolerance",
                self.tolerance,
                &format!("{:e} (the precision) to below 1", T::EPSILON),
            );
        }
        if self.max_iterations == 0 {
            return setting("max_iterations", 0.0, "1 or more");
        }
        if !(self.lambda >= 0.0 && self.lambda.is_finite()) {
            return setting("lambda", self.lambda, "0 or a positive number");
        }
        Ok(())
    }
}
