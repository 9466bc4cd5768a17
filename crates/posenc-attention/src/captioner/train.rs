//! Training a captioner.

use burn::tensor::Device;
use posenc_math::lff::divergence::Divergence;
use posenc_math::lff::schedule::LearningRate;
use rand_chacha::ChaCha8Rng;

use super::{Batch, Captioner, ScreenInput, Sizes};
use crate::kernels;
use crate::optimizer::Adam;
use crate::progress::Progress;

/// How a captioner is trained.
#[derive(Debug, Clone)]
pub struct Training {
    /// Rate of each step.
    pub learning_rate: LearningRate,
    /// The optimizer at its beginning.
    pub adam: Adam,
    /// The term of LFF Eq. 10.
    pub divergence: Option<Divergence>,
}

/// A training in flight.
#[derive(Debug)]
pub struct Trainer<'a> {
    /// The model, and how far it has come.
    pub progress: Progress<Captioner>,
    sizes: &'a Sizes,
    divergence: Option<Divergence>,
    device: &'a Device,
    work: f64,
}

impl<'a> Trainer<'a> {
    /// At the beginning.
    pub fn new(
        model: Captioner,
        sizes: &'a Sizes,
        training: &Training,
        device: &'a Device,
    ) -> Self {
        let progress = Progress::new(model, training.adam.clone(), training.learning_rate);
        Trainer { progress, sizes, divergence: training.divergence, device, work: 0.0 }
    }

    /// Multiplications and additions of the steps of this training, without those before it was resumed.
    pub fn work(&self) -> f64 {
        self.work
    }

    /// One step; gives the loss before it in nats per word. Screens that are no batch end the training like a loss that is no
    /// number. `dropout` is the stream of masks.
    pub fn step(&mut self, screens: &[ScreenInput], dropout: &mut ChaCha8Rng) -> f64 {
        let Some(batch) = Batch::new(screens, self.sizes, self.device) else {
            self.progress.end();
            return f64::NAN;
        };
        let model = &self.progress.model;
        let memory = model.memory(&batch, Some(dropout));
        let loss = kernels::cross_entropy(model.scores(&memory, &batch.read), &batch.said);
        let value = self.progress.learn(loss, |model| {
            let divergence = self.divergence?;
            Some(model.divergence(divergence.form)?.mul_scalar(divergence.weight))
        });
        self.work += self.sizes.operations(batch.nodes(), batch.captions());
        value
    }
}
