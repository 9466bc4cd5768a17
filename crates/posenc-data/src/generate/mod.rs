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
    Screen, ScreenGrammar, ScreenNode, Widget, caption_kinds, caption_text, context_token,
    quantized, screen_vocabulary,
};
pub use translation::{Lengths, Pair, Translation};

use crate::image::Channels;
use crate::sets::manifest::Kind;
use crate::signal::Signal;

/// Image `index` of the set named `set`, `size` × `size` pixels: occluding shapes of all sizes, shaded and textured. It has edges, smooth
/// parts and a spectrum that falls like 1/f, as photographs do.
pub fn dead_leaves(seed: u64, set: &str, index: usize, size: usize, channels: Channels) -> Signal {
    let bytes = dead_leaves::rgb_bytes(seed, set, index, size);
    let name = Kind::Images.generated_name(index);
    Signal::from_bytes(name, [size; 2], 3, &bytes).converted(channels)
}

/// Clip `index` of the set named `set`, `frames` frames of `size` × `size` pixels: such shapes that drift, turn and slowly grow or shrink, the
/// nearer the faster, under a camera that pans. It has motion, occlusion and disocclusion, as films do.
pub fn moving_dead_leaves(
    seed: u64,
    set: &str,
    index: usize,
    frames: usize,
    size: usize,
    channels: Channels,
) -> Signal {
    let bytes = moving_leaves::rgb_bytes(seed, set, index, frames, size);
    let voxels: Vec<f32> = bytes.into_iter().map(|value| f32::from(value) / 255.0).collect();
    let (name, sides) = (Kind::Clips.generated_name(index), [frames, size, size]);
    Signal::from_voxels(name, sides, channels.count(), &channels.convert(voxels, 3))
}
