//! The image model (LFF Section 4.1, Appendix B): an autoregressive transformer over the levels of an image.
//!
//! A sequence has the gray level of each pixel, or its red, green and blue levels, row by row. Slot i contains level i − 1 and the
//! position encoding of level i, which it predicts. So a slot of a gray image always contains the level of its pixel's left neighbor. The
//! level of the upper neighbor is in slot i − side + 1, which attention can find only by position encodings. In images with colors, the
//! encoding of a pixel is concatenated with a learned color embedding; flat encodings encode the index in the sequence instead.
//!
//! Slots attend to all slots before them, or by [LSH attention](lsh). Layers have one residual stream, or two reversible ones:
//! $y_1 = x_1 + A(x_2)$, $y_2 = x_2 + F(y_1)$. Inputs of reversible layers can be recomputed from outputs, so no activations are stored
//! for the backward pass. The paper's model, a Reformer, has colors, LSH attention and reversible layers.

pub mod lsh;
mod step;

use std::f64::consts::LN_2;

use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor, activation};
use posenc_math::lff::divergence::Divergence;
use posenc_math::lff::encoding::Encoding;
pub use posenc_math::lff::image_model::Lsh;
use posenc_math::lff::image_model::{COLORS, positions};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::divergence::TargetVariance;
use crate::draw::Draw;
use crate::layers::{
    Activation, Attention, Dense, Dropout, FeedForward, LayerNorm, TransformerSizes, causal_bias,
};
use crate::loss::{self, integers};
use crate::parameters::{number, numbers};
use crate::position_encoding::{PositionEncoding, Positions, Prepared};
use crate::trainer::{Loss, Trainer};
use lsh::{LshAttention, Orders};

/// Slots that are evaluated together, in up to 16 images.
const EVALUATED: usize = 16 * 1024;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sizes {
    pub side: usize,
    pub levels: usize,
    /// Width of the color embedding; `None` for gray images.
    pub color_width: Option<usize>,
    /// Width of the position encoding if it is concatenated after the level embedding; `None` if both have the width of the model and are
    /// added.
    pub concatenated: Option<usize>,
    pub transformer: TransformerSizes,
    pub lsh: Option<Lsh>,
    pub reversible: bool,
    /// The term that Eq. 10 adds to the loss.
    pub divergence: Option<Divergence>,
}

impl Sizes {
    fn channels(&self) -> usize {
        if self.color_width.is_some() { COLORS } else { 1 }
    }

    /// Number of slots of a sequence.
    pub fn length(&self) -> usize {
        self.channels() * self.side * self.side
    }

    /// Sides of the positions, and the width of their encoding.
    pub fn positions(&self, encoding: &Encoding) -> (Vec<usize>, usize) {
        let width = self.concatenated.unwrap_or(self.transformer.width);
        positions(self.side, width, self.color_width, encoding.flat)
    }

    fn output_width(&self) -> usize {
        self.transformer.width * if self.reversible { 2 } else { 1 }
    }

    /// Floating-point operations of a training step on `images` images in dense layers and attention, three times those of a forward
    /// pass. Full attention above the diagonal counts, and recomputed reversible layers do not.
    pub fn operations(&self, images: usize) -> f64 {
        let (length, layers) = (self.length(), &self.transformer);
        let layer = match &self.lsh {
            None => layers.layer_operations(length),
            Some(lsh) => {
                let dense = 3 * lsh.head_width * layers.heads + 2 * layers.feed_forward;
                let slots = lsh.rounds * (4 * lsh.chunk + lsh.buckets / 2);
                (layers.width * dense + slots * lsh.head_width * layers.heads) as f64
            }
        };
        let token = layers.layers as f64 * layer + (self.output_width() * self.levels) as f64;
        6.0 * (images * length) as f64 * token
    }
}

#[derive(Module, Debug)]
struct Input {
    levels: Param<Tensor<2>>,
    position: PositionEncoding,
    colors: Option<Param<Tensor<2>>>,
    is_concatenated: bool,
}

impl Input {
    /// Tokens `[B, T, D]`; `dropout` as in [`PositionEncoding::encode`].
    fn forward(
        &self,
        images: &Tensor<2, Int>,
        fixed: &Fixed,
        dropout: Option<&mut ChaCha8Rng>,
    ) -> Tensor<3> {
        let mut codes = self.position.encode(&fixed.positions, dropout);
        if let Some(colors) = &self.colors {
            let [pixel, color] = fixed.slots.clone();
            codes = Tensor::cat(vec![codes.select(0, pixel), colors.val().select(0, color)], 1);
        }
        let levels = embed_moved(&self.levels, images);
        let codes = codes.unsqueeze::<3>();
        if !self.is_concatenated {
            return levels + codes;
        }
        let [_, length, width] = codes.dims();
        let codes = codes.expand([images.dims()[0], length, width]);
        Tensor::cat(vec![levels, codes], 2)
    }
}

#[derive(Module, Debug)]
#[allow(clippy::large_enum_variant, reason = "`Module` has no form for a box")]
enum SelfAttention {
    Full(Attention),
    Lsh(LshAttention),
}

/// A layer with layer norms before attention and feed-forward network.
#[derive(Module, Debug)]
struct Layer {
    attention_norm: LayerNorm,
    attention: SelfAttention,
    dense_norm: LayerNorm,
    dense: FeedForward,
}

/// Attention weights of a layer with full attention, `[B, H, T, T]`, or its orders of LSH attention.
type Seen = (Option<Tensor<4>>, Option<Orders>);

impl Layer {
    /// The function A: attention of `x` `[B, T, D]`. Random numbers of LSH attention are from `draws`, with dropout if `is_training`; it also
    /// uses `orders` if given.
    fn attend(
        &self,
        x: Tensor<3>,
        fixed: &Fixed,
        (is_training, draws): (bool, &mut ChaCha8Rng),
        orders: Option<&Orders>,
    ) -> (Tensor<3>, Seen) {
        let x = self.attention_norm.forward(x);
        match &self.attention {
            SelfAttention::Full(attention) => {
                let (keys, none) = ([x.clone(), x.clone()], &mut Dropout::new(0.0, None));
                let (y, weights) = attention.forward(x, keys, fixed.bias.clone(), true, none);
                (y, (Some(weights), None))
            }
            SelfAttention::Lsh(attention) => {
                let (y, orders) = attention.forward(x, is_training, draws, orders);
                (y, (None, Some(orders)))
            }
        }
    }

    /// The function F: the feed-forward network.
    fn transform(&self, x: Tensor<3>) -> Tensor<3> {
        self.dense.forward(self.dense_norm.forward(x), &mut Dropout::new(0.0, None))
    }
}

#[derive(Module, Debug)]
struct Head {
    norm: LayerNorm,
    output: Dense,
}

impl Head {
    /// Log-probabilities of the levels, `[B, T, levels]`, from one or two streams.
    fn forward(&self, first: Tensor<3>, second: Option<Tensor<3>>) -> Tensor<3> {
        let x = second.into_iter().fold(first, |first, own| Tensor::cat(vec![first, own], 2));
        activation::log_softmax(self.output.forward(self.norm.forward(x)), 2)
    }
}

#[derive(Module, Debug)]
pub struct ImageModel {
    input: Input,
    layers: Vec<Layer>,
    head: Head,
    /// Target variance of the divergence of LFF Eq. 9.
    target: Option<TargetVariance>,
    #[module(skip)]
    sizes: Sizes,
}

/// Tensors that do not change between steps.
#[derive(Debug, Clone)]
pub struct Fixed {
    positions: Prepared,
    /// The pixel and the color of each slot.
    slots: [Tensor<1, Int>; 2],
    /// The mask of full attention, [`causal_bias`].
    bias: Tensor<4>,
}

impl ImageModel {
    /// Initializes a model. `content` samples its weights, `code` those of the position encoding. [`Encoding::check`] and [`Lsh::check`] must
    /// find no fault.
    pub fn new(
        sizes: &Sizes,
        encoding: &Encoding,
        [mut content, mut code]: [ChaCha8Rng; 2],
        device: &Device,
    ) -> Self {
        let TransformerSizes { width, heads, feed_forward, layers } = sizes.transformer;
        let (sides, code_width) = sizes.positions(encoding);
        let draw = &mut Draw { rng: &mut code, device };
        let position = PositionEncoding::new(encoding, &sides, code_width, draw);
        let draw = &mut Draw { rng: &mut content, device };
        let level_width = width.saturating_sub(sizes.concatenated.unwrap_or(0));
        let levels = draw.normal([sizes.levels, level_width], 1.0);
        let layers = (0..layers).map(|_| Layer {
            attention_norm: draw.layer_norm(width),
            attention: match &sizes.lsh {
                None => SelfAttention::Full(Attention::new(draw, width, heads, true)),
                Some(lsh) => SelfAttention::Lsh(LshAttention::new(draw, width, heads, lsh)),
            },
            dense_norm: draw.layer_norm(width),
            dense: FeedForward::new(draw, [width, feed_forward, width], Activation::Gelu),
        });
        let layers = layers.collect();
        let outputs = sizes.output_width();
        let head =
            Head { norm: draw.layer_norm(outputs), output: draw.dense(outputs, sizes.levels) };
        // Sampled last, so that flat encodings, which have no colors, share all other weights.
        let colors = sizes.color_width.filter(|_| !encoding.flat);
        let colors = colors.map(|width| draw.normal([COLORS, width], 1.0));
        let is_concatenated = sizes.concatenated.is_some();
        ImageModel {
            input: Input { levels, position, colors, is_concatenated },
            layers,
            head,
            target: TargetVariance::of(sizes.divergence, encoding, device),
            sizes: *sizes,
        }
    }

    /// One training step on `images` `[B, T]`; returns the loss before it in nats per level. `draws` samples dropout masks and hashing
    /// matrices.
    pub fn step(
        trainer: &mut Trainer<Self>,
        images: &Tensor<2, Int>,
        fixed: &Fixed,
        draws: &mut ChaCha8Rng,
    ) -> f64 {
        let sizes = trainer.model.sizes;
        if !sizes.reversible {
            return trainer.step(|model| model.loss(images, fixed, draws));
        }
        trainer.step_with(sizes.operations(images.dims()[0]), |model, adam, rate| {
            model.reversible_step(images, fixed, adam, rate, draws)
        })
    }

    /// The loss of a training step, in nats per level, in one graph.
    pub fn loss(&self, images: &Tensor<2, Int>, fixed: &Fixed, draws: &mut ChaCha8Rng) -> Loss {
        Loss {
            value: cross_entropy(self.forward(images, fixed, true, draws).0, images),
            penalty: self.penalty(),
            operations: self.sizes.operations(images.dims()[0]),
        }
    }

    fn penalty(&self) -> Option<Tensor<1>> {
        self.target.as_ref().and_then(|target| target.penalty(&self.input.position))
    }

    /// Prepares the positions of all slots and the causal mask, on `device`.
    pub fn fix(&self, device: &Device) -> Fixed {
        let Sizes { side, lsh, .. } = self.sizes;
        let (length, channels) = (self.sizes.length(), self.sizes.channels());
        let flat_sides = [side, side, channels];
        let is_pixels = channels == 1 || self.input.colors.is_some();
        let sides = if is_pixels { &flat_sides[..2] } else { &flat_sides[..] };
        let places = |of: fn(usize, usize) -> usize| {
            integers((0..length).map(|slot| of(slot, channels)).collect::<Vec<_>>(), device)
        };
        let slots =
            [places(|slot, channels| slot / channels), places(|slot, channels| slot % channels)];
        // LSH attention has masks of its own.
        let bias = causal_bias(if lsh.is_some() { 1 } else { length }, device);
        let positions = self.input.position.prepare(&Positions::grid(sides), device);
        Fixed { positions, slots, bias }
    }

    pub fn position_encoding(&self) -> &PositionEncoding {
        &self.input.position
    }

    /// Position encodings of all positions, without dropout, one after the other.
    pub fn codes(&self, fixed: &Fixed) -> Vec<f32> {
        numbers(self.input.position.encode(&fixed.positions, None))
    }

    /// Log-probabilities of the levels of `images` `[B, T]`, `[B, T, levels]`, and the weights of full attention per layer, `[B, H, T, T]`. `draws`
    /// samples dropout masks, if `is_training`, and hashing matrices.
    pub fn forward(
        &self,
        images: &Tensor<2, Int>,
        fixed: &Fixed,
        is_training: bool,
        draws: &mut ChaCha8Rng,
    ) -> (Tensor<3>, Vec<Tensor<4>>) {
        let mut first = self.input.forward(images, fixed, is_training.then_some(&mut *draws));
        let mut second = self.sizes.reversible.then(|| first.clone());
        let mut attention = Vec::new();
        for layer in &self.layers {
            let x = second.as_ref().unwrap_or(&first).clone();
            let (change, (weights, _)) = layer.attend(x, fixed, (is_training, &mut *draws), None);
            attention.extend(weights);
            first = first + change;
            let change = layer.transform(first.clone());
            match second {
                Some(x) => second = Some(x + change),
                None => first = first + change,
            }
        }
        (self.head.forward(first, second), attention)
    }

    /// Bits per level and attention on images that were not trained on; `draws` samples hashing matrices.
    pub fn evaluate(
        &self,
        fixed: &Fixed,
        held_out: &[Vec<u8>],
        draws: &mut ChaCha8Rng,
    ) -> Evaluation {
        // Without trained tensors, no autodiff graph is built.
        let model = self.clone().no_grad();
        let device = fixed.bias.device();
        let (side, channels, t) = (self.sizes.side, self.sizes.channels(), self.sizes.length());
        let (mut nats, mut count) = (0.0, 0usize);
        let mut sums = Vec::new();
        for images in held_out.chunks((EVALUATED / t).clamp(1, 16)) {
            let levels = tokens(images, &device);
            let (log_probabilities, attention) = model.forward(&levels, fixed, false, draws);
            nats += number(cross_entropy(log_probabilities, &levels)) * images.len() as f64;
            count += images.len();
            sums.resize(attention.len(), [0.0f64; 2]);
            for (sums, weights) in sums.iter_mut().zip(attention) {
                for row in numbers(weights).chunks_exact(t * t) {
                    let has_both = |slot: &usize| {
                        let pixel = slot / channels;
                        pixel / side >= 1 && pixel % side >= 1
                    };
                    for slot in (0..t).filter(has_both) {
                        let own = &row[slot * t..(slot + 1) * t];
                        // Slot i holds level i − 1.
                        sums[0] += f64::from(own[slot + 1 - channels]);
                        sums[1] += f64::from(own[slot + 1 - side * channels]);
                    }
                }
            }
        }
        let slots = channels * (side - 1) * (side - 1);
        let slots = (slots * count * self.sizes.transformer.heads).max(1) as f64;
        let mean = |which: usize| sums.iter().map(|sum| sum[which] / slots).collect();
        Evaluation { bits: nats / count.max(1) as f64 / LN_2, left: mean(0), upper: mean(1) }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evaluation {
    pub bits: f64,
    /// Per layer with full attention: mean attention weight of the slot with the level of a pixel's left neighbor, over heads, images and
    /// the levels of pixels with both neighbors.
    pub left: Vec<f64>,
    /// Per layer: mean attention weight of the slot with the level of a pixel's upper neighbor, averaged as `left`.
    pub upper: Vec<f64>,
}

/// Embeds `images` `[B, T]`, shifted right by one slot: `[B, T, D]`. The first slot has level zero.
fn embed_moved(table: &Param<Tensor<2>>, images: &Tensor<2, Int>) -> Tensor<3> {
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
