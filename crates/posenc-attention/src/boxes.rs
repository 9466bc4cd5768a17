//! Small transformers over the boxes of a screen: what each box is ([`Labeller`]), and which of them an expression refers to
//! ([`Referrer`]).
//!
//! The token of a box contains the code of its position (left, top, right, bottom); a labeller reads nothing else. Layer norms come
//! before attention and feed-forward networks, and one more after the last layer. Screens of a batch are padded to the most boxes;
//! the attention mask hides the padding. Codes are computed for boxes only and padded afterwards.

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

/// Screens per batch of an evaluation.
const CHUNK: usize = 64;

/// Layers of both models.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Layers {
    /// Their sizes.
    pub sizes: TransformerSizes,
    /// Dropout rate of what attention and feed-forward networks add.
    pub dropout: f64,
}

impl Layers {
    /// Multiplications and additions of a step of training through the layers on `screens` screens of `length` tokens, three times
    /// those of a forward pass.
    pub fn operations(&self, screens: usize, length: usize) -> f64 {
        let token = self.sizes.layers as f64 * self.sizes.layer_operations(length);
        6.0 * (screens * length) as f64 * token
    }
}

/// Streams of masks of a step of training. The code's are its own: codes that draw none leave the masks of the layers as they
/// are.
#[derive(Debug)]
pub struct Masks<'a> {
    /// Of the layers.
    pub layers: &'a mut ChaCha8Rng,
    /// Of the modulator of the code.
    pub code: &'a mut ChaCha8Rng,
}

/// A model that learns from screens.
pub trait ScreenModel: Module {
    /// What it reads.
    type Screen;

    /// The loss on a batch in nats; `None` if the screens do not fit the model. With `masks`, dropout acts as in training.
    fn loss(
        &self,
        screens: &[&Self::Screen],
        masks: Option<Masks<'_>>,
        device: &Device,
    ) -> Option<Loss>;
}

/// Blocks and the norm after them.
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

    /// Tokens `[B, T, D]` under the bias `[B, 1, 1, T]`.
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

/// Where the boxes of a batch are.
#[derive(Debug)]
struct Layout {
    /// Boxes of each screen.
    counts: Vec<usize>,
    /// The most of them, N.
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

    /// Codes of the boxes, `[W, D]`.
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

    /// What is known of each box, `[W, D]`, filled up to `[B, N, D]`. The filling is a copy of a box, which nothing may read.
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

    /// Rows of the boxes among `[B N]`.
    fn rows(&self, device: &Device) -> Tensor<1, Int> {
        let n = self.max_boxes;
        let own = self.counts.iter().enumerate();
        integers(own.flat_map(|(b, &count)| (0..count).map(move |i| b * n + i)).collect(), device)
    }

    /// Zero for boxes, [`MASK_BIAS`] for the filling, `[B, N]` row by row.
    fn bias(&self) -> Vec<f32> {
        bias(&self.counts, self.max_boxes)
    }
}

/// Zero for the first ones of each row, as many as `counts` says, [`MASK_BIAS`] for the others.
fn bias(counts: &[usize], max_boxes: usize) -> Vec<f32> {
    let one = |&count: &usize| (0..max_boxes).map(move |i| if i < count { 0.0 } else { MASK_BIAS });
    counts.iter().flat_map(one).collect()
}

/// The place of the largest number, the first of equal ones.
fn largest(numbers: &[f32]) -> usize {
    let mut best = 0;
    for (i, number) in numbers.iter().enumerate() {
        if *number > numbers[best] {
            best = i;
        }
    }
    best
}

/// A bias for attention, `[B, 1, 1, T]`.
fn attention_bias(bias: Vec<f32>, screens: usize, device: &Device) -> Tensor<4> {
    let length = bias.len() / screens.max(1);
    constant(bias, [screens, 1, 1, length], device)
}
