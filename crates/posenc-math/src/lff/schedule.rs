//! Learning rate schedules: a linear warm-up, then a decay.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Decay of the learning rate after the warm-up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Decay {
    /// $\sqrt{w/s}$ at step s after a warm-up of w steps.
    #[default]
    InverseSquareRoot,
    /// Half a cosine, to zero at the last step.
    Cosine,
    /// No decay.
    Constant,
    /// No decay at first; linear to zero over the last 30 % of the steps.
    LinearTail,
}

/// The learning rate of each step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LearningRate {
    pub peak: f64,
    /// Steps of the linear rise to the peak.
    pub warm_up: usize,
    pub decay: Decay,
    /// Number of all training steps.
    pub steps: usize,
}

impl LearningRate {
    /// Learning rate of step `step`, counted from 1.
    pub fn at(&self, step: usize) -> f64 {
        let (s, w) = (step as f64, self.warm_up.max(1) as f64);
        if s < w {
            return self.peak * s / w;
        }
        let factor = match self.decay {
            Decay::Constant => 1.0,
            Decay::LinearTail => {
                let steps = self.steps as f64;
                ((steps + 1.0 - s) / (0.3 * steps).max(1.0)).clamp(0.0, 1.0)
            }
            Decay::InverseSquareRoot => (w / s).sqrt(),
            Decay::Cosine => {
                let share = (s - w) / (self.steps as f64 - w).max(1.0);
                0.5 * (1.0 + (std::f64::consts::PI * share.min(1.0)).cos())
            }
        };
        self.peak * factor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a warm-up that is off by one step, and a decay that does not begin at the peak.
    #[test]
    fn rates_rise_to_the_peak_and_fall() {
        let rate = |decay| LearningRate { peak: 0.4, warm_up: 50, decay, steps: 300 };
        for decay in [Decay::InverseSquareRoot, Decay::Cosine, Decay::Constant, Decay::LinearTail] {
            assert!((rate(decay).at(25) - 0.2).abs() < 1e-12);
            assert!((rate(decay).at(50) - 0.4).abs() < 1e-12);
        }
        assert!((rate(Decay::InverseSquareRoot).at(200) - 0.2).abs() < 1e-12);
        assert!((rate(Decay::Cosine).at(175) - 0.2).abs() < 1e-12);
        assert!(rate(Decay::Cosine).at(300).abs() < 1e-12);
        assert_eq!(rate(Decay::Constant).at(300), 0.4);
    }
}
