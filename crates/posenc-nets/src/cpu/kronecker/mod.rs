//! Networks that begin with a Kronecker layer.
//!
//! The features ψ₀ ⊗ ψ₁ ⊗ ψ₂ are never formed. Weights are K₀ × K₁ × K₂ tensors that are multiplied axis by axis
//! (`chain.rs`); a matrix that vanishes outside a band is multiplied as a band (`band.rs`). On a full grid without a
//! hidden layer, the Gram matrices of the axes halve the number of products (`gram.rs`). Otherwise, the forward pass
//! computes the outputs and the backward pass starts from the residuals (`shallow.rs`, `deep.rs`). If the points are
//! not the nodes of the grid, both passes use a sparse matrix (`sparse.rs`).
//!
//! Work items depend only on sizes, so that the number of threads does not change the bits of a result.

mod band;
mod chain;
mod deep;
mod gram;
mod shallow;
mod side;
mod sparse;

use faer::Mat;

use self::chain::Scratch;
use self::deep::{Deep, LISTS};
use self::gram::Gram;
use self::shallow::{Buffers, Shallow};
use self::side::{Backward, Side};
#[cfg(feature = "wgpu")]
pub(crate) use self::sparse::Sparse;
use super::Products;
use super::parallel::for_each;
use crate::layout::Layout;
use crate::{
    Adam, Input, Kronecker, NetError, Network, OutputActivation, Parameters, Points, Progress,
    SampleSet, Session, State, Task, spectral,
};

/// Memory limit of a session, in GiB.
const ALLOWED_GIB: f64 = 4.0;

/// Parameters and moments of one run. θ contains the tensors of the Kronecker layer, one per output or hidden
/// channel, then the weights (outputs × hidden) and the biases of the last layer, if there is a hidden layer.
#[derive(Debug)]
struct RunState {
    theta: Vec<f32>,
    /// The Gram form writes the new θ here; empty for other forms.
    next: Vec<f32>,
    first_moment: Vec<f32>,
    second_moment: Vec<f32>,
}

#[derive(Debug, Default)]
struct Worker {
    scratch: Scratch,
    first: Vec<f32>,
    second: Vec<f32>,
    third: Vec<f32>,
}

/// Threads that share the work on one run.
#[derive(Debug, Default)]
struct Group {
    workers: Vec<Worker>,
    buffers: Buffers,
}

/// Method for the gradient, with its precomputed data.
#[derive(Debug)]
enum Form {
    Gram(Gram),
    Shallow(Shallow, Backward),
    Deep(Deep, Backward),
}

pub struct KroneckerSession {
    network: Network,
    layout: Layout,
    optimizer: Adam,
    train: Side,
    test: Option<Side>,
    form: Form,
    runs: Vec<RunState>,
    /// One group per thread if there are at least as many runs as threads; otherwise one group of all threads.
    groups: Vec<Group>,
    progress: Progress,
}

impl KroneckerSession {
    /// Starts a session of a task that has passed [`Task::check`].
    pub fn new(task: Task, threads: usize, products: Option<Products>) -> Result<Self, NetError> {
        let Task { network, optimizer, train, test, initial } = task;
        let together = if initial.len() >= threads { threads } else { 1 };
        let evaluated = test.as_ref().unwrap_or(&train);
        let what = "training a network with a Kronecker layer";
        let counts = (initial.len(), together, threads / together);
        check_memory(what, &network, [train.input.axes(), evaluated.input.axes()], counts)?;
        let outputs = network.output;
        let side = Side::with_targets(&train, outputs);
        let form = Form::new(&network, &side, products)?;
        let has_next = matches!(form, Form::Gram(_));
        let layout = Layout::new(&network, 1);
        let run = |parameters| {
            let zeros = || vec![0.0; layout.len];
            RunState {
                theta: layout.pack(&[parameters]),
                next: if has_next { zeros() } else { Vec::new() },
                first_moment: zeros(),
                second_moment: zeros(),
            }
        };
        let runs: Vec<_> = initial.into_iter().map(run).collect();
        let group = |_| Group {
            workers: (0..threads / together).map(|_| Worker::default()).collect(),
            buffers: Buffers::default(),
        };
        Ok(KroneckerSession {
            progress: Progress::new(runs.len()),
            groups: (0..together).map(group).collect(),
            network,
            layout,
            optimizer,
            train: side,
            test: test.map(|test| Side::with_targets(&test, outputs)),
            form,
            runs,
        })
    }

    /// Calls `work` for every run; the groups process runs in parallel.
    fn each_run<T: Send>(
        runs: &mut [RunState],
        groups: &mut [Group],
        work: impl Fn(usize, &mut RunState, &mut Group) -> T + Sync,
    ) -> Vec<T> {
        let mut items: Vec<_> =
            runs.iter_mut().enumerate().map(|(index, run)| (index, run, None)).collect();
        for_each(groups, &mut items, |group, (index, run, result)| {
            *result = Some(work(*index, run, group));
        });
        items.into_iter().filter_map(|(.., result)| result).collect()
    }
}

impl Form {
    fn new(network: &Network, side: &Side, products: Option<Products>) -> Result<Self, NetError> {
        let (outputs, activation) = (network.output, network.output_activation);
        let is_full = matches!(side.input.points, Points::Grid);
        let is_quadratic = activation == OutputActivation::Identity && network.depth() == 0;
        let may_be_gram = is_full && is_quadratic;
        if products == Some(Products::Gram) && !may_be_gram {
            let why = "products through Gram matrices need a full grid, no hidden layer and no output \
                       activation; let the engine choose";
            return Err(NetError::Combination(why.to_owned()));
        }
        if may_be_gram && products != Some(Products::Residual) {
            let chain = Gram::chain(&side.input.axes);
            // With far fewer points than features, the forward and backward pass is cheaper.
            let residual = side.forward.cost() + side.backward().chain.cost();
            if products == Some(Products::Gram) || chain.cost() <= residual {
                return Ok(Form::Gram(Gram::new(chain, side, outputs)));
            }
        }
        let backward = side.backward();
        Ok(match network.hidden.first() {
            None => Form::Shallow(Shallow { outputs, activation }, backward),
            Some(&hidden) => {
                let features = network.input;
                Form::Deep(Deep { hidden, features, outputs, activation }, backward)
            }
        })
    }
}

/// Estimates the memory for training on one input and evaluating on another: weights, both moments and a fourth array of
/// this size for every run, and the buffers of every group. Evaluation does not store the hidden layer, but it has up to
/// [`LISTS`] lists of output sums, and up to as many workers with the values of one channel.
fn check_memory(
    what: &'static str,
    network: &Network,
    [train, evaluated]: [&Kronecker; 2],
    (runs, groups, workers): (usize, usize, usize),
) -> Result<(), NetError> {
    let hidden: usize = network.hidden.iter().sum();
    let points = train.points().max(evaluated.points()) as f64;
    let nodes = train.nodes().max(evaluated.nodes()) as f64;
    let (outputs, lists) = (network.output as f64, LISTS.min(hidden));
    let per_group = hidden as f64 * train.points() as f64
        + 2.0 * outputs * (points + nodes)
        + lists as f64 * outputs * points
        + lists.min(workers) as f64 * (points + nodes);
    let numbers = 4.0 * (runs * network.parameter_count()) as f64 + groups as f64 * per_group;
    let needed = numbers * 4.0 / (1_u64 << 30) as f64;
    if needed > ALLOWED_GIB {
        return Err(NetError::Memory { what, needed, allowed: ALLOWED_GIB });
    }
    Ok(())
}

impl Session for KroneckerSession {
    fn progress(&self) -> &Progress {
        &self.progress
    }

    fn step(&mut self) -> Result<Vec<f64>, NetError> {
        self.progress.epoch += 1;
        let count = self.train.count() * self.network.output;
        let constants = self.optimizer.constants(self.progress.epoch);
        let scale = (2.0 / count as f64) as f32;
        let (runs, groups, side) = (&mut self.runs, &mut self.groups, &self.train);
        let squares = match &self.form {
            Form::Gram(gram) => {
                let mut workers: Vec<&mut Worker> =
                    groups.iter_mut().flat_map(|group| &mut group.workers).collect();
                gram.step(runs, &mut workers, &constants, scale)
            }
            Form::Shallow(network, backward) => Self::each_run(runs, groups, |r, run, group| {
                network.step(side, backward, (r, run), group, &constants, scale)
            }),
            Form::Deep(network, backward) => Self::each_run(runs, groups, |r, run, group| {
                network.step(side, backward, (r, run), group, &constants, scale)
            }),
        };
        let errors: Vec<f64> = squares.iter().map(|sum| sum / count as f64).collect();
        self.progress.record(&errors);
        Ok(errors)
    }

    fn step_errors_are_exact(&self) -> bool {
        !matches!(self.form, Form::Gram(_))
    }

    fn errors(&mut self, set: SampleSet) -> Result<Vec<f64>, NetError> {
        let side = match (set, &self.test) {
            (SampleSet::Train, _) => &self.train,
            (SampleSet::Test, Some(test)) => test,
            (SampleSet::Test, None) => return Ok(Vec::new()),
        };
        let (outputs, activation) = (self.network.output, self.network.output_activation);
        let form = &self.form;
        let squares =
            Self::each_run(&mut self.runs, &mut self.groups, |r, run, group| match form {
                Form::Deep(network, _) => network.squares(side, r, &run.theta, group),
                _ => Shallow { outputs, activation }.squares(side, r, &run.theta, group),
            });
        let count = (side.count() * outputs) as f64;
        Ok(squares.into_iter().map(|sum| sum / count).collect())
    }

    fn predict(&mut self, input: &Input) -> Result<Mat<f32>, NetError> {
        self.network.check_input(&Input::Kronecker(self.train.input.clone()), input)?;
        let kronecker = input.axes();
        let workers = self.groups.first().map_or(1, |group| group.workers.len());
        let counts = (self.runs.len(), self.groups.len(), workers);
        let what = "predicting with a Kronecker layer";
        check_memory(what, &self.network, [&self.train.input, kronecker], counts)?;
        let side = Side::new(kronecker);
        let (outputs, activation) = (self.network.output, self.network.output_activation);
        let form = &self.form;
        let all = Self::each_run(&mut self.runs, &mut self.groups, |_, run, group| match form {
            Form::Deep(network, _) => network.outputs(&side, &run.theta, group),
            _ => Shallow { outputs, activation }.outputs(&side, &run.theta, group),
        });
        Ok(Mat::from_fn(side.count(), all.len() * outputs, |i, j| {
            all[j / outputs][i * outputs + j % outputs]
        }))
    }

    fn hidden_stable_ranks(&mut self) -> Result<Vec<Vec<f64>>, NetError> {
        let Form::Deep(network, _) = &self.form else {
            return Ok(vec![Vec::new(); self.runs.len()]);
        };
        let side = &self.train;
        Ok(Self::each_run(&mut self.runs, &mut self.groups, |_, run, group| {
            let Group { workers, buffers } = group;
            let (activations, _) = buffers.hidden(network.hidden * side.count(), 0);
            network.activations(side, &run.theta, workers, activations);
            let view =
                faer::MatRef::from_column_major_slice(&*activations, side.count(), network.hidden);
            vec![spectral::stable_rank(view)]
        }))
    }

    fn parameters(&self) -> Result<Vec<Parameters>, NetError> {
        Ok(self.runs.iter().flat_map(|run| self.layout.unpack(&run.theta)).collect())
    }

    fn state(&self) -> Result<State, NetError> {
        let parts =
            self.runs.iter().map(|run| [&*run.theta, &run.first_moment, &run.second_moment]);
        Ok(super::state_of(parts, &self.progress))
    }

    fn restore(&mut self, state: &State) -> Result<(), NetError> {
        let runs = self.runs.iter_mut();
        let parts = runs.map(|r| [&mut *r.theta, &mut r.first_moment, &mut r.second_moment]);
        super::restore_from(state, self.layout.len, parts, &mut self.progress)
    }
}
