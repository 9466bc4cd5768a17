//! Training a captioner.

use burn::tensor::{Device, Tensor};
use posenc_math::lff::divergence::Divergence;
use posenc_math::lff::schedule::LearningRate;
use rand_chacha::ChaCha8Rng;

use super::{Batch, Captioner, ScreenInput, Sizes};
use crate::layers::causal_bias;
use crate::optimizer::Adam;
use crate::parameters::number;
use crate::reached::Reached;

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
    /// The model as it is.
    pub model: Captioner,
    sizes: &'a Sizes,
    training: &'a Training,
    device: &'a Device,
    adam: Adam,
    work: f64,
    diverged: Option<usize>,
}

impl<'a> Trainer<'a> {
    /// At the beginning.
    pub fn new(
        model: Captioner,
        sizes: &'a Sizes,
        training: &'a Training,
        device: &'a Device,
    ) -> Self {
        let adam = training.adam.clone();
        Trainer { model, sizes, training, device, adam, work: 0.0, diverged: None }
    }

    /// Steps done.
    pub fn steps(&self) -> usize {
        self.adam.steps
    }

    /// Whether there is a step to do.
    pub fn goes_on(&self) -> bool {
        self.diverged.is_none() && self.steps() < self.training.learning_rate.steps
    }

    /// The first step whose loss was no number; the training ended there.
    pub fn diverged(&self) -> Option<usize> {
        self.diverged
    }

    /// Multiplications and additions of the steps of this training, without those before it was resumed.
    pub fn work(&self) -> f64 {
        self.work
    }

    /// One step; gives the loss before it in nats per word. Screens that are no batch end the training like a loss that is no
    /// number. `dropout` is the stream of masks.
    pub fn step(&mut self, screens: &[ScreenInput], dropout: &mut ChaCha8Rng) -> f64 {
        let step = self.steps() + 1;
        let Some(batch) = Batch::new(screens, self.sizes, self.device) else {
            self.diverged = Some(step);
            return f64::NAN;
        };
        let loss = cross_entropy(&self.model, &batch, Some(dropout));
        let value = number(loss.clone());
        if !value.is_finite() {
            self.diverged = Some(step);
            return value;
        }
        let term =
            self.training.divergence.and_then(|d| Some(self.penalty(&d)?.mul_scalar(d.weight)));
        let loss = match term {
            Some(term) => loss + term,
            None => loss,
        };
        let gradients = loss.backward();
        let rate = self.training.learning_rate.at(step);
        self.model = self.adam.step(self.model.clone(), &gradients, rate);
        let [screens, nodes, widgets] = batch.counts();
        self.work += self.sizes.operations(screens, nodes, widgets);
        value
    }

    fn penalty(&self, divergence: &Divergence) -> Option<Tensor<1>> {
        let frequencies = self.model.encoder.trained_frequencies()?;
        let target = self.model.target.as_ref()?;
        Some(target.divergence(frequencies, divergence.form))
    }

    /// What can be gone on from.
    pub fn reached(&self) -> Reached {
        Reached::of(&self.model, &self.adam)
    }

    /// Goes on from what was reached; `false`, and at the beginning, if it is not this training's.
    pub fn resume(&mut self, reached: &Reached) -> bool {
        if reached.steps > self.training.learning_rate.steps {
            return false;
        }
        let restored = reached.restore(&self.model, &mut self.adam);
        restored.map(|model| self.model = model).is_some()
    }
}

/// Mean of −log p of the words that are to be said, in nats.
pub(super) fn cross_entropy(
    model: &Captioner,
    batch: &Batch,
    dropout: Option<&mut ChaCha8Rng>,
) -> Tensor<1> {
    let [w, t] = batch.read.dims();
    let memory = model.memory(batch, dropout);
    let causal = causal_bias(t, &batch.device);
    let predictions = model.log_probabilities(&memory, &batch.read, &causal);
    let words = predictions.dims()[2];
    let rows = predictions.reshape([w * t, words]);
    let said = rows.gather(1, batch.said.clone().reshape([w * t, 1])).reshape([w, t]);
    (said * batch.share.clone()).sum().neg()
}
