//! What estimates of time and memory share: the largest arrays that a job holds at a time, roughly.
//!
//! A test compares the estimates with the peaks that records have.

use anyhow::{Result, ensure};
use faer::Mat;
use posenc_experiments::plan::Job;
use posenc_experiments::schema::NumberList;
use posenc_harness::shape::SignalShape;
use posenc_math::embedder::{self, Embedder};

use crate::sweep::Sweep;

/// Bytes of a weight with its gradient and two moments, in single precision.
pub const WEIGHT: f64 = 16.0;
/// Bytes of a number of a record: its metric, places and value.
pub const RECORDED: f64 = 200.0;

/// No unit may ask for more: an allocation that fails would end the whole run.
const MAX_BYTES: f64 = 4.0 * (1u64 << 30) as f64;

/// Refuses what would need more memory than a unit may have; `numbers` of eight bytes each.
///
/// # Errors
///
/// The size, the limit and what to lower.
pub fn check_memory(what: &str, numbers: f64) -> Result<()> {
    let bytes = 8.0 * numbers;
    ensure!(
        bytes <= MAX_BYTES,
        "{what} would take {:.1} GiB; allowed are {:.0} GiB: lower `dimension` or the number of points",
        bytes / f64::from(1 << 30),
        MAX_BYTES / f64::from(1 << 30)
    );
    Ok(())
}

/// The N × d embedding matrix.
///
/// # Errors
///
/// As [`check_memory`].
pub fn embedding_matrix(embedder: &dyn Embedder, positions: &[f64]) -> Result<Mat<f64>> {
    let (n, d) = (positions.len(), embedder.dimension());
    check_memory(&format!("a {n} × {d} embedding matrix"), n as f64 * d as f64)?;
    Ok(embedder::matrix(embedder, positions))
}

/// ψ(x).
pub fn row(embedder: &dyn Embedder, x: f64) -> Vec<f64> {
    let mut row = vec![0.0; embedder.dimension()];
    embedder.embed(x, &mut row);
    row
}

/// Divides a matrix by a norm. A norm of 0 belongs to an embedding of zeros, which is refused elsewhere.
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

/// The square of a number.
pub fn square(n: f64) -> f64 {
    n * n
}

/// The embedding dimension d of the variant.
pub fn feature_count(job: &Job<'_>) -> f64 {
    own_dimension(job).unwrap_or(1000.0)
}

/// The largest embedding dimension d along a sweep.
pub fn dimension(job: &Job<'_>, sweep: Option<&Sweep>) -> f64 {
    let swept = sweep.filter(|sweep| sweep.parameter == "dimension");
    let swept = swept.map(|sweep| largest(&sweep.values));
    swept.or_else(|| own_dimension(job)).unwrap_or(256.0)
}

fn own_dimension(job: &Job<'_>) -> Option<f64> {
    job.variant.embedder.as_ref()?.dimension()
}

/// Side and axes of the signals, reduced to `side` if there is one.
pub fn reduced(shape: SignalShape, side: Option<usize>) -> (f64, i32) {
    (side.map_or(shape.side, |side| side as f64), shape.axes as i32)
}
