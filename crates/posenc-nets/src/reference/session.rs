//! Engine and session of the reference implementation.

use faer::{Mat, MatRef};
use posenc_math::spectrum;

use super::gradient::{forward, loss, loss_and_gradient, outputs};
use super::parameters::widened;
use super::{AdamState, Parameters};
use crate::{
    Adam, Engine, Input, NetError, Network, Progress, SampleSet, Samples, Session, State, Task,
};

/// Trains in double precision on dense matrices, for tests.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReferenceEngine;

/// A task in training in double precision.
///
/// A diverged run takes no more steps, and its errors are NaN. Values that overflow single but not double
/// precision do not diverge here.
#[derive(Debug, Clone)]
pub struct ReferenceSession {
    network: Network,
    optimizer: Adam,
    train_input: Input,
    train: Dense,
    test: Option<Dense>,
    runs: Vec<RunState>,
    progress: Progress,
}

#[derive(Debug, Clone)]
struct Dense {
    input: Mat<f64>,
    /// Targets of all runs, N × (runs · outputs).
    targets: Mat<f64>,
}

impl Dense {
    fn new(samples: &Samples) -> Self {
        Dense { input: dense(&samples.input), targets: widened(&samples.targets) }
    }

    /// Targets of one run, N × outputs.
    fn targets(&self, run: usize, outputs: usize) -> MatRef<'_, f64> {
        self.targets.as_ref().subcols(run * outputs, outputs)
    }
}

fn dense(input: &Input) -> Mat<f64> {
    widened(&input.to_dense())
}

#[derive(Debug, Clone)]
struct RunState {
    parameters: Parameters,
    adam: AdamState,
}

impl ReferenceSession {
    pub fn new(task: &Task) -> Result<Self, NetError> {
        task.check()?;
        let run = |initial| RunState {
            parameters: Parameters::from_single(initial),
            adam: AdamState::new(&task.network),
        };
        Ok(ReferenceSession {
            network: task.network.clone(),
            optimizer: task.optimizer,
            train_input: task.train.input.clone(),
            train: Dense::new(&task.train),
            test: task.test.as_ref().map(Dense::new),
            runs: task.initial.iter().map(run).collect(),
            progress: Progress::new(task.runs()),
        })
    }
}

impl Engine for ReferenceEngine {
    fn device(&self) -> String {
        "reference in double precision".to_owned()
    }

    fn start(&self, task: Task) -> Result<Box<dyn Session>, NetError> {
        Ok(Box::new(ReferenceSession::new(&task)?))
    }
}

impl Session for ReferenceSession {
    fn progress(&self) -> &Progress {
        &self.progress
    }

    fn step(&mut self) -> Result<Vec<f64>, NetError> {
        self.progress.epoch += 1;
        let mut errors = Vec::with_capacity(self.runs.len());
        for (r, run) in self.runs.iter_mut().enumerate() {
            if self.progress.diverged[r].is_some() {
                errors.push(f64::NAN);
                continue;
            }
            let targets = self.train.targets(r, self.network.output);
            let input = self.train.input.as_ref();
            let (error, gradient) =
                loss_and_gradient(&self.network, &run.parameters, input, targets);
            if error.is_finite() {
                run.adam.step(&self.optimizer, &mut run.parameters, &gradient);
            }
            errors.push(error);
        }
        self.progress.record(&errors);
        Ok(errors)
    }

    fn errors(&mut self, set: SampleSet) -> Result<Vec<f64>, NetError> {
        let samples = match set {
            SampleSet::Train => Some(&self.train),
            SampleSet::Test => self.test.as_ref(),
        };
        let Some(samples) = samples else { return Ok(Vec::new()) };
        let error = |(r, run): (usize, &RunState)| {
            let targets = samples.targets(r, self.network.output);
            loss(&self.network, &run.parameters, samples.input.as_ref(), targets)
        };
        Ok(self.runs.iter().enumerate().map(error).collect())
    }

    fn predict(&mut self, input: &Input) -> Result<Mat<f32>, NetError> {
        let n_outputs = self.network.output;
        self.network.check_input(&self.train_input, input)?;
        let features = dense(input);
        let mut predictions = Mat::zeros(input.points(), self.runs.len() * n_outputs);
        for (r, run) in self.runs.iter().enumerate() {
            let y = outputs(&self.network, &run.parameters, features.as_ref());
            for o in 0..n_outputs {
                for i in 0..y.nrows() {
                    predictions[(i, r * n_outputs + o)] = y[(i, o)] as f32;
                }
            }
        }
        Ok(predictions)
    }

    /// Computed from all singular values; NaN if a layer's activations vanish or are not finite.
    fn hidden_stable_ranks(&mut self) -> Result<Vec<Vec<f64>>, NetError> {
        let rank = |h: &Mat<f64>| {
            spectrum::singular_values(h.as_ref())
                .and_then(|values| spectrum::stable_rank_of(&values))
                .unwrap_or(f64::NAN)
        };
        let ranks = |run: &RunState| {
            let pass = forward(&self.network, &run.parameters, self.train.input.as_ref());
            // The first entry is the input itself.
            pass.activations.iter().skip(1).map(rank).collect()
        };
        Ok(self.runs.iter().map(ranks).collect())
    }

    fn parameters(&self) -> Result<Vec<crate::Parameters>, NetError> {
        Ok(self.runs.iter().map(|run| run.parameters.to_single()).collect())
    }

    fn state(&self) -> Result<State, NetError> {
        Err(unsaved())
    }

    fn restore(&mut self, _: &State) -> Result<(), NetError> {
        Err(unsaved())
    }
}

fn unsaved() -> NetError {
    NetError::Combination("the reference implementation has no saved states".to_owned())
}
