//! A small transformer that labels the boxes of a screen from their positions.
//!
//! The token of a box is the position encoding of its bounds (left, top, right, bottom) after a dense layer. Layers are pre-norm, with one
//! more layer norm after the last layer. The screens of a batch are padded to the largest number of boxes, and the attention mask hides the
//! padding. Only real boxes are encoded; the padding is added afterwards.

use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, activation};
use posenc_math::lff::encoding::Encoding;
use rand_chacha::ChaCha8Rng;

use crate::draw::{Draw, constant};
use crate::layers::{
    Dense, Layer, LayerDropout, LayerNorm, LayerStyle, MASK_BIAS, TransformerSizes,
};
use crate::loss::{cross_entropy, integers};
use crate::parameters::numbers;
use crate::position_encoding::{PositionEncoding, Positions};
use crate::trainer::Loss;

pub use crate::captioner::{BINS, COORDINATES};

/// Left, top, right and bottom of a box on the scale of the encoding.
pub type Bounds = [f64; COORDINATES];

const CHUNK: usize = 64;

/// The transformer layers of a [`Labeller`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Layers {
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
    pub layers: &'a mut ChaCha8Rng,
    /// Masks of the modulator of the position encoding.
    pub code: &'a mut ChaCha8Rng,
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

    /// The attention bias, `[B, 1, 1, N]`: zero for boxes, [`MASK_BIAS`] for the padding.
    fn bias(&self, device: &Device) -> Tensor<4> {
        let (b, n) = (self.counts.len(), self.max_boxes);
        let row = |&count: &usize| (0..n).map(move |i| if i < count { 0.0 } else { MASK_BIAS });
        constant(self.counts.iter().flat_map(row).collect(), [b, 1, 1, n], device)
    }
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

/// A screen with the labels of its boxes.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelledScreen {
    /// The boxes, in any order.
    pub boxes: Vec<Bounds>,
    /// The label of each box.
    pub labels: Vec<usize>,
}

/// A transformer that labels all boxes of a screen at once; the boxes are its only input.
#[derive(Module, Debug)]
pub struct Labeller {
    position: PositionEncoding,
    token: Dense,
    encoder_layers: Vec<Layer>,
    norm: LayerNorm,
    output: Dense,
    #[module(skip)]
    layers: Layers,
}

impl Labeller {
    /// Initializes a model with `labels` outputs. `content` samples its weights, `code` those of the position encoding.
    ///
    /// # Errors
    ///
    /// Returns the invalid key of `encoding` and a message with the allowed values.
    pub fn new(
        layers: Layers,
        labels: usize,
        encoding: &Encoding,
        content: &mut ChaCha8Rng,
        code: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, (&'static str, String)> {
        let sides = [BINS; COORDINATES];
        let width = layers.sizes.width;
        let draw = &mut Draw { rng: code, device };
        let position = PositionEncoding::new(encoding, &sides, width, draw)?;
        let mut draw = Draw { rng: content, device };
        Ok(Labeller {
            position,
            token: draw.dense(width, width),
            encoder_layers: Layer::stack(
                &mut draw,
                &layers.sizes,
                layers.sizes.layers,
                LayerStyle::GELU,
            ),
            norm: draw.layer_norm(width),
            output: draw.dense(width, labels),
            layers,
        })
    }

    /// Log-probabilities of the labels of all boxes, screen by screen, `[W, C]`.
    fn log_probabilities(
        &self,
        layout: &Layout,
        masks: Option<Masks<'_>>,
        device: &Device,
    ) -> Tensor<2> {
        let (of_layers, of_code) = masks.map(|m| (m.layers, m.code)).unzip();
        let tokens = self.token.forward(layout.codes(&self.position, of_code, device));
        let mut x = layout.filled(tokens, device);
        let ([b, n, d], bias) = (x.dims(), layout.bias(device));
        let mut dropout =
            LayerDropout { rng: of_layers, inner: 0.0, residual: self.layers.dropout };
        for layer in &self.encoder_layers {
            x = layer.encode(x, None, &bias, &mut dropout);
        }
        let x = self.norm.forward(x).reshape([b * n, d]).select(0, layout.rows(device));
        activation::log_softmax(self.output.forward(x), 1)
    }

    /// Log-probabilities of the labels of each box of a screen, box by box; `None` for a screen without boxes.
    pub fn of_screen(&self, boxes: &[Bounds], device: &Device) -> Option<Vec<f32>> {
        let layout = Layout::new(std::iter::once(boxes))?;
        Some(numbers(self.log_probabilities(&layout, None, device)))
    }

    /// The likeliest labels of all boxes, screen by screen; `None` if a screen has no boxes.
    pub fn labels(&self, screens: &[&LabelledScreen], device: &Device) -> Option<Vec<usize>> {
        let model = self.clone().no_grad();
        let labels = self.output.outputs();
        let mut all = Vec::new();
        for chunk in screens.chunks(CHUNK) {
            let layout = Layout::new(chunk.iter().map(|screen| &screen.boxes[..]))?;
            let rows = numbers(model.log_probabilities(&layout, None, device));
            all.extend(rows.chunks_exact(labels).map(largest));
        }
        Some(all)
    }

    /// The mean cross-entropy over boxes in nats; `None` if the screens do not fit the model. With `masks`, dropout is applied.
    pub fn loss(
        &self,
        screens: &[&LabelledScreen],
        masks: Option<Masks<'_>>,
        device: &Device,
    ) -> Option<Loss> {
        let layout = Layout::new(screens.iter().map(|screen| &screen.boxes[..]))?;
        let labels = self.output.outputs();
        let truth: Vec<usize> =
            screens.iter().flat_map(|screen| screen.labels.iter().copied()).collect();
        let fits = |screen: &&LabelledScreen| screen.labels.len() == screen.boxes.len();
        if !screens.iter().all(fits) || truth.iter().any(|&label| label >= labels) {
            return None;
        }
        let boxes = truth.len() as f64;
        let d = self.layers.sizes.width as f64;
        let operations = self.layers.operations(screens.len(), layout.max_boxes)
            + 6.0 * boxes * d * (d + labels as f64);
        let log_probabilities = self.log_probabilities(&layout, masks, device);
        let value = cross_entropy(log_probabilities, integers(truth, device));
        Some(Loss { value, penalty: None, operations })
    }
}
