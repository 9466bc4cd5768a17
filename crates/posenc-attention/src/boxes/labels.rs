//! Labels the boxes of a screen from their positions.

use burn::module::Module;
use burn::tensor::{Device, Tensor, activation};
use posenc_math::lff::encoding::Encoding;
use rand_chacha::ChaCha8Rng;

use super::{
    BINS, Bounds, CHUNK, COORDINATES, Layers, Layout, Masks, ScreenModel, Stack, attention_bias,
    largest,
};
use crate::draw::Draw;
use crate::layers::Dense;
use crate::loss::{cross_entropy, integers};
use crate::parameters::numbers;
use crate::position_encoding::PositionEncoding;
use crate::trainer::Loss;

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
    stack: Stack,
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
            stack: Stack::new(&mut draw, layers),
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
        let x = layout.filled(tokens, device);
        let [b, n, d] = x.dims();
        let bias = attention_bias(layout.bias(), b, device);
        let x = self.stack.forward(x, &bias, of_layers).reshape([b * n, d]);
        activation::log_softmax(self.output.forward(x.select(0, layout.rows(device))), 1)
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
}

impl ScreenModel for Labeller {
    type Screen = LabelledScreen;

    /// The mean cross-entropy over boxes.
    fn loss(
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
