//! Small gray crops of photographs, in a few gray levels.

use posenc_math::random::below;
use rand_chacha::ChaCha8Rng;

use crate::error::DataError;
use crate::generate::draw;
use crate::reduce::{Axis, along};
use crate::signal::Signal;

/// Photographs in gray levels, from which crops are sampled.
#[derive(Debug, Clone)]
pub struct GrayCrops {
    /// Levels, row by row, with height and width.
    photographs: Vec<(Vec<u8>, usize, usize)>,
    side: usize,
}

impl GrayCrops {
    /// Prepares crops of `side` × `side` pixels with `levels` (2 to 256) gray levels. Each photograph is converted to luminance, its sides
    /// are reduced by the factor `reduce` (means over boxes), and it is quantized to ⌊v · levels⌋.
    pub fn new(
        images: &[Signal],
        side: usize,
        levels: usize,
        reduce: usize,
    ) -> Result<Self, DataError> {
        let invalid = DataError::Invalid;
        if images.is_empty() {
            return Err(invalid("no images to crop; give at least one photograph".to_owned()));
        }
        let photographs = images.iter().map(|image| {
            let (height, width) = (image.height() / reduce.max(1), image.width() / reduce.max(1));
            if height < side || width < side || side == 0 {
                return Err(invalid(format!(
                    "{}: {} × {} pixels, reduced by {reduce}, contain no crop of {side} × {side}; give larger photographs, \
                     or lower `side` or `reduce`",
                    image.name, image.height(), image.width()
                )));
            }
            let gray = image.luminance().values;
            let columns: Vec<f64> = along(&gray, &Axis::whole(image.width(), width), 1);
            let means: Vec<f64> = along(&columns, &Axis::whole(image.height(), height), width);
            let top = levels.clamp(2, 256) - 1;
            let level = |v: &f64| ((v * (top + 1) as f64).floor().max(0.0) as usize).min(top) as u8;
            Ok((means.iter().map(level).collect(), height, width))
        });
        Ok(GrayCrops { photographs: photographs.collect::<Result<_, _>>()?, side })
    }

    /// A random crop of a random photograph, mirrored with probability ½.
    pub fn image(&self, rng: &mut ChaCha8Rng) -> Vec<u8> {
        let (levels, height, width) = &self.photographs[below(rng, self.photographs.len())];
        let top = below(rng, height - self.side + 1);
        let left = below(rng, width - self.side + 1);
        let is_mirrored = draw::chance(rng, 0.5);
        let mut crop = Vec::with_capacity(self.side * self.side);
        for row in top..top + self.side {
            let row = &levels[row * width + left..][..self.side];
            if is_mirrored {
                crop.extend(row.iter().rev());
            } else {
                crop.extend(row);
            }
        }
        crop
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ramp(height: usize, width: usize) -> Signal {
        let values = (0..height * width).map(|i| (i % width) as f64 / width as f64).collect();
        Signal { name: "ramp".into(), sides: vec![height, width], channels: 1, values }
    }

    /// Catches exchanged rows and columns, levels that are off by one, and crops that leave the image.
    #[test]
    fn crops_are_parts_of_the_photograph_or_its_mirror_image() {
        let crops = GrayCrops::new(&[ramp(16, 16)], 5, 16, 1).unwrap();
        let mut rng = posenc_math::random::stream(1, "crops");
        let (mut mirrored, mut places) = (0, std::collections::BTreeSet::new());
        for _ in 0..400 {
            let crop = crops.image(&mut rng);
            let first = &crop[..5];
            assert!(crop.chunks_exact(5).all(|row| row == first));
            let step = i32::from(first[1]) - i32::from(first[0]);
            assert!(step.abs() == 1 && i32::from(first[4]) - i32::from(first[0]) == 4 * step);
            mirrored += usize::from(step < 0);
            places.insert(first[0].min(first[4]));
        }
        assert!((150..250).contains(&mirrored), "{mirrored}");
        assert_eq!(places.len(), 12);
        // Reduced by two: 8 columns, of means of neighbors.
        let crops = GrayCrops::new(&[ramp(16, 16)], 8, 16, 2).unwrap();
        let mut crop = crops.image(&mut rng)[..8].to_vec();
        crop.sort_unstable();
        assert_eq!(crop, [0, 2, 4, 6, 8, 10, 12, 14]);
    }

    /// Catches photographs that are cropped at full resolution because they are not square.
    #[test]
    fn photographs_of_any_shape_are_reduced() {
        let crops = GrayCrops::new(&[ramp(8, 16)], 4, 16, 2).unwrap();
        let row = [0u8, 2, 4, 6, 8, 10, 12, 14];
        assert_eq!(crops.photographs, [(row.repeat(4), 4, 8)]);
        // The transposed image yields the transposed levels.
        let upright =
            Signal { values: (0..128).map(|i| (i / 8) as f64 / 16.0).collect(), ..ramp(16, 8) };
        let crops = GrayCrops::new(&[upright], 4, 16, 2).unwrap();
        assert_eq!(crops.photographs, [(row.map(|level| [level; 4]).concat(), 8, 4)]);
    }

    #[test]
    fn small_photographs_and_empty_sets_are_refused() {
        let message = GrayCrops::new(&[ramp(16, 9)], 5, 16, 2).unwrap_err().to_string();
        assert!(message.contains("ramp") && message.contains("16 × 9"), "{message}");
        let message = GrayCrops::new(&[], 5, 16, 1).unwrap_err().to_string();
        assert!(message.starts_with("no images to crop"), "{message}");
    }
}
