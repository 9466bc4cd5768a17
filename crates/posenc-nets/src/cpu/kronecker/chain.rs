//! Products along the axes of a tensor.

use std::ops::Range;

use faer::{Accum, Mat, MatMut, MatRef};

use super::band::{Diagonals, ROWS, RowBand};
use crate::cpu::bands::threshold;
use crate::cpu::kernels;

/// Bands are used if they need at most this share of the multiplications.
const WORTH: f64 = 0.4;

/// Numbers of an intermediate result that fit into the L2 cache.
const NUMBERS_PER_BLOCK: usize = 65_536;

/// Maximum number of rows of a block. Smaller blocks distribute better over threads.
const MAX_ROWS: usize = 64;

/// A matrix that is applied along one axis.
#[derive(Debug)]
pub struct Operator {
    pub rows: usize,
    pub columns: usize,
    /// Row-major copy for products along the leading and the middle axis, column-major copy for the last axis.
    by_row: Vec<f32>,
    by_column: Vec<f32>,
    band: Option<RowBand>,
    diagonals: Option<Diagonals>,
}

impl Operator {
    fn new(matrix: &Mat<f32>) -> Self {
        let (rows, columns) = matrix.shape();
        let by_row = (0..rows * columns).map(|i| matrix[(i / columns, i % columns)]).collect();
        let by_column = (0..rows * columns).map(|i| matrix[(i % rows, i / rows)]).collect();
        let threshold = threshold(matrix);
        let at = |i: usize, k: usize| {
            let value = matrix[(i, k)];
            if value.abs() < threshold { 0.0 } else { value }
        };
        let share = |count: usize, of: usize| count as f64 / of as f64;
        let band = Some(RowBand::new(rows, columns, at))
            .filter(|band| share(band.len(), rows.next_multiple_of(ROWS) * columns) <= WORTH);
        let diagonals = Some(Diagonals::new(rows, columns, at))
            .filter(|diagonals| share(diagonals.count(), columns) <= WORTH);
        Operator { rows, columns, by_row, by_column, band, diagonals }
    }

    /// The 1 × 1 identity, for a missing axis.
    fn one() -> Self {
        Operator::new(&Mat::from_fn(1, 1, |_, _| 1.0))
    }

    fn is_one(&self) -> bool {
        self.rows == 1 && self.columns == 1 && self.by_row[0] == 1.0
    }

    /// Number of multiplications per column of the other factor.
    fn cost(&self) -> f64 {
        match &self.diagonals {
            Some(diagonals) => (self.rows * diagonals.count()) as f64,
            None => (self.rows * self.columns) as f64,
        }
    }

    /// out ← A[rows, :] X, where X is columns × width; see [`RowBand::multiply`].
    fn leading(
        &self,
        rows: Range<usize>,
        x: &[f32],
        width: usize,
        out: &mut [f32],
        stride: usize,
        packed: &mut Vec<f32>,
    ) {
        if self.is_one() {
            out[..width].copy_from_slice(&x[..width]);
        } else if let Some(band) = &self.band {
            band.multiply(rows.start, rows.len(), x, width, out, stride, packed);
        } else {
            let (n, columns) = (rows.len(), self.columns);
            let own = &self.by_row[rows.start * columns..rows.end * columns];
            let own = MatRef::from_row_major_slice(own, n, columns);
            let x = MatRef::from_row_major_slice(&x[..columns * width], columns, width);
            // The row-major constructor applies the stride to columns (faer 0.24.4).
            let out = MatMut::from_column_major_slice_with_stride_mut(out, width, n, stride);
            kernels::multiply(out.transpose_mut(), Accum::Replace, own, x);
        }
    }

    /// Padding that [`Operator::last`] needs: numbers before the first row, and the stride of rows.
    fn padding(&self) -> (usize, usize) {
        match &self.diagonals {
            Some(diagonals) => (diagonals.before(), diagonals.stride()),
            None => (0, self.columns),
        }
    }

    /// out ← X Aᵀ for `n` rows of X, padded according to [`Operator::padding`].
    fn last(&self, n: usize, x: &mut [f32], out: &mut [f32]) {
        let Some(diagonals) = &self.diagonals else {
            return self.last_dense(n, x, out);
        };
        let (before, stride) = self.padding();
        for row in x[..n * stride].chunks_exact_mut(stride) {
            row[..before].fill(0.0);
            row[before + self.columns..].fill(0.0);
        }
        diagonals.multiply(n, &x[..n * stride], out);
    }

    fn last_dense(&self, n: usize, x: &[f32], out: &mut [f32]) {
        let (rows, columns) = (self.rows, self.columns);
        let out = MatMut::from_row_major_slice_mut(&mut out[..n * rows], n, rows);
        let x = MatRef::from_row_major_slice(&x[..n * columns], n, columns);
        let own = MatRef::from_column_major_slice(&self.by_column, rows, columns);
        kernels::multiply(out, Accum::Replace, x, own.transpose());
    }
}

/// Buffers for the intermediate results of one thread.
#[derive(Debug, Default)]
pub struct Scratch {
    leading: Vec<f32>,
    padded: Vec<f32>,
    packed: Vec<f32>,
}

/// The first `len` numbers of a buffer, which grows if needed.
pub fn at_least(buffer: &mut Vec<f32>, len: usize) -> &mut [f32] {
    if buffer.len() < len {
        buffer.resize(len, 0.0);
    }
    &mut buffer[..len]
}

/// One matrix for each of three axes; missing axes have the 1 × 1 identity.
#[derive(Debug)]
pub struct Chain {
    pub leading: Operator,
    middle: Operator,
    last: Operator,
}

impl Chain {
    /// A chain of one to three matrices, from the slowest axis to the fastest.
    pub fn new(matrices: &[Mat<f32>]) -> Self {
        let (one, operator) = (Operator::one, Operator::new);
        let (leading, middle, last) = match matrices {
            [] => (one(), one(), one()),
            [only] => (one(), one(), operator(only)),
            [leading, last] => (operator(leading), one(), operator(last)),
            [leading, middle, last, ..] => (operator(leading), operator(middle), operator(last)),
        };
        Chain { leading, middle, last }
    }

    /// Size of one slice of the leading axis, before and after the product.
    pub fn slice(&self) -> [usize; 2] {
        let Chain { middle, last, .. } = self;
        [middle.columns * last.columns, middle.rows * last.rows]
    }

    /// Number of multiplications of the whole product.
    pub fn cost(&self) -> f64 {
        let Chain { leading, middle, last } = self;
        let lead = leading.cost() * self.slice()[0] as f64;
        let mid = if middle.is_one() { 0.0 } else { middle.cost() * last.columns as f64 };
        lead + leading.rows as f64 * (mid + last.cost() * middle.rows as f64)
    }

    /// Blocks of rows of the leading axis; independent of the machine and of the number of threads.
    pub fn blocks(rows: usize, slice: usize) -> Vec<Range<usize>> {
        let fit = (NUMBERS_PER_BLOCK / slice.max(1)).clamp(ROWS, MAX_ROWS) / ROWS * ROWS;
        (0..rows).step_by(fit).map(|top| top..(top + fit).min(rows)).collect()
    }

    pub fn row_blocks(&self) -> Vec<Range<usize>> {
        let [before, after] = self.slice();
        Chain::blocks(self.leading.rows, before.max(after))
    }

    /// Computes the slices `rows` of the product with the whole tensor `x`.
    pub fn block(&self, rows: Range<usize>, x: &[f32], scratch: &mut Scratch, out: &mut [f32]) {
        let n = rows.len();
        let [width, _] = self.slice();
        let Scratch { leading, padded, packed } = scratch;
        if self.middle.is_one() {
            let (before, stride) = self.last.padding();
            let padded = at_least(padded, n * stride);
            self.leading.leading(rows, x, width, &mut padded[before..], stride, packed);
            self.last.last(n, padded, out);
        } else {
            let leading = at_least(leading, n * width);
            self.leading.leading(rows, x, width, leading, width, packed);
            self.tail_of(n, leading, padded, packed, out);
        }
    }

    /// Computes the product of `n` slices along all axes except the leading one.
    pub fn tail(&self, n: usize, x: &[f32], scratch: &mut Scratch, out: &mut [f32]) {
        self.tail_of(n, x, &mut scratch.padded, &mut scratch.packed, out);
    }

    fn tail_of(
        &self,
        n: usize,
        x: &[f32],
        padded: &mut Vec<f32>,
        packed: &mut Vec<f32>,
        out: &mut [f32],
    ) {
        let (before, stride) = self.last.padding();
        let (middle, columns) = (&self.middle, self.last.columns);
        if middle.is_one() {
            if self.last.diagonals.is_none() {
                return self.last.last_dense(n, x, out);
            }
            let padded = at_least(padded, n * stride);
            for (row, x) in padded.chunks_exact_mut(stride).zip(x.chunks_exact(columns)) {
                row[before..before + columns].copy_from_slice(x);
            }
            return self.last.last(n, padded, out);
        }
        let size = middle.rows * stride;
        let padded = at_least(padded, n * size);
        for (slice, x) in
            padded.chunks_exact_mut(size).zip(x.chunks_exact(middle.columns * columns))
        {
            middle.leading(0..middle.rows, x, columns, &mut slice[before..], stride, packed);
        }
        self.last.last(n * middle.rows, padded, out);
    }

    /// Computes the slices `rows` of the product along the leading axis alone.
    pub fn lead(
        &self,
        rows: Range<usize>,
        x: &[f32],
        width: usize,
        scratch: &mut Scratch,
        out: &mut [f32],
    ) {
        self.leading.leading(rows, x, width, out, width, &mut scratch.packed);
    }
}
