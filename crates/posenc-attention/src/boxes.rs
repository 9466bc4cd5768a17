//! A small transformer that labels the boxes of a screen from their positions.
//!
//! The token of a box is the position encoding of its bounds (left, top, right, bottom) after a dense layer. Layers are pre-norm, with one
//! more layer norm after the last layer. The screens of a batch are padded to the largest number of boxes, and the attention mask hides the
//! padding. Only real boxes are encoded; the padding is added afterwards.

use burn::module::Module;
use burn::tensor::{Device, Tensor, activation};
use posenc_math::lff::encoding::Encoding;
use rand_chacha::ChaCha8Rng;

use crate::draw::Draw;
use crate::layers::{Dense, Layer, LayerDropout, LayerNorm, LayerStyle, Padded, TransformerSizes};
use crate::loss::{cross_entropy, integers};
use crate::parameters::numbers;
use crate::position_encoding::PositionEncoding;
use crate::trainer::Loss;

pub use crate::captioner::{BINS, COORDINATES};

/// Left, top, right and bottom of a box on the scale of the encoding.
pub type Bounds = [f64; COORDINATES];

const CHUNK: usize = 64;

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

#[derive(Debug)]
struct Layout {
    screens: Padded,
    /// Coordinates of all boxes, screen by screen.
    coordinates: Vec<f64>,
}

impl Layout {
    /// `None` if a screen has no boxes, or there is no screen.
    fn new<'a>(screens: impl Iterator<Item = &'a [Bounds]>, device: &Device) -> Option<Self> {
        let (mut counts, mut coordinates) = (Vec::new(), Vec::new());
        for boxes in screens {
            counts.push(boxes.len());
            coordinates.extend(boxes.iter().flatten());
        }
        let is_filled = !counts.is_empty() && counts.iter().all(|&count| count > 0);
        is_filled.then(|| Layout { screens: Padded::new(&counts, device), coordinates })
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
    pub boxes: Vec<Bounds>,
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
    /// An error has the invalid key of `encoding`.
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
        let codes = self.position.encode_boxes(layout.coordinates.clone(), of_code, device);
        let mut x = layout.screens.pad(self.token.forward(codes));
        let bias = layout.screens.bias();
        let mut dropout =
            LayerDropout { rng: of_layers, inner: 0.0, residual: self.layers.dropout };
        for layer in &self.encoder_layers {
            x = layer.encode(x, None, &bias, &mut dropout);
        }
        let x = layout.screens.unpad(self.norm.forward(x));
        activation::log_softmax(self.output.forward(x), 1)
    }

    /// Log-probabilities of the labels of each box of a screen, box by box; `None` for a screen without boxes.
    pub fn of_screen(&self, boxes: &[Bounds], device: &Device) -> Option<Vec<f32>> {
        let layout = Layout::new(std::iter::once(boxes), device)?;
        Some(numbers(self.log_probabilities(&layout, None, device)))
    }

    /// The likeliest labels of all boxes, screen by screen; `None` if a screen has no boxes.
    pub fn labels(&self, screens: &[&LabelledScreen], device: &Device) -> Option<Vec<usize>> {
        let model = self.clone().no_grad();
        let labels = self.output.outputs();
        let mut all = Vec::new();
        for chunk in screens.chunks(CHUNK) {
            let layout = Layout::new(chunk.iter().map(|screen| &screen.boxes[..]), device)?;
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
        let layout = Layout::new(screens.iter().map(|screen| &screen.boxes[..]), device)?;
        let labels = self.output.outputs();
        let truth: Vec<usize> =
            screens.iter().flat_map(|screen| screen.labels.iter().copied()).collect();
        let fits = |screen: &&LabelledScreen| screen.labels.len() == screen.boxes.len();
        if !screens.iter().all(fits) || truth.iter().any(|&label| label >= labels) {
            return None;
        }
        let boxes = truth.len() as f64;
        let d = self.layers.sizes.width as f64;
        let operations = self.layers.operations(screens.len(), layout.screens.longest)
            + 6.0 * boxes * d * (d + labels as f64);
        let log_probabilities = self.log_probabilities(&layout, masks, device);
        let value = cross_entropy(log_probabilities, integers(truth, device));
        Some(Loss { value, penalty: None, operations })
    }
}
