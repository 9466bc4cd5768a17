//! Trains a causal transformer on the levels of images (`lff` Table 3, Figures 3, 6, 7), or counts its parameters.
//!
//! The model has full or LSH attention and plain or reversible layers; the paper's Reformer has LSH attention and reversible layers.
//! Adam's β₁ is 0.9 and ε is 10⁻⁹.
//!
//! Images are gray dead leaves, generated for every step. With `data`, they are crops of the photographs of `data.set`, and the model is
//! evaluated on crops of `data.held_out`. With `color_width`, images have colors: `data.set` is a set of files of the format
//! `downsampled-images`. Without `data`, the protocol generates images, writes them as an archive of downsampled ImageNet and reads them
//! back. The model is evaluated on the first validation images.
//!
//! With `steps: 0`, records only `params` (M) and `encoding_params`: number of parameters of the model, in millions as in tables, and of
//! the position encoding. Otherwise, records:
//!
//! - `bits` (bits/dim): mean −log₂ p of a held-out level after the last step. `share_of_uniform`: `bits` divided by log₂ of the number of
//!   levels. `mean_bits` (bits/dim): mean over all measurements.
//! - `bits_curve`, `training_curve` (bits/dim): on held-out and on training images, over the step.
//! - `left_attention`, `upper_attention`: mean attention weight on the left and the upper neighbor, in the layer where it is largest; with
//!   full attention.
//! - `code_norm`: mean norm of the position encoding.
//! - `params`, `encoding_params`: number of parameters of the model and of the position encoding.
//! - `time` (s), `rate` (GFLOP/s), `peak_memory` (MB): of the whole unit, with evaluations.
//! - With colors, `time_of_step` (s): median time of a step. `archives`: 1 if the images are npz archives, 0 if they are PNG files. Results
//!   on the two variants are not comparable.
//!
//! With `similarity`, also records statistics of the frequencies before (`initial_`) and after training (`learned_`):
//!
//! - `initial_similarity`, `learned_similarity`: similarity over displacements in pixels.
//! - `length` (pixels): length scale of the similarity. `anisotropy`: largest over smallest eigenvalue of the covariance of the
//!   frequencies.
//! - `correlation` between the frequencies of the two coordinates, and `gaussian_residual`, the RMS difference between the similarity and a
//!   Gaussian.

#[cfg(feature = "attention")]
mod run;

use posenc_experiments::schema::Data;
use posenc_experiments::schema::protocol::{Fault, Kind, Settings};
use posenc_math::lff::divergence::Divergence;
use posenc_math::lff::encoding::{Encoding, Features};
use posenc_math::lff::image_model::{COLORS, Lsh, positions};
use posenc_math::lff::schedule::Decay;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::{
    absent, below_one, check_divergence, check_photographs, check_sizes, check_training,
    is_default, is_one, preset, range, ratio, within,
};
use crate::limits::{Transformer, check_bytes, transformer};

pub const KIND: Kind = Kind { takes_held_out: true, ..kind!(attention: ImageModel, "image-model") };

/// Settings of `image-model`, which trains a transformer to predict each level of an image from the levels before it.
///
/// Without `data`, images are generated. With `data`, they are crops of the photographs of `data.set`, and the model is evaluated on crops
/// of the photographs of `data.held_out`. For images with colors, `data.set` names downsampled ImageNet, which has validation images of its
/// own.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImageModel {
    /// Number of rows, and of columns, of an image in pixels.
    pub side: usize,
    /// Number of gray levels, or of levels of a color.
    pub levels: usize,
    /// Width of the color embedding, which is concatenated with the position encoding of a pixel. If absent, images are gray.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub color_width: Option<usize>,
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
    /// LSH attention; full attention if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lsh: Option<Lsh>,
    /// Whether layers are reversible, with two streams, so that no activations are stored.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reversible: bool,
    /// Width of the feed-forward layers.
    pub feed_forward: usize,
    /// The position encoding.
    pub encoding: Encoding,
    /// Width of the position encoding, which is then concatenated with the embedding of the level. If absent, it is added to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concatenated: Option<usize>,
    /// Number of images per training step.
    pub batch: usize,
    /// Number of training steps; 0 only counts parameters.
    pub steps: usize,
    /// Peak learning rate.
    pub learning_rate: f64,
    /// Number of steps of the linear warm-up to the peak learning rate.
    pub warm_up: usize,
    /// Learning rate schedule after the warm-up.
    #[serde(default)]
    pub decay: Decay,
    /// Adam's β₂.
    #[serde(default = "ratio::<98, 100>")]
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
        range("side", self.side, 2, 256)?;
        range("levels", self.levels, 2, 256)?;
        range("reduce", self.reduce, 1, 64)?;
        range("held_out", self.held_out, 1, 100_000)?;
        range("layers", self.layers, 1, 48)?;
        check_sizes(self.width, self.heads, self.feed_forward)?;
        check_training(self.batch, self.steps.max(1), self.learning_rate, self.warm_up)?;
        below_one("beta2", self.beta2)?;
        range("measure_every", self.measure_every, 1, self.steps.max(1))?;
        if let Some(width) = self.concatenated {
            range("concatenated", width, 1, self.width.saturating_sub(1))?;
        }
        let width = self.concatenated.unwrap_or(self.width);
        if let Some(color) = self.color_width {
            range("color_width", color, 1, width.saturating_sub(1))?;
            absent(&[("reduce", self.reduce > 1)], "is only allowed for gray images")?;
            if self.steps > 0 && self.levels != 256 {
                let message = format!("{} is not allowed; colors have 256", self.levels);
                return Err(("levels", message));
            }
        }
        let (sides, width) = positions(self.side, width, self.color_width, self.encoding.flat);
        within("encoding", self.encoding.check(sides.len(), width))?;
        let length = self.side * self.side * self.color_width.map_or(1, |_| COLORS);
        within("lsh", self.lsh.map_or(Ok(()), |lsh| lsh.check(length)))?;
        self.transformer(length).check()?;
        // Layers whose activations are kept from the forward to the backward pass.
        let kept = if self.reversible { 1 } else { self.layers } as f64;
        let slots = (self.batch * length) as f64;
        let streams = 16.0 * kept * slots * self.width as f64;
        check_bytes("batch", "a step would keep", streams, "`batch`, `side` or `width`")?;
        let weights = kept * slots * (self.heads * length) as f64 * 4.0;
        if weights > 16e9 && self.lsh.is_none() {
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
        if self.color_width.is_none() {
            return check_photographs(data, self.reduce);
        }
        let held_out = data.is_some_and(|data| data.held_out.is_some());
        absent(
            &[("data.held_out", held_out)],
            "images with colors have a validation split; remove `held_out`",
        )
    }
}

impl ImageModel {
    fn transformer(&self, length: usize) -> Transformer {
        let is_whole = self.lsh.is_none() && !self.reversible;
        // LSH attention and reversible layers keep less than all activations.
        transformer!(self, self.layers, self.batch, if is_whole { length } else { 0 })
    }
}
