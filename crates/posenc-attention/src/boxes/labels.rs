//! What each box of a screen is, from the positions of all.

use burn::module::Module;
use burn::tensor::{Device, Tensor, activation};
use posenc_math::lff::encoding::Encoding;
use rand_chacha::ChaCha8Rng;

use super::{
    BINS, Bounds, CHUNK, COORDINATES, Layout, Masks, ScreenModel, Sizes, Stack, attention_bias,
    cross_entropy, largest,
};
use crate::draw::Draw;
use crate::encoder::Encoder;
use crate::layers::Dense;
use crate::parameters::numbers;

/// A screen with the labels of its boxes.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelledScreen {
    /// The boxes, in any order.
    pub boxes: Vec<Bounds>,
    /// The label of each.
    pub labels: Vec<usize>,
}

/// A transformer that labels all boxes of a screen at once. It sees boxes, and no labels.
#[derive(Module, Debug)]
pub struct Labeller {
    encoder: Encoder,
    token: Dense,
    stack: Stack,
    output: Dense,
    #[module(skip)]
    sizes: Sizes,
}

impl Labeller {
    /// Draws a model of so many labels: its content from one stream, its encoding from another.
    ///
    /// # Errors
    ///
    /// The key of the encoding that is wrong, and what is allowed.
    pub fn new(
        sizes: &Sizes,
        labels: usize,
        encoding: &Encoding,
        content: &mut ChaCha8Rng,
        code: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, (&'static str, String)> {
        let sides = [BINS; COORDINATES];
        let encoder = Encoder::new(encoding, &sides, sizes.width, &mut Draw { rng: code, device })?;
        let mut draw = Draw { rng: content, device };
        Ok(Labeller {
            encoder,
            token: draw.dense(sizes.width, sizes.width),
            stack: Stack::new(&mut draw, sizes),
            output: draw.dense(sizes.width, labels),
            sizes: sizes.clone(),
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
        let tokens = self.token.forward(layout.codes(&self.encoder, of_code, device));
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
        let labels = self.output.bias.dims()[0];
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

    /// Mean over boxes.
    fn loss(
        &self,
        screens: &[&LabelledScreen],
        masks: Option<Masks<'_>>,
        device: &Device,
    ) -> Option<(Tensor<1>, f64)> {
        let layout = Layout::new(screens.iter().map(|screen| &screen.boxes[..]))?;
        let labels = self.output.bias.dims()[0];
        let truth: Vec<i64> =
            screens.iter().flat_map(|screen| screen.labels.iter().map(|&l| l as i64)).collect();
        let fits = |screen: &&LabelledScreen| screen.labels.len() == screen.boxes.len();
        if !screens.iter().all(fits) || truth.iter().any(|&label| label >= labels as i64) {
            return None;
        }
        let boxes = truth.len() as f64;
        let d = self.sizes.width as f64;
        let work = self.sizes.operations(screens.len(), layout.longest)
            + 6.0 * boxes * d * (d + labels as f64);
        let logarithms = self.log_probabilities(&layout, masks, device);
        Some((cross_entropy(logarithms, truth, device), work))
    }
}
