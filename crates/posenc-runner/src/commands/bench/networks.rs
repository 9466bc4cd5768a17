//! Networks on embedded positions: one full-batch Adam step.

use anyhow::Result;
use faer::Mat;
use posenc_math::embedder::{Embedder, EmbedderSpec, build, line};
use posenc_math::random::{gaussian_vector, stream, uniform_vector};
use posenc_nets::{Adam, Input, Network, Samples, Task};
use serde::Serialize;

use super::measure::{Crew, matrix_product_rate, median};
use super::peer::{Framework, NetworkTimes, Peer};
use super::{Measured, ROUNDS};

/// Seconds that one measurement takes at least.
const AT_LEAST_S: f64 = 0.3;

/// One network and what it is fitted to. The peers know it by its name.
#[derive(Debug, Clone, Copy)]
pub struct Workload {
    /// Name on the command line.
    pub name: &'static str,
    title: &'static str,
    points: usize,
    /// Features d.
    dimension: usize,
    depth: usize,
    width: usize,
    outputs: usize,
    /// Runs that share a step.
    columns: usize,
    embedding: Embedding,
    /// An embedding of the same size that does not vanish anywhere, to show what the bands bring.
    without_bands: Option<Embedding>,
    threading: Threading,
}

/// What uses the threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Threading {
    /// One session on all threads: the time of a step.
    Within,
    /// One session per thread: the time of a step over the number of sessions.
    PerSession,
}

/// How positions are embedded.
#[derive(Debug, Clone, Copy)]
enum Embedding {
    /// Equispaced points of a line, random Fourier features.
    RffLine { sigma: f64 },
    /// The same, Gaussian bumps.
    GaussianLine { sigma: f64 },
    /// Scattered points of the square, random Fourier features with frequencies in both axes.
    RffSquare { sigma: f64 },
    /// Scattered points, half the Gaussian bumps on each axis.
    GaussianSquare { sigma: f64 },
    /// A square grid, half the random Fourier features on each axis.
    RffGrid { sigma: f64 },
}

/// The simple network of Table 1 of `trading` on a 256 × 256 grid's worth of points.
const SIMPLE_2D: Workload = Workload {
    name: "simple-2d",
    title: "65,536 scattered points, random Fourier features, ReLU 512→4×256→3",
    points: 65_536,
    dimension: 512,
    depth: 4,
    width: 256,
    outputs: 3,
    columns: 1,
    embedding: Embedding::RffSquare { sigma: 14.0 },
    without_bands: None,
    threading: Threading::Within,
};

/// The linear network of `rethinking`'s 1-D experiments, 20 signals at once.
const LINEAR_1D: Workload = Workload {
    name: "linear-1d",
    title: "256 points, random Fourier features, linear 10,000→1, 20 columns per thread",
    points: 256,
    dimension: 10_000,
    depth: 0,
    width: 0,
    outputs: 1,
    columns: 20,
    embedding: Embedding::RffLine { sigma: 20.0 },
    without_bands: None,
    threading: Threading::PerSession,
};

/// All of them; `benches/peers/networks.py` has the same names and sizes.
pub const WORKLOADS: &[Workload] = &[
    SIMPLE_2D,
    Workload {
        name: "simple-2d-grid",
        title: "256 × 256 grid, random Fourier features per axis, ReLU 512→4×256→3",
        embedding: Embedding::RffGrid { sigma: 14.0 },
        ..SIMPLE_2D
    },
    Workload {
        name: "simple-2d-band",
        title: "65,536 scattered points, Gaussian σ = 0.006, ReLU 512→4×256→3",
        embedding: Embedding::GaussianSquare { sigma: 0.006 },
        without_bands: Some(Embedding::RffSquare { sigma: 14.0 }),
        ..SIMPLE_2D
    },
    LINEAR_1D,
    Workload {
        name: "linear-1d-band",
        title: "256 points, Gaussian σ = 0.002, linear 10,000→1, 20 columns per thread",
        embedding: Embedding::GaussianLine { sigma: 0.002 },
        without_bands: Some(Embedding::RffLine { sigma: 20.0 }),
        ..LINEAR_1D
    },
    Workload {
        name: "mlp-1d",
        title: "256 points, random Fourier features, ReLU 256→4×256→1, one signal per thread",
        points: 256,
        dimension: 256,
        depth: 4,
        width: 256,
        columns: 1,
        ..LINEAR_1D
    },
];

/// Times that not every workload has.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct More {
    /// Runs of ours that share a step.
    #[serde(skip_serializing_if = "Option::is_none")]
    columns: Option<usize>,
    /// Ours with an embedding that does not vanish anywhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    ours_without_bands_s: Option<f64>,
    /// Per column where PyTorch fits 20 in one step.
    #[serde(skip_serializing_if = "Option::is_none")]
    torch_columns_s: Option<f64>,
    /// Per column where JAX fits 20 in one step.
    #[serde(skip_serializing_if = "Option::is_none")]
    jax_columns_s: Option<f64>,
    /// PyTorch in as many processes as there are threads, like our sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    torch_processes_s: Option<f64>,
    /// JAX in as many processes as there are threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    jax_processes_s: Option<f64>,
}

/// What one peer took, one entry per round.
struct PeerRounds<'a> {
    peer: &'a Peer,
    times: Vec<NetworkTimes>,
    processes: Vec<f64>,
    /// It failed once and is not asked again.
    failed: bool,
}

impl<'a> PeerRounds<'a> {
    fn new(peer: &'a Peer) -> Self {
        PeerRounds { peer, times: Vec::new(), processes: Vec::new(), failed: false }
    }

    /// A peer that fails must not take our own times with it.
    fn round(&mut self, workload: &Workload, threads: usize, repeats: usize) {
        if self.failed {
            return;
        }
        if let Err(why) = self.ask(workload, threads, repeats) {
            let label = self.peer.framework.label();
            eprintln!("note: {label} is not shown for {}: {why:#}", workload.name);
            self.failed = true;
            self.times.clear();
            self.processes.clear();
        }
    }

    fn ask(&mut self, workload: &Workload, threads: usize, repeats: usize) -> Result<()> {
        let small = workload.threading == Threading::PerSession;
        self.times.push(self.peer.network(workload.name, threads, repeats, small)?);
        if small && threads > 1 {
            self.processes.push(self.peer.network_processes(workload.name, threads, repeats)?);
        }
        Ok(())
    }

    fn medians(&self) -> PeerMedians {
        PeerMedians {
            step: median_of(self.times.iter().map(|t| t.step_s)),
            per_column: median_of(self.times.iter().filter_map(|t| t.per_column_of_20_s)),
            processes: median_of(self.processes.iter().copied()),
        }
    }
}

/// What one peer took, median of the rounds; nothing where it was not measured.
#[derive(Default)]
struct PeerMedians {
    step: Option<f64>,
    per_column: Option<f64>,
    processes: Option<f64>,
}

fn median_of(times: impl Iterator<Item = f64>) -> Option<f64> {
    let mut times: Vec<f64> = times.collect();
    (!times.is_empty()).then(|| median(&mut times))
}

/// Measures and prints one workload.
pub fn measure(
    workload: &Workload,
    threads: usize,
    repeats: usize,
    peers: &[Peer],
) -> Result<Measured> {
    // Products are short, so all of the repeats go into each round; steps share them.
    let per_round = repeats.div_ceil(ROUNDS);
    let sessions = if workload.threading == Threading::Within { 1 } else { threads };
    let task = workload.task(workload.embedding)?;
    // Sessions share the embedding, as copies of a task do.
    let crew = |task: &Task| Crew::start(vec![task.clone(); sessions], threads / sessions);
    let operations = operations(&task);
    let mut ours = (crew(&task)?, Vec::new());
    let mut without_bands = match workload.without_bands {
        Some(embedding) => Some((crew(&workload.task(embedding)?)?, Vec::new())),
        None => None,
    };
    drop(task);
    // Seconds and operations of one column's step.
    let share = (sessions * workload.columns) as f64;
    let mut rates = Vec::new();
    let mut peers: Vec<PeerRounds<'_>> = peers.iter().map(PeerRounds::new).collect();
    for _ in 0..ROUNDS {
        for (crew, seconds) in std::iter::once(&mut ours).chain(&mut without_bands) {
            seconds.push(crew.seconds_per_step(per_round, AT_LEAST_S)? / share);
        }
        rates.push(matrix_product_rate(threads, repeats)?);
        for peer in &mut peers {
            peer.round(workload, threads, per_round);
        }
    }
    let (ours_s, rate) = (median(&mut ours.1), median(&mut rates));
    let of = |framework| {
        let peer = peers.iter().find(|p| p.peer.framework == framework);
        peer.map(PeerRounds::medians).unwrap_or_default()
    };
    let (torch, jax) = (of(Framework::Torch), of(Framework::Jax));
    let measured = Measured {
        name: workload.name,
        unit: workload.unit(),
        ours_s,
        torch_s: torch.step,
        jax_s: jax.step,
        gemm_gflops: rate,
        share_of_gemm: operations / workload.columns as f64 / ours_s / 1e9 / rate,
        threads,
        more: More {
            columns: (workload.columns > 1).then_some(workload.columns),
            ours_without_bands_s: without_bands.map(|mut w| median(&mut w.1)),
            torch_columns_s: torch.per_column,
            jax_columns_s: jax.per_column,
            torch_processes_s: torch.processes,
            jax_processes_s: jax.processes,
        },
    };
    let versions: Vec<&str> =
        peers.iter().filter_map(|p| Some(p.times.first()?.implementation.as_str())).collect();
    print(workload, &measured, &versions);
    Ok(measured)
}

fn print(workload: &Workload, measured: &Measured, versions: &[&str]) {
    let (name, threads) = (workload.name, measured.threads);
    println!("{name}: {}, {threads} threads", workload.title);
    println!("  matrix products of this machine    {:8.1} GFLOP/s (f32)", measured.gemm_gflops);
    if !versions.is_empty() {
        println!("  peers                              {}", versions.join("; "));
    }
    let ours = measured.ours_s;
    println!(
        "  {:<34} {:8.3} ms, {:.0} % of the matrix-product rate",
        match workload.threading {
            Threading::Within => "one step",
            Threading::PerSession => "per signal and step",
        },
        1e3 * ours,
        1e2 * measured.share_of_gemm
    );
    let more = &measured.more;
    for (label, time) in [
        ("PyTorch", measured.torch_s),
        ("PyTorch, 20 columns in one step", more.torch_columns_s),
        ("PyTorch, one process per thread", more.torch_processes_s),
        ("JAX", measured.jax_s),
        ("JAX, 20 columns in one step", more.jax_columns_s),
        ("JAX, one process per thread", more.jax_processes_s),
        ("ours, features without bands", more.ours_without_bands_s),
    ] {
        if let Some(time) = time {
            println!("    {label:<32} {:8.3} ms, ratio {:5.2}", 1e3 * time, time / ours);
        }
    }
}

impl Workload {
    fn unit(&self) -> &'static str {
        match self.threading {
            Threading::Within => "s per step",
            Threading::PerSession => "s per signal and step",
        }
    }

    /// The task of one session.
    fn task(&self, embedding: Embedding) -> Result<Task> {
        let network = Network::new(self.dimension, self.depth, self.width, self.outputs)?;
        let mut draw = stream(0, "bench initial");
        let initial = (0..self.columns).map(|_| network.initialize(&mut draw)).collect();
        let targets = Mat::from_fn(self.points, self.columns * self.outputs, |i, j| {
            0.5 + 0.4 * (0.02 * i as f32 + j as f32).sin()
        });
        let input = embedding.input(self.points, self.dimension)?;
        let train = Samples { input, targets };
        Ok(Task { network, optimizer: Adam::new(1e-3), train, test: None, initial })
    }
}

impl Embedding {
    /// `dimension` features of each of `points` points, scaled to norms of about 1.
    fn input(self, points: usize, dimension: usize) -> Result<Input> {
        let rff = |dimension, sigma| embedder("rff", dimension, sigma);
        let gaussian = |dimension, sigma| embedder("gaussian", dimension, sigma);
        let side = points.isqrt();
        let mut columns =
            match self {
                Embedding::RffLine { sigma } => table(&*rff(dimension, sigma)?, &line(points)),
                Embedding::GaussianLine { sigma } => {
                    table(&*gaussian(dimension, sigma)?, &line(points))
                }
                Embedding::RffSquare { sigma } => waves(points, dimension, sigma),
                Embedding::GaussianSquare { sigma } => {
                    let axis = gaussian(dimension / 2, sigma)?;
                    let [x, y] = scattered(points).map(|c| table(&*axis, &c));
                    let half = x.nrows();
                    Mat::from_fn(2 * half, points, |j, i| {
                        if j < half { x[(j, i)] } else { y[(j - half, i)] }
                    })
                }
                Embedding::RffGrid { sigma } => {
                    let mut axis = table(&*rff(dimension / 2, sigma)?, &line(side));
                    scale(&mut axis);
                    return Ok(Input::grid(vec![axis.clone(), axis])?);
                }
            };
        scale(&mut columns);
        Ok(Input::dense(columns)?)
    }
}

fn embedder(kind: &str, dimension: usize, sigma: f64) -> Result<Box<dyn Embedder>> {
    let spec = EmbedderSpec::new(kind).number("dimension", dimension as f64);
    Ok(build(&spec.number("sigma", sigma), &mut stream(0, "bench"))?)
}

/// Columns ψ(x_i).
fn table(embedder: &dyn Embedder, xs: &[f64]) -> Mat<f32> {
    let mut features = vec![0.0; embedder.dimension()];
    let mut table = Mat::zeros(features.len(), xs.len());
    for (i, &x) in xs.iter().enumerate() {
        embedder.embed(x, &mut features);
        for (entry, feature) in table.col_as_slice_mut(i).iter_mut().zip(&features) {
            *entry = *feature as f32;
        }
    }
    table
}

/// The coordinates of points drawn from the unit square.
fn scattered(points: usize) -> [Vec<f64>; 2] {
    let mut draw = stream(0, "bench points");
    std::array::from_fn(|_| uniform_vector(&mut draw, points, 0.0, 1.0))
}

/// Sines and cosines of 2π(b·x) with b ~ σ N(0, I₂) at scattered points.
fn waves(points: usize, dimension: usize, sigma: f64) -> Mat<f32> {
    let [x, y] = scattered(points);
    let half = dimension / 2;
    let normals = gaussian_vector(&mut stream(0, "bench frequencies"), dimension);
    let (bx, by) = normals.split_at(half);
    let mut table = Mat::zeros(2 * half, points);
    for i in 0..points {
        let (sines, cosines) = table.col_as_slice_mut(i).split_at_mut(half);
        for j in 0..half {
            let angle = std::f64::consts::TAU * sigma * (bx[j] * x[i] + by[j] * y[i]);
            (sines[j], cosines[j]) = (angle.sin() as f32, angle.cos() as f32);
        }
    }
    table
}

/// Divides by the largest norm of a column.
fn scale(table: &mut Mat<f32>) {
    let squared = |column: &[f32]| column.iter().map(|v| v * v).sum::<f32>();
    let largest =
        (0..table.ncols()).map(|i| squared(table.col_as_slice(i))).fold(0.0, f32::max).sqrt();
    if largest > 0.0 {
        for i in 0..table.ncols() {
            for value in table.col_as_slice_mut(i) {
                *value /= largest;
            }
        }
    }
}

/// Multiplications and additions of the matrix products that one step of all runs needs.
///
/// Two per weight and point for each of output, weight gradient and input gradient. The first layer
/// needs no input gradient, and only those entries of the embedding count that do not vanish; a
/// factored input multiplies with its tables instead of the N points. Bias, ReLU, sums over a grid's
/// points and Adam come on top and are not counted.
fn operations(task: &Task) -> f64 {
    let nonzero = |m: &Mat<f32>| -> usize {
        (0..m.ncols()).map(|j| m.col_as_slice(j).iter().filter(|v| **v != 0.0).count()).sum()
    };
    let entries: usize = match &task.train.input {
        Input::Dense(matrix) => nonzero(matrix),
        Input::Factored(factored) => factored.tables.iter().map(nonzero).sum(),
        Input::Kronecker(kronecker) => kronecker.axes.iter().map(nonzero).product(),
    };
    let mut per_run = 0;
    for (layer, (fan_in, fan_out)) in task.network.layers().into_iter().enumerate() {
        per_run += match layer {
            0 => 4 * entries * fan_out,
            _ => 6 * task.train.input.points() * fan_in * fan_out,
        };
    }
    (per_run * task.runs()) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a workload that the peers know under another name or in another size.
    #[test]
    fn peers_do_the_same_work() {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/peers/networks.py");
        let script = std::fs::read_to_string(script).unwrap();
        for w in WORKLOADS {
            let mut widths = vec![w.dimension.to_string()];
            widths.extend(vec![w.width.to_string(); w.depth]);
            let row = format!("{}, [{}], {},", w.points, widths.join(", "), w.outputs);
            let row = format!("\"{}\": ({row}", w.name);
            assert!(script.contains(&row), "no `{row}` in networks.py");
        }
        assert!(script.contains(&format!("COLUMNS = {}", LINEAR_1D.columns)));
    }

    /// Catches arithmetic that is counted twice, or not needed, by a count on paper: 4 features,
    /// 2 hidden layers of 3, 2 outputs, 9 points.
    #[test]
    fn operations_are_those_counted_on_paper() {
        let small =
            Workload { points: 9, dimension: 4, depth: 2, width: 3, outputs: 2, ..SIMPLE_2D };
        let later = (6 * 9 * 3 * (3 + 2)) as f64;
        let dense = small.task(Embedding::RffSquare { sigma: 1.0 }).unwrap();
        assert_eq!(operations(&dense), (4 * 9 * 4 * 3) as f64 + later);
        // Tables of 2 × 3 for each axis; the sines at coordinate 0 vanish.
        let grid = small.task(Embedding::RffGrid { sigma: 1.0 }).unwrap();
        assert_eq!(operations(&grid), (4 * 2 * (6 - 1) * 3) as f64 + later);
        let linear = Workload { points: 8, dimension: 6, columns: 5, ..LINEAR_1D };
        let linear = linear.task(linear.embedding).unwrap();
        assert_eq!(operations(&linear), (4 * (8 * 6 - 3) * 5) as f64);
    }

    /// Catches an embedding that is meant to have bands and has none, or the other way round.
    #[test]
    fn only_narrow_bumps_have_bands() {
        for w in WORKLOADS {
            let input = w.embedding.input(1024, w.dimension).unwrap().to_dense();
            let nonzero = (0..input.ncols())
                .map(|i| input.col_as_slice(i).iter().filter(|v| **v != 0.0).count())
                .sum::<usize>();
            let share = nonzero as f64 / (input.nrows() * input.ncols()) as f64;
            if w.without_bands.is_some() {
                assert!(share < 0.25, "{}: {share}", w.name);
            } else {
                assert!(share > 0.95, "{}: {share}", w.name);
            }
        }
    }

    /// Catches a key that is renamed or left out where a peer is missing.
    #[test]
    fn every_workload_is_written_with_the_same_keys() {
        let measured = Measured {
            name: "simple-2d",
            unit: SIMPLE_2D.unit(),
            ours_s: 0.5,
            torch_s: None,
            jax_s: Some(1.0),
            gemm_gflops: 100.0,
            share_of_gemm: 0.9,
            threads: 2,
            more: More::default(),
        };
        let written = serde_json::to_value(&measured).unwrap();
        let mut keys: Vec<&String> = written.as_object().unwrap().keys().collect();
        keys.sort_unstable();
        let expected = "gemm_gflops jax_s name ours_s share_of_gemm threads torch_s unit";
        assert_eq!(keys, expected.split(' ').collect::<Vec<_>>());
        assert!(written["torch_s"].is_null());
        assert_eq!(written["jax_s"], 1.0);
    }
}
