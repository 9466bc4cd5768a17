//! Trains a causal transformer on the gray levels of small images (`lff` Figures 3, 6, 7).
//!
//! Images are dead leaves, generated for every step. With `data`, they are crops of the photographs of `data.set`, and the model is
//! evaluated on crops of `data.held_out`. Adam's β₁ is 0.9 and ε is 10⁻⁹.
//!
//! Records `bits`, `mean_bits` (over all measurements), `bits_curve`, `training_curve` over steps, `share_of_uniform`, `left_attention`,
//! `upper_attention` (attention weight on that neighbor, in the layer with the largest), `code_norm` (feature norm), `params`,
//! `encoding_params`, `time`, `rate` and `peak_memory`; with `similarity` also `initial_similarity` and `learned_similarity` over
//! displacements, and for both times `length`, `anisotropy`, `correlation` and `gaussian_residual`.

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

/// The kind `image-model`.
pub const KIND: Kind = Kind {
    takes_held_out: true,
    example: include_str!("example.yaml"),
    runner: attention_runner!(ImageModel),
    ..Kind::of::<ImageModel>("image-model")
};

/// Settings of `image-model`: a transformer that predicts the gray level of every pixel from those before it.
///
/// Without `data`, images are the generator's (`pixel-entropies` counts on the same); with it, crops of the set's
/// photographs, and `data.held_out` names the set of the photographs that are measured on.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImageModel {
    /// Rows, and columns, of pixels.
    pub side: usize,
    /// Number of gray levels.
    pub levels: usize,
    /// With `data`: photographs are reduced by this factor before they are cut.
    #[serde(default = "preset::<1, usize>", skip_serializing_if = "is_one")]
    pub reduce: usize,
    /// Held-out images.
    pub held_out: usize,
    /// Layers of attention.
    pub layers: usize,
    /// Width of the model.
    pub width: usize,
    /// Attention heads; they divide the width.
    pub heads: usize,
    /// Width of the feed-forward layers.
    pub feed_forward: usize,
    /// The position encoding.
    pub encoding: Encoding,
    /// Width of the position encoding that is concatenated with the embedding of the level; added to it if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concatenated: Option<usize>,
    /// Images per training step.
    pub batch: usize,
    /// Training steps.
    pub steps: usize,
    /// Peak learning rate.
    pub learning_rate: f64,
    /// Steps of the linear rise to the peak.
    pub warm_up: usize,
    /// Schedule after the warm-up.
    #[serde(default)]
    pub decay: Decay,
    /// Adam's β₂.
    #[serde(default = "hundredths::<98>")]
    pub beta2: f64,
    /// Steps between measurements; the last step is always measured.
    pub measure_every: usize,
    /// Regularizer of Eq. 10.
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
        // The weights of attention of all layers are kept from the pass forward to the pass back.
        let length = (self.side * self.side) as f64;
        let weights = self.layers as f64 * (self.batch * self.heads) as f64 * length * length * 4.0;
        if weights > 16e9 {
            let message = format!(
                "the weights of attention would take {:.1} GB; allowed: 16 GB. Lower `batch`, `side` or `layers`",
                weights / 1e9
            );
            return Err(("batch", message));
        }
        if self.encoding.features != Features::Fourier && self.similarity.is_some() {
            return Err(("similarity", "belongs to `encoding.features: fourier`".into()));
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
