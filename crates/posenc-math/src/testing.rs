//! Embedders and matrices that several tests share.

use faer::Mat;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::embedder::{Embedder, EmbedderSpec, build};
use crate::kronecker::dense;
use crate::random::stream;

/// A specification with a dimension and one more parameter.
pub fn spec(kind: &str, dimension: usize, key: &str, value: f64) -> EmbedderSpec {
    EmbedderSpec::new(kind).number("dimension", dimension as f64).number(key, value)
}

pub fn built(spec: &EmbedderSpec) -> Box<dyn Embedder> {
    build(spec, &mut stream(1, "tests")).unwrap()
}

/// Entries sampled uniformly from [-1, 1): of full rank, and well conditioned at small sizes.
pub fn random(rows: usize, columns: usize, seed: u64) -> Mat<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    Mat::from_fn(rows, columns, |_, _| rng.random_range(-1.0..1.0))
}

/// Matrix of exactly the given rank (almost surely), as a product of two thin ones.
pub fn of_rank(rows: usize, columns: usize, rank: usize, seed: u64) -> Mat<f64> {
    random(rows, rank, seed) * random(rank, columns, seed + 1)
}

/// A kernel at the distances of `n` points to `k` centers on the line.
pub fn shifted(n: usize, k: usize, kernel: impl Fn(f64) -> f64) -> Mat<f64> {
    Mat::from_fn(n, k, |i, j| kernel(i as f64 / n as f64 - j as f64 / k as f64))
}

pub fn gaussian(n: usize, k: usize, sigma: f64) -> Mat<f64> {
    shifted(n, k, |delta| (-delta * delta / (2.0 * sigma * sigma)).exp())
}

/// Entries row by row, as `vec` of [`crate::kronecker`].
pub fn entries(m: &Mat<f64>) -> Vec<f64> {
    (0..m.nrows()).flat_map(|i| (0..m.ncols()).map(move |j| m[(i, j)])).collect()
}

/// The Kronecker product of all factors.
pub fn kronecker(factors: &[Mat<f64>]) -> Mat<f64> {
    let identity = Mat::identity(1, 1);
    factors.iter().fold(identity, |product, factor| dense(product.as_ref(), factor.as_ref()))
}

/// Product of a matrix with a vector, by the definition.
pub fn times(m: &Mat<f64>, v: &[f64]) -> Vec<f64> {
    (0..m.nrows()).map(|i| (0..m.ncols()).map(|j| m[(i, j)] * v[j]).sum()).collect()
}

pub fn narrow(m: &Mat<f64>) -> Mat<f32> {
    Mat::from_fn(m.nrows(), m.ncols(), |i, j| m[(i, j)] as f32)
}

pub fn widen(m: &Mat<f32>) -> Mat<f64> {
    Mat::from_fn(m.nrows(), m.ncols(), |i, j| f64::from(m[(i, j)]))
}
