//! Compares counted operations and bytes of an encoding with measured time (`trading` Appendix C).
//!
//! The protocol evaluates one linear layer with one output on N^D points, with K = N features per axis.
//!
//! Records over N:
//!
//! - `operations`: counted multiply-add operations.
//! - `bytes` (B): counted memory, with eight bytes per number.
//! - `bytes_printed` (B): memory by the formula that the paper prints; `separable` only.
//! - `time` (s): median time of a forward pass.
//!
//! Records the exponents of power laws in N fitted to these: `operations_exponent`, `bytes_exponent` and `time_exponent`.

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Result, bail};
use faer::Mat;
use posenc_experiments::record::Value;
use posenc_experiments::schema::NumberList;
use posenc_experiments::schema::protocol::{Fault, Kind, Settings, WithoutData};
use posenc_harness::protocol::{Context, Emit, Protocol};
use posenc_math::closed_form::Separable;
use posenc_math::complexity::{Scheme, Sizes, cost, printed_separable_memory};
use posenc_math::kronecker::{dense, simple_features};
use posenc_math::random::gaussian_vector;
use posenc_math::statistics::{median, power_law_exponent};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::{preset, range, whole};

pub const KIND: Kind = Kind {
    measures_time: true,
    without_data: WithoutData::Theory,
    ..kind!(Complexity, "complexity")
};

/// Settings of `complexity`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Complexity {
    /// How the linear layer on the encoding is evaluated.
    pub scheme: Scheme,
    /// Sizes N = K along each axis.
    pub sizes: NumberList,
    /// Number of axes D.
    #[serde(default = "preset::<2, usize>")]
    pub axes: usize,
    /// Number of timed repetitions per size; the median is recorded.
    #[serde(default = "preset::<5, usize>")]
    pub repeats: usize,
}

impl Settings for Complexity {
    fn check(&self) -> Result<(), Fault> {
        range("repeats", self.repeats, 1, 1000)?;
        range("axes", self.axes, 2, 3)?;
        whole("sizes", &self.sizes, 2.0, 4096.0)
    }
}

const MAX_BYTES: u128 = 2 << 30;

impl Protocol for Complexity {
    /// One linear layer with one output on N^D points, N = K.
    fn run(&self, context: &Context<'_>, emit: &mut Emit<'_>) -> Result<()> {
        let mut rng = context.stream("matrices");
        let mut values = Vec::new();
        let mut series: [Vec<f64>; 4] = Default::default(); // size, operations, bytes, time
        for &size in &self.sizes.0 {
            let n = size as usize;
            let n_axes = self.axes as u32;
            let counted =
                cost(self.scheme, Sizes { n_points: n as u64, n_features: n as u64, n_axes });
            let bytes = counted.bytes(8);
            if bytes > MAX_BYTES {
                bail!("size {n} needs {bytes} bytes; allowed: {MAX_BYTES}. Remove it from `sizes`");
            }
            let numbers = gaussian_vector(&mut rng, n * n);
            let psi = Mat::from_fn(n, n, |i, j| numbers[i * n + j]);
            let mut weights = numbers.iter().cycle().copied();
            let mut layer = Layer::new(self, &psi, &mut || weights.next().unwrap_or(1.0))?;
            // An untimed run warms the caches.
            layer.forward()?;
            let seconds = (0..self.repeats).map(|_| {
                let started = Instant::now();
                layer.forward()?;
                Ok(started.elapsed().as_secs_f64())
            });
            let seconds = median(&seconds.collect::<Result<Vec<f64>>>()?);
            let operations = counted.multiply_adds as f64;
            values.push(Value::new("operations", operations).at(size));
            values.push(Value::new("bytes", bytes as f64).at(size).unit("B"));
            if self.scheme == Scheme::Separable {
                let printed = printed_separable_memory(n as u64, n_axes);
                values.push(Value::new("bytes_printed", 8.0 * printed as f64).at(size).unit("B"));
            }
            values.push(Value::new("time", seconds).at(size).unit("s"));
            for (list, v) in series.iter_mut().zip([size, operations, bytes as f64, seconds]) {
                list.push(v);
            }
        }
        let [sizes, operations, bytes, seconds] = &series;
        for (metric, of) in [
            ("operations_exponent", operations),
            ("bytes_exponent", bytes),
            ("time_exponent", seconds),
        ] {
            values.push(Value::new(metric, power_law_exponent(sizes, of)?));
        }
        emit(0, values.into())
    }
}

/// A linear layer with its weights.
enum Layer {
    WrittenOut {
        features: Mat<f64>,
        weights: Mat<f64>,
    },
    Grid {
        maps: Separable<f64>,
        weights: Vec<f64>,
        values: Vec<f64>,
    },
    /// A layer on a grid, and for each arbitrary point its 2^D nodes with their weights.
    Blended {
        grid: Box<Layer>,
        nodes: Vec<u32>,
        weights: Vec<f64>,
    },
}

impl Layer {
    fn new(settings: &Complexity, psi: &Mat<f64>, number: &mut dyn FnMut() -> f64) -> Result<Self> {
        let (n, axes) = (psi.nrows(), settings.axes);
        Ok(match settings.scheme {
            Scheme::Simple | Scheme::Naive => {
                let is_simple = settings.scheme == Scheme::Simple;
                let join = if is_simple { simple_features } else { dense };
                let plane = join(psi.as_ref(), psi.as_ref());
                let features = if axes == 2 { plane } else { join(psi.as_ref(), plane.as_ref()) };
                let weights = Mat::from_fn(features.ncols(), 1, |_, _| number());
                Layer::WrittenOut { features, weights }
            }
            Scheme::Separable => Layer::Grid {
                maps: Separable::predictor(&vec![psi.as_ref(); axes])?,
                weights: (0..n.pow(axes as u32)).map(|_| number()).collect(),
                values: Vec::new(),
            },
            Scheme::NonSeparable => {
                let separable = Complexity { scheme: Scheme::Separable, ..settings.clone() };
                let (nodes, weights) = blending(n, axes, number);
                let grid = Box::new(Layer::new(&separable, psi, number)?);
                Layer::Blended { grid, nodes, weights }
            }
        })
    }

    /// One forward pass.
    fn forward(&mut self) -> Result<()> {
        match self {
            Layer::WrittenOut { features, weights } => drop(black_box(&*features * &*weights)),
            Layer::Grid { maps, weights, values } => {
                maps.apply_into(weights, values)?;
                black_box(&*values);
            }
            Layer::Blended { grid, nodes, weights } => {
                grid.forward()?;
                let Layer::Grid { values, .. } = &**grid else { bail!("not a grid") };
                let corners = nodes.len() / values.len();
                let blended =
                    nodes.chunks(corners).zip(weights.chunks(corners)).map(|(nodes, weights)| {
                        let terms = nodes.iter().zip(weights);
                        terms.map(|(node, w)| w * values[*node as usize]).sum::<f64>()
                    });
                black_box(blended.collect::<Vec<_>>());
            }
        }
        Ok(())
    }
}

/// The 2^axes nodes and their weights for each of `n^axes` points between the nodes of a grid with `n` nodes per axis.
fn blending(n: usize, axes: usize, number: &mut dyn FnMut() -> f64) -> (Vec<u32>, Vec<f64>) {
    let (mut nodes, mut weights) = (Vec::new(), Vec::new());
    let mut cell = vec![(0usize, 0.0); axes];
    for _ in 0..n.pow(axes as u32) {
        for (low, ratio) in &mut cell {
            let position = number().abs().fract() * (n - 1) as f64;
            (*low, *ratio) = ((position as usize).min(n - 2), position.fract());
        }
        for corner in 0..1usize << axes {
            let mut node = 0;
            let mut weight = 1.0;
            for (axis, (low, ratio)) in cell.iter().enumerate() {
                let upper = (corner >> axis) & 1;
                node = node * n + low + upper;
                weight *= if upper == 1 { *ratio } else { 1.0 - *ratio };
            }
            nodes.push(node as u32);
            weights.push(weight);
        }
    }
    (nodes, weights)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a wrong corner or weight: the weights of a point sum to one, and blending is multilinear.
    #[test]
    fn blending_is_multilinear_between_the_nodes() {
        let n = 5;
        for axes in [2usize, 3] {
            let mut state = 0.0;
            let (nodes, weights) = blending(n, axes, &mut || {
                state += 0.377;
                state
            });
            let corners = 1 << axes;
            assert_eq!(nodes.len(), n.pow(axes as u32) * corners);
            assert_eq!(weights.len(), nodes.len());
            let coordinate =
                |node: u32, axis: usize| (node as usize / n.pow(axis as u32) % n) as f64;
            for (nodes, weights) in nodes.chunks(corners).zip(weights.chunks(corners)) {
                let blend = |value: &dyn Fn(u32) -> f64| -> f64 {
                    nodes.iter().zip(weights).map(|(node, w)| w * value(*node)).sum()
                };
                let product = blend(&|node| (0..axes).map(|axis| coordinate(node, axis)).product());
                let of_axes: f64 =
                    (0..axes).map(|axis| blend(&|node| coordinate(node, axis))).product();
                assert!((blend(&|_| 1.0) - 1.0).abs() < 1e-12);
                assert!((product - of_axes).abs() < 1e-9, "{product} {of_axes}");
            }
        }
    }
}
