//! Transformer layers and their parts.

use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor, activation};
use rand_chacha::ChaCha8Rng;

use crate::draw::{Draw, constant, dropout_mask, parameter};
use crate::kernels;
use crate::loss::integers;

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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    Gelu,
    Relu,
}

#[derive(Debug, Clone, Copy)]
pub struct LayerStyle {
    pub activation: Activation,
    /// Whether the projections of attention have biases.
    pub has_bias: bool,
    /// Whether layer norms precede attention and feed-forward networks (pre-norm), or follow the residual additions (post-norm).
    pub is_pre_norm: bool,
    /// Whether layers attend to a memory after self-attention, as in decoders.
    pub has_memory: bool,
}

impl LayerStyle {
    pub const GELU: LayerStyle = LayerStyle {
        activation: Activation::Gelu,
        has_bias: true,
        is_pre_norm: true,
        has_memory: false,
    };
    pub const RELU: LayerStyle = LayerStyle { activation: Activation::Relu, ..LayerStyle::GELU };
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
    pub rng: Option<&'a mut ChaCha8Rng>,
    /// Rate inside attention and feed-forward networks.
    pub inner: f64,
    /// Rate for their outputs, before these are added to the residual stream.
    pub residual: f64,
}

impl<'a> LayerDropout<'a> {
    /// One rate everywhere; `rng` samples the masks.
    pub fn uniform(rate: f64, rng: Option<&'a mut ChaCha8Rng>) -> Self {
        LayerDropout { rng, inner: rate, residual: rate }
    }

    pub fn inner(&mut self) -> Dropout<'_> {
        Dropout::new(self.inner, self.rng.as_deref_mut())
    }

    /// The dropout of outputs that are added to the residual stream.
    pub fn residual(&mut self) -> Dropout<'_> {
        Dropout::new(self.residual, self.rng.as_deref_mut())
    }
}

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

    /// Attends from queries `[B, T, D]` to keys and values `[B, S, D]`, with bias `[1 or B, 1, 1 or T, S]` and dropout of the weights. Also
    /// returns the weights `[B, H, T, S]`.
    pub(crate) fn forward(
        &self,
        queries: Tensor<3>,
        [keys, values]: [Tensor<3>; 2],
        bias: Tensor<4>,
        causal: bool,
        dropout: &mut Dropout<'_>,
    ) -> (Tensor<3>, Tensor<4>) {
        let query = self.query.forward(queries);
        let (key, value) = (self.key.forward(keys), self.value.forward(values));
        let (y, weights) = match dropout.rng.is_none() && kernels::fits(&query) {
            true => kernels::attend(query, key, value, bias, self.heads, causal),
            false => self.composed(query, key, value, bias, dropout),
        };
        (self.output.forward(y), weights)
    }

    /// softmax(Q Kᵀ/√d + bias) V with dropout of the softmax, composed of burn's operations.
    fn composed(
        &self,
        query: Tensor<3>,
        key: Tensor<3>,
        value: Tensor<3>,
        bias: Tensor<4>,
        dropout: &mut Dropout<'_>,
    ) -> (Tensor<3>, Tensor<4>) {
        let [b, t, width] = query.dims();
        let size = width / self.heads;
        let split = |x: Tensor<3>| {
            let length = x.dims()[1];
            x.reshape([b, length, self.heads, size]).swap_dims(1, 2)
        };
        let (query, key, value) = (split(query), split(key), split(value));
        let scores = query.matmul(key.swap_dims(2, 3)).div_scalar((size as f64).sqrt()) + bias;
        let weights = dropout.apply(activation::softmax(scores, 3));
        (weights.clone().matmul(value).swap_dims(1, 2).reshape([b, t, width]), weights)
    }

    /// Self-attention within each segment of consecutive rows of `[N, D]`, with dropout of the weights; with `causal`, no row attends to a
    /// later one.
    fn of_segments(
        &self,
        x: Tensor<2>,
        lengths: &[usize],
        causal: bool,
        dropout: &mut Dropout<'_>,
    ) -> Tensor<2> {
        let own = [&self.query, &self.key, &self.value].map(|dense| dense.forward(x.clone()));
        if dropout.rng.is_none() && kernels::fits(&x) {
            let [query, key, value] = own;
            let y = kernels::attend_segments(query, key, value, lengths, self.heads, causal);
            return self.output.forward(y);
        }
        let padded = Padded::new(lengths, &x.device());
        let [query, key, value] = own.map(|rows| padded.pad(rows));
        let bias = if causal { causal_bias(padded.longest, &x.device()) } else { padded.bias() };
        let (y, _) = self.composed(query, key, value, bias, dropout);
        self.output.forward(padded.unpad(y))
    }

    /// Attends from each row to one slot: that of `slots` `[W, D]` with its index in `own` `[N]`. The softmax over one score is 1, so queries
    /// and keys have no effect. Only dropout of the weights distinguishes the rows of a slot.
    fn on_slots(
        &self,
        slots: Tensor<2>,
        own: &Tensor<1, Int>,
        dropout: &mut Dropout<'_>,
    ) -> Tensor<2> {
        let values = self.value.forward(slots).select(0, own.clone());
        let [n, width] = values.dims();
        let weights = constant(vec![1.0; n * self.heads], [n, self.heads, 1], &values.device());
        let y = values.reshape([n, self.heads, width / self.heads]) * dropout.apply(weights);
        self.output.forward(y.reshape([n, width]))
    }
}

/// Segments of consecutive rows, padded to the longest.
#[derive(Debug)]
pub(crate) struct Padded {
    lengths: Vec<usize>,
    pub(crate) longest: usize,
    device: Device,
}

impl Padded {
    pub(crate) fn new(lengths: &[usize], device: &Device) -> Self {
        let lengths: Vec<usize> = lengths.iter().copied().filter(|&length| length > 0).collect();
        let longest = lengths.iter().copied().max().unwrap_or(0);
        Padded { lengths, longest, device: device.clone() }
    }

    /// Rows `[N, D]` as `[B, T, D]`. The padding repeats the last row of a segment, and attention must mask it.
    pub(crate) fn pad(&self, rows: Tensor<2>) -> Tensor<3> {
        let width = rows.dims()[1];
        let (mut places, mut first) = (Vec::new(), 0);
        for &length in &self.lengths {
            places.extend((0..self.longest).map(|i| first + i.min(length - 1)));
            first += length;
        }
        let shape = [self.lengths.len(), self.longest, width];
        rows.select(0, integers(places, &self.device)).reshape(shape)
    }

    /// Removes the padding from `[B, T, D]`.
    pub(crate) fn unpad(&self, x: Tensor<3>) -> Tensor<2> {
        let [b, t, width] = x.dims();
        let own = self.lengths.iter().enumerate();
        let rows = own.flat_map(|(i, &length)| (0..length).map(move |k| i * t + k)).collect();
        x.reshape([b * t, width]).select(0, integers(rows, &self.device))
    }

    /// The attention bias, `[B, 1, 1, T]`: zero for rows, [`MASK_BIAS`] for the padding.
    pub(crate) fn bias(&self) -> Tensor<4> {
        let (b, t) = (self.lengths.len(), self.longest);
        let row = |&length: &usize| (0..t).map(move |i| if i < length { 0.0 } else { MASK_BIAS });
        constant(self.lengths.iter().flat_map(row).collect(), [b, 1, 1, t], &self.device)
    }
}

#[derive(Module, Debug)]
pub(crate) struct Attended {
    pub(crate) norm: LayerNorm,
    pub(crate) attention: Attention,
}

/// A layer of an encoder or a decoder: self-attention, attention to a memory (in decoders) and a feed-forward network, each with a residual
/// connection and a layer norm.
#[derive(Module, Debug)]
pub struct Layer {
    pub(crate) own: Attended,
    pub(crate) memory: Option<Attended>,
    pub(crate) dense_norm: LayerNorm,
    pub(crate) dense: FeedForward,
    pub(crate) is_pre_norm: bool,
}

impl Layer {
    /// `layers` layers of a transformer of the given sizes.
    pub fn stack(
        draw: &mut Draw<'_>,
        sizes: &TransformerSizes,
        layers: usize,
        style: LayerStyle,
    ) -> Vec<Self> {
        let TransformerSizes { width, heads, feed_forward, .. } = *sizes;
        let attended = |draw: &mut Draw<'_>| Attended {
            norm: draw.layer_norm(width),
            attention: Attention::new(draw, width, heads, style.has_bias),
        };
        let layers = (0..layers).map(|_| Layer {
            own: attended(draw),
            memory: style.has_memory.then(|| attended(draw)),
            dense_norm: draw.layer_norm(width),
            dense: FeedForward::new(draw, [width, feed_forward, width], style.activation),
            is_pre_norm: style.is_pre_norm,
        });
        layers.collect()
    }

    /// x + f(norm(x)) in pre-norm layers, else norm(x + f(x)), with dropout of f.
    fn residual<const D: usize>(
        &self,
        norm: &LayerNorm,
        x: Tensor<D>,
        dropout: &mut LayerDropout<'_>,
        f: impl FnOnce(Tensor<D>, &mut Dropout<'_>) -> Tensor<D>,
    ) -> Tensor<D> {
        let normed = |x: Tensor<D>, is_due: bool| if is_due { norm.forward(x) } else { x };
        let y = f(normed(x.clone(), self.is_pre_norm), &mut dropout.inner());
        normed(x + dropout.residual().apply(y), !self.is_pre_norm)
    }

    /// Self-attention of tokens `[B, T, D]`, with `codes` added to queries and keys.
    fn attend(
        &self,
        x: Tensor<3>,
        codes: Option<&Tensor<3>>,
        bias: &Tensor<4>,
        causal: bool,
        dropout: &mut LayerDropout<'_>,
    ) -> Tensor<3> {
        let Attended { norm, attention } = &self.own;
        self.residual(norm, x, dropout, |y, dropout| {
            let at = codes.cloned().into_iter().fold(y.clone(), Tensor::add);
            attention.forward(at.clone(), [at, y], bias.clone(), causal, dropout).0
        })
    }

    /// Self-attention within segments of consecutive rows of `[N, D]`.
    pub fn attend_segments(
        &self,
        x: Tensor<2>,
        lengths: &[usize],
        causal: bool,
        dropout: &mut LayerDropout<'_>,
    ) -> Tensor<2> {
        let Attended { norm, attention } = &self.own;
        self.residual(norm, x, dropout, |y, dropout| {
            attention.of_segments(y, lengths, causal, dropout)
        })
    }

    /// Attention from each row of `[N, D]` to the slot of `slots` `[W, D]` with its index in `own` `[N]`.
    pub fn attend_slots(
        &self,
        x: Tensor<2>,
        slots: &Tensor<2>,
        own: &Tensor<1, Int>,
        dropout: &mut LayerDropout<'_>,
    ) -> Tensor<2> {
        let Some(Attended { attention, .. }) = &self.memory else { return x };
        let y = attention.on_slots(slots.clone(), own, &mut dropout.inner());
        x + dropout.residual().apply(y)
    }

    pub fn transform<const D: usize>(
        &self,
        x: Tensor<D>,
        dropout: &mut LayerDropout<'_>,
    ) -> Tensor<D> {
        self.residual(&self.dense_norm, x, dropout, |y, dropout| self.dense.forward(y, dropout))
    }

    /// An encoder layer on tokens `[B, T, D]`, with `codes` added to queries and keys.
    pub fn encode(
        &self,
        x: Tensor<3>,
        codes: Option<&Tensor<3>>,
        bias: &Tensor<4>,
        dropout: &mut LayerDropout<'_>,
    ) -> Tensor<3> {
        let x = self.attend(x, codes, bias, false, dropout);
        self.transform(x, dropout)
    }

    /// A decoder layer on tokens `[B, T, D]` with the keys and values of a memory. `codes` are added to both queries and to the keys of
    /// self-attention. Each attention has its bias, and `causal` applies to self-attention.
    pub fn decode(
        &self,
        x: Tensor<3>,
        codes: Option<&Tensor<3>>,
        memory: &[Tensor<3>; 2],
        [own_bias, bias]: [&Tensor<4>; 2],
        causal: bool,
        dropout: &mut LayerDropout<'_>,
    ) -> Tensor<3> {
        let mut x = self.attend(x, codes, own_bias, causal, dropout);
        if let Some(Attended { norm, attention }) = &self.memory {
            x = self.residual(norm, x, dropout, |y, dropout| {
                let at = codes.cloned().into_iter().fold(y, Tensor::add);
                attention.forward(at, memory.clone(), bias.clone(), false, dropout).0
            });
        }
        self.transform(x, dropout)
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
    pub fn new(
        draw: &mut Draw<'_>,
        [inputs, hidden, outputs]: [usize; 3],
        activation: Activation,
    ) -> Self {
        let (up, down) = (draw.dense(inputs, hidden), draw.dense(hidden, outputs));
        FeedForward { up, down, activation }
    }

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

impl Draw<'_> {
    /// A dense layer: weights uniform on ±√(6/(inputs + outputs)) (Glorot), biases normal with standard
    /// deviation 10⁻⁶, as in the library that the paper used.
    pub fn dense(&mut self, inputs: usize, outputs: usize) -> Dense {
        let dense = self.linear(inputs, outputs);
        Dense { bias: Some(self.normal([outputs], 1e-6)), ..dense }
    }

    /// A dense layer without bias, with the weights of [`Draw::dense`].
    pub fn linear(&mut self, inputs: usize, outputs: usize) -> Dense {
        let limit = (6.0 / (inputs + outputs) as f64).sqrt();
        Dense { weights: self.uniform([inputs, outputs], -limit, limit), bias: None }
    }

    pub fn layer_norm(&self, width: usize) -> LayerNorm {
        let gain = parameter(vec![1.0; width], [width], self.device);
        LayerNorm { gain, shift: parameter(vec![0.0; width], [width], self.device) }
    }
}
