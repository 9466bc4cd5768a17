//! Counts what the neighbors of a pixel reveal about it, on the images that `image-model` trains on.
//!
//! Records the plug-in entropies `uniform`, `alone`, `given_left` and `given_left_and_upper`, in bits.

#[cfg(feature = "attention")]
mod run;

use posenc_experiments::schema::Data;
use posenc_experiments::schema::protocol::{Fault, Kind, Settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::{check_photographs, is_one, preset, range};

/// The kind `pixel-entropies`.
pub const KIND: Kind = Kind {
    takes_held_out: true,
    example: include_str!("example.yaml"),
    runner: attention_runner!(PixelEntropies),
    ..Kind::of::<PixelEntropies>("pixel-entropies")
};

/// Settings of `pixel-entropies`: plug-in entropies of a pixel, alone and given its neighbors.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PixelEntropies {
    /// Rows, and columns, of pixels.
    pub side: usize,
    /// Number of gray levels.
    pub levels: usize,
    /// With `data`: photographs are reduced by this factor before they are cut.
    #[serde(default = "preset::<1, usize>", skip_serializing_if = "is_one")]
    pub reduce: usize,
    /// Images that are counted.
    pub images: usize,
}

impl Settings for PixelEntropies {
    fn check(&self) -> Result<(), Fault> {
        range("side", self.side, 2, 64)?;
        range("levels", self.levels, 2, 64)?;
        range("reduce", self.reduce, 1, 64)?;
        range("images", self.images, 1, 1_000_000)
    }

    fn check_data(&self, data: Option<&Data>) -> Result<(), Fault> {
        check_photographs(data, self.reduce)
    }
}
