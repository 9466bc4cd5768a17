//! Training of networks, tile by tile.
//!
//! A tile of points passes forward and backward through the whole network while its activations are in cache. Tiles are
//! divided among a fixed number of lanes, each with its own gradient sum, and the lanes are added in order. Tiles,
//! lanes and their order do not depend on the number of threads.

mod input;
mod layout;
mod pass;

use faer::{Mat, MatMut};

use self::input::Tiles;
use self::layout::Layout;
use self::pass::{Pass, Scratch, Sums};
use super::kernels;
use super::parallel::{for_each, in_chunks};
use crate::optimizer::StepConstants;
use crate::{Input, NetError, Parameters, Progress, SampleSet, Session, State, Task, spectral};

/// Points per tile. The activations of four hidden layers of width 256 then take 0.5 MiB.
const TILE: usize = 128;

/// Minimum number of tiles per lane; fewer tiles are not worth a separate gradient sum.
const TILES_PER_LANE: usize = 4;

/// Maximum number of lanes. More lanes cost memory and additions, fewer would leave cores idle.
const LANES: usize = 16;

/// θ and the moments of one run.
#[derive(Debug)]
struct RunState {
    theta: Vec<f32>,
    first_moment: Vec<f32>,
    second_moment: Vec<f32>,
    /// Products of [`Tiles::prepare`] for the training and the test points.
    products: [Vec<f32>; 2],
    /// Buffer of [`Tiles::finish_gradient`] for the gradient of the first layer's weights.
    gradient: Vec<f32>,
}

/// A range of consecutive tiles with its gradient sum.
#[derive(Debug)]
struct Lane {
    tiles: std::ops::Range<usize>,
    /// Sum of [`Tiles::add_gradient`].
    first: Vec<f32>,
    /// Gradient of θ without the first layer's weights.
    rest: Vec<f32>,
    squares: f64,
}

impl Lane {
    fn all(tiles: usize, first: usize, rest: usize) -> Vec<Lane> {
        let lanes = (tiles / TILES_PER_LANE).clamp(1, LANES);
        (0..lanes)
            .map(|i| Lane {
                tiles: i * tiles / lanes..(i + 1) * tiles / lanes,
                first: vec![0.0; first],
                rest: vec![0.0; rest],
                squares: 0.0,
            })
            .collect()
    }
}

/// Scratch and lanes of a thread; see [`TiledSession::workers`] for which threads have lanes.
struct Worker {
    scratch: Scratch,
    lanes: Vec<Lane>,
}

pub struct TiledSession {
    task: Task,
    threads: usize,
    layout: Layout,
    train: Tiles,
    test: Option<Tiles>,
    runs: Vec<RunState>,
    /// One worker per thread. If `whole_runs`, every worker that gets a run has its own lanes. Otherwise only the first
    /// worker has lanes, and all workers share them.
    workers: Vec<Worker>,
    /// Whether each run is trained by a single thread: with at least as many runs as threads, or with one tile.
    whole_runs: bool,
    progress: Progress,
}

impl TiledSession {
    /// Starts a session of a task that has passed [`Task::check`].
    pub fn new(task: Task, threads: usize) -> Self {
        let layout = Layout::new(&task.network);
        let train = Tiles::new(&task.train.input, TILE);
        let test = task.test.as_ref().map(|test| Tiles::new(&test.input, TILE));
        let runs: Vec<RunState> = task
            .initial
            .iter()
            .map(|parameters| RunState {
                theta: layout.pack(parameters),
                first_moment: vec![0.0; layout.len()],
                second_moment: vec![0.0; layout.len()],
                products: [Vec::new(), Vec::new()],
                gradient: Vec::new(),
            })
            .collect();
        let whole_runs = runs.len() >= threads || train.count() < 2;
        let first = train.gradient_len(layout.first());
        let rest = layout.len() - layout.first().bias_start();
        let workers = (0..threads)
            .map(|i| Worker {
                scratch: Scratch::new(&layout, TILE),
                lanes: if whole_runs && i < runs.len() || i == 0 {
                    Lane::all(train.count(), first, rest)
                } else {
                    Vec::new()
                },
            })
            .collect();
        let progress = Progress::new(runs.len());
        TiledSession { task, threads, layout, train, test, runs, workers, whole_runs, progress }
    }

    fn outputs(&self) -> usize {
        self.task.network.output
    }
}

/// Data that all runs share in one epoch.
struct Epoch<'a> {
    task: &'a Task,
    layout: &'a Layout,
    tiles: &'a Tiles,
    constants: StepConstants,
    scale: f32,
}

impl Epoch<'_> {
    fn pass<'a>(&'a self, run: &'a mut RunState) -> Pass<'a> {
        let products = &mut run.products[SampleSet::Train as usize];
        let activation = self.task.network.output_activation;
        Pass::new(self.layout, activation, self.tiles, &run.theta, products)
    }

    /// Computes the gradient sum and the squared errors of one lane.
    fn lane(&self, pass: &Pass<'_>, run: usize, scratch: &mut Scratch, lane: &mut Lane) {
        lane.squares = 0.0;
        for tile in lane.tiles.clone() {
            pass.forward(tile, scratch);
            let sums = Sums {
                first: &mut lane.first,
                rest: &mut lane.rest,
                fresh: tile == lane.tiles.start,
            };
            let column = run * self.task.network.output;
            let targets = &self.task.train.targets;
            lane.squares += pass.backward(tile, scratch, targets, column, self.scale, sums);
        }
    }

    /// Adds the lanes in order and takes the Adam step; returns the sum of squared errors.
    fn update(&self, threads: usize, lanes: &mut [Lane], run: &mut RunState) -> f64 {
        let squares = lanes.iter().map(|lane| lane.squares).sum();
        let Some((sum, others)) = lanes.split_first_mut() else {
            return squares;
        };
        let add = |sum: &mut Vec<f32>, part: fn(&Lane) -> &[f32]| {
            let mut pieces: Vec<(usize, &mut [f32])> =
                sum.chunks_mut(CHUNK).enumerate().map(|(i, c)| (i * CHUNK, c)).collect();
            in_chunks(threads, &mut pieces, |pieces| {
                for (start, piece) in pieces {
                    for lane in others.iter() {
                        kernels::add(&part(lane)[*start..*start + piece.len()], piece);
                    }
                }
            });
        };
        add(&mut sum.first, |lane| &lane.first);
        add(&mut sum.rest, |lane| &lane.rest);
        // First the weights of the first layer, then all other parameters.
        let first = self.layout.first();
        let weights = first.bias_start();
        let gradient = self.tiles.finish_gradient(first, &sum.first, &mut run.gradient);
        for (range, gradient) in
            [(0..weights, gradient), (weights..self.layout.len(), sum.rest.as_slice())]
        {
            let mut pieces: Vec<_> = run.theta[range.clone()]
                .chunks_mut(CHUNK)
                .zip(run.first_moment[range.clone()].chunks_mut(CHUNK))
                .zip(run.second_moment[range].chunks_mut(CHUNK))
                .zip(gradient.chunks(CHUNK))
                .collect();
            in_chunks(threads, &mut pieces, |pieces| {
                for (((theta, m), v), g) in pieces {
                    kernels::adam(&self.constants, 1.0, g, theta, m, v);
                }
            });
        }
        squares
    }
}

/// Parameters per work item of additions and Adam steps.
const CHUNK: usize = 8192;

impl Session for TiledSession {
    fn progress(&self) -> &Progress {
        &self.progress
    }

    fn step(&mut self) -> Result<Vec<f64>, NetError> {
        self.progress.epoch += 1;
        let count = self.task.train.input.points() * self.outputs();
        let epoch = Epoch {
            task: &self.task,
            layout: &self.layout,
            tiles: &self.train,
            constants: self.task.optimizer.constants(self.progress.epoch),
            scale: (2.0 / count as f64) as f32,
        };
        let mut squares = vec![0.0; self.runs.len()];
        if self.whole_runs {
            let mut items: Vec<_> = self.runs.iter_mut().zip(&mut squares).enumerate().collect();
            let busy = items.len().min(self.workers.len());
            for_each(&mut self.workers[..busy], &mut items, |worker, (r, (run, squares))| {
                let pass = epoch.pass(run);
                for lane in &mut worker.lanes {
                    epoch.lane(&pass, *r, &mut worker.scratch, lane);
                }
                **squares = epoch.update(1, &mut worker.lanes, run);
            });
        } else {
            let mut lanes = std::mem::take(&mut self.workers[0].lanes);
            for (r, (run, squares)) in self.runs.iter_mut().zip(&mut squares).enumerate() {
                let pass = epoch.pass(run);
                for_each(&mut self.workers, &mut lanes, |worker, lane| {
                    epoch.lane(&pass, r, &mut worker.scratch, lane);
                });
                *squares = epoch.update(self.threads, &mut lanes, run);
            }
            self.workers[0].lanes = lanes;
        }
        let errors: Vec<f64> = squares.iter().map(|sum| sum / count as f64).collect();
        self.progress.record(&errors);
        Ok(errors)
    }

    fn errors(&mut self, set: SampleSet) -> Result<Vec<f64>, NetError> {
        let (tiles, samples) = match (set, &self.test, &self.task.test) {
            (SampleSet::Train, ..) => (&self.train, &self.task.train),
            (SampleSet::Test, Some(tiles), Some(samples)) => (tiles, samples),
            (SampleSet::Test, ..) => return Ok(Vec::new()),
        };
        let (layout, activation) = (&self.layout, self.task.network.output_activation);
        let outputs = self.task.network.output;
        let count = (samples.input.points() * outputs) as f64;
        let mut errors = Vec::with_capacity(self.runs.len());
        for (r, run) in self.runs.iter_mut().enumerate() {
            let products = &mut run.products[set as usize];
            let pass = Pass::new(layout, activation, tiles, &run.theta, products);
            let mut squares: Vec<(usize, f64)> = (0..tiles.count()).map(|t| (t, 0.0)).collect();
            for_each(&mut self.workers, &mut squares, |worker, (tile, sum)| {
                pass.forward(*tile, &mut worker.scratch);
                *sum = pass.squares(*tile, &worker.scratch, &samples.targets, r * outputs);
            });
            errors.push(squares.into_iter().map(|(_, sum)| sum).sum::<f64>() / count);
        }
        Ok(errors)
    }

    fn predict(&mut self, input: &Input) -> Result<Mat<f32>, NetError> {
        self.task.network.check_input(&self.task.train.input, input)?;
        let tiles = Tiles::new(input, TILE);
        let outputs = self.outputs();
        let mut out = Mat::zeros(input.points(), self.runs.len() * outputs);
        let mut products = Vec::new();
        for (r, run) in self.runs.iter().enumerate() {
            let activation = self.task.network.output_activation;
            let pass = Pass::new(&self.layout, activation, &tiles, &run.theta, &mut products);
            let scratch = &mut self.workers[0].scratch;
            for tile in 0..tiles.count() {
                pass.forward(tile, scratch);
                pass.write(tile, scratch, &mut out, r * outputs);
            }
        }
        Ok(out)
    }

    fn hidden_stable_ranks(&mut self) -> Result<Vec<Vec<f64>>, NetError> {
        let widths = self.task.network.hidden.clone();
        let points = self.task.train.input.points();
        let mut layers: Vec<Mat<f32>> = widths.iter().map(|&w| Mat::zeros(w, points)).collect();
        let mut all = Vec::with_capacity(self.runs.len());
        for run in &mut self.runs {
            let products = &mut run.products[SampleSet::Train as usize];
            let activation = self.task.network.output_activation;
            let pass = Pass::new(&self.layout, activation, &self.train, &run.theta, products);
            let scratch = &mut self.workers[0].scratch;
            for tile in 0..self.train.count() {
                pass.forward(tile, scratch);
                let places = self.train.places(tile);
                for (l, layer) in layers.iter_mut().enumerate() {
                    let out: MatMut<'_, f32> = layer.as_mut();
                    let activations = scratch.activations(l, widths[l], places.len());
                    // The order of the points does not change singular values.
                    out.subcols_mut(places.start, places.len()).copy_from(activations);
                }
            }
            all.push(layers.iter().map(|layer| spectral::stable_rank(layer.as_ref())).collect());
        }
        Ok(all)
    }

    fn parameters(&self) -> Result<Vec<Parameters>, NetError> {
        Ok(self.runs.iter().map(|run| self.layout.unpack(&run.theta)).collect())
    }

    fn state(&self) -> Result<State, NetError> {
        let parts =
            self.runs.iter().map(|run| [&*run.theta, &run.first_moment, &run.second_moment]);
        Ok(super::state_of(parts, &self.progress))
    }

    fn restore(&mut self, state: &State) -> Result<(), NetError> {
        let runs = self.runs.iter_mut();
        let parts = runs.map(|r| [&mut *r.theta, &mut r.first_moment, &mut r.second_moment]);
        super::restore_from(state, self.layout.len(), parts, &mut self.progress)
    }
}
