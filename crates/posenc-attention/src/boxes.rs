//! Small transformers over the boxes of a screen: [`Labeller`] predicts the label of each box, [`Referrer`] the box that an expression
//! refers to.
//!
//! The token of a box contains the position encoding of its bounds (left, top, right, bottom); a labeller has no other input. Layers are
//! pre-norm, with one more layer norm after the last layer. The screens of a batch are padded to the largest number of boxes, and the
//! attention mask hides the padding. Only real boxes are encoded; the padding is added afterwards.

mod labels;
mod referred;

use burn::module::Module;
use burn::tensor::{Device, Int, Tensor};
use rand_chacha::ChaCha8Rng;

use crate::draw::{Draw, constant};
use crate::layers::{Block, LayerDropout, LayerNorm, LayerStyle, MASK_BIAS, TransformerSizes};
use crate::loss::integers;
use crate::position_encoding::{PositionEncoding, Positions};
use crate::trainer::Loss;

pub use crate::captioner::{BINS, COORDINATES};
pub use labels::{LabelledScreen, Labeller};
pub use referred::{Candidate, Referrer, ReferrerSizes, ReferringScreen};

/// Left, top, right and bottom of a box on the scale of the encoding.
pub type Bounds = [f64; COORDINATES];

/// Screens per evaluation batch.
const CHUNK: usize = 64;

/// The transformer layers of both models.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Layers {
    /// Sizes of the layers.
    pub sizes: TransformerSizes,
    /// Dropout rate of the outputs of attention and feed-forward networks, before the residual addition.
    pub dropout: f64,
}

impl Layers {
    /// Floating-point operations of the layers in a training step on `screens` screens of `length` tokens, three times those of a forward
    /// pass.
    pub fn operations(&self, screens: usize, length: usize) -> f64 {
        let token = self.sizes.layers as f64 * self.sizes.layer_operations(length);
        6.0 * (screens * length) as f64 * token
    }
}

/// Random streams for the dropout masks of a training step. The position encoding has a stream of its own, so that an encoding without
/// dropout leaves the masks of the layers unchanged.
#[derive(Debug)]
pub struct Masks<'a> {
    /// Masks of the layers.
    pub layers: &'a mut ChaCha8Rng,
    /// Masks of the modulator of the position encoding.
    pub code: &'a mut ChaCha8Rng,
}

/// A model that is trained on screens.
pub trait ScreenModel: Module {
    /// Input of the model.
    type Screen;

    /// The loss on a batch in nats; `None` if the screens do not fit the model. With `masks`, dropout is applied.
    fn loss(
        &self,
        screens: &[&Self::Screen],
        masks: Option<Masks<'_>>,
        device: &Device,
    ) -> Option<Loss>;
}

/// Transformer blocks and the final layer norm.
#[derive(Module, Debug)]
struct Stack {
    blocks: Vec<Block>,
    norm: LayerNorm,
    #[module(skip)]
    dropout: f64,
}

impl Stack {
    fn new(draw: &mut Draw<'_>, Layers { sizes, dropout }: Layers) -> Self {
        let blocks = Block::stack(draw, &sizes, sizes.layers, LayerStyle::GELU);
        Stack { blocks, norm: draw.layer_norm(sizes.width), dropout }
    }

    /// Transforms tokens `[B, T, D]`; `bias` `[B, 1, 1, T]` is added to the attention scores.
    fn forward(
        &self,
        mut x: Tensor<3>,
        bias: &Tensor<4>,
        masks: Option<&mut ChaCha8Rng>,
    ) -> Tensor<3> {
        let mut dropout = LayerDropout { rng: masks, inner: 0.0, residual: self.dropout };
        for block in &self.blocks {
            x = block.forward(x, bias, &mut dropout);
        }
        self.norm.forward(x)
    }
}

/// Counts and coordinates of the boxes of a batch.
#[derive(Debug)]
struct Layout {
    /// Number of boxes of each screen.
    counts: Vec<usize>,
    /// The largest count, N.
    max_boxes: usize,
    /// Coordinates of all boxes, screen by screen.
    coordinates: Vec<f64>,
}

impl Layout {
    /// `None` if a screen has no boxes, or there is no screen.
    fn new<'a>(screens: impl Iterator<Item = &'a [Bounds]>) -> Option<Self> {
        let (mut counts, mut coordinates) = (Vec::new(), Vec::new());
        for boxes in screens {
            counts.push(boxes.len());
            coordinates.extend(boxes.iter().flatten());
        }
        let max_boxes = counts.iter().copied().max()?;
        counts.iter().all(|&count| count > 0).then_some(Layout { counts, max_boxes, coordinates })
    }

    /// Position encodings of the boxes, `[W, D]`.
    fn codes(
        &self,
        encoder: &PositionEncoding,
        masks: Option<&mut ChaCha8Rng>,
        device: &Device,
    ) -> Tensor<2> {
        let coordinates = self.coordinates.clone();
        let positions = Positions { sides: vec![BINS; COORDINATES], coordinates };
        encoder.encode(&encoder.prepare(&positions, device), masks)
    }

    /// Pads the rows of the boxes, `[W, D]`, to `[B, N, D]`. The padding repeats the last box of the screen, and attention must mask it.
    fn filled(&self, rows: Tensor<2>, device: &Device) -> Tensor<3> {
        let width = rows.dims()[1];
        let (mut places, mut first) = (Vec::new(), 0);
        for &count in &self.counts {
            places.extend((0..self.max_boxes).map(|i| first + i.min(count - 1)));
            first += count;
        }
        let b = self.counts.len();
        rows.select(0, integers(places, device)).reshape([b, self.max_boxes, width])
    }

    /// Indices of the real boxes among the `[B N]` padded rows.
    fn rows(&self, device: &Device) -> Tensor<1, Int> {
        let n = self.max_boxes;
        let own = self.counts.iter().enumerate();
        integers(own.flat_map(|(b, &count)| (0..count).map(move |i| b * n + i)).collect(), device)
    }

    /// Zero for boxes, [`MASK_BIAS`] for the padding, `[B, N]` row by row.
    fn bias(&self) -> Vec<f32> {
        bias(&self.counts, self.max_boxes)
    }
}

/// Zero for the first `counts[i]` entries of row i, [`MASK_BIAS`] for the others.
fn bias(counts: &[usize], max_boxes: usize) -> Vec<f32> {
    let one = |&count: &usize| (0..max_boxes).map(move |i| if i < count { 0.0 } else { MASK_BIAS });
    counts.iter().flat_map(one).collect()
}

/// The index of the largest number; the first index on ties.
fn largest(numbers: &[f32]) -> usize {
    let mut best = 0;
    for (i, number) in numbers.iter().enumerate() {
        if *number > numbers[best] {
            best = i;
        }
    }
    best
}

/// The attention bias as a tensor, `[B, 1, 1, T]`.
fn attention_bias(bias: Vec<f32>, screens: usize, device: &Device) -> Tensor<4> {
    let length = bias.len() / screens.max(1);
    constant(bias, [screens, 1, 1, length], device)
}
