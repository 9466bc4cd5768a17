//! The workloads, and what a run of each does on our side.

use std::hint::black_box;
use std::sync::Arc;

use anyhow::Result;
use faer::Mat;
use posenc_math::closed_form::{Factorization, Separable};
use posenc_math::embedder::matrix;
use posenc_math::embedder::names::{GAUSSIAN, LINF, RFF, TRIANGLE};
use posenc_math::random::stream;
use posenc_nets::{Adam, CpuEngine, Engine, Input, Network, Samples, Task};

use super::embedding::{Axis, Embedding};
use super::measure::{Ours, on_all_threads, train};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framework {
    Torch,
    Cuda,
    Jax,
}

impl Framework {
    pub fn label(self) -> &'static str {
        match self {
            Framework::Torch => "PyTorch",
            Framework::Cuda => "PyTorch with a CUDA device",
            Framework::Jax => "JAX with optax",
        }
    }

    /// Python code that prints the framework's version, or fails if it is not installed.
    pub fn probe(self) -> &'static str {
        match self {
            Framework::Torch => "import torch; print(torch.__version__)",
            Framework::Cuda => {
                "import torch; assert torch.cuda.is_available(); print(torch.__version__)"
            }
            Framework::Jax => "import jax, optax; print(jax.__version__)",
        }
    }
}

/// Training points and features along each axis, and channels, of the closed form of `trading` (Table 1).
const SIDE: usize = 256;
const CHANNELS: usize = 3;

/// One row of the benchmark. The peers identify it by its name.
pub struct Workload {
    pub name: &'static str,
    pub title: &'static str,
    work: Work,
}

enum Work {
    /// Encodes, factors and solves for this many images.
    ClosedForm { axis: Axis, images: usize },
    /// A full-batch step of Adam.
    Network(Shape),
    /// A step of the image model of `lff` Figure 3.
    #[cfg(feature = "attention")]
    ImageModel,
}

#[derive(Clone, Copy)]
pub struct Shape {
    pub points: usize,
    pub dimension: usize,
    depth: usize,
    width: usize,
    outputs: usize,
    /// Number of runs that share a step.
    columns: usize,
    pub embedding: Embedding,
    /// Whether each thread has a session of its own; the time is then divided by the number of sessions and columns.
    is_per_thread: bool,
}

/// The simple network of Table 1 of `trading`, with as many points as a 256 × 256 grid.
const SIMPLE_2D: Shape = Shape {
    points: 65_536,
    dimension: 512,
    depth: 4,
    width: 256,
    outputs: 3,
    columns: 1,
    embedding: Embedding::RffSquare { sigma: 14.0 },
    is_per_thread: false,
};

/// The linear network of `rethinking`'s 1-D experiments, 20 signals at once.
const LINEAR_1D: Shape = Shape {
    points: 256,
    dimension: 10_000,
    depth: 0,
    width: 0,
    outputs: 1,
    columns: 20,
    embedding: Embedding::Line(Axis::new(RFF, 20.0)),
    is_per_thread: true,
};

/// The complex network of Table 1 of `trading`, or for three axes that of Table 3: one Kronecker layer on the whole grid.
const fn complex(axes: usize, kind: &'static str, value: f64) -> Work {
    let points = if axes == 2 { 65_536 } else { 262_144 };
    let axis = Axis::new(kind, value);
    let embedding = Embedding::Kronecker { axes, axis };
    Work::Network(Shape { points, dimension: points, depth: 0, embedding, ..SIMPLE_2D })
}

const fn closed_form(kind: &'static str, value: f64, images: usize) -> Work {
    Work::ClosedForm { axis: Axis::new(kind, value), images }
}

const fn row(name: &'static str, title: &'static str, work: Work) -> Workload {
    Workload { name, title, work }
}

/// All workloads, in the order in which they are measured; `benches/peers` has the same names and sizes.
pub const WORKLOADS: &[Workload] = &[
    row("closed-form", "closed form, Gaussian, one image", closed_form(GAUSSIAN, 0.0025, 1)),
    row(
        "closed-form-16",
        "closed form, Gaussian, one of 16 images",
        closed_form(GAUSSIAN, 0.0025, 16),
    ),
    row(
        "closed-form-tri",
        "closed form, triangle, one image",
        closed_form(TRIANGLE, 1.0 / SIDE as f64, 1),
    ),
    row(
        "closed-form-tri-16",
        "closed form, triangle, one of 16 images",
        closed_form(TRIANGLE, 1.0 / SIDE as f64, 16),
    ),
    row(
        "simple-2d",
        "65,536 scattered points, random Fourier features, ReLU 512→4×256→3",
        Work::Network(SIMPLE_2D),
    ),
    row(
        "simple-2d-grid",
        "256 × 256 grid, random Fourier features per axis, ReLU 512→4×256→3",
        Work::Network(Shape { embedding: Embedding::RffGrid { sigma: 14.0 }, ..SIMPLE_2D }),
    ),
    row(
        "simple-2d-band",
        "65,536 scattered points, Gaussian σ = 0.006, ReLU 512→4×256→3",
        Work::Network(Shape { embedding: Embedding::GaussianSquare { sigma: 0.006 }, ..SIMPLE_2D }),
    ),
    row(
        "linear-1d",
        "256 points, random Fourier features, linear 10,000→1, 20 columns per thread",
        Work::Network(LINEAR_1D),
    ),
    row(
        "linear-1d-band",
        "256 points, Gaussian σ = 0.002, linear 10,000→1, 20 columns per thread",
        Work::Network(Shape {
            embedding: Embedding::Line(Axis::new(GAUSSIAN, 0.002)),
            ..LINEAR_1D
        }),
    ),
    row(
        "mlp-1d",
        "256 points, random Fourier features, ReLU 256→4×256→1, one signal per thread",
        Work::Network(Shape { dimension: 256, depth: 4, width: 256, columns: 1, ..LINEAR_1D }),
    ),
    row(
        "complex-2d",
        "256 × 256 grid, complex, linear frequencies, 256 × 256→3",
        complex(2, LINF, 4.5),
    ),
    row(
        "complex-2d-band",
        "256 × 256 grid, complex, Gaussian σ = 0.004, 256 × 256→3",
        complex(2, GAUSSIAN, 0.004),
    ),
    row(
        "complex-2d-tri",
        "256 × 256 grid, complex, triangles of half width 2/256, 256 × 256→3",
        complex(2, TRIANGLE, 2.0 / 256.0),
    ),
    row(
        "complex-3d",
        "64 × 64 × 64 grid, complex, linear frequencies, 64 × 64 × 64→3",
        complex(3, LINF, 3.0),
    ),
    row(
        "complex-3d-band",
        "64 × 64 × 64 grid, complex, Gaussian σ = 0.015, 64 × 64 × 64→3",
        complex(3, GAUSSIAN, 0.015),
    ),
    row(
        "complex-3d-tri",
        "64 × 64 × 64 grid, complex, triangles of half width 2/64, 64 × 64 × 64→3",
        complex(3, TRIANGLE, 2.0 / 64.0),
    ),
    #[cfg(feature = "attention")]
    row(
        "image-model",
        "transformer over 12 × 12 pixels, 2 layers of width 64, 16 images",
        Work::ImageModel,
    ),
];

impl Workload {
    /// The program in `benches/peers` with the same work.
    pub fn script(&self) -> &'static str {
        match self.work {
            Work::ClosedForm { .. } => "closed_form.py",
            Work::Network(_) => "networks.py",
            #[cfg(feature = "attention")]
            Work::ImageModel => "attention.py",
        }
    }

    /// What the seconds are for.
    pub fn unit(&self) -> &'static str {
        match &self.work {
            Work::ClosedForm { .. } => "s per image",
            Work::Network(shape) if shape.is_per_thread => "s per signal and step",
            _ => "s per step",
        }
    }

    pub fn frameworks(&self) -> &'static [Framework] {
        match self.work {
            Work::Network(_) => &[Framework::Torch, Framework::Jax, Framework::Cuda],
            _ => &[Framework::Torch],
        }
    }

    /// Whether a device other than the CPU can run it.
    pub fn runs_on_devices(&self) -> bool {
        matches!(self.work, Work::Network(_))
    }

    pub fn start(&self, threads: usize, device: Option<&Arc<dyn Engine>>) -> Result<Ours> {
        match &self.work {
            Work::ClosedForm { axis, images } => closed_form_on(threads, *axis, *images),
            Work::Network(shape) => shape.start(threads, device),
            #[cfg(feature = "attention")]
            Work::ImageModel => Ok(super::image_model::start(threads)),
        }
    }
}

/// Each thread solves a contiguous block of channels; a channel's weights do not depend on the number of channels.
fn closed_form_on(threads: usize, axis: Axis, images: usize) -> Result<Ours> {
    let embedder = axis.embedder(SIDE)?;
    let positions: Vec<f64> = (0..SIDE).map(|i| i as f64 / SIDE as f64).collect();
    let channels: Vec<Vec<f32>> = (0..images * CHANNELS).map(channel).collect();
    let run = move || -> Result<()> {
        let exact = matrix(&*embedder, &positions);
        let psi = Mat::from_fn(exact.nrows(), exact.ncols(), |i, j| exact[(i, j)] as f32);
        let factorization = &Factorization::new(psi.as_ref())?;
        // Like the peer, keeps the weights of only one image at a time.
        let solve = |part: &[Vec<f32>]| -> Result<()> {
            let mut solver = Separable::solver(&[factorization; 2]);
            let mut weights: [Vec<f32>; CHANNELS] = Default::default();
            for image in part.chunks(CHANNELS) {
                for (channel, weights) in image.iter().zip(&mut weights) {
                    solver.apply_into(channel, weights)?;
                }
                black_box(&weights);
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let parts = channels.chunks(channels.len().div_ceil(threads));
            let parts: Vec<_> = parts.map(|part| scope.spawn(move || solve(part))).collect();
            parts.into_iter().try_for_each(|part| {
                part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
        })
    };
    // Two products per channel; encoding and factoring are not counted.
    let operations = (4 * SIDE * SIDE * SIDE * CHANNELS) as f64;
    let seconds = move |repeats| {
        let run = &run;
        let runs = || Ok(move |runs: usize| (0..runs).try_for_each(|_| run()));
        Ok(on_all_threads(1, repeats, runs)? / images as f64)
    };
    Ok(Ours { operations, seconds: Box::new(seconds) })
}

/// A smooth channel with some fine detail; the time does not depend on the values.
fn channel(index: usize) -> Vec<f32> {
    let value = |i: usize, j: usize| {
        0.5 + 0.4 * (0.02 * (i + 3 * index) as f32).sin() * (0.03 * j as f32).cos()
            + 0.1 * ((i * 31 + j * 17 + index) % 7) as f32 / 7.0
    };
    (0..SIDE * SIDE).map(|p| value(p / SIDE, p % SIDE)).collect()
}

impl Shape {
    fn start(&self, threads: usize, device: Option<&Arc<dyn Engine>>) -> Result<Ours> {
        let sessions = if self.is_per_thread && device.is_none() { threads } else { 1 };
        let engine: Arc<dyn Engine> = match device {
            Some(engine) => engine.clone(),
            None => Arc::new(CpuEngine::new(threads / sessions)),
        };
        let (task, share) = (self.task()?, (sessions * self.columns) as f64);
        let operations = operations(&task) / self.columns as f64;
        let seconds = move |repeats| Ok(train(&task, &*engine, sessions, repeats)? / share);
        Ok(Ours { operations, seconds: Box::new(seconds) })
    }

    fn task(&self) -> Result<Task> {
        let network = match self.embedding {
            Embedding::Kronecker { .. } => Network::kronecker(self.dimension, None, self.outputs)?,
            _ => Network::new(self.dimension, self.depth, self.width, self.outputs)?,
        };
        let mut draw = stream(0, "bench initial");
        let initial = (0..self.columns).map(|_| network.initialize(&mut draw)).collect();
        let targets = Mat::from_fn(self.points, self.columns * self.outputs, |i, j| {
            0.5 + 0.4 * (0.02 * i as f32 + j as f32).sin()
        });
        let input = self.embedding.input(self.points, self.dimension)?;
        let train = Samples { input, targets };
        Ok(Task { network, optimizer: Adam::new(1e-3), train, test: None, initial })
    }
}

/// Multiplications and additions in the matrix products of one step of all runs.
///
/// Counts two operations per weight and point for each of output, weight gradient and input gradient. The first layer has no input
/// gradient, and only nonzero entries of the embedding count. A factored input multiplies its tables instead of the N points. On
/// products of features, counts two operations per weight and entry in a row of each axis's Gram matrix; entries up to ε² of the
/// largest count as zero. Bias, ReLU, sums over a grid's points and Adam are not counted.
fn operations(task: &Task) -> f64 {
    let nonzero = |m: &Mat<f32>, least: f32| -> usize {
        (0..m.ncols()).map(|j| m.col_as_slice(j).iter().filter(|v| v.abs() > least).count()).sum()
    };
    let entries = match &task.train.input {
        Input::Kronecker(kronecker) => {
            let per_weight = |axis: &Mat<f32>| {
                let gram = axis * axis.transpose();
                let largest = (0..gram.ncols()).flat_map(|j| gram.col_as_slice(j));
                let largest = largest.fold(0.0_f32, |most, v| most.max(v.abs()));
                nonzero(&gram, largest * f32::EPSILON * f32::EPSILON) as f64 / gram.nrows() as f64
            };
            let weights = (kronecker.dimension() * task.network.output * task.runs()) as f64;
            return 2.0 * weights * kronecker.axes.iter().map(per_weight).sum::<f64>();
        }
        Input::Dense(matrix) => nonzero(matrix, 0.0),
        Input::Factored(factored) => factored.tables.iter().map(|table| nonzero(table, 0.0)).sum(),
        Input::Waves(_) => task.train.input.dimension() * task.train.input.points(),
    };
    let per_run =
        task.network.layers().into_iter().enumerate().map(|(layer, (fan_in, fan_out))| {
            if layer == 0 {
                4 * entries * fan_out
            } else {
                6 * task.train.input.points() * fan_in * fan_out
            }
        });
    (per_run.sum::<usize>() * task.runs()) as f64
}

#[cfg(test)]
mod tests {
    use super::super::embedding::side;
    use super::*;

    fn shapes() -> impl Iterator<Item = (&'static str, Shape)> {
        WORKLOADS.iter().filter_map(|w| match w.work {
            Work::Network(shape) => Some((w.name, shape)),
            _ => None,
        })
    }

    /// Catches a workload with another name or size in the peers' scripts.
    #[test]
    fn peers_do_the_same_work() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/peers");
        let read = |script: &str| std::fs::read_to_string(format!("{folder}/{script}")).unwrap();
        for w in WORKLOADS {
            assert!(read(w.script()).contains(&format!("\"{}\"", w.name)), "no {}", w.name);
        }
        let script = read("networks.py");
        for (name, s) in shapes() {
            let row = if let Embedding::Kronecker { axes, .. } = s.embedding {
                let [points, features] = [s.points, s.dimension].map(|n| side(n, axes));
                format!("\"{name}\": ({points}, {features}, {axes}, {},", s.outputs)
            } else {
                let mut widths = vec![s.dimension.to_string()];
                widths.extend(vec![s.width.to_string(); s.depth]);
                format!("\"{name}\": ({}, [{}], {},", s.points, widths.join(", "), s.outputs)
            };
            assert!(script.contains(&row), "no `{row}` in networks.py");
        }
        assert!(script.contains(&format!("COLUMNS = {}", LINEAR_1D.columns)));
    }

    /// Catches an embedding that should be banded and is not, or vice versa.
    #[test]
    fn only_narrow_bumps_have_bands() {
        for (name, s) in shapes() {
            let points = if s.depth == 4 { 1024 } else { s.points };
            let input = match s.embedding.input(points, s.dimension).unwrap() {
                // For a product, the nonzero share of one factor counts.
                Input::Kronecker(k) => k.axes[0].clone(),
                input => input.to_dense(),
            };
            let entries = (0..input.ncols()).flat_map(|i| input.col_as_slice(i));
            let share = entries.filter(|v| **v != 0.0).count() as f64
                / (input.nrows() * input.ncols()) as f64;
            // A factor of three axes has few features, and tails count until they underflow in single precision.
            let is_banded = name.ends_with("-band") || name.ends_with("-tri");
            assert!(if is_banded { share < 0.4 } else { share > 0.95 }, "{name}: {share}");
        }
    }

    /// Catches operations that are counted twice or not needed, by comparison with a manual count: 4 features, 2 hidden layers of
    /// 3, 2 outputs, 9 points.
    #[test]
    fn operations_match_a_manual_count() {
        let counted = |shape: Shape| operations(&shape.task().unwrap());
        let small = Shape { points: 9, dimension: 4, depth: 2, width: 3, outputs: 2, ..SIMPLE_2D };
        let later = (6 * 9 * 3 * (3 + 2)) as f64;
        let dense = Shape { embedding: Embedding::RffSquare { sigma: 1.0 }, ..small };
        assert_eq!(counted(dense), (4 * 9 * 4 * 3) as f64 + later);
        // Tables of 2 × 3 for each axis; the sines at coordinate 0 vanish.
        let grid = Shape { embedding: Embedding::RffGrid { sigma: 1.0 }, ..small };
        assert_eq!(counted(grid), (4 * 2 * (6 - 1) * 3) as f64 + later);
        let linear = Shape { points: 8, dimension: 6, columns: 5, ..LINEAR_1D };
        assert_eq!(counted(linear), (4 * (8 * 6 - 3) * 5) as f64);
        // Two axes of 4 features. Triangles overlap their neighbors, so a Gram matrix has 4 + 6 + 4 nonzero entries (the diagonal
        // and two off-diagonals on each side). Each of the 16 weights meets 3.5 entries per axis.
        let embedding = Embedding::Kronecker { axes: 2, axis: Axis::new(TRIANGLE, 0.3) };
        let complex = Shape { points: 16, dimension: 16, embedding, depth: 0, ..SIMPLE_2D };
        assert_eq!(counted(complex), 2.0 * (16 * 3) as f64 * (3.5 + 3.5));
    }
}
