//! Networks without hidden layers, trained through the residuals.
//!
//! An epoch has four passes over independent items: features to nodes (by rows of the grid), nodes to points (by
//! points), and back to nodes (by rows of the grid) and features (by rows of features).

use super::chain::{Chain, at_least};
use super::sparse::Sparse;
use super::{Backward, Group, RunState, Side, Worker};
use crate::OutputActivation;
use crate::cpu::kernels::{self, interleave};
use crate::cpu::parallel::for_each;
use crate::optimizer::StepConstants;

pub const POINTS: usize = 4096;

#[derive(Debug, Clone, Copy)]
pub struct Shallow {
    pub outputs: usize,
    pub activation: OutputActivation,
}

/// Buffers for one run at a time.
#[derive(Debug, Default)]
pub struct Buffers {
    /// Outputs at the nodes, node by node with adjacent outputs.
    nodes: Vec<f32>,
    /// Residuals at the points, point by point with adjacent outputs.
    residuals: Vec<f32>,
    /// Residuals multiplied along all axes except the leading one, output by output.
    back: Vec<f32>,
    /// Activations of a hidden layer.
    hidden: Vec<f32>,
}

impl Buffers {
    /// Buffers for the activations of a hidden layer and for residuals, with these sizes.
    pub fn hidden(&mut self, activations: usize, residuals: usize) -> (&mut [f32], &mut [f32]) {
        (at_least(&mut self.hidden, activations), at_least(&mut self.residuals, residuals))
    }
}

/// Replaces outputs before the activation by residuals times the slope of the activation; returns the sum of squared
/// residuals.
pub fn compare(activation: OutputActivation, outputs: &mut [f32], targets: &[f32]) -> f64 {
    if activation == OutputActivation::Identity {
        return kernels::residual_in_place(outputs, targets);
    }
    let mut sum = 0.0;
    for (z, target) in outputs.iter_mut().zip(targets) {
        let y = 1.0 / (1.0 + (-*z).exp());
        let error = y - target;
        sum += f64::from(error) * f64::from(error);
        *z = error * y * (1.0 - y);
    }
    sum
}

pub fn activate(activation: OutputActivation, outputs: &mut [f32]) {
    if activation == OutputActivation::Sigmoid {
        kernels::sigmoid(outputs);
    }
}

/// Reads the plane of one channel from interleaved numbers; the inverse of [`interleave`].
fn separate(numbers: &[f32], channel: usize, channels: usize, plane: &mut [f32]) {
    if channels == 1 {
        return plane.copy_from_slice(numbers);
    }
    for (value, numbers) in plane.iter_mut().zip(numbers.chunks_exact(channels)) {
        *value = numbers[channel];
    }
}

impl Shallow {
    /// Computes the outputs before the activation at all nodes of a grid.
    fn forward(&self, chain: &Chain, theta: &[f32], workers: &mut [Worker], nodes: &mut [f32]) {
        let c = self.outputs;
        let [_, slice] = chain.slice();
        let features = theta.len() / c;
        let blocks = chain.row_blocks();
        let most = blocks.first().map_or(1, |rows| rows.len() * slice * c);
        let mut items: Vec<_> = nodes.chunks_mut(most).zip(blocks).collect();
        for_each(workers, &mut items, |worker, (out, rows)| {
            let plane = at_least(&mut worker.first, rows.len() * slice);
            for (channel, theta) in theta.chunks_exact(features).enumerate() {
                chain.block(rows.clone(), theta, &mut worker.scratch, plane);
                interleave(plane, channel, c, out);
            }
        });
    }

    /// Computes the outputs before the activation at all points, and calls `then` for every block of points with the
    /// index of its first point.
    fn on_points<T: Send>(
        &self,
        side: &Side,
        theta: &[f32],
        group: &mut Group,
        then: impl Fn(usize, &mut [f32]) -> T + Sync,
    ) -> Vec<T> {
        let c = self.outputs;
        let Group { workers, buffers } = group;
        let Buffers { nodes, residuals, .. } = buffers;
        let grid = match &side.points {
            Some(_) => at_least(nodes, side.input.nodes() * c),
            // The nodes are the points.
            None => at_least(residuals, side.input.nodes() * c),
        };
        self.forward(&side.forward, theta, workers, grid);
        let nodes = &*nodes;
        let mut items: Vec<_> = at_least(residuals, side.count() * c)
            .chunks_mut(POINTS * c)
            .enumerate()
            .map(|(block, values)| (block * POINTS, values, None))
            .collect();
        for_each(workers, &mut items, |_, (first, values, result)| {
            if let Some(points) = &side.points {
                points.multiply(*first..*first + values.len() / c, c, nodes, values);
            }
            *result = Some(then(*first, values));
        });
        items.into_iter().filter_map(|(.., result)| result).collect()
    }

    /// Sum of squared errors; the residuals stay in the buffers.
    pub fn squares(&self, side: &Side, run: usize, theta: &[f32], group: &mut Group) -> f64 {
        let (targets, c, activation) = (&side.targets[run], self.outputs, self.activation);
        let sums = self.on_points(side, theta, group, |first, values| {
            compare(activation, values, &targets[first * c..][..values.len()])
        });
        sums.into_iter().sum()
    }

    /// Outputs at all points, point by point with adjacent outputs.
    pub fn outputs(&self, side: &Side, theta: &[f32], group: &mut Group) -> Vec<f32> {
        self.on_points(side, theta, group, |_, values| activate(self.activation, values));
        group.buffers.residuals[..side.count() * self.outputs].to_vec()
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
        let squares = self.squares(side, index, &run.theta, group);
        let c = self.outputs;
        let chain = &backward.chain;
        let [slice, back_slice] = chain.slice();
        let nodes = chain.leading.columns;
        let Group { workers, buffers } = group;
        let Buffers { residuals, back, .. } = buffers;
        let residuals = &residuals[..side.count() * c];

        // Multiply along all axes except the leading one, by rows of the grid.
        let plane = nodes * back_slice;
        let back = at_least(back, c * plane);
        let blocks = Chain::blocks(nodes, slice.max(back_slice));
        let mut items: Vec<_> = blocks.into_iter().map(|rows| (rows, Vec::new())).collect();
        for plane in back.chunks_exact_mut(plane) {
            let mut rest = plane;
            for (rows, outs) in &mut items {
                let (head, tail) = rest.split_at_mut(rows.len() * back_slice);
                outs.push(head);
                rest = tail;
            }
        }
        for_each(workers, &mut items, |worker, (rows, outs)| {
            let Worker { scratch, first, second, .. } = worker;
            let count = rows.len() * slice;
            let numbers = match &backward.points {
                Some(points) => {
                    let numbers = at_least(second, count * c);
                    let range = rows.start * slice..rows.end * slice;
                    Sparse::multiply(points, range, c, residuals, numbers);
                    &*numbers
                }
                None => &residuals[rows.start * slice * c..rows.end * slice * c],
            };
            let plane = at_least(first, count);
            for (channel, out) in outs.iter_mut().enumerate() {
                separate(numbers, channel, c, plane);
                chain.tail(rows.len(), plane, scratch, out);
            }
        });

        // Multiply along the leading axis, by rows of features, and take the Adam step.
        let back = &*back;
        let features = run.theta.len() / c;
        let blocks = Chain::blocks(chain.leading.rows, back_slice);
        let mut items = Vec::with_capacity(c * blocks.len());
        let outputs = run
            .theta
            .chunks_exact_mut(features)
            .zip(run.first_moment.chunks_exact_mut(features))
            .zip(run.second_moment.chunks_exact_mut(features))
            .zip(back.chunks_exact(plane));
        for (((theta, m), v), back) in outputs {
            let most = blocks.first().map_or(1, |rows| rows.len() * back_slice);
            let pieces =
                theta.chunks_mut(most).zip(m.chunks_mut(most)).zip(v.chunks_mut(most)).zip(&blocks);
            items.extend(pieces.map(|(((theta, m), v), rows)| (rows, back, theta, m, v)));
        }
        for_each(workers, &mut items, |worker, (rows, back, theta, m, v)| {
            let Worker { scratch, first, .. } = worker;
            let gradient = at_least(first, theta.len());
            chain.lead((*rows).clone(), back, back_slice, scratch, gradient);
            kernels::adam(constants, scale, gradient, theta, m, v);
        });
        squares
    }
}
