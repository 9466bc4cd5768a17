//! The image that experiments see: real numbers in [0, 1].

use crate::error::DataError;
use crate::reduce;

/// Weights of red, green and blue in the luminance: ITU-R BT.709 rounded as scikit-image does,
/// which `rethinking`'s notebooks use. They add up to one.
pub const LUMINANCE_WEIGHTS: [f64; 3] = [0.2125, 0.7154, 0.0721];

/// An image: `height` rows of `width` pixels of `channels` values in [0, 1].
///
/// Value c of the pixel in row y, column x is `pixels[(y * width + x) * channels + c]`; an 8-bit
/// value v becomes v/255, a 16-bit one v/65535. (`rethinking`, Figs. 9 and 10, divides by 256
/// instead: multiply by 255/256.)
#[derive(Debug, Clone, PartialEq)]
pub struct Image {
    /// Name of the signal, unique in its set.
    pub name: String,
    /// Number of columns.
    pub width: usize,
    /// Number of rows.
    pub height: usize,
    /// 3 for red, green, blue; 1 for gray.
    pub channels: usize,
    /// `height * width * channels` values, channels fastest, then columns, then rows.
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

    /// The luminance Y = 0.2125 R + 0.7154 G + 0.0721 B as an image of one channel; a gray image is
    /// returned unchanged.
    #[must_use]
    pub fn luminance(&self) -> Image {
        if self.channels == 1 {
            return self.clone();
        }
        let dot = |rgb: &[f64]| {
            rgb.iter().zip(LUMINANCE_WEIGHTS).map(|(value, weight)| value * weight).sum()
        };
        let pixels = self.pixels.chunks_exact(self.channels).map(dot).collect();
        Image { name: self.name.clone(), channels: 1, pixels, ..*self }
    }

    /// Converts the image to three channels; gray values are repeated.
    #[must_use]
    pub fn rgb(&self) -> Image {
        if self.channels == 3 {
            return self.clone();
        }
        let pixels = self.pixels.iter().flat_map(|&value| [value; 3]).collect();
        Image { name: self.name.clone(), channels: 3, pixels, ..*self }
    }

    /// Reduces the image to `side` × `side` pixels by averaging over boxes, exactly for integer factors. An image that is not square is
    /// distorted: crop it first to keep its proportions.
    ///
    /// # Errors
    /// When `side` is zero or exceeds the number of rows or columns. Enlarging would make a signal smoother than any real one.
    pub fn reduced(&self, side: usize) -> Result<Image, DataError> {
        let lengths = [self.height, self.width];
        let pixels = reduce::to_side(&self.name, &self.pixels, &lengths, self.channels, side)?;
        Ok(Image { name: self.name.clone(), width: side, height: side, pixels, ..*self })
    }

    /// The luminance of the rows with these indices, each a signal of `width` values. Indices may
    /// repeat, as row 426 does among the ten of `rethinking`.
    ///
    /// # Errors
    /// When an index is not below `height`.
    pub fn rows(&self, indices: &[usize]) -> Result<Vec<Vec<f64>>, DataError> {
        self.inside("row", indices, self.height)?;
        let gray = self.luminance().pixels;
        Ok(indices.iter().map(|&y| gray[y * self.width..(y + 1) * self.width].to_vec()).collect())
    }

    /// The luminance of the columns with these indices, each a signal of `height` values.
    ///
    /// # Errors
    /// When an index is not below `width`.
    pub fn columns(&self, indices: &[usize]) -> Result<Vec<Vec<f64>>, DataError> {
        self.inside("column", indices, self.width)?;
        let gray = self.luminance().pixels;
        Ok(indices
            .iter()
            .map(|&x| gray[x..].iter().step_by(self.width).copied().collect())
            .collect())
    }

    fn inside(&self, what: &'static str, indices: &[usize], len: usize) -> Result<(), DataError> {
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
    }

    #[test]
    fn gray_becomes_rgb_by_repetition() {
        let gray = example().luminance();
        let blue: Vec<f64> = gray.rgb().pixels[2..].iter().step_by(3).copied().collect();
        assert_eq!(blue, gray.pixels);
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
    fn rows_and_columns_are_cut_along_the_right_axis() {
        let image = Image { channels: 1, pixels: (0..6).map(f64::from).collect(), ..example() };
        assert_eq!(
            image.rows(&[1, 0, 1]).unwrap(),
            [[3.0, 4.0, 5.0], [0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
        );
        assert_eq!(image.columns(&[2]).unwrap(), [[2.0, 5.0]]);
    }

    #[test]
    fn a_row_outside_the_image_is_an_error_that_names_it() {
        let message = example().rows(&[0, 2]).unwrap_err().to_string();
        assert_eq!(message, "image 'example' has no row 2: it has 2 of them, counted from 0");
        assert!(example().columns(&[3]).unwrap_err().to_string().contains("column 3"));
    }
}
