//! Embedded generators: signals that need no files and replace a missing data set.
//!
//! All arithmetic is addition, multiplication, division and square roots, which IEEE 754 rounds
//! exactly, and every random number comes from one ChaCha8 stream per image: the same seed gives
//! the same bytes on every machine.

mod brush;
mod dead_leaves;
pub(crate) mod draw;
mod gray_leaves;
mod moving_leaves;
mod objects;
mod scene;
mod screens;
mod shape;
mod texture;
mod translation;

pub use gray_leaves::GrayLeaves;
pub use objects::{CLASSES, Object, ObjectImage, ObjectScene};
pub use screens::{
    CONTEXT_WORDS, CaptionKind, LEAST_NODES, MAX_CAPTION_TOKENS, MAX_DEPTH, MAX_NODES, NODE_KINDS,
    Screen, ScreenGrammar, ScreenNode, Widget, caption_kinds, caption_text, caption_tuples,
    context_token, quantized, screen_vocabulary,
};
use serde::Deserialize;
pub use translation::{Lengths, Pair, Translation};

use crate::clip::Clip;
use crate::image::{Channels, Image};

/// An embedded generator, by the name it has in the manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Generator {
    /// Occluding shapes of all sizes, shaded and textured: edges, smooth parts and a spectrum that
    /// falls like 1/f, as in photographs.
    DeadLeaves,
    /// Clips of such shapes that drift, turn and slowly grow or shrink, the nearer the faster, under
    /// a camera that pans: motion, occlusion and disocclusion as in films.
    MovingDeadLeaves,
}

impl Generator {
    pub fn name(self) -> &'static str {
        match self {
            Generator::DeadLeaves => "dead-leaves",
            Generator::MovingDeadLeaves => "moving-dead-leaves",
        }
    }

    /// All settings that determine the images of a set, as one line. The version counts changes of a generator's output. It is part of the
    /// identity of every generated set, so that records of other signals are not mistaken for records of these.
    pub fn specification(self, seed: u64, set: &str, size: usize, channels: Channels) -> String {
        let (name, channels) = (self.name(), channels.count());
        format!("{name} version 1 seed {seed} set {set} size {size} channels {channels}")
    }

    pub fn signal_name(self, index: usize) -> String {
        format!("{}-{index:02}", self.name())
    }

    /// Image `index` of the set named `set`: `size` × `size` pixels. A generator of clips returns the first frame.
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
            Generator::MovingDeadLeaves => moving_leaves::rgb_bytes(seed, set, index, 1, size),
        };
        Image::from_bytes(name, size, size, 3, &bytes).converted(channels)
    }

    /// Clip `index` of the set named `set`: `frames` frames of `size` × `size` pixels. A generator of images repeats one still image.
    pub fn clip(
        self,
        seed: u64,
        set: &str,
        index: usize,
        frames: usize,
        size: usize,
        channels: Channels,
    ) -> Clip {
        let bytes = match self {
            Generator::DeadLeaves => dead_leaves::rgb_bytes(seed, set, index, size).repeat(frames),
            Generator::MovingDeadLeaves => moving_leaves::rgb_bytes(seed, set, index, frames, size),
        };
        let clip = Clip {
            name: self.signal_name(index),
            frames,
            height: size,
            width: size,
            channels: 3,
            voxels: bytes.into_iter().map(|value| f32::from(value) / 255.0).collect(),
        };
        clip.converted(channels)
    }
}
