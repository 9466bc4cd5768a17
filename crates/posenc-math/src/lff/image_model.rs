//! Settings of the model that LFF trains on images (Section 4.1, Appendix B).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Fault, check_ranges, check_shares};

/// Channels of a pixel with colors.
pub const COLORS: usize = 3;

/// Sides of the positions of an image, and the width of their encoding. Together, encoding and color embedding have a width of `width`.
/// Flat encodings of images with colors encode the index in the sequence and need no color embedding.
pub fn positions(
    side: usize,
    width: usize,
    color_width: Option<usize>,
    flat: bool,
) -> (Vec<usize>, usize) {
    match color_width {
        Some(_) if flat => (vec![side, side, COLORS], width),
        _ => (vec![side; 2], width.saturating_sub(color_width.unwrap_or(0))),
    }
}

/// LSH attention: slots are hashed into buckets and sorted by bucket; each slot attends to its own chunk and the one before. The
/// defaults are the paper's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Lsh {
    /// Width of a query and of a value, per head.
    pub head_width: usize,
    /// Slots per chunk; divides rounds × slots of a sequence.
    pub chunk: usize,
    /// Hash buckets; an even number.
    pub buckets: usize,
    /// Rounds of hashing.
    pub rounds: usize,
    /// Dropout rate of attention weights, from 0 to below 1.
    pub dropout: f64,
}

impl Default for Lsh {
    fn default() -> Self {
        Lsh { head_width: 64, chunk: 128, buckets: 192, rounds: 2, dropout: 0.2 }
    }
}

impl Lsh {
    /// Checks the ranges that the types do not enforce, for sequences of `length` slots.
    pub fn check(&self, length: usize) -> Result<(), Fault> {
        check_ranges([
            ("head_width", self.head_width, 1, 1024),
            ("rounds", self.rounds, 1, 16),
            ("buckets", self.buckets, 2, 65_536),
        ])?;
        if !self.buckets.is_multiple_of(2) {
            return Err((
                "buckets",
                format!("{} is not allowed; allowed: even numbers", self.buckets),
            ));
        }
        let slots = length * self.rounds;
        if self.chunk == 0 || !slots.is_multiple_of(self.chunk) {
            let message = format!("{} must divide the {slots} slots of all rounds", self.chunk);
            return Err(("chunk", message));
        }
        check_shares(&[("dropout", self.dropout)])
    }
}
