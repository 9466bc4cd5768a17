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

/// Random streams for the dropout masks of a training step. The position encoding has a stream of its own, so that an encoding without
/// dropout leaves the masks of the layers unchanged.
#[derive(Debug)]
pub struct Masks<'a> {
    pub layers: &'a mut ChaCha8Rng,
    /// Masks of the modulator of the position encoding.
    pub code: &'a mut ChaCha8Rng,
}

/// A screen of at least one box, with the labels of its boxes.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelledScreen {
    pub boxes: Vec<Bounds>,
    pub labels: Vec<usize>,
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

/// A transformer that labels all boxes of a screen at once; the boxes are its only input.
#[derive(Module, Debug)]
pub struct Labeller {
    position: PositionEncoding,
    token: Dense,
    encoder_layers: Vec<Layer>,
    norm: LayerNorm,
    output: Dense,
    #[module(skip)]
    sizes: TransformerSizes,
    dropout: f64,
}

impl Labeller {
    /// Initializes a model with `labels` outputs, and with `dropout` of the outputs of attention and feed-forward networks before the residual
    /// addition. `content` samples its weights, `code` those of the position encoding.
    pub fn new(
        sizes: TransformerSizes,
        dropout: f64,
        labels: usize,
        encoding: &Encoding,
        [mut content, mut code]: [ChaCha8Rng; 2],
        device: &Device,
    ) -> Self {
        let (width, sides) = (sizes.width, [BINS; COORDINATES]);
        let draw = &mut Draw { rng: &mut code, device };
        let position = PositionEncoding::new(encoding, &sides, width, draw);
        let draw = &mut Draw { rng: &mut content, device };
        Labeller {
            position,
            token: draw.dense(width, width),
            encoder_layers: Layer::stack(draw, &sizes, sizes.layers, LayerStyle::GELU),
            norm: draw.layer_norm(width),
            output: draw.dense(width, labels),
            sizes,
            dropout,
        }
    }

    /// Log-probabilities of the labels of all boxes, screen by screen, `[W, C]`, and the largest number of boxes of a screen.
    fn log_probabilities(
        &self,
        screens: &[&[Bounds]],
        masks: Option<Masks<'_>>,
        device: &Device,
    ) -> (Tensor<2>, usize) {
        let (of_layers, of_code) = masks.map(|m| (m.layers, m.code)).unzip();
        let counts: Vec<usize> = screens.iter().map(|boxes| boxes.len()).collect();
        let padded = Padded::new(&counts, device);
        let codes = self.position.encode_boxes(screens.concat().concat(), of_code, device);
        let mut x = padded.pad(self.token.forward(codes));
        let bias = padded.bias();
        let mut dropout = LayerDropout { rng: of_layers, inner: 0.0, residual: self.dropout };
        for layer in &self.encoder_layers {
            x = layer.encode(x, None, &bias, &mut dropout);
        }
        let x = padded.unpad(self.norm.forward(x));
        (activation::log_softmax(self.output.forward(x), 1), padded.longest)
    }

    /// Log-probabilities of the labels of each box of a screen, box by box.
    pub fn of_screen(&self, boxes: &[Bounds], device: &Device) -> Vec<f32> {
        numbers(self.log_probabilities(&[boxes], None, device).0)
    }

    /// The likeliest labels of all boxes, screen by screen.
    pub fn labels(&self, screens: &[&LabelledScreen], device: &Device) -> Vec<usize> {
        let model = self.clone().no_grad();
        let labels = self.output.outputs();
        let mut all = Vec::new();
        for chunk in screens.chunks(CHUNK) {
            let boxes: Vec<_> = chunk.iter().map(|screen| &screen.boxes[..]).collect();
            let rows = numbers(model.log_probabilities(&boxes, None, device).0);
            all.extend(rows.chunks_exact(labels).map(largest));
        }
        all
    }

    /// The mean cross-entropy over boxes in nats. With `masks`, dropout is applied.
    pub fn loss(
        &self,
        screens: &[&LabelledScreen],
        masks: Option<Masks<'_>>,
        device: &Device,
    ) -> Loss {
        let sizes = &self.sizes;
        let boxes: Vec<_> = screens.iter().map(|screen| &screen.boxes[..]).collect();
        let truth: Vec<usize> =
            screens.iter().flat_map(|screen| screen.labels.iter().copied()).collect();
        let outputs = truth.len() * sizes.width * (sizes.width + self.output.outputs());
        let (log_probabilities, length) = self.log_probabilities(&boxes, masks, device);
        let tokens = (screens.len() * length) as f64;
        let layers = tokens * sizes.layers as f64 * sizes.layer_operations(length);
        let value = cross_entropy(log_probabilities, integers(truth, device));
        Loss { value, penalty: None, operations: 6.0 * (layers + outputs as f64) }
    }
}
