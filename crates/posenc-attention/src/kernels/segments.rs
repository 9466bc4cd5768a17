//! Attention on the CPU over consecutive rows: batch items of one length, or segments of different lengths.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use posenc_math::vectorized::vectorized;

use super::exponential::exp;

/// Rows of a causal block; columns to the right of the diagonal of its last row are not computed.
const BLOCK: usize = 48;

/// Number of partial sums of a row: a multiple of the SIMD width of every machine.
const LANES: usize = 16;

pub(super) fn matrix(numbers: &[f32], rows: usize, columns: usize) -> MatRef<'_, f32> {
    MatRef::from_row_major_slice(numbers, rows, columns)
}

pub(super) fn matrix_mut(numbers: &mut [f32], rows: usize, columns: usize) -> MatMut<'_, f32> {
    MatMut::from_row_major_slice_mut(numbers, rows, columns)
}

/// Σ f(x, y) over two slices of one length, in [`LANES`] partial sums.
#[inline(always)]
pub(super) fn sum(x: &[f32], y: &[f32], f: impl Fn(f32, f32) -> f32) -> f32 {
    let mut lanes = [0.0; LANES];
    let (x, rest_x) = x.as_chunks::<LANES>();
    let (y, rest_y) = y.as_chunks::<LANES>();
    for (x, y) in x.iter().zip(y) {
        for lane in 0..LANES {
            lanes[lane] += f(x[lane], y[lane]);
        }
    }
    let rest: f32 = rest_x.iter().zip(rest_y).map(|(&x, &y)| f(x, y)).sum();
    lanes.iter().sum::<f32>() + rest
}

/// Largest number of a slice, in [`LANES`] partial maxima.
#[inline(always)]
pub(super) fn largest(x: &[f32]) -> f32 {
    let more = |a: f32, b: f32| if b > a { b } else { a };
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let (x, rest) = x.as_chunks::<LANES>();
    for x in x {
        for lane in 0..LANES {
            lanes[lane] = more(lanes[lane], x[lane]);
        }
    }
    lanes.iter().chain(rest).fold(f32::NEG_INFINITY, |a, &b| more(a, b))
}

/// A range of queries, and the range of keys that they attend to.
#[derive(Debug, Clone, Copy)]
struct Item {
    /// Row of the first query, and the number of queries.
    queries: [usize; 2],
    /// Row of the first key and value, and the number of keys.
    keys: [usize; 2],
    /// Offset of the weights of its first head.
    weights: usize,
}

/// Blocks of rows as `(start, end, columns)`, where `columns` is the number of leading columns that the block needs.
fn blocks(rows: usize, columns: usize, causal: bool) -> Vec<(usize, usize, usize)> {
    let size = if causal { BLOCK } else { rows.max(1) };
    let block = |start: usize| {
        let end = (start + size).min(rows);
        (start, end, if causal { end.min(columns) } else { columns })
    };
    (0..rows).step_by(size).map(block).collect()
}

/// Turns a row of scores into attention weights: softmax(scale · scores + bias).
#[inline(always)]
fn soften(row: &mut [f32], bias: Option<&[f32]>, scale: f32) {
    match bias {
        None => row.iter_mut().for_each(|value| *value *= scale),
        Some(bias) => {
            for (value, bias) in row.iter_mut().zip(bias) {
                *value = *value * scale + bias;
            }
        }
    }
    let top = largest(row);
    for value in row.iter_mut() {
        *value = exp(*value - top);
    }
    let scale = 1.0 / sum(row, row, |x, _| x);
    for value in row.iter_mut() {
        *value *= scale;
    }
}

/// Which rows attend to which, for rows of `heads` concatenated heads of equal width.
#[derive(Debug, Clone)]
pub struct Layout {
    heads: usize,
    width: usize,
    causal: bool,
    /// Whether the bias of the caller counts.
    pub(super) has_bias: bool,
    items: Vec<Item>,
}

impl Layout {
    /// Queries `[B, T, H d]` on keys `[B, S, H d]`.
    pub fn batch([batch, t, columns]: [usize; 3], s: usize, heads: usize, causal: bool) -> Self {
        let item = |i| Item { queries: [i * t, t], keys: [i * s, s], weights: i * heads * t * s };
        let items = (0..batch).map(item).collect();
        Layout { heads, width: columns / heads, causal, has_bias: true, items }
    }

    /// Segments of the given lengths that attend to themselves.
    pub fn segments(lengths: &[usize], columns: usize, heads: usize, causal: bool) -> Self {
        let (mut row, mut weights) = (0, 0);
        let next = |&length: &usize| {
            let item = Item { queries: [row, length], keys: [row, length], weights };
            (row, weights) = (row + length, weights + heads * length * length);
            item
        };
        let items = lengths.iter().map(next).collect();
        Layout { heads, width: columns / heads, causal, has_bias: false, items }
    }

    /// One head of `rows` rows from row `first` on.
    fn view<'a>(
        &self,
        numbers: &'a [f32],
        first: usize,
        rows: usize,
        head: usize,
    ) -> MatRef<'a, f32> {
        let stride = self.heads * self.width;
        let all = matrix(&numbers[first * stride..][..rows * stride], rows, stride);
        all.subcols(head * self.width, self.width)
    }

    fn view_mut<'a>(
        &self,
        numbers: &'a mut [f32],
        first: usize,
        rows: usize,
        head: usize,
    ) -> MatMut<'a, f32> {
        let stride = self.heads * self.width;
        let all = matrix_mut(&mut numbers[first * stride..][..rows * stride], rows, stride);
        all.subcols_mut(head * self.width, self.width)
    }

    /// The attention outputs and weights. `bias(item, query)` is added to the scores of a query.
    pub(super) fn attend<'a>(
        &self,
        [q, k, v]: [&[f32]; 3],
        bias: impl Fn(usize, usize) -> Option<&'a [f32]>,
    ) -> (Vec<f32>, Vec<f32>) {
        let scale = 1.0 / (self.width as f32).sqrt();
        let size = |item: &Item| self.heads * item.queries[1] * item.keys[1];
        let mut weights = vec![0.0; self.items.iter().map(size).sum()];
        let mut out = vec![0.0; q.len()];
        for (index, item) in self.items.iter().enumerate() {
            let ([query, t], [key, s]) = (item.queries, item.keys);
            for head in 0..self.heads {
                let p = &mut weights[item.weights + head * t * s..][..t * s];
                for (start, end, columns) in blocks(t, s, self.causal) {
                    let rows = end - start;
                    let qs = self.view(q, query + start, rows, head);
                    let ks = self.view(k, key, columns, head).transpose();
                    let block = &mut p[start * s..end * s];
                    let scores = matrix_mut(block, rows, s).subcols_mut(0, columns);
                    matmul(scores, Accum::Replace, qs, ks, 1.0, Par::Seq);
                    vectorized(
                        #[inline(always)]
                        || {
                            for (i, row) in block.chunks_exact_mut(s).enumerate() {
                                // Entries above the diagonal have no weight.
                                let seen = match self.causal {
                                    true => columns.min(start + i + 1),
                                    false => columns,
                                };
                                let (seen, unseen) = row[..columns].split_at_mut(seen);
                                soften(seen, bias(index, start + i), scale);
                                unseen.fill(0.0);
                            }
                        },
                    );
                    let vs = self.view(v, key, columns, head);
                    let target = self.view_mut(&mut out, query + start, rows, head);
                    let ps = matrix(&p[start * s..end * s], rows, s).subcols(0, columns);
                    matmul(target, Accum::Replace, ps, vs, 1.0, Par::Seq);
                }
            }
        }
        (out, weights)
    }

    /// Gradients with respect to queries, keys and values, for weights `p` and the gradient `g` of the result.
    pub(super) fn backward(&self, [q, k, v]: [&[f32]; 3], p: &[f32], g: &[f32]) -> [Vec<f32>; 3] {
        let scale = 1.0 / (self.width as f32).sqrt();
        let [mut dq, mut dk, mut dv] = [q, k, v].map(|numbers| vec![0.0; numbers.len()]);
        let mut change = Vec::new();
        for item in &self.items {
            let ([query, t], [key, s]) = (item.queries, item.keys);
            for head in 0..self.heads {
                let p = &p[item.weights + head * t * s..][..t * s];
                for (start, end, columns) in blocks(t, s, self.causal) {
                    let rows = end - start;
                    let ps = matrix(&p[start * s..end * s], rows, s).subcols(0, columns);
                    let gs = self.view(g, query + start, rows, head);
                    let qs = self.view(q, query + start, rows, head);
                    let vs = self.view(v, key, columns, head);
                    let ks = self.view(k, key, columns, head);
                    let target = self.view_mut(&mut dv, key, columns, head);
                    matmul(target, Accum::Add, ps.transpose(), gs, 1.0, Par::Seq);
                    if change.len() < rows * s {
                        change.resize(rows * s, 0.0);
                    }
                    let change = &mut change[..rows * s];
                    let dp = matrix_mut(change, rows, s).subcols_mut(0, columns);
                    matmul(dp, Accum::Replace, gs, vs.transpose(), 1.0, Par::Seq);
                    vectorized(
                        #[inline(always)]
                        || {
                            let weights = p[start * s..end * s].chunks_exact(s);
                            for (row, p) in change.chunks_exact_mut(s).zip(weights) {
                                let (row, p) = (&mut row[..columns], &p[..columns]);
                                let total = sum(row, p, |x, p| x * p);
                                for (value, p) in row.iter_mut().zip(p) {
                                    *value = scale * p * (*value - total);
                                }
                            }
                        },
                    );
                    let ds = matrix(change, rows, s).subcols(0, columns);
                    let target = self.view_mut(&mut dq, query + start, rows, head);
                    matmul(target, Accum::Replace, ds, ks, 1.0, Par::Seq);
                    let target = self.view_mut(&mut dk, key, columns, head);
                    matmul(target, Accum::Add, ds.transpose(), qs, 1.0, Par::Seq);
                }
            }
        }
        [dq, dk, dv]
    }
}
