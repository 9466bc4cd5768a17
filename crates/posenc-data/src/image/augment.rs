//! Training augmentation of photographs with boxes, as in DETR: random flips, resizing and crops.

use image::RgbImage;
use image::imageops::{self, FilterType};
use posenc_math::lff::detr::Resizing;
use posenc_math::random::below;
use rand_chacha::ChaCha8Rng;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AnnotatedBox {
    /// Id of its category, as in the file.
    pub category: usize,
    /// Left, top, right and bottom in pixels.
    pub corners: [f64; 4],
    /// Area inside its outline in pixels, not of the box.
    pub area: f64,
    pub is_crowd: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Photograph {
    pub(crate) image: RgbImage,
    pub boxes: Vec<AnnotatedBox>,
}

impl Photograph {
    pub fn size(&self) -> [usize; 2] {
        [self.image.height() as usize, self.image.width() as usize]
    }

    /// Red, green and blue of every pixel in [0, 1], row by row.
    pub fn pixels(&self) -> Vec<f32> {
        self.image.as_raw().iter().map(|&v| f32::from(v) / 255.0).collect()
    }

    /// Resizes the photograph so that its shorter side is `side`, or less if the longer side would exceed `longest`. The triangle filter is
    /// widened for reduction.
    pub fn resized(self, side: usize, longest: usize) -> Self {
        let old = self.size();
        let size = resized_to(old, side, longest);
        if size == old {
            return self;
        }
        let [height, width] = size.map(|n| n as u32);
        let image = imageops::resize(&self.image, width, height, FilterType::Triangle);
        let factors = [1, 0].map(|axis| size[axis] as f64 / old[axis] as f64);
        let mut boxes = self.boxes;
        for own in &mut boxes {
            for (i, corner) in own.corners.iter_mut().enumerate() {
                *corner *= factors[i % 2];
            }
            own.area *= factors[0] * factors[1];
        }
        Photograph { image, boxes }
    }

    fn turned(self) -> Self {
        let width = f64::from(self.image.width());
        let mut boxes = self.boxes;
        for own in &mut boxes {
            let [left, top, right, bottom] = own.corners;
            own.corners = [width - right, top, width - left, bottom];
        }
        Photograph { image: imageops::flip_horizontal(&self.image), boxes }
    }

    /// Crops the photograph to a window. Boxes are clipped, and empty ones are dropped.
    fn cut(self, [top, left]: [usize; 2], [height, width]: [usize; 2]) -> Self {
        let [x, y, columns, rows] = [left, top, width, height].map(|n| n as u32);
        let image = imageops::crop_imm(&self.image, x, y, columns, rows).to_image();
        let (from, size) = ([left, top], [width, height]);
        let boxes = self.boxes.into_iter().map(|own| {
            let inside =
                |i: usize| (own.corners[i] - from[i % 2] as f64).clamp(0.0, size[i % 2] as f64);
            AnnotatedBox { corners: [0, 1, 2, 3].map(inside), ..own }
        });
        let is_there =
            |own: &AnnotatedBox| own.corners[2] > own.corners[0] && own.corners[3] > own.corners[1];
        Photograph { image, boxes: boxes.filter(is_there).collect() }
    }

    /// Augments the photograph as in DETR: flips it with probability ½, then either resizes it, or resizes it, crops it and resizes it
    /// again, with equal probability. Crowds are dropped.
    pub fn augmented(mut self, resizing: &Resizing, rng: &mut ChaCha8Rng) -> Self {
        self.boxes.retain(|own| !own.is_crowd);
        if below(rng, 2) == 0 {
            self = self.turned();
        }
        if below(rng, 2) == 0 {
            let side = resizing.before_window[below(rng, resizing.before_window.len())];
            self = self.resized(side, usize::MAX);
            let [least, most] = resizing.window;
            let size = self.size();
            // The limits of the window are capped at the size of the photograph.
            let window = size.map(|n| {
                let (least, most) = (least.min(n), most.min(n));
                least + below(rng, most - least + 1)
            });
            let at = [0, 1].map(|axis| below(rng, size[axis] - window[axis] + 1));
            self = self.cut(at, window);
        }
        let side = resizing.short_sides[below(rng, resizing.short_sides.len())];
        self.resized(side, resizing.longest)
    }
}

/// Size whose shorter side is `side`, or less if the longer side would exceed `longest`.
fn resized_to(size: [usize; 2], side: usize, longest: usize) -> [usize; 2] {
    let (short, long) = (size[0].min(size[1]), size[0].max(size[1]));
    let mut side = side;
    if (long as f64 / short as f64) * side as f64 > longest as f64 {
        side = ((longest as f64 * short as f64 / long as f64).round() as usize).max(1);
    }
    size.map(|n| if n == short { side } else { side * n / short })
}

#[cfg(test)]
mod tests {
    use super::*;
    use posenc_math::random::stream;

    fn photograph(size: [usize; 2], corners: &[[f64; 4]]) -> Photograph {
        let [height, width] = size;
        // Red encodes the column, green the row.
        let pixel = |i: usize| {
            let share = |at: usize, n: usize| (255 * at / (n - 1)) as u8;
            [share(i % width, width), share(i / width, height), 0]
        };
        let pixels = (0..height * width).flat_map(pixel).collect();
        let image = RgbImage::from_raw(width as u32, height as u32, pixels).unwrap();
        let one = |&corners| AnnotatedBox { category: 1, corners, area: 12.0, is_crowd: false };
        Photograph { image, boxes: corners.iter().map(one).collect() }
    }

    /// Catches sizes that differ from those that DETR's own code computes.
    #[test]
    fn sides_are_those_of_the_public_code() {
        for (size, side, longest, expected) in [
            ([480, 640], 800, 1333, [800, 1066]),
            ([640, 480], 480, 1333, [640, 480]),
            ([427, 640], 800, 1333, [800, 1199]),
            ([375, 500], 608, 1333, [608, 810]),
            ([300, 900], 800, 1333, [444, 1332]),
            ([640, 640], 512, 1333, [512, 512]),
        ] {
            assert_eq!(resized_to(size, side, longest), expected, "{size:?}");
        }
    }

    /// Catches boxes that do not follow their pixels: the corners of a box must keep their colors.
    #[test]
    fn boxes_follow_their_pixels() {
        let corners = [10.0, 20.0, 50.0, 60.0];
        let mut rng = stream(1, "augment");
        let resizing = Resizing {
            short_sides: vec![48, 96],
            longest: 200,
            before_window: vec![70],
            window: [60, 70],
            measured: 96,
        };
        let mut seen = [0; 2];
        for _ in 0..50 {
            let made = photograph([80, 100], &[corners]).augmented(&resizing, &mut rng);
            let size = made.size();
            let Some(own) = made.boxes.first() else {
                continue;
            };
            let [left, top, right, bottom] = own.corners;
            let limits = [size[1], size[0]].map(|n| n as f64);
            assert!(left >= 0.0 && top >= 0.0);
            assert!(right <= limits[0] + 1e-9 && bottom <= limits[1] + 1e-9);
            let at = |x: f64, y: f64| {
                let pixel = |v: f64, n: f64| ((v - 0.5).round().max(0.0) as u32).min(n as u32 - 1);
                made.image.get_pixel(pixel(x, limits[0]), pixel(y, limits[1])).0
            };
            let (a, b) = (at(left, top), at(right, bottom));
            // Red encodes the old column and green the old row, flipped or not. Clipped boxes are skipped.
            for (axis, old, n) in [(0, [10.0, 50.0], 99.0), (1, [20.0, 60.0], 79.0)] {
                if own.corners[axis] <= 1.0 || own.corners[axis + 2] >= limits[axis] - 1.0 {
                    continue;
                }
                seen[axis] += 1;
                let found = [a[axis].min(b[axis]), a[axis].max(b[axis])].map(f64::from);
                let expected = old.map(|v| 255.0 * (v - 0.5) / n);
                let differs = |i: usize| (found[i] - expected[i]).abs() > 8.0;
                assert!(!differs(0) && !differs(1), "axis {axis}: {found:?} {expected:?}");
            }
        }
        assert!(seen.iter().all(|&count| count > 20), "{seen:?}");
    }

    #[test]
    fn crowds_are_left_out_and_empty_windows_are_possible() {
        let mut one = photograph([40, 40], &[[1.0, 1.0, 4.0, 4.0]]);
        one.boxes.push(AnnotatedBox { is_crowd: true, ..one.boxes[0] });
        let resizing = Resizing {
            short_sides: vec![16],
            longest: 32,
            before_window: vec![40],
            window: [8, 10],
            measured: 16,
        };
        let mut rng = stream(2, "augment");
        let counts: Vec<usize> =
            (0..40).map(|_| one.clone().augmented(&resizing, &mut rng).boxes.len()).collect();
        assert!(counts.contains(&0) && counts.contains(&1) && !counts.contains(&2));
    }
}
