//! The video clip that experiments see: real numbers in [0, 1].

use crate::error::DataError;
use crate::image::{Image, LUMINANCE_WEIGHTS};
use crate::reduce;

/// A clip: `frames` images of `height` rows of `width` pixels of `channels` values in [0, 1].
///
/// Value c in frame t, row y, column x is `voxels[((t * height + y) * width + x) * channels + c]`. Values are in single precision: a 128³
/// clip takes 25 MB, and 8-bit sources are about 10⁵ times coarser.
#[derive(Debug, Clone, PartialEq)]
pub struct Clip {
    /// Name of the signal, unique in its set.
    pub name: String,
    /// Number of frames.
    pub frames: usize,
    /// Number of rows.
    pub height: usize,
    /// Number of columns.
    pub width: usize,
    /// 3 for red, green, blue; 1 for gray.
    pub channels: usize,
    /// `frames * height * width * channels` values, channels fastest, then columns, rows, frames.
    pub voxels: Vec<f32>,
}

impl Clip {
    fn frame_length(&self) -> usize {
        self.height * self.width * self.channels
    }

    /// Frame `t` as an image named after the clip. `None` if there is no such frame.
    #[must_use]
    pub fn frame(&self, t: usize) -> Option<Image> {
        let length = self.frame_length();
        let values = self.voxels.get(t * length..(t + 1) * length)?;
        Some(Image {
            name: format!("{}, frame {t}", self.name),
            width: self.width,
            height: self.height,
            channels: self.channels,
            pixels: values.iter().copied().map(f64::from).collect(),
        })
    }

    /// Row `y` of all frames, stacked: an image with one row for each frame. `None` if there is no such row.
    #[must_use]
    pub fn row_over_time(&self, y: usize) -> Option<Image> {
        if y >= self.height {
            return None;
        }
        let row = self.width * self.channels;
        let rows = self.voxels.chunks_exact(self.frame_length().max(1));
        let pixels =
            rows.flat_map(|frame| &frame[y * row..(y + 1) * row]).copied().map(f64::from).collect();
        Some(Image {
            name: format!("{}, row {y}", self.name),
            width: self.width,
            height: self.frames,
            channels: self.channels,
            pixels,
        })
    }

    /// Reduces the clip to `side` frames, rows and columns by averaging over boxes, exactly for integer factors.
    ///
    /// # Errors
    /// When `side` is zero or exceeds the number of frames, rows or columns. Enlarging would make a signal smoother than any real one.
    pub fn reduced(&self, side: usize) -> Result<Clip, DataError> {
        let lengths = [self.frames, self.height, self.width];
        let voxels = reduce::to_side(&self.name, &self.voxels, &lengths, self.channels, side)?;
        let name = self.name.clone();
        Ok(Clip { name, frames: side, height: side, width: side, voxels, ..*self })
    }

    /// The luminance, as [`Image::luminance`]; a gray clip is returned unchanged.
    #[must_use]
    pub fn luminance(self) -> Clip {
        if self.channels == 1 {
            return self;
        }
        let dot = |rgb: &[f32]| {
            let sum: f64 =
                rgb.iter().zip(LUMINANCE_WEIGHTS).map(|(&value, w)| f64::from(value) * w).sum();
            sum as f32
        };
        let voxels = self.voxels.chunks_exact(self.channels).map(dot).collect();
        Clip { channels: 1, voxels, ..self }
    }

    /// Converts the clip to three channels; gray values are repeated.
    #[must_use]
    pub fn rgb(self) -> Clip {
        if self.channels == 3 {
            return self;
        }
        let voxels = self.voxels.iter().flat_map(|&value| [value; 3]).collect();
        Clip { channels: 3, voxels, ..self }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Voxels that count up.
    fn counting(frames: usize, height: usize, width: usize, channels: usize) -> Clip {
        let n = frames * height * width * channels;
        let voxels = (0..n).map(|i| i as f32 / n as f32).collect();
        Clip { name: "counting".to_owned(), frames, height, width, channels, voxels }
    }

    #[test]
    fn frames_and_rows_are_cut_along_the_right_axes() {
        let clip = counting(2, 3, 4, 1);
        let at = |i: usize| f64::from(clip.voxels[i]);
        assert_eq!(clip.frame(1).unwrap().pixels[..2], [at(12), at(13)]);
        let slice = clip.row_over_time(2).unwrap();
        assert_eq!((slice.height, slice.width), (2, 4));
        assert_eq!([slice.pixels[0], slice.pixels[7]], [at(8), at(23)]);
        assert!(clip.frame(2).is_none() && clip.row_over_time(3).is_none());
    }

    #[test]
    fn halving_the_side_averages_eight_voxels() {
        let clip = counting(4, 4, 4, 3);
        let half = clip.reduced(2).unwrap();
        assert_eq!((half.frames, half.height, half.width, half.channels), (2, 2, 2, 3));
        let at =
            |t: usize, y: usize, x: usize| f64::from(clip.voxels[((t * 4 + y) * 4 + x) * 3 + 1]);
        let mut sum = 0.0;
        for (t, y, x) in (0..8).map(|i| (i / 4, i / 2 % 2, i % 2)) {
            sum += at(t, y, x + 2);
        }
        // Column box 1, channel 1 of the first frame and row box.
        assert!((f64::from(half.voxels[4]) - sum / 8.0).abs() < 1e-7);
    }

    #[test]
    fn a_side_that_would_enlarge_is_refused() {
        for side in [0, 4] {
            let message = counting(4, 3, 5, 1).reduced(side).unwrap_err().to_string();
            assert!(message.contains("'counting'") && message.contains("1 to 3"), "{message}");
        }
    }

    proptest! {
        // Catches a box that leaves voxels out along one of the axes.
        #[test]
        fn reduction_keeps_the_mean(
            (frames, height, width) in (1usize..12, 1usize..12, 1usize..12),
            side in 1usize..12,
        ) {
            let clip = counting(frames, height, width, 3);
            let side = side.min(frames).min(height).min(width);
            let reduced = clip.reduced(side).unwrap();
            let mean = |v: &[f32]| v.iter().copied().map(f64::from).sum::<f64>() / v.len() as f64;
            prop_assert!((mean(&reduced.voxels) - mean(&clip.voxels)).abs() < 1e-6);
        }
    }
}
