//! An autoregressive transformer over the pixels of an image (LFF Section 4.1), in full: every pixel attends to all
//! before it.
//!
//! Pixels are gray levels, read row by row. The input is the sequence moved on by one: slot i holds the level of
//! pixel i − 1 and the position code of pixel i, which it predicts. So a slot always reads its pixel's left neighbor; the upper
//! neighbor is in the slot one row of pixels back, plus one, which only position codes can find.

mod measure;

use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor, activation};
use posenc_math::lff::divergence::Divergence;
use posenc_math::lff::encoding::Encoding;
use rand_chacha::ChaCha8Rng;

use crate::divergence::{TargetVariance, penalty};
use crate::draw::Draw;
use crate::layers::{Block, Dense, LayerNorm, LayerStyle, TransformerSizes, causal_bias};
use crate::loss::{self, integers};
use crate::position_encoding::{PositionEncoding, Positions, Prepared};
use crate::trainer::Loss;

pub use measure::{Evaluation, Measured, Measurement, evaluate};

/// Sizes of the model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sizes {
    /// Rows, and columns, of pixels.
    pub side: usize,
    /// Number of gray levels.
    pub levels: usize,
    /// Numbers of a token that are its position encoding, after those of its level; `None` if both have the width of the
    /// model and are added.
    pub concatenated: Option<usize>,
    /// Sizes of the layers.
    pub transformer: TransformerSizes,
}

impl Sizes {
    /// Slots of a sequence.
    pub fn length(&self) -> usize {
        self.side * self.side
    }

    /// Numbers of a token for its level and for its position; both the width of the model if they are added.
    pub fn token_widths(&self) -> (usize, usize) {
        let width = self.transformer.width;
        self.concatenated.map_or((width, width), |code| (width.saturating_sub(code), code))
    }

    /// Multiplications and additions of a step of training on `images` images, dense layers and attention,
    /// three times those of a pass forward; what lies above the diagonal counts.
    pub fn operations(&self, images: usize) -> f64 {
        let (length, layers) = (self.length(), &self.transformer);
        let token = layers.layers as f64 * layers.layer_operations(length)
            + (layers.width * self.levels) as f64;
        6.0 * (images * length) as f64 * token
    }
}

/// The model with its position encoding.
#[derive(Module, Debug)]
pub struct ImageModel {
    levels: Param<Tensor<2>>,
    position: PositionEncoding,
    blocks: Vec<Block>,
    output_norm: LayerNorm,
    output: Dense,
    /// Of the divergence of LFF Eq. 9.
    target: Option<TargetVariance>,
}

/// What does not change from step to step.
#[derive(Debug, Clone)]
pub struct Fixed {
    positions: Prepared,
    /// Of [`causal_bias`].
    bias: Tensor<4>,
    /// Width of the model.
    width: usize,
}

/// What a pass gives.
#[derive(Debug)]
pub struct Pass {
    /// Log-probabilities of the levels, `[B, T, levels]`.
    pub log_probabilities: Tensor<3>,
    /// Weights of attention per layer, `[B, H, T, T]`.
    pub attention: Vec<Tensor<4>>,
}

impl ImageModel {
    /// Draws a model: its content from one stream, its encoding from another.
    ///
    /// # Errors
    ///
    /// The key of the encoding that is wrong, and what is allowed.
    pub fn new(
        sizes: &Sizes,
        encoding: &Encoding,
        content: &mut ChaCha8Rng,
        code: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, (&'static str, String)> {
        let sides = [sizes.side; 2];
        let TransformerSizes { width, layers, .. } = sizes.transformer;
        let (level_width, code_width) = sizes.token_widths();
        let position =
            PositionEncoding::new(encoding, &sides, code_width, &mut Draw { rng: code, device })?;
        let mut draw = Draw { rng: content, device };
        Ok(ImageModel {
            levels: draw.normal([sizes.levels, level_width], 1.0),
            position,
            blocks: Block::stack(&mut draw, &sizes.transformer, layers, LayerStyle::GELU),
            output_norm: draw.layer_norm(width),
            output: draw.dense(width, sizes.levels),
            target: None,
        })
    }

    /// With a trained target variance for the divergence of LFF Eq. 9; it starts at γ⁻².
    #[must_use]
    pub fn with_target(self, gamma: f64, device: &Device) -> Self {
        ImageModel { target: Some(TargetVariance::new(gamma, device)), ..self }
    }

    /// The loss of a step on a batch of images, in nats per level; `dropout` is the stream of masks.
    pub fn loss(
        &self,
        batch: &[Vec<u8>],
        sizes: &Sizes,
        fixed: &Fixed,
        divergence: Option<Divergence>,
        dropout: &mut ChaCha8Rng,
    ) -> Loss {
        let images = tokens(batch, &fixed.bias.device());
        let pass = self.forward(&images, fixed, Some(dropout));
        Loss {
            value: cross_entropy(pass.log_probabilities, &images),
            penalty: penalty(divergence, &self.position, self.target.as_ref()),
            operations: sizes.operations(batch.len()),
        }
    }

    /// Positions of all pixels and the mask, on the model's device.
    pub fn fix(&self, sizes: &Sizes, device: &Device) -> Fixed {
        let positions = self.position.prepare(&Positions::grid(&[sizes.side; 2]), device);
        let bias = causal_bias(sizes.length(), device);
        Fixed { positions, bias, width: sizes.transformer.width }
    }

    /// The position encoding.
    pub fn position_encoding(&self) -> &PositionEncoding {
        &self.position
    }

    /// Codes of all pixels `[T, D]`, without dropout.
    pub fn codes(&self, fixed: &Fixed) -> Tensor<2> {
        self.position.encode(&fixed.positions, None)
    }

    /// Reads `images` `[B, T]`; `dropout` as in [`PositionEncoding::encode`].
    pub fn forward(
        &self,
        images: &Tensor<2, Int>,
        fixed: &Fixed,
        dropout: Option<&mut ChaCha8Rng>,
    ) -> Pass {
        let codes = self.position.encode(&fixed.positions, dropout);
        let levels = embed_moved(&self.levels, images);
        let [count, length, level_width] = levels.dims();
        let [_, code_width] = codes.dims();
        let codes = codes.unsqueeze::<3>();
        let mut x = if level_width == fixed.width {
            levels + codes
        } else {
            Tensor::cat(vec![levels, codes.expand([count, length, code_width])], 2)
        };
        let mut attention = Vec::new();
        for block in &self.blocks {
            let weights;
            (x, weights) = block.attend(x, None, fixed.bias.clone(), true);
            x = block.transform(x);
            attention.push(weights);
        }
        let scores = self.output.forward(self.output_norm.forward(x));
        Pass { log_probabilities: activation::log_softmax(scores, 2), attention }
    }
}

/// Rows of a table for `images` `[B, T]` moved on by one, `[B, T, D]`; the first level follows one of zero.
pub(crate) fn embed_moved(table: &Param<Tensor<2>>, images: &Tensor<2, Int>) -> Tensor<3> {
    let [b, t] = images.dims();
    let before = integers(vec![0u8; b], &images.device()).reshape([b, 1]);
    let moved = Tensor::cat(vec![before, images.clone().slice([0..b, 0..t - 1])], 1);
    let rows = table.val().select(0, moved.reshape([b * t]));
    let width = rows.dims()[1];
    rows.reshape([b, t, width])
}

/// Mean of −log p of the levels that are there, in nats per level, for log-probabilities `[B, T, levels]`.
pub fn cross_entropy(log_probabilities: Tensor<3>, images: &Tensor<2, Int>) -> Tensor<1> {
    let [b, t, levels] = log_probabilities.dims();
    loss::cross_entropy(log_probabilities.reshape([b * t, levels]), images.clone().reshape([b * t]))
}

/// Images `[B, T]` of levels as a tensor.
pub fn tokens(images: &[Vec<u8>], device: &Device) -> Tensor<2, Int> {
    let t = images.first().map_or(0, Vec::len);
    integers(images.concat(), device).reshape([images.len(), t])
}
