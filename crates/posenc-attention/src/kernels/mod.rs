//! The operations in which attention models spend most of their time.
//!
//! On the CPU, in single precision, hand-written passes over memory with manual derivatives compute them (`flex.rs`). On other devices,
//! they are composed of burn's operations. The tests compare the passes with burn's automatic differentiation of the composed formulas
//! in double precision.

mod autodiff;
mod exponential;
mod flex;
mod segments;

use burn::Tensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch, backend_extension};
use burn::tensor::{DType, Device, activation};

use crate::draw::constant;
use crate::loss::{self, integers};
use segments::Layout;

/// The operations with a derivative.
#[backend_extension(Flex, Autodiff)]
pub trait Kernels: Backend {
    /// x W + b for x `[N, A]`, W `[A, B]`, b `[B]`.
    fn affine(
        x: FloatTensor<Self>,
        weights: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self>;

    /// Rows of x `[N, D]` with mean 0 and variance 1, times gain `[D]`, plus shift `[D]`.
    fn normalize_rows(
        x: FloatTensor<Self>,
        gain: FloatTensor<Self>,
        shift: FloatTensor<Self>,
        epsilon: f64,
    ) -> FloatTensor<Self>;

    /// x/2 (1 + tanh u) with u = √(2/π) (x + 0.044715 x³): GELU as most transformers compute it.
    fn gelu_tanh(x: FloatTensor<Self>) -> FloatTensor<Self>;

    /// softmax(Q Kᵀ/√d + bias) V for each head, with rows Q, K and V `[N, H d]`; bias `[1 or B, 1, 1 or T, S]`. Returns the result `[N, H d]`
    /// and the attention weights, item by item and head by head.
    fn attend(
        query: FloatTensor<Self>,
        key: FloatTensor<Self>,
        value: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        layout: Layout,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);

    /// Mean over rows of −log p of the target column, p = softmax(scores), in nats: `[N, V]` to `[1]`.
    fn cross_entropy(scores: FloatTensor<Self>, targets: Vec<usize>) -> FloatTensor<Self>;
}

/// The optimizer's step, which has no derivative.
#[backend_extension(Flex)]
pub trait Updates: Backend {
    /// An Adam step: from θ, m, v and g, `[N]` each, to the new θ, m and v.
    fn adam(
        theta: FloatTensor<Self>,
        mean: FloatTensor<Self>,
        squares: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        step: AdamStep,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);
}

/// Constants of an Adam step, where m is the mean of gradients g and v the mean of their squares: m ← keep₁ m + take₁ g, v ← keep₂ v +
/// take₂ g², θ ← decay θ − rate m/(root √v + ε).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdamStep {
    pub factor: f64,
    /// β₁ and β₂.
    pub keep: [f64; 2],
    /// 1 − β₁ and 1 − β₂.
    pub take: [f64; 2],
    /// 1/√(1 − β₂ᵗ).
    pub root: f64,
    pub epsilon: f64,
    /// Learning rate over 1 − β₁ᵗ.
    pub rate: f64,
    /// Multiplies the parameters: 1 − learning rate · weight decay.
    pub decay: f64,
}

/// √(8/π), which is 2u/x at x = 0; u is defined in [`Kernels::gelu_tanh`].
const SLOPE: f64 = 1.595_769_121_605_730_7;
/// Coefficient of x³ in u.
const CUBE: f64 = 0.044_715;

/// Whether the hand-written passes take a tensor: single precision on the CPU. [`attend`] and [`attend_segments`] need this.
pub fn fits<const D: usize>(x: &Tensor<D>) -> bool {
    x.dtype() == DType::F32 && x.device() == Device::flex()
}

/// x W + b over the last dimension of x.
pub fn affine<const D: usize>(x: Tensor<D>, weights: Tensor<2>, bias: Tensor<1>) -> Tensor<D> {
    let mut shape = x.dims();
    shape[D - 1] = weights.dims()[1];
    let x = flatten_to_rows(x);
    if !fits(&x) {
        return (x.matmul(weights) + bias.unsqueeze::<2>()).reshape(shape);
    }
    let y = Dispatch::affine(x.into_dispatch(), weights.into_dispatch(), bias.into_dispatch());
    Tensor::<2>::from_dispatch(y).reshape(shape)
}

/// Normalizes over the last dimension; see [`Kernels::normalize_rows`].
pub fn layer_norm<const D: usize>(
    x: Tensor<D>,
    gain: Tensor<1>,
    shift: Tensor<1>,
    epsilon: f64,
) -> Tensor<D> {
    let shape = x.dims();
    let x = flatten_to_rows(x);
    if !fits(&x) {
        let centered = x.clone() - x.mean_dim(1);
        let variance = (centered.clone() * centered.clone()).mean_dim(1);
        let y = centered / variance.add_scalar(epsilon).sqrt() * gain.unsqueeze::<2>();
        return (y + shift.unsqueeze::<2>()).reshape(shape);
    }
    let (x, gain, shift) = (x.into_dispatch(), gain.into_dispatch(), shift.into_dispatch());
    Tensor::<2>::from_dispatch(Dispatch::normalize_rows(x, gain, shift, epsilon)).reshape(shape)
}

/// GELU in its tanh form.
pub fn gelu<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    if !fits(&x) {
        let twice = (x.clone() * x.clone()).mul_scalar(CUBE).add_scalar(1.0).mul_scalar(SLOPE);
        return x.clone() * activation::sigmoid(x * twice);
    }
    Tensor::from_dispatch(Dispatch::gelu_tanh(x.into_dispatch()))
}

/// softmax(Q Kᵀ/√d + bias) V for each of `heads` concatenated heads of width d: Q `[B, T, H d]`, K and V `[B, S, H d]`; bias
/// `[1 or B, 1, 1 or T, S]`. With `causal`, the bias must mask everything above the diagonal, which is skipped. Returns the result
/// `[B, T, H d]` and the attention weights `[B, H, T, S]`, through which no gradient flows.
pub fn attend(
    query: Tensor<3>,
    key: Tensor<3>,
    value: Tensor<3>,
    bias: Tensor<4>,
    heads: usize,
    causal: bool,
) -> (Tensor<3>, Tensor<4>) {
    let (shape @ [b, t, _], s) = (query.dims(), key.dims()[1]);
    let layout = Layout::batch(shape, s, heads, causal);
    let [query, key, value] = [query, key, value].map(|x| flatten_to_rows(x).into_dispatch());
    let (out, weights) = Dispatch::attend(query, key, value, bias.into_dispatch(), layout);
    let weights = Tensor::<1>::from_dispatch(weights).reshape([b, heads, t, s]);
    (Tensor::<2>::from_dispatch(out).reshape(shape), weights)
}

/// Self-attention within segments: consecutive rows of Q, K and V `[N, H d]`, with the given `lengths`, which must add up to N. With
/// `causal`, no row attends to a later one.
pub fn attend_segments(
    query: Tensor<2>,
    key: Tensor<2>,
    value: Tensor<2>,
    lengths: &[usize],
    heads: usize,
    causal: bool,
) -> Tensor<2> {
    let layout = Layout::segments(lengths, query.dims()[1], heads, causal);
    let none = constant(vec![0.0], [1; 4], &query.device()).into_dispatch();
    let [query, key, value] = [query, key, value].map(Tensor::into_dispatch);
    Tensor::from_dispatch(Dispatch::attend(query, key, value, none, layout).0)
}

/// Cross-entropy in nats of the target column of each row; see [`Kernels::cross_entropy`]. Targets must be valid columns.
pub fn cross_entropy(scores: Tensor<2>, targets: &[usize]) -> Tensor<1> {
    if !fits(&scores) {
        let targets = integers(targets.to_vec(), &scores.device());
        return loss::cross_entropy(activation::log_softmax(scores, 1), targets);
    }
    Tensor::from_dispatch(Dispatch::cross_entropy(scores.into_dispatch(), targets.to_vec()))
}

/// An Adam step on tensors without autodiff; returns the new parameters and their two moments. See [`Updates::adam`].
pub fn adam(
    theta: Tensor<1>,
    [mean, squares]: [Tensor<1>; 2],
    gradient: Tensor<1>,
    step: AdamStep,
) -> (Tensor<1>, [Tensor<1>; 2]) {
    if !fits(&theta) {
        let g = gradient.mul_scalar(step.factor);
        let mean = mean.mul_scalar(step.keep[0]) + g.clone().mul_scalar(step.take[0]);
        let squares = squares.mul_scalar(step.keep[1]) + (g.clone() * g).mul_scalar(step.take[1]);
        let size = squares.clone().sqrt().mul_scalar(step.root).add_scalar(step.epsilon);
        let change = (mean.clone() / size).mul_scalar(step.rate);
        return (theta.mul_scalar(step.decay) - change, [mean, squares]);
    }
    let [theta, mean, squares, gradient] =
        [theta, mean, squares, gradient].map(Tensor::into_dispatch);
    let (theta, mean, squares) = Dispatch::adam(theta, mean, squares, gradient, step);
    (Tensor::from_dispatch(theta), [mean, squares].map(Tensor::from_dispatch))
}

fn flatten_to_rows<const D: usize>(x: Tensor<D>) -> Tensor<2> {
    let shape = x.dims();
    let rows = shape[..D - 1].iter().product::<usize>();
    x.reshape([rows, shape[D - 1]])
}
