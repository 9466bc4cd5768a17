//! Sizes of the Reformer that LFF trains on images (Section 4.1, Appendix B); the defaults are the paper's.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Fault, check_ranges, check_shares};

/// Channels of a pixel.
pub const COLORS: usize = 3;

/// How slots are hashed: they fall into buckets, are put in their order, and see the chunk they are in and the one before.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Hashing {
    /// Heads of attention.
    pub heads: usize,
    /// Numbers of a query, and of a value.
    pub head_width: usize,
    /// Slots of a chunk; rounds × slots are a multiple of it.
    pub chunk: usize,
    /// Buckets, an even number.
    pub buckets: usize,
    /// Rounds.
    pub rounds: usize,
    /// Share of weights of attention that are zero in a step of training.
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
    /// Rows, and columns, of pixels.
    pub side: usize,
    /// Number of levels of a color.
    pub levels: usize,
    /// Reversible layers.
    pub layers: usize,
    /// Numbers per slot of each stream.
    pub width: usize,
    /// Those of them that hold the pixel's code; the others tell the colors apart.
    pub pixel_width: usize,
    /// Numbers between the two dense layers of a block.
    pub feed_forward: usize,
    /// Attention.
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

    /// Multiplications and additions of a step of training on `images` images, three times those of a pass
    /// forward. That reversible layers are computed a second time is not counted.
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
            let message = format!("{} does not divide the {slots} slots of all rounds", h.chunk);
            return Err(("hashing.chunk", message));
        }
        check_shares(&[("hashing.dropout", h.dropout)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Would catch a term that is left out: dense layers alone are 1.139 · 10¹⁵ operations for 256 images.
    #[test]
    fn a_step_costs_what_the_papers_model_costs() {
        let cost = Sizes::default().operations(256);
        assert!(cost > 1.139e15 && cost < 1.25e15, "{cost:e}");
    }

    /// Would catch a check that divides by zero or lets sizes through that the model cannot have.
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
