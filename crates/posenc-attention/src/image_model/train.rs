//! Training and measuring an image model.

use std::f64::consts::LN_2;

use burn::module::Module as _;
use burn::tensor::Device;
use posenc_math::lff::divergence::Divergence;
use posenc_math::lff::schedule::LearningRate;
use rand_chacha::ChaCha8Rng;

use super::{Fixed, ImageModel, Sizes, cross_entropy, tokens};
use crate::optimizer::Adam;
use crate::parameters::numbers;

/// Images that are evaluated at once.
const CHUNK: usize = 16;

/// Where images come from. Each call gives the next batch.
pub trait Source {
    /// `count` images of `side`² levels, row by row.
    fn batch(&mut self, count: usize) -> Vec<Vec<u8>>;
}

impl<F: FnMut(usize) -> Vec<Vec<u8>>> Source for F {
    fn batch(&mut self, count: usize) -> Vec<Vec<u8>> {
        self(count)
    }
}

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
#[derive(Debug, Clone, PartialEq)]
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
#[derive(Debug, Clone, PartialEq)]
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

/// Trains `model` on `source` and measures it on `held_out`. `dropout` is the stream of masks; `progress` is told the
/// steps that are done.
pub fn train(
    mut model: ImageModel,
    sizes: &Sizes,
    training: &Training,
    source: &mut dyn Source,
    held_out: &[Vec<u8>],
    dropout: &mut ChaCha8Rng,
    device: &Device,
    progress: &mut dyn FnMut(usize),
) -> History {
    let fixed = model.fix(sizes, device);
    let mut adam = training.adam.clone();
    let mut measurements = Vec::new();
    let mut diverged = None;
    let (mut sum, mut terms) = (0.0, 0);
    for step in 1..=training.learning_rate.steps {
        let images = tokens(&source.batch(training.batch), device);
        let pass = model.forward(&images, &fixed, Some(dropout));
        let loss = cross_entropy(&pass, &images);
        let nats = numbers(loss.clone()).first().copied().map_or(f64::NAN, f64::from);
        if !nats.is_finite() {
            diverged = Some(step);
            break;
        }
        (sum, terms) = (sum + nats / LN_2, terms + 1);
        let term =
            training.divergence.and_then(|d| Some(model.divergence(d.form)?.mul_scalar(d.weight)));
        let loss = match term {
            Some(term) => loss + term,
            None => loss,
        };
        let gradients = loss.backward();
        model = adam.step(model, &gradients, training.learning_rate.at(step));
        if training.measure_at.contains(&step) {
            let evaluation = evaluate(&model, sizes, &fixed, held_out, device);
            measurements.push(Measurement {
                step,
                evaluation,
                training_bits: sum / f64::from(terms),
            });
            (sum, terms) = (0.0, 0);
        }
        progress(step);
    }
    History { measurements, diverged, model }
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
        nats += numbers(cross_entropy(&pass, &levels)).first().copied().map_or(f64::NAN, f64::from)
            * images.len() as f64;
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
