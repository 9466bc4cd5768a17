//! Networks whose first layer is affine: chunks of points through all layers and back.
//!
//! Activations lie point by point, all runs of a point beside each other, so that the first layer, whose
//! input the runs share, is one product with all runs as columns; every other layer is one product
//! per run. On the way back the gradients take the place of the activations.

use faer::Mat;

use super::adapter::Gpu;
use super::kernels::Pointwise;
use super::layout::Layout;
use super::product::Epilogue;
use super::program::{Numbers, Operand, Product, Recorder};
use super::session::{Context, Gradient};
use crate::{Input, NetError, OutputActivation};

/// Points of a partial sum of squares.
pub const POINTS_PER_SUM: usize = 1024;

/// Embedded positions and targets.
#[derive(Debug)]
pub struct Side {
    pub points: usize,
    input: DeviceInput,
    /// Point by point, all runs' outputs beside each other; none for predictions.
    targets: Option<Numbers>,
    /// Points that go through the network at a time.
    chunk: usize,
    /// Sums of squares, run by run.
    squares: Option<Numbers>,
}

/// Features, or what they are made of.
#[derive(Debug)]
enum DeviceInput {
    /// One buffer per chunk, point by point.
    Dense(Vec<Numbers>),
    /// Tables one after the other, with their rows and first numbers; indices table by table.
    Factored { tables: Numbers, parts: Vec<(usize, usize)>, indices: Numbers },
    /// Sines and cosines of every axis, with their first numbers; indices axis by axis.
    Waves { tables: Numbers, parts: Vec<(usize, usize)>, indices: Numbers, scale: f32 },
}

/// Both sides, and what they share.
#[derive(Debug)]
pub struct Parts {
    pub train: Side,
    pub test: Option<Side>,
    pub scratch: Scratch,
}

/// Room for one chunk.
#[derive(Debug)]
pub struct Scratch {
    /// Features that are made for a chunk.
    features: Option<Numbers>,
    /// Outputs of every layer.
    activations: Vec<Numbers>,
}

/// Points of a chunk, such that everything it needs keeps within the budget and the adapter's limits.
fn chunk(context: &Context<'_>, input: &Input) -> Result<usize, NetError> {
    let layout = context.layout;
    let made = if matches!(input, Input::Dense(_)) { 0 } else { input.dimension() };
    let wide = |slot: &super::layout::Slot| layout.runs * slot.fan_out;
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
    /// Brings positions and targets to the device.
    pub fn new(
        context: &Context<'_>,
        input: &Input,
        targets: Option<&Mat<f32>>,
    ) -> Result<Self, NetError> {
        let (gpu, points) = (context.gpu, input.points());
        let chunk = chunk(context, input)?;
        let targets = match targets {
            None => None,
            Some(targets) => {
                let columns = targets.ncols();
                let mut numbers = vec![0.0; points * columns];
                for c in 0..columns {
                    for (i, target) in targets.col_as_slice(c).iter().enumerate() {
                        numbers[i * columns + c] = *target;
                    }
                }
                Some(Numbers::of(gpu, "the targets", &numbers)?)
            }
        };
        let sums: usize = chunks(points, chunk).map(|(_, n)| n.div_ceil(POINTS_PER_SUM)).sum();
        let squares = match &targets {
            None => None,
            Some(_) => Some(Numbers::zeros(gpu, "sums of squares", sums * context.layout.runs)?),
        };
        let input = DeviceInput::new(gpu, input, chunk)?;
        Ok(Side { points, input, targets, chunk, squares })
    }

    fn sums(&self) -> usize {
        chunks(self.points, self.chunk).map(|(_, n)| n.div_ceil(POINTS_PER_SUM)).sum()
    }

    /// First point and number of points of every chunk.
    pub fn chunks(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        chunks(self.points, self.chunk)
    }
}

fn chunks(points: usize, chunk: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
    (0..points).step_by(chunk.max(1)).map(move |first| (first, chunk.min(points - first)))
}

impl DeviceInput {
    fn new(gpu: &Gpu, input: &Input, chunk: usize) -> Result<Self, NetError> {
        let flat = |indices: &[Vec<u32>]| Numbers::of(gpu, "indices", &indices.concat());
        let mut numbers: Vec<f32> = Vec::new();
        let append = |numbers: &mut Vec<f32>, matrix: &Mat<f32>| {
            let first = numbers.len();
            (0..matrix.ncols()).for_each(|j| numbers.extend(matrix.col_as_slice(j)));
            first
        };
        match input {
            Input::Dense(matrix) => {
                let mut pieces = Vec::new();
                for (first, n) in chunks(matrix.ncols(), chunk) {
                    numbers.clear();
                    (first..first + n).for_each(|j| numbers.extend(matrix.col_as_slice(j)));
                    pieces.push(Numbers::of(gpu, "the features", &numbers)?);
                }
                Ok(DeviceInput::Dense(pieces))
            }
            Input::Factored(f) => {
                let parts = f.tables.iter().map(|t| (t.nrows(), append(&mut numbers, t))).collect();
                let tables = Numbers::of(gpu, "the tables of the features", &numbers)?;
                Ok(DeviceInput::Factored { tables, parts, indices: flat(&f.indices)? })
            }
            Input::Waves(waves) => {
                let parts = waves
                    .tables
                    .iter()
                    .map(|t| (append(&mut numbers, &t.sines), append(&mut numbers, &t.cosines)))
                    .collect();
                let tables = Numbers::of(gpu, "the tables of the waves", &numbers)?;
                let indices = flat(&waves.indices)?;
                Ok(DeviceInput::Waves { tables, parts, indices, scale: waves.scale })
            }
            Input::Kronecker(_) => Err(NetError::Combination {
                why: "a Kronecker input needs a network whose first layer is a Kronecker layer \
                      (Network::kronecker)"
                    .to_owned(),
            }),
        }
    }
}

/// Widths of all layers' outputs, all runs together, and chunks of so many points.
pub fn scratch(
    context: &Context<'_>,
    sides: &[&Side],
    dimension: usize,
) -> Result<Scratch, NetError> {
    let chunk = sides.iter().map(|side| side.chunk).max().unwrap_or(1);
    let is_made = sides.iter().any(|side| !matches!(side.input, DeviceInput::Dense(_)));
    let layout = context.layout;
    let activations = layout
        .slots
        .iter()
        .map(|slot| Numbers::zeros(context.gpu, "activations", chunk * layout.runs * slot.fan_out))
        .collect::<Result<_, _>>()?;
    let features =
        is_made.then(|| Numbers::zeros(context.gpu, "features", chunk * dimension)).transpose()?;
    Ok(Scratch { features, activations })
}

/// Features of a chunk: where they are, after what makes them.
fn features<'a>(
    list: &mut Recorder<'_>,
    side: &'a Side,
    scratch: &'a Scratch,
    dimension: usize,
    (first, n): (usize, usize),
) -> &'a Numbers {
    let made = match (&side.input, &scratch.features) {
        (DeviceInput::Dense(pieces), _) => return &pieces[first / side.chunk],
        (_, Some(made)) => made,
        (_, None) => &scratch.activations[0],
    };
    match &side.input {
        DeviceInput::Dense(_) => {}
        DeviceInput::Factored { tables, parts, indices } => {
            let mut feature = 0;
            for (block, &(rows, offset)) in parts.iter().enumerate() {
                let index = block * side.points + first;
                let parameters = [n, rows, dimension, feature, index, offset].map(|p| p as u32);
                let groups = list.folded(n * rows);
                let buffers = [tables, indices, made];
                list.pointwise(Pointwise::Gather, &parameters, &buffers, groups, (n * rows) as f64);
                feature += rows;
            }
        }
        DeviceInput::Waves { tables, parts, indices, scale } => {
            let waves = dimension / 2;
            for (axis, &(sines, cosines)) in parts.iter().enumerate() {
                let kernel = if axis == 0 { Pointwise::WavesFirst } else { Pointwise::WavesTurn };
                let index = axis * side.points + first;
                let mut parameters = [n, waves, index, sines, cosines].map(|p| p as u32).to_vec();
                parameters.push(scale.to_bits());
                let groups = list.folded(n * waves);
                let buffers = [tables, indices, made];
                list.pointwise(kernel, &parameters, &buffers, groups, (6 * n * waves) as f64);
            }
        }
    }
    made
}

/// Numbers of all runs in rows.
fn rows(numbers: &Numbers, width: usize) -> Operand<'_> {
    Operand { numbers, offset: 0, strides: (width, 1), batch: 0 }
}

/// The way forward of a chunk; gives the features.
pub fn forward<'a>(
    context: &Context<'_>,
    list: &mut Recorder<'_>,
    side: &'a Side,
    scratch: &'a Scratch,
    chunk: (usize, usize),
) -> &'a Numbers {
    let Layout { slots, runs, .. } = context.layout;
    let dimension = slots[0].fan_in;
    let features = features(list, side, scratch, dimension, chunk);
    for (l, slot) in slots.iter().enumerate() {
        let is_last = l + 1 == slots.len();
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
        let product = Product {
            a: rows(features, dimension),
            b,
            c: out,
            sizes: (chunk.1, runs * slot.fan_out, slot.fan_in),
            batches: 1,
            slices: (1, 0),
            epilogue: if is_last { Epilogue::Bias } else { Epilogue::BiasRelu },
            bias: Some(bias),
        };
        list.product(if l == 0 {
            product
        } else {
            let below = slots[l - 1].fan_out;
            Product {
                a: Operand { batch: below, ..rows(&scratch.activations[l - 1], runs * below) },
                c: Operand { batch: slot.fan_out, ..out },
                sizes: (chunk.1, slot.fan_out, below),
                batches: *runs,
                ..product
            }
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
    let sigmoid = context.network.output_activation == OutputActivation::Sigmoid;
    let factor = (2.0 / (side.points * outputs) as f64) as f32;
    // Chunks but the last are of one size.
    let first_sum = first / side.chunk * side.chunk.div_ceil(POINTS_PER_SUM);
    let (wide, out) = (runs * outputs, &scratch.activations[scratch.activations.len() - 1]);
    let parameters = [
        n,
        outputs,
        POINTS_PER_SUM,
        side.sums(),
        first_sum,
        usize::from(sigmoid),
        usize::from(is_kept),
        factor.to_bits() as usize,
        0,
        outputs,
        wide,
        1,
        first * wide,
        outputs,
        wide,
        1,
    ];
    let groups = [n.div_ceil(POINTS_PER_SUM), runs, 1];
    let work = (8 * n * wide) as f64;
    let parameters = parameters.map(|p| p as u32);
    list.pointwise(Pointwise::Residual, &parameters, &[targets, out, squares], groups, work);
}

/// The sums of squares of all runs to the place of the step.
fn squares(context: &Context<'_>, list: &mut Recorder<'_>, side: &Side, which: usize) {
    if let Some(squares) = &side.squares {
        let runs = context.layout.runs;
        let parameters = [side.sums(), runs, which].map(|p| p as u32);
        let buffers = [squares, context.errors];
        list.pointwise(Pointwise::Squares, &parameters, &buffers, [runs, 1, 1], 0.0);
    }
}

/// Errors of the present parameters.
pub fn errors(
    context: &Context<'_>,
    list: &mut Recorder<'_>,
    side: &Side,
    scratch: &Scratch,
    which: usize,
) {
    for chunk in side.chunks() {
        forward(context, list, side, scratch, chunk);
        residuals(context, list, side, scratch, chunk, false);
    }
    squares(context, list, side, which);
}

/// Room for the gradients of all layers.
pub fn gradients(
    context: &Context<'_>,
    list: &Recorder<'_>,
    side: &Side,
) -> Result<Vec<Gradient>, NetError> {
    let runs = context.layout.runs;
    let one = |(l, slot): (usize, &super::layout::Slot)| {
        let slices = match l {
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
            let product = Product {
                a: Operand { numbers: d, offset: 0, strides: (1, wide), batch: 0 },
                b: rows(features, slot.fan_in),
                c: rows(&gradient.weights, slot.fan_in),
                sizes: (wide, slot.fan_in, chunk.1),
                batches: 1,
                slices: (gradient.slices, runs * weights),
                epilogue,
                bias: None,
            };
            list.product(if l == 0 {
                product
            } else {
                let below = runs * slot.fan_in;
                Product {
                    a: Operand { batch: slot.fan_out, ..product.a },
                    b: Operand { batch: slot.fan_in, ..rows(&scratch.activations[l - 1], below) },
                    c: Operand { batch: weights, ..product.c },
                    sizes: (slot.fan_out, slot.fan_in, chunk.1),
                    batches: *runs,
                    ..product
                }
            });
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
    squares(context, list, side, 0);
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
        run_forward(context, side, scratch, chunk)?;
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
        run_forward(context, side, scratch, chunk)?;
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

fn run_forward(
    context: &Context<'_>,
    side: &Side,
    scratch: &Scratch,
    chunk: (usize, usize),
) -> Result<(), NetError> {
    let mut list = context.recorder();
    forward(context, &mut list, side, scratch, chunk);
    context.run(&list.finish()?);
    Ok(())
}
