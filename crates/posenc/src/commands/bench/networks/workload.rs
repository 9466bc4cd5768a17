//! Workloads of the benchmark.

use anyhow::Result;
use faer::Mat;
use posenc_math::random::stream;
use posenc_nets::{Adam, Network, Samples, Task};

use super::embedding::{Axis, Embedding};

/// One network and its data. The peers identify it by its name.
#[derive(Debug, Clone, Copy)]
pub struct Workload {
    pub name: &'static str,
    pub(super) title: &'static str,
    pub(super) points: usize,
    pub(super) dimension: usize,
    pub(super) depth: usize,
    pub(super) width: usize,
    pub(super) outputs: usize,
    /// Number of runs that share a step.
    pub(super) columns: usize,
    pub(super) embedding: Embedding,
    /// An embedding of the same size without zeros, to measure the speedup from bands.
    pub(super) without_bands: Option<Embedding>,
    pub(super) threading: Threading,
}

/// How the threads are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threading {
    /// One session on all threads: the time of a step.
    Within,
    /// One session per thread: the time of a step divided by the number of sessions.
    PerSession,
}

/// The simple network of Table 1 of `trading`, with as many points as a 256 × 256 grid.
pub(super) const SIMPLE_2D: Workload = Workload {
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
pub(super) const LINEAR_1D: Workload = Workload {
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

/// The complex network of Table 1 of `trading`: one Kronecker layer on the whole grid.
pub(super) const COMPLEX_2D: Workload = Workload {
    name: "complex-2d",
    title: "256 × 256 grid, complex, linear frequencies, 256 × 256→3",
    points: 65_536,
    dimension: 65_536,
    depth: 0,
    width: 0,
    outputs: 3,
    columns: 1,
    embedding: Embedding::Kronecker { axes: 2, axis: Axis::LinF { sigma: 4.5 } },
    without_bands: None,
    threading: Threading::Within,
};

/// The workload of Table 3.
const COMPLEX_3D: Workload = Workload {
    name: "complex-3d",
    title: "64 × 64 × 64 grid, complex, linear frequencies, 64 × 64 × 64→3",
    points: 262_144,
    dimension: 262_144,
    embedding: Embedding::Kronecker { axes: 3, axis: Axis::LinF { sigma: 3.0 } },
    ..COMPLEX_2D
};

/// All workloads; `benches/peers/networks.py` has the same names and sizes.
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
    COMPLEX_2D,
    Workload {
        name: "complex-2d-band",
        title: "256 × 256 grid, complex, Gaussian σ = 0.004, 256 × 256→3",
        embedding: Embedding::Kronecker { axes: 2, axis: Axis::Gaussian { sigma: 0.004 } },
        without_bands: Some(COMPLEX_2D.embedding),
        ..COMPLEX_2D
    },
    Workload {
        name: "complex-2d-tri",
        title: "256 × 256 grid, complex, triangles of half width 2/256, 256 × 256→3",
        embedding: Embedding::Kronecker {
            axes: 2,
            axis: Axis::Triangle { half_width: 2.0 / 256.0 },
        },
        without_bands: Some(COMPLEX_2D.embedding),
        ..COMPLEX_2D
    },
    COMPLEX_3D,
    Workload {
        name: "complex-3d-band",
        title: "64 × 64 × 64 grid, complex, Gaussian σ = 0.015, 64 × 64 × 64→3",
        embedding: Embedding::Kronecker { axes: 3, axis: Axis::Gaussian { sigma: 0.015 } },
        without_bands: Some(COMPLEX_3D.embedding),
        ..COMPLEX_3D
    },
    Workload {
        name: "complex-3d-tri",
        title: "64 × 64 × 64 grid, complex, triangles of half width 2/64, 64 × 64 × 64→3",
        embedding: Embedding::Kronecker {
            axes: 3,
            axis: Axis::Triangle { half_width: 2.0 / 64.0 },
        },
        without_bands: Some(COMPLEX_3D.embedding),
        ..COMPLEX_3D
    },
];

impl Workload {
    pub(super) fn unit(&self) -> &'static str {
        match self.threading {
            Threading::Within => "s per step",
            Threading::PerSession => "s per signal and step",
        }
    }

    /// Whether a step is so short that threads that sleep between operations may be faster.
    pub(super) fn has_short_steps(&self) -> bool {
        self.threading == Threading::PerSession || self.embedding.is_kronecker()
    }

    pub(super) fn task(&self, embedding: Embedding) -> Result<Task> {
        let network = if embedding.is_kronecker() {
            Network::kronecker(self.dimension, None, self.outputs)?
        } else {
            Network::new(self.dimension, self.depth, self.width, self.outputs)?
        };
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

#[cfg(test)]
mod tests {
    use super::super::embedding::side;
    use super::*;

    /// Catches a workload with another name or size in the peers' script.
    #[test]
    fn peers_do_the_same_work() {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/peers/networks.py");
        let script = std::fs::read_to_string(script).unwrap();
        for w in WORKLOADS.iter().filter(|w| !w.embedding.is_kronecker()) {
            let mut widths = vec![w.dimension.to_string()];
            widths.extend(vec![w.width.to_string(); w.depth]);
            let row = format!("{}, [{}], {},", w.points, widths.join(", "), w.outputs);
            let row = format!("\"{}\": ({row}", w.name);
            assert!(script.contains(&row), "no `{row}` in networks.py");
        }
        assert!(script.contains(&format!("COLUMNS = {}", LINEAR_1D.columns)));
        for w in WORKLOADS {
            if let Embedding::Kronecker { axes, .. } = w.embedding {
                let [points, features] = [w.points, w.dimension].map(|n| side(n, axes));
                let row = format!("\"{}\": ({points}, {features}, {axes}, {},", w.name, w.outputs);
                assert!(script.contains(&row), "no `{row}` in networks.py");
            }
        }
    }
}
