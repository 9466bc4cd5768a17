//! Positions and their features.

use anyhow::Result;
use faer::Mat;
use posenc_math::embedder::{Embedder, EmbedderSpec, build, line, names};
use posenc_math::random::{gaussian_vector, stream, uniform_vector};
use posenc_nets::Input;

#[derive(Clone, Copy)]
pub enum Embedding {
    /// Equispaced points of a line.
    Line(Axis),
    /// Scattered points of the square, random Fourier features with frequencies in both axes.
    RffSquare { sigma: f64 },
    /// Scattered points of the square, half of the Gaussian bumps on each axis.
    GaussianSquare { sigma: f64 },
    /// A square grid, half of the random Fourier features on each axis.
    RffGrid { sigma: f64 },
    /// Products of the features of two or three axes on their whole grid, with the same number of points and of features on each
    /// axis.
    Kronecker { axes: usize, axis: Axis },
}

/// An embedder of one axis and the value of its parameter.
#[derive(Clone, Copy)]
pub struct Axis {
    kind: &'static str,
    value: f64,
}

impl Axis {
    pub const fn new(kind: &'static str, value: f64) -> Self {
        Axis { kind, value }
    }

    pub fn embedder(self, dimension: usize) -> Result<Box<dyn Embedder>> {
        let parameter = if self.kind == names::TRIANGLE { "half_width" } else { "sigma" };
        let spec = EmbedderSpec::new(self.kind).number("dimension", dimension as f64);
        Ok(build(&spec.number(parameter, self.value), &mut stream(0, "bench"))?)
    }

    fn table(self, dimension: usize, positions: &[f64]) -> Result<Mat<f32>> {
        let embedder = self.embedder(dimension)?;
        let mut features = vec![0.0; embedder.dimension()];
        let mut table = Mat::zeros(features.len(), positions.len());
        for (i, &x) in positions.iter().enumerate() {
            embedder.embed(x, &mut features);
            for (entry, feature) in table.col_as_slice_mut(i).iter_mut().zip(&features) {
                *entry = *feature as f32;
            }
        }
        Ok(table)
    }
}

impl Embedding {
    /// `dimension` features of each of `points` points, scaled to norms of about 1.
    pub fn input(self, points: usize, dimension: usize) -> Result<Input> {
        Ok(match self {
            Embedding::Line(axis) => Input::dense(scaled(axis.table(dimension, &line(points))?))?,
            Embedding::RffSquare { sigma } => {
                Input::dense(scaled(waves(points, dimension, sigma)))?
            }
            Embedding::GaussianSquare { sigma } => {
                let axis = Axis::new(names::GAUSSIAN, sigma);
                let [x, y] = scattered(points).map(|c| axis.table(dimension / 2, &c));
                let (x, y) = (x?, y?);
                let half = x.nrows();
                Input::dense(scaled(Mat::from_fn(2 * half, points, |j, i| {
                    if j < half { x[(j, i)] } else { y[(j - half, i)] }
                })))?
            }
            Embedding::RffGrid { sigma } => {
                let axis = Axis::new(names::RFF, sigma);
                let table = scaled(axis.table(dimension / 2, &line(points.isqrt()))?);
                Input::grid(vec![table.clone(), table])?
            }
            Embedding::Kronecker { axes, axis } => {
                let table = axis.table(side(dimension, axes), &line(side(points, axes)))?;
                Input::kronecker(vec![scaled(table); axes])?
            }
        })
    }
}

/// Side of a cube with `axes` axes and `product` elements, rounded.
pub fn side(product: usize, axes: usize) -> usize {
    (product as f64).powf(1.0 / axes as f64).round() as usize
}

/// Coordinates of points sampled uniformly from the unit square.
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

/// Divides all columns by the largest column norm.
fn scaled(mut table: Mat<f32>) -> Mat<f32> {
    let squared = |column: &[f32]| column.iter().map(|v| v * v).sum::<f32>();
    let largest =
        (0..table.ncols()).map(|i| squared(table.col_as_slice(i))).fold(0.0, f32::max).sqrt();
    if largest > 0.0 {
        for i in 0..table.ncols() {
            table.col_as_slice_mut(i).iter_mut().for_each(|value| *value /= largest);
        }
    }
    table
}
