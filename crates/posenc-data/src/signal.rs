//! The image or clip that experiments see: real numbers in [0, 1].

use crate::error::DataError;
use crate::image::Channels;
use crate::reduce::{Axis, along};

/// An image or a clip: `channels` values at every node of a grid.
///
/// Index i on an axis of length n has position i/n. In memory, channels vary fastest, then the last axis: value c of an image in row y,
/// column x is `values[(y * width + x) * channels + c]`. An 8-bit value v becomes v/255, a 16-bit one v/65535. (`rethinking`, Figs. 9 and
/// 10, divides by 256 instead: multiply by 255/256.) Values of clips have single precision: 8-bit sources are about 10⁵ times coarser.
#[derive(Debug, Clone, PartialEq)]
pub struct Signal {
    pub name: String,
    /// Rows and columns, preceded by frames for a clip.
    pub sides: Vec<usize>,
    /// 3 for red, green, blue; 1 for gray.
    pub channels: usize,
    pub values: Vec<f64>,
}

impl Signal {
    /// A picture from 8-bit values.
    pub(crate) fn from_bytes(
        name: String,
        sides: [usize; 2],
        channels: usize,
        bytes: &[u8],
    ) -> Self {
        debug_assert_eq!(bytes.len(), sides[0] * sides[1] * channels);
        let values = bytes.iter().map(|&value| f64::from(value) / 255.0).collect();
        Signal { name, sides: sides.into(), channels, values }
    }

    /// A clip from values in single precision.
    pub(crate) fn from_voxels(
        name: String,
        sides: [usize; 3],
        channels: usize,
        voxels: &[f32],
    ) -> Self {
        let values = voxels.iter().copied().map(f64::from).collect();
        Signal { name, sides: sides.into(), channels, values }
    }

    /// Number of columns.
    pub fn width(&self) -> usize {
        self.sides.last().copied().unwrap_or_default()
    }

    /// Number of rows.
    pub fn height(&self) -> usize {
        self.sides.iter().nth_back(1).copied().unwrap_or_default()
    }

    pub fn points(&self) -> usize {
        self.sides.iter().product()
    }

    /// Value of a channel at a position, given by its index on the grid.
    pub fn at(&self, point: usize, channel: usize) -> f64 {
        self.values[point * self.channels + channel]
    }

    pub fn scaled(mut self, scale: f64) -> Self {
        if scale != 1.0 {
            self.values.iter_mut().for_each(|v| *v *= scale);
        }
        self
    }

    pub fn means(&self, points: &[u32]) -> Vec<f64> {
        let sum = |channel| points.iter().map(|&p| self.at(p as usize, channel)).sum::<f64>();
        (0..self.channels).map(|channel| sum(channel) / points.len() as f64).collect()
    }

    /// Subtracts from each channel its mean over the positions `train`.
    pub fn centered(mut self, train: &[u32]) -> Self {
        let means = self.means(train);
        for values in self.values.chunks_mut(self.channels) {
            values.iter_mut().zip(&means).for_each(|(value, mean)| *value -= mean);
        }
        self
    }

    /// Averages over boxes, so that every axis has `side` positions. The sum over a box is divided once, which rounds differently from
    /// [`Signal::resized`]. Existing records depend on this rounding.
    pub fn reduced(self, side: usize) -> Result<Self, DataError> {
        if self.sides.iter().all(|&n| n == side) {
            return Ok(self);
        }
        for &n in &self.sides {
            if n < side || n % side != 0 {
                return Err(DataError::Invalid(format!(
                    "`side: {side}` does not divide {n}, a side of {}; allowed: divisors of it",
                    self.name
                )));
            }
        }
        let axes = self.sides.len();
        let factors: Vec<usize> = self.sides.iter().map(|n| n / side).collect();
        let count = factors.iter().product::<usize>() as f64;
        let mut sums = vec![0.0f64; side.pow(axes as u32) * self.channels];
        for point in 0..self.points() {
            let (mut rest, mut stride, mut target) = (point, 1, 0);
            for axis in (0..axes).rev() {
                target += (rest % self.sides[axis]) / factors[axis] * stride;
                rest /= self.sides[axis];
                stride *= side;
            }
            for channel in 0..self.channels {
                sums[target * self.channels + channel] += self.at(point, channel);
            }
        }
        let values = sums.into_iter().map(|sum| sum / count).collect();
        Ok(Signal { sides: vec![side; axes], values, ..self })
    }

    pub(crate) fn converted(self, to: Channels) -> Signal {
        let values = to.convert(self.values, self.channels);
        Signal { channels: to.count(), values, ..self }
    }

    /// The luminance Y = 0.2125 R + 0.7154 G + 0.0721 B; a gray image is returned unchanged.
    pub fn luminance(&self) -> Signal {
        self.clone().converted(Channels::Gray)
    }

    /// Reduces an image to `side` × `side` pixels by averaging over boxes, exactly for integer factors. An image that is not square is
    /// distorted: crop it first to keep its proportions. Enlarging is an error: it would make a signal smoother than any real one.
    pub fn resized(&self, side: usize) -> Result<Signal, DataError> {
        let shortest = self.width().min(self.height());
        if !(1..=shortest).contains(&side) {
            return Err(DataError::Invalid(format!(
                "'{}' cannot be reduced to a side of {side}; allowed: 1 to {shortest}, its shortest side",
                self.name
            )));
        }
        let columns: Vec<f64> =
            along(&self.values, &Axis::whole(self.width(), side), self.channels);
        let values = along(&columns, &Axis::whole(self.height(), side), side * self.channels);
        Ok(Signal { name: self.name.clone(), sides: vec![side; 2], values, ..*self })
    }

    /// The luminance of the rows of an image with these indices, each a signal of `width` values. Indices may
    /// repeat, as row 426 does among the ten of `rethinking`.
    pub fn rows(&self, indices: &[usize]) -> Result<Vec<Vec<f64>>, DataError> {
        self.check("row", indices, self.height())?;
        let gray = self.luminance().values;
        Ok(indices.iter().map(|&y| gray[y * self.width()..][..self.width()].to_vec()).collect())
    }

    /// The luminance of the columns with these indices, each a signal of `height` values.
    pub fn columns(&self, indices: &[usize]) -> Result<Vec<Vec<f64>>, DataError> {
        self.check("column", indices, self.width())?;
        let gray = self.luminance().values;
        let column = |&x: &usize| gray[x..].iter().step_by(self.width()).copied().collect();
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
    fn example() -> Signal {
        let bytes: Vec<u8> = (0..6).flat_map(|pixel| [pixel, 100, 200]).collect();
        Signal::from_bytes("example".to_owned(), [2, 3], 3, &bytes)
    }

    #[test]
    fn luminance_weighs_red_green_and_blue() {
        let gray = example().luminance();
        assert_eq!((&gray.sides[..], gray.channels, gray.values.len()), (&[2, 3][..], 1, 6));
        let by_hand = (0.2125 * 5.0 + 0.7154 * 100.0 + 0.0721 * 200.0) / 255.0;
        assert!((gray.values[5] - by_hand).abs() < 1e-15, "{} against {by_hand}", gray.values[5]);
        // White stays white: the weights add up to one.
        let white = Signal::from_bytes("white".to_owned(), [1, 1], 3, &[255; 3]);
        assert!((white.luminance().values[0] - 1.0).abs() < 1e-15);
        // Gray becomes color by repetition.
        let color = gray.clone().converted(Channels::Rgb).values;
        assert_eq!(color[2..].iter().step_by(3).copied().collect::<Vec<_>>(), gray.values);
    }

    #[test]
    fn halving_the_side_averages_four_pixels() {
        let values = (0..16).flat_map(|i| [f64::from(i), -f64::from(i)]).collect();
        let image = Signal { sides: vec![4, 4], channels: 2, values, ..example() };
        let half = image.resized(2).unwrap();
        assert_eq!(half.sides, [2, 2]);
        // (0 + 1 + 4 + 5) / 4, and so on.
        assert_eq!(half.values, [2.5, -2.5, 4.5, -4.5, 10.5, -10.5, 12.5, -12.5]);
        assert_eq!(image.resized(4).unwrap(), image);
        let message = image.resized(5).unwrap_err().to_string();
        assert!(message.contains("'example'") && message.contains("1 to 4"), "{message}");
    }

    #[test]
    fn rows_and_columns_are_cut_along_the_right_axis_and_missing_ones_are_named() {
        let image = Signal { channels: 1, values: (0..6).map(f64::from).collect(), ..example() };
        assert_eq!(
            image.rows(&[1, 0, 1]).unwrap(),
            [[3.0, 4.0, 5.0], [0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
        );
        assert_eq!(image.columns(&[2]).unwrap(), [[2.0, 5.0]]);
        let message = example().rows(&[0, 2]).unwrap_err().to_string();
        assert_eq!(message, "image 'example' has no row 2: it has 2 of them, counted from 0");
        assert!(example().columns(&[3]).unwrap_err().to_string().contains("column 3"));
    }

    fn ramp(sides: &[usize], channels: usize) -> Signal {
        let count = sides.iter().product::<usize>() * channels;
        let values = (0..count).map(|i| i as f64).collect();
        Signal { name: "ramp".into(), sides: sides.into(), channels, values }
    }

    /// Catches boxes that mix rows or channels.
    #[test]
    fn boxes_are_averaged_along_every_axis() {
        let half = ramp(&[4, 4], 1).reduced(2).unwrap();
        // The first box holds 0, 1, 4, 5.
        assert_eq!(half.values, [2.5, 4.5, 10.5, 12.5]);
        let channels = ramp(&[2, 2], 3).reduced(1).unwrap();
        assert_eq!(channels.values, [4.5, 5.5, 6.5]);
        let cube = ramp(&[4, 2, 2], 1).reduced(2).unwrap();
        assert_eq!(cube.sides, [2, 2, 2]);
        assert_eq!(cube.values, [2.0, 3.0, 4.0, 5.0, 10.0, 11.0, 12.0, 13.0]);
        assert_eq!(ramp(&[4, 4], 2).reduced(4).unwrap(), ramp(&[4, 4], 2));
    }

    /// Catches means over test positions or over other channels.
    #[test]
    fn training_positions_of_every_channel_have_mean_zero() {
        let centered = ramp(&[2, 2], 2).centered(&[0, 3]);
        assert_eq!(centered.values, [-3.0, -3.0, -1.0, -1.0, 1.0, 1.0, 3.0, 3.0]);
    }

    /// Catches a side that would mix boxes of different sizes.
    #[test]
    fn sides_that_do_not_divide_are_refused() {
        for (sides, side) in [([6, 6], 4), ([4, 6], 4), ([4, 4], 8)] {
            let error = ramp(&sides, 1).reduced(side).unwrap_err().to_string();
            assert!(error.contains("does not divide"), "{error}");
        }
    }
}
