//! The operations composed of a backend's own: the fallback for backends without faster kernels, and the reference formulas.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Scalar, TensorMetadata};
use burn::tensor::{Shape, TensorData};

use super::AdamStep;
use crate::layers::MASK_BIAS;

fn scalar(value: f64) -> Scalar {
    value.into()
}

fn dims<B: Backend>(tensor: &FloatTensor<B>) -> Vec<usize> {
    tensor.shape().to_vec()
}

fn reshape<B: Backend>(tensor: FloatTensor<B>, shape: &[usize]) -> FloatTensor<B> {
    B::float_reshape(tensor, Shape::from(shape.to_vec()))
}

/// A vector as a matrix of one row, for broadcasting.
fn row<B: Backend>(vector: FloatTensor<B>) -> FloatTensor<B> {
    let n = dims::<B>(&vector)[0];
    reshape::<B>(vector, &[1, n])
}

fn column_sums<B: Backend>(matrix: FloatTensor<B>) -> FloatTensor<B> {
    let n = dims::<B>(&matrix)[1];
    reshape::<B>(B::float_sum_dim(matrix, 0), &[n])
}

/// y = x W + b.
pub fn affine<B: Backend>([x, weights, bias]: [FloatTensor<B>; 3]) -> FloatTensor<B> {
    B::float_add(B::float_matmul(x, weights), row::<B>(bias))
}

/// ∂x = ∂y Wᵀ, ∂W = xᵀ ∂y, ∂b = Σ ∂y.
pub fn affine_backward<B: Backend>(
    [x, weights, gradient]: [FloatTensor<B>; 3],
) -> [FloatTensor<B>; 3] {
    let dx = B::float_matmul(gradient.clone(), B::float_transpose(weights));
    let dw = B::float_matmul(B::float_transpose(x), gradient.clone());
    [dx, dw, column_sums::<B>(gradient)]
}

/// Rows (x − mean)/√(variance + ε), and the factors 1/√(variance + ε).
fn normalized<B: Backend>(x: FloatTensor<B>, epsilon: f64) -> (FloatTensor<B>, FloatTensor<B>) {
    let centered = B::float_sub(x.clone(), B::float_mean_dim(x, 1));
    let variance = B::float_mean_dim(B::float_mul(centered.clone(), centered.clone()), 1);
    let scale = B::float_recip(B::float_sqrt(B::float_add_scalar(variance, scalar(epsilon))));
    (B::float_mul(centered, scale.clone()), scale)
}

/// y = x̂ g + s with x̂ = (x − mean)/√(variance + ε).
pub fn layer_norm<B: Backend>(
    [x, gain, shift]: [FloatTensor<B>; 3],
    epsilon: f64,
) -> FloatTensor<B> {
    let (normal, _) = normalized::<B>(x, epsilon);
    B::float_add(B::float_mul(normal, row::<B>(gain)), row::<B>(shift))
}

/// With h = ∂y g: ∂x = (h − mean h − x̂ mean(h x̂))/√(variance + ε), ∂g = Σ ∂y x̂, ∂s = Σ ∂y.
pub fn layer_norm_backward<B: Backend>(
    [x, gain, gradient]: [FloatTensor<B>; 3],
    epsilon: f64,
) -> [FloatTensor<B>; 3] {
    let (normal, scale) = normalized::<B>(x, epsilon);
    let h = B::float_mul(gradient.clone(), row::<B>(gain));
    let along = B::float_mean_dim(B::float_mul(h.clone(), normal.clone()), 1);
    let dx = B::float_sub(h.clone(), B::float_mean_dim(h, 1));
    let dx = B::float_sub(dx, B::float_mul(normal.clone(), along));
    let dgain = column_sums::<B>(B::float_mul(gradient.clone(), normal));
    [B::float_mul(dx, scale), dgain, column_sums::<B>(gradient)]
}

/// √(8/π), which is 2u/x at x = 0; u is defined in [`Kernels::gelu_tanh`](super::Kernels::gelu_tanh).
pub const SLOPE: f64 = 1.595_769_121_605_730_7;
/// Coefficient of x³ in u.
pub const CUBE: f64 = 0.044_715;

/// σ(2u), and x².
fn gate<B: Backend>(x: FloatTensor<B>) -> (FloatTensor<B>, FloatTensor<B>) {
    let square = B::float_mul(x.clone(), x.clone());
    let inner = B::float_add_scalar(B::float_mul_scalar(square.clone(), scalar(CUBE)), scalar(1.0));
    let twice = B::float_mul_scalar(B::float_mul(x, inner), scalar(SLOPE));
    (B::sigmoid(twice), square)
}

/// y = x σ(2u), which is x/2 (1 + tanh u).
pub fn gelu_tanh<B: Backend>(x: FloatTensor<B>) -> FloatTensor<B> {
    let (gate, _) = gate::<B>(x.clone());
    B::float_mul(x, gate)
}

/// ∂x = ∂y (σ + x σ (1 − σ) 2u′).
pub fn gelu_tanh_backward<B: Backend>([x, gradient]: [FloatTensor<B>; 2]) -> FloatTensor<B> {
    let (gate, square) = gate::<B>(x.clone());
    let slope =
        B::float_add_scalar(B::float_mul_scalar(square, scalar(3.0 * CUBE * SLOPE)), scalar(SLOPE));
    let rest = B::float_sub(gate.clone(), B::float_mul(gate.clone(), gate.clone()));
    let change = B::float_mul(B::float_mul(x, rest), slope);
    B::float_mul(gradient, B::float_add(gate, change))
}

/// `[B, T, H d]` to `[B, H, T, d]`.
fn split<B: Backend>(tensor: FloatTensor<B>, heads: usize) -> FloatTensor<B> {
    let d = dims::<B>(&tensor);
    let split = reshape::<B>(tensor, &[d[0], d[1], heads, d[2] / heads]);
    B::float_swap_dims(split, 1, 2)
}

/// `[B, H, T, d]` to `[B, T, H d]`.
fn join<B: Backend>(tensor: FloatTensor<B>) -> FloatTensor<B> {
    let d = dims::<B>(&tensor);
    reshape::<B>(B::float_swap_dims(tensor, 1, 2), &[d[0], d[2], d[1] * d[3]])
}

/// P = softmax(Q Kᵀ/√d + bias), y = P V.
pub fn attend<B: Backend>(
    [query, key, value, bias]: [FloatTensor<B>; 4],
    heads: usize,
) -> (FloatTensor<B>, FloatTensor<B>) {
    let scale = 1.0 / ((dims::<B>(&query)[2] / heads) as f64).sqrt();
    let [q, k, v] = [query, key, value].map(|t| split::<B>(t, heads));
    let scores = B::float_mul_scalar(B::float_matmul(q, B::float_transpose(k)), scalar(scale));
    let weights = B::softmax(B::float_add(scores, bias), 3);
    (join::<B>(B::float_matmul(weights.clone(), v)), weights)
}

/// ∂V = Pᵀ ∂y; with ∂P = ∂y Vᵀ and ∂S = P (∂P − Σ P ∂P): ∂Q = ∂S K/√d, ∂K = ∂Sᵀ Q/√d.
pub fn attend_backward<B: Backend>(
    [query, key, value, weights, gradient]: [FloatTensor<B>; 5],
) -> [FloatTensor<B>; 3] {
    let heads = dims::<B>(&weights)[1];
    let scale = 1.0 / ((dims::<B>(&query)[2] / heads) as f64).sqrt();
    let [q, k, v, g] = [query, key, value, gradient].map(|t| split::<B>(t, heads));
    let dv = B::float_matmul(B::float_transpose(weights.clone()), g.clone());
    let dp = B::float_matmul(g, B::float_transpose(v));
    let sums = B::float_sum_dim(B::float_mul(weights.clone(), dp.clone()), 3);
    let ds = B::float_mul_scalar(B::float_mul(weights, B::float_sub(dp, sums)), scalar(scale));
    let dq = B::float_matmul(ds.clone(), k);
    let dk = B::float_matmul(B::float_transpose(ds), q);
    [join::<B>(dq), join::<B>(dk), join::<B>(dv)]
}

/// Layout of segments in `[B, T, …]`, where T is the length of the longest: the row of each slot (in the padding, the last row of the
/// segment), whether the slot is real, and T.
fn slots(lengths: &[usize]) -> (Vec<usize>, Vec<bool>, usize) {
    let max_len = lengths.iter().copied().max().unwrap_or(0);
    let last = lengths.iter().sum::<usize>().saturating_sub(1);
    let (mut rows, mut own) = (Vec::new(), Vec::new());
    let mut first = 0;
    for &length in lengths {
        let row = |i: usize| (first + i.min(length.saturating_sub(1))).min(last);
        rows.extend((0..max_len).map(row));
        own.extend((0..max_len).map(|i| i < length));
        first += length;
    }
    (rows, own, max_len)
}

fn select<B: Backend>(tensor: FloatTensor<B>, rows: &[usize]) -> FloatTensor<B> {
    let device = tensor.device();
    let rows: Vec<i32> = rows.iter().map(|&row| row as i32).collect();
    let count = rows.len();
    let rows = B::int_from_data(TensorData::new(rows, [count]), &device);
    B::float_select(tensor, 0, rows)
}

/// `[N, D]` to `[B, T, D]`.
fn pad<B: Backend>(tensor: FloatTensor<B>, rows: &[usize], max_len: usize) -> FloatTensor<B> {
    let d = dims::<B>(&tensor)[1];
    let padded = select::<B>(tensor, rows);
    reshape::<B>(padded, &[rows.len() / max_len.max(1), max_len, d])
}

/// `[B, T, D]` to `[N, D]`, without the padding.
fn unpad<B: Backend>(tensor: FloatTensor<B>, own: &[bool]) -> FloatTensor<B> {
    let d = dims::<B>(&tensor);
    let rows: Vec<usize> = (0..own.len()).filter(|&slot| own[slot]).collect();
    select::<B>(reshape::<B>(tensor, &[d[0] * d[1], d[2]]), &rows)
}

/// A tensor with the dtype and device of another.
fn like<B: Backend>(numbers: Vec<f64>, shape: &[usize], other: &FloatTensor<B>) -> FloatTensor<B> {
    let data = TensorData::new(numbers, shape.to_vec()).convert_dtype(other.dtype());
    B::float_from_data(data, &other.device())
}

/// Attention within each segment, computed on padded segments with a bias that hides the padding.
pub fn attend_segments<B: Backend>(
    [query, key, value]: [FloatTensor<B>; 3],
    lengths: &[usize],
    heads: usize,
    causal: bool,
) -> (FloatTensor<B>, FloatTensor<B>) {
    let (rows, own, t) = slots(lengths);
    let is_hidden = |slot: usize| {
        let (item, i, j) = (slot / (t * t), slot / t % t, slot % t);
        j >= lengths[item].max(1) || (causal && j > i)
    };
    let bias = (0..lengths.len() * t * t)
        .map(|slot| if is_hidden(slot) { f64::from(MASK_BIAS) } else { 0.0 })
        .collect();
    let bias = like::<B>(bias, &[lengths.len(), 1, t, t], &query);
    let [q, k, v] = [query, key, value].map(|x| pad::<B>(x, &rows, t));
    let (y, weights) = attend::<B>([q, k, v, bias], heads);
    (unpad::<B>(y, &own), weights)
}

/// Gradients of [`attend_segments`]; the incoming gradient is zeroed in the padding.
pub fn attend_segments_backward<B: Backend>(
    [query, key, value, weights, gradient]: [FloatTensor<B>; 5],
    lengths: &[usize],
) -> [FloatTensor<B>; 3] {
    let (rows, own, t) = slots(lengths);
    let mask = own.iter().map(|&own| f64::from(u8::from(own))).collect();
    let mask = like::<B>(mask, &[lengths.len(), t, 1], &gradient);
    let [q, k, v, g] = [query, key, value, gradient].map(|x| pad::<B>(x, &rows, t));
    let gradients = attend_backward::<B>([q, k, v, weights, B::float_mul(g, mask)]);
    gradients.map(|gradient| unpad::<B>(gradient, &own))
}

/// One-hot rows of the targets, divided by the number of rows.
fn shares<B: Backend>(targets: &[usize], scores: &FloatTensor<B>) -> FloatTensor<B> {
    let shape = dims::<B>(scores);
    let mut shares = vec![0.0; shape[0] * shape[1]];
    for (row, &target) in shares.chunks_exact_mut(shape[1].max(1)).zip(targets) {
        row[target] = 1.0 / shape[0] as f64;
    }
    like::<B>(shares, &shape, scores)
}

pub fn cross_entropy<B: Backend>(scores: FloatTensor<B>, targets: &[usize]) -> FloatTensor<B> {
    let shares = shares::<B>(targets, &scores);
    B::float_neg(B::float_sum(B::float_mul(B::log_softmax(scores, 1), shares)))
}

pub fn cross_entropy_backward<B: Backend>(
    [scores, gradient]: [FloatTensor<B>; 2],
    targets: &[usize],
) -> FloatTensor<B> {
    let shares = shares::<B>(targets, &scores);
    let p = B::float_mul_scalar(B::softmax(scores, 1), scalar(1.0 / targets.len() as f64));
    B::float_mul(B::float_sub(p, shares), reshape::<B>(gradient, &[1, 1]))
}

pub fn adam<B: Backend>(
    [theta, mean, squares, gradient]: [FloatTensor<B>; 4],
    step: AdamStep,
) -> (FloatTensor<B>, FloatTensor<B>, FloatTensor<B>) {
    let times = |x: FloatTensor<B>, factor: f64| B::float_mul_scalar(x, scalar(factor));
    let g = if step.factor == 1.0 { gradient } else { times(gradient, step.factor) };
    let mean = B::float_add(times(mean, step.keep[0]), times(g.clone(), step.take[0]));
    let square = times(B::float_mul(g.clone(), g), step.take[1]);
    let squares = B::float_add(times(squares, step.keep[1]), square);
    let root = times(B::float_sqrt(squares.clone()), step.root);
    let size = B::float_add_scalar(root, scalar(step.epsilon));
    let change = times(B::float_div(mean.clone(), size), step.rate);
    let old = if step.decay == 1.0 { theta } else { times(theta, step.decay) };
    (B::float_sub(old, change), mean, squares)
}
