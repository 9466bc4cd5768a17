//! Double-precision products with the Gram matrix of a matrix in single precision.

use std::ops::Range;

use faer::MatRef;

use posenc_math::vectorized::vectorized;

/// Partial sums of an inner product; a multiple of the vector width on every machine.
const LANES: usize = 16;

/// Number of columns that are read together.
const TOGETHER: usize = 4;

/// Number of rows per block of long columns. With a few hundred columns, a block stays in cache between the two passes
/// over it.
const BLOCK: usize = 256;

/// The smaller Gram matrix of H, m × n with contiguous columns h_j: HHᵀ = Σ h_j h_jᵀ if m ≤ n, else
/// HᵀH.
pub(super) struct Gram<'a> {
    columns: Vec<&'a [f32]>,
    rows: usize,
    /// Buffer for a block of H x.
    image: Vec<f64>,
}

impl<'a> Gram<'a> {
    /// Returns `None` if H has no entries or its columns are not contiguous.
    pub fn new(h: MatRef<'a, f32>) -> Option<Self> {
        let h = h.try_as_col_major()?;
        let (rows, count) = (h.nrows(), h.ncols());
        let columns = (0..count).map(|j| h.col(j).as_slice()).collect();
        (rows > 0 && count > 0).then(|| Gram { columns, rows, image: vec![0.0; BLOCK] })
    }

    fn is_outer(&self) -> bool {
        self.rows <= self.columns.len()
    }

    pub fn size(&self) -> usize {
        self.rows.min(self.columns.len())
    }

    /// Sum of the squares of all entries.
    pub fn trace(&self) -> f64 {
        let columns = &self.columns;
        vectorized(
            #[inline(always)]
            || {
                let mut trace = 0.0;
                for column in columns {
                    trace += sum_of_squares(column);
                }
                trace
            },
        )
    }

    pub fn has_negative(&self) -> bool {
        let columns = &self.columns;
        vectorized(
            #[inline(always)]
            || {
                let mut least = 0.0f32;
                for column in columns {
                    least = least.min(least_of(column));
                }
                least < 0.0
            },
        )
    }

    /// H·1 for HHᵀ, Hᵀ·1 for HᵀH.
    pub fn sums(&self) -> Vec<f64> {
        let (columns, is_outer, ones) = (&self.columns, self.is_outer(), vec![1.0; self.rows]);
        let mut sums = vec![0.0; self.size()];
        vectorized(
            #[inline(always)]
            || {
                if is_outer {
                    for four in columns.chunks(TOGETHER) {
                        add_multiples(padded(four, 0..ones.len()), [1.0; TOGETHER], &mut sums);
                    }
                } else {
                    for (column, sum) in columns.iter().zip(&mut sums) {
                        *sum = inner(column, &ones);
                    }
                }
            },
        );
        sums
    }

    /// `out` = A `x`.
    pub fn apply(&mut self, x: &[f64], out: &mut [f64]) {
        let (is_outer, rows) = (self.is_outer(), self.rows);
        let (columns, image) = (&self.columns, &mut self.image);
        vectorized(
            #[inline(always)]
            || {
                out.fill(0.0);
                if is_outer {
                    for four in columns.chunks(TOGETHER) {
                        let four = padded(four, 0..rows);
                        let mut products = [0.0; TOGETHER];
                        for k in 0..TOGETHER {
                            products[k] = inner(four[k], x);
                        }
                        add_multiples(four, products, out);
                    }
                    return;
                }
                for first in (0..rows).step_by(BLOCK) {
                    let block = first..rows.min(first + BLOCK);
                    let image = &mut image[..block.len()];
                    image.fill(0.0);
                    for (four, x) in columns.chunks(TOGETHER).zip(x.chunks(TOGETHER)) {
                        let mut factors = [0.0; TOGETHER];
                        factors[..x.len()].copy_from_slice(x);
                        add_multiples(padded(four, block.clone()), factors, image);
                    }
                    for (column, out) in columns.iter().zip(out.iter_mut()) {
                        *out += inner(&column[block.clone()], image);
                    }
                }
            },
        );
    }
}

/// The given rows of up to four columns, with empty slices for missing columns.
#[inline(always)]
fn padded<'a>(columns: &[&'a [f32]], rows: Range<usize>) -> [&'a [f32]; TOGETHER] {
    let mut padded: [&[f32]; TOGETHER] = [&[]; TOGETHER];
    for (padded, column) in padded.iter_mut().zip(columns) {
        *padded = &column[rows.clone()];
    }
    padded
}

/// Σ value², in [`LANES`] partial sums.
#[inline(always)]
fn sum_of_squares(values: &[f32]) -> f64 {
    let mut partial = [0.0; LANES];
    let chunks = values.chunks_exact(LANES);
    let mut sum = 0.0;
    for &value in chunks.remainder() {
        sum += f64::from(value) * f64::from(value);
    }
    for chunk in chunks {
        for lane in 0..LANES {
            let value = f64::from(chunk[lane]);
            partial[lane] += value * value;
        }
    }
    for partial in partial {
        sum += partial;
    }
    sum
}

/// The minimum of all values and 0.
#[inline(always)]
fn least_of(values: &[f32]) -> f32 {
    let mut least = [0.0f32; LANES];
    let chunks = values.chunks_exact(LANES);
    for (least, &value) in least.iter_mut().zip(chunks.remainder()) {
        *least = if value < *least { value } else { *least };
    }
    for chunk in chunks {
        for lane in 0..LANES {
            least[lane] = if chunk[lane] < least[lane] { chunk[lane] } else { least[lane] };
        }
    }
    let mut all = 0.0;
    for least in least {
        all = if least < all { least } else { all };
    }
    all
}

/// Inner product of a column with `x`, in [`LANES`] partial sums.
#[inline(always)]
fn inner(column: &[f32], x: &[f64]) -> f64 {
    let mut partial = [0.0; LANES];
    let (h_chunks, x_chunks) = (column.chunks_exact(LANES), x.chunks_exact(LANES));
    let mut sum = 0.0;
    for (&h, x) in h_chunks.remainder().iter().zip(x_chunks.remainder()) {
        sum += f64::from(h) * x;
    }
    for (h, x) in h_chunks.zip(x_chunks) {
        for lane in 0..LANES {
            partial[lane] += f64::from(h[lane]) * x[lane];
        }
    }
    for partial in partial {
        sum += partial;
    }
    sum
}

/// `out` += Σ_k factors_k · columns_k.
#[inline(always)]
fn add_multiples(columns: [&[f32]; TOGETHER], factors: [f64; TOGETHER], out: &mut [f64]) {
    let [a, b, c, d] = columns;
    if d.len() != out.len() {
        for (column, factor) in columns.iter().zip(factors) {
            for (out, &h) in out.iter_mut().zip(*column) {
                *out += factor * f64::from(h);
            }
        }
        return;
    }
    let [fa, fb, fc, fd] = factors;
    let (a, b, c) = (&a[..d.len()], &b[..d.len()], &c[..d.len()]);
    for (i, out) in out.iter_mut().enumerate() {
        let first = fa * f64::from(a[i]) + fb * f64::from(b[i]);
        *out += first + (fc * f64::from(c[i]) + fd * f64::from(d[i]));
    }
}
