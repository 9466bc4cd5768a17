//! Settings of `icon-labels` and `referred-box`: boxes of real screens.

use posenc_math::lff::encoding::{Encoding, Features};
use posenc_math::lff::schedule::Decay;
use serde::{Deserialize, Serialize};

use super::BoxScale;
use super::network::{Fault, check_beta2, check_heads, check_training, positive, range};
use crate::schema::limits::Transformer;

/// Coordinates of a box.
const COORDINATES: usize = 4;

/// Settings of `icon-labels`: a transformer over the boxes of a screen says what each is.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct IconLabels {
    /// The position encoding of left, top, right and bottom; two groups are (left, top) and (right, bottom).
    pub encoding: Encoding,
    /// The unit of coordinates.
    #[serde(default)]
    pub scale: BoxScale,
    /// Labels of fewer boxes are taken together.
    pub least: usize,
    /// Boxes of a screen beyond so many are left out.
    pub most_boxes: usize,
    /// Share of the screens that are measured on; drawn anew for each seed.
    #[serde(default = "fifth")]
    pub held_out: f64,
    /// Numbers per token.
    pub width: usize,
    /// Heads, which share the width.
    pub heads: usize,
    /// Numbers between the dense layers of a block.
    pub feed_forward: usize,
    /// Layers.
    pub layers: usize,
    /// Share of the numbers that are dropped of what attention and dense layers add.
    #[serde(default)]
    pub dropout: f64,
    /// Screens per step.
    pub batch: usize,
    /// Steps.
    pub steps: usize,
    /// Steps between measurements.
    pub measure_every: usize,
    /// Largest learning rate.
    pub learning_rate: f64,
    /// Steps in which it rises.
    pub warm_up: usize,
    /// How it falls.
    #[serde(default)]
    pub decay: Decay,
    /// Adam's β₂.
    #[serde(default = "beta2")]
    pub beta2: f64,
    /// Share of each parameter that a step of rate 1 takes away.
    #[serde(default = "hundredth")]
    pub weight_decay: f64,
}

/// Settings of `referred-box`: a transformer over the words of an expression and the boxes of a screen chooses the one that is meant.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ReferredBox {
    /// As for `icon-labels`.
    pub encoding: Encoding,
    /// The unit of coordinates.
    #[serde(default)]
    pub scale: BoxScale,
    /// Screens with more boxes are left out.
    pub most_boxes: usize,
    /// Words of an expression beyond so many are left out.
    pub longest: usize,
    /// Classes of boxes that are told apart, the most frequent ones.
    pub classes: usize,
    /// Parts of the screens; each is measured by a model that was trained on the others.
    #[serde(default = "five")]
    pub folds: usize,
    /// Numbers per token.
    pub width: usize,
    /// Heads, which share the width.
    pub heads: usize,
    /// Numbers between the dense layers of a block.
    pub feed_forward: usize,
    /// Layers.
    pub layers: usize,
    /// As for `icon-labels`.
    #[serde(default)]
    pub dropout: f64,
    /// Screens per step.
    pub batch: usize,
    /// Steps of each model.
    pub steps: usize,
    /// Largest learning rate.
    pub learning_rate: f64,
    /// Steps in which it rises.
    pub warm_up: usize,
    /// How it falls.
    #[serde(default)]
    pub decay: Decay,
    /// Adam's β₂.
    #[serde(default = "beta2")]
    pub beta2: f64,
    /// As for `icon-labels`.
    #[serde(default = "hundredth")]
    pub weight_decay: f64,
}

fn fifth() -> f64 {
    0.2
}

fn five() -> usize {
    5
}

fn beta2() -> f64 {
    0.999
}

fn hundredth() -> f64 {
    0.01
}

impl IconLabels {
    /// Ranges that the types cannot say; the error names the key.
    pub(super) fn check(&self) -> Result<(), Fault> {
        range("least", self.least, 1, 1_000_000)?;
        range("most_boxes", self.most_boxes, 1, 256)?;
        if !(self.held_out > 0.0 && self.held_out < 1.0) {
            let message = format!("{} is not allowed; allowed: above 0, below 1", self.held_out);
            return Err(("held_out", message));
        }
        check_layers(self.width, self.heads, self.feed_forward, self.layers, self.dropout)?;
        check_training(self.batch, self.steps, self.learning_rate, self.warm_up)?;
        self.transformer().check()?;
        range("measure_every", self.measure_every, 1, 10_000_000)?;
        check_beta2(self.beta2)?;
        check_weight_decay(self.weight_decay)?;
        check_encoding(&self.encoding, self.scale, self.width)
    }
}

impl ReferredBox {
    /// Ranges that the types cannot say; the error names the key.
    pub(super) fn check(&self) -> Result<(), Fault> {
        range("most_boxes", self.most_boxes, 2, 256)?;
        range("longest", self.longest, 1, 256)?;
        range("classes", self.classes, 1, 10_000)?;
        range("folds", self.folds, 2, 100)?;
        check_layers(self.width, self.heads, self.feed_forward, self.layers, self.dropout)?;
        check_training(self.batch, self.steps, self.learning_rate, self.warm_up)?;
        self.transformer().check()?;
        check_beta2(self.beta2)?;
        check_weight_decay(self.weight_decay)?;
        check_encoding(&self.encoding, self.scale, self.width)
    }
}

impl IconLabels {
    fn transformer(&self) -> Transformer {
        Transformer {
            layers: self.layers,
            width: self.width,
            heads: self.heads,
            feed_forward: self.feed_forward,
            others: 0.0,
            batch: self.batch,
            length: self.most_boxes,
        }
    }
}

impl ReferredBox {
    fn transformer(&self) -> Transformer {
        Transformer {
            layers: self.layers,
            width: self.width,
            heads: self.heads,
            feed_forward: self.feed_forward,
            others: 0.0,
            batch: self.batch,
            length: self.most_boxes,
        }
    }
}

fn check_layers(
    width: usize,
    heads: usize,
    feed_forward: usize,
    layers: usize,
    dropout: f64,
) -> Result<(), Fault> {
    range("width", width, 1, 4096)?;
    check_heads(heads, width)?;
    range("feed_forward", feed_forward, 1, 65_536)?;
    range("layers", layers, 0, 48)?;
    if (0.0..1.0).contains(&dropout) {
        return Ok(());
    }
    Err(("dropout", format!("{dropout} is not allowed; allowed: 0 up to below 1")))
}

fn check_weight_decay(weight_decay: f64) -> Result<(), Fault> {
    if weight_decay == 0.0 { Ok(()) } else { positive("weight_decay", weight_decay, 1.0) }
}

/// An encoding of boxes.
fn check_encoding(encoding: &Encoding, scale: BoxScale, width: usize) -> Result<(), Fault> {
    if encoding.flat {
        return Err(("encoding", "flat: boxes have four coordinates here".into()));
    }
    if encoding.features == Features::Embed && scale == BoxScale::Shares {
        return Err(("scale", "shares is not allowed; tables have a row per hundredth".into()));
    }
    let checked = encoding.check(COORDINATES, width);
    checked.map_err(|(key, message)| ("encoding", format!("{key}: {message}")))
}
