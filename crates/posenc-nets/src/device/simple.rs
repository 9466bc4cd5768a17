//! Networks whose first layer is affine: chunks of points pass forward and backward through all layers.
//!
//! Activations are stored point by point, with the runs of a point adjacent. The runs share the input, so the first
//! layer is one product with all runs as columns; every other layer is one product per run. In the backward pass, the
//! gradients overwrite the activations.

use faer::Mat;

use super::context::{Context, Gradient, POINTS_PER_SUM, Targets};
use super::input::{DeviceInput, takes_tables};
use super::product::Epilogue;
use super::program::{DeviceBuffer, Operand, Product, Recorder};
use crate::cpu::interleave;
use crate::layout::{Layout, Slot};
use crate::{Input, NetError};

#[derive(Debug)]
pub struct Side {
    pub points: usize,
    pub input: DeviceInput,
    /// Targets point by point, with the outputs of all runs adjacent; `None` for predictions.
    targets: Option<Targets>,
    pub chunk: usize,
}

#[derive(Debug)]
pub struct Scratch {
    pub features: Option<DeviceBuffer>,
    /// Outputs of every layer; the backward pass overwrites them with gradients.
    pub activations: Vec<DeviceBuffer>,
    /// Products of the tables with the weights, and sums of gradients over the points of each coordinate.
    pub tables: Option<[DeviceBuffer; 2]>,
}

/// Number of points per chunk, such that its buffers fit into the memory budget and the adapter's limits.
fn chunk(context: &Context, input: &Input) -> Result<usize, NetError> {
    let layout = &context.layout;
    // Other factored inputs are uploaded whole. They still count here, because another size of the chunks would change the bits of
    // recorded results.
    let made = match input {
        Input::Dense(_) => 0,
        Input::Factored(f) if takes_tables(f) => 0,
        _ => input.dimension(),
    };
    let wide = |slot: &Slot| layout.runs * slot.fan_out;
    let total = made + layout.slots.iter().map(wide).sum::<usize>();
    let widest = layout.slots.iter().map(wide).chain([input.dimension()]).max().unwrap_or(1);
    let budget = context.options.chunk_bytes / (4 * total as u64);
    let limit = context.gpu.largest_bytes() / (4 * widest as u64);
    let chunk = budget.max(64).min(limit);
    if chunk == 0 {
        return Err(context.gpu.error(format!(
            "one point needs {widest} numbers, more than a buffer of this adapter can have: lower the width, the \
             dimension or the number of runs, or use --device cpu"
        )));
    }
    Ok(usize::try_from(chunk).unwrap_or(usize::MAX).min(input.points()))
}

impl Side {
    /// Uploads positions and targets. Only a side that `is_trained` supports the backward pass.
    pub fn new(
        context: &Context,
        input: &Input,
        targets: Option<&Mat<f32>>,
        is_trained: bool,
    ) -> Result<Self, NetError> {
        let points = input.points();
        let chunk = chunk(context, input)?;
        let targets = targets.map(|targets| {
            let columns = targets.ncols();
            let mut numbers = vec![0.0; points * columns];
            for c in 0..columns {
                interleave(targets.col_as_slice(c), c, columns, &mut numbers);
            }
            let sums = chunks(points, chunk).map(|(_, n)| n.div_ceil(POINTS_PER_SUM)).sum();
            Targets::new(context, &numbers, sums)
        });
        let targets = targets.transpose()?;
        let input = DeviceInput::new(&context.gpu, input, chunk, is_trained)?;
        Ok(Side { points, input, targets, chunk })
    }

    /// Whether features are expanded for every chunk.
    pub fn is_made(&self) -> bool {
        matches!(self.input, DeviceInput::Waves { .. })
    }

    /// Number of coordinates of all tables if tables are multiplied, else 0.
    pub fn coordinates(&self) -> usize {
        match &self.input {
            DeviceInput::Factored { parts, .. } => parts.iter().map(|table| table.columns).sum(),
            _ => 0,
        }
    }

    /// First point and number of points of every chunk.
    pub fn chunks(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        chunks(self.points, self.chunk)
    }
}

pub fn chunks(points: usize, chunk: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
    (0..points).step_by(chunk.max(1)).map(move |first| (first, chunk.min(points - first)))
}

/// Allocates buffers for all runs and the largest chunk of points of `sides`.
pub fn scratch(context: &Context, sides: &[&Side]) -> Result<Scratch, NetError> {
    let (gpu, layout) = (&context.gpu, &context.layout);
    let chunk = sides.iter().map(|side| side.chunk).max().unwrap_or(1);
    let is_made = sides.iter().any(|side| side.is_made());
    let coordinates = sides.iter().map(|side| side.coordinates()).max().unwrap_or(0);
    let tables = match coordinates * layout.runs * layout.slots[0].fan_out {
        0 => None,
        count => {
            let zeros = || DeviceBuffer::zeros(gpu, "products of the tables", count);
            Some([zeros()?, zeros()?])
        }
    };
    let outputs =
        |slot: &Slot| DeviceBuffer::zeros(gpu, "activations", chunk * layout.runs * slot.fan_out);
    let activations = layout.slots.iter().map(outputs).collect::<Result<_, _>>()?;
    let features = is_made
        .then(|| DeviceBuffer::zeros(gpu, "features", chunk * context.network.input))
        .transpose()?;
    Ok(Scratch { features, activations, tables })
}

pub struct Pass<'a> {
    pub context: &'a Context,
    pub side: &'a Side,
    pub scratch: &'a Scratch,
}

impl<'a> Pass<'a> {
    /// The outputs of a layer, point by point, with the runs of a point adjacent.
    fn outputs_of(&self, l: usize) -> Operand<'a> {
        let Layout { slots, runs, .. } = &self.context.layout;
        let batch = slots[l].fan_out;
        Operand { batch, ..Operand::rows(&self.scratch.activations[l], runs * batch) }
    }

    /// Records the forward pass of a chunk, after [`Self::prepare`]. Returns the features; `None` if tables are
    /// multiplied.
    fn forward(&self, list: &mut Recorder<'_>, chunk: (usize, usize)) -> Option<&'a DeviceBuffer> {
        let Layout { slots, runs, .. } = &self.context.layout;
        let features = self.features(list, chunk);
        for (l, slot) in slots.iter().enumerate() {
            let is_last = l + 1 == slots.len();
            let input = match (l, features) {
                (0, None) => {
                    self.sum_products(list, chunk, is_last);
                    continue;
                }
                (0, Some(features)) => Operand::rows(features, slot.fan_in),
                (_, _) => self.outputs_of(l - 1),
            };
            let (numbers, offset) = (&self.context.theta, slot.bias);
            let bias = Operand { numbers, offset, strides: (0, 1), batch: slot.fan_out };
            // W is read by columns: B[k, n] = W[n, k].
            let weights = self.context.weights(slot, 0).transposed();
            // All runs share the input of the first layer.
            let batches = if l == 0 { 1 } else { *runs };
            let sizes = (chunk.1, runs * slot.fan_out / batches, slot.fan_in);
            list.product(Product {
                batches,
                epilogue: if is_last { Epilogue::Bias } else { Epilogue::BiasRelu },
                bias: Some(bias),
                ..Product::new([input, weights, self.outputs_of(l)], sizes)
            });
        }
        features
    }

    /// Records the sums of squared residuals of a chunk. If `is_kept`, residuals overwrite the outputs.
    fn residuals(&self, list: &mut Recorder<'_>, (first, n): (usize, usize), is_kept: bool) {
        let Pass { context, side, scratch } = self;
        let Some(targets) = &side.targets else { return };
        let (outputs, runs) = (context.network.output, context.layout.runs);
        // All chunks except the last have the same size.
        let first_sum = first / side.chunk * side.chunk.div_ceil(POINTS_PER_SUM);
        let (wide, out) = (runs * outputs, &scratch.activations[scratch.activations.len() - 1]);
        let layout = [0, outputs, wide, 1, first * wide, outputs, wide, 1];
        let counts = (n, side.points, runs);
        context.residuals(list, (targets, out), counts, first_sum, is_kept, layout);
    }

    /// Records the errors of the current parameters; `which` is 0 for training and 1 for test samples.
    pub fn errors(&self, list: &mut Recorder<'_>, which: usize) {
        self.prepare(list);
        for chunk in self.side.chunks() {
            self.forward(list, chunk);
            self.residuals(list, chunk, false);
        }
        self.context.sum_squares(list, self.side.targets.as_ref(), which);
    }

    pub fn gradients(&self, list: &Recorder<'_>) -> Result<Vec<Gradient>, NetError> {
        let (side, Layout { slots, runs, .. }) = (self.side, &self.context.layout);
        let one = |(l, slot): (usize, &Slot)| {
            let slices = match l {
                // The product starts from sums over points, and its inner dimension is the coordinates.
                0 if side.coordinates() > 0 => 1,
                0 => list.slices(runs * slot.fan_out, slot.fan_in, side.chunk, 1),
                _ => list.slices(slot.fan_out, slot.fan_in, side.chunk, *runs),
            };
            let bias_slices = (side.chunk / 1024).clamp(1, 64);
            Gradient::new(self.context, slot, slices, bias_slices)
        };
        slots.iter().enumerate().map(one).collect()
    }

    /// Records one epoch: errors before the step, gradients, Adam step.
    pub fn step(&self, list: &mut Recorder<'_>, gradients: &[Gradient]) {
        let Layout { slots, runs, .. } = &self.context.layout;
        self.prepare(list);
        for (index, chunk) in self.side.chunks().enumerate() {
            let features = self.forward(list, chunk);
            self.residuals(list, chunk, true);
            let epilogue = if index == 0 { Epilogue::Store } else { Epilogue::Add };
            for (l, slot) in slots.iter().enumerate().rev() {
                let (d, gradient) = (self.outputs_of(l), &gradients[l]);
                let (wide, weights) = (runs * slot.fan_out, slot.fan_in * slot.fan_out);
                // Dᵀ A: the inner dimension runs over points.
                let (a, batches) = match l {
                    0 => (features.map(|features| Operand::rows(features, slot.fan_in)), 1),
                    _ => (Some(self.outputs_of(l - 1)), *runs),
                };
                match a {
                    None => self.sum_gradients(list, index),
                    Some(a) => {
                        let rows = Operand::rows(&gradient.weights, slot.fan_in);
                        let c = Operand { batch: weights, ..rows };
                        let sizes = (wide / batches, slot.fan_in, chunk.1);
                        list.product(Product {
                            batches,
                            slices: (gradient.slices, runs * weights),
                            epilogue,
                            ..Product::new([d.transposed(), a, c], sizes)
                        });
                    }
                }
                gradient.add_bias(list, d.numbers, (chunk.1, wide), (wide, 1), 0, index > 0);
                if l > 0 {
                    let operands = [d, self.context.weights(slot, 0), self.outputs_of(l - 1)];
                    list.product(Product {
                        batches: *runs,
                        epilogue: Epilogue::Masked,
                        ..Product::new(operands, (chunk.1, slot.fan_in, slot.fan_out))
                    });
                }
            }
        }
        self.multiply_gradients(list, &gradients[0]);
        self.context.sum_squares(list, self.side.targets.as_ref(), 0);
        for (gradient, slot) in gradients.iter().zip(slots) {
            gradient.adam(self.context, list, slot);
        }
    }

    fn run_forward(&self, chunk: (usize, usize)) -> Result<(), NetError> {
        self.context.run_recorded(|list| {
            self.prepare(list);
            self.forward(list, chunk);
        })
    }

    /// All outputs with the current parameters, before the output activation: N × (runs · outputs).
    pub fn outputs(&self) -> Result<Mat<f32>, NetError> {
        let Pass { context, side, scratch } = self;
        let columns = context.layout.runs * context.network.output;
        let layer = context.layout.slots.len() - 1;
        let mut all = Mat::zeros(side.points, columns);
        for chunk in side.chunks() {
            self.run_forward(chunk)?;
            let numbers = scratch.activations[layer].read(&context.gpu, chunk.1 * columns)?;
            for (i, row) in numbers.chunks_exact(columns).enumerate() {
                for (c, number) in row.iter().enumerate() {
                    all[(chunk.0 + i, c)] = *number;
                }
            }
        }
        Ok(all)
    }

    /// Activations of all hidden layers at all points: one width × N matrix per run and layer.
    pub fn hidden(&self) -> Result<Vec<Vec<Mat<f32>>>, NetError> {
        let Pass { context, side, scratch } = self;
        let (runs, widths) = (context.layout.runs, &context.network.hidden);
        let zeros = || widths.iter().map(|width| Mat::zeros(*width, side.points)).collect();
        let mut all: Vec<Vec<Mat<f32>>> = (0..runs).map(|_| zeros()).collect();
        for chunk in side.chunks() {
            self.run_forward(chunk)?;
            for (l, &width) in widths.iter().enumerate() {
                let wide = runs * width;
                let numbers = scratch.activations[l].read(&context.gpu, chunk.1 * wide)?;
                for (i, point) in numbers.chunks_exact(wide).enumerate() {
                    for (run, values) in point.chunks_exact(width).enumerate() {
                        all[run][l].col_as_slice_mut(chunk.0 + i).copy_from_slice(values);
                    }
                }
            }
        }
        Ok(all)
    }
}
