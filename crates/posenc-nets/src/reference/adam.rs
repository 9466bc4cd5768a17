//! Adam in double precision.

use super::Parameters;
use crate::{Adam, Network};

/// Both moments of one run's parameters, and the number of steps done.
#[derive(Debug, Clone, PartialEq)]
pub struct AdamState {
    /// m, the running mean of gradients.
    pub first: Parameters,
    /// v, the running mean of squared gradients.
    pub second: Parameters,
    /// t, the number of completed steps.
    pub steps: u64,
}

impl AdamState {
    pub fn new(network: &Network) -> Self {
        let zeros = Parameters::zeros(network);
        AdamState { first: zeros.clone(), second: zeros, steps: 0 }
    }

    /// Takes one step with the gradient ∇E at the current parameters; see [`Adam`] for the formulas. State,
    /// parameters and gradient must have the shape of the same network.
    pub fn step(&mut self, adam: &Adam, parameters: &mut Parameters, gradient: &Parameters) {
        self.steps += 1;
        let t = self.steps as f64;
        let Adam { learning_rate, beta1, beta2, epsilon, weight_decay } = *adam;
        let (correction1, correction2) = (1.0 - beta1.powf(t), 1.0 - beta2.powf(t));
        let one = |theta: &mut f64, m: &mut f64, v: &mut f64, gradient: f64| {
            let g = gradient + weight_decay * *theta;
            *m = beta1 * *m + (1.0 - beta1) * g;
            *v = beta2 * *v + (1.0 - beta2) * g * g;
            let (m, v) = (*m / correction1, *v / correction2);
            *theta -= learning_rate * m / (v.sqrt() + epsilon);
        };
        let moments = self.first.layers.iter_mut().zip(&mut self.second.layers);
        for ((theta, (m, v)), g) in parameters.layers.iter_mut().zip(moments).zip(&gradient.layers)
        {
            for i in 0..g.weights.ncols() {
                for o in 0..g.weights.nrows() {
                    let at = (o, i);
                    let (m, v) = (&mut m.weights[at], &mut v.weights[at]);
                    one(&mut theta.weights[at], m, v, g.weights[at]);
                }
            }
            for o in 0..g.bias.len() {
                one(&mut theta.bias[o], &mut m.bias[o], &mut v.bias[o], g.bias[o]);
            }
        }
    }
}
