//! Trains a transformer over the boxes of a screen to predict the label of each box (extension of `lff`).
//!
//! `data.set` is a set of files of the format `labelled-screens`. The input of a box is its position alone; it attends to the other
//! boxes of its screen, without labels. Screens are split again for each seed. Methods of an item share the split, batches, masks and
//! initial weights. A unit trains one model at each of its learning rates, from the same initial weights; all records are those of the
//! one with the highest accuracy on validation screens.
//!
//! Records on held-out screens:
//!
//! - `accuracy`, `macro_f1` (%): after the last step. `accuracy_curve`, `macro_f1_curve` (%): over the step.
//! - `accuracy_seen`, `accuracy_unseen` (%): accuracy of boxes whose position, in whole hundredths, some box on a training screen has, and
//!   of all other boxes. `unseen` (%): share of the latter.
//! - `majority` (%): accuracy of always predicting the most frequent training label.
//! - `held_out_boxes`: number of boxes.
//!
//! Also records:
//!
//! - `learning_rate`: the chosen one. `accuracy_validation`, `macro_f1_validation` (%): on validation screens after the last step, over the
//!   learning rate.
//! - `training_curve` (nats/box): training loss over the step, as means over 25 steps. `training_loss` (nats/box): mean of the last 50
//!   steps.
//! - `params`, `encoding_params`: number of parameters of the model and of the position encoding.
//! - `time` (s): of all learning rates. `rate` (GFLOP/s), `peak_memory` (MB).

#[cfg(feature = "attention")]
mod run;

use posenc_experiments::schema::Data;
use posenc_experiments::schema::protocol::{Fault, Kind, Settings};
use posenc_math::lff::encoding::Encoding;
use posenc_math::lff::schedule::Decay;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::boxes::{BoxScale, check_encoding};
use crate::checks::{
    below_one, check_has_data, check_sizes, check_training, positive, range, ratio,
};
use crate::limits::{Transformer, transformer};

pub const KIND: Kind = kind!(attention: IconLabels, "icon-labels");

/// Settings of `icon-labels`, which trains a transformer over the boxes of a screen to predict the label of each box.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IconLabels {
    /// The position encoding of left, top, right and bottom; two groups are (left, top) and (right, bottom).
    pub encoding: Encoding,
    /// The unit of coordinates.
    #[serde(default)]
    pub scale: BoxScale,
    /// Labels with fewer boxes are merged into one label.
    #[serde(rename(serialize = "least"))]
    pub min_count: usize,
    /// Maximum number of boxes per screen; further boxes are dropped.
    #[serde(rename(serialize = "most_boxes"))]
    pub max_boxes: usize,
    /// Share of held-out screens, above 0 and below 1, sampled again for each seed.
    #[serde(default = "ratio::<20, 100>")]
    pub held_out: f64,
    /// Share of validation screens among the others, from 0 to below 1, sampled again for each seed; required with several learning rates.
    #[serde(default)]
    pub validation: f64,
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
    /// Number of training steps.
    pub steps: usize,
    /// Number of steps between evaluations; the model is always evaluated after the last step.
    pub measure_every: usize,
    /// Peak learning rates; each unit chooses one of these 1 to 16.
    pub learning_rates: Vec<f64>,
    /// Number of steps of the linear warm-up to the peak learning rate.
    pub warm_up: usize,
    /// Learning rate schedule after the warm-up.
    #[serde(default)]
    pub decay: Decay,
    /// Adam's β₂.
    #[serde(default = "ratio::<999, 1000>")]
    pub beta2: f64,
    /// Weight decay of AdamW.
    #[serde(default = "ratio::<1, 100>")]
    pub weight_decay: f64,
}

impl Settings for IconLabels {
    fn overlap(&self) -> f64 {
        self.held_out / ((1.0 - self.held_out) * (1.0 - self.validation))
    }

    fn check(&self) -> Result<(), Fault> {
        range("min_count", self.min_count, 1, 1_000_000)?;
        range("max_boxes", self.max_boxes, 1, 256)?;
        below_one("validation", self.validation)?;
        if !(self.held_out > 0.0 && self.held_out < 1.0) {
            let message = format!("{} is not allowed; allowed: above 0, below 1", self.held_out);
            return Err(("held_out", message));
        }
        check_sizes(self.width, self.heads, self.feed_forward)?;
        range("layers", self.layers, 0, 48)?;
        below_one("dropout", self.dropout)?;
        range("learning_rates", self.learning_rates.len(), 1, 16)?;
        for &rate in &self.learning_rates {
            positive("learning_rates", rate, 10.0)?;
            check_training(self.batch, self.steps, rate, self.warm_up)?;
        }
        if self.learning_rates.len() > 1 && self.validation == 0.0 {
            let message =
                "several learning rates need validation screens; set `validation`, such as 0.25";
            return Err(("learning_rates", message.into()));
        }
        self.transformer().check()?;
        range("measure_every", self.measure_every, 1, 10_000_000)?;
        below_one("beta2", self.beta2)?;
        if self.weight_decay != 0.0 {
            positive("weight_decay", self.weight_decay, 1.0)?;
        }
        check_encoding(&self.encoding, self.scale, self.width)
    }

    fn check_data(&self, data: Option<&Data>) -> Result<(), Fault> {
        check_has_data(KIND.name, data)
    }
}

impl IconLabels {
    fn transformer(&self) -> Transformer {
        transformer!(self, self.layers, self.batch, self.max_boxes)
    }
}
