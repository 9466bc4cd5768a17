//! Estimates the entropy of a pixel given its neighbors, on the images that `image-model` trains on.
//!
//! Records plug-in entropies in bits/dim:
//!
//! - `uniform`: log₂ of the number of levels.
//! - `alone`: entropy of a pixel.
//! - `given_left`: entropy of a pixel given its left neighbor.
//! - `given_left_and_upper`: entropy of a pixel given its left and its upper neighbor.

#[cfg(feature = "attention")]
mod run;

use posenc_experiments::schema::Data;
use posenc_experiments::schema::protocol::{Fault, Kind, Settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::{check_photographs, is_one, preset, range};

pub const KIND: Kind =
    Kind { takes_held_out: true, ..kind!(attention: PixelEntropies, "pixel-entropies") };

/// Settings of `pixel-entropies`, which estimates the entropy of a pixel, alone and given its neighbors.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PixelEntropies {
    /// Number of rows, and of columns, of an image in pixels.
    pub side: usize,
    /// Number of gray levels.
    pub levels: usize,
    /// With `data`: photographs are reduced by this factor before they are cropped.
    #[serde(default = "preset::<1, usize>", skip_serializing_if = "is_one")]
    pub reduce: usize,
    /// Number of images.
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
