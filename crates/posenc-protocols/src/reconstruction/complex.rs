//! Complex encodings: the matrices of the axes, and blending at scattered positions.

use anyhow::{Result, bail};
use faer::Mat;
use nalgebra_sparse::CsrMatrix;
use posenc_math::blending::{
    AxisBlending, Blending, GridConvention, VirtualGrid, distance_function,
};
use posenc_math::closed_form::Real;
use posenc_math::embedder::{Embedder, EmbedderSpec, line, scale_by_largest_row_norm};
use posenc_nets::Input;

use super::points::Split;
use crate::grid_network as settings;
use crate::grid_network::{NetworkNd, Nodes};
use crate::memory::{check_memory, divide, embedding_matrix};
use crate::network_1d::Scale;

/// Encodings of the positions of a grid, as factors of a Kronecker product.
pub struct Lattice {
    /// Scaled n × K matrix of the training positions of each axis, in double precision.
    pub train: Vec<Mat<f64>>,
    /// Matrix of all positions of each axis, scaled as a test batch.
    pub test: Vec<Mat<f64>>,
    /// Matrix of all positions of each axis, scaled as the training positions.
    pub full: Vec<Mat<f64>>,
}

impl Lattice {
    /// A grid of these sides; every `step`-th position along each axis trains.
    pub fn new(
        embedder: &dyn Embedder,
        sides: &[usize],
        step: usize,
        scale: Scale,
    ) -> Result<Self> {
        let mut lattice = Lattice { train: Vec::new(), test: Vec::new(), full: Vec::new() };
        for &n in sides {
            let positions = line(n);
            let training: Vec<f64> = positions.iter().step_by(step).copied().collect();
            let mut train = embedding_matrix(embedder, &training)?;
            let mut full = embedding_matrix(embedder, &positions)?;
            let mut test = full.clone();
            if scale != Scale::None {
                let norm = scale_by_largest_row_norm(&mut train);
                divide(&mut full, norm);
                match scale {
                    Scale::Batch => {
                        scale_by_largest_row_norm(&mut test);
                    }
                    _ => test.clone_from(&full),
                }
            }
            lattice.train.push(train);
            lattice.test.push(test);
            lattice.full.push(full);
        }
        Ok(lattice)
    }
}

/// A virtual grid of K or K + 1 nodes along every axis, and the weights that blend them.
pub struct Scattered {
    sides: Vec<usize>,
    /// Scaled nodes × K matrix, which all axes share.
    pub nodes: Mat<f64>,
    /// Blending weights of each axis at all positions i/n.
    axes: Vec<AxisBlending>,
}

impl Scattered {
    /// Computes the weights for all positions of a grid with these sides.
    pub fn new(
        embedder: &dyn Embedder,
        spec: &EmbedderSpec,
        sides: &[usize],
        blending: settings::Blending,
        scale: Scale,
    ) -> Result<Self> {
        let k = embedder.dimension();
        let (nodes, convention) = match blending.nodes {
            Nodes::Released => (k, GridConvention::Released),
            Nodes::Consistent => (k, GridConvention::Consistent),
            Nodes::Closed => (k + 1, GridConvention::Consistent),
        };
        let grid = VirtualGrid::new(nodes, convention)?;
        let distance = distance_function(blending.distance, spec, embedder)?;
        let mut nodes = embedding_matrix(embedder, &grid.encoded_positions())?;
        if scale != Scale::None {
            scale_by_largest_row_norm(&mut nodes);
        }
        let axes = sides
            .iter()
            .map(|&n| AxisBlending::new(&grid, &line(n), &*distance, blending.weights))
            .collect::<Result<_, _>>()?;
        Ok(Scattered { sides: sides.to_vec(), nodes, axes })
    }

    pub fn blending<T: Real, const D: usize>(&self, points: &[u32]) -> Result<Blending<T, D>> {
        let Ok(axes) = <[&AxisBlending; D]>::try_from(self.axes.iter().collect::<Vec<_>>()) else {
            bail!("internal error ({D} axes asked of {}); please report it", self.axes.len());
        };
        let place = |&point: &u32| {
            let mut rest = point as usize;
            let mut place = [0; D];
            for axis in (0..D).rev() {
                place[axis] = (rest % self.sides[axis]) as u32;
                rest /= self.sides[axis];
            }
            place
        };
        Ok(Blending::new(axes, points.iter().map(place).collect())?)
    }

    /// Encodings of some positions as input of the engine.
    fn input(&self, points: &[u32]) -> Result<Input> {
        let nodes = vec![self.nodes.clone(); self.sides.len()];
        Ok(Input::kronecker_blended(columns(&nodes), self.matrix(points)?)?)
    }

    /// Blending matrix of some positions, points × nodes.
    fn matrix(&self, points: &[u32]) -> Result<CsrMatrix<f32>> {
        let corners = (points.len() << self.sides.len()) as f64;
        // Each entry has a column index of eight bytes and a weight of four.
        check_memory("the blending matrix", 1.5 * corners)?;
        Ok(match self.sides.len() {
            2 => self.blending::<f32, 2>(points)?.matrix(),
            3 => self.blending::<f32, 3>(points)?.matrix(),
            other => bail!("blending along {other} axes; allowed: 2 or 3"),
        })
    }
}

/// Complex encodings of the positions of a split.
pub enum Complex {
    /// The training positions are a grid.
    Lattice(Lattice),
    /// The training positions are random.
    Scattered(Scattered),
}

impl Complex {
    /// Computes the encodings for the given settings.
    pub fn new(
        embedder: &dyn Embedder,
        spec: &EmbedderSpec,
        sides: &[usize],
        settings: &NetworkNd,
    ) -> Result<Self> {
        Ok(match settings.grid_step() {
            Some(step) => Complex::Lattice(Lattice::new(embedder, sides, step, settings.scale)?),
            None => Complex::Scattered(Scattered::new(
                embedder,
                spec,
                sides,
                settings.blending.unwrap_or_default(),
                settings.scale,
            )?),
        })
    }

    /// Training and test positions as inputs of the engine; `None` without test positions.
    pub fn inputs(&self, split: &Split) -> Result<(Input, Option<Input>)> {
        let tests = !split.test.is_empty();
        Ok(match self {
            Complex::Lattice(lattice) => (
                Input::kronecker(columns(&lattice.train))?,
                tests
                    .then(|| Input::kronecker_at(columns(&lattice.test), split.test.clone()))
                    .transpose()?,
            ),
            Complex::Scattered(scattered) => (
                scattered.input(&split.train)?,
                tests.then(|| scattered.input(&split.test)).transpose()?,
            ),
        })
    }

    /// All positions, scaled as the training positions.
    pub fn everywhere(&self) -> Result<Input> {
        Ok(match self {
            Complex::Lattice(lattice) => Input::kronecker(columns(&lattice.full))?,
            Complex::Scattered(scattered) => {
                let points: usize = scattered.sides.iter().product();
                scattered.input(&(0..points as u32).collect::<Vec<u32>>())?
            }
        })
    }
}

/// Transposes n × K matrices in double precision to K × n matrices in single precision.
fn columns(axes: &[Mat<f64>]) -> Vec<Mat<f32>> {
    axes.iter().map(|m| Mat::from_fn(m.ncols(), m.nrows(), |k, i| m[(i, k)] as f32)).collect()
}
