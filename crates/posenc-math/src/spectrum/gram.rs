//! The stable rank from the smaller Gram matrix.

use faer::{
    Accum, Mat, MatRef, Par, Side,
    linalg::matmul::triangular::{self, BlockStructure},
};

use super::{
    all_zero, check_finite, circulant::shifted_rows_stable_rank, empty, lanczos, no_convergence,
    not_finite, toeplitz_stable_rank,
};
use crate::{
    Error,
    embedder::{Embedder, line},
    random::{gaussian_vector, stream},
};

/// Values per embedded block: 8 MiB.
const BLOCK_VALUES: usize = 1 << 20;

/// Gram matrices up to this size are decomposed; larger ones use Lanczos iterations.
const MAX_DECOMPOSED: usize = 1000;

/// Traces outside of this range may have lost digits to underflow or overflow of squares.
const SAFE_TRACE: std::ops::Range<f64> = 1e-250..1e250;

/// ‖X‖_F² / ‖X‖_2² of an N × d matrix.
///
/// # Errors
///
/// An empty matrix, entries that are not finite, or a matrix of zeros.
pub fn stable_rank(x: MatRef<'_, f64>) -> Result<f64, Error> {
    check_finite(x)?;
    // In the tall orientation, the smaller Gram matrix is that of the columns.
    let tall = if x.nrows() <= x.ncols() { x.transpose() } else { x };
    let gram = |x: MatRef<'_, f64>| {
        let mut gram = Mat::zeros(x.ncols(), x.ncols());
        add_gram(&mut gram, x);
        gram
    };
    let unscaled = gram(tall);
    if SAFE_TRACE.contains(&trace(&unscaled)) {
        return from_gram(&unscaled);
    }
    let largest = tall.norm_max();
    if largest == 0.0 {
        return Err(all_zero());
    }
    let scaled = Mat::from_fn(tall.nrows(), tall.ncols(), |i, j| tall[(i, j)] / largest);
    from_gram(&gram(scaled.as_ref()))
}

/// The stable rank of the N × d matrix with rows ψ(x_i), without forming it.
///
/// Memory holds the smaller Gram matrix and a block of features at a time. A block takes up to 8 MiB, or
/// the size of 64 columns or samples if that is more.
pub(super) fn embedding_stable_rank(embedder: &dyn Embedder, xs: &[f64]) -> Result<f64, Error> {
    if xs.is_empty() {
        return Err(empty(0, embedder.dimension()));
    }
    let gram = streamed_gram(embedder, xs, 1.0);
    if SAFE_TRACE.contains(&trace(&gram)) {
        return from_gram(&gram);
    }
    // Rare: features are not finite, all zero, or so small or large that their squares are lost.
    let mut largest: f64 = 0.0;
    let mut row = vec![0.0; embedder.dimension()];
    for (sample, &x) in xs.iter().enumerate() {
        embedder.embed(x, &mut row);
        if row.iter().any(|value| !value.is_finite()) {
            return Err(not_finite(sample));
        }
        largest = row.iter().fold(largest, |largest, value| largest.max(value.abs()));
    }
    if largest == 0.0 {
        return Err(all_zero());
    }
    from_gram(&streamed_gram(embedder, xs, largest))
}

/// The stable rank of the `n` samples i/n.
///
/// There are three exact routes. Fourier embedders have a Toeplitz Gram matrix, which needs `n·d/2`
/// cosines and no matrix. Circulant embedders whose `d` is a multiple of `n` need one Fourier transform
/// of a row. All others are streamed.
pub fn line_stable_rank(embedder: &dyn Embedder, n: usize) -> Result<f64, Error> {
    let xs = line(n);
    if n > 0 && embedder.is_circulant() && embedder.dimension().is_multiple_of(n) {
        let mut row = vec![0.0; embedder.dimension()];
        embedder.embed(0.0, &mut row);
        return shifted_rows_stable_rank(&row, n);
    }
    // With few features, and fewer than samples, their Gram matrix is small.
    if embedder.dimension() < n.min(64) {
        return embedding_stable_rank(embedder, &xs);
    }
    match xs.iter().map(|&x| embedder.gram_kernel(x)).collect::<Option<Vec<f64>>>() {
        Some(first_row) if n > 0 => toeplitz_stable_rank(&first_row),
        _ => embedding_stable_rank(embedder, &xs),
    }
}

/// The lower triangle of the smaller Gram matrix of the features divided by `scale`.
fn streamed_gram(embedder: &dyn Embedder, xs: &[f64], scale: f64) -> Mat<f64> {
    let (n, d) = (xs.len(), embedder.dimension());
    let mut gram = Mat::zeros(n.min(d), n.min(d));
    if n <= d {
        let n_columns = (BLOCK_VALUES / n).clamp(64, 8192).min(d);
        let mut block = Mat::zeros(n_columns, n);
        for first in (0..d).step_by(n_columns) {
            let n_columns = n_columns.min(d - first);
            let features = fill_block(&mut block, embedder, xs, first, n_columns, scale);
            add_gram(&mut gram, features);
        }
    } else {
        let n_samples = (BLOCK_VALUES / d).clamp(64, 8192).min(n);
        let mut block = Mat::zeros(d, n_samples);
        for xs in xs.chunks(n_samples) {
            let features = fill_block(&mut block, embedder, xs, 0, d, scale);
            add_gram(&mut gram, features.transpose());
        }
    }
    gram
}

/// Writes columns `first .. first + n_columns` of the rows ψ(x_i), one row per column of the block.
fn fill_block<'a>(
    block: &'a mut Mat<f64>,
    embedder: &dyn Embedder,
    xs: &[f64],
    first: usize,
    n_columns: usize,
    scale: f64,
) -> MatRef<'a, f64> {
    for (i, &x) in xs.iter().enumerate() {
        let features = &mut block.col_as_slice_mut(i)[..n_columns];
        embedder.embed_columns(x, first, features);
        if scale != 1.0 {
            for value in features {
                *value /= scale;
            }
        }
    }
    block.as_ref().submatrix(0, 0, n_columns, xs.len())
}

/// Adds `AᵀA` to the lower triangle.
fn add_gram(gram: &mut Mat<f64>, a: MatRef<'_, f64>) {
    triangular::matmul(
        gram.as_mut(),
        BlockStructure::TriangularLower,
        Accum::Add,
        a.transpose(),
        BlockStructure::Rectangular,
        a,
        BlockStructure::Rectangular,
        1.0,
        Par::Seq,
    );
}

fn trace(gram: &Mat<f64>) -> f64 {
    (0..gram.nrows()).map(|i| gram[(i, i)]).sum()
}

/// trace / λ_max of a Gram matrix given by its lower triangle.
fn from_gram(gram: &Mat<f64>) -> Result<f64, Error> {
    let n = gram.nrows();
    if n > MAX_DECOMPOSED {
        return iterated_from_gram(gram);
    }
    let values = gram.self_adjoint_eigenvalues(Side::Lower).map_err(no_convergence)?;
    Ok(trace(gram) / values[n - 1])
}

/// [`from_gram`] by Lanczos iterations instead of a decomposition, in O(n²) per iteration.
pub(super) fn iterated_from_gram(gram: &Mat<f64>) -> Result<f64, Error> {
    let mut start = gaussian_vector(&mut stream(0, "start of the Gram iteration"), gram.nrows());
    start.iter_mut().for_each(|value| *value = value.abs());
    let largest = lanczos::largest_eigenvalue(|v, out| symmetric_product(gram, v, out), start)?;
    Ok(trace(gram) / largest)
}

/// `out = G v` from the lower triangle of G, column by column.
fn symmetric_product(gram: &Mat<f64>, v: &[f64], out: &mut [f64]) {
    out.fill(0.0);
    for j in 0..v.len() {
        let column = &gram.col_as_slice(j)[j..];
        out[j] += super::dot(column, &v[j..]);
        for (value, entry) in out[j + 1..].iter_mut().zip(&column[1..]) {
            *value += entry * v[j];
        }
    }
}
