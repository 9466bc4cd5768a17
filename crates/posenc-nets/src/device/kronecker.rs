//! Networks whose first layer is a Kronecker layer: weights are tensors that are multiplied axis by
//! axis, as many at a time as the budget holds.
//!
//! Channels (outputs, or hidden units) lie one after the other, each with all its nodes or points. On the
//! way back the residuals, and the gradients of hidden units, take the place of what they belong to.

use faer::Mat;

use super::kernels::Pointwise;
use super::product::Epilogue;
use super::program::{DeviceBuffer, Operand, Product, Recorder};
use super::session::{Context, Gradient, POINTS_PER_SUM, Targets};
use crate::cpu::Sparse;
use crate::layout::{Layout, Slot};
use crate::{Input, NetError};

/// Axes, points and targets.
#[derive(Debug)]
pub struct Side {
    points: usize,
    nodes: usize,
    axes: Vec<Axis>,
    /// From nodes to points and back, where the points are not the nodes.
    sparse: Option<[Csr; 2]>,
    /// Output after output, run by run; none for predictions.
    targets: Option<Targets>,
}

/// ψ(t_0), ψ(t_1), … one after the other.
#[derive(Debug)]
struct Axis {
    features: usize,
    coordinates: usize,
    values: DeviceBuffer,
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
    fn new(context: &Context, matrix: &Sparse) -> Result<Self, NetError> {
        let offsets = matrix.offsets.iter().map(|&offset| offset as u32);
        let places: Vec<u32> = offsets.chain(matrix.indices.iter().copied()).collect();
        Ok(Csr {
            rows: matrix.rows(),
            places: DeviceBuffer::of(&context.gpu, "the blending matrix", &places)?,
            weights: DeviceBuffer::of(&context.gpu, "the blending matrix", &matrix.values)?,
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
        let relu = usize::from(relu);
        let parameters = [self.rows, self.rows + 1, relu, 0, 0, from_stride, to_stride, 0];
        let groups = [self.rows.div_ceil(256), channels, 1];
        let buffers = [&self.places, &self.weights, from, to];
        let work = (8 * self.rows * channels) as f64;
        list.pointwise(Pointwise::Sparse, &parameters, &buffers, groups, work);
    }
}

impl Side {
    /// Brings axes, points and targets to the device.
    pub fn new(
        context: &Context,
        input: &Input,
        targets: Option<&Mat<f32>>,
    ) -> Result<Self, NetError> {
        let Input::Kronecker(input) = input else {
            return Err(NetError::Combination("a Kronecker input is needed".to_owned()));
        };
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

    /// Largest tensor on the way from features to nodes or back, per channel.
    fn widest(&self) -> usize {
        let size = |cut: usize| {
            let (first, last) = self.axes.split_at(cut);
            let features: usize = first.iter().map(|axis| axis.features).product();
            features * last.iter().map(|axis| axis.coordinates).product::<usize>()
        };
        (0..=self.axes.len()).map(size).max().unwrap_or(1)
    }
}

/// Room for both sides.
pub fn scratch(context: &Context, sides: &[&Side]) -> Result<Scratch, NetError> {
    let largest = |size: fn(&Side) -> usize| sides.iter().map(|side| size(side)).max().unwrap_or(1);
    let (widest, nodes) = (largest(Side::widest), largest(|side| side.nodes));
    let points = largest(|side| side.points);
    let has_points = sides.iter().any(|side| side.sparse.is_some());
    let (channels, outputs) = (context.layout.slots[0].fan_out, context.network.output);
    let deep = context.network.depth() > 0;
    let per_run = channels * (2 * widest + nodes + if has_points { points } else { 0 })
        + if deep { outputs * points } else { 0 };
    // The gradient of all runs and their moments are counted elsewhere; a single run is always tried.
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

/// Channels × points of every run.
fn channel_rows(numbers: &DeviceBuffer, channels: usize, points: usize) -> Operand<'_> {
    Operand { batch: channels * points, ..Operand::rows(numbers, points) }
}

/// A way through the network.
pub struct Pass<'a> {
    pub context: &'a Context,
    pub side: &'a Side,
    pub scratch: &'a Scratch,
}

impl<'a> Pass<'a> {
    /// Channels of the Kronecker layer: outputs, or hidden units.
    fn channels(&self) -> usize {
        self.context.layout.slots[0].fan_out
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
        let Axis { features, coordinates, values } = &self.side.axes[a];
        // Ψ[after, before], for either way.
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

    /// Weights of `count` tensors from number `first` on to values on the nodes.
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

    /// Gradients on the nodes to gradients of the weights of `count` tensors, from number `first` on.
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

    /// Where the outputs of a group lie; there, residuals take their place.
    fn out(&self) -> &'a DeviceBuffer {
        self.scratch.outputs.as_ref().unwrap_or_else(|| self.values())
    }

    /// Where the Kronecker layer's values on the points of a group lie.
    fn values(&self) -> &'a DeviceBuffer {
        match (&self.scratch.points, &self.side.sparse) {
            (Some(points), Some(_)) => points,
            _ => &self.scratch.grid,
        }
    }

    /// The way forward of a group of runs.
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

    /// Errors of the present parameters.
    pub fn errors(&self, list: &mut Recorder<'_>, which: usize) {
        for group in self.scratch.groups(self.context.layout.runs) {
            self.forward(list, group);
            self.residuals(list, group, false);
        }
        self.context.sum_squares(list, self.side.targets.as_ref(), which);
    }

    /// Room for the gradients of both layers.
    pub fn gradients(&self, list: &Recorder<'_>) -> Result<Vec<Gradient>, NetError> {
        let points = self.side.points;
        let one = |(l, slot): (usize, &Slot)| match l {
            // The inner dimension is an axis: there is nothing to cut.
            0 => Gradient::new(self.context, slot, 1, 1),
            _ => {
                let slices = list.slices(slot.fan_out, slot.fan_in, points, self.scratch.group);
                Gradient::new(self.context, slot, slices, (points / 1024).clamp(1, 64))
            }
        };
        self.context.layout.slots.iter().enumerate().map(one).collect()
    }

    /// One epoch: errors before the step, gradients, Adam.
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

    /// The last layer's gradient from its outputs' `d`, and the hidden units' gradient in place of their
    /// activations.
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
        // D Aᵀ.
        let sums = Operand::rows(&gradient.weights, slot.fan_in);
        let sums = Operand { offset: first * size, batch: size, ..sums };
        let sizes = (slot.fan_out, slot.fan_in, points);
        list.product(Product {
            batches: runs,
            slices: (gradient.slices, all * size),
            ..Product::new([d_rows, a_rows.transposed(), sums], sizes)
        });
        // The outputs of all runs of the group lie one after the other.
        let columns = runs * slot.fan_out;
        gradient.add_bias(list, d, (points, columns), (1, points), first * slot.fan_out, false);
        let weights = self.context.weights(slot, first).transposed();
        list.product(Product {
            batches: runs,
            epilogue: Epilogue::Masked,
            ..Product::new([weights, d_rows, a_rows], (slot.fan_in, points, slot.fan_out))
        });
    }

    /// All outputs with the present parameters, before any activation: N × (runs · outputs).
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

    /// Activations of the hidden layer on all points: per run, points × width.
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
