//! An autoregressive transformer over the pixels of an image (LFF Section 4.1) with full attention: every pixel attends to all pixels
//! before it.
//!
//! Pixels are gray levels, read row by row. The input is the sequence shifted by one: slot i contains the level of pixel i − 1 and the
//! position encoding of pixel i, which it predicts. So a slot always contains the level of its pixel's left neighbor. The level of the
//! upper neighbor is in slot i − side + 1, which attention can find only by position encodings.

use std::f64::consts::LN_2;

use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor, activation};
use posenc_math::lff::divergence::Divergence;
use posenc_math::lff::encoding::Encoding;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::divergence::TargetVariance;
use crate::draw::Draw;
use crate::layers::{
    Dense, Layer, LayerDropout, LayerNorm, LayerStyle, TransformerSizes, causal_bias,
};
use crate::loss::{self, integers};
use crate::parameters::{number, numbers};
use crate::position_encoding::{PositionEncoding, Positions, Prepared};
use crate::trainer::Loss;

/// Images that are evaluated together.
const CHUNK: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sizes {
    /// Side of an image in pixels.
    pub side: usize,
    pub levels: usize,
    /// Width of the position encoding if it is concatenated after the level embedding; `None` if both have the width of the model and are
    /// added.
    pub concatenated: Option<usize>,
    pub transformer: TransformerSizes,
    /// The term that Eq. 10 adds to the loss.
    pub divergence: Option<Divergence>,
}

impl Sizes {
    /// Number of slots of a sequence.
    pub fn length(&self) -> usize {
        self.side * self.side
    }

    /// Widths of the level embedding and of the position encoding; both are the width of the model if they are added.
    pub fn token_widths(&self) -> (usize, usize) {
        let width = self.transformer.width;
        self.concatenated.map_or((width, width), |code| (width.saturating_sub(code), code))
    }

    /// Floating-point operations of a training step on `images` images in dense layers and attention, three times those of a forward
    /// pass. Attention above the diagonal counts.
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
    layers: Vec<Layer>,
    output_norm: LayerNorm,
    output: Dense,
    /// Target variance of the divergence of LFF Eq. 9.
    target: Option<TargetVariance>,
    #[module(skip)]
    sizes: Sizes,
}

/// Tensors that do not change between steps.
#[derive(Debug, Clone)]
pub struct Fixed {
    positions: Prepared,
    /// The mask of [`causal_bias`].
    bias: Tensor<4>,
}

/// The results of a forward pass.
#[derive(Debug)]
pub struct Pass {
    /// Log-probabilities of the levels, `[B, T, levels]`.
    pub log_probabilities: Tensor<3>,
    /// Attention weights per layer, `[B, H, T, T]`.
    pub attention: Vec<Tensor<4>>,
}

impl ImageModel {
    /// Initializes a model. `content` samples its weights, `code` those of the position encoding.
    ///
    /// # Errors
    ///
    /// Returns the invalid key of `encoding` and a message with the allowed values.
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
            layers: Layer::stack(&mut draw, &sizes.transformer, layers, LayerStyle::GELU),
            output_norm: draw.layer_norm(width),
            output: draw.dense(width, sizes.levels),
            target: TargetVariance::of(sizes.divergence, encoding, device),
            sizes: *sizes,
        })
    }

    /// The loss of a training step on a batch of images, in nats per level; `dropout` samples the dropout masks.
    pub fn loss(&self, batch: &[Vec<u8>], fixed: &Fixed, dropout: &mut ChaCha8Rng) -> Loss {
        let images = tokens(batch, &fixed.bias.device());
        let pass = self.forward(&images, fixed, Some(dropout));
        Loss {
            value: cross_entropy(pass.log_probabilities, &images),
            penalty: self.target.as_ref().and_then(|target| target.penalty(&self.position)),
            operations: self.sizes.operations(batch.len()),
        }
    }

    /// Prepares the positions of all pixels and the causal mask, on `device`.
    pub fn fix(&self, device: &Device) -> Fixed {
        let positions = self.position.prepare(&Positions::grid(&[self.sizes.side; 2]), device);
        Fixed { positions, bias: causal_bias(self.sizes.length(), device) }
    }

    pub fn position_encoding(&self) -> &PositionEncoding {
        &self.position
    }

    /// Position encodings of all pixels, without dropout, pixel by pixel.
    pub fn codes(&self, fixed: &Fixed) -> Vec<f32> {
        numbers(self.position.encode(&fixed.positions, None))
    }

    /// A forward pass on `images` `[B, T]`; `dropout` as in [`PositionEncoding::encode`].
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
        let mut x = if level_width == self.sizes.transformer.width {
            levels + codes
        } else {
            Tensor::cat(vec![levels, codes.expand([count, length, code_width])], 2)
        };
        let mut attention = Vec::new();
        for layer in &self.layers {
            let weights;
            (x, weights) = layer.attend(x, None, &fixed.bias, true, &mut LayerDropout::none());
            x = layer.transform(x, &mut LayerDropout::none());
            attention.extend(weights);
        }
        let scores = self.output.forward(self.output_norm.forward(x));
        Pass { log_probabilities: activation::log_softmax(scores, 2), attention }
    }

    /// Bits per pixel and attention on images that were not trained on.
    pub fn evaluate(&self, fixed: &Fixed, held_out: &[Vec<u8>]) -> Evaluation {
        // Without trained tensors, no autodiff graph is built.
        let model = self.clone().no_grad();
        let device = fixed.bias.device();
        let (mut nats, mut count) = (0.0, 0usize);
        let mut sums = vec![[0.0f64; 2]; self.layers.len()];
        let mut terms = 0usize;
        let (side, t) = (self.sizes.side, self.sizes.length());
        for images in held_out.chunks(CHUNK) {
            let levels = tokens(images, &device);
            let pass = model.forward(&levels, fixed, None);
            nats += number(cross_entropy(pass.log_probabilities, &levels)) * images.len() as f64;
            count += images.len();
            terms += images.len() * self.sizes.transformer.heads;
            for (sums, weights) in sums.iter_mut().zip(pass.attention) {
                for row in numbers(weights).chunks_exact(t * t) {
                    for pixel in (0..t).filter(|p| p / side >= 1 && p % side >= 1) {
                        let own = &row[pixel * t..(pixel + 1) * t];
                        // Slot i holds the level of pixel i − 1.
                        sums[0] += f64::from(own[pixel]);
                        sums[1] += f64::from(own[pixel - side + 1]);
                    }
                }
            }
        }
        let pixels = ((side - 1) * (side - 1) * terms).max(1) as f64;
        let mean = |which: usize| sums.iter().map(|sum| sum[which] / pixels).collect();
        Evaluation { bits: nats / count.max(1) as f64 / LN_2, left: mean(0), upper: mean(1) }
    }
}

/// Metrics of a model on held-out images.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evaluation {
    /// Mean of −log₂ p per pixel.
    pub bits: f64,
    /// Per layer: mean attention weight of the slot with the level of a pixel's left neighbor, over heads, images and the pixels with
    /// both neighbors.
    pub left: Vec<f64>,
    /// Per layer: mean attention weight of the slot with the level of a pixel's upper neighbor, averaged as `left`.
    pub upper: Vec<f64>,
}

/// Embeds `images` `[B, T]`, shifted right by one slot: `[B, T, D]`. The first slot has level zero.
pub(crate) fn embed_moved(table: &Param<Tensor<2>>, images: &Tensor<2, Int>) -> Tensor<3> {
    let [b, t] = images.dims();
    let before = integers(vec![0u8; b], &images.device()).reshape([b, 1]);
    let moved = Tensor::cat(vec![before, images.clone().slice([0..b, 0..t - 1])], 1);
    let rows = table.val().select(0, moved.reshape([b * t]));
    let width = rows.dims()[1];
    rows.reshape([b, t, width])
}

/// Mean cross-entropy in nats per level, for log-probabilities `[B, T, levels]`.
pub fn cross_entropy(log_probabilities: Tensor<3>, images: &Tensor<2, Int>) -> Tensor<1> {
    let [b, t, levels] = log_probabilities.dims();
    loss::cross_entropy(log_probabilities.reshape([b * t, levels]), images.clone().reshape([b * t]))
}

/// Images as a tensor of levels `[B, T]`.
pub fn tokens(images: &[Vec<u8>], device: &Device) -> Tensor<2, Int> {
    let t = images.first().map_or(0, Vec::len);
    integers(images.concat(), device).reshape([images.len(), t])
}
