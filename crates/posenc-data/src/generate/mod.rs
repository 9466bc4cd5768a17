//! Embedded generators: signals that need no files, for where a data set is absent.
//!
//! All arithmetic is addition, multiplication, division and square roots, which IEEE 754 rounds
//! exactly, and every random number comes from one ChaCha8 stream per image: the same seed gives
//! the same bytes on every machine.

mod dead_leaves;
mod draw;
mod scene;
mod shape;
mod texture;

use serde::Deserialize;

use crate::image::Image;
use crate::manifest::Channels;

/// Counts changes to what the generators draw. It is part of every generated set's identity, so
/// that records made from other images are not taken for these.
const VERSION: u32 = 1;

/// An embedded generator, by the name it has in the manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Generator {
    /// Occluding shapes of all sizes, shaded and textured: edges, smooth parts and a spectrum that
    /// falls like 1/f, as in photographs.
    DeadLeaves,
}

impl Generator {
    /// Name in the manifest and in labels.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Generator::DeadLeaves => "dead-leaves",
        }
    }

    /// Everything that the images of a set follow from, as one line.
    #[must_use]
    pub fn specification(self, seed: u64, set: &str, size: usize, channels: Channels) -> String {
        let channels = channels.count();
        format!(
            "{} version {VERSION} seed {seed} set {set} size {size} channels {channels}",
            self.name()
        )
    }

    /// Name of image `index`.
    #[must_use]
    pub fn signal_name(self, index: usize) -> String {
        format!("{}-{index:02}", self.name())
    }

    /// Image `index` of the set named `set`: `size` × `size` pixels.
    #[must_use]
    pub fn image(
        self,
        seed: u64,
        set: &str,
        index: usize,
        size: usize,
        channels: Channels,
    ) -> Image {
        let name = self.signal_name(index);
        let bytes = match self {
            Generator::DeadLeaves => dead_leaves::rgb_bytes(seed, set, index, size),
        };
        channels.convert(Image::from_bytes(name, size, size, 3, &bytes))
    }
}
