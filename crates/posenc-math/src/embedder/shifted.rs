//! Shift-invariant embedders: one profile, sampled at the distances to the centers.
//!
//! `ψ_j(x) = ψ(u)` with `u = t_j - x` and `t_j = j/d`; with a periodic boundary `u` is wrapped into
//! `[-1/2, 1/2)`, which makes the matrix of `N = d` samples circulant.

use super::{Embedder, EmbedderError, registry::Values};

/// The function ψ(u) that a shift-invariant embedder samples.
pub(super) trait Profile: Send + Sync {
    /// Replaces every `u` by ψ(u).
    fn evaluate(&self, u: &mut [f64]);

    /// ψ(u) is exactly 0 for |u| beyond this.
    fn support(&self) -> f64 {
        f64::INFINITY
    }

    /// The normalized autocorrelation ∫ψ(u)ψ(u + Δ)du / ∫ψ², over ℝ for profiles that decay and
    /// over one period for periodic ones.
    fn law(&self, _delta: f64) -> Option<f64> {
        None
    }

    /// Whether [`law`](Self::law) decays, so that a periodic boundary adds up its images.
    fn decays(&self) -> bool {
        true
    }

    /// The constant in the bound of the stable rank.
    fn bound(&self) -> Option<f64> {
        None
    }
}

/// How a profile continues beyond the ends of [0, 1].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Boundary {
    Open,
    Periodic,
}

impl Boundary {
    pub(super) fn from_values(values: &Values) -> Result<Self, EmbedderError> {
        Ok(if values.text("boundary")? == "periodic" { Self::Periodic } else { Self::Open })
    }
}

/// Wraps a displacement into [-1/2, 1/2).
#[inline]
pub(crate) fn wrap(u: f64) -> f64 {
    u - (u + 0.5).floor()
}

/// A profile at `d` centers.
pub(super) struct Shifted<P> {
    profile: P,
    dimension: usize,
    boundary: Boundary,
}

impl<P: Profile + 'static> Shifted<P> {
    pub(super) fn build(profile: P, values: &Values) -> super::registry::Built {
        let dimension = values.dimension()?;
        let boundary = Boundary::from_values(values)?;
        Ok(Box::new(Self { profile, dimension, boundary }))
    }

    /// Columns whose center lies within the support around `center`, cut to `first .. last`, with a
    /// margin of one column on each side for rounding.
    fn window(&self, center: f64, first: usize, last: usize) -> (usize, usize) {
        let d = self.dimension as f64;
        let low = ((center - self.profile.support()) * d).floor() - 1.0;
        let high = ((center + self.profile.support()) * d).ceil() + 2.0;
        // Casts saturate.
        let low = (low.max(0.0) as usize).clamp(first, last);
        let high = (high.max(0.0) as usize).clamp(first, last);
        (low, high.max(low))
    }

    fn fill(&self, x: f64, first: usize, out: &mut [f64]) {
        let d = self.dimension as f64;
        for (k, u) in out.iter_mut().enumerate() {
            let offset = (first + k) as f64 / d - x;
            *u = if self.boundary == Boundary::Periodic { wrap(offset) } else { offset };
        }
        self.profile.evaluate(out);
    }
}

impl<P: Profile + 'static> Embedder for Shifted<P> {
    fn dimension(&self) -> usize {
        self.dimension
    }

    fn embed_columns(&self, x: f64, first: usize, out: &mut [f64]) {
        let last = first + out.len();
        if !x.is_finite() {
            return out.fill(f64::NAN);
        }
        if self.profile.support() >= 0.5 {
            return self.fill(x, first, out);
        }
        out.fill(0.0);
        let nearest = if self.boundary == Boundary::Periodic { x - x.floor() } else { x };
        let images: &[f64] =
            if self.boundary == Boundary::Periodic { &[-1.0, 0.0, 1.0] } else { &[0.0] };
        for image in images {
            let (low, high) = self.window(nearest + image, first, last);
            self.fill(x, low, &mut out[low - first..high - first]);
        }
    }

    fn distance_law(&self, delta: f64) -> Option<f64> {
        if self.boundary == Boundary::Open || !self.profile.decays() {
            return self.profile.law(delta);
        }
        let images = |delta: f64| -> Option<f64> {
            let mut sum = 0.0;
            for image in [-1.0, 0.0, 1.0] {
                sum += self.profile.law(wrap(delta) + image)?;
            }
            Some(sum)
        };
        Some(images(delta)? / images(0.0)?)
    }

    fn stable_rank_bound(&self) -> Option<f64> {
        self.profile.bound()
    }

    fn is_circulant(&self) -> bool {
        self.boundary == Boundary::Periodic
    }
}
