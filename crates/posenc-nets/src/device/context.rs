//! What all kinds of networks share on the device.

use std::sync::Arc;

use super::Options;
use super::adapter::Gpu;
use super::kernels::Pointwise;
use super::program::{DeviceBuffer, Kernels, Operand, Recorder};
use crate::layout::{Layout, Slot};
use crate::{NetError, Network, OutputActivation};

/// Number of points per partial sum of squares.
pub const POINTS_PER_SUM: usize = 1024;

/// Device data that all kinds of networks need.
#[derive(Debug)]
pub struct Context {
    pub gpu: Arc<Gpu>,
    pub kernels: Arc<Kernels>,
    pub options: Options,
    pub network: Network,
    pub layout: Layout,
    pub theta: DeviceBuffer,
    pub moments: [DeviceBuffer; 2],
    pub steps: wgpu::Buffer,
    /// For each slot, the sums of squares of all runs on the training samples, then on the test samples.
    pub errors: DeviceBuffer,
}

impl Context {
    pub fn recorder(&self) -> Recorder<'_> {
        Recorder::new(&self.gpu, &self.kernels, &self.steps)
    }

    /// The weights of a layer for the runs from `first` on: fan out × fan in.
    pub fn weights(&self, slot: &Slot, first: usize) -> Operand<'_> {
        let size = slot.fan_in * slot.fan_out;
        let offset = slot.weights + first * size;
        Operand { offset, batch: size, ..Operand::rows(&self.theta, slot.fan_in) }
    }

    /// Adds the partial sums of squares of every run and writes them to the slot of the step. `which` is 0 for training
    /// and 1 for test samples.
    pub fn sum_squares(&self, list: &mut Recorder<'_>, targets: Option<&Targets>, which: usize) {
        if let Some(Targets { squares, sums, .. }) = targets {
            let runs = self.layout.runs;
            let buffers = [squares, &self.errors];
            list.pointwise(Pointwise::Squares, &[*sums, runs, which], &buffers, [runs, 1, 1], 0.0);
        }
    }

    /// Computes the residuals of `outputs` and the partial sums of their squares. If `is_kept`, the gradient of the error
    /// with respect to the outputs before their activation replaces the outputs. `first` is the index of the first of
    /// these sums. `layout` contains the offset of the outputs, their strides of runs, points and outputs, and the offset
    /// and strides of the targets.
    pub fn residuals(
        &self,
        list: &mut Recorder<'_>,
        (targets, outputs): (&Targets, &DeviceBuffer),
        (points, all_points, runs): (usize, usize, usize),
        first: usize,
        is_kept: bool,
        layout: [usize; 8],
    ) {
        let width = self.network.output;
        let sigmoid = self.network.output_activation == OutputActivation::Sigmoid;
        let factor = ((2.0 / (all_points * width) as f64) as f32).to_bits() as usize;
        let sizes = [points, width, POINTS_PER_SUM, targets.sums];
        let how = [first, usize::from(sigmoid), usize::from(is_kept), factor];
        let parameters = [&sizes[..], &how, &layout].concat();
        let buffers = [&targets.numbers, outputs, &targets.squares];
        let groups = [points.div_ceil(POINTS_PER_SUM), runs, 1];
        let work = (8 * points * width * runs) as f64;
        list.pointwise(Pointwise::Residual, &parameters, &buffers, groups, work);
    }

    pub fn run_recorded(&self, record: impl FnOnce(&mut Recorder<'_>)) -> Result<(), NetError> {
        let mut list = self.recorder();
        record(&mut list);
        list.finish()?.run(&self.gpu);
        Ok(())
    }
}

/// Targets of all runs, and a buffer for the partial sums of squared errors.
#[derive(Debug)]
pub struct Targets {
    numbers: DeviceBuffer,
    squares: DeviceBuffer,
    sums: usize,
}

impl Targets {
    pub fn new(context: &Context, numbers: &[f32], sums: usize) -> Result<Self, NetError> {
        let (gpu, count) = (&context.gpu, sums * context.layout.runs);
        let numbers = DeviceBuffer::of(gpu, "the targets", numbers)?;
        let squares = DeviceBuffer::zeros(gpu, "sums of squares", count)?;
        Ok(Targets { numbers, squares, sums })
    }
}

/// Partial sums (slices) of a layer's gradient for all runs; the Adam step adds them.
#[derive(Debug)]
pub struct Gradient {
    pub weights: DeviceBuffer,
    bias: DeviceBuffer,
    pub slices: usize,
    bias_slices: usize,
    /// Number of biases of all runs.
    biases: usize,
}

impl Gradient {
    pub fn new(
        context: &Context,
        slot: &Slot,
        slices: usize,
        bias_slices: usize,
    ) -> Result<Self, NetError> {
        let (gpu, runs) = (&context.gpu, context.layout.runs);
        let weights = slices * runs * slot.fan_in * slot.fan_out;
        let biases = runs * slot.biases;
        Ok(Gradient {
            weights: DeviceBuffer::zeros(gpu, "the gradient of a layer", weights)?,
            bias: DeviceBuffer::zeros(gpu, "the gradient of biases", bias_slices * biases)?,
            slices,
            bias_slices,
            biases,
        })
    }

    /// Records the sums of the columns of `d` as the gradient of the biases from `first` on. If `add`, they are added to
    /// the existing gradient.
    pub fn add_bias(
        &self,
        list: &mut Recorder<'_>,
        d: &DeviceBuffer,
        (rows, columns): (usize, usize),
        strides: (usize, usize),
        first: usize,
        add: bool,
    ) {
        let per_slice = rows.div_ceil(self.bias_slices);
        let sizes = [rows, columns, per_slice, usize::from(add)];
        let places = [0, strides.0, strides.1, first, self.biases];
        let parameters = [&sizes[..], &places].concat();
        let groups = [columns.div_ceil(16), self.bias_slices, 1];
        let work = (rows * columns) as f64;
        list.pointwise(Pointwise::ColumnSums, &parameters, &[d, &self.bias], groups, work);
    }

    /// Records the Adam step of the layer's weights and biases.
    pub fn adam(&self, context: &Context, list: &mut Recorder<'_>, slot: &Slot) {
        let weights = context.layout.runs * slot.fan_in * slot.fan_out;
        for (numbers, count, slices, at) in [
            (&self.weights, weights, self.slices, slot.weights),
            (&self.bias, self.biases, self.bias_slices, slot.bias),
        ] {
            let parameters = [count, slices, count, 0, at];
            let [first, second] = &context.moments;
            let buffers = [numbers, &context.theta, first, second];
            // If the workgroups do not cover all parameters, each thread updates several.
            let groups = [count.div_ceil(256).min(65_535), 1, 1];
            let work = ((slices + 12) * count) as f64;
            list.pointwise(Pointwise::Adam, &parameters, &buffers, groups, work);
        }
    }
}
