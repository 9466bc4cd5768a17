//! Networks whose first layer is affine: chunks of points through all layers and back.
//!
//! Activations lie point by point, all runs of a point side by side, so that the first layer, whose
//! input the runs share, is one product with all runs as columns; every other layer is one product
//! per run. On the way back the gradients take the place of the activations.

use faer::Mat;

use super::input::{
    DeviceInput, Form, features, multiply_gradients, prepare, sum_gradients, sum_products,
    takes_tables,
};
use super::product::Epilogue;
use super::program::{DeviceBuffer, Operand, Product, Recorder};
use super::session::{Context, Gradient, POINTS_PER_SUM};
use crate::layout::Layout;
use crate::{Input, NetError};

/// Embedded positions and targets.
#[derive(Debug)]
pub struct Side {
    pub points: usize,
    pub input: DeviceInput,
    /// Point by point, all runs' outputs side by side; none for predictions.
    targets: Option<DeviceBuffer>,
    /// Points that go through the network at a time.
    pub chunk: usize,
    /// Sums of squares, run by run.
    squares: Option<DeviceBuffer>,
}

/// Room for one chunk.
#[derive(Debug)]
pub struct Scratch {
    /// Features that are made for a chunk.
    pub features: Option<DeviceBuffer>,
    /// Outputs of every layer.
    pub activations: Vec<DeviceBuffer>,
    /// Products of the tables with the weights, and sums of gradients over points of one coordinate.
    pub tables: Option<[DeviceBuffer; 2]>,
}

/// Points of a chunk, such that everything it needs keeps within the budget and the adapter's limits.
fn chunk(context: &Context<'_>, input: &Input) -> Result<usize, NetError> {
    let layout = context.layout;
    let made = match input {
        Input::Dense(_) => 0,
        Input::Factored(f) if takes_tables(f) => 0,
        _ => input.dimension(),
    };
    let wide = |slot: &crate::layout::Slot| layout.runs * slot.fan_out;
    let total = made + layout.slots.iter().map(wide).sum::<usize>();
    let widest = layout.slots.iter().map(wide).chain([input.dimension()]).max().unwrap_or(1);
    let budget = context.options.chunk_bytes / (4 * total as u64);
    let limit = context.gpu.largest_bytes() / (4 * widest as u64);
    let chunk = budget.max(64).min(limit);
    if chunk == 0 {
        return Err(context.gpu.error(format!(
            "one point takes {widest} numbers, more than a buffer of this adapter holds: lower the width, the \
             dimension or the number of runs, or use --device cpu"
        )));
    }
    Ok(usize::try_from(chunk).unwrap_or(usize::MAX).min(input.points()))
}

impl Side {
    /// Brings positions and targets to the device. Only a side that `is_trained` goes back.
    pub fn new(
        context: &Context<'_>,
        input: &Input,
        targets: Option<&Mat<f32>>,
        is_trained: bool,
    ) -> Result<Self, NetError> {
        let (gpu, points) = (context.gpu, input.points());
        let chunk = chunk(context, input)?;
        let targets = targets.map(|targets| {
            let columns = targets.ncols();
            let mut numbers = vec![0.0; points * columns];
            for c in 0..columns {
                for (i, target) in targets.col_as_slice(c).iter().enumerate() {
                    numbers[i * columns + c] = *target;
                }
            }
            DeviceBuffer::of(gpu, "the targets", &numbers)
        });
        let targets = targets.transpose()?;
        let sums: usize = chunks(points, chunk).map(|(_, n)| n.div_ceil(POINTS_PER_SUM)).sum();
        let sums = sums * context.layout.runs;
        let squares = targets.as_ref().map(|_| DeviceBuffer::zeros(gpu, "sums of squares", sums));
        let squares = squares.transpose()?;
        let input = DeviceInput::new(gpu, input, chunk, is_trained)?;
        Ok(Side { points, input, targets, chunk, squares })
    }

    fn sums(&self) -> usize {
        chunks(self.points, self.chunk).map(|(_, n)| n.div_ceil(POINTS_PER_SUM)).sum()
    }

    /// Whether features are made for every chunk.
    pub fn is_made(&self) -> bool {
        match &self.input {
            DeviceInput::Dense(_) => false,
            DeviceInput::Factored { form, .. } => matches!(form, Form::Expanded),
            DeviceInput::Waves { .. } => true,
        }
    }

    /// Coordinates of all tables, where these are multiplied.
    pub fn coordinates(&self) -> usize {
        match &self.input {
            DeviceInput::Factored { parts, form: Form::Tables(_), .. } => {
                parts.iter().map(|table| table.columns).sum()
            }
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

/// Buffers for all layers' outputs, for all runs together and the largest chunk of points.
pub fn scratch(
    context: &Context<'_>,
    sides: &[&Side],
    dimension: usize,
) -> Result<Scratch, NetError> {
    let chunk = sides.iter().map(|side| side.chunk).max().unwrap_or(1);
    let is_made = sides.iter().any(|side| side.is_made());
    let layout = context.layout;
    let coordinates = sides.iter().map(|side| side.coordinates()).max().unwrap_or(0);
    let tables = match coordinates * layout.runs * layout.slots[0].fan_out {
        0 => None,
        count => {
            let zeros = || DeviceBuffer::zeros(context.gpu, "products of the tables", count);
            Some([zeros()?, zeros()?])
        }
    };
    let activations = layout
        .slots
        .iter()
        .map(|slot| {
            DeviceBuffer::zeros(context.gpu, "activations", chunk * layout.runs * slot.fan_out)
        })
        .collect::<Result<_, _>>()?;
    let features = is_made
        .then(|| DeviceBuffer::zeros(context.gpu, "features", chunk * dimension))
        .transpose()?;
    Ok(Scratch { features, activations, tables })
}

/// DeviceBuffer of all runs in rows.
pub fn rows(numbers: &DeviceBuffer, width: usize) -> Operand<'_> {
    Operand { numbers, offset: 0, strides: (width, 1), batch: 0 }
}

/// The way forward of a chunk, after [`prepare`]; gives the features if there are any.
fn forward<'a>(
    context: &Context<'_>,
    list: &mut Recorder<'_>,
    side: &'a Side,
    scratch: &'a Scratch,
    chunk: (usize, usize),
) -> Option<&'a DeviceBuffer> {
    let Layout { slots, runs, .. } = context.layout;
    let dimension = slots[0].fan_in;
    let features = features(list, side, scratch, dimension, chunk);
    for (l, slot) in slots.iter().enumerate() {
        let is_last = l + 1 == slots.len();
        let input = match (l, features) {
            (0, None) => {
                sum_products(context, list, side, scratch, chunk, is_last);
                continue;
            }
            (0, Some(features)) => rows(features, dimension),
            (_, _) => {
                let below = slots[l - 1].fan_out;
                Operand { batch: below, ..rows(&scratch.activations[l - 1], runs * below) }
            }
        };
        let out = rows(&scratch.activations[l], runs * slot.fan_out);
        let theta = context.theta;
        let weights = slot.fan_in * slot.fan_out;
        let bias =
            Operand { numbers: theta, offset: slot.bias, strides: (0, 1), batch: slot.fan_out };
        // W is read by columns: B[k, n] = W[n, k].
        let b = Operand {
            numbers: theta,
            offset: slot.weights,
            strides: (1, slot.fan_in),
            batch: weights,
        };
        // The first layer's input is that of all runs.
        let (batches, columns) =
            if l == 0 { (1, runs * slot.fan_out) } else { (*runs, slot.fan_out) };
        list.product(Product {
            a: input,
            b,
            c: Operand { batch: slot.fan_out, ..out },
            sizes: (chunk.1, columns, slot.fan_in),
            batches,
            slices: (1, 0),
            epilogue: if is_last { Epilogue::Bias } else { Epilogue::BiasRelu },
            bias: Some(bias),
        });
    }
    features
}

/// Residuals in place of the outputs where they are wanted, and the sums of their squares.
fn residuals(
    context: &Context<'_>,
    list: &mut Recorder<'_>,
    side: &Side,
    scratch: &Scratch,
    (first, n): (usize, usize),
    is_kept: bool,
) {
    let (Some(targets), Some(squares)) = (&side.targets, &side.squares) else {
        return;
    };
    let outputs = context.network.output;
    let runs = context.layout.runs;
    // Chunks but the last are of one size.
    let first_sum = first / side.chunk * side.chunk.div_ceil(POINTS_PER_SUM);
    let (wide, out) = (runs * outputs, &scratch.activations[scratch.activations.len() - 1]);
    let layout = [0, outputs, wide, 1, first * wide, outputs, wide, 1];
    let (buffers, counts) = ([targets, out, squares], (n, side.points, runs));
    context.residuals(list, buffers, counts, [side.sums(), first_sum], is_kept, layout);
}

/// Errors of the present parameters.
pub fn errors(
    context: &Context<'_>,
    list: &mut Recorder<'_>,
    side: &Side,
    scratch: &Scratch,
    which: usize,
) {
    prepare(context, list, side, scratch);
    for chunk in side.chunks() {
        forward(context, list, side, scratch, chunk);
        residuals(context, list, side, scratch, chunk, false);
    }
    context.sum_squares(list, side.squares.as_ref(), side.sums(), which);
}

/// Room for the gradients of all layers.
pub fn gradients(
    context: &Context<'_>,
    list: &Recorder<'_>,
    side: &Side,
) -> Result<Vec<Gradient>, NetError> {
    let runs = context.layout.runs;
    let one = |(l, slot): (usize, &crate::layout::Slot)| {
        let slices = match l {
            // From the sums over points: an inner dimension of coordinates.
            0 if side.coordinates() > 0 => 1,
            0 => list.slices(runs * slot.fan_out, slot.fan_in, side.chunk, 1),
            _ => list.slices(slot.fan_out, slot.fan_in, side.chunk, runs),
        };
        let bias_slices = (side.chunk / 1024).clamp(1, 64);
        Gradient::new(context, slot, slices, bias_slices)
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
    let Layout { slots, runs, .. } = context.layout;
    prepare(context, list, side, scratch);
    for (index, chunk) in side.chunks().enumerate() {
        let features = forward(context, list, side, scratch, chunk);
        residuals(context, list, side, scratch, chunk, true);
        let epilogue = if index == 0 { Epilogue::Store } else { Epilogue::Add };
        for (l, slot) in slots.iter().enumerate().rev() {
            let wide = runs * slot.fan_out;
            let d = &scratch.activations[l];
            let gradient = &gradients[l];
            let weights = slot.fan_in * slot.fan_out;
            // Dᵀ A: the inner dimension runs over points.
            let fan_in = slot.fan_in;
            let (a, batches) = match (l, features) {
                (0, features) => (features.map(|features| rows(features, fan_in)), 1),
                (_, _) => {
                    let below = rows(&scratch.activations[l - 1], runs * fan_in);
                    (Some(Operand { batch: fan_in, ..below }), *runs)
                }
            };
            match a {
                None => sum_gradients(list, side, scratch, d, wide, index),
                Some(a) => list.product(Product {
                    a: Operand { numbers: d, offset: 0, strides: (1, wide), batch: slot.fan_out },
                    b: a,
                    c: Operand { batch: weights, ..rows(&gradient.weights, fan_in) },
                    sizes: (wide / batches, fan_in, chunk.1),
                    batches,
                    slices: (gradient.slices, runs * weights),
                    epilogue,
                    bias: None,
                }),
            }
            gradient.add_bias(list, d, (chunk.1, wide), (wide, 1), index > 0);
            if l > 0 {
                let below = runs * slot.fan_in;
                list.product(Product {
                    a: Operand { batch: slot.fan_out, ..rows(d, wide) },
                    b: Operand {
                        numbers: context.theta,
                        offset: slot.weights,
                        strides: (slot.fan_in, 1),
                        batch: weights,
                    },
                    c: Operand { batch: slot.fan_in, ..rows(&scratch.activations[l - 1], below) },
                    sizes: (chunk.1, slot.fan_in, slot.fan_out),
                    batches: *runs,
                    slices: (1, 0),
                    epilogue: Epilogue::Masked,
                    bias: None,
                });
            }
        }
    }
    multiply_gradients(context, list, side, scratch, &gradients[0]);
    context.sum_squares(list, side.squares.as_ref(), side.sums(), 0);
    gradients.iter().zip(slots).for_each(|(gradient, slot)| gradient.adam(context, list, slot));
}

/// All outputs with the present parameters, before any activation: N × (runs · outputs).
pub fn outputs(
    context: &Context<'_>,
    side: &Side,
    scratch: &Scratch,
) -> Result<Mat<f32>, NetError> {
    let columns = context.layout.runs * context.network.output;
    let layer = context.layout.slots.len() - 1;
    let mut all = Mat::zeros(side.points, columns);
    for chunk in side.chunks() {
        context.run_recorded(|list| {
            prepare(context, list, side, scratch);
            forward(context, list, side, scratch, chunk);
        })?;
        let numbers = scratch.activations[layer].read(context.gpu, chunk.1 * columns)?;
        for (i, row) in numbers.chunks_exact(columns).enumerate() {
            for (c, number) in row.iter().enumerate() {
                all[(chunk.0 + i, c)] = *number;
            }
        }
    }
    Ok(all)
}

/// Activations of all hidden layers on all points: per run and layer, width × N.
pub fn hidden(
    context: &Context<'_>,
    side: &Side,
    scratch: &Scratch,
) -> Result<Vec<Vec<Mat<f32>>>, NetError> {
    let runs = context.layout.runs;
    let widths = &context.network.hidden;
    let zeros = || widths.iter().map(|width| Mat::zeros(*width, side.points)).collect();
    let mut all: Vec<Vec<Mat<f32>>> = (0..runs).map(|_| zeros()).collect();
    for chunk in side.chunks() {
        context.run_recorded(|list| {
            prepare(context, list, side, scratch);
            forward(context, list, side, scratch, chunk);
        })?;
        for (l, &width) in widths.iter().enumerate() {
            let wide = runs * width;
            let numbers = scratch.activations[l].read(context.gpu, chunk.1 * wide)?;
            for (i, point) in numbers.chunks_exact(wide).enumerate() {
                for (run, values) in point.chunks_exact(width).enumerate() {
                    all[run][l].col_as_slice_mut(chunk.0 + i).copy_from_slice(values);
                }
            }
        }
    }
    Ok(all)
}
