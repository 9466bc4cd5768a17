//! Sizes of the public widget captioner (Li et al. 2020, google-research `widget_caption`), on which LFF builds (Section 4.3); the
//! defaults are its own.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Fault, check_ranges, check_shares};

/// Coordinates of a box: left, top, right, bottom.
pub const COORDINATES: usize = 4;

/// Number of values of a quantized coordinate, 0 to 99.
pub const BINS: usize = 100;

/// Concatenated embeddings of a node: text, resource name, type, position, clickability and tree position.
pub const PARTS: usize = 6;

/// Tree positions of a node: depth, pre-order index and post-order index.
pub const TREE_PLACES: usize = 3;

/// Convolutions of a stage.
pub const CONVOLUTIONS: usize = 3;

/// Largest number of stages of the convolutional network.
const MAX_STAGES: usize = 9;

/// Sizes of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Sizes {
    /// Words that the model reads and generates, including four special ones.
    pub vocabulary: usize,
    /// Width of the word vectors, which are not trained.
    pub word_width: usize,
    /// Rows of the embedding table of node types.
    pub types: usize,
    /// Rows of each embedding table of tree positions; larger tree positions count as 0.
    pub tree_rows: usize,
    /// Width of the transformer (features per token).
    pub width: usize,
    /// Attention heads; their number divides the width, which is even.
    pub heads: usize,
    /// Hidden units of each feed-forward block.
    pub feed_forward: usize,
    /// Layers of the encoder.
    pub encoder_layers: usize,
    /// Layers of the decoder.
    pub decoder_layers: usize,
    /// Channels after each stage of the convolutional network. Each stage halves the sides, down to one cell, so pictures have
    /// 2^n rows and columns for n stages.
    pub channels: Vec<usize>,
    /// Largest number of words of a generated caption, without the end token.
    pub longest: usize,
    /// Dropout rate of attention weights, hidden units, pixels and nodes, from 0 to below 1.
    pub dropout: f64,
    /// Dropout rate of the output of each sublayer and of the words that the decoder reads, from 0 to below 1.
    pub residual_dropout: f64,
}

impl Default for Sizes {
    fn default() -> Self {
        Sizes {
            vocabulary: 10_000,
            word_width: 300,
            types: 100,
            tree_rows: 500,
            width: 128,
            heads: 8,
            feed_forward: 512,
            encoder_layers: 6,
            decoder_layers: 6,
            channels: vec![4, 16, 32, 64, 128, 256],
            longest: 11,
            dropout: 0.2,
            residual_dropout: 0.1,
        }
    }
}

/// Kernel sides of the three convolutions of a stage.
#[must_use]
pub fn kernel_sides(stage: usize) -> [usize; CONVOLUTIONS] {
    match stage {
        0 => [5, 3, 5],
        1 => [5, 3, 3],
        _ => [3, 3, 3],
    }
}

impl Sizes {
    /// Rows and columns of a picture.
    #[must_use]
    pub fn side(&self) -> usize {
        1 << self.channels.len()
    }

    /// Output width of the convolutional network.
    #[must_use]
    pub fn pixel_width(&self) -> usize {
        self.channels.last().copied().unwrap_or(1)
    }

    /// Checks the ranges that the types do not enforce.
    ///
    /// # Errors
    /// The key that is wrong, and what is allowed.
    pub fn check(&self) -> Result<(), Fault> {
        let channels = self.channels.iter();
        let channels = channels.map(|&count| ("channels", count, 1, 4096));
        let others = [
            ("channels", self.channels.len(), 1, MAX_STAGES),
            ("vocabulary", self.vocabulary, 5, 1_000_000),
            ("word_width", self.word_width, 1, 4096),
            // Node types are numbered up to 11.
            ("types", self.types, 12, 1000),
            ("tree_rows", self.tree_rows, 2, 100_000),
            ("width", self.width, 2, 4096),
            ("heads", self.heads, 1, 64),
            ("feed_forward", self.feed_forward, 1, 65_536),
            ("encoder_layers", self.encoder_layers, 0, 48),
            ("decoder_layers", self.decoder_layers, 1, 48),
            // Training captions have up to ten words.
            ("longest", self.longest, 10, 100),
        ];
        check_ranges(others.into_iter().chain(channels))?;
        if !self.width.is_multiple_of(self.heads) || !self.width.is_multiple_of(2) {
            let message = format!(
                "{} heads do not divide the width {}, or the width is odd; the width must be even and a multiple of the heads",
                self.heads, self.width
            );
            return Err(("heads", message));
        }
        check_shares(&[("dropout", self.dropout), ("residual_dropout", self.residual_dropout)])
    }

    /// Multiplications and additions of a training step, without the position encoding: three times those of the forward pass.
    #[must_use]
    pub fn operations(&self, batch: BatchSize) -> f64 {
        let [d, f, w] = [self.width, self.feed_forward, self.word_width].map(|n| n as f64);
        let BatchSize { screens, nodes, widgets, words, said } = batch;
        let [screens, nodes, widgets, words, said] =
            [screens, nodes, widgets, words, said].map(|n| n as f64);
        let rows = (self.types + 2 + TREE_PLACES * self.tree_rows) as f64;
        let tables = words * w * d + rows * d * d;
        let layer = 4.0 * d * d + 2.0 * d * f + 2.0 * nodes * d;
        let encoder = screens * nodes * (PARTS as f64 * d * d + self.encoder_layers as f64 * layer);
        let own = 4.0 * d * d + 2.0 * said * d;
        // Cross-attention to a single slot: queries and keys are never computed.
        let layer = said * (own + d * d + 2.0 * d * f) + d * d;
        let decoder = self.decoder_layers as f64 * layer + said * d * self.vocabulary as f64;
        let fusion = (d + self.pixel_width() as f64) * d;
        6.0 * (tables + encoder + widgets * (self.of_pixels() + fusion + decoder))
    }

    /// Multiplications of the convolutional network for one picture.
    fn of_pixels(&self) -> f64 {
        let mut sum = 0.0;
        let (mut inputs, mut side) = (1.0, self.side() as f64);
        for (stage, &outputs) in self.channels.iter().enumerate() {
            let [first, second, third] = kernel_sides(stage).map(|side| (side * side) as f64);
            sum += side * side * (first + second) * inputs * inputs;
            side /= 2.0;
            sum += side * side * third * inputs * outputs as f64;
            inputs = outputs as f64;
        }
        sum
    }
}

/// Sizes of a training batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchSize {
    pub screens: usize,
    /// Nodes per screen, including padding.
    pub nodes: usize,
    /// Widgets on all screens.
    pub widgets: usize,
    /// Different words on all screens and in all captions.
    pub words: usize,
    /// Words of each widget's caption, including the end token and padding.
    pub said: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a missing term, or a term at the wrong resolution. Counted manually, a picture of 64 × 64 pixels needs 6.7e6
    /// multiplications, and a screen of 60 nodes and 2.8 widgets about 1.1e9 operations (estimated for the paper's runs).
    #[test]
    fn operations_equal_a_manual_count() {
        let sizes = Sizes::default();
        let stages = [
            4096.0 * 34.0 + 1024.0 * 25.0 * 4.0,
            1024.0 * 34.0 * 16.0 + 256.0 * 9.0 * 64.0,
            256.0 * 18.0 * 256.0 + 64.0 * 9.0 * 512.0,
            64.0 * 18.0 * 1024.0 + 16.0 * 9.0 * 2048.0,
            16.0 * 18.0 * 4096.0 + 4.0 * 9.0 * 8192.0,
            4.0 * 18.0 * 16384.0 + 9.0 * 32768.0,
        ];
        assert_eq!(sizes.of_pixels(), stages.iter().sum::<f64>());
        let batch = BatchSize { screens: 64, nodes: 60, widgets: 180, words: 1500, said: 11 };
        let screen = sizes.operations(batch) / 64.0;
        assert!((0.8e9..1.4e9).contains(&screen), "{screen:e}");
        let twice = BatchSize { screens: 128, widgets: 360, words: 3000, ..batch };
        let tables = 6.0 * (602.0 + 1000.0) * 128.0 * 128.0;
        assert!(sizes.operations(twice) < 2.0 * sizes.operations(batch));
        assert!(sizes.operations(twice) > 2.0 * sizes.operations(batch) - 2.0 * tables);
    }

    #[test]
    fn wrong_sizes_are_named() {
        assert!(Sizes::default().check().is_ok());
        let one = Sizes::default;
        for (sizes, key) in [
            (Sizes { heads: 7, ..one() }, "heads"),
            (Sizes { width: 9, heads: 3, ..one() }, "heads"),
            (Sizes { channels: vec![], ..one() }, "channels"),
            (Sizes { channels: vec![4, 0], ..one() }, "channels"),
            (Sizes { types: 11, ..one() }, "types"),
            (Sizes { longest: 9, ..one() }, "longest"),
            (Sizes { residual_dropout: 1.0, ..one() }, "residual_dropout"),
        ] {
            assert_eq!(sizes.check().unwrap_err().0, key);
        }
    }
}
