//! Sizes of DETR (Carion et al. 2020) on ResNet-50 (He et al. 2016), as LFF trains it (Section 4.2, Appendix C); the defaults
//! are the paper's.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Fault, check_ranges, check_shares};

pub const COLORS: usize = 3;

/// Output channels of a residual block divided by its inner channels.
pub const EXPANSION: usize = 4;

/// Pixels per cell of the last feature map, along each axis.
pub const STRIDE: usize = 32;

/// Sizes of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Sizes {
    /// Residual blocks in each stage of the convolutional network.
    pub blocks: [usize; 4],
    /// Output channels of the first convolution, and inner channels of the first stage; each further stage has twice as many.
    pub channels: usize,
    /// Width of the transformer (features per token).
    pub width: usize,
    /// Attention heads; their number divides the width.
    pub heads: usize,
    /// Hidden units of each feed-forward block.
    pub feed_forward: usize,
    /// Layers of the encoder.
    pub encoder_layers: usize,
    /// Layers of the decoder.
    pub decoder_layers: usize,
    /// Object queries: the largest number of detections per image.
    pub queries: usize,
    /// Object classes; COCO numbers its categories from 1 to 90.
    pub classes: usize,
    /// Rows of each embedding table of positions.
    pub cells: usize,
    /// Dropout rate of attention weights, hidden units and the output of each sublayer, from 0 to below 1.
    pub dropout: f64,
}

impl Default for Sizes {
    fn default() -> Self {
        Sizes {
            blocks: [3, 4, 6, 3],
            channels: 64,
            width: 256,
            heads: 8,
            feed_forward: 2048,
            encoder_layers: 6,
            decoder_layers: 6,
            queries: 100,
            classes: 91,
            cells: 50,
            dropout: 0.1,
        }
    }
}

impl Sizes {
    /// Channels of the last feature map.
    pub fn outputs(&self) -> usize {
        EXPANSION * (self.channels << 3)
    }

    /// Checks the ranges that the types do not enforce.
    pub fn check(&self) -> Result<(), Fault> {
        let blocks = self.blocks.iter();
        let blocks = blocks.map(|&count| ("blocks", count, 1, 64));
        let others = [
            ("channels", self.channels, 1, 256),
            ("width", self.width, 2, 4096),
            ("heads", self.heads, 1, 64),
            ("feed_forward", self.feed_forward, 1, 65_536),
            ("encoder_layers", self.encoder_layers, 0, 48),
            ("decoder_layers", self.decoder_layers, 1, 48),
            ("queries", self.queries, 1, 1000),
            ("classes", self.classes, 1, 1000),
            ("cells", self.cells, 1, 1000),
        ];
        check_ranges(blocks.chain(others))?;
        if !self.width.is_multiple_of(self.heads) {
            let message = format!("{} heads do not divide a width of {}", self.heads, self.width);
            return Err(("heads", message));
        }
        check_shares(&[("dropout", self.dropout)])
    }

    /// Multiplications and additions of a training step on images of `[rows, columns]` pixels: three times those of the forward
    /// pass, except for the frozen first convolution and first stage, which run forward only.
    pub fn operations(&self, images: &[[usize; 2]]) -> f64 {
        images.iter().map(|size| self.of_image(*size)).sum()
    }

    fn of_image(&self, size: [usize; 2]) -> f64 {
        let cells = |stride: usize| size.map(|n| n.div_ceil(stride) as f64).iter().product::<f64>();
        let c = self.channels as f64;
        let mut frozen = cells(2) * 49.0 * COLORS as f64 * c;
        let mut trained = 0.0;
        let mut inputs = c;
        for (stage, &blocks) in self.blocks.iter().enumerate() {
            let (inner, n) = (c * f64::from(1 << stage), cells(4 << stage));
            // The first convolution of a stage's first block precedes the stride.
            let before = if stage == 0 { n } else { cells(2 << stage) };
            let outputs = EXPANSION as f64 * inner;
            let first = before * inputs * inner
                + n * (9.0 * inner * inner + inner * outputs + inputs * outputs);
            let other = n * (2.0 * inner * outputs + 9.0 * inner * inner);
            let all = first + (blocks - 1) as f64 * other;
            if stage == 0 {
                frozen += all
            } else {
                trained += all
            };
            inputs = outputs;
        }
        let n = cells(STRIDE);
        2.0 * frozen + 6.0 * (trained + n * inputs * self.width as f64 + self.of_transformer(n))
    }

    /// Multiplications of a forward pass of the transformer and its heads on an image of `n` cells.
    pub fn of_transformer(&self, n: f64) -> f64 {
        let [d, f, q] = [self.width, self.feed_forward, self.queries].map(|n| n as f64);
        let encoder = n * (4.0 * d * d + 2.0 * d * f + 2.0 * n * d);
        let own = q * (4.0 * d * d + 2.0 * q * d);
        let cross = 2.0 * q * d * d + 2.0 * n * d * d + 2.0 * q * n * d;
        let heads = q * (d * (self.classes + 1) as f64 + 2.0 * d * d + 4.0 * d);
        let decoder = own + cross + q * 2.0 * d * f + heads;
        self.encoder_layers as f64 * encoder + self.decoder_layers as f64 * decoder
    }
}

/// Sizes to which images are resized; the defaults are DETR's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Resizing {
    /// Shorter sides of training images, in pixels; one is sampled per image.
    pub short_sides: Vec<usize>,
    /// Longest side after resizing, in pixels.
    pub longest: usize,
    /// Shorter sides before a random crop, in pixels; half of the training images are cropped.
    pub before_window: Vec<usize>,
    /// Smallest and largest side of the crop, in pixels.
    pub window: [usize; 2],
    /// Shorter side of evaluation images, in pixels.
    pub measured: usize,
}

impl Default for Resizing {
    fn default() -> Self {
        Resizing {
            short_sides: (480..=800).step_by(32).collect(),
            longest: 1333,
            before_window: vec![400, 500, 600],
            window: [384, 600],
            measured: 800,
        }
    }
}

impl Resizing {
    /// Checks the ranges that the types do not enforce.
    pub fn check(&self) -> Result<(), Fault> {
        let [least, most] = self.window;
        for (key, sides) in [
            ("short_sides", &self.short_sides[..]),
            ("before_window", &self.before_window),
            ("window", &self.window),
            ("measured", &[self.measured]),
            ("longest", &[self.longest]),
        ] {
            if sides.is_empty() || !sides.iter().all(|side| (8..=4096).contains(side)) {
                return Err((key, "give at least one side; allowed: 8 to 4096 pixels".to_owned()));
            }
        }
        if least > most || self.before_window.iter().any(|&side| side < least) {
            let message = format!(
                "the smallest side {least} exceeds the largest side {most} or a side in `before_window`"
            );
            return Err(("window", message));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a stage at the wrong resolution: ResNet-50 needs 4.1e9 multiplications for an image of 224 × 224 pixels.
    #[test]
    fn operations_agree_with_the_literature() {
        let network = Sizes { encoder_layers: 0, decoder_layers: 0, ..Sizes::default() };
        let step = network.operations(&[[224, 224]]);
        // The first convolution and the first stage need 0.118e9 + 0.667e9 multiplications.
        let frozen = 0.785e9;
        let forward = (step - 2.0 * frozen) / 6.0 + frozen;
        assert!((forward / 4.1e9 - 1.0).abs() < 0.02, "{forward:e}");
        let full = Sizes::default().operations(&[[800, 1333]]);
        assert!((0.4e12..0.7e12).contains(&full), "{full:e}");
    }
}
