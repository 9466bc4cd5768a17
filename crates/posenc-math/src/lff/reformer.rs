//! Sizes of the Reformer that LFF trains on images (Section 4.1, Appendix B); the defaults are the paper's.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Fault, check_ranges, check_shares};

/// Channels of a pixel.
pub const COLORS: usize = 3;

/// LSH attention: slots are hashed into buckets and sorted by bucket; each slot attends to its own chunk and the one before.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Hashing {
    /// Attention heads.
    pub heads: usize,
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

impl Default for Hashing {
    fn default() -> Self {
        Hashing { heads: 8, head_width: 64, chunk: 128, buckets: 192, rounds: 2, dropout: 0.2 }
    }
}

/// Sizes of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Sizes {
    /// Side of the square images, in pixels.
    pub side: usize,
    /// Levels per color channel.
    pub levels: usize,
    /// Reversible layers.
    pub layers: usize,
    /// Width of each reversible stream (features per slot).
    pub width: usize,
    /// Part of the width for the pixel's position encoding; the rest encodes the color.
    pub pixel_width: usize,
    /// Hidden units of each feed-forward block.
    pub feed_forward: usize,
    /// LSH attention.
    pub hashing: Hashing,
}

impl Default for Sizes {
    fn default() -> Self {
        let hashing = Hashing::default();
        Sizes {
            side: 64,
            levels: 256,
            layers: 6,
            width: 1024,
            pixel_width: 768,
            feed_forward: 4096,
            hashing,
        }
    }
}

impl Sizes {
    /// Slots of a sequence: three per pixel.
    pub fn length(&self) -> usize {
        COLORS * self.side * self.side
    }

    /// Multiplications and additions of a training step on `images` images: three times those of the forward pass. The second
    /// computation of reversible layers in the backward pass is not counted.
    pub fn operations(&self, images: usize) -> f64 {
        let h = &self.hashing;
        let [d, f] = [self.width, self.feed_forward].map(|n| n as f64);
        let inner = (h.heads * h.head_width) as f64;
        let attention = (h.rounds * 2 * h.chunk) as f64 * 2.0 * inner;
        let hashes = (h.rounds * (h.buckets / 2)) as f64 * inner;
        let dense = 3.0 * d * inner + 2.0 * d * f;
        let token =
            self.layers as f64 * (dense + attention + hashes) + 2.0 * d * self.levels as f64;
        6.0 * images as f64 * self.length() as f64 * token
    }

    /// Checks the ranges that the types do not enforce.
    ///
    /// # Errors
    ///
    /// The key that is wrong, and what is allowed.
    pub fn check(&self) -> Result<(), Fault> {
        let h = &self.hashing;
        check_ranges([
            ("side", self.side, 2, 256),
            ("levels", self.levels, 2, 256),
            ("layers", self.layers, 1, 48),
            ("width", self.width, 2, 16_384),
            ("pixel_width", self.pixel_width, 1, self.width.saturating_sub(1)),
            ("feed_forward", self.feed_forward, 1, 65_536),
            ("hashing.heads", h.heads, 1, 64),
            ("hashing.head_width", h.head_width, 1, 1024),
            ("hashing.rounds", h.rounds, 1, 16),
            ("hashing.buckets", h.buckets, 2, 65_536),
        ])?;
        if !h.buckets.is_multiple_of(2) {
            let message = format!("{} is not allowed; allowed: even numbers", h.buckets);
            return Err(("hashing.buckets", message));
        }
        let slots = self.length() * h.rounds;
        if h.chunk == 0 || !slots.is_multiple_of(h.chunk) {
            let message = format!("{} must divide the {slots} slots of all rounds", h.chunk);
            return Err(("hashing.chunk", message));
        }
        check_shares(&[("hashing.dropout", h.dropout)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a term that is left out: dense layers alone need 1.139 · 10¹⁵ operations for 256 images.
    #[test]
    fn operations_of_a_step_of_the_papers_model() {
        let cost = Sizes::default().operations(256);
        assert!(cost > 1.139e15 && cost < 1.25e15, "{cost:e}");
    }

    /// Catches a check that divides by zero or accepts impossible sizes.
    #[test]
    fn wrong_sizes_are_named() {
        Sizes::default().check().unwrap();
        let key = |change: fn(&mut Sizes)| {
            let mut sizes = Sizes::default();
            change(&mut sizes);
            sizes.check().unwrap_err().0
        };
        assert_eq!(key(|s| s.hashing.chunk = 0), "hashing.chunk");
        assert_eq!(key(|s| s.hashing.chunk = 7), "hashing.chunk");
        assert_eq!(key(|s| s.hashing.buckets = 5), "hashing.buckets");
        assert_eq!(key(|s| s.hashing.rounds = 0), "hashing.rounds");
        assert_eq!(key(|s| s.hashing.dropout = 1.0), "hashing.dropout");
        assert_eq!(key(|s| s.pixel_width = 1024), "pixel_width");
        assert_eq!(key(|s| s.side = 0), "side");
        assert_eq!(key(|s| s.width = 0), "width");
    }
}
