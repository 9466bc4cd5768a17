//! Trains a transformer over the nodes of screens to describe widgets (`lff` Tables 1, 2 and 5, Figures 8 and 9).
//!
//! Coordinates are left, top, right and bottom; two `groups` are (left, top) and (right, bottom). All methods of an item share the captions
//! that are sampled for training.
//!
//! Without `public`, a small model reads generated screens without pixels. A caption follows from the position of the widget; some captions
//! copy text from the adjacent node. All seeds use the same screens. Records on held-out screens, multiplied by 100:
//!
//! - `bleu_1`, `bleu_2`, `rouge`, `cider`, `meteor`.
//! - `slot_accuracy`: accuracy of the captions. `slot_accuracy_copied`: accuracy of captions that copy text from another node.
//!   `slot_accuracy_of_kind`: accuracy per kind of caption, as signal.
//! - `cider` and `slot_accuracy` with the suffixes `_seen` and `_unseen`: of widgets whose position occurs, or does not occur, in training.
//! - The same with the suffixes `_seen_alike` and `_unseen_alike`: means over the kinds of captions, with equal weight for each kind that
//!   occurs at seen and at unseen positions.
//!
//! Also records:
//!
//! - `seen_widgets`, `unseen_widgets`: number of widgets.
//! - `training_curve` (nats/word): training loss over the step, as means over 50 steps.
//! - `params`, `encoding_params`: number of parameters of the model and of the position encoding.
//! - `time` (s), `rate` (GFLOP/s), `peak_memory` (MB).
//! - For Fourier features, `length`, `anisotropy` and `correlation` of the frequencies before (`initial_`) and after training (`learned_`),
//!   as in `image-model`. With `similarity`, the first seed also records the maps `initial_similarity` and `learned_similarity`.
//!
//! With `public`, the model is the public widget captioner, which reads words and pixels; except for `embed` with `projected`, one dense
//! layer follows the encoding. `data.set` is a set of files of the format `widget-captions`, `data.weights` one of the format
//! `word-vectors`. Without `data`, the protocol generates screens, writes them as RICO files with captions and reads them back. If the
//! vectors are missing, they are sampled. A screen with captions and without a screenshot is an error. The remarks of the record count
//! skipped rows, such as rows about screens that were never released. Records instead:
//!
//! - `params` (M): number of trained parameters. `encoding_params`. `module_params`: number of parameters of each module, as signal. With
//!   `steps: 0`, nothing else.
//! - `training_curve` (nats/word): over the step; means over several steps if there are more than 1,000.
//! - `time_of_screen` (s), `operations_of_screen` (GFLOP): per training screen. `rate` (GFLOP/s), `peak_memory` (MB).
//! - `screens`, `widgets`: number of training screens and of their widgets.
//! - On up to `held_out` test screens, `test_widgets`: number of widgets, `bleu_1`, `bleu_2`, `rouge`, `meteor`, `cider`, and
//!   `cider_seen`, `cider_unseen`, `seen_widgets`, `unseen_widgets`. Positions are compared in hundredths of the screen, and with the suffix
//!   `_pixels` in pixels.

#[cfg(feature = "attention")]
pub(crate) mod measure;
#[cfg(feature = "attention")]
mod run;
#[cfg(feature = "attention")]
mod screens;

use posenc_experiments::schema::Data;
use posenc_experiments::schema::protocol::{Fault, Kind, Settings};
use posenc_math::lff::divergence::Divergence;
use posenc_math::lff::encoding::{Encoding, Features};
use posenc_math::lff::schedule::Decay;
use posenc_math::lff::widget::PublicInputs;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::boxes::{BoxScale, check_encoding};
use crate::checks::{
    absent, below_one, check_divergence, check_sizes, check_training, is_default, positive, preset,
    range, ratio, within,
};
use crate::limits::{Transformer, transformer};

pub const KIND: Kind = Kind {
    // 2: no padding of words and nodes.
    revision: 2,
    takes_weights: true,
    ..kind!(attention: Captioning, "captioning")
};

/// Maximum number of screens that a report shows.
const MAX_SHOWN: usize = 16;

/// Settings of `captioning`, which trains a transformer over the nodes of a screen to describe widgets.
///
/// With `public`, `data.set` names RICO screens with captions, and `data.weights` word vectors, if available. Without `data`, screens are
/// generated, and word vectors are sampled.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Captioning {
    /// The position encoding of left, top, right and bottom; two groups are (left, top) and (right, bottom).
    pub encoding: Encoding,
    /// The unit of coordinates.
    #[serde(default)]
    pub scale: BoxScale,
    /// The public model, with words and pixels; if absent, a small model without them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public: Option<PublicInputs>,
    /// Number of generated training screens.
    pub screens: usize,
    /// Number of held-out screens, shared by all seeds; with `public`, the maximum number of test screens.
    pub held_out: usize,
    /// Factor on the ranges of margins, gaps and sizes of generated screens.
    #[serde(default = "ratio::<110, 100>")]
    pub jitter: f64,
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
    /// Number of screens per training step.
    pub batch: usize,
    /// Number of training steps; with `public`, 0 only counts parameters.
    pub steps: usize,
    /// Peak learning rate.
    pub learning_rate: f64,
    /// Number of steps of the linear warm-up to the peak learning rate.
    pub warm_up: usize,
    /// Learning rate schedule after the warm-up.
    #[serde(default)]
    pub decay: Decay,
    /// Adam's β₂.
    #[serde(default = "ratio::<99, 100>")]
    pub beta2: f64,
    /// Gradient clipping: largest global norm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename(serialize = "longest_gradient"))]
    pub max_grad_norm: Option<f64>,
    /// Beam width; 1 is greedy decoding.
    #[serde(default = "preset::<1, usize>")]
    pub beams: usize,
    /// Length penalty α of the beam search.
    #[serde(default = "ratio::<60, 100>")]
    pub length_penalty: f64,
    /// Regularizer of learned frequencies (Eq. 10).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub divergence: Option<Divergence>,
    /// Largest displacement and step, in hundredths, of the similarity maps before and after training; no maps if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub similarity: Option<[usize; 2]>,
    /// Has no effect. Earlier versions stored this number of screens; it is a part of the keys of their records.
    #[serde(default, skip_serializing_if = "is_default")]
    pub shown: usize,
}

/// Lower bound of the number of nodes of a screen.
const LEAST_NODES: usize = 8;

impl Settings for Captioning {
    fn check(&self) -> Result<(), Fault> {
        let least = usize::from(self.public.is_none());
        range("screens", self.screens, 1, 1_000_000)?;
        range("held_out", self.held_out, least, 100_000)?;
        range("jitter", self.jitter, 0.0, 2.0)?;
        check_sizes(self.width, self.heads, self.feed_forward)?;
        range("encoder_layers", self.encoder_layers, 0, 48)?;
        range("decoder_layers", self.decoder_layers, 1, 48)?;
        let steps = self.steps.max(1 - least);
        check_training(self.batch, steps, self.learning_rate, self.warm_up)?;
        below_one("beta2", self.beta2)?;
        self.max_grad_norm.map_or(Ok(()), |longest| positive("max_grad_norm", longest, 1e9))?;
        if let Some(own) = &self.public {
            within("public", own.check())?;
            if !self.width.is_multiple_of(2) {
                return Err(("width", "must be even with `public`".into()));
            }
            let others = [("similarity", self.similarity.is_some()), ("shown", self.shown > 0)];
            absent(&others, "is only allowed without `public`")?;
        }
        self.transformer(LEAST_NODES).check()?;
        range("beams", self.beams, 1, 64)?;
        range("length_penalty", self.length_penalty, 0.0, 10.0)?;
        range("shown", self.shown, 0, MAX_SHOWN)?;
        check_encoding(&self.encoding, self.scale, self.width)?;
        if let Some([largest, step]) = self.similarity {
            if self.encoding.features != Features::Fourier || self.encoding.groups != 2 {
                let message =
                    "only allowed with `encoding.features: fourier` and `encoding.groups: 2`";
                return Err(("similarity", message.into()));
            }
            range("similarity", largest, 1, 1000)?;
            range("similarity", step, 1, largest)?;
        }
        check_divergence(self.divergence.as_ref(), &self.encoding)
    }

    fn check_data(&self, data: Option<&Data>) -> Result<(), Fault> {
        let others = [("data", data.is_some() && self.public.is_none())];
        absent(
            &others,
            "is only allowed with `protocol.public`; the small model has generated screens",
        )
    }
}

impl Captioning {
    fn transformer(&self, length: usize) -> Transformer {
        let others = self.public.as_ref().map_or(0.0, |own| {
            // Each stage has 3 × 3 convolutions.
            let convolutions: f64 = own.channels.iter().map(|c| 9.0 * (c * c) as f64).sum();
            let tables = (own.tree_rows + own.types) as f64 * self.width as f64;
            own.vocabulary as f64 * own.word_width as f64 + tables + convolutions
        });
        let layers = self.encoder_layers + self.decoder_layers;
        Transformer { others, ..transformer!(self, layers, self.batch, length) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a default that enters cache keys: units without this setting would run again.
    #[test]
    fn the_default_of_shown_is_left_out_of_canonical_settings() {
        let text = "{ encoding: { features: sine }, screens: 4, held_out: 2, width: 8, heads: 2, feed_forward: 8, \
                    encoder_layers: 1, decoder_layers: 1, batch: 1, steps: 1, learning_rate: 0.1, warm_up: 1 }";
        let mut settings: Captioning = serde_yaml::from_str(text).unwrap();
        let without = serde_json::to_string(&settings).unwrap();
        assert!(settings.shown == 0 && !without.contains("shown"), "{without}");
        settings.shown = 4;
        assert_eq!(serde_json::to_string(&settings).unwrap().replace(",\"shown\":4", ""), without);
    }
}
