//! The image that experiments see: real numbers in [0, 1].

pub mod annotated;
pub mod augment;
pub mod crops;
pub mod downsampled;
mod jpeg;
pub mod picture;

use serde::Deserialize;

use crate::error::DataError;
use crate::reduce::{Axis, Sample, along};

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

/// An image: `height` rows of `width` pixels of `channels` values in [0, 1].
///
/// Value c of the pixel in row y, column x is `pixels[(y * width + x) * channels + c]`; an 8-bit
/// value v becomes v/255, a 16-bit one v/65535. (`rethinking`, Figs. 9 and 10, divides by 256
/// instead: multiply by 255/256.)
#[derive(Debug, Clone, PartialEq)]
pub struct Image {
    pub name: String,
    pub width: usize,
    pub height: usize,
    /// 3 for red, green, blue; 1 for gray.
    pub channels: usize,
    pub pixels: Vec<f64>,
}

impl Image {
    /// From 8-bit values in the order of [`Image::pixels`].
    pub(crate) fn from_bytes(
        name: String,
        width: usize,
        height: usize,
        channels: usize,
        bytes: &[u8],
    ) -> Self {
        debug_assert_eq!(bytes.len(), width * height * channels);
        let pixels = bytes.iter().map(|&value| f64::from(value) / 255.0).collect();
        Image { name, width, height, channels, pixels }
    }

    pub(crate) fn converted(self, to: Channels) -> Image {
        let pixels = to.convert(self.pixels, self.channels);
        Image { channels: to.count(), pixels, ..self }
    }

    /// The luminance Y = 0.2125 R + 0.7154 G + 0.0721 B; a gray image is returned unchanged.
    pub fn luminance(&self) -> Image {
        self.clone().converted(Channels::Gray)
    }

    /// Reduces the image to `side` × `side` pixels by averaging over boxes, exactly for integer factors. An image that is not square is
    /// distorted: crop it first to keep its proportions. Enlarging is an error: it would make a signal smoother than any real one.
    pub fn reduced(&self, side: usize) -> Result<Image, DataError> {
        let shortest = self.width.min(self.height);
        if !(1..=shortest).contains(&side) {
            return Err(DataError::Invalid(format!(
                "'{}' cannot be reduced to a side of {side}; allowed: 1 to {shortest}, its shortest side",
                self.name
            )));
        }
        let columns: Vec<f64> = along(&self.pixels, &Axis::whole(self.width, side), self.channels);
        let pixels = along(&columns, &Axis::whole(self.height, side), side * self.channels);
        Ok(Image { name: self.name.clone(), width: side, height: side, pixels, ..*self })
    }

    /// The luminance of the rows with these indices, each a signal of `width` values. Indices may
    /// repeat, as row 426 does among the ten of `rethinking`.
    pub fn rows(&self, indices: &[usize]) -> Result<Vec<Vec<f64>>, DataError> {
        self.check("row", indices, self.height)?;
        let gray = self.luminance().pixels;
        Ok(indices.iter().map(|&y| gray[y * self.width..(y + 1) * self.width].to_vec()).collect())
    }

    /// The luminance of the columns with these indices, each a signal of `height` values.
    pub fn columns(&self, indices: &[usize]) -> Result<Vec<Vec<f64>>, DataError> {
        self.check("column", indices, self.width)?;
        let gray = self.luminance().pixels;
        let column = |&x: &usize| gray[x..].iter().step_by(self.width).copied().collect();
        Ok(indices.iter().map(column).collect())
    }

    fn check(&self, what: &str, indices: &[usize], len: usize) -> Result<(), DataError> {
        match indices.iter().find(|&&index| index >= len) {
            Some(&index) => Err(DataError::Invalid(format!(
                "image '{}' has no {what} {index}: it has {len} of them, counted from 0",
                self.name
            ))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2 rows, 3 columns; the red value counts the pixels, green and blue are fixed.
    fn example() -> Image {
        let bytes: Vec<u8> = (0..6).flat_map(|pixel| [pixel, 100, 200]).collect();
        Image::from_bytes("example".to_owned(), 3, 2, 3, &bytes)
    }

    #[test]
    fn luminance_weighs_red_green_and_blue() {
        let gray = example().luminance();
        assert_eq!((gray.width, gray.height, gray.channels, gray.pixels.len()), (3, 2, 1, 6));
        let by_hand = (0.2125 * 5.0 + 0.7154 * 100.0 + 0.0721 * 200.0) / 255.0;
        assert!((gray.pixels[5] - by_hand).abs() < 1e-15, "{} against {by_hand}", gray.pixels[5]);
        // White stays white: the weights add up to one.
        let white = Image::from_bytes("white".to_owned(), 1, 1, 3, &[255; 3]);
        assert!((white.luminance().pixels[0] - 1.0).abs() < 1e-15);
        // Gray becomes color by repetition.
        let color = gray.clone().converted(Channels::Rgb).pixels;
        assert_eq!(color[2..].iter().step_by(3).copied().collect::<Vec<_>>(), gray.pixels);
    }

    #[test]
    fn halving_the_side_averages_four_pixels() {
        let pixels = (0..16).flat_map(|i| [f64::from(i), -f64::from(i)]).collect();
        let image = Image { width: 4, height: 4, channels: 2, pixels, ..example() };
        let half = image.reduced(2).unwrap();
        assert_eq!((half.width, half.height), (2, 2));
        // (0 + 1 + 4 + 5) / 4, and so on.
        assert_eq!(half.pixels, [2.5, -2.5, 4.5, -4.5, 10.5, -10.5, 12.5, -12.5]);
        assert_eq!(image.reduced(4).unwrap(), image);
        let message = image.reduced(5).unwrap_err().to_string();
        assert!(message.contains("'example'") && message.contains("1 to 4"), "{message}");
    }

    #[test]
    fn rows_and_columns_are_cut_along_the_right_axis_and_missing_ones_are_named() {
        let image = Image { channels: 1, pixels: (0..6).map(f64::from).collect(), ..example() };
        assert_eq!(
            image.rows(&[1, 0, 1]).unwrap(),
            [[3.0, 4.0, 5.0], [0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
        );
        assert_eq!(image.columns(&[2]).unwrap(), [[2.0, 5.0]]);
        let message = example().rows(&[0, 2]).unwrap_err().to_string();
        assert_eq!(message, "image 'example' has no row 2: it has 2 of them, counted from 0");
        assert!(example().columns(&[3]).unwrap_err().to_string().contains("column 3"));
    }
}
