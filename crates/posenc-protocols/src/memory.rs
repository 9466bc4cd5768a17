//! Embedding matrices within the memory limit.

use anyhow::{Result, bail, ensure};
use faer::Mat;
use posenc_harness::memory::limit;
use posenc_math::embedder::{self, Embedder};

/// Memory limit of a unit; a failed allocation would abort the whole run.
const MAX_BYTES: f64 = 4.0 * (1u64 << 30) as f64;

/// Checks that an array of `numbers` double-precision numbers is within the memory limits of a unit and of the run.
pub fn check_memory(what: &str, numbers: f64) -> Result<()> {
    let bytes = 8.0 * numbers;
    ensure!(
        bytes <= MAX_BYTES,
        "{what} needs {:.1} GiB; allowed: {:.0} GiB. Lower `dimension` or the number of points",
        bytes / f64::from(1 << 30),
        MAX_BYTES / f64::from(1 << 30)
    );
    let limit = limit();
    ensure!(
        bytes <= limit.0 as f64,
        "{what} needs {:.1} GiB of memory, {limit} are available; lower `dimension` or the number of points, free memory, or raise the \
         limit with --memory",
        bytes / f64::from(1 << 30)
    );
    Ok(())
}

/// Largest magnitude of a feature: of larger ones, the sum of squares over a row overflows.
const MAX_FEATURE: f64 = 1e150;

/// Computes the N × d embedding matrix. Refuses features that are not finite or whose squares overflow.
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
