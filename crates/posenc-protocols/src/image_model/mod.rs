//! Trains a causal transformer on the gray levels of small images (`lff` Figures 3, 6, 7).
//!
//! Images are dead leaves, generated for every step. With `data`, they are crops of the photographs of `data.set`, and the model is
//! evaluated on crops of `data.held_out`. Adam's β₁ is 0.9 and ε is 10⁻⁹.
//!
//! Records:
//!
//! - `bits` (bits/dim): mean −log₂ p of a held-out pixel after the last step. `share_of_uniform`: `bits` divided by log₂ of the number of
//!   levels. `mean_bits` (bits/dim): mean over all measurements.
//! - `bits_curve`, `training_curve` (bits/dim): on held-out and on training images, over the step.
//! - `left_attention`, `upper_attention`: mean attention weight on the left and the upper neighbor, in the layer where it is largest.
//! - `code_norm`: mean norm of the position encoding.
//! - `params`, `encoding_params`: number of parameters of the model and of the position encoding.
//! - `time` (s), `rate` (GFLOP/s), `peak_memory` (MB).
//!
//! With `similarity`, also records statistics of the frequencies before (`initial_`) and after training (`learned_`):
//!
//! - `initial_similarity`, `learned_similarity`: similarity over displacements in pixels.
//! - `length` (pixels): length scale of the similarity. `anisotropy`: largest over smallest eigenvalue of the covariance of the
//!   frequencies.
//! - `correlation` between the frequencies of the two coordinates, and `gaussian_residual`, the RMS difference between the similarity and a
//!   Gaussian.

#[cfg(feature = "attention")]
pub(crate) mod run;

use posenc_experiments::schema::Data;
use posenc_experiments::schema::protocol::{Fault, Kind, Settings};
use posenc_math::lff::divergence::Divergence;
use posenc_math::lff::encoding::{Encoding, Features};
use posenc_math::lff::schedule::Decay;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::{
    below_one, check_divergence, check_photographs, check_sizes, check_training, hundredths,
    is_one, preset, range, within,
};
use crate::limits::Transformer;

pub const KIND: Kind = Kind { takes_held_out: true, ..kind!(attention: ImageModel, "image-model") };

/// Settings of `image-model`, which trains a transformer to predict the gray level of each pixel from the pixels before it.
///
/// Without `data`, images are generated; `pixel-entropies` uses the same images. With `data`, they are crops of the photographs of
/// `data.set`, and the model is evaluated on crops of the photographs of `data.held_out`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImageModel {
    /// Number of rows, and of columns, of an image in pixels.
    pub side: usize,
    /// Number of gray levels.
    pub levels: usize,
    /// With `data`: photographs are reduced by this factor before they are cropped.
    #[serde(default = "preset::<1, usize>", skip_serializing_if = "is_one")]
    pub reduce: usize,
    /// Number of held-out images, shared by all seeds.
    pub held_out: usize,
    /// Number of attention layers.
    pub layers: usize,
    /// Width of the model.
    pub width: usize,
    /// Number of attention heads; must divide `width`.
    pub heads: usize,
    /// Width of the feed-forward layers.
    pub feed_forward: usize,
    /// The position encoding.
    pub encoding: Encoding,
    /// Width of the position encoding, which is then concatenated with the embedding of the gray level. If absent, it is added to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concatenated: Option<usize>,
    /// Number of images per training step.
    pub batch: usize,
    /// Number of training steps.
    pub steps: usize,
    /// Peak learning rate.
    pub learning_rate: f64,
    /// Number of steps of the linear warm-up to the peak learning rate.
    pub warm_up: usize,
    /// Learning rate schedule after the warm-up.
    #[serde(default)]
    pub decay: Decay,
    /// Adam's β₂.
    #[serde(default = "hundredths::<98>")]
    pub beta2: f64,
    /// Number of steps between evaluations; the model is always evaluated after the last step.
    pub measure_every: usize,
    /// Regularizer of learned frequencies (Eq. 10).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub divergence: Option<Divergence>,
    /// Largest displacement, in pixels, of the similarity maps before and after training; no maps if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub similarity: Option<usize>,
}

impl Settings for ImageModel {
    fn check(&self) -> Result<(), Fault> {
        range("side", self.side, 2, 64)?;
        range("levels", self.levels, 2, 256)?;
        range("reduce", self.reduce, 1, 64)?;
        range("held_out", self.held_out, 1, 100_000)?;
        range("layers", self.layers, 1, 48)?;
        check_sizes(self.width, self.heads, self.feed_forward)?;
        check_training(self.batch, self.steps, self.learning_rate, self.warm_up)?;
        below_one("beta2", self.beta2)?;
        range("measure_every", self.measure_every, 1, self.steps)?;
        if let Some(width) = self.concatenated {
            range("concatenated", width, 1, self.width.saturating_sub(1))?;
        }
        within("encoding", self.encoding.check(2, self.concatenated.unwrap_or(self.width)))?;
        self.transformer().check()?;
        // The attention weights of all layers are kept from the forward to the backward pass.
        let length = (self.side * self.side) as f64;
        let weights = self.layers as f64 * (self.batch * self.heads) as f64 * length * length * 4.0;
        if weights > 16e9 {
            let message = format!(
                "the weights of attention need {:.1} GB; allowed: 16 GB. Lower `batch`, `side` or `layers`",
                weights / 1e9
            );
            return Err(("batch", message));
        }
        if self.encoding.features != Features::Fourier && self.similarity.is_some() {
            return Err(("similarity", "only allowed with `encoding.features: fourier`".into()));
        }
        self.similarity.map_or(Ok(()), |largest| range("similarity", largest, 1, 64))?;
        check_divergence(self.divergence.as_ref(), &self.encoding)
    }

    fn check_data(&self, data: Option<&Data>) -> Result<(), Fault> {
        check_photographs(data, self.reduce)
    }
}

impl ImageModel {
    fn transformer(&self) -> Transformer {
        Transformer {
            layers: self.layers,
            width: self.width,
            heads: self.heads,
            feed_forward: self.feed_forward,
            batch: self.batch,
            length: self.side * self.side,
            ..Transformer::default()
        }
    }
}
