//! Trains a DETR-style detector on generated scenes of one or two colored shapes (`lff` Figure 4).
//!
//! Average precision (AP) is COCO's, from 0 to 1. All seeds share the held-out scenes.
//!
//! Records:
//!
//! - `ap`, `ap50`, `ap75`: AP on held-out images of the largest of `sides` after the last step. `ap75_less_ap`: `ap75` − `ap`.
//! - `mean_ap`: mean AP over all measurements. `ap_curve`, `ap75_curve`: over the step.
//! - `steps_to_level` (steps): the step at which AP first reaches `level`, by linear interpolation; infinite if it does not.
//! - `ap_at_side`: AP over `test_sides`. `ap_unseen_side`: mean AP over those of `test_sides` that training does not use.
//! - `params`, `encoding_params`: number of parameters of the model and of the position encoding.
//! - `time` (s), `rate` (GFLOP/s), `peak_memory` (MB).
//! - For the first seed, the pictures `true-boxes` and `boxes` (detections with a score of at least 0.5).

#[cfg(feature = "attention")]
mod pictures;
#[cfg(feature = "attention")]
pub(crate) mod run;

use posenc_experiments::schema::protocol::{Fault, Kind, Settings};
use posenc_math::lff::divergence::Divergence;
use posenc_math::lff::encoding::{Coordinates, Encoding, Features};
use posenc_math::lff::schedule::Decay;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::{
    check_divergence, check_sizes, check_training, positive, preset, range, ratio, within,
};
use crate::limits::{Transformer, check_bytes, transformer};

pub const KIND: Kind = kind!(attention: Detection, "detection");

/// Checks the encoding of `places` with two coordinates. Embedding tables require `cells`.
pub(crate) fn check_encoding(
    encoding: &Encoding,
    coordinates: Coordinates,
    places: &str,
    width: usize,
) -> Result<(), Fault> {
    if encoding.flat {
        return Err(("encoding", format!("flat: {places} have rows and columns here")));
    }
    if encoding.features == Features::Embed && coordinates == Coordinates::Normalized {
        let message = "normalized is not allowed; tables have a row per cell: set `cells`";
        return Err(("coordinates", message.into()));
    }
    within("encoding", encoding.check(2, width))
}

/// Where the position encoding is added.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CodePlace {
    /// To the queries and keys of each attention layer, as in DETR.
    #[default]
    Attention,
    /// To the queries and keys, and also to the input tokens.
    AttentionAndInput,
}

/// Settings of `detection`, which trains a DETR-style detector of one or two colored shapes in a small image.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Detection {
    /// The position encoding.
    pub encoding: Encoding,
    /// Coordinates of a patch.
    #[serde(default)]
    pub coordinates: Coordinates,
    /// Where the position encoding is added.
    #[serde(default)]
    pub code: CodePlace,
    /// Side of a patch in pixels.
    #[serde(default = "preset::<8, usize>")]
    pub patch: usize,
    /// Sides of training images in pixels, multiples of `patch`; rows and columns are sampled from this list. Held-out images have the
    /// largest side.
    pub sides: Vec<usize>,
    /// Further sides in pixels, multiples of `patch`, at which the model is evaluated after the last step.
    #[serde(default)]
    pub test_sides: Vec<usize>,
    /// Number of held-out images, shared by all seeds.
    pub held_out: usize,
    /// Width of the model.
    pub width: usize,
    /// Number of attention heads; must divide `width`.
    pub heads: usize,
    /// Width of the feed-forward layers.
    pub feed_forward: usize,
    /// Number of encoder layers.
    pub encoder_layers: usize,
    /// Number of decoder layers.
    pub decoder_layers: usize,
    /// Number of object queries.
    pub queries: usize,
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
    /// Weight decay of AdamW.
    #[serde(default)]
    pub weight_decay: f64,
    /// Gradient clipping: largest global norm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename(serialize = "longest_gradient"))]
    pub max_grad_norm: Option<f64>,
    /// Number of steps between evaluations; the model is always evaluated after the last step.
    pub measure_every: usize,
    /// Average precision that defines `steps_to_level`.
    #[serde(default = "ratio::<20, 100>")]
    pub level: f64,
    /// Regularizer of learned frequencies (Eq. 10).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub divergence: Option<Divergence>,
}

impl Settings for Detection {
    fn check(&self) -> Result<(), Fault> {
        range("patch", self.patch, 1, 64)?;
        range("held_out", self.held_out, 1, 100_000)?;
        check_sizes(self.width, self.heads, self.feed_forward)?;
        range("encoder_layers", self.encoder_layers, 0, 48)?;
        range("decoder_layers", self.decoder_layers, 1, 48)?;
        // Scenes have up to two objects.
        range("queries", self.queries, 2, 1000)?;
        check_training(self.batch, self.steps, self.learning_rate, self.warm_up)?;
        range("weight_decay", self.weight_decay, 0.0, 1.0)?;
        self.max_grad_norm.map_or(Ok(()), |longest| positive("max_grad_norm", longest, 1e9))?;
        range("measure_every", self.measure_every, 1, self.steps)?;
        range("level", self.level, 0.0, 1.0)?;
        let largest = self.sides.iter().copied().max().unwrap_or(0);
        for (key, sides, most) in
            [("sides", &self.sides, 512), ("test_sides", &self.test_sides, 2 * largest.min(512))]
        {
            let wrong =
                |side: &&usize| !side.is_multiple_of(self.patch) || **side == 0 || **side > most;
            if let Some(side) = sides.iter().find(wrong) {
                let message = format!(
                    "{side} is not allowed; allowed: multiples of the patch ({}), at most {most}",
                    self.patch
                );
                return Err((key, message));
            }
        }
        if self.sides.is_empty() {
            return Err(("sides", "empty; allowed: multiples of the patch".into()));
        }
        let largest = largest.max(self.test_sides.iter().copied().max().unwrap_or(0));
        self.transformer((largest / self.patch).pow(2)).check()?;
        let pixels = self.held_out as f64 * (largest * largest) as f64;
        check_bytes("held_out", "the scenes need", 12.0 * pixels, "`held_out` or `sides`")?;
        check_encoding(&self.encoding, self.coordinates, "patches", self.width)?;
        check_divergence(self.divergence.as_ref(), &self.encoding)
    }
}

impl Detection {
    fn transformer(&self, length: usize) -> Transformer {
        transformer!(self, self.encoder_layers + self.decoder_layers, self.batch, length)
    }
}
