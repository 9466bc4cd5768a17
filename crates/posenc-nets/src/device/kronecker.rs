//! Networks whose first layer is a Kronecker layer: the weights are tensors that are multiplied axis by axis, for groups
//! of runs that fit into the memory budget.
//!
//! Channels (outputs or hidden units) are stored one after the other, each with all its nodes or points. In the backward
//! pass, residuals overwrite outputs, and gradients overwrite the activations of hidden units.

use faer::Mat;

use super::context::{Context, Gradient, POINTS_PER_SUM, Targets};
use super::kernels::Pointwise;
use super::product::Epilogue;
use super::program::{DeviceBuffer, Operand, Product, Recorder};
use crate::cpu::Sparse;
use crate::layout::{Layout, Slot};
use crate::{Input, NetError};

/// Axes, points and targets on the device.
#[derive(Debug)]
pub struct Side {
    points: usize,
    nodes: usize,
    axes: Vec<Axis>,
    /// From nodes to points and transposed; `None` if the points are the nodes.
    sparse: Option<[Csr; 2]>,
    /// Targets run by run and output by output; `None` for predictions.
    targets: Option<Targets>,
}

/// The feature vectors ψ(t_0), ψ(t_1), … of one axis, concatenated.
#[derive(Debug)]
struct Axis {
    features: usize,
    coordinates: usize,
    values: DeviceBuffer,
}

/// A sparse matrix: `places` contains the starts of the rows, then the column indices.
#[derive(Debug)]
struct Csr {
    rows: usize,
    places: DeviceBuffer,
    weights: DeviceBuffer,
}

/// Buffers for one group of runs.
#[derive(Debug)]
pub struct Scratch {
    group: usize,
    /// Intermediate tensors between the axes.
    between: [DeviceBuffer; 2],
    grid: DeviceBuffer,
    /// Values at the points, if they are not the nodes.
    points: Option<DeviceBuffer>,
    /// Outputs of a network with a hidden layer.
    outputs: Option<DeviceBuffer>,
}

impl Csr {
    fn new(context: &Context, matrix: &Sparse) -> Result<Self, NetError> {
        let offsets = matrix.offsets.iter().map(|&offset| offset as u32);
        let places: Vec<u32> = offsets.chain(matrix.indices.iter().copied()).collect();
        Ok(Csr {
            rows: matrix.rows(),
            places: DeviceBuffer::of(&context.gpu, "the blending matrix", &places)?,
            weights: DeviceBuffer::of(&context.gpu, "the blending matrix", &matrix.values)?,
        })
    }

    /// Records `to` ← M `from` for every channel.
    fn times(
        &self,
        list: &mut Recorder<'_>,
        (from, from_stride): (&DeviceBuffer, usize),
        (to, to_stride): (&DeviceBuffer, usize),
        channels: usize,
        relu: bool,
    ) {
        let relu = usize::from(relu);
        let parameters = [self.rows, self.rows + 1, relu, 0, 0, from_stride, to_stride, 0];
        let groups = [self.rows.div_ceil(256), channels, 1];
        let buffers = [&self.places, &self.weights, from, to];
        let work = (8 * self.rows * channels) as f64;
        list.pointwise(Pointwise::Sparse, &parameters, &buffers, groups, work);
    }
}

impl Side {
    pub fn new(
        context: &Context,
        input: &Input,
        targets: Option<&Mat<f32>>,
    ) -> Result<Self, NetError> {
        let input = input.axes();
        let axis = |axis: &Mat<f32>| {
            let (features, coordinates) = axis.shape();
            let columns: Vec<&[f32]> = (0..coordinates).map(|j| axis.col_as_slice(j)).collect();
            let what = "the features of an axis";
            let values = DeviceBuffer::of(&context.gpu, what, &columns.concat())?;
            Ok::<_, NetError>(Axis { features, coordinates, values })
        };
        let sparse = Sparse::of(&input.points).map(|forward| {
            let backward = forward.transpose(input.nodes());
            Ok::<_, NetError>([Csr::new(context, &forward)?, Csr::new(context, &backward)?])
        });
        let sparse = sparse.transpose()?;
        let points = input.points();
        let targets = targets.map(|targets| {
            let columns: Vec<&[f32]> =
                (0..targets.ncols()).map(|c| targets.col_as_slice(c)).collect();
            Targets::new(context, &columns.concat(), points.div_ceil(POINTS_PER_SUM))
        });
        let targets = targets.transpose()?;
        let axes = input.axes.iter().map(axis).collect::<Result<Vec<_>, _>>()?;
        Ok(Side { points, nodes: input.nodes(), axes, sparse, targets })
    }

    /// Size per channel of the largest tensor between features and nodes.
    fn widest(&self) -> usize {
        let size = |cut: usize| {
            let (first, last) = self.axes.split_at(cut);
            let features: usize = first.iter().map(|axis| axis.features).product();
            features * last.iter().map(|axis| axis.coordinates).product::<usize>()
        };
        (0..=self.axes.len()).map(size).max().unwrap_or(1)
    }
}

/// Allocates buffers for groups of runs on all sides.
pub fn scratch(context: &Context, sides: &[&Side]) -> Result<Scratch, NetError> {
    let largest = |size: fn(&Side) -> usize| sides.iter().map(|side| size(side)).max().unwrap_or(1);
    let (widest, nodes) = (largest(Side::widest), largest(|side| side.nodes));
    let points = largest(|side| side.points);
    let has_points = sides.iter().any(|side| side.sparse.is_some());
    let (channels, outputs) = (context.layout.slots[0].fan_out, context.network.output);
    let deep = context.network.depth() > 0;
    let per_run = channels * (2 * widest + nodes + if has_points { points } else { 0 })
        + if deep { outputs * points } else { 0 };
    // The budget does not include gradients and moments. A group has at least one run, even beyond the budget.
    let group = (context.options.chunk_bytes / (4 * per_run as u64)).max(1);
    let group = usize::try_from(group).unwrap_or(usize::MAX).min(context.layout.runs);
    let zeros = |what, count: usize| DeviceBuffer::zeros(&context.gpu, what, group * count);
    let between = || zeros("products of the first axes", channels * widest);
    Ok(Scratch {
        group,
        between: [between()?, between()?],
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

/// The channels × points matrix of every run.
fn channel_rows(numbers: &DeviceBuffer, channels: usize, points: usize) -> Operand<'_> {
    Operand { batch: channels * points, ..Operand::rows(numbers, points) }
}

pub struct Pass<'a> {
    pub context: &'a Context,
    pub side: &'a Side,
    pub scratch: &'a Scratch,
}

impl<'a> Pass<'a> {
    /// Number of channels of the Kronecker layer: outputs or hidden units.
    fn channels(&self) -> usize {
        self.context.layout.slots[0].fan_out
    }

    /// Records the product along axis `a` from the tensors `from` to `to`, each given by a buffer and an offset.
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
        let Axis { features, coordinates, values } = &self.side.axes[a];
        // The matrix is after × before, in either direction.
        let matrix = Operand::rows(values, *features);
        let (before, after, matrix) = match to_nodes {
            true => (*features, *coordinates, matrix),
            false => (*coordinates, *features, matrix.transposed()),
        };
        let product = if inner == 1 {
            let x = Operand { offset: from_offset, ..Operand::rows(from, before) };
            let y = Operand { offset: to_offset, ..Operand::rows(to, after) };
            Product::new([x, matrix.transposed(), y], (outer, after, before))
        } else {
            let tensor = |numbers, offset, size: usize| Operand {
                offset,
                batch: size * inner,
                ..Operand::rows(numbers, inner)
            };
            let (x, y) = (tensor(from, from_offset, before), tensor(to, to_offset, after));
            let sizes = (after, inner, before);
            Product { batches: outer, ..Product::new([matrix, x, y], sizes) }
        };
        list.product(Product { epilogue, ..product });
    }

    /// Records the values at the nodes of `count` tensors, whose weights start at index `first` of θ.
    fn to_nodes(&self, list: &mut Recorder<'_>, count: usize, first: usize, epilogue: Epilogue) {
        let axes = &self.side.axes;
        let mut from = (&self.context.theta, first);
        let mut inner = 1;
        for a in (0..axes.len()).rev() {
            let outer = count * axes[..a].iter().map(|axis| axis.features).product::<usize>();
            let to = if a == 0 { &self.scratch.grid } else { &self.scratch.between[a % 2] };
            let epilogue = if a == 0 { epilogue } else { Epilogue::Store };
            self.contract(list, a, from, (to, 0), (outer, inner), true, epilogue);
            inner *= axes[a].coordinates;
            from = (to, 0);
        }
    }

    /// Records the gradients of the weights of `count` tensors, from index `first` on, from gradients at the nodes.
    fn to_features(
        &self,
        list: &mut Recorder<'_>,
        count: usize,
        gradient: &DeviceBuffer,
        first: usize,
    ) {
        let axes = &self.side.axes;
        let mut from = &self.scratch.grid;
        let mut outer = count;
        for a in 0..axes.len() {
            let inner = axes[a + 1..].iter().map(|axis| axis.coordinates).product::<usize>();
            let is_last = a + 1 == axes.len();
            let to = if is_last { (gradient, first) } else { (&self.scratch.between[a % 2], 0) };
            self.contract(list, a, (from, 0), to, (outer, inner), false, Epilogue::Store);
            outer *= axes[a].features;
            from = &self.scratch.between[a % 2];
        }
    }

    /// The outputs of a group; residuals overwrite them.
    fn out(&self) -> &'a DeviceBuffer {
        self.scratch.outputs.as_ref().unwrap_or_else(|| self.values())
    }

    /// The values of the Kronecker layer at the points of a group.
    fn values(&self) -> &'a DeviceBuffer {
        match (&self.scratch.points, &self.side.sparse) {
            (Some(points), Some(_)) => points,
            _ => &self.scratch.grid,
        }
    }

    fn forward(&self, list: &mut Recorder<'_>, (first, runs): (usize, usize)) {
        let Pass { context, side, scratch } = self;
        let (slots, channels) = (&context.layout.slots, self.channels());
        let deep = slots.get(1);
        let relu_on_nodes = deep.is_some() && side.sparse.is_none();
        let epilogue = if relu_on_nodes { Epilogue::Relu } else { Epilogue::Store };
        let weights = context.weights(&slots[0], first).offset;
        self.to_nodes(list, runs * channels, weights, epilogue);
        if let Some([forward, _]) = &side.sparse {
            let (from, to) = ((&scratch.grid, side.nodes), (self.values(), side.points));
            forward.times(list, from, to, runs * channels, deep.is_some());
        }
        if let (Some(slot), Some(outputs)) = (deep, &scratch.outputs) {
            // Y = V A + c: outputs × points.
            let a = channel_rows(self.values(), channels, side.points);
            let y = channel_rows(outputs, slot.fan_out, side.points);
            let (offset, batch) = (slot.bias + first * slot.biases, slot.biases);
            let bias = Operand { numbers: &context.theta, offset, strides: (1, 0), batch };
            let sizes = (slot.fan_out, side.points, channels);
            list.product(Product {
                batches: runs,
                epilogue: Epilogue::Bias,
                bias: Some(bias),
                ..Product::new([context.weights(slot, first), a, y], sizes)
            });
        }
    }

    fn residuals(&self, list: &mut Recorder<'_>, (first, runs): (usize, usize), is_kept: bool) {
        let Some(targets) = &self.side.targets else { return };
        let (points, outputs) = (self.side.points, self.context.network.output);
        let (run, first_sum) = (outputs * points, first * points.div_ceil(POINTS_PER_SUM));
        let layout = [0, run, 1, points, first * run, run, 1, points];
        let (of, counts) = ((targets, self.out()), (points, points, runs));
        self.context.residuals(list, of, counts, first_sum, is_kept, layout);
    }

    /// Records the errors of the current parameters; `which` is 0 for training and 1 for test samples.
    pub fn errors(&self, list: &mut Recorder<'_>, which: usize) {
        for group in self.scratch.groups(self.context.layout.runs) {
            self.forward(list, group);
            self.residuals(list, group, false);
        }
        self.context.sum_squares(list, self.side.targets.as_ref(), which);
    }

    pub fn gradients(&self, list: &Recorder<'_>) -> Result<Vec<Gradient>, NetError> {
        let points = self.side.points;
        let one = |(l, slot): (usize, &Slot)| match l {
            // The inner dimension is an axis, which is too short for slices.
            0 => Gradient::new(self.context, slot, 1, 1),
            _ => {
                let slices = list.slices(slot.fan_out, slot.fan_in, points, self.scratch.group);
                Gradient::new(self.context, slot, slices, (points / 1024).clamp(1, 64))
            }
        };
        self.context.layout.slots.iter().enumerate().map(one).collect()
    }

    /// Records one epoch: errors before the step, gradients, Adam step.
    pub fn step(&self, list: &mut Recorder<'_>, gradients: &[Gradient]) {
        let Pass { context, side, scratch } = self;
        let Layout { slots, runs: all, .. } = &context.layout;
        for group in scratch.groups(*all) {
            let (first, runs) = group;
            let count = runs * self.channels();
            self.forward(list, group);
            self.residuals(list, group, true);
            if let (Some(slot), Some(d)) = (slots.get(1), &scratch.outputs) {
                self.back_through_hidden(list, group, slot, d, &gradients[1]);
            }
            if let Some([_, backward]) = &side.sparse {
                let (from, to) = ((self.values(), side.points), (&scratch.grid, side.nodes));
                backward.times(list, from, to, count, false);
            }
            let weights = first * slots[0].fan_in * slots[0].fan_out;
            self.to_features(list, count, &gradients[0].weights, weights);
        }
        context.sum_squares(list, side.targets.as_ref(), 0);
        gradients.iter().zip(slots).for_each(|(gradient, slot)| gradient.adam(context, list, slot));
    }

    /// Records the gradient of the last layer from the residuals `d`, and overwrites the activations of the hidden units
    /// with their gradient.
    fn back_through_hidden(
        &self,
        list: &mut Recorder<'_>,
        (first, runs): (usize, usize),
        slot: &Slot,
        d: &DeviceBuffer,
        gradient: &Gradient,
    ) {
        let (points, all) = (self.side.points, self.context.layout.runs);
        let size = slot.fan_in * slot.fan_out;
        let d_rows = channel_rows(d, slot.fan_out, points);
        let a_rows = channel_rows(self.values(), slot.fan_in, points);
        // The gradient of the weights is D Aᵀ.
        let sums = Operand::rows(&gradient.weights, slot.fan_in);
        let sums = Operand { offset: first * size, batch: size, ..sums };
        let sizes = (slot.fan_out, slot.fan_in, points);
        list.product(Product {
            batches: runs,
            slices: (gradient.slices, all * size),
            ..Product::new([d_rows, a_rows.transposed(), sums], sizes)
        });
        // The outputs of all runs of the group are contiguous.
        let columns = runs * slot.fan_out;
        gradient.add_bias(list, d, (points, columns), (1, points), first * slot.fan_out, false);
        let weights = self.context.weights(slot, first).transposed();
        list.product(Product {
            batches: runs,
            epilogue: Epilogue::Masked,
            ..Product::new([weights, d_rows, a_rows], (slot.fan_in, points, slot.fan_out))
        });
    }

    /// All outputs with the current parameters, before the output activation: N × (runs · outputs).
    pub fn outputs(&self) -> Result<Mat<f32>, NetError> {
        let (context, points) = (self.context, self.side.points);
        let (runs, outputs) = (context.layout.runs, context.network.output);
        let mut all = Mat::zeros(points, runs * outputs);
        for group in self.scratch.groups(runs) {
            context.run_recorded(|list| self.forward(list, group))?;
            let numbers = self.out().read(&context.gpu, group.1 * outputs * points)?;
            for (c, column) in numbers.chunks_exact(points.max(1)).enumerate() {
                all.col_as_slice_mut(group.0 * outputs + c).copy_from_slice(column);
            }
        }
        Ok(all)
    }

    /// Activations of the hidden layer at all points: one points × width matrix per run.
    pub fn hidden(&self) -> Result<Vec<Vec<Mat<f32>>>, NetError> {
        let (context, points) = (self.context, self.side.points);
        let runs = context.layout.runs;
        let Some(&width) = context.network.hidden.first() else {
            return Ok(vec![Vec::new(); runs]);
        };
        let mut all = Vec::with_capacity(runs);
        for group in self.scratch.groups(runs) {
            context.run_recorded(|list| self.forward(list, group))?;
            let numbers = self.values().read(&context.gpu, group.1 * width * points)?;
            for run in numbers.chunks_exact(width * points) {
                all.push(vec![Mat::from_fn(points, width, |i, h| run[h * points + i])]);
            }
        }
        Ok(all)
    }
}
