//! Networks whose first layer is a Kronecker layer: weights are tensors that are multiplied axis by
//! axis, as many at a time as the budget holds.
//!
//! Channels (outputs, or hidden units) lie one after the other, each with all its nodes or points. On the
//! way back the residuals, and the gradients of hidden units, take the place of what they belong to.

use std::sync::Arc;

use faer::Mat;
use nalgebra_sparse::{CooMatrix, CsrMatrix};

use super::kernels::Pointwise;
use super::product::Epilogue;
use super::program::{DeviceBuffer, Operand, Product, Recorder};
use super::session::{Context, Gradient, POINTS_PER_SUM};
use crate::layout::Layout;
use crate::{Kronecker, NetError, Points};

/// Axes, points and targets.
#[derive(Debug)]
pub struct Side {
    pub points: usize,
    nodes: usize,
    axes: Vec<Axis>,
    /// From nodes to points, where the points are not the nodes.
    sparse: Option<Sparse>,
    /// Output after output, run by run; none for predictions.
    targets: Option<DeviceBuffer>,
    squares: Option<DeviceBuffer>,
}

/// ψ(t_0), ψ(t_1), … one after the other.
#[derive(Debug)]
struct Axis {
    features: usize,
    coordinates: usize,
    values: DeviceBuffer,
}

/// B and its transpose.
#[derive(Debug)]
struct Sparse {
    forward: Csr,
    backward: Csr,
}

/// Starts of the rows, then columns; weights.
#[derive(Debug)]
struct Csr {
    rows: usize,
    places: DeviceBuffer,
    weights: DeviceBuffer,
}

/// Room for the runs that are worked on at a time.
#[derive(Debug)]
pub struct Scratch {
    /// Runs of a group.
    group: usize,
    /// Between the axes.
    between: [DeviceBuffer; 2],
    /// On the nodes.
    grid: DeviceBuffer,
    /// On the points, where they are not the nodes.
    points: Option<DeviceBuffer>,
    /// Outputs of a network with a hidden layer.
    outputs: Option<DeviceBuffer>,
}

impl Csr {
    fn new(context: &Context<'_>, matrix: &CsrMatrix<f32>) -> Result<Self, NetError> {
        let narrow = |places: &[usize]| places.iter().map(|p| *p as u32).collect::<Vec<_>>();
        let places: Vec<u32> =
            [narrow(matrix.row_offsets()), narrow(matrix.col_indices())].concat();
        Ok(Csr {
            rows: matrix.nrows(),
            places: DeviceBuffer::of(context.gpu, "the blending matrix", &places)?,
            weights: DeviceBuffer::of(context.gpu, "the blending matrix", matrix.values())?,
        })
    }

    /// `to` ← M `from` for every channel.
    fn times(
        &self,
        list: &mut Recorder<'_>,
        (from, from_stride): (&DeviceBuffer, usize),
        (to, to_stride): (&DeviceBuffer, usize),
        channels: usize,
        relu: bool,
    ) {
        let parameters =
            [self.rows, self.rows + 1, usize::from(relu), 0, 0, from_stride, to_stride, 0];
        let parameters = parameters.map(|p| p as u32);
        let groups = [self.rows.div_ceil(256), channels, 1];
        let buffers = [&self.places, &self.weights, from, to];
        let work = (8 * self.rows * channels) as f64;
        list.pointwise(Pointwise::Sparse, &parameters, &buffers, groups, work);
    }
}

impl Side {
    /// Brings axes, points and targets to the device.
    pub fn new(
        context: &Context<'_>,
        input: &Kronecker,
        targets: Option<&Mat<f32>>,
    ) -> Result<Self, NetError> {
        let gpu = context.gpu;
        let axis = |axis: &Mat<f32>| {
            let mut values: Vec<f32> = Vec::with_capacity(axis.nrows() * axis.ncols());
            (0..axis.ncols()).for_each(|j| values.extend(axis.col_as_slice(j)));
            Ok::<_, NetError>(Axis {
                features: axis.nrows(),
                coordinates: axis.ncols(),
                values: DeviceBuffer::of(gpu, "the features of an axis", &values)?,
            })
        };
        let matrix = match &input.points {
            Points::Grid => None,
            Points::Blended(matrix) => Some(matrix.clone()),
            Points::Nodes(list) => {
                let mut choice = CooMatrix::new(list.len(), input.nodes());
                for (point, node) in list.iter().enumerate() {
                    choice.push(point, *node as usize, 1.0);
                }
                Some(Arc::new(CsrMatrix::from(&choice)))
            }
        };
        let sparse = matrix.map(|matrix| {
            let (forward, backward) = (&*matrix, matrix.transpose());
            let (forward, backward) = (Csr::new(context, forward)?, Csr::new(context, &backward)?);
            Ok::<_, NetError>(Sparse { forward, backward })
        });
        let sparse = sparse.transpose()?;
        let targets = targets.map(|targets| {
            let columns: Vec<&[f32]> =
                (0..targets.ncols()).map(|c| targets.col_as_slice(c)).collect();
            DeviceBuffer::of(gpu, "the targets", &columns.concat())
        });
        let targets = targets.transpose()?;
        let points = input.points();
        let sums = points.div_ceil(POINTS_PER_SUM) * context.layout.runs;
        let squares = targets.as_ref().map(|_| DeviceBuffer::zeros(gpu, "sums of squares", sums));
        let squares = squares.transpose()?;
        let axes = input.axes.iter().map(axis).collect::<Result<Vec<_>, NetError>>()?;
        Ok(Side { points, nodes: input.nodes(), axes, sparse, targets, squares })
    }

    /// Largest tensor on the way from features to nodes, per channel.
    fn widest(&self) -> usize {
        (0..=self.axes.len())
            .map(|done| {
                let left = self.axes.len() - done;
                let features: usize = self.axes[..left].iter().map(|a| a.features).product();
                let nodes: usize = self.axes[left..].iter().map(|a| a.coordinates).product();
                features * nodes
            })
            .chain((0..=self.axes.len()).map(|done| {
                let features: usize = self.axes[..done].iter().map(|a| a.features).product();
                let nodes: usize = self.axes[done..].iter().map(|a| a.coordinates).product();
                features * nodes
            }))
            .max()
            .unwrap_or(1)
    }
}

/// Channels of the Kronecker layer: outputs, or hidden units.
fn channels(context: &Context<'_>) -> usize {
    context.layout.slots[0].fan_out
}

/// Room for both sides.
pub fn scratch(context: &Context<'_>, sides: &[&Side]) -> Result<Scratch, NetError> {
    let largest = |size: fn(&Side) -> usize| sides.iter().map(|side| size(side)).max().unwrap_or(1);
    let (widest, nodes) = (largest(Side::widest), largest(|side| side.nodes));
    let points = largest(|side| side.points);
    let has_points = sides.iter().any(|side| side.sparse.is_some());
    let (channels, outputs) = (channels(context), context.network.output);
    let deep = context.network.depth() > 0;
    let per_run = channels * (2 * widest + nodes + if has_points { points } else { 0 })
        + if deep { outputs * points } else { 0 };
    // The gradient of all runs and their moments are counted elsewhere; a single run is always tried.
    let group = (context.options.chunk_bytes / (4 * per_run as u64)).max(1);
    let group = usize::try_from(group).unwrap_or(usize::MAX).min(context.layout.runs);
    let zeros = |what, count: usize| DeviceBuffer::zeros(context.gpu, what, group * count);
    Ok(Scratch {
        group,
        between: [
            zeros("products of the first axes", channels * widest)?,
            zeros("products of the first axes", channels * widest)?,
        ],
        grid: zeros("values on the nodes", channels * nodes)?,
        points: has_points.then(|| zeros("values on the points", channels * points)).transpose()?,
        outputs: deep.then(|| zeros("outputs", outputs * points)).transpose()?,
    })
}

impl Scratch {
    /// First run and number of runs of every group.
    fn groups(&self, runs: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let group = self.group.max(1);
        (0..runs).step_by(group).map(move |first| (first, group.min(runs - first)))
    }
}

/// Whole tensors, from features to nodes or back.
struct Chain<'a> {
    side: &'a Side,
    scratch: &'a Scratch,
    /// Tensors.
    count: usize,
}

impl<'a> Chain<'a> {
    fn axis(&self, a: usize) -> &'a Axis {
        &self.side.axes[a]
    }

    /// One axis of tensors `from` into `to`, which both begin at a number of their own.
    fn contract(
        &self,
        list: &mut Recorder<'_>,
        a: usize,
        (from, from_offset): (&DeviceBuffer, usize),
        (to, to_offset): (&DeviceBuffer, usize),
        (outer, inner): (usize, usize),
        to_nodes: bool,
        epilogue: Epilogue,
    ) {
        let axis = self.axis(a);
        let (before, after) = match to_nodes {
            true => (axis.features, axis.coordinates),
            false => (axis.coordinates, axis.features),
        };
        // Ψ[after, before], for either way.
        let strides = if to_nodes { (axis.features, 1) } else { (1, axis.features) };
        let matrix = Operand { numbers: &axis.values, offset: 0, strides, batch: 0 };
        let tensor = |numbers, offset, size: usize, inner: usize| Operand {
            numbers,
            offset,
            strides: (inner, 1),
            batch: size * inner,
        };
        let product = if inner == 1 {
            Product {
                a: Operand { strides: (before, 1), ..tensor(from, from_offset, before, 1) },
                b: Operand { strides: (strides.1, strides.0), ..matrix },
                c: Operand { strides: (after, 1), ..tensor(to, to_offset, after, 1) },
                sizes: (outer, after, before),
                batches: 1,
                slices: (1, 0),
                epilogue,
                bias: None,
            }
        } else {
            Product {
                a: matrix,
                b: tensor(from, from_offset, before, inner),
                c: tensor(to, to_offset, after, inner),
                sizes: (after, inner, before),
                batches: outer,
                slices: (1, 0),
                epilogue,
                bias: None,
            }
        };
        list.product(product);
    }

    /// Weights from number `first` on to values on the nodes.
    fn forward(
        &self,
        list: &mut Recorder<'_>,
        theta: &DeviceBuffer,
        first: usize,
        epilogue: Epilogue,
    ) {
        let axes = &self.side.axes;
        let mut from = (theta, first);
        let mut inner = 1;
        for a in (0..axes.len()).rev() {
            let outer = self.count * axes[..a].iter().map(|axis| axis.features).product::<usize>();
            let to = if a == 0 { &self.scratch.grid } else { &self.scratch.between[a % 2] };
            let epilogue = if a == 0 { epilogue } else { Epilogue::Store };
            self.contract(list, a, from, (to, 0), (outer, inner), true, epilogue);
            inner *= axes[a].coordinates;
            from = (to, 0);
        }
    }

    /// Gradients on the nodes to gradients of the weights, from number `first` on.
    fn backward(&self, list: &mut Recorder<'_>, gradient: &DeviceBuffer, first: usize) {
        let axes = &self.side.axes;
        let mut from = &self.scratch.grid;
        let mut outer = self.count;
        for a in 0..axes.len() {
            let inner = axes[a + 1..].iter().map(|axis| axis.coordinates).product::<usize>();
            let is_last = a + 1 == axes.len();
            let to = if is_last { (gradient, first) } else { (&self.scratch.between[a % 2], 0) };
            self.contract(list, a, (from, 0), to, (outer, inner), false, Epilogue::Store);
            outer *= axes[a].features;
            from = &self.scratch.between[a % 2];
        }
    }
}

/// Where the outputs of a group lie; there, residuals take their place.
fn out<'a>(side: &Side, scratch: &'a Scratch) -> &'a DeviceBuffer {
    match (&scratch.outputs, &scratch.points, &side.sparse) {
        (Some(outputs), ..) => outputs,
        (None, Some(points), Some(_)) => points,
        _ => &scratch.grid,
    }
}

/// Where the Kronecker layer's values on the points of a group lie.
fn values<'a>(side: &Side, scratch: &'a Scratch) -> &'a DeviceBuffer {
    match (&scratch.points, &side.sparse) {
        (Some(points), Some(_)) => points,
        _ => &scratch.grid,
    }
}

/// The way forward of a group of runs.
fn forward(
    context: &Context<'_>,
    list: &mut Recorder<'_>,
    side: &Side,
    scratch: &Scratch,
    (first, runs): (usize, usize),
) {
    let Layout { slots, .. } = context.layout;
    let (slot, channels) = (&slots[0], channels(context));
    let deep = slots.get(1);
    let relu_on_nodes = deep.is_some() && side.sparse.is_none();
    let chain = Chain { side, scratch, count: runs * channels };
    let at = slot.weights + first * slot.fan_in * slot.fan_out;
    let epilogue = if relu_on_nodes { Epilogue::Relu } else { Epilogue::Store };
    chain.forward(list, context.theta, at, epilogue);
    if let Some(sparse) = &side.sparse {
        let (from, to) = ((&scratch.grid, side.nodes), (values(side, scratch), side.points));
        sparse.forward.times(list, from, to, runs * channels, deep.is_some());
    }
    if let (Some(slot), Some(outputs)) = (deep, &scratch.outputs) {
        // Y = V A + c: outputs × points.
        list.product(Product {
            a: Operand {
                numbers: context.theta,
                offset: slot.weights + first * slot.fan_in * slot.fan_out,
                strides: (slot.fan_in, 1),
                batch: slot.fan_in * slot.fan_out,
            },
            b: channel_rows(values(side, scratch), channels, side.points),
            c: channel_rows(outputs, slot.fan_out, side.points),
            sizes: (slot.fan_out, side.points, channels),
            batches: runs,
            slices: (1, 0),
            epilogue: Epilogue::Bias,
            bias: Some(Operand {
                numbers: context.theta,
                offset: slot.bias + first * slot.biases,
                strides: (1, 0),
                batch: slot.biases,
            }),
        });
    }
}

/// Channels × points of every run.
fn channel_rows(numbers: &DeviceBuffer, channels: usize, points: usize) -> Operand<'_> {
    Operand { numbers, offset: 0, strides: (points, 1), batch: channels * points }
}

fn residuals(
    context: &Context<'_>,
    list: &mut Recorder<'_>,
    side: &Side,
    scratch: &Scratch,
    (first, runs): (usize, usize),
    is_kept: bool,
) {
    let (Some(targets), Some(squares)) = (&side.targets, &side.squares) else {
        return;
    };
    let (points, outputs) = (side.points, context.network.output);
    let sums = points.div_ceil(POINTS_PER_SUM);
    let (run, buffers) = (outputs * points, [targets, out(side, scratch), squares]);
    let layout = [0, run, 1, points, first * run, run, 1, points];
    let counts = (points, points, runs);
    context.residuals(list, buffers, counts, [sums, first * sums], is_kept, layout);
}

/// Errors of the present parameters.
pub fn errors(
    context: &Context<'_>,
    list: &mut Recorder<'_>,
    side: &Side,
    scratch: &Scratch,
    which: usize,
) {
    for group in scratch.groups(context.layout.runs) {
        forward(context, list, side, scratch, group);
        residuals(context, list, side, scratch, group, false);
    }
    context.sum_squares(list, side.squares.as_ref(), side.points.div_ceil(POINTS_PER_SUM), which);
}

/// Room for the gradients of both layers.
pub fn gradients(
    context: &Context<'_>,
    list: &Recorder<'_>,
    side: &Side,
    scratch: &Scratch,
) -> Result<Vec<Gradient>, NetError> {
    let one = |(l, slot): (usize, &crate::layout::Slot)| match l {
        // The inner dimension is an axis: there is nothing to cut.
        0 => Gradient::new(context, slot, 1, 1),
        _ => {
            let slices = list.slices(slot.fan_out, slot.fan_in, side.points, scratch.group);
            Gradient::new(context, slot, slices, (side.points / 1024).clamp(1, 64))
        }
    };
    context.layout.slots.iter().enumerate().map(one).collect()
}

/// One epoch: errors before the step, gradients, Adam.
pub fn step(
    context: &Context<'_>,
    list: &mut Recorder<'_>,
    side: &Side,
    scratch: &Scratch,
    gradients: &[Gradient],
) {
    let Layout { slots, runs: all, .. } = context.layout;
    let channels = channels(context);
    for group in scratch.groups(*all) {
        let (first, runs) = group;
        forward(context, list, side, scratch, group);
        residuals(context, list, side, scratch, group, true);
        if let (Some(slot), Some(d)) = (slots.get(1), &scratch.outputs) {
            back_through_hidden(context, list, side, scratch, group, slot, d, &gradients[1]);
        }
        if let Some(sparse) = &side.sparse {
            let (from, to) = ((values(side, scratch), side.points), (&scratch.grid, side.nodes));
            sparse.backward.times(list, from, to, runs * channels, false);
        }
        let chain = Chain { side, scratch, count: runs * channels };
        chain.backward(list, &gradients[0].weights, first * slots[0].fan_in * slots[0].fan_out);
    }
    context.sum_squares(list, side.squares.as_ref(), side.points.div_ceil(POINTS_PER_SUM), 0);
    gradients.iter().zip(slots).for_each(|(gradient, slot)| gradient.adam(context, list, slot));
}

/// The last layer's gradient from its outputs' `d`, and the hidden units' gradient in place of their
/// activations.
fn back_through_hidden(
    context: &Context<'_>,
    list: &mut Recorder<'_>,
    side: &Side,
    scratch: &Scratch,
    (first, runs): (usize, usize),
    slot: &crate::layout::Slot,
    d: &DeviceBuffer,
    gradient: &Gradient,
) {
    let (points, all) = (side.points, context.layout.runs);
    let weights = slot.fan_in * slot.fan_out;
    let activations = values(side, scratch);
    let d_rows = channel_rows(d, slot.fan_out, points);
    let a_rows = channel_rows(activations, slot.fan_in, points);
    // D Aᵀ.
    list.product(Product {
        a: d_rows,
        b: Operand { strides: (1, points), ..a_rows },
        c: Operand {
            numbers: &gradient.weights,
            offset: first * weights,
            strides: (slot.fan_in, 1),
            batch: weights,
        },
        sizes: (slot.fan_out, slot.fan_in, points),
        batches: runs,
        slices: (gradient.slices, all * weights),
        epilogue: Epilogue::Store,
        bias: None,
    });
    // The outputs of all runs of the group lie one after the other.
    let columns = runs * slot.fan_out;
    gradient.add_bias_at(list, d, (points, columns), (1, points), first * slot.fan_out, false);
    list.product(Product {
        a: Operand {
            numbers: context.theta,
            offset: slot.weights + first * weights,
            strides: (1, slot.fan_in),
            batch: weights,
        },
        b: d_rows,
        c: a_rows,
        sizes: (slot.fan_in, points, slot.fan_out),
        batches: runs,
        slices: (1, 0),
        epilogue: Epilogue::Masked,
        bias: None,
    });
}

/// All outputs with the present parameters, before any activation: N × (runs · outputs).
pub fn outputs(
    context: &Context<'_>,
    side: &Side,
    scratch: &Scratch,
) -> Result<Mat<f32>, NetError> {
    let (points, outputs) = (side.points, context.network.output);
    let mut all = Mat::zeros(points, context.layout.runs * outputs);
    for group in scratch.groups(context.layout.runs) {
        context.run_recorded(|list| forward(context, list, side, scratch, group))?;
        let numbers = out(side, scratch).read(context.gpu, group.1 * outputs * points)?;
        for (c, column) in numbers.chunks_exact(points.max(1)).enumerate() {
            all.col_as_slice_mut(group.0 * outputs + c).copy_from_slice(column);
        }
    }
    Ok(all)
}

/// Activations of the hidden layer on all points: per run, points × width.
pub fn hidden(
    context: &Context<'_>,
    side: &Side,
    scratch: &Scratch,
) -> Result<Vec<Vec<Mat<f32>>>, NetError> {
    let runs = context.layout.runs;
    let Some(&width) = context.network.hidden.first() else {
        return Ok(vec![Vec::new(); runs]);
    };
    let mut all = Vec::with_capacity(runs);
    for group in scratch.groups(runs) {
        context.run_recorded(|list| forward(context, list, side, scratch, group))?;
        let numbers = values(side, scratch).read(context.gpu, group.1 * width * side.points)?;
        for run in numbers.chunks_exact(width * side.points) {
            let layer = Mat::from_fn(side.points, width, |i, h| run[h * side.points + i]);
            all.push(vec![layer]);
        }
    }
    Ok(all)
}
