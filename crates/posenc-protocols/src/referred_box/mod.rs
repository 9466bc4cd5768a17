//! Trains a transformer to choose the box of a screen that an expression refers to (extension of `lff`).
//!
//! `data.set` is a set of files of the format `referring-screens`. The model attends to the words of the expression and to the boxes of
//! the screen. The input of a box is its position and three features of the node that overlaps it most in the screen's tree: its class,
//! the number of words of the expression in its text or description, and the number in its name. A unit is a whole cross-validation.
//! The vocabulary contains words that occur at least twice in the training expressions; all other words share one token. Methods of an
//! item share the folds, batches, masks and initial weights.
//!
//! Spatial words describe a position or an order: above, adjacent, after, before, behind, below, beneath, beside, between, bottom,
//! bottommost, center, centre, column, corner, down, end, inside, last, left, leftmost, line, lower, middle, near, nearby, next,
//! outside, over, right, rightmost, row, side, top, topmost, under, underneath, up, upper, and ordinals (first to tenth, 1st to 9th).
//! Their sense in an expression is not checked.
//!
//! Records over all folds `accuracy` (%), `accuracy_spatial` and `accuracy_other` (expressions with and without a spatial word),
//! `screens`, `screens_spatial`, `screens_other`, `chance` (%); means over folds of `training_curve` and `training_loss`; `params` (last
//! fold, since vocabularies differ), `encoding_params`, `time`, `rate` and `peak_memory`.

#[cfg(feature = "attention")]
mod run;

use posenc_experiments::schema::Data;
use posenc_experiments::schema::protocol::{Fault, Kind, Settings};
use posenc_math::lff::encoding::Encoding;
use posenc_math::lff::schedule::Decay;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::boxes::{BoxScale, beta2, check_encoding, check_has_screens, check_weight_decay};
use crate::checks::{below_one, check_sizes, check_training, hundredths, preset, range};
use crate::limits::Transformer;

/// The kind `referred-box`.
pub const KIND: Kind = Kind {
    example: include_str!("example.yaml"),
    runner: attention_runner!(ReferredBox),
    ..Kind::of::<ReferredBox>("referred-box")
};

/// Settings of `referred-box`: a transformer over the words of an expression and the boxes of a screen chooses the one that is meant.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReferredBox {
    /// As for `icon-labels`.
    pub encoding: Encoding,
    /// The unit of coordinates.
    #[serde(default)]
    pub scale: BoxScale,
    /// Screens with more boxes are dropped.
    #[serde(rename(serialize = "most_boxes"))]
    pub max_boxes: usize,
    /// Maximum number of words of an expression; others are dropped.
    #[serde(rename(serialize = "longest"))]
    pub max_len: usize,
    /// Number of node classes, the most frequent ones.
    pub classes: usize,
    /// Folds of the cross-validation.
    #[serde(default = "preset::<5, usize>")]
    pub folds: usize,
    /// Width of the model.
    pub width: usize,
    /// Attention heads; they divide the width.
    pub heads: usize,
    /// Width of the feed-forward layers.
    pub feed_forward: usize,
    /// Attention layers.
    pub layers: usize,
    /// As for `icon-labels`.
    #[serde(default)]
    pub dropout: f64,
    /// Screens per training step.
    pub batch: usize,
    /// Training steps of each model.
    pub steps: usize,
    /// Peak learning rate.
    pub learning_rate: f64,
    /// Steps of the linear rise to the peak.
    pub warm_up: usize,
    /// Schedule after the warm-up.
    #[serde(default)]
    pub decay: Decay,
    /// Adam's β₂.
    #[serde(default = "beta2")]
    pub beta2: f64,
    /// As for `icon-labels`.
    #[serde(default = "hundredths::<1>")]
    pub weight_decay: f64,
}

impl Settings for ReferredBox {
    fn check(&self) -> Result<(), Fault> {
        range("max_boxes", self.max_boxes, 2, 256)?;
        range("max_len", self.max_len, 1, 256)?;
        range("classes", self.classes, 1, 10_000)?;
        range("folds", self.folds, 2, 100)?;
        check_sizes(self.width, self.heads, self.feed_forward)?;
        range("layers", self.layers, 0, 48)?;
        below_one("dropout", self.dropout)?;
        check_training(self.batch, self.steps, self.learning_rate, self.warm_up)?;
        self.transformer().check()?;
        below_one("beta2", self.beta2)?;
        check_weight_decay(self.weight_decay)?;
        check_encoding(&self.encoding, self.scale, self.width)
    }

    fn check_data(&self, data: Option<&Data>) -> Result<(), Fault> {
        check_has_screens(data)
    }
}

impl ReferredBox {
    fn transformer(&self) -> Transformer {
        Transformer {
            layers: self.layers,
            width: self.width,
            heads: self.heads,
            feed_forward: self.feed_forward,
            batch: self.batch,
            length: self.max_boxes,
            ..Transformer::default()
        }
    }
}
