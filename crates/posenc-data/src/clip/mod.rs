//! The video clip that experiments see: real numbers in [0, 1].

pub mod footage;
pub mod frame;
mod natural;
pub mod video;

use crate::image::{Channels, Image};

/// A clip: `frames` images of `height` rows of `width` pixels of `channels` values in [0, 1].
///
/// Value c in frame t, row y, column x is `voxels[((t * height + y) * width + x) * channels + c]`. Values are in single precision: a 128³
/// clip takes 25 MB, and 8-bit sources are about 10⁵ times coarser.
#[derive(Debug, Clone, PartialEq)]
pub struct Clip {
    pub name: String,
    pub frames: usize,
    pub height: usize,
    pub width: usize,
    /// 3 for red, green, blue; 1 for gray.
    pub channels: usize,
    pub voxels: Vec<f32>,
}

impl Clip {
    /// Frame `t` as an image named after the clip. `None` if there is no such frame.
    pub fn frame(&self, t: usize) -> Option<Image> {
        let length = self.height * self.width * self.channels;
        let values = self.voxels.get(t * length..(t + 1) * length)?;
        Some(Image {
            name: format!("{}, frame {t}", self.name),
            width: self.width,
            height: self.height,
            channels: self.channels,
            pixels: values.iter().copied().map(f64::from).collect(),
        })
    }

    pub(crate) fn converted(self, to: Channels) -> Clip {
        let voxels = to.convert(self.voxels, self.channels);
        Clip { channels: to.count(), voxels, ..self }
    }
}
