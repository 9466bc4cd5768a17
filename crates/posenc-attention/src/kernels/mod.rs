//! The operations in which attention models spend most of their time, with manual derivatives.
//!
//! Each has two forms. The defaults of [`Kernels`] are composed of a backend's own operations and run on every backend. On the
//! CPU, hand-written passes over memory replace them (`flex.rs`). The tests compare both forms with burn's automatic
//! differentiation of the plain formulas.

mod autodiff;
mod composed;
mod exponential;
mod flex;
mod segments;

use burn::Tensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch, backend_extension};

/// The operations of a backend. All tensors of an operation have one floating-point type.
#[backend_extension(Flex, Cube: cfg(feature = "wgpu"), Autodiff)]
pub trait Kernels: Backend {
    /// x W + b for x `[N, A]`, W `[A, B]`, b `[B]`.
    fn affine(
        x: FloatTensor<Self>,
        weights: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        composed::affine::<Self>([x, weights, bias])
    }

    /// Rows of x `[N, D]` with mean 0 and variance 1, times gain `[D]`, plus shift `[D]`.
    fn normalize_rows(
        x: FloatTensor<Self>,
        gain: FloatTensor<Self>,
        shift: FloatTensor<Self>,
        epsilon: f64,
    ) -> FloatTensor<Self> {
        composed::layer_norm::<Self>([x, gain, shift], epsilon)
    }

    /// x/2 (1 + tanh u) with u = √(2/π) (x + 0.044715 x³): GELU as most transformers compute it.
    fn gelu_tanh(x: FloatTensor<Self>) -> FloatTensor<Self> {
        composed::gelu_tanh::<Self>(x)
    }

    /// softmax(Q Kᵀ/√d + bias) V for each of `heads` concatenated heads of width d: Q `[B, T, H d]`, K and V `[B, S, H d]`; bias
    /// `[1 or B, 1, 1 or T, S]`. With `causal`, the caller's bias must mask everything above the diagonal, and a backend may skip that part.
    /// Returns the result `[B, T, H d]` and the attention weights `[B, H, T, S]`.
    fn attend(
        query: FloatTensor<Self>,
        key: FloatTensor<Self>,
        value: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        heads: usize,
        causal: bool,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let _ = causal;
        composed::attend::<Self>([query, key, value, bias], heads)
    }

    /// Self-attention within segments: consecutive rows of Q, K and V `[N, H d]`, with the given `lengths`. With `causal`, no row attends
    /// to a later one. Returns the result and the weights, whose layout depends on the backend.
    fn attend_segments(
        query: FloatTensor<Self>,
        key: FloatTensor<Self>,
        value: FloatTensor<Self>,
        lengths: Vec<usize>,
        heads: usize,
        causal: bool,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        composed::attend_segments::<Self>([query, key, value], &lengths, heads, causal)
    }

    /// Mean over rows of −log p of the target column, p = softmax(scores), in nats: `[N, V]` to `[1]`.
    fn cross_entropy(scores: FloatTensor<Self>, targets: Vec<usize>) -> FloatTensor<Self> {
        composed::cross_entropy::<Self>(scores, &targets)
    }

    /// An Adam step: from θ, m, v and g, `[N]` each, to the new θ, m and v.
    fn adam(
        theta: FloatTensor<Self>,
        mean: FloatTensor<Self>,
        squares: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        step: AdamStep,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        composed::adam::<Self>([theta, mean, squares, gradient], step)
    }
}

/// The gradients of [`Kernels`]. The last tensor of `of` is the gradient of the result; for attention, the one before it has the weights.
pub trait Derivatives: Backend {
    /// With respect to x, W and b, from x and W.
    fn affine_backward(of: [FloatTensor<Self>; 3]) -> [FloatTensor<Self>; 3] {
        composed::affine_backward::<Self>(of)
    }

    /// With respect to x, gain and shift, from x and the gain.
    fn normalize_rows_backward(of: [FloatTensor<Self>; 3], epsilon: f64) -> [FloatTensor<Self>; 3] {
        composed::layer_norm_backward::<Self>(of, epsilon)
    }

    fn gelu_tanh_backward(of: [FloatTensor<Self>; 2]) -> FloatTensor<Self> {
        composed::gelu_tanh_backward::<Self>(of)
    }

    /// With respect to Q, K and V.
    fn attend_backward(of: [FloatTensor<Self>; 5], _causal: bool) -> [FloatTensor<Self>; 3] {
        composed::attend_backward::<Self>(of)
    }

    /// With respect to Q, K and V.
    fn attend_segments_backward(
        of: [FloatTensor<Self>; 5],
        (lengths, _heads, _causal): (&[usize], usize, bool),
    ) -> [FloatTensor<Self>; 3] {
        composed::attend_segments_backward::<Self>(of, lengths)
    }

    /// From the scores.
    fn cross_entropy_backward(of: [FloatTensor<Self>; 2], targets: &[usize]) -> FloatTensor<Self> {
        composed::cross_entropy_backward::<Self>(of, targets)
    }
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

/// On wgpu, all operations are composed of burn's own kernels.
#[cfg(feature = "wgpu")]
impl Kernels for burn_wgpu::CubeBackend {}

#[cfg(feature = "wgpu")]
impl Derivatives for burn_wgpu::CubeBackend {}

/// x W + b over the last dimension of x.
pub fn affine<const D: usize>(x: Tensor<D>, weights: Tensor<2>, bias: Tensor<1>) -> Tensor<D> {
    let mut shape = x.dims();
    shape[D - 1] = weights.dims()[1];
    let x = flatten_to_rows(x).into_dispatch();
    let y = Dispatch::affine(x, weights.into_dispatch(), bias.into_dispatch());
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
    let x = flatten_to_rows(x).into_dispatch();
    let y = Dispatch::normalize_rows(x, gain.into_dispatch(), shift.into_dispatch(), epsilon);
    Tensor::<2>::from_dispatch(y).reshape(shape)
}

/// GELU in its tanh form.
pub fn gelu<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    Tensor::from_dispatch(Dispatch::gelu_tanh(x.into_dispatch()))
}

/// Attention and its weights; see [`Kernels::attend`]. No gradient flows through the weights.
pub fn attend(
    query: Tensor<3>,
    key: Tensor<3>,
    value: Tensor<3>,
    bias: Tensor<4>,
    heads: usize,
    causal: bool,
) -> (Tensor<3>, Tensor<4>) {
    let [query, key, value] = [query, key, value].map(Tensor::into_dispatch);
    let bias = bias.into_dispatch();
    let (out, weights) = Dispatch::attend(query, key, value, bias, heads, causal);
    (Tensor::from_dispatch(out), Tensor::from_dispatch(weights))
}

/// Self-attention within segments; see [`Kernels::attend_segments`]. The lengths must add up to the number of rows.
pub fn attend_segments(
    query: Tensor<2>,
    key: Tensor<2>,
    value: Tensor<2>,
    lengths: &[usize],
    heads: usize,
    causal: bool,
) -> Tensor<2> {
    let [query, key, value] = [query, key, value].map(Tensor::into_dispatch);
    let (out, _) = Dispatch::attend_segments(query, key, value, lengths.to_vec(), heads, causal);
    Tensor::from_dispatch(out)
}

/// Cross-entropy in nats of the target column of each row; see [`Kernels::cross_entropy`]. Targets must be valid columns.
pub fn cross_entropy(scores: Tensor<2>, targets: &[usize]) -> Tensor<1> {
    Tensor::from_dispatch(Dispatch::cross_entropy(scores.into_dispatch(), targets.to_vec()))
}

/// An Adam step; returns the new parameters and their two moments. See [`Kernels::adam`].
pub fn adam(
    theta: Tensor<1>,
    [mean, squares]: [Tensor<1>; 2],
    gradient: Tensor<1>,
    step: AdamStep,
) -> (Tensor<1>, [Tensor<1>; 2]) {
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
