//! Transformer layers and their parts.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, activation};
use rand_chacha::ChaCha8Rng;

use crate::draw::{Draw, constant, dropout_mask};
use crate::kernels;

/// Added to variances. Features of size 1/√|F| have a variance of 1/(2|F|), so a larger ε would change the result.
const EPSILON: f64 = 1e-6;

/// Added to masked attention scores: effectively −∞ before a softmax.
pub const MASK_BIAS: f32 = -1e9;

/// The causal attention mask of `length` slots, `[1, 1, T, T]`.
pub fn causal_bias(length: usize, device: &Device) -> Tensor<4> {
    let above = |i: usize| if i % length > i / length { MASK_BIAS } else { 0.0 };
    constant((0..length * length).map(above).collect(), [1, 1, length, length], device)
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TransformerSizes {
    pub width: usize,
    /// Attention heads, which share the width.
    pub heads: usize,
    /// Hidden width of the feed-forward networks.
    pub feed_forward: usize,
    /// Number of layers; in encoder–decoder models, the number of encoder layers.
    pub layers: usize,
}

impl TransformerSizes {
    /// Multiplications and additions of a forward pass through one layer, per token that attends to `length` tokens.
    pub fn layer_operations(&self, length: usize) -> f64 {
        let [d, f, n] = [self.width, self.feed_forward, length].map(|n| n as f64);
        4.0 * d * d + 2.0 * d * f + 2.0 * n * d
    }
}

/// The activation of a feed-forward network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// GELU in its tanh form.
    Gelu,
    Relu,
}

#[derive(Debug, Clone, Copy)]
pub struct LayerStyle {
    /// Activation of the feed-forward networks.
    pub activation: Activation,
    /// Whether the projections of attention have biases.
    pub has_bias: bool,
}

impl LayerStyle {
    pub const GELU: LayerStyle = LayerStyle { activation: Activation::Gelu, has_bias: true };
    pub const RELU: LayerStyle = LayerStyle { activation: Activation::Relu, has_bias: true };
}

/// x W + b, or x W.
#[derive(Module, Debug)]
pub struct Dense {
    /// `[inputs, outputs]`.
    pub weights: Param<Tensor<2>>,
    /// `[outputs]`.
    pub bias: Option<Param<Tensor<1>>>,
}

impl Dense {
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        let (weights, outputs) = (self.weights.val(), self.outputs());
        let bias = match &self.bias {
            Some(bias) => bias.val(),
            None => constant(vec![0.0; outputs], [outputs], &x.device()),
        };
        kernels::affine(x, weights, bias)
    }

    pub fn outputs(&self) -> usize {
        self.weights.dims()[1]
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
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        kernels::layer_norm(x, self.gain.val(), self.shift.val(), EPSILON)
    }
}

/// Dropout of a forward pass.
#[derive(Debug)]
pub struct Dropout<'a> {
    rate: f64,
    rng: Option<&'a mut ChaCha8Rng>,
}

impl<'a> Dropout<'a> {
    /// `rng` samples the masks; without it, nothing is dropped.
    pub fn new(rate: f64, rng: Option<&'a mut ChaCha8Rng>) -> Self {
        Dropout { rate, rng: rng.filter(|_| rate > 0.0) }
    }

    pub fn none() -> Self {
        Dropout { rate: 0.0, rng: None }
    }

    /// Sets random values to zero and scales up the others.
    pub fn apply<const D: usize>(&mut self, x: Tensor<D>) -> Tensor<D> {
        let Some(rng) = &mut self.rng else {
            return x;
        };
        let mask = dropout_mask(rng, self.rate, x.dims(), &x.device());
        x * mask
    }
}

/// Dropout of a layer with two rates; without a stream, nothing is dropped.
#[derive(Debug)]
pub struct LayerDropout<'a> {
    /// Random stream of the masks.
    pub rng: Option<&'a mut ChaCha8Rng>,
    /// Rate inside attention and feed-forward networks.
    pub inner: f64,
    /// Rate for their outputs, before these are added to the residual stream.
    pub residual: f64,
}

impl LayerDropout<'_> {
    /// The dropout inside attention and feed-forward networks.
    pub fn inner(&mut self) -> Dropout<'_> {
        Dropout::new(self.inner, self.rng.as_deref_mut())
    }

    /// The dropout of outputs that are added to the residual stream.
    pub fn residual(&mut self) -> Dropout<'_> {
        Dropout::new(self.residual, self.rng.as_deref_mut())
    }
}

/// softmax(Q Kᵀ/√d + bias) V for each of `heads` concatenated heads: Q `[B, T, D]`, K and V `[B, S, D]`, bias `[1 or B, 1, 1 or T, S]`.
/// Dropout acts on the attention weights.
fn attend(
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

/// Multi-head attention with its projections.
#[derive(Module, Debug)]
pub struct Attention {
    pub(crate) query: Dense,
    pub(crate) key: Dense,
    pub(crate) value: Dense,
    pub(crate) output: Dense,
    pub(crate) heads: usize,
}

impl Attention {
    /// Attention of `width` inputs and outputs, divided among `heads` heads.
    pub fn new(draw: &mut Draw<'_>, width: usize, heads: usize, has_bias: bool) -> Self {
        let mut dense = || match has_bias {
            true => draw.dense(width, width),
            false => draw.linear(width, width),
        };
        Attention { query: dense(), key: dense(), value: dense(), output: dense(), heads }
    }

    /// Attends from queries `[B, T, D]` to keys and values `[B, S, D]`, with bias `[1 or B, 1, 1 or T, S]`. Also returns the weights
    /// `[B, H, T, S]`.
    pub fn forward(
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

    /// Self-attention within each segment of consecutive rows of `[N, D]`; with `causal`, no row attends to a later one.
    pub fn of_segments(&self, x: Tensor<2>, lengths: &[usize], causal: bool) -> Tensor<2> {
        let [query, key, value] =
            [&self.query, &self.key, &self.value].map(|dense| dense.forward(x.clone()));
        let y = kernels::attend_segments(query, key, value, lengths, self.heads, causal);
        self.output.forward(y)
    }

    /// As [`Attention::forward`], with dropout of the attention weights.
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

    /// Attends from `length` tokens to one slot `[B, 1, D]`. The softmax over one score is 1, so queries and keys have no effect. Only
    /// dropout of the weights distinguishes the tokens.
    fn on_slot(&self, slot: Tensor<3>, length: usize, dropout: &mut Dropout<'_>) -> Tensor<3> {
        let [b, _, width] = slot.dims();
        let (heads, device) = (self.heads, slot.device());
        let weights = constant(vec![1.0; b * heads * length], [b, heads, length, 1], &device);
        let weights = dropout.apply(weights);
        let value = self.value.forward(slot).reshape([b, heads, 1, width / heads]);
        let y = (weights * value).swap_dims(1, 2).reshape([b, length, width]);
        self.output.forward(y)
    }
}

/// Adds position encodings, if any.
fn with_codes(x: Tensor<3>, codes: Option<&Tensor<3>>) -> Tensor<3> {
    match codes {
        Some(codes) => x + codes.clone(),
        None => x,
    }
}

/// A pre-norm encoder layer: self-attention and a feed-forward network, each with a residual connection.
#[derive(Module, Debug)]
pub struct Block {
    attention_norm: LayerNorm,
    attention: Attention,
    dense_norm: LayerNorm,
    dense: FeedForward,
}

impl Block {
    /// `layers` layers of a transformer of the given sizes.
    pub fn stack(
        draw: &mut Draw<'_>,
        sizes: &TransformerSizes,
        layers: usize,
        style: LayerStyle,
    ) -> Vec<Self> {
        let TransformerSizes { width, heads, feed_forward, .. } = *sizes;
        let layers = (0..layers).map(|_| Block {
            attention_norm: draw.layer_norm(width),
            attention: Attention::new(draw, width, heads, style.has_bias),
            dense_norm: draw.layer_norm(width),
            dense: FeedForward::new(draw, [width, feed_forward, width], style.activation),
        });
        layers.collect()
    }

    /// The first half: self-attention of tokens `[B, T, D]`, with `codes` added to queries and keys. Also returns the weights
    /// `[B, H, T, T]`.
    pub fn attend(
        &self,
        x: Tensor<3>,
        codes: Option<&Tensor<3>>,
        bias: Tensor<4>,
        causal: bool,
    ) -> (Tensor<3>, Tensor<4>) {
        let y = self.attention_norm.forward(x.clone());
        let at = with_codes(y.clone(), codes);
        let (y, weights) = self.attention.forward(at.clone(), at, y, bias, causal);
        (x + y, weights)
    }

    /// The first half for segments of consecutive rows of `[N, D]`.
    pub fn attend_segments(&self, x: Tensor<2>, lengths: &[usize], causal: bool) -> Tensor<2> {
        let y = self.attention_norm.forward(x.clone());
        x + self.attention.of_segments(y, lengths, causal)
    }

    /// Both halves with dropout; `bias` is `[B, 1, 1, T]`.
    pub fn forward(
        &self,
        x: Tensor<3>,
        bias: &Tensor<4>,
        dropout: &mut LayerDropout<'_>,
    ) -> Tensor<3> {
        let y = self.attention_norm.forward(x.clone());
        let inner = &mut dropout.inner();
        let y = self.attention.with_dropout(y.clone(), y.clone(), y, bias.clone(), inner);
        let x = x + dropout.residual().apply(y);
        let y = self.dense.forward(self.dense_norm.forward(x.clone()), &mut dropout.inner());
        x + dropout.residual().apply(y)
    }

    /// The second half: the feed-forward network.
    pub fn transform<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        x.clone() + self.dense.forward(self.dense_norm.forward(x), &mut Dropout::none())
    }
}

/// A pre-norm decoder layer: self-attention, cross-attention to a memory, and a feed-forward network, each with a residual connection.
#[derive(Module, Debug)]
pub struct DecoderBlock {
    own_norm: LayerNorm,
    own: Attention,
    memory_norm: LayerNorm,
    memory: Attention,
    dense_norm: LayerNorm,
    dense: FeedForward,
}

impl DecoderBlock {
    /// `layers` layers of a transformer of the given sizes.
    pub fn stack(
        draw: &mut Draw<'_>,
        sizes: &TransformerSizes,
        layers: usize,
        style: LayerStyle,
    ) -> Vec<Self> {
        let TransformerSizes { width, heads, feed_forward, .. } = *sizes;
        let layers = (0..layers).map(|_| DecoderBlock {
            own_norm: draw.layer_norm(width),
            own: Attention::new(draw, width, heads, style.has_bias),
            memory_norm: draw.layer_norm(width),
            memory: Attention::new(draw, width, heads, style.has_bias),
            dense_norm: draw.layer_norm(width),
            dense: FeedForward::new(draw, [width, feed_forward, width], style.activation),
        });
        layers.collect()
    }

    /// Transforms tokens `[B, T, D]` with the keys and values of the memory. `codes` are added to both queries and to the keys of
    /// self-attention. Each attention has its bias, and `causal` applies to self-attention.
    pub fn forward(
        &self,
        x: Tensor<3>,
        codes: Option<&Tensor<3>>,
        [keys, values]: [Tensor<3>; 2],
        [own_bias, memory_bias]: [&Tensor<4>; 2],
        causal: bool,
    ) -> Tensor<3> {
        let y = self.own_norm.forward(x.clone());
        let at = with_codes(y.clone(), codes);
        let x = x + self.own.forward(at.clone(), at, y, own_bias.clone(), causal).0;
        let at = with_codes(self.memory_norm.forward(x.clone()), codes);
        let x = x + self.memory.forward(at, keys, values, memory_bias.clone(), false).0;
        x.clone() + self.dense.forward(self.dense_norm.forward(x), &mut Dropout::none())
    }

    /// Transforms tokens `[B, T, D]` with a memory of one slot `[B, 1, D]`, with dropout.
    pub fn on_slot(
        &self,
        x: Tensor<3>,
        memory: &Tensor<3>,
        bias: &Tensor<4>,
        dropout: &mut LayerDropout<'_>,
    ) -> Tensor<3> {
        let y = self.own_norm.forward(x.clone());
        let y = self.own.with_dropout(y.clone(), y.clone(), y, bias.clone(), &mut dropout.inner());
        let x = x + dropout.residual().apply(y);
        let y = self.memory.on_slot(memory.clone(), x.dims()[1], &mut dropout.inner());
        let x = x + dropout.residual().apply(y);
        let y = self.dense.forward(self.dense_norm.forward(x.clone()), &mut dropout.inner());
        x + dropout.residual().apply(y)
    }
}

/// Two dense layers with an activation between them.
#[derive(Module, Debug)]
pub struct FeedForward {
    pub(crate) up: Dense,
    pub(crate) down: Dense,
    #[module(skip)]
    activation: Activation,
}

impl FeedForward {
    /// A network of the given widths.
    pub fn new(
        draw: &mut Draw<'_>,
        [inputs, hidden, outputs]: [usize; 3],
        activation: Activation,
    ) -> Self {
        let (up, down) = (draw.dense(inputs, hidden), draw.dense(hidden, outputs));
        FeedForward { up, down, activation }
    }

    /// The same network with other weights.
    pub(crate) fn with(&self, up: Dense, down: Dense) -> Self {
        FeedForward { up, down, activation: self.activation }
    }

    /// Maps the last dimension, with dropout of the hidden layer.
    pub fn forward<const D: usize>(&self, x: Tensor<D>, dropout: &mut Dropout<'_>) -> Tensor<D> {
        let x = self.up.forward(x);
        let hidden = match self.activation {
            Activation::Gelu => kernels::gelu(x),
            Activation::Relu => activation::relu(x),
        };
        self.down.forward(dropout.apply(hidden))
    }
}
