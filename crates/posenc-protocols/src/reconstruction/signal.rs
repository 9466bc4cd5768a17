//! Images and clips as functions on a grid of positions.

use anyhow::{Context as _, Result, ensure};
use posenc_data::{Clip, Image};

use posenc_harness::protocol::Context;
use posenc_harness::unit::Unit;

/// An image or a clip: `channels` values at every node of a grid.
///
/// The axes are rows and columns, preceded by frames for a clip. Index i on an axis of length n has position i/n. In memory, channels
/// vary fastest, then the last axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Signal {
    /// Name in records.
    pub name: String,
    /// Length of every axis.
    pub sides: Vec<usize>,
    /// Values per position.
    pub channels: usize,
    /// In [0, 1], channels fastest.
    pub values: Vec<f64>,
}

impl Signal {
    /// An image of a data set or of a user.
    pub fn from_image(image: &Image) -> Self {
        Signal {
            name: image.name.clone(),
            sides: vec![image.height, image.width],
            channels: image.channels,
            values: image.pixels.clone(),
        }
    }

    /// A clip of a data set or of a user.
    pub fn from_clip(clip: &Clip) -> Self {
        Signal {
            name: clip.name.clone(),
            sides: vec![clip.frames, clip.height, clip.width],
            channels: clip.channels,
            values: clip.voxels.iter().map(|&v| f64::from(v)).collect(),
        }
    }

    /// The signal of a unit, reduced to `side` if given.
    pub fn of_unit(context: &Context<'_>, unit: &Unit, side: Option<usize>) -> Result<Self> {
        let data = context.job.group.data.as_ref().context("this protocol needs `data`")?;
        let missing = || format!("data set `{}` has no signal {}", data.set, unit.signal);
        let signal = if context.data.is_clips(&data.set)? {
            let clips = context.data.load_clips(&data.set)?;
            Signal::from_clip(clips.signals.get(unit.signal_index).with_context(missing)?)
        } else {
            let images = context.data.load(&data.set)?;
            Signal::from_image(images.signals.get(unit.signal_index).with_context(missing)?)
        };
        match side {
            Some(side) => signal.reduced(side),
            None => Ok(signal),
        }
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
    /// `Image::reduced` and `Clip::reduced`. Existing records depend on this rounding.
    pub fn reduced(self, side: usize) -> Result<Self> {
        if self.sides.iter().all(|&n| n == side) {
            return Ok(self);
        }
        for &n in &self.sides {
            ensure!(
                n >= side && n % side == 0,
                "`side: {side}` does not divide {}, a side of {}; allowed: divisors of it",
                n,
                self.name
            );
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
}

#[cfg(test)]
impl Signal {
    /// The signal whose i-th number is `value(i)`.
    pub fn filled(sides: &[usize], channels: usize, value: impl Fn(usize) -> f64) -> Self {
        let count = sides.iter().product::<usize>() * channels;
        let values = (0..count).map(value).collect();
        Signal { name: "test".into(), sides: sides.to_vec(), channels, values }
    }

    /// Waves with a period of `periods`⁻¹ sides along the sum of the axes.
    pub fn waves(sides: &[usize], channels: usize, periods: f64) -> Self {
        Signal::filled(sides, channels, |i| {
            let mut rest = i / channels;
            let sum: f64 = sides.iter().rev().fold(0.0, |sum, &n| {
                let place = rest % n;
                rest /= n;
                sum + place as f64 / n as f64
            });
            let phase = std::f64::consts::TAU * periods * sum + (i % channels) as f64;
            0.5 + 0.4 * phase.sin()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ramp(sides: &[usize], channels: usize) -> Signal {
        Signal::filled(sides, channels, |i| i as f64)
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
