//! The paper's image model (LFF Section 4.1, Appendix B): a Reformer over the red, green and blue levels of every pixel.
//!
//! A sequence has three levels per pixel, row by row. Slot i contains level i − 1 and the position encoding of level i, which it
//! predicts. That encoding is the one of the pixel, concatenated with a learned color embedding. Flat encodings encode the index in the
//! sequence instead and have no color embedding. Layers are reversible, with two streams: $y_1 = x_1 + A(x_2)$, $y_2 = x_2 + F(y_1)$.
//! Inputs can therefore be recomputed from outputs, and no activations are stored for the backward pass. Attention uses
//! locality-sensitive [`hashing`].

pub mod hashing;
mod step;

use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor, activation};
use posenc_math::lff::encoding::Encoding;
pub use posenc_math::lff::reformer::{COLORS, Hashing, Sizes};
use rand_chacha::ChaCha8Rng;

use crate::draw::Draw;
use crate::image_model::{cross_entropy, embed_moved};
use crate::layers::{Activation, Dense, Dropout, FeedForward, LayerNorm};
use crate::loss::integers;
use crate::parameters::number;
use crate::position_encoding::{PositionEncoding, Positions, Prepared};
use hashing::{Draws, HashedAttention, Orders};

/// The input of the layers.
#[derive(Module, Debug)]
struct Input {
    levels: Param<Tensor<2>>,
    position: PositionEncoding,
    /// `[3, width − pixel_width]`.
    colors: Option<Param<Tensor<2>>>,
}

impl Input {
    /// The input tokens `[B, T, D]`.
    fn forward(
        &self,
        images: &Tensor<2, Int>,
        fixed: &Fixed,
        dropout: Option<&mut ChaCha8Rng>,
    ) -> Tensor<3> {
        let mut codes = self.position.encode(&fixed.positions, dropout);
        if let Some(colors) = &self.colors {
            let colors = colors.val().select(0, fixed.colors.clone());
            codes = Tensor::cat(vec![codes.select(0, fixed.pixels.clone()), colors], 1);
        }
        embed_moved(&self.levels, images) + codes.unsqueeze::<3>()
    }
}

#[derive(Module, Debug)]
struct Layer {
    attention_norm: LayerNorm,
    attention: HashedAttention,
    dense_norm: LayerNorm,
    dense: FeedForward,
}

impl Layer {
    fn attend(&self, x: Tensor<3>, draws: &Draws, orders: Option<&Orders>) -> (Tensor<3>, Orders) {
        self.attention.forward(self.attention_norm.forward(x), draws, orders)
    }

    /// The function F: the feed-forward network.
    fn transform(&self, x: Tensor<3>) -> Tensor<3> {
        self.dense.forward(self.dense_norm.forward(x), &mut Dropout::none())
    }
}

/// The output head: a layer norm over both streams and a dense layer.
#[derive(Module, Debug)]
struct Head {
    norm: LayerNorm,
    output: Dense,
}

impl Head {
    /// Mean cross-entropy in nats per level.
    fn cross_entropy(&self, streams: [Tensor<3>; 2], images: &Tensor<2, Int>) -> Tensor<1> {
        let scores = self.output.forward(self.norm.forward(Tensor::cat(streams.to_vec(), 2)));
        cross_entropy(activation::log_softmax(scores, 2), images)
    }
}

#[derive(Module, Debug)]
pub struct Reformer {
    input: Input,
    layers: Vec<Layer>,
    head: Head,
}

/// Tensors and settings that do not change between steps.
#[derive(Debug, Clone)]
pub struct Fixed {
    positions: Prepared,
    /// The pixel of each slot.
    pixels: Tensor<1, Int>,
    /// The color of each slot.
    colors: Tensor<1, Int>,
    hashing: Hashing,
}

impl Reformer {
    /// Initializes a model. `content` samples its weights, `code` those of the position encoding.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Sizes::check`] and of [`Encoding::check`].
    pub fn new(
        sizes: &Sizes,
        encoding: &Encoding,
        content: &mut ChaCha8Rng,
        code: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, (&'static str, String)> {
        sizes.check()?;
        let mut draw = Draw { rng: code, device };
        let (width, side) = (sizes.width, sizes.side);
        let position = if encoding.flat {
            PositionEncoding::new(encoding, &[side, side, COLORS], width, &mut draw)?
        } else {
            PositionEncoding::new(encoding, &[side, side], sizes.pixel_width, &mut draw)?
        };
        let mut draw = Draw { rng: content, device };
        let levels = draw.normal([sizes.levels, width], 1.0);
        let widths = [width, sizes.feed_forward, width];
        let layers = (0..sizes.layers).map(|_| Layer {
            attention_norm: draw.layer_norm(width),
            attention: HashedAttention::new(&mut draw, width, &sizes.hashing),
            dense_norm: draw.layer_norm(width),
            dense: FeedForward::new(&mut draw, widths, Activation::Gelu),
        });
        let layers = layers.collect();
        let head =
            Head { norm: draw.layer_norm(2 * width), output: draw.dense(2 * width, sizes.levels) };
        // Sampled last, so that flat encodings, which have no colors, share all other weights.
        let colors =
            (!encoding.flat).then(|| draw.normal([COLORS, width - sizes.pixel_width], 1.0));
        Ok(Reformer { input: Input { levels, position, colors }, layers, head })
    }

    /// Prepares the positions of all slots, on `device`.
    pub fn fix(&self, sizes: &Sizes, device: &Device) -> Fixed {
        let side = sizes.side;
        let sides: &[usize] =
            if self.input.colors.is_some() { &[side, side] } else { &[side, side, COLORS] };
        let positions = self.input.position.prepare(&Positions::grid(sides), device);
        let places =
            |of: fn(usize) -> usize| integers((0..sizes.length()).map(of).collect(), device);
        let (pixels, colors) = (places(|slot| slot / COLORS), places(|slot| slot % COLORS));
        Fixed { positions, pixels, colors, hashing: sizes.hashing }
    }

    /// Mean cross-entropy of `images` `[B, T]` in bits per level, without dropout; `rng` samples the hashing matrices.
    pub fn bits(&self, images: &Tensor<2, Int>, fixed: &Fixed, rng: &mut ChaCha8Rng) -> f64 {
        let still = self.clone().no_grad();
        let device = images.device();
        let x = still.input.forward(images, fixed, None);
        let (mut first, mut second) = (x.clone(), x);
        for layer in &still.layers {
            let draws = Draws::new(&fixed.hashing, false, rng, &device);
            first = first + layer.attend(second.clone(), &draws, None).0;
            second = second + layer.transform(first.clone());
        }
        number(still.head.cross_entropy([first, second], images)) / std::f64::consts::LN_2
    }
}
