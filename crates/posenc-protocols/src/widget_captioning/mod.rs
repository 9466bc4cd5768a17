//! Builds the public widget captioner, counts its parameters, trains it, and describes the widgets of test screens (`lff` Table 5).
//!
//! The model reads words and pixels. Without `data`, the protocol generates screens, writes them as RICO files with captions and reads
//! them back. `data.set` is a set of files of the format `widget-captions`, `data.weights` one of the format `word-vectors`. If the
//! vectors are missing, they are sampled. A screen with captions and without a screenshot is an error. The remarks of the record count
//! skipped rows, such as rows about screens that were never released. The default schedule is that of the public code,
//! 128^(−1/2)·min(1, s/2000)/√max(s, 2000) at step s. Except for `embed` with `projected`, one dense layer follows the encoding.
//!
//! Records:
//!
//! - `params` (M): number of trained parameters. `encoding_params`: number of parameters of the position encoding. `module_params`:
//!   number of parameters of each module, as signal.
//!
//! With `steps`, also records:
//!
//! - `training_curve` (nats/word): training loss over the step; means over several steps if there are more than 1,000.
//! - `time_of_screen` (s), `operations_of_screen` (GFLOP): per training screen. `rate` (GFLOP/s), `peak_memory` (MB).
//! - `screens`, `widgets`: number of training screens and of their widgets.
//!
//! With `held_out`, also records on test screens:
//!
//! - `test_widgets`: number of widgets.
//! - `bleu_1`, `bleu_2`, `rouge`, `meteor`, `cider`, multiplied by 100.
//! - `cider_seen`, `cider_unseen`, `seen_widgets`, `unseen_widgets`: CIDEr and number of widgets whose position occurs, or does not
//!   occur, in training. Positions are compared in hundredths of the screen, and with the suffix `_pixels` in pixels.

#[cfg(feature = "attention")]
mod measure;
#[cfg(feature = "attention")]
mod run;
#[cfg(feature = "attention")]
mod screens;

use posenc_experiments::schema::protocol::{Fault, Kind, Settings};
use posenc_math::lff::encoding::Encoding;
use posenc_math::lff::schedule::Decay;
use posenc_math::lff::widget::Sizes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::boxes::{BoxScale, check_encoding};
use crate::checks::{below_one, hundredths, positive, preset, range, within};
use crate::limits::Transformer;

pub const KIND: Kind =
    Kind { takes_weights: true, ..kind!(attention: WidgetCaptioning, "widget-captioning") };

/// Settings of `widget-captioning`, which builds the public widget captioner, counts its parameters, trains it for some steps and evaluates
/// it.
///
/// `data.set` names RICO screens with captions, and `data.weights` word vectors, if available. Without `data`, the protocol generates
/// screens, writes them as RICO files with captions and reads them back, and word vectors are sampled.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WidgetCaptioning {
    /// Sizes of the model; the defaults are those of the public captioner.
    #[serde(default)]
    pub model: Sizes,
    /// The position encoding of left, top, right and bottom, from 0 to 99.
    pub encoding: Encoding,
    /// Number of generated training screens without `data`.
    #[serde(default = "preset::<24, usize>")]
    pub screens: usize,
    /// Number of screens per training step.
    #[serde(default = "preset::<64, usize>")]
    pub batch: usize,
    /// Number of training steps; 0 only counts parameters.
    #[serde(default)]
    pub steps: usize,
    /// Maximum number of test screens that are evaluated after the last step.
    #[serde(default)]
    pub held_out: usize,
    /// Peak learning rate.
    #[serde(default = "rate")]
    pub learning_rate: f64,
    /// Number of steps of the linear warm-up to the peak learning rate.
    #[serde(default = "preset::<2000, usize>")]
    pub warm_up: usize,
    /// Learning rate schedule after the warm-up.
    #[serde(default)]
    pub decay: Decay,
    /// Adam's β₂.
    #[serde(default = "beta2")]
    pub beta2: f64,
    /// Gradient clipping: largest global norm.
    #[serde(default = "preset::<5, f64>", rename(serialize = "longest_gradient"))]
    pub max_grad_norm: f64,
    /// Beam width; 1 is greedy decoding.
    #[serde(default = "preset::<4, usize>")]
    pub beams: usize,
    /// Length penalty α of the beam search.
    #[serde(default = "hundredths::<60>")]
    pub length_penalty: f64,
}

/// 1/√(128 · 2000).
fn rate() -> f64 {
    1.976_424e-3
}

fn beta2() -> f64 {
    0.997
}

impl Settings for WidgetCaptioning {
    fn check(&self) -> Result<(), Fault> {
        within("model", self.model.check())?;
        range("screens", self.screens, 1, 100_000)?;
        range("batch", self.batch, 1, 4096)?;
        let model = &self.model;
        let rows = model.vocabulary as f64 * model.word_width as f64
            + (model.tree_rows + model.types) as f64 * model.width as f64;
        // Each stage has 3 × 3 convolutions.
        let convolutions = model.channels.iter().map(|c| 9.0 * (c * c) as f64).sum::<f64>();
        self.transformer(rows + convolutions, 1).check()?;
        range("steps", self.steps, 0, 10_000_000)?;
        range("held_out", self.held_out, 0, 1_000_000)?;
        positive("learning_rate", self.learning_rate, 10.0)?;
        range("warm_up", self.warm_up, 0, 10_000_000)?;
        below_one("beta2", self.beta2)?;
        positive("max_grad_norm", self.max_grad_norm, 1e9)?;
        range("beams", self.beams, 1, 64)?;
        range("length_penalty", self.length_penalty, 0.0, 10.0)?;
        check_encoding(&self.encoding, BoxScale::Hundredths, self.model.width)
    }
}

impl WidgetCaptioning {
    fn transformer(&self, others: f64, length: usize) -> Transformer {
        let model = &self.model;
        Transformer {
            layers: model.encoder_layers + model.decoder_layers,
            width: model.width,
            heads: model.heads,
            feed_forward: model.feed_forward,
            others,
            batch: self.batch,
            length,
        }
    }
}
