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
//! Records over all folds:
//!
//! - `accuracy` (%), and `accuracy_spatial` and `accuracy_other` (%) for expressions with and without a spatial word.
//! - `screens`, `screens_spatial`, `screens_other`: number of expressions behind each accuracy.
//! - `chance` (%): accuracy of choosing a box at random.
//! - `training_curve` (nats/screen): mean training loss of the folds over the step, as means over 25 steps. `training_loss` (nats/screen):
//!   mean of the last 50 steps.
//! - `params`: number of parameters of the model of the last fold (vocabularies differ). `encoding_params`: those of the position encoding.
//! - `time` (s), `rate` (GFLOP/s), `peak_memory` (MB).

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
pub const KIND: Kind = kind!(attention: ReferredBox, "referred-box");

/// Settings of `referred-box`, which trains a transformer to choose the box of a screen that an expression refers to.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReferredBox {
    /// The position encoding of left, top, right and bottom; two groups are (left, top) and (right, bottom).
    pub encoding: Encoding,
    /// The unit of coordinates.
    #[serde(default)]
    pub scale: BoxScale,
    /// Screens with more boxes are dropped.
    #[serde(rename(serialize = "most_boxes"))]
    pub max_boxes: usize,
    /// Maximum number of words of an expression; further words are dropped.
    #[serde(rename(serialize = "longest"))]
    pub max_len: usize,
    /// Number of node classes; the most frequent ones are used, and all others are treated as unknown.
    pub classes: usize,
    /// Number of folds of the cross-validation.
    #[serde(default = "preset::<5, usize>")]
    pub folds: usize,
    /// Width of the model.
    pub width: usize,
    /// Number of attention heads; must divide `width`.
    pub heads: usize,
    /// Width of the feed-forward layers.
    pub feed_forward: usize,
    /// Number of attention layers.
    pub layers: usize,
    /// Dropout on the outputs of attention and dense layers.
    #[serde(default)]
    pub dropout: f64,
    /// Number of screens per training step.
    pub batch: usize,
    /// Number of training steps of each fold.
    pub steps: usize,
    /// Peak learning rate.
    pub learning_rate: f64,
    /// Number of steps of the linear warm-up to the peak learning rate.
    pub warm_up: usize,
    /// Learning rate schedule after the warm-up.
    #[serde(default)]
    pub decay: Decay,
    /// Adam's β₂.
    #[serde(default = "beta2")]
    pub beta2: f64,
    /// Weight decay of AdamW.
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
