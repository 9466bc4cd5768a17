//! Shared code of estimates of time and memory. Memory estimates count the largest arrays that a job has at the same time.
//!
//! A test compares the estimates with the recorded peaks.

use anyhow::{Result, bail, ensure};
use faer::Mat;
use posenc_experiments::plan::Job;
use posenc_experiments::schema::NumberList;
use posenc_harness::shape::SignalShape;
use posenc_math::embedder::{self, Embedder};

use crate::sweep::Sweep;

/// Bytes of a weight with its gradient and two moments, in single precision.
pub const WEIGHT: f64 = 16.0;
/// Bytes of a value of a record, with its metric, abscissa and labels.
pub const RECORDED: f64 = 200.0;

/// Memory limit of a unit; a failed allocation would abort the whole run.
const MAX_BYTES: f64 = 4.0 * (1u64 << 30) as f64;

/// Checks that an array of `numbers` double-precision numbers is within the memory limit of a unit.
///
/// # Errors
///
/// An array that is too large; the message contains the size, the limit and the remedy.
pub fn check_memory(what: &str, numbers: f64) -> Result<()> {
    let bytes = 8.0 * numbers;
    ensure!(
        bytes <= MAX_BYTES,
        "{what} needs {:.1} GiB; allowed: {:.0} GiB. Lower `dimension` or the number of points",
        bytes / f64::from(1 << 30),
        MAX_BYTES / f64::from(1 << 30)
    );
    Ok(())
}

/// Largest magnitude of a feature: of larger ones, the sum of squares over a row overflows.
const MAX_FEATURE: f64 = 1e150;

/// Computes the N × d embedding matrix.
///
/// # Errors
///
/// As [`check_memory`], and features that are not finite or whose squares overflow.
pub fn embedding_matrix(embedder: &dyn Embedder, positions: &[f64]) -> Result<Mat<f64>> {
    let (n, d) = (positions.len(), embedder.dimension());
    check_memory(&format!("a {n} × {d} embedding matrix"), n as f64 * d as f64)?;
    let matrix = embedder::matrix(embedder, positions);
    let is_wrong = |v: &&f64| v.is_nan() || v.abs() > MAX_FEATURE;
    if let Some(value) = (0..d).find_map(|j| matrix.col_as_slice(j).iter().find(is_wrong)) {
        bail!(
            "a feature is {value:e}; allowed: up to {MAX_FEATURE:e}, so that squares can be added. Change `psi` or the parameters"
        );
    }
    Ok(matrix)
}

/// ψ(x).
pub fn row(embedder: &dyn Embedder, x: f64) -> Vec<f64> {
    let mut row = vec![0.0; embedder.dimension()];
    embedder.embed(x, &mut row);
    row
}

/// Divides a matrix by a norm. Does nothing if the norm is 0; embeddings of zeros are refused elsewhere.
pub fn divide(matrix: &mut Mat<f64>, norm: f64) {
    if norm > 0.0 {
        for j in 0..matrix.ncols() {
            matrix.col_as_slice_mut(j).iter_mut().for_each(|value| *value /= norm);
        }
    }
}

/// The largest of several numbers.
pub fn largest(numbers: &NumberList) -> f64 {
    numbers.0.iter().copied().fold(0.0, f64::max)
}

/// n².
pub fn square(n: f64) -> f64 {
    n * n
}

/// The embedding dimension d of the variant, or 1000 if it is unknown.
pub fn feature_count(job: &Job<'_>) -> f64 {
    own_dimension(job).unwrap_or(1000.0)
}

/// The largest embedding dimension d along a sweep, or 256 if it is unknown.
pub fn dimension(job: &Job<'_>, sweep: Option<&Sweep>) -> f64 {
    let swept = sweep.filter(|sweep| sweep.parameter == "dimension");
    let swept = swept.map(|sweep| largest(&sweep.values));
    swept.or_else(|| own_dimension(job)).unwrap_or(256.0)
}

fn own_dimension(job: &Job<'_>) -> Option<f64> {
    job.variant.embedder.as_ref()?.dimension()
}

/// Side and number of axes of the signals, after reduction to `side` if given.
pub fn reduced(shape: SignalShape, side: Option<usize>) -> (f64, i32) {
    (side.map_or(shape.side, |side| side as f64), shape.axes as i32)
}
