//! Sessions of the device engine.

use std::sync::Arc;

use faer::Mat;

use super::adapter::Gpu;
use super::context::Context;
use super::program::{BLOCK, DeviceBuffer, Kernels, Program, Submission, UNIFORM};
use super::{Options, kronecker, simple};
use crate::cpu::sigmoid;
use crate::layout::Layout;
use crate::{
    Adam, EpochErrors, FirstLayer, Input, NetError, OutputActivation, Parameters, Progress,
    SampleSet, Samples, Session, State, Task, spectral,
};

/// Maximum number of epochs whose constants and errors are on the device together.
const SLOTS: usize = 64;

/// Training samples and buffers for the kind of network.
#[derive(Debug)]
enum Model {
    Simple(Box<(simple::Side, simple::Scratch)>),
    Kronecker(Box<(kronecker::Side, kronecker::Scratch)>),
}

pub struct DeviceSession {
    context: Context,
    optimizer: Adam,
    model: Model,
    /// Number of squared residuals per mean, on the training and on the test samples.
    counts: [f64; 2],
    step: Program,
    train_errors: Program,
    test_errors: Option<Program>,
    progress: Progress,
    train_input: Input,
}

impl DeviceSession {
    /// Starts a session of a task that has passed [`Task::check`].
    pub fn new(
        gpu: Arc<Gpu>,
        kernels: Arc<Kernels>,
        options: Options,
        task: Task,
    ) -> Result<Self, NetError> {
        let Task { network, optimizer, train, test, initial } = task;
        let runs = initial.len();
        let layout = Layout::new(&network, runs);
        let steps = gpu.buffer((BLOCK * SLOTS) as u64, UNIFORM);
        let moment = || DeviceBuffer::zeros(&gpu, "the moments of Adam", layout.len);
        let context = Context {
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
        let count = |samples: &Samples| (samples.input.points() * context.network.output) as f64;
        let counts = [count(&train), test.as_ref().map_or(1.0, count)];
        let mut lists = [context.recorder(), context.recorder(), context.recorder()];
        let [step, train_list, test_list] = &mut lists;
        // Only the programs use the gradients and test samples later, and they keep the buffers alive.
        let model = match context.network.first {
            FirstLayer::Kronecker => {
                let side = |samples: &Samples| {
                    kronecker::Side::new(&context, &samples.input, Some(&samples.targets))
                };
                let (train, test) = (side(&train)?, test.as_ref().map(side).transpose()?);
                let sides: Vec<_> = std::iter::once(&train).chain(&test).collect();
                let scratch = kronecker::scratch(&context, &sides)?;
                let pass = |side| kronecker::Pass { context: &context, side, scratch: &scratch };
                let gradients = pass(&train).gradients(step)?;
                pass(&train).step(step, &gradients);
                pass(&train).errors(train_list, 0);
                if let Some(test) = &test {
                    pass(test).errors(test_list, 1);
                }
                Model::Kronecker(Box::new((train, scratch)))
            }
            FirstLayer::Affine => {
                let side = |samples: &Samples, is_trained| {
                    simple::Side::new(&context, &samples.input, Some(&samples.targets), is_trained)
                };
                let train = side(&train, true)?;
                let test = test.as_ref().map(|test| side(test, false)).transpose()?;
                let sides: Vec<_> = std::iter::once(&train).chain(&test).collect();
                let scratch = simple::scratch(&context, &sides)?;
                let pass = |side| simple::Pass { context: &context, side, scratch: &scratch };
                let gradients = pass(&train).gradients(step)?;
                pass(&train).step(step, &gradients);
                pass(&train).errors(train_list, 0);
                if let Some(test) = &test {
                    pass(test).errors(test_list, 1);
                }
                Model::Simple(Box::new((train, scratch)))
            }
        };
        let [step, train_errors, test_errors] = lists;
        let (step, train_errors) = (step.finish()?, train_errors.finish()?);
        let test_errors = test.map(|_| test_errors.finish()).transpose()?;
        Ok(DeviceSession {
            progress: Progress::new(runs),
            context,
            optimizer,
            model,
            counts,
            step,
            train_errors,
            test_errors,
            train_input: train.input,
        })
    }

    /// Uploads the constants of the next `count` steps.
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
        self.context.gpu.queue.write_buffer(&self.context.steps, 0, &bytes);
    }

    /// Reads the errors of the first `count` slots: for each slot, the training and the test errors of all runs.
    fn read_errors(&self, count: usize) -> Result<Vec<[Vec<f64>; 2]>, NetError> {
        let runs = self.runs();
        let sums = self.context.errors.read(&self.context.gpu, count * 2 * runs)?;
        let means = |sums: &[f32], count: f64| sums.iter().map(|s| f64::from(*s) / count).collect();
        let slot = |sums: &[f32]| {
            let (train, test) = sums.split_at(runs);
            [means(train, self.counts[0]), means(test, self.counts[1])]
        };
        Ok(sums.chunks_exact(2 * runs).map(slot).collect())
    }

    fn advance_slots(&mut self, measured: &[bool]) -> Result<Vec<EpochErrors>, NetError> {
        let gpu = self.context.gpu.clone();
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
        ((self.context.options.work_at_once / one.max(1.0)) as usize).clamp(1, SLOTS)
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
        let mut errors = self.context.gpu.scoped(|| {
            self.write_steps(1);
            program.run(&self.context.gpu);
            self.read_errors(1)
        })?;
        Ok(errors
            .pop()
            .map(|[train, test]| if set == SampleSet::Train { train } else { test })
            .unwrap_or_default())
    }

    fn predict(&mut self, input: &Input) -> Result<Mat<f32>, NetError> {
        let network = &self.context.network;
        network.check_input(&self.train_input, input)?;
        let context = &self.context;
        let mut outputs = context.gpu.scoped(|| match network.first {
            FirstLayer::Kronecker => {
                let side = &kronecker::Side::new(context, input, None)?;
                let scratch = &kronecker::scratch(context, &[side])?;
                kronecker::Pass { context, side, scratch }.outputs()
            }
            FirstLayer::Affine => {
                let side = &simple::Side::new(context, input, None, false)?;
                let scratch = &simple::scratch(context, &[side])?;
                simple::Pass { context, side, scratch }.outputs()
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
        let context = &self.context;
        let layers = context.gpu.scoped(|| match &self.model {
            Model::Simple(train) => {
                let (side, scratch) = &**train;
                simple::Pass { context, side, scratch }.hidden()
            }
            Model::Kronecker(train) => {
                let (side, scratch) = &**train;
                kronecker::Pass { context, side, scratch }.hidden()
            }
        })?;
        let ranks = |run: &Vec<Mat<f32>>| {
            run.iter().map(|layer| spectral::stable_rank(layer.as_ref())).collect()
        };
        Ok(layers.iter().map(ranks).collect())
    }

    fn parameters(&self) -> Result<Vec<Parameters>, NetError> {
        let Context { gpu, layout, theta, .. } = &self.context;
        Ok(layout.unpack(&gpu.scoped(|| theta.read(gpu, layout.len))?))
    }

    fn state(&self) -> Result<State, NetError> {
        let Context { gpu, layout, theta, moments, .. } = &self.context;
        let mut numbers = Vec::with_capacity(3 * layout.len);
        for part in [theta, &moments[0], &moments[1]] {
            numbers.extend(gpu.scoped(|| part.read(gpu, layout.len))?);
        }
        Ok(self.progress.state(numbers))
    }

    fn restore(&mut self, state: &State) -> Result<(), NetError> {
        let Context { gpu, layout, theta, moments, .. } = &self.context;
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
