//! Networks with one hidden layer: one tensor per hidden channel, ReLU, and an affine layer.
//!
//! An epoch has three passes. The first goes over the channels and computes products, values at the points, and ReLU.
//! The second goes over the points and computes outputs, residuals, and the gradient of the last layer. The third goes
//! over the channels again, backward through the ReLU to the tensor, and takes its Adam step.

use faer::{Accum, MatMut, MatRef};

use super::chain::{Chain, at_least};
use super::shallow::{POINTS, activate, compare};
use super::{Backward, Group, RunState, Side, Worker};
use crate::OutputActivation;
use crate::cpu::kernels;
use crate::cpu::parallel::for_each;
use crate::optimizer::StepConstants;

#[derive(Debug, Clone, Copy)]
pub struct Deep {
    pub hidden: usize,
    pub features: usize,
    pub outputs: usize,
    pub activation: OutputActivation,
}

/// Number of channel groups with separate output sums, if activations are not stored.
pub const LISTS: usize = 8;

/// Contribution of one block of points to the gradient of the last layer.
struct Share {
    /// dV, outputs × hidden, then db.
    gradient: Vec<f32>,
    squares: f64,
}

impl Deep {
    /// Start of the last layer in θ: weights (outputs × hidden), then biases.
    fn last(&self) -> usize {
        self.hidden * self.features
    }

    /// Weights V and biases b of the last layer.
    fn last_layer<'a>(&self, theta: &'a [f32]) -> (&'a [f32], &'a [f32]) {
        theta[self.last()..].split_at(self.outputs * self.hidden)
    }

    /// Computes the activations of one hidden channel at all points.
    fn channel(&self, side: &Side, theta: &[f32], worker: &mut Worker, out: &mut [f32]) {
        let Worker { scratch, first, .. } = worker;
        let chain = &side.forward;
        let [_, slice] = chain.slice();
        let mut to_nodes = |nodes: &mut [f32]| {
            for rows in chain.row_blocks() {
                let range = rows.start * slice..rows.end * slice;
                chain.block(rows, theta, scratch, &mut nodes[range]);
            }
        };
        match &side.points {
            None => to_nodes(out),
            Some(points) => {
                let nodes = at_least(first, side.input.nodes());
                to_nodes(nodes);
                points.multiply(0..side.count(), 1, nodes, out);
            }
        }
        kernels::rectify(out);
    }

    /// Computes the activations of all hidden channels at all points, channel by channel.
    pub fn activations(&self, side: &Side, theta: &[f32], workers: &mut [Worker], out: &mut [f32]) {
        let mut items: Vec<_> = out
            .chunks_exact_mut(side.count())
            .zip(theta[..self.last()].chunks_exact(self.features))
            .collect();
        for_each(workers, &mut items, |worker, (out, theta)| {
            self.channel(side, theta, worker, out);
        });
    }

    /// Outputs before the output activation at all points; does not store the hidden layer.
    fn raw_outputs(&self, side: &Side, theta: &[f32], workers: &mut [Worker]) -> Vec<f32> {
        let (weights, bias) = self.last_layer(theta);
        let (n, o) = (side.count(), self.outputs);
        let mut items: Vec<(usize, Vec<f32>)> =
            (0..LISTS.min(self.hidden)).map(|list| (list, Vec::new())).collect();
        let lists = items.len();
        for_each(workers, &mut items, |worker, (list, sums)| {
            sums.resize(n * o, 0.0);
            let mut activations = std::mem::take(&mut worker.second);
            for h in *list * self.hidden / lists..(*list + 1) * self.hidden / lists {
                let values = at_least(&mut activations, n);
                let theta = &theta[h * self.features..(h + 1) * self.features];
                self.channel(side, theta, worker, values);
                for (sums, value) in sums.chunks_exact_mut(o).zip(values) {
                    for (output, sum) in sums.iter_mut().enumerate() {
                        *sum += weights[output * self.hidden + h] * *value;
                    }
                }
            }
            worker.second = activations;
        });
        let mut outputs: Vec<f32> = (0..n).flat_map(|_| bias.iter().copied()).collect();
        for (_, sums) in &items {
            kernels::add(sums, &mut outputs);
        }
        outputs
    }

    pub fn squares(&self, side: &Side, run: usize, theta: &[f32], group: &mut Group) -> f64 {
        let mut outputs = self.raw_outputs(side, theta, &mut group.workers);
        compare(self.activation, &mut outputs, &side.targets[run])
    }

    /// Outputs at all points, point by point with adjacent outputs.
    pub fn outputs(&self, side: &Side, theta: &[f32], group: &mut Group) -> Vec<f32> {
        let mut outputs = self.raw_outputs(side, theta, &mut group.workers);
        activate(self.activation, &mut outputs);
        outputs
    }

    /// Trains a run for one epoch; returns the sum of squared errors before it.
    pub fn step(
        &self,
        side: &Side,
        backward: &Backward,
        (index, run): (usize, &mut RunState),
        group: &mut Group,
        constants: &StepConstants,
        scale: f32,
    ) -> f64 {
        let n = side.count();
        let Group { workers, buffers } = group;
        let (activations, residuals) = buffers.hidden(self.hidden * n, n * self.outputs);
        self.activations(side, &run.theta, workers, activations);
        let activations = &*activations;
        let shares = self.shares(side, index, &run.theta, activations, workers, residuals);
        let residuals = &*residuals;

        let (tensors, last) = run.theta.split_at_mut(self.hidden * self.features);
        let (m, last_m) = run.first_moment.split_at_mut(tensors.len());
        let (v, last_v) = run.second_moment.split_at_mut(tensors.len());
        let weights = &last[..self.outputs * self.hidden];
        let mut items: Vec<_> = tensors
            .chunks_exact_mut(self.features)
            .zip(m.chunks_exact_mut(self.features))
            .zip(v.chunks_exact_mut(self.features))
            .zip(activations.chunks_exact(n))
            .enumerate()
            .collect();
        for_each(workers, &mut items, |worker, (h, (((theta, m), v), activations))| {
            let column: Vec<f32> =
                (0..self.outputs).map(|o| weights[o * self.hidden + *h]).collect();
            let gradient = back_to_points(&column, residuals, activations, &mut worker.second);
            step_tensor(backward, &gradient, worker, constants, scale, [theta, m, v]);
            worker.second = gradient;
        });

        let mut gradient = vec![0.0; last.len()];
        let mut squares = 0.0;
        for share in &shares {
            kernels::add(&share.gradient, &mut gradient);
            squares += share.squares;
        }
        kernels::adam(constants, scale, &gradient, last, last_m, last_v);
        squares
    }

    /// Computes residuals from the activations; returns the shares of the last layer's gradient.
    fn shares(
        &self,
        side: &Side,
        run: usize,
        theta: &[f32],
        activations: &[f32],
        workers: &mut [Worker],
        residuals: &mut [f32],
    ) -> Vec<Share> {
        let (n, o, h) = (side.count(), self.outputs, self.hidden);
        let (weights, bias) = self.last_layer(theta);
        let weights = MatRef::from_row_major_slice(weights, o, h);
        let hidden = MatRef::from_row_major_slice(activations, h, n);
        let mut items: Vec<_> = residuals
            .chunks_mut(POINTS * o)
            .enumerate()
            .map(|(block, values)| {
                (block * POINTS, values, Share { gradient: vec![0.0; o * h + o], squares: 0.0 })
            })
            .collect();
        for_each(workers, &mut items, |_, (first, values, share)| {
            let count = values.len() / o;
            let hidden = hidden.subcols(*first, count);
            for values in values.chunks_exact_mut(o) {
                values.copy_from_slice(bias);
            }
            let out = MatMut::from_column_major_slice_mut(values, o, count);
            kernels::multiply(out, Accum::Add, weights, hidden);
            let targets = &side.targets[run][*first * o..][..count * o];
            share.squares = compare(self.activation, values, targets);
            let (dv, db) = share.gradient.split_at_mut(o * h);
            let dv = MatMut::from_row_major_slice_mut(dv, o, h);
            let residuals = MatRef::from_column_major_slice(values, o, count);
            kernels::multiply(dv, Accum::Replace, residuals, hidden.transpose());
            for values in values.chunks_exact(o) {
                db.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
            }
        });
        items.into_iter().map(|(.., share)| share).collect()
    }
}

/// Gradient with respect to one channel before its ReLU: Σ_o V_o r_o where the ReLU is active, else 0. It takes
/// `buffer` and returns it with the gradient.
fn back_to_points(
    column: &[f32],
    residuals: &[f32],
    activations: &[f32],
    buffer: &mut Vec<f32>,
) -> Vec<f32> {
    let mut gradient = std::mem::take(buffer);
    let values = at_least(&mut gradient, activations.len());
    for ((g, r), a) in values.iter_mut().zip(residuals.chunks_exact(column.len())).zip(activations)
    {
        let mut sum = 0.0;
        for (weight, r) in column.iter().zip(r) {
            sum += weight * r;
        }
        *g = if *a > 0.0 { sum } else { 0.0 };
    }
    gradient
}

/// Computes the gradient of one tensor from the gradient at the points, and takes its Adam step.
fn step_tensor(
    backward: &Backward,
    gradient: &[f32],
    worker: &mut Worker,
    constants: &StepConstants,
    scale: f32,
    [theta, m, v]: [&mut [f32]; 3],
) {
    let chain = &backward.chain;
    let [slice, back_slice] = chain.slice();
    let rows = chain.leading.columns;
    let Worker { scratch, first, third, .. } = worker;
    let size = rows * slice;
    let spread: &[f32] = match &backward.points {
        None => &gradient[..size],
        Some(points) => {
            let nodes = at_least(first, size);
            points.multiply(0..size, 1, gradient, nodes);
            nodes
        }
    };
    let back = at_least(third, rows * back_slice);
    for rows in Chain::blocks(rows, slice.max(back_slice)) {
        let (from, to) =
            (rows.start * slice..rows.end * slice, rows.start * back_slice..rows.end * back_slice);
        chain.tail(rows.len(), &spread[from], scratch, &mut back[to]);
    }
    let back = &*back;
    for rows in Chain::blocks(chain.leading.rows, back_slice) {
        let range = rows.start * back_slice..rows.end * back_slice;
        let gradient = at_least(first, range.len());
        chain.lead(rows, back, back_slice, scratch, gradient);
        kernels::adam(
            constants,
            scale,
            gradient,
            &mut theta[range.clone()],
            &mut m[range.clone()],
            &mut v[range],
        );
    }
}
