//! The operations on the CPU: products by faer, and one pass over memory for everything between them.
//!
//! All run on the calling thread; sums have one order. Anything but single precision goes the composed
//! way.

use std::borrow::Cow;

use burn::backend::Flex;
use burn::backend::tensor::FloatTensor;
use burn::tensor::{DType, TensorData};
use burn_flex::FlexTensor;
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use posenc_math::vectorized::vectorized;

use super::Kernels;
use super::composed::{self, CUBE, SLOPE};
use super::exponential::exp;

/// Partial sums of a row; a whole number of vectors on every machine.
const LANES: usize = 16;
/// Rows of a causal block: what lies above the diagonal of its last row is not computed.
const BLOCK: usize = 48;

fn is_single(tensor: &FlexTensor) -> bool {
    tensor.dtype() == DType::F32
}

fn dims(tensor: &FlexTensor) -> Vec<usize> {
    tensor.layout().shape().to_vec()
}

/// The numbers, row by row.
fn read(tensor: &FlexTensor) -> Cow<'_, [f32]> {
    match tensor.as_slice::<f32>() {
        Some(numbers) => Cow::Borrowed(numbers),
        None => {
            let contiguous = tensor.to_contiguous();
            Cow::Owned(contiguous.as_slice::<f32>().map(<[f32]>::to_vec).unwrap_or_default())
        }
    }
}

fn tensor(numbers: Vec<f32>, shape: &[usize]) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(numbers, shape.to_vec()))
}

fn matrix(numbers: &[f32], rows: usize, columns: usize) -> MatRef<'_, f32> {
    MatRef::from_row_major_slice(numbers, rows, columns)
}

fn matrix_mut(numbers: &mut [f32], rows: usize, columns: usize) -> MatMut<'_, f32> {
    MatMut::from_row_major_slice_mut(numbers, rows, columns)
}

/// Σ f(x, y) over two slices of one length, in [`LANES`] partial sums.
#[inline(always)]
fn sum(x: &[f32], y: &[f32], f: impl Fn(f32, f32) -> f32) -> f32 {
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

/// Largest number of a slice, in as many parts.
#[inline(always)]
fn largest(x: &[f32]) -> f32 {
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

/// Sum of the rows of a matrix of `columns` columns.
fn column_sums(numbers: &[f32], columns: usize) -> Vec<f32> {
    let mut sums = vec![0.0; columns];
    vectorized(
        #[inline(always)]
        || {
            for row in numbers.chunks_exact(columns) {
                for (sum, value) in sums.iter_mut().zip(row) {
                    *sum += value;
                }
            }
        },
    );
    sums
}

/// Mean and 1/√(variance + ε) of a row.
#[inline(always)]
fn moments(row: &[f32], epsilon: f32) -> (f32, f32) {
    let n = row.len() as f32;
    let mean = sum(row, row, |x, _| x) / n;
    let variance = sum(row, row, |x, _| (x - mean) * (x - mean)) / n;
    (mean, 1.0 / (variance + epsilon).sqrt())
}

/// Rows of heads: `[batch, length, heads · width]`.
#[derive(Clone, Copy)]
struct Heads {
    heads: usize,
    width: usize,
    length: usize,
}

impl Heads {
    fn new(shape: &[usize], heads: usize) -> Self {
        Heads { heads, width: shape[2] / heads, length: shape[1] }
    }

    /// Where rows `rows` of a head stand.
    fn view<'a>(
        &self,
        numbers: &'a [f32],
        batch: usize,
        head: usize,
        rows: usize,
    ) -> MatRef<'a, f32> {
        let stride = self.heads * self.width;
        let start = batch * self.length * stride;
        let all =
            MatRef::from_row_major_slice(&numbers[start..start + rows * stride], rows, stride);
        all.subcols(head * self.width, self.width)
    }

    fn view_mut<'a>(
        &self,
        numbers: &'a mut [f32],
        batch: usize,
        head: usize,
        rows: usize,
    ) -> MatMut<'a, f32> {
        let stride = self.heads * self.width;
        let start = batch * self.length * stride;
        let all = MatMut::from_row_major_slice_mut(
            &mut numbers[start..start + rows * stride],
            rows,
            stride,
        );
        all.subcols_mut(head * self.width, self.width)
    }
}

/// Blocks of rows `start..end` with the number of columns that matter to them.
fn blocks(rows: usize, columns: usize, causal: bool) -> Vec<(usize, usize, usize)> {
    if !causal {
        return vec![(0, rows, columns)];
    }
    let block = |start: usize| {
        let end = (start + BLOCK).min(rows);
        (start, end, end.min(columns))
    };
    (0..rows).step_by(BLOCK).map(block).collect()
}

/// Row of scores to row of weights: softmax(scale · scores + bias).
#[inline(always)]
fn soften(row: &mut [f32], bias: &[f32], scale: f32) {
    for (value, bias) in row.iter_mut().zip(bias) {
        *value = *value * scale + bias;
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

impl Kernels for Flex {
    fn affine(
        x: FloatTensor<Self>,
        weights: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        if !is_single(&x) {
            return composed::affine::<Self>(x, weights, bias);
        }
        let (shape, inner) = (dims(&x), dims(&weights));
        let (n, a, b) = (shape[0], inner[0], inner[1]);
        let (x, w, bias) = (read(&x), read(&weights), read(&bias));
        let mut y = vec![0.0; n * b];
        for row in y.chunks_exact_mut(b.max(1)) {
            row.copy_from_slice(&bias);
        }
        matmul(
            matrix_mut(&mut y, n, b),
            Accum::Add,
            matrix(&x, n, a),
            matrix(&w, a, b),
            1.0,
            Par::Seq,
        );
        tensor(y, &[n, b])
    }

    fn affine_backward(
        x: FloatTensor<Self>,
        weights: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        if !is_single(&x) {
            return composed::affine_backward::<Self>(x, weights, gradient);
        }
        let (shape, inner) = (dims(&x), dims(&weights));
        let (n, a, b) = (shape[0], inner[0], inner[1]);
        let (x, w, g) = (read(&x), read(&weights), read(&gradient));
        let (mut dx, mut dw) = (vec![0.0; n * a], vec![0.0; a * b]);
        let gradient = matrix(&g, n, b);
        let (w, x) = (matrix(&w, a, b).transpose(), matrix(&x, n, a).transpose());
        matmul(matrix_mut(&mut dx, n, a), Accum::Replace, gradient, w, 1.0, Par::Seq);
        matmul(matrix_mut(&mut dw, a, b), Accum::Replace, x, gradient, 1.0, Par::Seq);
        (tensor(dx, &[n, a]), tensor(dw, &[a, b]), tensor(column_sums(&g, b.max(1)), &[b]))
    }

    fn normalize_rows(
        x: FloatTensor<Self>,
        gain: FloatTensor<Self>,
        shift: FloatTensor<Self>,
        epsilon: f64,
    ) -> FloatTensor<Self> {
        if !is_single(&x) {
            return composed::layer_norm::<Self>(x, gain, shift, epsilon);
        }
        let shape = dims(&x);
        let (x, gain, shift) = (read(&x), read(&gain), read(&shift));
        let mut y = vec![0.0; x.len()];
        let d = shape[1].max(1);
        vectorized(
            #[inline(always)]
            || {
                for (row, out) in x.chunks_exact(d).zip(y.chunks_exact_mut(d)) {
                    let (mean, scale) = moments(row, epsilon as f32);
                    let affine = gain.iter().zip(shift.iter());
                    for ((out, x), (gain, shift)) in out.iter_mut().zip(row).zip(affine) {
                        *out = (x - mean) * scale * gain + shift;
                    }
                }
            },
        );
        tensor(y, &shape)
    }

    fn normalize_rows_backward(
        x: FloatTensor<Self>,
        gain: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        epsilon: f64,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        if !is_single(&x) {
            return composed::layer_norm_backward::<Self>(x, gain, gradient, epsilon);
        }
        let shape = dims(&x);
        let d = shape[1].max(1);
        let (x, gain, g) = (read(&x), read(&gain), read(&gradient));
        let (mut dx, mut dgain) = (vec![0.0; x.len()], vec![0.0; d]);
        let mut normal = vec![0.0; d];
        vectorized(
            #[inline(always)]
            || {
                for ((row, g), out) in
                    x.chunks_exact(d).zip(g.chunks_exact(d)).zip(dx.chunks_exact_mut(d))
                {
                    let (mean, scale) = moments(row, epsilon as f32);
                    for (normal, x) in normal.iter_mut().zip(row) {
                        *normal = (x - mean) * scale;
                    }
                    for ((out, g), gain) in out.iter_mut().zip(g).zip(gain.iter()) {
                        *out = g * gain;
                    }
                    let level = sum(out, out, |x, _| x) / d as f32;
                    let along = sum(out, &normal, |x, n| x * n) / d as f32;
                    for (out, normal) in out.iter_mut().zip(&normal) {
                        *out = scale * (*out - level - normal * along);
                    }
                    for ((sum, g), normal) in dgain.iter_mut().zip(g).zip(&normal) {
                        *sum += g * normal;
                    }
                }
            },
        );
        (tensor(dx, &shape), tensor(dgain, &[shape[1]]), tensor(column_sums(&g, d), &[shape[1]]))
    }

    fn smooth_rectifier(x: FloatTensor<Self>) -> FloatTensor<Self> {
        if !is_single(&x) {
            return composed::smooth_rectifier::<Self>(x);
        }
        let shape = dims(&x);
        let mut y = read(&x).into_owned();
        let (slope, cube) = (SLOPE as f32, CUBE as f32);
        vectorized(
            #[inline(always)]
            || {
                for y in y.iter_mut() {
                    let x = *y;
                    *y = x / (1.0 + exp(-slope * x * (1.0 + cube * x * x)));
                }
            },
        );
        tensor(y, &shape)
    }

    fn smooth_rectifier_backward(
        x: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        if !is_single(&x) {
            return composed::smooth_rectifier_backward::<Self>(x, gradient);
        }
        let shape = dims(&x);
        let mut dx = read(&gradient).into_owned();
        let x = read(&x);
        let (slope, cube) = (SLOPE as f32, CUBE as f32);
        vectorized(
            #[inline(always)]
            || {
                for (dx, &x) in dx.iter_mut().zip(x.iter()) {
                    let square = x * x;
                    let gate = 1.0 / (1.0 + exp(-slope * x * (1.0 + cube * square)));
                    let steep = slope * (1.0 + 3.0 * cube * square);
                    *dx *= gate + x * gate * (1.0 - gate) * steep;
                }
            },
        );
        tensor(dx, &shape)
    }

    fn attend(
        query: FloatTensor<Self>,
        key: FloatTensor<Self>,
        value: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        heads: usize,
        causal: bool,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        if !is_single(&query) {
            return composed::attend::<Self>(query, key, value, bias, heads);
        }
        let (shape, key_shape, bias_shape) = (dims(&query), dims(&key), dims(&bias));
        let (of_query, of_key) = (Heads::new(&shape, heads), Heads::new(&key_shape, heads));
        let (batch, t, s) = (shape[0], shape[1], key_shape[1]);
        let [q, k, v, bias] = [&query, &key, &value, &bias].map(read);
        let scale = 1.0 / (of_query.width as f32).sqrt();
        let mut weights = vec![0.0; batch * heads * t * s];
        let mut out = vec![0.0; q.len()];
        // Rows of bias: those of the item, of row i; either may be shared.
        let bias_row = |item: usize, i: usize| {
            let (item, i) = (item.min(bias_shape[0] - 1), i.min(bias_shape[2] - 1));
            &bias[(item * bias_shape[2] + i) * s..][..s]
        };
        for item in 0..batch {
            for head in 0..heads {
                let p = &mut weights[(item * heads + head) * t * s..][..t * s];
                for (start, end, columns) in blocks(t, s, causal) {
                    let rows = end - start;
                    let qs = of_query.view(&q, item, head, end).subrows(start, rows);
                    let ks = of_key.view(&k, item, head, columns).transpose();
                    let block = &mut p[start * s..end * s];
                    let scores = matrix_mut(block, rows, s).subcols_mut(0, columns);
                    matmul(scores, Accum::Replace, qs, ks, 1.0, Par::Seq);
                    vectorized(
                        #[inline(always)]
                        || {
                            for (i, row) in block.chunks_exact_mut(s).enumerate() {
                                // What is above the diagonal has no weight.
                                let seen =
                                    if causal { columns.min(start + i + 1) } else { columns };
                                let (seen, unseen) = row[..columns].split_at_mut(seen);
                                soften(seen, bias_row(item, start + i), scale);
                                unseen.fill(0.0);
                            }
                        },
                    );
                    let vs = of_key.view(&v, item, head, columns);
                    let target =
                        of_query.view_mut(&mut out, item, head, end).subrows_mut(start, rows);
                    let ps = matrix(&p[start * s..end * s], rows, s).subcols(0, columns);
                    matmul(target, Accum::Replace, ps, vs, 1.0, Par::Seq);
                }
            }
        }
        (tensor(out, &shape), tensor(weights, &[batch, heads, t, s]))
    }

    fn attend_backward(
        query: FloatTensor<Self>,
        key: FloatTensor<Self>,
        value: FloatTensor<Self>,
        weights: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        causal: bool,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        if !is_single(&query) {
            return composed::attend_backward::<Self>(query, key, value, weights, gradient);
        }
        let (shape, key_shape) = (dims(&query), dims(&key));
        let heads = dims(&weights)[1];
        let (of_query, of_key) = (Heads::new(&shape, heads), Heads::new(&key_shape, heads));
        let (batch, t, s) = (shape[0], shape[1], key_shape[1]);
        let [q, k, v, p, g] = [&query, &key, &value, &weights, &gradient].map(read);
        let scale = 1.0 / (of_query.width as f32).sqrt();
        let mut dq = vec![0.0; q.len()];
        let (mut dk, mut dv) = (vec![0.0; k.len()], vec![0.0; v.len()]);
        let mut change = vec![0.0; t.min(if causal { BLOCK } else { t }) * s];
        for item in 0..batch {
            for head in 0..heads {
                let p = &p[(item * heads + head) * t * s..][..t * s];
                for (start, end, columns) in blocks(t, s, causal) {
                    let rows = end - start;
                    let ps = matrix(&p[start * s..end * s], rows, s).subcols(0, columns);
                    let gs = of_query.view(&g, item, head, end).subrows(start, rows);
                    let qs = of_query.view(&q, item, head, end).subrows(start, rows);
                    let vs = of_key.view(&v, item, head, columns);
                    let ks = of_key.view(&k, item, head, columns);
                    let target = of_key.view_mut(&mut dv, item, head, columns);
                    matmul(target, Accum::Add, ps.transpose(), gs, 1.0, Par::Seq);
                    let change = &mut change[..rows * s];
                    let dp = matrix_mut(change, rows, s).subcols_mut(0, columns);
                    matmul(dp, Accum::Replace, gs, vs.transpose(), 1.0, Par::Seq);
                    vectorized(
                        #[inline(always)]
                        || {
                            for (row, p) in change
                                .chunks_exact_mut(s)
                                .zip(p[start * s..end * s].chunks_exact(s))
                            {
                                let (row, p) = (&mut row[..columns], &p[..columns]);
                                let total = sum(row, p, |x, p| x * p);
                                for (value, p) in row.iter_mut().zip(p) {
                                    *value = scale * p * (*value - total);
                                }
                            }
                        },
                    );
                    let ds = matrix(change, rows, s).subcols(0, columns);
                    let target =
                        of_query.view_mut(&mut dq, item, head, end).subrows_mut(start, rows);
                    matmul(target, Accum::Replace, ds, ks, 1.0, Par::Seq);
                    let target = of_key.view_mut(&mut dk, item, head, columns);
                    matmul(target, Accum::Add, ds.transpose(), qs, 1.0, Par::Seq);
                }
            }
        }
        (tensor(dq, &shape), tensor(dk, &key_shape), tensor(dv, &key_shape))
    }
}
