//! Scenes of one or two colored shapes on a gray background, for detectors.
//!
//! A shape's color determines its class, so any patch shows the class of its shape. A model has to learn where objects are.

use posenc_math::random::below;
use rand_chacha::ChaCha8Rng;

use super::draw;

/// Classes: red rectangles, green ellipses, blue triangles.
pub const CLASSES: usize = 3;

/// Maximum overlap of two shapes (intersection over union of their boxes).
const MAX_OVERLAP: f32 = 0.15;
/// Range of a shape's sides as fractions of the scene's.
const SIDES: [f32; 2] = [0.2, 0.55];
/// Standard deviation of the noise of a pixel.
const NOISE: f32 = 0.04;
/// Fraction of a shape's box that must be visible for it to count as an object.
const LEAST_LEFT: f32 = 0.3;

#[derive(Debug, Clone, Copy, PartialEq)]
struct Shape {
    class: usize,
    /// Left, top, right, bottom as fractions of the scene.
    corners: [f32; 4],
    color: [f32; 3],
}

/// A scene, which can be painted at any size.
#[derive(Debug, Clone, PartialEq)]
pub struct ObjectScene {
    shapes: Vec<Shape>,
    gray: f32,
    /// Change of gray from left to right and from top to bottom.
    gradient: [f32; 2],
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Object {
    pub class: usize,
    /// Left, top, right, bottom as fractions of the image's width and height.
    pub corners: [f64; 4],
}

#[derive(Debug, Clone, PartialEq)]
pub struct ObjectImage {
    pub height: usize,
    pub width: usize,
    /// RGB values of all pixels, row by row, approximately from 0 to 1.
    pub pixels: Vec<f32>,
    pub objects: Vec<Object>,
}

fn area(c: [f32; 4]) -> f32 {
    (c[2] - c[0]).max(0.0) * (c[3] - c[1]).max(0.0)
}

fn intersection(a: [f32; 4], b: [f32; 4]) -> [f32; 4] {
    [a[0].max(b[0]), a[1].max(b[1]), a[2].min(b[2]), a[3].min(b[3])]
}

impl ObjectScene {
    pub fn draw(rng: &mut ChaCha8Rng) -> Self {
        let gray = draw::between(rng, 0.2, 0.8);
        let gradient = [0, 1].map(|_| draw::between(rng, -0.2, 0.2));
        let count = 1 + below(rng, 2);
        let mut shapes: Vec<Shape> = Vec::with_capacity(count);
        while shapes.len() < count {
            let class = below(rng, CLASSES);
            let [width, height] = [0, 1].map(|_| draw::between(rng, SIDES[0], SIDES[1]));
            let left = draw::between(rng, 0.0, 1.0 - width);
            let top = draw::between(rng, 0.0, 1.0 - height);
            let corners = [left, top, left + width, top + height];
            let color = [0, 1, 2].map(|channel| {
                if channel == class {
                    draw::between(rng, 0.75, 1.0)
                } else {
                    draw::between(rng, 0.0, 0.35)
                }
            });
            let is_apart = |other: &Shape| {
                let shared = area(intersection(corners, other.corners));
                shared <= MAX_OVERLAP * (area(corners) + area(other.corners) - shared)
            };
            if shapes.iter().all(is_apart) {
                shapes.push(Shape { class, corners, color });
            }
        }
        ObjectScene { shapes, gray, gradient }
    }

    /// Paints the whole scene with `side` × `side` pixels; noise comes from `rng`.
    pub fn whole(&self, side: usize, rng: &mut ChaCha8Rng) -> ObjectImage {
        self.paint([0.0, 0.0, 1.0, 1.0], [side, side], rng)
    }

    /// Paints a window of the scene (left, top, right, bottom; 0 to 1) with `height` × `width` pixels.
    fn paint(
        &self,
        window: [f32; 4],
        [height, width]: [usize; 2],
        rng: &mut ChaCha8Rng,
    ) -> ObjectImage {
        let [left, top, right, bottom] = window;
        let mut pixels = Vec::with_capacity(3 * height * width);
        for row in 0..height {
            let y = top + (row as f32 + 0.5) / height as f32 * (bottom - top);
            for column in 0..width {
                let x = left + (column as f32 + 0.5) / width as f32 * (right - left);
                let gray = self.gray + self.gradient[0] * (x - 0.5) + self.gradient[1] * (y - 0.5);
                let shape = self.shapes.iter().rev().find(|shape| shape.covers(x, y));
                let color = shape.map_or([gray; 3], |shape| shape.color);
                pixels.extend(color.map(|value| value + NOISE * draw::noise(rng)));
            }
        }
        let objects = self.shapes.iter().filter_map(|shape| {
            let seen = intersection(shape.corners, window);
            if area(seen) <= LEAST_LEFT * area(shape.corners) {
                return None;
            }
            let corners = [0, 1, 2, 3].map(|i| {
                let (low, high) = (window[i % 2], window[i % 2 + 2]);
                f64::from((seen[i] - low) / (high - low))
            });
            Some(Object { class: shape.class, corners })
        });
        ObjectImage { height, width, objects: objects.collect(), pixels }
    }

    /// A training image: a new scene or, with probability ½, a window of it whose sides are at least half the scene's. Height and width are
    /// sampled from `sides`. Scenes whose window has no object are resampled.
    pub fn training_image(sides: &[usize], rng: &mut ChaCha8Rng) -> ObjectImage {
        loop {
            let scene = ObjectScene::draw(rng);
            let mut window = [0.0, 0.0, 1.0, 1.0];
            if draw::chance(rng, 0.5) {
                for axis in 0..2 {
                    let size = draw::between(rng, 0.5, 1.0);
                    let low = draw::between(rng, 0.0, 1.0 - size);
                    (window[axis], window[axis + 2]) = (low, low + size);
                }
            }
            let size = [0, 1].map(|_| sides[below(rng, sides.len())]);
            let image = scene.paint(window, size, rng);
            if !image.objects.is_empty() {
                return image;
            }
        }
    }
}

impl Shape {
    /// Whether it covers a point of the scene.
    fn covers(&self, x: f32, y: f32) -> bool {
        let [left, top, right, bottom] = self.corners;
        let (u, v) = ((x - left) / (right - left), (y - top) / (bottom - top));
        if !(0.0..1.0).contains(&u) || !(0.0..1.0).contains(&v) {
            return false;
        }
        match self.class {
            0 => true,
            1 => (2.0 * u - 1.0) * (2.0 * u - 1.0) + (2.0 * v - 1.0) * (2.0 * v - 1.0) <= 1.0,
            // The tip is at the top.
            _ => (2.0 * u - 1.0).abs() <= v,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use posenc_math::random::stream;

    /// The smallest box around the pixels in which a class's channel stands out.
    fn painted(image: &ObjectImage, class: usize) -> Option<[f64; 4]> {
        let mut found: Option<[usize; 4]> = None;
        for row in 0..image.height {
            for column in 0..image.width {
                let pixel = &image.pixels[3 * (row * image.width + column)..][..3];
                let others = (0..3).filter(|&c| c != class).map(|c| pixel[c]).fold(0.0, f32::max);
                if pixel[class] > others + 0.25 {
                    let f = found.get_or_insert([column, row, column + 1, row + 1]);
                    *f = [f[0].min(column), f[1].min(row), f[2].max(column + 1), f[3].max(row + 1)];
                }
            }
        }
        let (w, h) = (image.width as f64, image.height as f64);
        found.map(|[l, t, r, b]| [l as f64 / w, t as f64 / h, r as f64 / w, b as f64 / h])
    }

    /// Catches boxes that do not surround the painted shapes, in whole scenes and in windows.
    #[test]
    fn boxes_surround_their_shapes() {
        let mut rng = stream(1, "scenes");
        let (mut checked, mut cut) = (0, 0);
        for i in 0..400 {
            let scene = ObjectScene::draw(&mut rng);
            // Several shapes may hide each other, so pixels do not determine the boxes.
            if scene.shapes.len() > 1 {
                continue;
            }
            let window = if i % 2 == 0 { [0.0, 0.0, 1.0, 1.0] } else { [0.1, 0.3, 0.8, 0.9] };
            let image = scene.paint(window, [48, 64], &mut rng);
            for object in &image.objects {
                cut += usize::from(is_cut(object));
                // The visible pixels of a clipped ellipse or triangle have a smaller box.
                if object.class > 0 && is_cut(object) || object.class == 2 {
                    continue;
                }
                let found = painted(&image, object.class).unwrap();
                for (side, (own, seen)) in object.corners.iter().zip(found).enumerate() {
                    let slack = 2.5 / [64.0, 48.0][side % 2];
                    assert!((own - seen).abs() <= slack, "{object:?} {found:?}");
                    checked += 1;
                }
            }
        }
        assert!(checked > 100 && cut > 10, "{checked} {cut}");
    }

    fn is_cut(object: &Object) -> bool {
        object.corners.iter().any(|&c| c <= 0.0 || c >= 1.0)
    }
}
