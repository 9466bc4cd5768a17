//! Layers of the transformer: norms before what is added, no biases in attention.

use burn::module::{Module, Param};
use burn::tensor::{Tensor, activation};
use rand_chacha::ChaCha8Rng;

use crate::draw::{Draw, constant};
use crate::kernels;
use crate::layers::{Dense, Dropout, LayerNorm, attend};

/// x W.
#[derive(Module, Debug)]
struct Linear {
    weights: Param<Tensor<2>>,
}

impl Linear {
    fn new(draw: &mut Draw<'_>, width: usize) -> Self {
        let limit = (3.0 / width as f64).sqrt();
        Linear { weights: draw.uniform([width, width], -limit, limit) }
    }

    fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        let weights = self.weights.val();
        let outputs = weights.dims()[1];
        let nothing = constant(vec![0.0; outputs], [outputs], &x.device());
        kernels::affine(x, weights, nothing)
    }
}

/// Attention with several heads.
#[derive(Module, Debug)]
struct Attention {
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
    heads: usize,
}

impl Attention {
    fn new(draw: &mut Draw<'_>, width: usize, heads: usize) -> Self {
        let mut linear = || Linear::new(draw, width);
        Attention { query: linear(), key: linear(), value: linear(), output: linear(), heads }
    }

    /// Of tokens `[B, T, D]` on each other.
    fn forward(&self, x: Tensor<3>, bias: Tensor<4>, dropout: &mut Dropout<'_>) -> Tensor<3> {
        let (query, key) = (self.query.forward(x.clone()), self.key.forward(x.clone()));
        let y = attend(query, key, self.value.forward(x), bias, self.heads, dropout);
        self.output.forward(y)
    }

    /// Of `length` tokens on one slot `[B, 1, D]`. The softmax over one number is 1, so that queries and keys count for
    /// nothing; only dropout of the weights tells tokens apart.
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

/// Two dense layers with a ReLU between them.
#[derive(Module, Debug)]
struct Rectified {
    up: Dense,
    down: Dense,
}

impl Rectified {
    fn new(draw: &mut Draw<'_>, width: usize, hidden: usize) -> Self {
        Rectified { up: draw.dense(width, hidden), down: draw.dense(hidden, width) }
    }

    fn forward(&self, x: Tensor<3>, dropout: &mut Dropout<'_>) -> Tensor<3> {
        self.down.forward(dropout.apply(activation::relu(self.up.forward(x))))
    }
}

/// Dropout of a step: none without a stream.
#[derive(Debug)]
pub struct Dropouts<'a> {
    pub rng: Option<&'a mut ChaCha8Rng>,
    /// Share of what is inside of the parts of layers.
    pub inner: f64,
    /// Share of what they add.
    pub added: f64,
}

impl Dropouts<'_> {
    pub(super) fn inner(&mut self) -> Dropout<'_> {
        Dropout::new(self.inner, self.rng.as_deref_mut())
    }

    pub(super) fn added(&mut self) -> Dropout<'_> {
        Dropout::new(self.added, self.rng.as_deref_mut())
    }
}

/// A layer of the encoder.
#[derive(Module, Debug)]
pub struct EncoderLayer {
    own_norm: LayerNorm,
    own: Attention,
    dense_norm: LayerNorm,
    dense: Rectified,
}

impl EncoderLayer {
    pub(super) fn new(draw: &mut Draw<'_>, width: usize, hidden: usize, heads: usize) -> Self {
        EncoderLayer {
            own_norm: draw.layer_norm(width),
            own: Attention::new(draw, width, heads),
            dense_norm: draw.layer_norm(width),
            dense: Rectified::new(draw, width, hidden),
        }
    }

    /// Of tokens `[B, N, D]`; `bias` hides the filling.
    pub(super) fn forward(
        &self,
        x: Tensor<3>,
        bias: &Tensor<4>,
        dropout: &mut Dropouts<'_>,
    ) -> Tensor<3> {
        let y =
            self.own.forward(self.own_norm.forward(x.clone()), bias.clone(), &mut dropout.inner());
        let x = x + dropout.added().apply(y);
        let y = self.dense.forward(self.dense_norm.forward(x.clone()), &mut dropout.inner());
        x + dropout.added().apply(y)
    }
}

/// A layer of the decoder.
#[derive(Module, Debug)]
pub struct DecoderLayer {
    own_norm: LayerNorm,
    own: Attention,
    memory_norm: LayerNorm,
    memory: Attention,
    dense_norm: LayerNorm,
    dense: Rectified,
}

impl DecoderLayer {
    pub(super) fn new(draw: &mut Draw<'_>, width: usize, hidden: usize, heads: usize) -> Self {
        DecoderLayer {
            own_norm: draw.layer_norm(width),
            own: Attention::new(draw, width, heads),
            memory_norm: draw.layer_norm(width),
            memory: Attention::new(draw, width, heads),
            dense_norm: draw.layer_norm(width),
            dense: Rectified::new(draw, width, hidden),
        }
    }

    /// Of words `[W, T, D]` on what is kept of their widget `[W, 1, D]`.
    pub(super) fn forward(
        &self,
        x: Tensor<3>,
        memory: &Tensor<3>,
        causal: &Tensor<4>,
        dropout: &mut Dropouts<'_>,
    ) -> Tensor<3> {
        let y = self.own.forward(
            self.own_norm.forward(x.clone()),
            causal.clone(),
            &mut dropout.inner(),
        );
        let x = x + dropout.added().apply(y);
        let y = self.memory.on_slot(memory.clone(), x.dims()[1], &mut dropout.inner());
        let x = x + dropout.added().apply(y);
        let y = self.dense.forward(self.dense_norm.forward(x.clone()), &mut dropout.inner());
        x + dropout.added().apply(y)
    }
}
