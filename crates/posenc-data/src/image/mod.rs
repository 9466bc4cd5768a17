//! Pictures and sets of them.

pub mod annotated;
pub mod augment;
pub mod crops;
pub mod downsampled;
mod jpeg;
pub mod picture;

use serde::Deserialize;

use crate::reduce::Sample;

/// Weights of red, green and blue in the luminance: ITU-R BT.709 rounded as scikit-image does,
/// which `rethinking`'s notebooks use. They add up to one.
const LUMINANCE_WEIGHTS: [f64; 3] = [0.2125, 0.7154, 0.0721];

/// Maximum side of an image file in pixels.
pub(crate) const MAX_SIDE: u32 = 32_768;

/// Channels of a data set's signals; loaded signals are converted to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Channels {
    Rgb,
    /// One channel: gray as stored, or the luminance of a color image.
    Gray,
}

impl Channels {
    pub fn count(self) -> usize {
        match self {
            Channels::Rgb => 3,
            Channels::Gray => 1,
        }
    }

    /// Converts values whose channels follow each other; gray values are repeated.
    pub(crate) fn convert<T: Sample>(self, values: Vec<T>, channels: usize) -> Vec<T> {
        match (self, channels) {
            (Channels::Rgb, 3) | (Channels::Gray, 1) => values,
            (Channels::Rgb, _) => values.iter().flat_map(|&value| [value; 3]).collect(),
            (Channels::Gray, _) => values.chunks_exact(channels).map(luminance).collect(),
        }
    }
}

fn luminance<T: Sample>(rgb: &[T]) -> T {
    T::from_mean(rgb.iter().zip(LUMINANCE_WEIGHTS).map(|(&v, weight)| v.into() * weight).sum())
}
