//! Adam.

use std::collections::HashMap;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::tensor::{Gradients, Tensor, TensorData};

use crate::kernels::{self, AdamStep};
use crate::parameters::{number, numbers, visit};

#[derive(Debug, Clone)]
pub struct Adam {
    /// Decay rate of the mean of gradients.
    pub beta1: f64,
    /// Decay rate of the mean of squared gradients.
    pub beta2: f64,
    /// Added to the root of the mean of squared gradients.
    pub epsilon: f64,
    /// Decoupled weight decay (AdamW; Loshchilov and Hutter 2019).
    pub weight_decay: f64,
    /// Gradients are clipped to this global norm.
    pub max_grad_norm: Option<f64>,
    pub steps: usize,
    /// Learning rates of parameters that do not have that of the step.
    rates: HashMap<ParamId, f64>,
    /// Per parameter: the means of gradients and of their squares.
    moments: HashMap<ParamId, [Tensor<1>; 2]>,
}

impl Adam {
    /// An optimizer before its first step, without weight decay and gradient clipping.
    pub fn new(beta1: f64, beta2: f64, epsilon: f64) -> Self {
        let (rates, moments) = (HashMap::new(), HashMap::new());
        let (weight_decay, max_grad_norm, steps) = (0.0, None, 0);
        Adam { beta1, beta2, epsilon, weight_decay, max_grad_norm, steps, rates, moments }
    }

    /// Gives a part of the model a learning rate of its own.
    pub fn set_rate<M: Module>(&mut self, part: &M, rate: f64) {
        visit(part, None, |own| {
            self.rates.insert(own.id, rate);
        });
    }

    /// One step with learning rate `rate`. Parameters without a gradient do not change.
    pub fn step<M: Module>(&mut self, model: M, gradients: &Gradients, rate: f64) -> M {
        self.steps += 1;
        let factor = self.max_grad_norm.map_or(1.0, |limit| {
            let norm = norm(&model, gradients);
            // A NaN norm leaves the gradient unchanged; the next loss is NaN and stops training.
            if norm > limit { limit / norm } else { 1.0 }
        });
        model.map(&mut Step { adam: self, gradients, rate, factor })
    }

    /// Updates one part of the model in the current step.
    pub fn update<M: Module>(&mut self, part: M, gradients: &Gradients, rate: f64) -> M {
        part.map(&mut Step { adam: self, gradients, rate, factor: 1.0 })
    }

    /// Means of gradients and of their squares in the order of the model's fields; zero for parameters without a step.
    pub fn state<M: Module>(&self, model: &M) -> (Vec<f32>, Vec<f32>) {
        let (mut first, mut second) = (Vec::new(), Vec::new());
        visit(model, None, |own| {
            let moments = self.moments.get(&own.id).cloned().map(|both| both.map(numbers));
            let [m, v] = moments.unwrap_or_else(|| [(); 2].map(|()| vec![0.0; own.count()]));
            first.extend(m);
            second.extend(v);
        });
        (first, second)
    }

    /// Restores the state of [`Adam::state`] after `steps` steps; returns `false` if its size does not match the model.
    pub fn restore<M: Module>(
        &mut self,
        model: &M,
        steps: usize,
        first: &[f32],
        second: &[f32],
    ) -> bool {
        let n = model.num_params();
        if first.len() != n || second.len() != n {
            return false;
        }
        self.steps = steps;
        self.moments.clear();
        let mut from = 0;
        visit(model, None, |own| {
            let (n, device) = (own.count(), own.values.device().inner());
            let moments = [first, second].map(|all| {
                let own = all[from..][..n].to_vec();
                Tensor::from_data(TensorData::new(own, [n]), &device)
            });
            from += n;
            self.moments.insert(own.id, moments);
        });
        true
    }
}

struct Step<'a> {
    adam: &'a mut Adam,
    gradients: &'a Gradients,
    rate: f64,
    factor: f64,
}

/// Global norm of the gradients of a model.
fn norm<M: Module>(model: &M, gradients: &Gradients) -> f64 {
    struct Squares<'a>(&'a Gradients, f64);
    impl ModuleVisitor for Squares<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if let Some(gradient) = param.val().grad(self.0) {
                self.1 += number((gradient.clone() * gradient).sum());
            }
        }
    }
    let mut all = Squares(gradients, 0.0);
    model.visit(&mut all);
    all.1.sqrt()
}

impl ModuleMapper for Step<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let (id, theta, mapper) = param.consume();
        let Some(gradient) = theta.grad(self.gradients) else {
            return Param::from_mapped_value(id, theta, mapper);
        };
        let (shape, device) = (theta.dims(), theta.device());
        let n = shape.iter().product::<usize>();
        let gradient = gradient.reshape([n]);
        let adam = &mut *self.adam;
        let moments = adam.moments.remove(&id);
        let moments = moments.unwrap_or_else(|| [gradient.zeros_like(), gradient.zeros_like()]);
        let t = adam.steps as i32;
        let rate = adam.rates.get(&id).copied().unwrap_or(self.rate);
        let step = AdamStep {
            factor: self.factor,
            keep: [adam.beta1, adam.beta2],
            take: [1.0 - adam.beta1, 1.0 - adam.beta2],
            root: 1.0 / (1.0 - adam.beta2.powi(t)).sqrt(),
            epsilon: adam.epsilon,
            rate: rate / (1.0 - adam.beta1.powi(t)),
            decay: 1.0 - rate * adam.weight_decay,
        };
        let old = theta.inner().reshape([n]);
        let (new, moments) = kernels::adam(old, moments, gradient, step);
        adam.moments.insert(id, moments);
        let new = Tensor::from_inner(new.reshape(shape)).to_device(&device).require_grad();
        Param::from_mapped_value(id, new, mapper)
    }
}
