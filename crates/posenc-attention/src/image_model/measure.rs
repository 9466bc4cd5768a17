//! Evaluates an image model during training.

use std::f64::consts::LN_2;

use burn::module::Module as _;
use burn::tensor::Device;
use serde::{Deserialize, Serialize};

use super::{Fixed, ImageModel, Sizes, cross_entropy, tokens};
use crate::parameters::{number, numbers};
use crate::trainer::Trainer;

const CHUNK: usize = 16;

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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measurement {
    pub step: usize,
    pub evaluation: Evaluation,
    /// Bits per pixel of the batches since the last measurement, with dropout.
    pub training_bits: f64,
}

/// All measurements of a training run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// In the order of steps.
    pub measurements: Vec<Measurement>,
    /// Sum of the bits per pixel of the batches since the last measurement, and the number of these batches.
    pub since: (f64, u32),
}

impl Measured {
    /// Records the loss of the last step, and evaluates the model if a measurement is due.
    pub fn record(
        &mut self,
        trainer: &Trainer<ImageModel>,
        nats: f64,
        measure_every: usize,
        evaluate: impl FnOnce(&ImageModel) -> Evaluation,
    ) {
        if trainer.diverged().is_some() {
            return;
        }
        let (sum, terms) = &mut self.since;
        (*sum, *terms) = (*sum + nats / LN_2, *terms + 1);
        if trainer.is_measured(measure_every) {
            let evaluation = evaluate(&trainer.model);
            let (sum, terms) = std::mem::take(&mut self.since);
            let training_bits = sum / f64::from(terms);
            let step = trainer.steps();
            self.measurements.push(Measurement { step, evaluation, training_bits });
        }
    }
}

/// Bits per pixel and attention on images that were not trained on.
pub fn evaluate(
    model: &ImageModel,
    sizes: &Sizes,
    fixed: &Fixed,
    held_out: &[Vec<u8>],
    device: &Device,
) -> Evaluation {
    // Without trained tensors, no autodiff graph is built.
    let model = model.clone().no_grad();
    let (mut nats, mut count) = (0.0, 0usize);
    let mut sums = vec![[0.0f64; 2]; sizes.transformer.layers];
    let mut terms = 0usize;
    for images in held_out.chunks(CHUNK) {
        let levels = tokens(images, device);
        let pass = model.forward(&levels, fixed, None);
        nats += number(cross_entropy(pass.log_probabilities, &levels)) * images.len() as f64;
        count += images.len();
        for (layer, weights) in pass.attention.into_iter().enumerate() {
            let rows = weights.dims()[0] * weights.dims()[1];
            terms += if layer == 0 { rows } else { 0 };
            let weights = numbers(weights);
            let (side, t) = (sizes.side, sizes.length());
            for row in weights.chunks_exact(t * t) {
                for pixel in (0..t).filter(|p| p / side >= 1 && p % side >= 1) {
                    let own = &row[pixel * t..(pixel + 1) * t];
                    // Slot i holds the level of pixel i − 1.
                    sums[layer][0] += f64::from(own[pixel]);
                    sums[layer][1] += f64::from(own[pixel - side + 1]);
                }
            }
        }
    }
    let pixels = ((sizes.side - 1) * (sizes.side - 1) * terms).max(1) as f64;
    let mean = |which: usize| sums.iter().map(|sum| sum[which] / pixels).collect();
    Evaluation { bits: nats / count.max(1) as f64 / LN_2, left: mean(0), upper: mean(1) }
}
