//! A task in training on a device.

use std::sync::Arc;

use faer::Mat;

use super::adapter::Gpu;
use super::kernels::Pointwise;
use super::program::{BLOCK, DeviceBuffer, Kernels, Program, Recorder, Submission};
use super::{Options, kronecker, simple};
use crate::cpu::sigmoid;
use crate::error::same;
use crate::layout::{Layout, Slot};
use crate::{
    Adam, EpochErrors, FirstLayer, Input, NetError, Network, OutputActivation, Parameters,
    Progress, SampleSet, Session, State, Task, spectral,
};

/// Points of a partial sum of squares.
pub const POINTS_PER_SUM: usize = 1024;

/// Epochs whose constants and errors are on the device at a time.
const SLOTS: usize = 64;

/// What the parts of a session work with.
pub struct Context<'a> {
    pub gpu: &'a Gpu,
    pub kernels: &'a Kernels,
    pub options: &'a Options,
    pub network: &'a Network,
    pub layout: &'a Layout,
    pub theta: &'a DeviceBuffer,
    pub moments: [&'a DeviceBuffer; 2],
    pub steps: &'a wgpu::Buffer,
    /// Per slot the sums of squares of all runs on the training and on the test samples.
    pub errors: &'a DeviceBuffer,
}

impl<'a> Context<'a> {
    /// An empty list of dispatches.
    pub fn recorder(&self) -> Recorder<'a> {
        Recorder::new(self.gpu, self.kernels, self.steps)
    }

    /// The partial sums of squares of all runs, `sums` of each, to the place of the step; `which` is 0 for
    /// training and 1 for test samples.
    pub fn sum_squares(
        &self,
        list: &mut Recorder<'_>,
        squares: Option<&DeviceBuffer>,
        sums: usize,
        which: usize,
    ) {
        if let Some(squares) = squares {
            let runs = self.layout.runs;
            let parameters = [sums, runs, which].map(|p| p as u32);
            let buffers = [squares, self.errors];
            list.pointwise(Pointwise::Squares, &parameters, &buffers, [runs, 1, 1], 0.0);
        }
    }

    /// Residuals of `outputs` and the partial sums of their squares. If `is_kept`, residuals replace the outputs. `sums` is the
    /// number of partial sums of a run and the index of the first of these. `layout` has the offset of the outputs, their
    /// strides of runs, points and outputs, and the offset and strides of the targets.
    pub fn residuals(
        &self,
        list: &mut Recorder<'_>,
        [targets, outputs, squares]: [&DeviceBuffer; 3],
        (points, all_points, runs): (usize, usize, usize),
        sums: [usize; 2],
        is_kept: bool,
        layout: [usize; 8],
    ) {
        let width = self.network.output;
        let sigmoid = self.network.output_activation == OutputActivation::Sigmoid;
        let factor = (2.0 / (all_points * width) as f64) as f32;
        let [all, first] = sums;
        let (sigmoid, is_kept) = (usize::from(sigmoid), usize::from(is_kept));
        let head = [
            points,
            width,
            POINTS_PER_SUM,
            all,
            first,
            sigmoid,
            is_kept,
            factor.to_bits() as usize,
        ];
        let parameters: Vec<u32> = head.into_iter().chain(layout).map(|p| p as u32).collect();
        let groups = [points.div_ceil(POINTS_PER_SUM), runs, 1];
        let work = (8 * points * width * runs) as f64;
        list.pointwise(
            Pointwise::Residual,
            &parameters,
            &[targets, outputs, squares],
            groups,
            work,
        );
    }

    /// Records dispatches and runs them once.
    pub fn run_recorded(&self, record: impl FnOnce(&mut Recorder<'_>)) -> Result<(), NetError> {
        let mut list = self.recorder();
        record(&mut list);
        self.run(&list.finish()?);
        Ok(())
    }

    /// Runs a program once.
    pub fn run(&self, program: &Program) {
        let mut submission = Submission::new(self.gpu);
        submission.replay(program, 0);
        submission.submit();
    }
}

/// Sums of a layer's gradient for all runs; the step adds them up.
#[derive(Debug)]
pub struct Gradient {
    pub weights: DeviceBuffer,
    bias: DeviceBuffer,
    pub slices: usize,
    bias_slices: usize,
    /// Biases of all runs.
    biases: usize,
}

impl Gradient {
    pub fn new(
        context: &Context<'_>,
        slot: &Slot,
        slices: usize,
        bias_slices: usize,
    ) -> Result<Self, NetError> {
        let runs = context.layout.runs;
        let weights = slices * runs * slot.fan_in * slot.fan_out;
        let biases = runs * slot.biases;
        Ok(Gradient {
            weights: DeviceBuffer::zeros(context.gpu, "the gradient of a layer", weights)?,
            bias: DeviceBuffer::zeros(context.gpu, "the gradient of biases", bias_slices * biases)?,
            slices,
            bias_slices,
            biases,
        })
    }

    /// Sums of the columns of `d`.
    pub fn add_bias(
        &self,
        list: &mut Recorder<'_>,
        d: &DeviceBuffer,
        sizes: (usize, usize),
        strides: (usize, usize),
        add: bool,
    ) {
        self.add_bias_at(list, d, sizes, strides, 0, add);
    }

    /// As [`Self::add_bias`] for some runs only: adds the biases from `first` on.
    pub fn add_bias_at(
        &self,
        list: &mut Recorder<'_>,
        d: &DeviceBuffer,
        (rows, columns): (usize, usize),
        strides: (usize, usize),
        first: usize,
        add: bool,
    ) {
        let per_slice = rows.div_ceil(self.bias_slices);
        let parameters = [
            rows,
            columns,
            per_slice,
            usize::from(add),
            0,
            strides.0,
            strides.1,
            first,
            self.biases,
        ];
        let parameters = parameters.map(|p| p as u32);
        let groups = [columns.div_ceil(16), self.bias_slices, 1];
        let work = (rows * columns) as f64;
        list.pointwise(Pointwise::ColumnSums, &parameters, &[d, &self.bias], groups, work);
    }

    /// The step of the layer's weights and biases.
    pub fn adam(&self, context: &Context<'_>, list: &mut Recorder<'_>, slot: &Slot) {
        let weights = context.layout.runs * slot.fan_in * slot.fan_out;
        for (numbers, count, slices, at) in [
            (&self.weights, weights, self.slices, slot.weights),
            (&self.bias, self.biases, self.bias_slices, slot.bias),
        ] {
            let parameters = [count, slices, count, 0, at].map(|p| p as u32);
            let buffers = [numbers, context.theta, context.moments[0], context.moments[1]];
            // Threads take further numbers if there are more than workgroups.
            let groups = [count.div_ceil(256).min(65_535), 1, 1];
            let work = ((slices + 12) * count) as f64;
            list.pointwise(Pointwise::Adam, &parameters, &buffers, groups, work);
        }
    }
}

/// The training and the test side of a network, and what they share.
#[derive(Debug)]
struct Parts<S, T> {
    train: S,
    test: Option<S>,
    scratch: T,
}

/// How the network goes through its points.
#[derive(Debug)]
enum Model {
    Simple(Box<Parts<simple::Side, simple::Scratch>>),
    Kronecker(Box<Parts<kronecker::Side, kronecker::Scratch>>),
}

/// What is on the device whatever the network.
#[derive(Debug)]
struct Held {
    gpu: Arc<Gpu>,
    kernels: Arc<Kernels>,
    options: Options,
    network: Network,
    layout: Layout,
    theta: DeviceBuffer,
    moments: [DeviceBuffer; 2],
    steps: wgpu::Buffer,
    errors: DeviceBuffer,
}

impl Held {
    fn context(&self) -> Context<'_> {
        Context {
            gpu: &self.gpu,
            kernels: &self.kernels,
            options: &self.options,
            network: &self.network,
            layout: &self.layout,
            theta: &self.theta,
            moments: [&self.moments[0], &self.moments[1]],
            steps: &self.steps,
            errors: &self.errors,
        }
    }
}

/// A task in training.
pub struct DeviceSession {
    held: Held,
    optimizer: Adam,
    model: Model,
    /// DeviceBuffer that an error is the mean of, on the training and on the test samples.
    counts: [f64; 2],
    step: Program,
    train_errors: Program,
    test_errors: Option<Program>,
    progress: Progress,
    train_input: Input,
}

impl DeviceSession {
    /// Stands before the first epoch of a task that has been checked.
    pub fn new(
        gpu: Arc<Gpu>,
        kernels: Arc<Kernels>,
        options: Options,
        task: Task,
    ) -> Result<Self, NetError> {
        let Task { network, optimizer, train, test, initial } = task;
        let runs = initial.len();
        let layout = Layout::new(&network, runs);
        let steps = gpu.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: (BLOCK * SLOTS) as u64,
            usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let moment = || DeviceBuffer::zeros(&gpu, "the moments of Adam", layout.len);
        let held = Held {
            theta: DeviceBuffer::of(&gpu, "the parameters", &layout.pack(&initial))?,
            moments: [moment()?, moment()?],
            errors: DeviceBuffer::zeros(&gpu, "the errors", SLOTS * 2 * runs)?,
            gpu,
            kernels,
            options,
            network,
            layout,
            steps,
        };
        let context = held.context();
        let outputs = context.network.output;
        let count = |points: usize| (points * outputs) as f64;
        let counts = [
            count(train.input.points()),
            test.as_ref().map_or(1.0, |test| count(test.input.points())),
        ];
        let mut lists = [context.recorder(), context.recorder(), context.recorder()];
        let [step, train_list, test_list] = &mut lists;
        // Gradients are named by the programs alone, which keep them.
        let model = match (&context.network.first, &train.input) {
            (FirstLayer::Kronecker, Input::Kronecker(input)) => {
                let train = kronecker::Side::new(&context, input, Some(&train.targets))?;
                let test = match &test {
                    Some(samples) => match &samples.input {
                        Input::Kronecker(input) => {
                            Some(kronecker::Side::new(&context, input, Some(&samples.targets))?)
                        }
                        _ => None,
                    },
                    None => None,
                };
                let sides: Vec<_> = std::iter::once(&train).chain(&test).collect();
                let scratch = kronecker::scratch(&context, &sides)?;
                let gradients = kronecker::gradients(&context, step, &train, &scratch)?;
                kronecker::step(&context, step, &train, &scratch, &gradients);
                kronecker::errors(&context, train_list, &train, &scratch, 0);
                if let Some(test) = &test {
                    kronecker::errors(&context, test_list, test, &scratch, 1);
                }
                Model::Kronecker(Box::new(Parts { train, test, scratch }))
            }
            _ => {
                let dimension = context.network.input;
                let train = simple::Side::new(&context, &train.input, Some(&train.targets), true)?;
                let test = match &test {
                    Some(samples) => Some(simple::Side::new(
                        &context,
                        &samples.input,
                        Some(&samples.targets),
                        false,
                    )?),
                    None => None,
                };
                let sides: Vec<_> = std::iter::once(&train).chain(&test).collect();
                let scratch = simple::scratch(&context, &sides, dimension)?;
                let gradients = simple::gradients(&context, step, &train)?;
                simple::step(&context, step, &train, &scratch, &gradients);
                simple::errors(&context, train_list, &train, &scratch, 0);
                if let Some(test) = &test {
                    simple::errors(&context, test_list, test, &scratch, 1);
                }
                Model::Simple(Box::new(Parts { train, test, scratch }))
            }
        };
        let has_test = match &model {
            Model::Simple(parts) => parts.test.is_some(),
            Model::Kronecker(parts) => parts.test.is_some(),
        };
        let [step, train_errors, test_errors] = lists;
        let (step, train_errors) = (step.finish()?, train_errors.finish()?);
        let test_errors = if has_test { Some(test_errors.finish()?) } else { None };
        Ok(DeviceSession {
            progress: Progress::new(runs),
            held,
            optimizer,
            model,
            counts,
            step,
            train_errors,
            test_errors,
            train_input: train.input,
        })
    }

    /// Writes the constants of the next `count` steps.
    fn write_steps(&self, count: usize) {
        let mut bytes = vec![0u8; BLOCK * count];
        for (slot, block) in bytes.chunks_exact_mut(BLOCK).enumerate() {
            let c = self.optimizer.constants(self.progress.epoch + 1 + slot as u64);
            let floats = [
                c.beta1,
                c.one_minus_beta1,
                c.beta2,
                c.one_minus_beta2,
                c.rate,
                c.root_scale,
                c.epsilon,
                c.weight_decay,
            ];
            block[..32].copy_from_slice(bytemuck::cast_slice(&floats));
            block[32..36].copy_from_slice(&(slot as u32).to_ne_bytes());
        }
        self.held.gpu.queue.write_buffer(&self.held.steps, 0, &bytes);
    }

    /// Errors of the first `count` slots: per slot, of training and test samples, per run.
    fn read_errors(&self, count: usize) -> Result<Vec<[Vec<f64>; 2]>, NetError> {
        let runs = self.runs();
        let sums = self.held.errors.read(&self.held.gpu, count * 2 * runs)?;
        let means = |sums: &[f32], count: f64| sums.iter().map(|s| f64::from(*s) / count).collect();
        let slot = |sums: &[f32]| {
            let (train, test) = sums.split_at(runs);
            [means(train, self.counts[0]), means(test, self.counts[1])]
        };
        Ok(sums.chunks_exact(2 * runs).map(slot).collect())
    }

    fn advance_slots(&mut self, measured: &[bool]) -> Result<Vec<EpochErrors>, NetError> {
        let gpu = self.held.gpu.clone();
        let errors = gpu.scoped(|| {
            self.write_steps(measured.len());
            let mut submission = Submission::new(&gpu);
            for (slot, measured) in measured.iter().enumerate() {
                if let (true, Some(program)) = (*measured, &self.test_errors) {
                    submission.replay(program, slot);
                }
                submission.replay(&self.step, slot);
            }
            submission.submit();
            self.read_errors(measured.len())
        })?;
        let mut epochs = Vec::with_capacity(measured.len());
        for ([train, test], measured) in errors.into_iter().zip(measured) {
            self.progress.epoch += 1;
            self.progress.record(&train);
            let is_measured = *measured && self.test_errors.is_some();
            epochs.push(EpochErrors { train, test: if is_measured { test } else { Vec::new() } });
        }
        Ok(epochs)
    }
}

impl Session for DeviceSession {
    fn progress(&self) -> &Progress {
        &self.progress
    }

    fn step(&mut self) -> Result<Vec<f64>, NetError> {
        let mut epochs = self.advance_slots(&[false])?;
        Ok(epochs.pop().map(|epoch| epoch.train).unwrap_or_default())
    }

    fn epochs_at_once(&self) -> usize {
        let one = self.step.work() + self.test_errors.as_ref().map_or(0.0, Program::work);
        ((self.held.options.work_at_once / one.max(1.0)) as usize).clamp(1, SLOTS)
    }

    fn advance(&mut self, measured: &[bool]) -> Result<Vec<EpochErrors>, NetError> {
        let mut epochs = Vec::with_capacity(measured.len());
        for measured in measured.chunks(SLOTS) {
            epochs.extend(self.advance_slots(measured)?);
        }
        Ok(epochs)
    }

    fn errors(&mut self, set: SampleSet) -> Result<Vec<f64>, NetError> {
        let program = match (set, &self.test_errors) {
            (SampleSet::Train, _) => &self.train_errors,
            (SampleSet::Test, Some(program)) => program,
            (SampleSet::Test, None) => return Ok(Vec::new()),
        };
        let mut errors = self.held.gpu.scoped(|| {
            self.write_steps(1);
            self.held.context().run(program);
            self.read_errors(1)
        })?;
        Ok(errors
            .pop()
            .map(|[train, test]| if set == SampleSet::Train { train } else { test })
            .unwrap_or_default())
    }

    fn predict(&mut self, input: &Input) -> Result<Mat<f32>, NetError> {
        let network = &self.held.network;
        network.check_input(input)?;
        same("features", input.dimension(), network.input)?;
        if let (Input::Kronecker(own), Input::Kronecker(other)) = (&self.train_input, input) {
            own.check_axes(other)?;
        }
        let context = self.held.context();
        let mut outputs = self.held.gpu.scoped(|| match input {
            Input::Kronecker(input) => {
                let side = kronecker::Side::new(&context, input, None)?;
                let scratch = kronecker::scratch(&context, &[&side])?;
                kronecker::outputs(&context, &side, &scratch)
            }
            _ => {
                let side = simple::Side::new(&context, input, None, false)?;
                let scratch = simple::scratch(&context, &[&side], network.input)?;
                simple::outputs(&context, &side, &scratch)
            }
        })?;
        if network.output_activation == OutputActivation::Sigmoid {
            for c in 0..outputs.ncols() {
                sigmoid(outputs.col_as_slice_mut(c));
            }
        }
        Ok(outputs)
    }

    fn hidden_stable_ranks(&mut self) -> Result<Vec<Vec<f64>>, NetError> {
        let context = self.held.context();
        let layers = self.held.gpu.scoped(|| match &self.model {
            Model::Simple(parts) => simple::hidden(&context, &parts.train, &parts.scratch),
            Model::Kronecker(parts) => kronecker::hidden(&context, &parts.train, &parts.scratch),
        })?;
        let ranks = |run: &Vec<Mat<f32>>| {
            run.iter().map(|layer| spectral::stable_rank(layer.as_ref())).collect()
        };
        Ok(layers.iter().map(ranks).collect())
    }

    fn parameters(&self) -> Result<Vec<Parameters>, NetError> {
        let Held { gpu, layout, theta, .. } = &self.held;
        Ok(layout.unpack(&gpu.scoped(|| theta.read(gpu, layout.len))?))
    }

    fn state(&self) -> Result<State, NetError> {
        let Held { gpu, layout, theta, moments, .. } = &self.held;
        let mut numbers = Vec::with_capacity(3 * layout.len);
        for part in [theta, &moments[0], &moments[1]] {
            numbers.extend(gpu.scoped(|| part.read(gpu, layout.len))?);
        }
        Ok(self.progress.state(numbers))
    }

    fn restore(&mut self, state: &State) -> Result<(), NetError> {
        let Held { gpu, layout, theta, moments, .. } = &self.held;
        self.progress.check(state, 3 * layout.len)?;
        gpu.scoped(|| {
            let parts = [theta, &moments[0], &moments[1]];
            for (part, numbers) in parts.into_iter().zip(state.numbers.chunks_exact(layout.len)) {
                part.write(gpu, 0, numbers);
            }
            gpu.check()
        })?;
        self.progress.clone_from(&state.progress);
        Ok(())
    }
}
