//! What all trainings in flight share: the model, the optimizer, how far they have come.

use burn::module::Module;
use burn::tensor::Tensor;
use posenc_math::lff::schedule::LearningRate;

use crate::optimizer::Adam;
use crate::parameters::number;
use crate::reached::Reached;

/// A training in flight.
#[derive(Debug)]
pub struct Progress<M> {
    /// The model as it is.
    pub model: M,
    adam: Adam,
    learning_rate: LearningRate,
    diverged: Option<usize>,
}

impl<M: Module> Progress<M> {
    /// At the beginning.
    pub fn new(model: M, adam: Adam, learning_rate: LearningRate) -> Self {
        Progress { model, adam, learning_rate, diverged: None }
    }

    /// Steps done.
    pub fn steps(&self) -> usize {
        self.adam.steps
    }

    /// Whether there is a step to do.
    pub fn goes_on(&self) -> bool {
        self.diverged.is_none() && self.steps() < self.learning_rate.steps
    }

    /// The first step whose loss was no number; the training ended there.
    pub fn diverged(&self) -> Option<usize> {
        self.diverged
    }

    /// Ends the training at the step that would be next.
    pub fn end(&mut self) {
        self.diverged = Some(self.steps() + 1);
    }

    /// One step down the gradient of `loss` and of a penalty on the model as it is. Gives the loss; where it is no
    /// number, the training ends and the model stays.
    pub fn learn(&mut self, loss: Tensor<1>, penalty: impl FnOnce(&M) -> Option<Tensor<1>>) -> f64 {
        let step = self.steps() + 1;
        let value = number(loss.clone());
        if !value.is_finite() {
            self.end();
            return value;
        }
        let loss = match penalty(&self.model) {
            Some(penalty) => loss + penalty,
            None => loss,
        };
        let gradients = loss.backward();
        let rate = self.learning_rate.at(step);
        self.model = self.adam.step(self.model.clone(), &gradients, rate);
        value
    }

    /// What can be gone on from.
    pub fn reached(&self) -> Reached {
        Reached::of(&self.model, &self.adam)
    }

    /// Goes on from what was reached; `false`, and at the beginning, if it is not this training's.
    pub fn resume(&mut self, reached: &Reached) -> bool {
        if reached.steps > self.learning_rate.steps {
            return false;
        }
        let restored = reached.restore(&self.model, &mut self.adam);
        restored.map(|model| self.model = model).is_some()
    }
}
