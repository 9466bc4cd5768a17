//! Fourier embedders: sines and then cosines of a list of frequencies.
//!
//! `ψ_j(x) = sin 2πb_j x` and `ψ_{d/2 + j}(x) = cos 2πb_j x` for `j = 0 .. d/2 - 1`. Every row has
//! norm √(d/2), and ψ(x)·ψ(x + Δ) = Σ_j cos 2πb_jΔ does not depend on x.

use super::Embedder;
use crate::trigonometry::{fill_cos_turns, fill_sin_cos_turns, fill_sin_turns, sum_cos_turns};

/// The law of the distance for d → ∞.
pub(super) enum Law {
    /// The mean of cos 2πbΔ over the embedder's own frequencies, which are not a random sample.
    OwnFrequencies,
    /// The mean over random frequencies, a function of σ and Δ.
    RandomFrequencies { law: fn(f64, f64) -> f64, sigma: f64 },
}

pub(super) struct Fourier {
    pub(super) frequencies: Vec<f64>,
    pub(super) law: Law,
    /// The constant in the bound of the stable rank.
    pub(super) bound: Option<f64>,
}

/// `count` numbers equally spaced from 0 to `last`, both included; a single one is 0.
pub(super) fn equally_spaced(count: usize, last: f64) -> Vec<f64> {
    let intervals = count.saturating_sub(1).max(1) as f64;
    (0..count).map(|i| last * (i as f64 / intervals)).collect()
}

impl Embedder for Fourier {
    fn dimension(&self) -> usize {
        2 * self.frequencies.len()
    }

    fn embed_columns(&self, x: f64, first: usize, out: &mut [f64]) {
        let half = self.frequencies.len();
        let last = first + out.len();
        if first == 0 && last == 2 * half {
            let (sines, cosines) = out.split_at_mut(half);
            return fill_sin_cos_turns(&self.frequencies, x, sines, cosines);
        }
        let (sines, cosines) = out.split_at_mut(last.min(half).saturating_sub(first));
        let sines_end = first + sines.len();
        fill_sin_turns(&self.frequencies[first.min(half)..sines_end.min(half)], x, sines);
        let cosines_start = first.max(half) - half;
        let cosines_end = cosines_start + cosines.len();
        fill_cos_turns(&self.frequencies[cosines_start..cosines_end], x, cosines);
    }

    fn distance_law(&self, delta: f64) -> Option<f64> {
        Some(match self.law {
            Law::OwnFrequencies => {
                sum_cos_turns(&self.frequencies, delta) / self.frequencies.len() as f64
            }
            Law::RandomFrequencies { law, sigma } => law(sigma, delta),
        })
    }

    fn stable_rank_bound(&self) -> Option<f64> {
        self.bound
    }

    fn gram_kernel(&self, delta: f64) -> Option<f64> {
        Some(sum_cos_turns(&self.frequencies, delta))
    }

    fn row_norm(&self, _x: f64) -> f64 {
        (self.frequencies.len() as f64).sqrt()
    }
}
