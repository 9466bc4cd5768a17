//! Engines: tasks in, sessions out.

use faer::Mat;

use crate::error::same;
use crate::{Adam, Input, NetError, Network, Parameters};

/// Points with their targets.
#[derive(Debug, Clone)]
pub struct Samples {
    /// Embedded positions of N points.
    pub input: Input,
    /// Targets, N × (runs · outputs): output o of run r is column r·outputs + o.
    pub targets: Mat<f32>,
}

/// Several runs of one network on the same positions. Each run has its own targets, its own
/// initial parameters and its own Adam state, and never sees another's.
#[derive(Debug, Clone)]
pub struct Task {
    /// Shape of every run's network.
    pub network: Network,
    /// Optimizer of every run.
    pub optimizer: Adam,
    /// What is fitted.
    pub train: Samples,
    /// What is only measured.
    pub test: Option<Samples>,
    /// One set of initial parameters per run.
    pub initial: Vec<Parameters>,
}

impl Task {
    /// Number of runs.
    pub fn runs(&self) -> usize {
        self.initial.len()
    }

    /// Refuses what does not fit together.
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
            self.network.check_input(&samples.input)?;
            same("features", samples.input.dimension(), self.network.input)?;
            if let (Input::Kronecker(own), Input::Kronecker(other)) =
                (&self.train.input, &samples.input)
            {
                own.check_axes(other)?;
            }
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

/// Which samples of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleSet {
    /// The samples that are fitted.
    Train,
    /// The samples that are only measured.
    Test,
}

/// Parameters and optimizer state of all runs: enough to resume with the same bits.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// Epochs done and runs that diverged.
    pub progress: Progress,
    /// θ, m and v in the engine's own layout.
    pub numbers: Vec<f32>,
}

/// The epochs that a session has done, and the runs that diverged.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Epochs done.
    pub epoch: u64,
    /// Per run the epoch (from 1) in whose step the error was not finite.
    pub diverged: Vec<Option<u64>>,
}

impl Progress {
    /// Before the first epoch.
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

    /// A state with these numbers.
    pub(crate) fn state(&self, numbers: Vec<f32>) -> State {
        State { progress: self.clone(), numbers }
    }

    /// Refuses a state of another task.
    pub(crate) fn check(&self, state: &State, numbers: usize) -> Result<(), NetError> {
        let refuse = |what: &str, found: usize, expected: usize| match found == expected {
            true => Ok(()),
            false => {
                Err(NetError::State(format!("it has {found} {what}, the task needs {expected}")))
            }
        };
        refuse("runs", state.progress.diverged.len(), self.diverged.len())?;
        refuse("numbers", state.numbers.len(), numbers)
    }
}

/// Errors of all runs before the step of one epoch.
#[derive(Debug, Clone, PartialEq)]
pub struct EpochErrors {
    /// On the training samples: as exact as [`Session::errors`] if errors were to be measured, else as [`Session::step`] returns
    /// them.
    pub train: Vec<f64>,
    /// On the test samples; empty without test samples or if errors were not to be measured.
    pub test: Vec<f64>,
}

/// Something that trains networks.
pub trait Engine: Send + Sync {
    /// The device in words, for the record.
    fn device(&self) -> String;

    /// Starts a session of a task, before its first epoch.
    fn start(&self, task: Task) -> Result<Box<dyn Session>, NetError>;
}

/// A task in training.
pub trait Session {
    /// Epochs done and runs that diverged.
    fn progress(&self) -> &Progress;

    /// Number of runs.
    fn runs(&self) -> usize {
        self.progress().diverged.len()
    }

    /// Epochs done.
    fn epoch(&self) -> u64 {
        self.progress().epoch
    }

    /// One full-batch epoch of every run: gradient of the mean squared error over all points and
    /// outputs, then one Adam step.
    ///
    /// Gives for each run the training error *before* the step, the one the gradient belongs to.
    /// A run whose error is NaN or infinite has diverged: the epoch is noted, and its parameters
    /// no longer matter.
    ///
    /// # Errors
    ///
    /// [`NetError::Device`], here and below: a device that was lost or ran out of memory. The CPU
    /// gives none.
    fn step(&mut self) -> Result<Vec<f64>, NetError>;

    /// How many epochs [`Session::advance`] takes well at once. A device works off a queue, and to
    /// wait for it after every epoch costs more than a short epoch.
    fn epochs_at_once(&self) -> usize {
        1
    }

    /// One epoch for every entry of `measured`, which says whether the errors of the parameters that
    /// the epoch starts from are wanted.
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

    /// Whether the errors that [`Session::step`] gives are as exact as those of [`Session::errors`].
    ///
    /// Not where a step never sees the residuals: its errors are then small differences of large
    /// sums, good for seeing whether a run has diverged, and little else once the fit is close.
    fn step_errors_are_exact(&self) -> bool {
        true
    }

    /// Mean squared error of each run with its present parameters; empty where the task has no
    /// test samples.
    fn errors(&mut self, set: SampleSet) -> Result<Vec<f64>, NetError>;

    /// Outputs with the present parameters, N × (runs · outputs).
    fn predict(&mut self, input: &Input) -> Result<Mat<f32>, NetError>;

    /// Stable rank ‖H‖²_F/σ₁² of the activations of every hidden layer (after ReLU) on the training
    /// points with the present parameters, per run from the input on. Empty without hidden layers.
    fn hidden_stable_ranks(&mut self) -> Result<Vec<Vec<f64>>, NetError>;

    /// Per run the epoch (from 1) in whose step the error was not finite.
    fn diverged(&self) -> &[Option<u64>] {
        &self.progress().diverged
    }

    /// Present parameters of each run.
    fn parameters(&self) -> Result<Vec<Parameters>, NetError>;

    /// What a later session of the same task needs to resume with the same bits.
    fn state(&self) -> Result<State, NetError>;

    /// Goes on from a saved state.
    fn restore(&mut self, state: &State) -> Result<(), NetError>;
}
