//! Adam.

use crate::NetError;

/// Settings of Adam (Kingma and Ba 2015) with L2 weight decay added to the gradient.
///
/// With g ← ∇L + λθ: m ← β₁m + (1 − β₁)g, v ← β₂v + (1 − β₂)g²,
/// θ ← θ − η (m / (1 − β₁ᵗ)) / (√(v / (1 − β₂ᵗ)) + ε).
/// ε is added after the square root and the bias correction, as in PyTorch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adam {
    pub learning_rate: f64,
    /// Decay β₁ of the first moment.
    pub beta1: f64,
    /// Decay β₂ of the second moment.
    pub beta2: f64,
    /// ε, added to the denominator.
    pub epsilon: f64,
    /// L2 weight decay λ of weights and biases.
    pub weight_decay: f64,
}

impl Adam {
    /// β = (0.9, 0.999), ε = 1e-8 and λ = 1e-8, as in all experiments of `rethinking` and `trading`.
    pub fn new(learning_rate: f64) -> Self {
        Adam { learning_rate, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 1e-8 }
    }

    pub fn check(&self) -> Result<(), NetError> {
        let range = |name, value: f64, fits: bool, allowed| {
            if fits { Ok(()) } else { Err(NetError::Range { name, value, allowed }) }
        };
        let Adam { learning_rate: rate, beta1, beta2, epsilon, weight_decay: decay } = *self;
        range("the learning rate", rate, rate > 0.0 && rate.is_finite(), "above 0, finite")?;
        range("beta1", beta1, (0.0..1.0).contains(&beta1), "0 up to below 1")?;
        range("beta2", beta2, (0.0..1.0).contains(&beta2), "0 up to below 1")?;
        range("epsilon", epsilon, epsilon > 0.0 && epsilon < 1.0, "above 0, below 1")?;
        range("the weight decay", decay, (0.0..1.0).contains(&decay), "0 up to below 1")
    }

    /// The constants of step `t` (from 1) in single precision, computed in double precision.
    pub(crate) fn constants(&self, t: u64) -> StepConstants {
        let t = t as f64;
        let (first, second) = (1.0 - self.beta1.powf(t), 1.0 - self.beta2.powf(t));
        StepConstants {
            beta1: self.beta1 as f32,
            one_minus_beta1: (1.0 - self.beta1) as f32,
            beta2: self.beta2 as f32,
            one_minus_beta2: (1.0 - self.beta2) as f32,
            rate: (self.learning_rate / first) as f32,
            root_scale: (1.0 / second.sqrt()) as f32,
            epsilon: self.epsilon as f32,
            weight_decay: self.weight_decay as f32,
        }
    }
}

/// Constants of one step θ ← θ − `rate`·m / (√v·`root_scale` + ε).
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepConstants {
    pub beta1: f32,
    pub one_minus_beta1: f32,
    pub beta2: f32,
    pub one_minus_beta2: f32,
    /// η / (1 − β₁ᵗ).
    pub rate: f32,
    /// 1 / √(1 − β₂ᵗ).
    pub root_scale: f32,
    pub epsilon: f32,
    pub weight_decay: f32,
}
