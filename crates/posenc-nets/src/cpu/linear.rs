//! One affine layer on a shared embedding: all runs as columns of one product.
//!
//! An epoch is one pass over the features. For each block of features, the pass computes the gradient from the
//! residuals of the last epoch, takes the Adam step, and adds the block's contribution to the new outputs, while its
//! piece of the embedding is in cache. The embedding is thus read once per epoch, and the training error after a step
//! costs nothing.

use std::ops::Range;
use std::slice::from_mut;

use faer::{Accum, Mat, MatRef};

use super::bands::{Band, bands, threshold};
use super::kernels;
use super::parallel::in_chunks;
use crate::optimizer::StepConstants;
use crate::{Input, Layer, NetError, Parameters, Progress, SampleSet, Session, State, Task};

/// Features per block: the piece of an embedding of 256 points fits into the L2 cache.
const BLOCK: usize = 128;

/// Columns (runs × outputs) per product of an affine task. It is fixed, so that the number of threads does not change
/// the bits of a result. A run has the same bits in all tasks whose number of columns is a multiple of `GROUP`;
/// smaller products may sum in another order.
pub const GROUP: usize = 8;

/// With fewer columns than this, a block is processed row by row, otherwise as a matrix product.
const FEW: usize = 4;

/// ψ of one block of features at the points where it does not vanish.
#[derive(Debug)]
struct Piece {
    band: Band,
    /// For each feature, the values at all points.
    by_point: Vec<f32>,
    /// For each point, the values of all features; empty if there are few columns.
    by_feature: Vec<f32>,
}

impl Piece {
    /// All nonzero blocks of an input; `wide` if there are at least [`FEW`] columns.
    fn all(input: &Input, wide: bool) -> Vec<Piece> {
        let copy;
        let matrix = match input {
            Input::Dense(matrix) => &**matrix,
            _ => {
                copy = input.to_dense();
                &copy
            }
        };
        let threshold = threshold(matrix);
        let at = |j: usize, i: usize| {
            let value = matrix[(j, i)];
            if value.abs() < threshold { 0.0 } else { value }
        };
        let piece = |band: Band| {
            let (features, points) = (band.features.clone(), band.points.clone());
            let of_feature = |j| points.clone().map(move |i| at(j, i));
            let of_point = |i| features.clone().map(move |j| at(j, i));
            let by_point = features.clone().flat_map(of_feature).collect();
            let by_feature = match wide {
                true => points.clone().flat_map(of_point).collect(),
                false => Vec::new(),
            };
            Piece { band, by_point, by_feature }
        };
        bands(matrix, threshold, BLOCK).into_iter().map(piece).collect()
    }

    fn features(&self) -> usize {
        self.band.features.len()
    }

    fn points(&self) -> usize {
        self.band.points.len()
    }

    /// g ← Ψ r for the columns r of `residuals`.
    fn gradient(&self, residuals: &Mat<f32>, gradient: &mut Mat<f32>) {
        let (features, points) = (self.features(), self.points());
        if !self.by_feature.is_empty() {
            let gradient = gradient.as_mut().subrows_mut(0, features);
            let psi = MatRef::from_column_major_slice(&self.by_feature, features, points);
            let residuals = residuals.as_ref().subrows(self.band.points.start, points);
            return kernels::multiply(gradient, Accum::Replace, psi, residuals);
        }
        for first in (0..features).step_by(kernels::ROWS) {
            let rows = first..(first + kernels::ROWS).min(features);
            let psi = &self.by_point[rows.start * points..rows.end * points];
            for k in 0..residuals.ncols() {
                let r = &residuals.col_as_slice(k)[self.band.points.clone()];
                kernels::dots(psi, r, &mut gradient.col_as_slice_mut(k)[rows.clone()]);
            }
        }
    }

    /// y ← y + Ψᵀ w for the columns w of `theta`.
    fn add_outputs(&self, theta: &Mat<f32>, outputs: &mut Mat<f32>) {
        let (features, points) = (self.features(), self.points());
        if !self.by_feature.is_empty() {
            let outputs = outputs.as_mut().subrows_mut(self.band.points.start, points);
            let psi = MatRef::from_column_major_slice(&self.by_point, points, features);
            let theta = theta.as_ref().subrows(self.band.features.start, features);
            return kernels::multiply(outputs, Accum::Add, psi, theta);
        }
        for first in (0..features).step_by(kernels::ROWS) {
            let rows = first..(first + kernels::ROWS).min(features);
            let psi = &self.by_point[rows.start * points..rows.end * points];
            let start = self.band.features.start;
            let weights = start + rows.start..start + rows.end;
            for k in 0..theta.ncols() {
                let y = &mut outputs.col_as_slice_mut(k)[self.band.points.clone()];
                kernels::axpys(psi, &theta.col_as_slice(k)[weights.clone()], y);
            }
        }
    }
}

/// Up to [`GROUP`] columns of weights and outputs, with their training state.
#[derive(Debug)]
struct Group {
    /// Index of the first of these columns in the task.
    first: usize,
    /// Weights and their moments, d × columns each.
    theta: Mat<f32>,
    first_moment: Mat<f32>,
    second_moment: Mat<f32>,
    /// For each column, the bias and its two moments.
    bias: Vec<[f32; 3]>,
    /// Targets, outputs, outputs − targets; N × columns each.
    targets: Mat<f32>,
    outputs: Mat<f32>,
    residuals: Mat<f32>,
    /// Sum of squared residuals per column, at the training points and at the test points.
    squares: Vec<f64>,
    test_squares: Vec<f64>,
    /// Gradient of the current block, [`BLOCK`] × columns.
    gradient: Mat<f32>,
}

impl Group {
    fn new(task: &Task, first: usize) -> Self {
        let outputs = task.network.output;
        let c = GROUP.min(task.train.targets.ncols() - first);
        let (d, n) = (task.network.input, task.train.input.points());
        let layer = |k: usize| {
            let column = first + k;
            (&task.initial[column / outputs].layers[0], column % outputs)
        };
        let weight = |j, k| {
            let (layer, output) = layer(k);
            layer.weights[(output, j)]
        };
        let bias = |k| {
            let (layer, output) = layer(k);
            [layer.bias[output], 0.0, 0.0]
        };
        Group {
            first,
            theta: Mat::from_fn(d, c, weight),
            first_moment: Mat::zeros(d, c),
            second_moment: Mat::zeros(d, c),
            bias: (0..c).map(bias).collect(),
            targets: task.train.targets.as_ref().submatrix(0, first, n, c).to_owned(),
            outputs: Mat::zeros(n, c),
            residuals: Mat::zeros(n, c),
            squares: vec![0.0; c],
            test_squares: Vec::new(),
            gradient: Mat::zeros(BLOCK, c),
        }
    }

    fn columns(&self) -> usize {
        self.bias.len()
    }

    /// Outputs Ψᵀ W + 1 bᵀ on the points of `pieces`.
    fn outputs_on(&self, pieces: &[Piece], points: usize) -> Mat<f32> {
        let mut outputs = Mat::zeros(points, self.columns());
        for (k, [bias, ..]) in self.bias.iter().enumerate() {
            outputs.col_as_slice_mut(k).fill(*bias);
        }
        for piece in pieces {
            piece.add_outputs(&self.theta, &mut outputs);
        }
        outputs
    }

    /// Updates the residuals and their sums of squares from the current outputs.
    fn compare(&mut self) {
        for (k, square) in self.squares.iter_mut().enumerate() {
            *square = kernels::residual(
                self.outputs.col_as_slice(k),
                self.targets.col_as_slice(k),
                self.residuals.col_as_slice_mut(k),
            );
        }
    }

    /// Takes the Adam step of the biases and resets the outputs to the new biases.
    fn step_bias(&mut self, step: &StepConstants, scale: f32) {
        for (k, [bias, m, v]) in self.bias.iter_mut().enumerate() {
            let gradient = kernels::sum(self.residuals.col_as_slice(k));
            kernels::adam(step, scale, &[gradient], from_mut(bias), from_mut(m), from_mut(v));
            self.outputs.col_as_slice_mut(k).fill(*bias);
        }
    }

    /// Computes the gradient of one block, takes its Adam step and adds its contribution to the outputs.
    fn step_block(&mut self, piece: &Piece, step: &StepConstants, scale: f32) {
        piece.gradient(&self.residuals, &mut self.gradient);
        let features = piece.band.features.clone();
        for k in 0..self.columns() {
            kernels::adam(
                step,
                scale,
                &self.gradient.col_as_slice(k)[..features.len()],
                &mut self.theta.col_as_slice_mut(k)[features.clone()],
                &mut self.first_moment.col_as_slice_mut(k)[features.clone()],
                &mut self.second_moment.col_as_slice_mut(k)[features.clone()],
            );
        }
        piece.add_outputs(&self.theta, &mut self.outputs);
    }

    /// Takes the Adam step of features that vanish at every point: the gradient is the weight decay alone.
    fn decay(&mut self, step: &StepConstants, features: Range<usize>) {
        for k in 0..self.columns() {
            kernels::adam_without_gradient(
                step,
                &mut self.theta.col_as_slice_mut(k)[features.clone()],
                &mut self.first_moment.col_as_slice_mut(k)[features.clone()],
                &mut self.second_moment.col_as_slice_mut(k)[features.clone()],
            );
        }
    }
}

/// Trains several groups for one epoch. All groups use a piece of the embedding while it is in cache.
fn step_groups(
    groups: &mut [Group],
    pieces: &[Piece],
    dimension: usize,
    step: &StepConstants,
    scale: f32,
) {
    groups.iter_mut().for_each(|group| group.step_bias(step, scale));
    let mut done = 0;
    for piece in pieces {
        for group in groups.iter_mut() {
            group.decay(step, done..piece.band.features.start);
            group.step_block(piece, step, scale);
        }
        done = piece.band.features.end;
    }
    for group in groups {
        group.decay(step, done..dimension);
        group.compare();
    }
}

pub struct LinearSession {
    task: Task,
    threads: usize,
    train: Vec<Piece>,
    test: Vec<Piece>,
    groups: Vec<Group>,
    progress: Progress,
}

impl LinearSession {
    /// Whether this kind of session can train `task`.
    pub fn takes(task: &Task) -> bool {
        task.network.hidden.is_empty()
            && task.network.output_activation == crate::OutputActivation::Identity
            && matches!(task.train.input, Input::Dense(_))
            && task.test.as_ref().is_none_or(|test| matches!(test.input, Input::Dense(_)))
    }

    /// Starts a session of a task that has passed [`Task::check`].
    pub fn new(task: Task, threads: usize) -> Self {
        let wide = task.train.targets.ncols() >= FEW;
        let train = Piece::all(&task.train.input, wide);
        let test = task.test.as_ref().map_or(Vec::new(), |test| Piece::all(&test.input, wide));
        let groups =
            (0..task.train.targets.ncols()).step_by(GROUP).map(|c| Group::new(&task, c)).collect();
        let progress = Progress::new(task.runs());
        let mut session = LinearSession { task, threads, train, test, groups, progress };
        session.forward();
        session
    }

    fn forward(&mut self) {
        let (train, points) = (&self.train, self.task.train.input.points());
        in_chunks(self.threads, &mut self.groups, |groups| {
            for group in groups {
                group.outputs = group.outputs_on(train, points);
                group.compare();
            }
        });
    }

    /// Mean squared error per run from the sums of squares of its columns.
    fn means(&self, squares: impl Iterator<Item = f64>, points: usize) -> Vec<f64> {
        let outputs = self.task.network.output;
        let mut errors = vec![0.0; self.task.runs()];
        for (column, square) in squares.enumerate() {
            errors[column / outputs] += square;
        }
        errors.iter().map(|error| error / (points * outputs) as f64).collect()
    }

    fn train_errors(&self) -> Vec<f64> {
        let squares = self.groups.iter().flat_map(|group| group.squares.iter().copied());
        self.means(squares, self.task.train.input.points())
    }

    /// Outputs of all columns on other points.
    fn outputs_on(&self, pieces: &[Piece], points: usize) -> Mat<f32> {
        let mut all = Mat::zeros(points, self.task.train.targets.ncols());
        for group in &self.groups {
            let outputs = group.outputs_on(pieces, points);
            for k in 0..group.columns() {
                all.col_as_slice_mut(group.first + k).copy_from_slice(outputs.col_as_slice(k));
            }
        }
        all
    }
}

impl Session for LinearSession {
    fn progress(&self) -> &Progress {
        &self.progress
    }

    fn step(&mut self) -> Result<Vec<f64>, NetError> {
        let errors = self.train_errors();
        self.progress.epoch += 1;
        self.progress.record(&errors);
        let constants = self.task.optimizer.constants(self.progress.epoch);
        let points = self.task.train.input.points();
        // The mean is over points and outputs.
        let scale = (2.0 / (points * self.task.network.output) as f64) as f32;
        let (train, dimension) = (&self.train, self.task.network.input);
        in_chunks(self.threads, &mut self.groups, |groups| {
            step_groups(groups, train, dimension, &constants, scale);
        });
        Ok(errors)
    }

    fn errors(&mut self, set: SampleSet) -> Result<Vec<f64>, NetError> {
        if set == SampleSet::Train {
            return Ok(self.train_errors());
        }
        let Some(test) = &self.task.test else {
            return Ok(Vec::new());
        };
        let (points, targets) = (test.input.points(), &test.targets);
        let pieces = &self.test;
        in_chunks(self.threads, &mut self.groups, |groups| {
            for group in groups {
                let outputs = group.outputs_on(pieces, points);
                let mut residuals = vec![0.0; points];
                group.test_squares = (0..group.columns())
                    .map(|k| {
                        let target = targets.col_as_slice(group.first + k);
                        kernels::residual(outputs.col_as_slice(k), target, &mut residuals)
                    })
                    .collect();
            }
        });
        let squares: Vec<f64> =
            self.groups.iter().flat_map(|group| group.test_squares.iter().copied()).collect();
        Ok(self.means(squares.into_iter(), points))
    }

    fn predict(&mut self, input: &Input) -> Result<Mat<f32>, NetError> {
        self.task.network.check_input(&self.task.train.input, input)?;
        let wide = self.task.train.targets.ncols() >= FEW;
        Ok(self.outputs_on(&Piece::all(input, wide), input.points()))
    }

    fn hidden_stable_ranks(&mut self) -> Result<Vec<Vec<f64>>, NetError> {
        Ok(vec![Vec::new(); self.task.runs()])
    }

    fn parameters(&self) -> Result<Vec<Parameters>, NetError> {
        let outputs = self.task.network.output;
        let weight = |column: usize, j| self.groups[column / GROUP].theta[(j, column % GROUP)];
        let bias = |column: usize| self.groups[column / GROUP].bias[column % GROUP][0];
        let parameters = |run: usize| {
            let columns = run * outputs..(run + 1) * outputs;
            let weights =
                Mat::from_fn(outputs, self.task.network.input, |o, j| weight(columns.start + o, j));
            Parameters { layers: vec![Layer { weights, bias: columns.map(bias).collect() }] }
        };
        Ok((0..self.task.runs()).map(parameters).collect())
    }

    fn state(&self) -> Result<State, NetError> {
        let mut numbers = Vec::new();
        for group in &self.groups {
            for matrix in [&group.theta, &group.first_moment, &group.second_moment] {
                (0..matrix.ncols()).for_each(|k| numbers.extend(matrix.col_as_slice(k)));
            }
            numbers.extend(group.bias.iter().flatten());
        }
        Ok(self.progress.state(numbers))
    }

    fn restore(&mut self, state: &State) -> Result<(), NetError> {
        let d = self.task.network.input;
        let columns = self.task.train.targets.ncols();
        self.progress.check(state, 3 * (d + 1) * columns)?;
        let mut rest = state.numbers.as_slice();
        let mut take = |count: usize| {
            let (head, tail) = rest.split_at(count);
            rest = tail;
            head
        };
        for group in &mut self.groups {
            for matrix in [&mut group.theta, &mut group.first_moment, &mut group.second_moment] {
                for k in 0..matrix.ncols() {
                    matrix.col_as_slice_mut(k).copy_from_slice(take(d));
                }
            }
            for bias in &mut group.bias {
                bias.copy_from_slice(take(3));
            }
        }
        self.progress.clone_from(&state.progress);
        // Outputs are summed as in a step, so the residuals have the bits of the saved session.
        self.forward();
        Ok(())
    }
}
