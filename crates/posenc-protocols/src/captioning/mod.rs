//! Trains a transformer over the nodes of generated screens to describe widgets (`lff` Tables 1 and 2, Figures 8 and 9).
//!
//! A caption follows from the position of the widget; some captions copy text from the adjacent node. Coordinates are left, top, right
//! and bottom; two `groups` are (left, top) and (right, bottom). All seeds use the same screens. All methods of an item also share the
//! captions that are sampled for training.
//!
//! Records `bleu_1`, `bleu_2`, `rouge`, `cider`, `meteor` and `spice`, all × 100; `slot_accuracy` (accuracy, %), `slot_accuracy_copied`
//! (captions that copy from another node), `slot_accuracy_of_kind` over kinds of captions; `cider` and `slot_accuracy` also with `_seen`
//! and `_unseen`, and averaged over kinds with equal weight as `_seen_alike` and `_unseen_alike`; `seen_widgets`, `unseen_widgets`;
//! `training_curve` over steps, `params`, `encoding_params`, `time`, `rate` and `peak_memory`; for Fourier features `initial_` and
//! `learned_` `length`, `anisotropy` and `correlation`, and with `similarity` the maps `initial_similarity` and `learned_similarity`.

#[cfg(feature = "attention")]
mod kept;
#[cfg(feature = "attention")]
pub(crate) mod measure;
#[cfg(feature = "attention")]
mod run;

use posenc_experiments::schema::protocol::{Fault, Kind, Settings};
use posenc_math::lff::divergence::Divergence;
use posenc_math::lff::encoding::{Encoding, Features};
use posenc_math::lff::schedule::Decay;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::boxes::{BoxScale, check_encoding};
use crate::checks::{
    below_one, check_divergence, check_sizes, check_training, hundredths, positive, preset, range,
};
use crate::limits::Transformer;

/// The kind `captioning`.
pub const KIND: Kind = Kind {
    // 2: words and nodes without filling.
    revision: 2,
    example: include_str!("example.yaml"),
    runner: attention_runner!(Captioning),
    ..Kind::of::<Captioning>("captioning")
};

/// Most screens that a report shows.
const MOST_SHOWN: usize = 16;

/// Settings of `captioning`: a transformer over the nodes of a screen says what widgets do.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Captioning {
    /// The position encoding of left, top, right and bottom; two groups are (left, top) and (right, bottom).
    pub encoding: Encoding,
    /// The unit of coordinates.
    #[serde(default)]
    pub scale: BoxScale,
    /// Training screens.
    pub screens: usize,
    /// Held-out screens, shared by all seeds.
    pub held_out: usize,
    /// Factor on the ranges of margins, gaps and sizes.
    #[serde(default = "hundredths::<110>")]
    pub jitter: f64,
    /// Width of the model.
    pub width: usize,
    /// Attention heads; they divide the width.
    pub heads: usize,
    /// Width of the feed-forward layers.
    pub feed_forward: usize,
    /// Layers of the encoder.
    pub encoder_layers: usize,
    /// Layers of the decoder.
    pub decoder_layers: usize,
    /// Screens per training step.
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
    #[serde(default = "hundredths::<99>")]
    pub beta2: f64,
    /// Gradient clipping: largest global norm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename(serialize = "longest_gradient"))]
    pub max_grad_norm: Option<f64>,
    /// Beam width; 1 is greedy decoding.
    #[serde(default = "preset::<1, usize>")]
    pub beams: usize,
    /// Length penalty α of the beam search.
    #[serde(default = "hundredths::<60>")]
    pub length_penalty: f64,
    /// Regularizer of Eq. 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub divergence: Option<Divergence>,
    /// Largest displacement and step of the similarity maps before and after training; no maps if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub similarity: Option<[usize; 2]>,
    /// Number of held-out screens, from the first, that the first seed stores for the report to show with their captions.
    #[serde(default, skip_serializing_if = "is_none")]
    pub shown: usize,
}

/// Whether a number of screens is none, as where the key is absent.
fn is_none(count: &usize) -> bool {
    *count == 0
}

/// A screen has more nodes.
const LEAST_NODES: usize = 8;

impl Settings for Captioning {
    fn check(&self) -> Result<(), Fault> {
        range("screens", self.screens, 1, 1_000_000)?;
        range("held_out", self.held_out, 1, 100_000)?;
        range("jitter", self.jitter, 0.0, 2.0)?;
        check_sizes(self.width, self.heads, self.feed_forward)?;
        range("encoder_layers", self.encoder_layers, 0, 48)?;
        range("decoder_layers", self.decoder_layers, 1, 48)?;
        check_training(self.batch, self.steps, self.learning_rate, self.warm_up)?;
        below_one("beta2", self.beta2)?;
        self.max_grad_norm.map_or(Ok(()), |longest| positive("max_grad_norm", longest, 1e9))?;
        self.transformer(LEAST_NODES).check()?;
        range("beams", self.beams, 1, 64)?;
        range("length_penalty", self.length_penalty, 0.0, 10.0)?;
        range("shown", self.shown, 0, MOST_SHOWN)?;
        check_encoding(&self.encoding, self.scale, self.width)?;
        if let Some([largest, step]) = self.similarity {
            if self.encoding.features != Features::Fourier || self.encoding.groups != 2 {
                let message = "belongs to `encoding.features: fourier` in 2 groups";
                return Err(("similarity", message.into()));
            }
            range("similarity", largest, 1, 1000)?;
            range("similarity", step, 1, largest)?;
        }
        check_divergence(self.divergence.as_ref(), &self.encoding)
    }
}

impl Captioning {
    fn transformer(&self, length: usize) -> Transformer {
        Transformer {
            layers: self.encoder_layers + self.decoder_layers,
            width: self.width,
            heads: self.heads,
            feed_forward: self.feed_forward,
            batch: self.batch,
            length,
            ..Transformer::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a setting that changes the keys of units which do not use it: they would run again.
    #[test]
    fn screens_that_are_not_shown_are_no_part_of_a_specification() {
        let text = "{ encoding: { features: sine }, screens: 4, held_out: 2, width: 8, heads: 2, feed_forward: 8, \
                    encoder_layers: 1, decoder_layers: 1, batch: 1, steps: 1, learning_rate: 0.1, warm_up: 1 }";
        let mut settings: Captioning = serde_yaml::from_str(text).unwrap();
        let without = serde_json::to_string(&settings).unwrap();
        assert!(settings.shown == 0 && !without.contains("shown"), "{without}");
        settings.shown = 4;
        assert_eq!(serde_json::to_string(&settings).unwrap().replace(",\"shown\":4", ""), without);
    }
}
