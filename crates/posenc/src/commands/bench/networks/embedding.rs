//! Positions and their features.

use anyhow::Result;
use faer::Mat;
use posenc_math::embedder::{Embedder, EmbedderSpec, build, line, names};
use posenc_math::random::{gaussian_vector, stream, uniform_vector};
use posenc_nets::Input;

#[derive(Debug, Clone, Copy)]
pub enum Embedding {
    /// Equispaced points of a line, random Fourier features.
    RffLine { sigma: f64 },
    /// Equispaced points of a line, Gaussian bumps.
    GaussianLine { sigma: f64 },
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

/// Features of one axis of a product.
#[derive(Debug, Clone, Copy)]
pub enum Axis {
    /// Sines and cosines with equally spaced frequencies up to 2^σ.
    LinF { sigma: f64 },
    /// Gaussian bumps.
    Gaussian { sigma: f64 },
    /// Triangles.
    Triangle { half_width: f64 },
}

impl Embedding {
    pub fn is_kronecker(self) -> bool {
        matches!(self, Embedding::Kronecker { .. })
    }

    /// `dimension` features of each of `points` points, scaled to norms of about 1.
    pub fn input(self, points: usize, dimension: usize) -> Result<Input> {
        let rff = |dimension, sigma| embedder(names::RFF, dimension, sigma);
        let gaussian = |dimension, sigma| embedder(names::GAUSSIAN, dimension, sigma);
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
                Embedding::Kronecker { axes, axis } => {
                    let mut table =
                        table(&*axis.embedder(side(dimension, axes))?, &line(side(points, axes)));
                    scale(&mut table);
                    return Ok(Input::kronecker(vec![table; axes])?);
                }
                Embedding::RffGrid { sigma } => {
                    let mut axis = table(&*rff(dimension / 2, sigma)?, &line(points.isqrt()));
                    scale(&mut axis);
                    return Ok(Input::grid(vec![axis.clone(), axis])?);
                }
            };
        scale(&mut columns);
        Ok(Input::dense(columns)?)
    }
}

impl Axis {
    fn embedder(self, dimension: usize) -> Result<Box<dyn Embedder>> {
        match self {
            Axis::LinF { sigma } => embedder(names::LINF, dimension, sigma),
            Axis::Gaussian { sigma } => embedder(names::GAUSSIAN, dimension, sigma),
            Axis::Triangle { half_width } => {
                let spec = EmbedderSpec::new(names::TRIANGLE).number("dimension", dimension as f64);
                let spec = spec.number("half_width", half_width);
                Ok(build(&spec, &mut stream(0, "bench"))?)
            }
        }
    }
}

/// Side of a cube with `axes` axes and `product` elements, rounded.
pub fn side(product: usize, axes: usize) -> usize {
    (product as f64).powf(1.0 / axes as f64).round() as usize
}

fn embedder(kind: &str, dimension: usize, sigma: f64) -> Result<Box<dyn Embedder>> {
    let spec = EmbedderSpec::new(kind).number("dimension", dimension as f64);
    Ok(build(&spec.number("sigma", sigma), &mut stream(0, "bench"))?)
}

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

#[cfg(test)]
mod tests {
    use super::super::WORKLOADS;
    use super::*;

    /// Catches an embedding that should be banded and is not, or vice versa.
    #[test]
    fn only_narrow_bumps_have_bands() {
        for w in WORKLOADS {
            let input = match w.embedding {
                // For a product, the nonzero share of one factor counts.
                Embedding::Kronecker { .. } => {
                    let input = w.embedding.input(w.points, w.dimension).unwrap();
                    let Input::Kronecker(k) = &input else { panic!("{}: no products", w.name) };
                    assert_eq!((k.dimension(), k.points()), (w.dimension, w.points));
                    k.axes[0].clone()
                }
                _ => w.embedding.input(1024, w.dimension).unwrap().to_dense(),
            };
            let nonzero = (0..input.ncols())
                .map(|i| input.col_as_slice(i).iter().filter(|v| **v != 0.0).count())
                .sum::<usize>();
            let share = nonzero as f64 / (input.nrows() * input.ncols()) as f64;
            if w.without_bands.is_some() {
                // A factor of three axes has few features, and tails count until they underflow in single precision.
                let most = if w.embedding.is_kronecker() { 0.4 } else { 0.25 };
                assert!(share < most, "{}: {share}", w.name);
            } else {
                assert!(share > 0.95, "{}: {share}", w.name);
            }
        }
    }
}
