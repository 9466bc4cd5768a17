//! Networks that begin with a Kronecker layer.
//!
//! The features ψ₀ ⊗ ψ₁ ⊗ ψ₂ are never formed: weights are tensors K₀ × K₁ × K₂ that are multiplied
//! axis by axis (`chain.rs`), as bands where a matrix vanishes away from one (`band.rs`). Without a
//! hidden layer and on a full grid the Gram matrices of the axes take half the products (`gram.rs`);
//! otherwise outputs go to the points and residuals back (`shallow.rs`, `deep.rs`), through a
//! sparse matrix where the points are not the nodes of the grid (`sparse.rs`).
//!
//! Items of work are cut by sizes alone, so that the number of threads changes no bit.

mod band;
mod chain;
mod deep;
mod gram;
mod shallow;
mod side;
mod sparse;

use faer::Mat;

use self::chain::Scratch;
use self::deep::Deep;
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

/// GiB that a session may take.
const ALLOWED_GIB: f64 = 4.0;

/// Parameters and moments of one run. θ: output after output (or hidden channel after hidden channel)
/// of the Kronecker layer, then the weights (outputs × hidden) and biases of the last layer.
#[derive(Debug)]
struct RunState {
    theta: Vec<f32>,
    /// Where the Gram form writes the new θ.
    next: Vec<f32>,
    first_moment: Vec<f32>,
    second_moment: Vec<f32>,
}

/// A thread's buffers.
#[derive(Debug, Default)]
struct Worker {
    scratch: Scratch,
    first: Vec<f32>,
    second: Vec<f32>,
    third: Vec<f32>,
}

/// Threads that work on one run together.
#[derive(Debug, Default)]
struct Group {
    workers: Vec<Worker>,
    buffers: Buffers,
}

/// How the gradient is found.
#[derive(Debug)]
enum Form {
    Gram(Gram),
    Shallow(Shallow, Backward),
    Deep(Deep, Backward),
}

/// A task in training.
pub struct KroneckerSession {
    network: Network,
    /// Of one run.
    layout: Layout,
    optimizer: Adam,
    train: Side,
    test: Option<Side>,
    form: Form,
    runs: Vec<RunState>,
    /// One where the threads share each run, one per thread if there are runs enough.
    groups: Vec<Group>,
    progress: Progress,
}

impl KroneckerSession {
    /// Stands before the first epoch of a task that has been checked.
    ///
    /// # Errors
    ///
    /// A task that takes too much memory, or for which the Gram form was asked for and does not exist.
    pub fn new(task: Task, threads: usize, products: Products) -> Result<Self, NetError> {
        let Task { network, optimizer, train, test, initial } = task;
        let Input::Kronecker(input) = &train.input else {
            network.check_input(&train.input)?;
            return Err(NetError::Combination("a Kronecker input is needed".to_owned()));
        };
        let together = if initial.len() >= threads { threads } else { 1 };
        check_memory(&network, input, initial.len(), together)?;
        let outputs = network.output;
        let side = Side::with_targets(input, &train, outputs);
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
        let test = test.and_then(|test| match &test.input {
            Input::Kronecker(input) => Some(Side::with_targets(input, &test, outputs)),
            _ => None,
        });
        Ok(KroneckerSession {
            progress: Progress::new(runs.len()),
            groups: (0..together).map(group).collect(),
            network,
            layout,
            optimizer,
            train: side,
            test,
            form,
            runs,
        })
    }

    /// Works on every run, whole runs at a time if there are enough of them.
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
    fn new(network: &Network, side: &Side, products: Products) -> Result<Self, NetError> {
        let (outputs, activation) = (network.output, network.output_activation);
        let is_full = matches!(side.input.points, Points::Grid);
        let is_quadratic = activation == OutputActivation::Identity && network.depth() == 0;
        let may_be_gram = is_full && is_quadratic;
        if products == Products::Gram && !may_be_gram {
            let why = "products through Gram matrices need a full grid, no hidden layer and no output \
                       activation; let the engine choose (Products::Automatic)";
            return Err(NetError::Combination(why.to_owned()));
        }
        if may_be_gram && products != Products::Residual {
            let chain = Gram::chain(&side.input.axes);
            // With far fewer points than features the way forward and back is shorter.
            let residual = side.forward.cost() + side.backward().chain.cost();
            if products == Products::Gram || chain.cost() <= residual {
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

/// Weights, both moments and a fourth copy of them; activations for every run that is trained at once.
fn check_memory(
    network: &Network,
    input: &Kronecker,
    runs: usize,
    together: usize,
) -> Result<(), NetError> {
    let wide: usize = network.hidden.iter().sum();
    let numbers = 4.0 * (runs * network.parameter_count()) as f64
        + (together * wide) as f64 * input.points() as f64
        + (2 * together * network.output) as f64 * (input.points() + input.nodes()) as f64;
    let needed = numbers * 4.0 / (1_u64 << 30) as f64;
    if needed > ALLOWED_GIB {
        let what = "training a network with a Kronecker layer";
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
        self.network.check_input(input)?;
        let Input::Kronecker(kronecker) = input else {
            return Ok(Mat::zeros(input.points(), 0));
        };
        self.train.input.check_axes(kronecker)?;
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
