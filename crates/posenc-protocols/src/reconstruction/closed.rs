//! Closed-form weights of a linear layer on the complex encoding: by factorization on a grid, by LSMR at scattered positions.

use anyhow::{Result, bail};
use faer::{Mat, MatRef};
use posenc_harness::device::CPU;
use posenc_harness::stopwatch::Stopwatch;
use posenc_math::closed_form::{
    Factorization, LeastSquares, LeastSquaresOptions, RankReport, Real, ScatteredSystem, Solver,
    default_rcond, predict, solve,
};
use posenc_math::embedder::{Embedder, line};
use posenc_math::quality::psnr_of;

use super::complex::Scattered;
use super::points::Split;
use crate::memory::{check_memory, embedding_matrix};
use posenc_data::Signal;

/// A least-squares solution.
pub struct Solved {
    pub parameters: usize,
    /// Values at all positions, channel by channel.
    pub predictions: Vec<Vec<f64>>,
    /// Seconds from the targets to the weights, without the factorization on a grid.
    pub seconds: f64,
}

impl Solved {
    /// The predictions in the layout of [`Signal::values`].
    pub fn interleaved(&self) -> Vec<f64> {
        let points = self.predictions.first().map_or(0, Vec::len);
        (0..points)
            .flat_map(|point| self.predictions.iter().map(move |channel| channel[point]))
            .collect()
    }

    /// PSNR in dB at the training positions, and at the test positions.
    pub fn psnrs(&self, signal: &Signal, split: &Split) -> [f64; 2] {
        let (mut error, mut count) = ([0.0; 2], [0usize; 2]);
        let mut sums: Vec<Option<usize>> = vec![None; signal.points()];
        for (k, points) in [&split.train, &split.test].into_iter().enumerate() {
            points.iter().for_each(|&point| sums[point as usize] = Some(k));
        }
        for (channel, prediction) in self.predictions.iter().enumerate() {
            for (point, value) in prediction.iter().enumerate() {
                let Some(k) = sums[point] else { continue };
                let difference = value - signal.at(point, channel);
                error[k] += difference * difference;
                count[k] += 1;
            }
        }
        [0, 1].map(|k| psnr_of(error[k] / count[k] as f64))
    }
}

/// Embedding matrices of one side length.
pub struct Axis<T> {
    side: usize,
    /// Embedding of all positions.
    full: Mat<T>,
    /// Pseudoinverse of the embedding of the training positions.
    factorization: Factorization<T>,
    /// Seconds to encode the training positions and factor their matrix.
    pub seconds: f64,
}

impl<T: Real> Axis<T> {
    fn new(
        embedder: &dyn Embedder,
        side: usize,
        step: usize,
        (cutoff, solver): (Option<f64>, Solver),
    ) -> Result<Self> {
        let positions = line(side);
        let training: Vec<f64> = positions.iter().step_by(step).copied().collect();
        let stopwatch = Stopwatch::start(CPU);
        let psi = typed_matrix::<T>(&embedding_matrix(embedder, &training)?);
        let cutoff = cutoff.unwrap_or_else(|| default_rcond(training.len(), embedder.dimension()));
        let factorization = Factorization::with_solver(psi.as_ref(), cutoff, solver)?;
        let seconds = stopwatch.seconds();
        let full = typed_matrix(&embedding_matrix(embedder, &positions)?);
        Ok(Axis { side, full, factorization, seconds })
    }

    /// Rank and condition of the training positions' matrix.
    pub fn report(&self) -> &RankReport {
        self.factorization.report()
    }
}

/// Converts an embedding, which is computed in double precision.
pub(super) fn typed_matrix<T: Real>(matrix: &Mat<f64>) -> Mat<T> {
    Mat::from_fn(matrix.nrows(), matrix.ncols(), |i, j| T::from_f64(matrix[(i, j)]))
}

/// The axes of a signal, in order. A side that is not in `known` is factored with the given solver and cutoff; the default cutoff is that
/// of the authors' library.
pub fn axes<'a, T: Real>(
    known: &'a mut Vec<Axis<T>>,
    embedder: &dyn Embedder,
    signal: &Signal,
    step: usize,
    solver: (Option<f64>, Solver),
) -> Result<Vec<&'a Axis<T>>> {
    // The weights and half of the products of all channels are the largest arrays.
    let d = embedder.dimension() as f64;
    let values: f64 = signal.sides.iter().map(|&n| (n as f64).max(d)).product();
    check_memory("the solver", 4.0 * signal.channels as f64 * values)?;
    for &side in &signal.sides {
        if !known.iter().any(|axis| axis.side == side) {
            known.push(Axis::new(embedder, side, step, solver)?);
        }
    }
    let find = |side: &usize| known.iter().find(|axis| axis.side == *side);
    Ok(signal.sides.iter().filter_map(find).collect())
}

/// Solves for the weights with every `step`-th position along each axis as training position (`trading` Eq. 12).
pub fn separable<T: Real>(signal: &Signal, axes: &[&Axis<T>], step: usize) -> Result<Solved> {
    // In an image, rows are the fastest axis; the order of the axes decides the rounding.
    let mut order: Vec<usize> = (0..axes.len()).collect();
    if axes.len() == 2 {
        order.reverse();
    }
    let axes: Vec<&Axis<T>> = order.iter().map(|&axis| axes[axis]).collect();
    // The points of a grid with every `step`-th position, in the order of its values.
    let points = |step: usize| {
        order.iter().fold(vec![0], |points, &axis| {
            let stride: usize = signal.sides[axis + 1..].iter().product();
            let along = (0..signal.sides[axis]).step_by(step).map(|i| i * stride);
            points.iter().flat_map(|point| along.clone().map(move |own| point + own)).collect()
        })
    };
    let training = points(step);
    let channels: Vec<Vec<T>> = (0..signal.channels)
        .map(|c| training.iter().map(|&point| T::from_f64(signal.at(point, c))).collect())
        .collect();
    let stopwatch = Stopwatch::start(CPU);
    let factors: Vec<&Factorization<T>> = axes.iter().map(|axis| &axis.factorization).collect();
    let weights = solve(&factors, &channels)?;
    let seconds = stopwatch.seconds();
    let full: Vec<MatRef<'_, T>> = axes.iter().map(|axis| axis.full.as_ref()).collect();
    let all = points(1);
    let in_order = |values: Vec<T>| {
        let mut ordered = vec![0.0; values.len()];
        all.iter().zip(values).for_each(|(&point, value)| ordered[point] = value.to_f64());
        ordered
    };
    let predictions = predict(&full, &weights)?.into_iter().map(in_order).collect();
    let parameters = weights.iter().map(Vec::len).sum();
    Ok(Solved { parameters, predictions, seconds })
}

/// Least squares at random positions: LSMR on the product of blending and Kronecker matrices. Also returns the solution of each channel.
pub fn scattered<T: Real>(
    signal: &Signal,
    grid: &Scattered,
    split: &Split,
    options: &LeastSquaresOptions,
) -> Result<(Solved, Vec<LeastSquares<T>>)> {
    match signal.sides.len() {
        2 => in_dimensions::<T, 2>(signal, grid, split, options),
        3 => in_dimensions::<T, 3>(signal, grid, split, options),
        _ => bail!("a closed form needs images or clips"),
    }
}

fn in_dimensions<T: Real, const D: usize>(
    signal: &Signal,
    grid: &Scattered,
    split: &Split,
    options: &LeastSquaresOptions,
) -> Result<(Solved, Vec<LeastSquares<T>>)> {
    let weights = (grid.nodes.ncols() as f64).powi(D as i32);
    check_memory("the solver", 8.0 * signal.channels as f64 * weights)?;
    let stopwatch = Stopwatch::start(CPU);
    let targets: Vec<Vec<T>> = (0..signal.channels)
        .map(|c| split.train.iter().map(|&p| T::from_f64(signal.at(p as usize, c))).collect())
        .collect();
    let psi = typed_matrix::<T>(&grid.nodes);
    let blending = grid.blending::<T, D>(&split.train)?;
    let system = ScatteredSystem::new([psi.as_ref(); D], &blending)?;
    let channels: Vec<&[T]> = targets.iter().map(Vec::as_slice).collect();
    let solutions = system.solve(&channels, options)?;
    let seconds = stopwatch.seconds();
    let all: Vec<u32> = (0..signal.points() as u32).collect();
    let blending = grid.blending::<T, D>(&all)?;
    let everywhere = ScatteredSystem::new([psi.as_ref(); D], &blending)?;
    let predict = |solution: &LeastSquares<T>| -> Result<Vec<f64>> {
        let values = everywhere.apply(&solution.weights)?;
        Ok(values.into_iter().map(Real::to_f64).collect())
    };
    let predictions = solutions.iter().map(predict).collect::<Result<_>>()?;
    let parameters = solutions.iter().map(|s| s.weights.len()).sum();
    Ok((Solved { parameters, predictions, seconds }, solutions))
}
