//! The parts that models are made of.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, activation};
use rand_chacha::ChaCha8Rng;

use crate::draw::{Draw, constant, dropout_mask};
use crate::kernels;

/// Added to variances. Features of size 1/√|F| have a variance of 1/(2|F|), so that a larger ε would act on them.
const EPSILON: f64 = 1e-6;

/// As good as −∞ before a softmax.
pub const NEVER: f32 = -1e9;

/// The bias under which each of `length` slots sees itself and those before it, `[1, 1, T, T]`.
pub fn causal_bias(length: usize, device: &Device) -> Tensor<4> {
    let above = |i: usize| if i % length > i / length { NEVER } else { 0.0 };
    constant((0..length * length).map(above).collect(), [1, 1, length, length], device)
}

/// x W + b.
#[derive(Module, Debug)]
pub struct Dense {
    /// `[inputs, outputs]`.
    pub weights: Param<Tensor<2>>,
    /// `[outputs]`.
    pub bias: Param<Tensor<1>>,
}

impl Dense {
    /// Over the last dimension.
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        kernels::affine(x, self.weights.val(), self.bias.val())
    }
}

/// Normalization over the last dimension, with gain and shift; ε is 10⁻⁶.
#[derive(Module, Debug)]
pub struct LayerNorm {
    /// `[width]`.
    pub gain: Param<Tensor<1>>,
    /// `[width]`.
    pub shift: Param<Tensor<1>>,
}

impl LayerNorm {
    /// Over the last dimension.
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        kernels::layer_norm(x, self.gain.val(), self.shift.val(), EPSILON)
    }
}

/// Numbers that are zero by chance in a step of training.
#[derive(Debug)]
pub struct Dropout<'a> {
    share: f64,
    rng: Option<&'a mut ChaCha8Rng>,
}

impl<'a> Dropout<'a> {
    /// A share of numbers, drawn from `rng`; none without it.
    pub fn new(share: f64, rng: Option<&'a mut ChaCha8Rng>) -> Self {
        Dropout { share, rng: rng.filter(|_| share > 0.0) }
    }

    /// Drops numbers, and makes the others larger.
    pub fn apply<const D: usize>(&mut self, x: Tensor<D>) -> Tensor<D> {
        let Some(rng) = &mut self.rng else {
            return x;
        };
        let mask = dropout_mask(rng, self.share, x.dims(), &x.device());
        x * mask
    }
}

/// softmax(Q Kᵀ/√d + bias) V for each of `heads` heads, which lie side by side: Q `[B, T, D]`, K and V `[B, S, D]`, bias `[1 or B, 1, 1 or T,
/// S]`. Weights are dropped by chance.
pub fn attend(
    query: Tensor<3>,
    key: Tensor<3>,
    value: Tensor<3>,
    bias: Tensor<4>,
    heads: usize,
    dropout: &mut Dropout<'_>,
) -> Tensor<3> {
    if dropout.rng.is_none() {
        return kernels::attend(query, key, value, bias, heads, false).0;
    }
    let [b, t, width] = query.dims();
    let size = width / heads;
    let split = |x: Tensor<3>| {
        let length = x.dims()[1];
        x.reshape([b, length, heads, size]).swap_dims(1, 2)
    };
    let (query, key, value) = (split(query), split(key), split(value));
    let scores = query.matmul(key.swap_dims(2, 3)).div_scalar((size as f64).sqrt()) + bias;
    let weights = dropout.apply(activation::softmax(scores, 3));
    weights.matmul(value).swap_dims(1, 2).reshape([b, t, width])
}

/// Attention with several heads and projections of its own.
#[derive(Module, Debug)]
pub struct Attention {
    query: Dense,
    key: Dense,
    value: Dense,
    output: Dense,
    heads: usize,
}

impl Attention {
    /// `width` numbers in and out, `heads` heads that share them.
    pub fn new(draw: &mut Draw<'_>, width: usize, heads: usize) -> Self {
        let mut dense = || draw.dense(width, width);
        Attention { query: dense(), key: dense(), value: dense(), output: dense(), heads }
    }

    /// Of `[B, T, D]` on `[B, S, D]`, bias `[1 or B, 1, 1 or T, S]`. Also gives the weights `[B, H, T, S]`.
    pub fn forward(
        &self,
        of: Tensor<3>,
        on: Tensor<3>,
        bias: Tensor<4>,
        causal: bool,
    ) -> (Tensor<3>, Tensor<4>) {
        self.with_codes(of, on.clone(), on, bias, causal)
    }

    /// The same with keys made of something else than values, both `[B, S, D]`.
    pub fn with_codes(
        &self,
        queries: Tensor<3>,
        keys: Tensor<3>,
        values: Tensor<3>,
        bias: Tensor<4>,
        causal: bool,
    ) -> (Tensor<3>, Tensor<4>) {
        let query = self.query.forward(queries);
        let (key, value) = (self.key.forward(keys), self.value.forward(values));
        let (y, weights) = kernels::attend(query, key, value, bias, self.heads, causal);
        (self.output.forward(y), weights)
    }

    /// Of segments of such lengths, which lie behind each other in `[N, D]`, each on itself; where `causal`, no row sees a
    /// later one.
    pub fn of_segments(&self, x: Tensor<2>, lengths: &[usize], causal: bool) -> Tensor<2> {
        let [query, key, value] =
            [&self.query, &self.key, &self.value].map(|dense| dense.forward(x.clone()));
        let y = kernels::attend_segments(query, key, value, lengths, self.heads, causal);
        self.output.forward(y)
    }

    /// As [`Attention::with_codes`], where weights are dropped by chance.
    pub fn with_dropout(
        &self,
        queries: Tensor<3>,
        keys: Tensor<3>,
        values: Tensor<3>,
        bias: Tensor<4>,
        dropout: &mut Dropout<'_>,
    ) -> Tensor<3> {
        let query = self.query.forward(queries);
        let (key, value) = (self.key.forward(keys), self.value.forward(values));
        self.output.forward(attend(query, key, value, bias, self.heads, dropout))
    }

    /// Numbers in and out.
    pub(crate) fn width(&self) -> usize {
        self.output.bias.dims()[0]
    }

    /// Where it is.
    pub(crate) fn device(&self) -> Device {
        self.output.bias.device()
    }

    /// The projection at the end.
    pub(crate) fn output(&self) -> &Dense {
        &self.output
    }

    /// With other projections of the same sizes.
    pub(crate) fn with(&self, query: Dense, key: Dense, value: Dense, output: Dense) -> Self {
        Attention { query, key, value, output, heads: self.heads }
    }
}

/// Attention and two dense layers, each after a layer norm and added to what it read.
#[derive(Module, Debug)]
pub struct Block {
    attention_norm: LayerNorm,
    attention: Attention,
    dense_norm: LayerNorm,
    dense: FeedForward,
}

impl Block {
    /// `width` numbers per token, `heads` heads that share them, `hidden` numbers between the dense layers.
    pub fn new(draw: &mut Draw<'_>, width: usize, heads: usize, hidden: usize) -> Self {
        Block {
            attention_norm: draw.layer_norm(width),
            attention: Attention::new(draw, width, heads),
            dense_norm: draw.layer_norm(width),
            dense: FeedForward::new(draw, width, hidden),
        }
    }

    /// The first half: attention of tokens `[B, T, D]` on each other. Also gives the weights `[B, H, T, T]`.
    pub fn attend(&self, x: Tensor<3>, bias: Tensor<4>, causal: bool) -> (Tensor<3>, Tensor<4>) {
        let y = self.attention_norm.forward(x.clone());
        let (y, weights) = self.attention.forward(y.clone(), y, bias, causal);
        (x + y, weights)
    }

    /// The first half for segments of such lengths, which lie behind each other in `[N, D]`.
    pub fn attend_segments(&self, x: Tensor<2>, lengths: &[usize], causal: bool) -> Tensor<2> {
        let y = self.attention_norm.forward(x.clone());
        x + self.attention.of_segments(y, lengths, causal)
    }

    /// Both halves; of what each adds, numbers are dropped by chance. `bias` is `[B, 1, 1, T]`.
    pub fn forward(&self, x: Tensor<3>, bias: Tensor<4>, dropout: &mut Dropout<'_>) -> Tensor<3> {
        let y = self.attention_norm.forward(x.clone());
        let (y, _) = self.attention.forward(y.clone(), y, bias, false);
        let x = x + dropout.apply(y);
        let y = self.dense.forward(self.dense_norm.forward(x.clone()));
        x + dropout.apply(y)
    }

    /// The second half: the dense layers.
    pub fn transform<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        x.clone() + self.dense.forward(self.dense_norm.forward(x))
    }
}

/// Two dense layers with a GELU between them.
#[derive(Module, Debug)]
pub struct FeedForward {
    up: Dense,
    down: Dense,
}

impl FeedForward {
    /// `width` numbers in and out, `hidden` between.
    pub fn new(draw: &mut Draw<'_>, width: usize, hidden: usize) -> Self {
        FeedForward { up: draw.dense(width, hidden), down: draw.dense(hidden, width) }
    }

    /// Over the last dimension.
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        self.down.forward(kernels::smooth_rectifier(self.up.forward(x)))
    }
}
