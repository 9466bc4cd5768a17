//! Training and measuring an image model.

use std::f64::consts::LN_2;

use burn::module::Module as _;
use burn::tensor::Device;
use posenc_math::lff::divergence::Divergence;
use posenc_math::lff::schedule::LearningRate;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::{Fixed, ImageModel, Sizes, cross_entropy, tokens};
use crate::optimizer::Adam;
use crate::parameters::{number, numbers};
use crate::progress::Progress;
use crate::reached::Reached;

/// Images that are evaluated at once.
const CHUNK: usize = 16;

/// How a model is trained.
#[derive(Debug, Clone)]
pub struct Training {
    /// Images per step.
    pub batch: usize,
    /// Rate of each step.
    pub learning_rate: LearningRate,
    /// The optimizer at its beginning.
    pub adam: Adam,
    /// Steps after which the model is measured.
    pub measure_at: Vec<usize>,
    /// What is added to the loss (LFF Eq. 10).
    pub divergence: Option<Divergence>,
}

/// What held-out images show of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evaluation {
    /// Mean of −log₂ p per pixel.
    pub bits: f64,
    /// Per layer: mean weight of the slot that holds a pixel's left neighbor, over heads, images and the
    /// pixels with both neighbors.
    pub left: Vec<f64>,
    /// The same of the upper neighbor.
    pub upper: Vec<f64>,
}

/// The model after a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measurement {
    /// Steps done.
    pub step: usize,
    /// On held-out images.
    pub evaluation: Evaluation,
    /// Bits per pixel of the batches since the last measurement, with dropout.
    pub training_bits: f64,
}

/// What a training gave.
#[derive(Debug)]
pub struct History {
    /// In the order of steps.
    pub measurements: Vec<Measurement>,
    /// The first step whose loss was no number; the training ended there.
    pub diverged: Option<usize>,
    /// The model at the end.
    pub model: ImageModel,
}

/// What was measured of a training in flight.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// In the order of steps.
    pub measurements: Vec<Measurement>,
    /// Bits of the batches since the last of them, and how many.
    pub since: (f64, u32),
}

/// A training in flight.
#[derive(Debug)]
pub struct Trainer<'a> {
    progress: Progress<ImageModel>,
    sizes: &'a Sizes,
    training: &'a Training,
    held_out: &'a [Vec<u8>],
    device: &'a Device,
    fixed: Fixed,
    measured: Measured,
}

impl<'a> Trainer<'a> {
    /// At the beginning. The model is measured on `held_out`.
    pub fn new(
        model: ImageModel,
        sizes: &'a Sizes,
        training: &'a Training,
        held_out: &'a [Vec<u8>],
        device: &'a Device,
    ) -> Self {
        let fixed = model.fix(sizes, device);
        let progress = Progress::new(model, training.adam.clone(), training.learning_rate);
        let measured = Measured::default();
        Trainer { progress, sizes, training, held_out, device, fixed, measured }
    }

    /// Steps done.
    pub fn steps(&self) -> usize {
        self.progress.steps()
    }

    /// Whether there is a step to do.
    pub fn goes_on(&self) -> bool {
        self.progress.goes_on()
    }

    /// One step on a batch of images; `dropout` is the stream of masks.
    pub fn step(&mut self, batch: &[Vec<u8>], dropout: &mut ChaCha8Rng) {
        let images = tokens(batch, self.device);
        let pass = self.progress.model.forward(&images, &self.fixed, Some(dropout));
        let loss = cross_entropy(pass.log_probabilities, &images);
        let nats = self.progress.learn(loss, |model| {
            let divergence = self.training.divergence?;
            Some(model.divergence(divergence.form)?.mul_scalar(divergence.weight))
        });
        if self.progress.diverged().is_some() {
            return;
        }
        let (sum, terms) = &mut self.measured.since;
        (*sum, *terms) = (*sum + nats / LN_2, *terms + 1);
        let step = self.steps();
        if self.training.measure_at.contains(&step) {
            let model = &self.progress.model;
            let evaluation = evaluate(model, self.sizes, &self.fixed, self.held_out, self.device);
            let (sum, terms) = std::mem::take(&mut self.measured.since);
            let training_bits = sum / f64::from(terms);
            self.measured.measurements.push(Measurement { step, evaluation, training_bits });
        }
    }

    /// What can be gone on from.
    pub fn reached(&self) -> (Reached, &Measured) {
        (self.progress.reached(), &self.measured)
    }

    /// Goes on from what was reached; `false`, and at the beginning, if it is not this training's.
    pub fn resume(&mut self, reached: &Reached, measured: Measured) -> bool {
        let is_own = self.progress.resume(reached);
        if is_own {
            self.measured = measured;
        }
        is_own
    }

    /// What it gave.
    pub fn finish(self) -> History {
        let Measured { measurements, .. } = self.measured;
        let diverged = self.progress.diverged();
        History { measurements, diverged, model: self.progress.model }
    }
}

/// Trains `model` on the batches that `source` gives and measures it on `held_out`. `dropout` is the stream of masks.
pub fn train(
    model: ImageModel,
    sizes: &Sizes,
    training: &Training,
    source: &mut dyn FnMut(usize) -> Vec<Vec<u8>>,
    held_out: &[Vec<u8>],
    dropout: &mut ChaCha8Rng,
    device: &Device,
) -> History {
    let mut trainer = Trainer::new(model, sizes, training, held_out, device);
    while trainer.goes_on() {
        trainer.step(&source(training.batch), dropout);
    }
    trainer.finish()
}

/// Bits per pixel and attention on images that were not trained on.
fn evaluate(
    model: &ImageModel,
    sizes: &Sizes,
    fixed: &Fixed,
    held_out: &[Vec<u8>],
    device: &Device,
) -> Evaluation {
    // No graph is built for what has no trained tensors.
    let model = model.clone().no_grad();
    let (mut nats, mut count) = (0.0, 0usize);
    let mut sums = vec![[0.0f64; 2]; sizes.layers];
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
