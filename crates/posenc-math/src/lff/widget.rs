//! Settings of the public widget captioner (Li et al. 2020, google-research `widget_caption`), on which LFF builds (Section 4.3), besides
//! those of its transformer; the defaults are its own.

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

/// Words, node features and pixels of the public captioner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PublicInputs {
    /// Words that the model reads and generates, including four special ones.
    pub vocabulary: usize,
    /// Width of the word vectors, which are not trained.
    pub word_width: usize,
    /// Rows of the embedding table of node types.
    pub types: usize,
    /// Rows of each embedding table of tree positions; larger tree positions count as 0.
    pub tree_rows: usize,
    /// Channels after each stage of the convolutional network. Each stage halves the sides, down to one cell, so pictures have
    /// 2^n rows and columns for n stages.
    pub channels: Vec<usize>,
    /// Largest number of words of a generated caption, without the end token.
    pub max_len: usize,
    /// Dropout rate of attention weights, hidden units, pixels and nodes, from 0 to below 1.
    pub dropout: f64,
    /// Dropout rate of the output of each sublayer and of the words that the decoder reads, from 0 to below 1.
    pub residual_dropout: f64,
}

impl Default for PublicInputs {
    fn default() -> Self {
        PublicInputs {
            vocabulary: 10_000,
            word_width: 300,
            types: 100,
            tree_rows: 500,
            channels: vec![4, 16, 32, 64, 128, 256],
            max_len: 11,
            dropout: 0.2,
            residual_dropout: 0.1,
        }
    }
}

/// Kernel sides of the three convolutions of a stage.
pub fn kernel_sides(stage: usize) -> [usize; CONVOLUTIONS] {
    match stage {
        0 => [5, 3, 5],
        1 => [5, 3, 3],
        _ => [3, 3, 3],
    }
}

impl PublicInputs {
    /// Rows and columns of a picture.
    pub fn side(&self) -> usize {
        1 << self.channels.len()
    }

    /// Output width of the convolutional network.
    pub fn pixel_width(&self) -> usize {
        self.channels.last().copied().unwrap_or(1)
    }

    /// Checks the ranges that the types do not enforce.
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
            // Training captions have up to ten words.
            ("max_len", self.max_len, 10, 100),
        ];
        check_ranges(others.into_iter().chain(channels))?;
        check_shares(&[("dropout", self.dropout), ("residual_dropout", self.residual_dropout)])
    }

    /// Multiplications of the convolutional network for one picture.
    pub fn pixel_operations(&self) -> f64 {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a missing convolution, or one at the wrong resolution, by comparison with a manual count.
    #[test]
    fn operations_of_pixels_equal_a_manual_count() {
        let stages = [
            4096.0 * 34.0 + 1024.0 * 25.0 * 4.0,
            1024.0 * 34.0 * 16.0 + 256.0 * 9.0 * 64.0,
            256.0 * 18.0 * 256.0 + 64.0 * 9.0 * 512.0,
            64.0 * 18.0 * 1024.0 + 16.0 * 9.0 * 2048.0,
            16.0 * 18.0 * 4096.0 + 4.0 * 9.0 * 8192.0,
            4.0 * 18.0 * 16384.0 + 9.0 * 32768.0,
        ];
        assert_eq!(PublicInputs::default().pixel_operations(), stages.iter().sum::<f64>());
    }
}
