//! The operations on the CPU: matrix products by faer, and one pass over memory for everything between them.
//!
//! All operations run on the calling thread, and sums have a fixed order.

use std::borrow::Cow;

use burn::backend::Flex;
use burn::tensor::TensorData;
use burn_flex::FlexTensor;
use faer::linalg::matmul::matmul;
use faer::{Accum, Par};
use posenc_math::vectorized::vectorized;

use super::exponential::exp;
use super::segments::{Layout, largest, matrix, matrix_mut, sum};
use super::{AdamStep, CUBE, Kernels, SLOPE, Updates};

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

impl Kernels for Flex {
    fn affine(x: FlexTensor, weights: FlexTensor, bias: FlexTensor) -> FlexTensor {
        let (shape, inner) = (dims(&x), dims(&weights));
        let (n, a, b) = (shape[0], inner[0], inner[1]);
        let (x, w, bias) = (read(&x), read(&weights), read(&bias));
        let mut y = vec![0.0; n * b];
        for row in y.chunks_exact_mut(b.max(1)) {
            row.copy_from_slice(&bias);
        }
        let (x, w) = (matrix(&x, n, a), matrix(&w, a, b));
        matmul(matrix_mut(&mut y, n, b), Accum::Add, x, w, 1.0, Par::Seq);
        tensor(y, &[n, b])
    }

    fn normalize_rows(
        x: FlexTensor,
        gain: FlexTensor,
        shift: FlexTensor,
        epsilon: f64,
    ) -> FlexTensor {
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

    fn gelu_tanh(x: FlexTensor) -> FlexTensor {
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

    fn attend(
        query: FlexTensor,
        key: FlexTensor,
        value: FlexTensor,
        bias: FlexTensor,
        layout: Layout,
    ) -> (FlexTensor, FlexTensor) {
        let bias_shape = dims(&bias);
        let keys = bias_shape[3];
        let [q, k, v, bias] = [&query, &key, &value, &bias].map(read);
        // The bias of row i of an item; either dimension may be broadcast.
        let bias_row = |item: usize, i: usize| {
            let (item, i) = (item.min(bias_shape[0] - 1), i.min(bias_shape[2] - 1));
            Some(&bias[(item * bias_shape[2] + i) * keys..][..keys])
        };
        let (out, weights) = match layout.has_bias {
            true => layout.attend([&q, &k, &v], bias_row),
            false => layout.attend([&q, &k, &v], |_, _| None),
        };
        let count = weights.len();
        (tensor(out, &dims(&query)), tensor(weights, &[count]))
    }

    fn cross_entropy(scores: FlexTensor, targets: Vec<usize>) -> FlexTensor {
        let columns = dims(&scores)[1].max(1);
        let scores = read(&scores);
        let mut row = vec![0.0; columns];
        let mut total = 0.0;
        vectorized(
            #[inline(always)]
            || {
                for (scores, &target) in scores.chunks_exact(columns).zip(&targets) {
                    let top = largest(scores);
                    for (value, score) in row.iter_mut().zip(scores) {
                        *value = exp(score - top);
                    }
                    let sum = sum(&row, &row, |x, _| x);
                    total += f64::from(sum.ln() + top - scores[target]);
                }
            },
        );
        tensor(vec![(total / targets.len() as f64) as f32], &[1])
    }
}

impl Updates for Flex {
    fn adam(
        theta: FlexTensor,
        mean: FlexTensor,
        squares: FlexTensor,
        gradient: FlexTensor,
        step: AdamStep,
    ) -> (FlexTensor, FlexTensor, FlexTensor) {
        let shape = dims(&theta);
        let [mut theta, mut mean, mut squares] =
            [theta, mean, squares].map(|tensor| read(&tensor).into_owned());
        let gradient = read(&gradient);
        // Each constant is rounded to `f32` separately.
        let [factor, root, epsilon, rate, decay] =
            [step.factor, step.root, step.epsilon, step.rate, step.decay].map(|v| v as f32);
        let ([keep1, keep2], [take1, take2]) =
            (step.keep.map(|v| v as f32), step.take.map(|v| v as f32));
        vectorized(
            #[inline(always)]
            || {
                let moments = mean.iter_mut().zip(squares.iter_mut());
                for ((theta, g), (m, v)) in theta.iter_mut().zip(gradient.iter()).zip(moments) {
                    let g = g * factor;
                    *m = *m * keep1 + g * take1;
                    *v = *v * keep2 + g * g * take2;
                    *theta = *theta * decay - *m / (v.sqrt() * root + epsilon) * rate;
                }
            },
        );
        (tensor(theta, &shape), tensor(mean, &shape), tensor(squares, &shape))
    }
}

/// The gradients with respect to x, W and b, from x, W and the gradient of the result, which is the last in all derivatives.
pub(super) fn affine_backward(of: [&FlexTensor; 3]) -> [FlexTensor; 3] {
    let (n, inner) = (dims(of[0])[0], dims(of[1]));
    let (a, b) = (inner[0], inner[1]);
    let [x, w, g] = of.map(read);
    let (mut dx, mut dw) = (vec![0.0; n * a], vec![0.0; a * b]);
    let gradient = matrix(&g, n, b);
    let (w, x) = (matrix(&w, a, b).transpose(), matrix(&x, n, a).transpose());
    matmul(matrix_mut(&mut dx, n, a), Accum::Replace, gradient, w, 1.0, Par::Seq);
    matmul(matrix_mut(&mut dw, a, b), Accum::Replace, x, gradient, 1.0, Par::Seq);
    [tensor(dx, &[n, a]), tensor(dw, &[a, b]), tensor(column_sums(&g, b.max(1)), &[b])]
}

/// With respect to x, gain and shift, from x and the gain.
pub(super) fn normalize_rows_backward(of: [&FlexTensor; 3], epsilon: f64) -> [FlexTensor; 3] {
    let shape = dims(of[0]);
    let d = shape[1].max(1);
    let [x, gain, g] = of.map(read);
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
    [tensor(dx, &shape), tensor(dgain, &[shape[1]]), tensor(column_sums(&g, d), &[shape[1]])]
}

pub(super) fn gelu_tanh_backward(of: [&FlexTensor; 2]) -> FlexTensor {
    let shape = dims(of[0]);
    let [x, gradient] = of.map(read);
    let mut dx = gradient.into_owned();
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

/// With respect to Q, K and V, from these and the weights.
pub(super) fn attend_backward(of: [&FlexTensor; 5], layout: &Layout) -> [FlexTensor; 3] {
    let [q, k, v, p, g] = of.map(read);
    let [dq, dk, dv] = layout.backward([&q, &k, &v], &p, &g);
    let [queries, keys] = [of[0], of[1]].map(dims);
    [tensor(dq, &queries), tensor(dk, &keys), tensor(dv, &keys)]
}

pub(super) fn cross_entropy_backward(of: [&FlexTensor; 2], targets: &[usize]) -> FlexTensor {
    let shape = dims(of[0]);
    let columns = shape[1].max(1);
    let [scores, gradient] = of.map(read);
    let share = gradient[0] / targets.len() as f32;
    let mut change = scores.into_owned();
    vectorized(
        #[inline(always)]
        || {
            for (row, &target) in change.chunks_exact_mut(columns).zip(targets) {
                let top = largest(row);
                for value in row.iter_mut() {
                    *value = exp(*value - top);
                }
                let scale = share / sum(row, row, |x, _| x);
                for value in row.iter_mut() {
                    *value *= scale;
                }
                row[target] -= share;
            }
        },
    );
    tensor(change, &shape)
}
