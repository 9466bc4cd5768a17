//! The training loop that all models share: the model, Adam, the learning rate of each step, and the state of a checkpoint.

use burn::module::Module;
use burn::tensor::Tensor;
use posenc_math::lff::schedule::LearningRate;

use crate::optimizer::Adam;
use crate::parameters::{self, number};

#[derive(Debug)]
pub struct Loss {
    pub value: Tensor<1>,
    /// Added to the loss, such as the divergence of LFF Eq. 10.
    pub penalty: Option<Tensor<1>>,
    pub operations: f64,
}

#[derive(Debug, Clone)]
pub struct Trainer<M> {
    pub model: M,
    adam: Adam,
    pub learning_rate: LearningRate,
    /// The step whose loss is NaN or infinite.
    diverged: Option<usize>,
    /// Floating-point operations of the steps that this trainer made, without those before a restored state.
    pub operations: f64,
}

impl<M: Module> Trainer<M> {
    pub fn new(model: M, adam: Adam, learning_rate: LearningRate) -> Self {
        Trainer { model, adam, learning_rate, diverged: None, operations: 0.0 }
    }

    pub fn steps(&self) -> usize {
        self.adam.steps
    }

    /// Whether steps remain and training has not diverged.
    pub fn is_running(&self) -> bool {
        self.diverged.is_none() && self.steps() < self.learning_rate.steps
    }

    /// Whether a measurement is due: every `every` steps and after the last, unless training diverged.
    pub fn is_measured(&self, every: usize) -> bool {
        let steps = self.steps();
        self.diverged.is_none()
            && (steps.is_multiple_of(every) || steps == self.learning_rate.steps)
    }

    /// Why training stopped before the last step.
    pub fn diverged(&self) -> Option<String> {
        let step = self.diverged?;
        Some(format!(
            "the loss is NaN or infinite at step {step}, so training stopped; try a lower learning rate"
        ))
    }

    /// Takes one gradient step on a loss and its penalty and returns the loss. If the loss is NaN or infinite, training stops and the model
    /// is unchanged.
    pub fn step(&mut self, loss: impl FnOnce(&M) -> Loss) -> f64 {
        let Loss { value: loss, penalty, operations } = loss(&self.model);
        self.step_with(operations, |model, adam, rate| {
            let value = number(loss.clone());
            if value.is_finite() {
                let gradients = penalty.into_iter().fold(loss, Tensor::add).backward();
                *model = adam.step(model.clone(), &gradients, rate);
            }
            value
        })
    }

    /// One step of a model that updates its own parameters, with its floating-point operations. `update` receives the model, the optimizer
    /// and the learning rate, and returns the loss before the step. If it is NaN or infinite, training stops.
    pub fn step_with(
        &mut self,
        operations: f64,
        update: impl FnOnce(&mut M, &mut Adam, f64) -> f64,
    ) -> f64 {
        self.operations += operations;
        let rate = self.learning_rate.at(self.steps() + 1);
        let loss = update(&mut self.model, &mut self.adam, rate);
        if !loss.is_finite() {
            self.diverged = Some(self.steps() + 1);
        }
        loss
    }

    /// Parameters in the order of the model's fields, then Adam's means of gradients and of squared gradients. With the number of steps,
    /// training continues from them with bit-identical results.
    pub fn state(&self) -> [Vec<f32>; 3] {
        let (first, second) = self.adam.state(&self.model);
        [parameters::values(&self.model), first, second]
    }

    /// Continues from a state after `steps` steps. Returns `false` and changes nothing if the state does not fit this training run.
    pub fn restore(&mut self, steps: usize, [values, first, second]: &[Vec<f32>; 3]) -> bool {
        let Some(model) = parameters::replaced(self.model.clone(), values) else {
            return false;
        };
        let fits =
            steps <= self.learning_rate.steps && self.adam.restore(&model, steps, first, second);
        if fits {
            self.model = model;
        }
        fits
    }
}
