//! Trains an encoder–decoder transformer on generated pairs of languages, or on parallel text (`lff` Figure 1).
//!
//! `data.set` is a set of files of the format `parallel-text`. The protocol measures how similar adjacent rows of the learned position
//! tables of `source` and `target` are. The *peak* of a position is its mean cosine similarity to its two neighbors minus that to all other
//! positions, in standard deviations of the latter.
//!
//! Records for each table, with the prefix `source_` or `target_`:
//!
//! - `peak`: means of the peak over `bin` positions, over the middle of the bin.
//! - `first_peak`, `last_peak`: of the first and the last bin. `decay`: the last divided by the first.
//! - `similarity`: cosine similarities of all pairs of positions; table `source` of the first seed only.
//!
//! Also records:
//!
//! - `count`: number of training sentences that contain a source word at each position, over the position.
//! - `loss` (nats/token): loss on held-out pairs after the last step. `loss_curve` (nats/token): over the step.
//! - `loss_of_guessing` (nats/token): loss of a model that knows only the frequencies of words.
//! - `time` (s), `rate` (GFLOP/s), `peak_memory` (MB).

#[cfg(feature = "attention")]
mod run;

use posenc_experiments::schema::Data;
use posenc_experiments::schema::protocol::{Fault, Kind, Settings};
use posenc_math::lff::schedule::Decay;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::{check_sizes, check_training, range};
use crate::limits::{Transformer, transformer};

pub const KIND: Kind = Kind {
    // 2: another learning rate, and a single map instead of one per table and seed.
    revision: 2,
    ..kind!(attention: Translation, "translation")
};

/// Distribution of sentence lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SentenceLengths {
    /// Log-normal around 12 words, so that few sentences are long.
    LogNormal,
    /// All sentences have the maximum length.
    Constant,
    /// Uniform over all lengths.
    Uniform,
    /// With `data`: sentences of the text, cut to the maximum length.
    Natural,
    /// With `data`: concatenates sentences until both sides have the maximum length.
    Filled,
}

/// Settings of `translation`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Translation {
    /// Number of words of each language. With `data`, the most frequent words; all others share one token.
    pub words: usize,
    /// Maximum sentence length in words, and rows of the position tables.
    #[serde(rename(serialize = "longest"))]
    pub max_len: usize,
    /// Distribution of sentence lengths.
    pub lengths: SentenceLengths,
    /// Number of held-out pairs of sentences.
    pub held_out: usize,
    /// Number of encoder layers, and of decoder layers.
    pub layers: usize,
    /// Width of the model.
    pub width: usize,
    /// Number of attention heads; must divide `width`.
    pub heads: usize,
    /// Width of the feed-forward layers.
    pub feed_forward: usize,
    /// Initial standard deviation of the position tables.
    pub deviation: f64,
    /// Number of pairs of sentences per training step.
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
    /// Number of positions over which peaks are averaged.
    pub bin: usize,
}

impl Settings for Translation {
    fn check(&self) -> Result<(), Fault> {
        range("words", self.words, 2, 50_000)?;
        range("max_len", self.max_len, 4, 512)?;
        range("held_out", self.held_out, 1, 100_000)?;
        range("layers", self.layers, 1, 48)?;
        check_sizes(self.width, self.heads, self.feed_forward)?;
        range("deviation", self.deviation, 0.0, 10.0)?;
        check_training(self.batch, self.steps, self.learning_rate, self.warm_up)?;
        self.transformer().check()?;
        range("bin", self.bin, 1, self.max_len / 2)
    }

    fn check_data(&self, data: Option<&Data>) -> Result<(), Fault> {
        let is_of_text = matches!(self.lengths, SentenceLengths::Natural | SentenceLengths::Filled);
        if is_of_text == data.is_some() {
            return Ok(());
        }
        let message =
            "allowed with `data`: natural, filled; without: log-normal, constant, uniform";
        Err(("protocol.lengths", message.to_owned()))
    }
}

impl Translation {
    fn transformer(&self) -> Transformer {
        let others = 3.0 * self.words as f64 * self.width as f64;
        let layers = 2 * self.layers;
        Transformer { others, ..transformer!(self, layers, self.batch, self.max_len) }
    }
}
