//! Tasks, and the engines and sessions that train them.

use faer::Mat;
use serde::{Deserialize, Serialize};

use crate::error::same;
use crate::{Adam, Input, NetError, Network, Parameters};

#[derive(Debug, Clone)]
pub struct Samples {
    pub input: Input,
    /// Targets, N × (runs · outputs): output o of run r is column r·outputs + o.
    pub targets: Mat<f32>,
}

/// Independent runs of one network on the same positions. Each run has its own targets, initial parameters
/// and Adam state.
#[derive(Debug, Clone)]
pub struct Task {
    pub network: Network,
    pub optimizer: Adam,
    pub train: Samples,
    pub test: Option<Samples>,
    /// One set of initial parameters per run.
    pub initial: Vec<Parameters>,
}

impl Task {
    pub fn runs(&self) -> usize {
        self.initial.len()
    }

    /// Checks that the sizes match and all settings and targets are valid.
    pub fn check(&self) -> Result<(), NetError> {
        self.network.check()?;
        self.optimizer.check()?;
        if self.initial.is_empty() {
            return Err(NetError::Zero("the number of runs"));
        }
        for parameters in &self.initial {
            parameters.check(&self.network)?;
        }
        for (name, samples) in
            std::iter::once(("training", &self.train)).chain(self.test.iter().map(|s| ("test", s)))
        {
            let same = |what: &str, found, expected| {
                same(&format!("{what} of the {name} samples"), found, expected)
            };
            if samples.input.points() == 0 {
                return Err(NetError::Zero("the number of points"));
            }
            self.network.check_input(&self.train.input, &samples.input)?;
            same("targets", samples.targets.nrows(), samples.input.points())?;
            same("target columns", samples.targets.ncols(), self.runs() * self.network.output)?;
            if !(0..samples.targets.ncols())
                .all(|j| samples.targets.col_as_slice(j).iter().all(|v| v.is_finite()))
            {
                return Err(NetError::NotFinite("a target"));
            }
        }
        if self.train.input.is_zero() {
            return Err(NetError::Vanishes);
        }
        Ok(())
    }
}

/// Selects the training or the test samples of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleSet {
    Train,
    Test,
}

/// Parameters and optimizer state of all runs. Resuming from it gives the same bits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    pub progress: Progress,
    /// θ, m and v in the engine's own layout.
    pub numbers: Vec<f32>,
}

/// The completed epochs of a session, and its diverged runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    pub epoch: u64,
    /// For each run, the epoch (from 1) whose error was not finite.
    pub diverged: Vec<Option<u64>>,
}

impl Progress {
    pub fn new(runs: usize) -> Self {
        Progress { epoch: 0, diverged: vec![None; runs] }
    }

    /// Records the runs whose errors in the current epoch are not finite.
    pub(crate) fn record(&mut self, errors: &[f64]) {
        for (diverged, error) in self.diverged.iter_mut().zip(errors) {
            if diverged.is_none() && !error.is_finite() {
                *diverged = Some(self.epoch);
            }
        }
    }

    /// Combines this progress and the numbers of an engine into a state.
    pub(crate) fn state(&self, numbers: Vec<f32>) -> State {
        State { progress: self.clone(), numbers }
    }

    /// Refuses a state whose number of runs or numbers differs from the task's.
    pub(crate) fn check(&self, state: &State, numbers: usize) -> Result<(), NetError> {
        let refuse = |what: &str, found: usize, expected: usize| match found == expected {
            true => Ok(()),
            false => Err(NetError::State(format!("expected {expected} {what}, got {found}"))),
        };
        refuse("runs", state.progress.diverged.len(), self.diverged.len())?;
        refuse("numbers", state.numbers.len(), numbers)
    }
}

/// Mean squared errors of all runs before the step of one epoch.
#[derive(Debug, Clone, PartialEq)]
pub struct EpochErrors {
    /// On the training samples: as exact as [`Session::errors`] if a measurement was requested, otherwise as
    /// returned by [`Session::step`].
    pub train: Vec<f64>,
    /// On the test samples; empty without test samples or if no measurement was requested.
    pub test: Vec<f64>,
}

pub trait Engine: Send + Sync {
    /// Description of the device, for the record.
    fn device(&self) -> String;

    /// Starts a session that trains `task` from its initial parameters.
    fn start(&self, task: Task) -> Result<Box<dyn Session>, NetError>;
}

pub trait Session {
    fn progress(&self) -> &Progress;

    fn runs(&self) -> usize {
        self.progress().diverged.len()
    }

    fn epoch(&self) -> u64 {
        self.progress().epoch
    }

    /// Trains every run for one full-batch epoch: computes the gradient of the mean squared error over all
    /// points and outputs, then takes one Adam step.
    ///
    /// Returns the training error of each run *before* the step, at the parameters of the gradient. A run whose
    /// error is NaN or infinite has diverged: the epoch is recorded, and its parameters are undefined from then on.
    ///
    /// # Errors
    ///
    /// Returns [`NetError::Device`] if the device was lost or ran out of memory; so do the other methods. The CPU
    /// engine never returns this error.
    fn step(&mut self) -> Result<Vec<f64>, NetError>;

    /// Recommended number of epochs per call of [`Session::advance`]. Devices process a queue, and waiting for
    /// it after every epoch costs more than a short epoch.
    fn epochs_at_once(&self) -> usize {
        1
    }

    /// Trains one epoch for every entry of `measured`. If an entry is true, the errors of the parameters before
    /// that epoch are measured.
    fn advance(&mut self, measured: &[bool]) -> Result<Vec<EpochErrors>, NetError> {
        let one = |measured: &bool| {
            let test = if *measured { self.errors(SampleSet::Test)? } else { Vec::new() };
            let is_exact = !*measured || self.step_errors_are_exact();
            let exact = if is_exact { None } else { Some(self.errors(SampleSet::Train)?) };
            let stepped = self.step()?;
            Ok(EpochErrors { train: exact.unwrap_or(stepped), test })
        };
        measured.iter().map(one).collect()
    }

    /// Whether the errors returned by [`Session::step`] are as exact as those of [`Session::errors`].
    ///
    /// They are inexact if a step does not compute the residuals. Its errors are then small differences of large
    /// sums: they show whether a run has diverged, but are inaccurate once the fit is close.
    fn step_errors_are_exact(&self) -> bool {
        true
    }

    /// Mean squared error of each run with its current parameters; empty for [`SampleSet::Test`] if the task has
    /// no test samples.
    fn errors(&mut self, set: SampleSet) -> Result<Vec<f64>, NetError>;

    /// Outputs with the current parameters, N × (runs · outputs).
    fn predict(&mut self, input: &Input) -> Result<Mat<f32>, NetError>;

    /// Stable rank ‖H‖²_F/σ₁² of the activations of every hidden layer (after ReLU) on the training
    /// points with the current parameters: one list per run, from the input on. The lists are empty without
    /// hidden layers.
    fn hidden_stable_ranks(&mut self) -> Result<Vec<Vec<f64>>, NetError>;

    /// For each run, the epoch (from 1) whose error was not finite.
    fn diverged(&self) -> &[Option<u64>] {
        &self.progress().diverged
    }

    fn parameters(&self) -> Result<Vec<Parameters>, NetError>;

    /// State from which a later session of the same task resumes with the same bits.
    fn state(&self) -> Result<State, NetError>;

    fn restore(&mut self, state: &State) -> Result<(), NetError>;
}
