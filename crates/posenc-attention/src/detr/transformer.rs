//! The transformer layers of DETR: post-norm, with dropout in training.

use burn::module::Module;
use burn::tensor::Tensor;

use super::weights::{self, Read};
use crate::draw::Draw;
use crate::layers::{Activation, Attention, Dropout, FeedForward, LayerNorm};

/// A feed-forward network with a residual connection and a layer norm.
#[derive(Module, Debug)]
struct Transformed {
    dense: FeedForward,
    norm: LayerNorm,
}

impl Transformed {
    fn new(draw: &mut Draw<'_>, width: usize, hidden: usize) -> Self {
        let dense = FeedForward::new(draw, [width, hidden, width], Activation::Relu);
        Transformed { dense, norm: draw.layer_norm(width) }
    }

    fn forward(&self, x: Tensor<3>, dropout: &mut Dropout<'_>) -> Tensor<3> {
        let y = self.dense.forward(x.clone(), dropout);
        self.norm.forward(x + dropout.apply(y))
    }

    fn read<E>(&self, name: &str, norm: &str, read: &mut Read<'_, E>) -> Result<Self, E> {
        let up = weights::dense(&self.dense.up, &format!("{name}.linear1"), &[], read)?;
        let down = weights::dense(&self.dense.down, &format!("{name}.linear2"), &[], read)?;
        let norm = weights::norm(&self.norm, &format!("{name}.{norm}"), read)?;
        Ok(Transformed { dense: self.dense.with(up, down), norm })
    }
}

/// Attention with a residual connection and a layer norm.
#[derive(Module, Debug)]
struct Attended {
    attention: Attention,
    norm: LayerNorm,
}

impl Attended {
    fn new(draw: &mut Draw<'_>, width: usize, heads: usize) -> Self {
        Attended {
            attention: Attention::new(draw, width, heads, true),
            norm: draw.layer_norm(width),
        }
    }

    /// Attends from `x` + `codes` `[B, T, D]` to `keys` and `values` `[B, S, D]`.
    fn forward(
        &self,
        x: Tensor<3>,
        codes: Tensor<3>,
        [keys, values]: [Tensor<3>; 2],
        bias: Tensor<4>,
        dropout: &mut Dropout<'_>,
    ) -> Tensor<3> {
        let queries = x.clone() + codes;
        let y = self.attention.with_dropout(queries, keys, values, bias, dropout);
        self.norm.forward(x + dropout.apply(y))
    }

    fn read<E>(&self, attention: &str, norm: &str, read: &mut Read<'_, E>) -> Result<Self, E> {
        let attention = weights::attention(&self.attention, attention, read)?;
        Ok(Attended { attention, norm: weights::norm(&self.norm, norm, read)? })
    }
}

/// An encoder layer: self-attention and a feed-forward network.
#[derive(Module, Debug)]
pub struct EncoderLayer {
    own: Attended,
    dense: Transformed,
}

impl EncoderLayer {
    pub(super) fn new(draw: &mut Draw<'_>, width: usize, hidden: usize, heads: usize) -> Self {
        let own = Attended::new(draw, width, heads);
        EncoderLayer { own, dense: Transformed::new(draw, width, hidden) }
    }

    /// Transforms tokens `[B, N, D]` with their position encodings; `bias` hides the padding.
    pub(super) fn forward(
        &self,
        x: Tensor<3>,
        codes: &Tensor<3>,
        bias: &Tensor<4>,
        dropout: &mut Dropout<'_>,
    ) -> Tensor<3> {
        let on = [x.clone() + codes.clone(), x.clone()];
        let x = self.own.forward(x, codes.clone(), on, bias.clone(), dropout);
        self.dense.forward(x, dropout)
    }

    pub(super) fn read<E>(&self, name: &str, read: &mut Read<'_, E>) -> Result<Self, E> {
        let (attention, norm) = (format!("{name}.self_attn"), format!("{name}.norm1"));
        let own = self.own.read(&attention, &norm, read)?;
        Ok(EncoderLayer { own, dense: self.dense.read(name, "norm2", read)? })
    }
}

/// A decoder layer: self-attention, cross-attention and a feed-forward network.
#[derive(Module, Debug)]
pub struct DecoderLayer {
    own: Attended,
    image: Attended,
    dense: Transformed,
}

impl DecoderLayer {
    pub(super) fn new(draw: &mut Draw<'_>, width: usize, hidden: usize, heads: usize) -> Self {
        let own = Attended::new(draw, width, heads);
        let image = Attended::new(draw, width, heads);
        DecoderLayer { own, image, dense: Transformed::new(draw, width, hidden) }
    }

    /// Transforms tokens `[B, Q, D]` with their query embeddings `codes`; `memory` has the keys and the values from the encoder.
    pub(super) fn forward(
        &self,
        x: Tensor<3>,
        codes: &Tensor<3>,
        memory: &[Tensor<3>; 2],
        [all, bias]: [&Tensor<4>; 2],
        dropout: &mut Dropout<'_>,
    ) -> Tensor<3> {
        let on = [x.clone() + codes.clone(), x.clone()];
        let x = self.own.forward(x, codes.clone(), on, all.clone(), dropout);
        let x = self.image.forward(x, codes.clone(), memory.clone(), bias.clone(), dropout);
        self.dense.forward(x, dropout)
    }

    pub(super) fn read<E>(&self, name: &str, read: &mut Read<'_, E>) -> Result<Self, E> {
        let part = |part: &str| format!("{name}.{part}");
        Ok(DecoderLayer {
            own: self.own.read(&part("self_attn"), &part("norm1"), read)?,
            image: self.image.read(&part("multihead_attn"), &part("norm2"), read)?,
            dense: self.dense.read(name, "norm3", read)?,
        })
    }
}
