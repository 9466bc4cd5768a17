//! Trains an encoder–decoder transformer on generated pairs of languages, or on parallel text (`lff` Figure 1).
//!
//! `data.set` is a set of files of the format `parallel-text`.
//!
//! Records for `source` and `target` `source_similarity` of learned positions (source, first seed), `source_peak` (means over `bin`
//! positions of how much more similar neighbors are than others, in standard deviations), `source_first_peak`, `source_last_peak` and
//! `source_decay`; `count`, `loss`, `loss_curve`, `loss_of_guessing`, `time`, `rate` and `peak_memory`.

#[cfg(feature = "attention")]
mod run;

use posenc_experiments::schema::Data;
use posenc_experiments::schema::protocol::{Fault, Kind, Settings};
use posenc_math::lff::schedule::Decay;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::{check_sizes, check_training, range};
use crate::limits::Transformer;

/// The kind `translation`.
pub const KIND: Kind = Kind {
    // 2: the learning rate, and one map instead of one per table and seed.
    revision: 2,
    example: include_str!("example.yaml"),
    runner: attention_runner!(Translation),
    ..Kind::of::<Translation>("translation")
};

/// How long sentences are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SentenceLengths {
    /// Log-normal around 12 words, so few are long.
    LogNormal,
    /// The maximum length.
    Constant,
    /// Uniform over all lengths.
    Uniform,
    /// With `data`: unchanged.
    Natural,
    /// With `data`: concatenates sentences until both sides have the maximum length.
    Filled,
}

/// Settings of `translation`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Translation {
    /// Vocabulary of each language; with `data` the most frequent words, and all others share one token.
    pub words: usize,
    /// Maximum sentence length in words, and rows of the position tables.
    #[serde(rename(serialize = "longest"))]
    pub max_len: usize,
    /// How long sentences are.
    pub lengths: SentenceLengths,
    /// Held-out pairs.
    pub held_out: usize,
    /// Layers of the encoder, and of the decoder.
    pub layers: usize,
    /// Width of the model.
    pub width: usize,
    /// Attention heads; they divide the width.
    pub heads: usize,
    /// Width of the feed-forward layers.
    pub feed_forward: usize,
    /// Initial standard deviation of the position tables.
    pub deviation: f64,
    /// Pairs per training step.
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
    /// Positions per mean.
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
        Transformer {
            layers: 2 * self.layers,
            width: self.width,
            heads: self.heads,
            feed_forward: self.feed_forward,
            others: 3.0 * self.words as f64 * self.width as f64,
            batch: self.batch,
            length: self.max_len,
        }
    }
}
