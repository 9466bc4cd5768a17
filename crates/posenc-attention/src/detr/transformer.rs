//! Layers of the transformer: norms after what is added, dropout in training.

use burn::module::Module;
use burn::tensor::{Tensor, activation};

use super::weights::{self, Read};
use crate::draw::Draw;
use crate::layers::{Attention, Dense, Dropout, LayerNorm};

/// Two dense layers with a ReLU between them, added to what they are given.
#[derive(Module, Debug)]
struct Rectified {
    up: Dense,
    down: Dense,
    norm: LayerNorm,
}

impl Rectified {
    fn new(draw: &mut Draw<'_>, width: usize, hidden: usize) -> Self {
        let (up, down) = (draw.dense(width, hidden), draw.dense(hidden, width));
        Rectified { up, down, norm: draw.layer_norm(width) }
    }

    fn forward(&self, x: Tensor<3>, dropout: &mut Dropout<'_>) -> Tensor<3> {
        let inner = dropout.apply(activation::relu(self.up.forward(x.clone())));
        self.norm.forward(x + dropout.apply(self.down.forward(inner)))
    }

    fn read<E>(&self, name: &str, norm: &str, read: &mut Read<'_, E>) -> Result<Self, E> {
        Ok(Rectified {
            up: weights::dense(&self.up, &format!("{name}.linear1"), &[], read)?,
            down: weights::dense(&self.down, &format!("{name}.linear2"), &[], read)?,
            norm: weights::norm(&self.norm, &format!("{name}.{norm}"), read)?,
        })
    }
}

/// Attention whose result is added to the queries.
#[derive(Module, Debug)]
struct Attended {
    attention: Attention,
    norm: LayerNorm,
}

impl Attended {
    fn new(draw: &mut Draw<'_>, width: usize, heads: usize) -> Self {
        Attended { attention: Attention::new(draw, width, heads), norm: draw.layer_norm(width) }
    }

    /// Of x with codes on keys `[B, S, D]` and values.
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

/// A layer of the encoder.
#[derive(Module, Debug)]
pub struct EncoderLayer {
    own: Attended,
    dense: Rectified,
}

impl EncoderLayer {
    pub(super) fn new(draw: &mut Draw<'_>, width: usize, hidden: usize, heads: usize) -> Self {
        let own = Attended::new(draw, width, heads);
        EncoderLayer { own, dense: Rectified::new(draw, width, hidden) }
    }

    /// Of tokens `[B, N, D]` with their codes; `bias` hides the filling.
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

/// A layer of the decoder.
#[derive(Module, Debug)]
pub struct DecoderLayer {
    own: Attended,
    image: Attended,
    dense: Rectified,
}

impl DecoderLayer {
    pub(super) fn new(draw: &mut Draw<'_>, width: usize, hidden: usize, heads: usize) -> Self {
        let own = Attended::new(draw, width, heads);
        let image = Attended::new(draw, width, heads);
        DecoderLayer { own, image, dense: Rectified::new(draw, width, hidden) }
    }

    /// Of queries `[B, Q, D]` with their codes on what the encoder says, as keys and as values.
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
