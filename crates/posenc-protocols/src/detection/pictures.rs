//! Pictures of scenes with true and detected boxes.

use posenc_attention::detr::ImageInput;
use posenc_experiments::record::Picture;
use posenc_math::detection::boxes::Corners;
use posenc_math::detection::precision::Image;

const SCENES: usize = 6;
/// Pixels of the picture per pixel of a scene.
const GAIN: usize = 2;
/// White columns between scenes.
const GAP: usize = 4;
/// Detections with a lower score are not drawn.
const LEAST_SCORE: f64 = 0.5;

/// The name under which records keep pictures of scenes.
const SIGNAL: &str = "scenes";

/// The first scenes with their true boxes in white, and with the detections of a score of at least ½ in the color of their class.
pub fn pictures(images: &[ImageInput], found: &[Image]) -> Vec<Picture> {
    let images = &images[..SCENES.min(images.len())];
    let side = images.first().map_or(1, |image| image.size[0]) * GAIN;
    let width = (images.len() * (side + GAP)).saturating_sub(GAP).max(1);
    let set = |pixels: &mut [u8], scene: usize, [x, y]: [usize; 2], color: [u8; 3]| {
        pixels[3 * (y * width + scene * (side + GAP) + x)..][..3].copy_from_slice(&color);
    };
    let mut truth = vec![255; 3 * width * side];
    for (i, image) in images.iter().enumerate() {
        for [x, y] in (0..side * side).map(|at| [at % side, at / side]) {
            let from = 3 * (y / GAIN * image.size[1] + x / GAIN);
            set(&mut truth, i, [x, y], [0, 1, 2].map(|c| byte(image.pixels[from + c])));
        }
    }
    // Draws the outline of a box given in pixels of the scene.
    let outline = |pixels: &mut [u8], scene: usize, corners: Corners, color: [u8; 3]| {
        let last = (side - 1) as f64;
        // NaN becomes 0.
        let place = corners.map(|v| (v * GAIN as f64).clamp(0.0, last).round() as usize);
        let [left, top, right, bottom] = place;
        let rows = (left..=right).flat_map(|x| [[x, top], [x, bottom]]);
        let columns = (top..=bottom).flat_map(|y| [[left, y], [right, y]]);
        rows.chain(columns).for_each(|at| set(pixels, scene, at, color));
    };
    let mut said = truth.clone();
    for (i, scene) in found.iter().take(images.len()).enumerate() {
        for thing in &scene.truths {
            outline(&mut truth, i, thing.corners, [255; 3]);
        }
        for detection in scene.detections.iter().filter(|d| d.score >= LEAST_SCORE) {
            let color = [0, 1, 2].map(|c| if c == detection.category { 255 } else { 90 });
            outline(&mut said, i, detection.corners, color);
        }
    }
    let picture = |(name, pixels)| Picture::new(name, SIGNAL, (width, side, 3), pixels);
    [("true-boxes", truth), ("boxes", said)].map(picture).into()
}

fn byte(value: f32) -> u8 {
    (value.clamp(0.0, 1.0) * 255.0).round() as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use posenc_math::detection::precision::{Detection, Truth};

    /// Catches boxes that are drawn in another scene, with rows and columns swapped, or outside the picture.
    #[test]
    fn boxes_are_drawn_at_their_coordinates() {
        let image = ImageInput { size: [8, 8], pixels: vec![0.0; 192], targets: Vec::new() };
        let corners = [2.0, 4.0, 6.0, 7.0];
        let truths = vec![Truth { category: 1, corners, area: 12.0, crowd: false }];
        let said = [(corners, 0.9), ([-5.0, f64::NAN, 90.0, 3.0], 0.8), ([0.0; 4], 0.1)];
        let said = said.map(|(corners, score)| Detection { category: 1, corners, score });
        let scene = Image { truths, detections: said.into() };
        let [truth, said] = &pictures(&[image.clone(), image], &[Image::default(), scene])[..]
        else {
            panic!()
        };
        assert_eq!((truth.width, truth.height), (2 * 16 + GAP, 16));
        let at = |picture: &Picture, x: usize, y: usize| {
            let start = 3 * (y * picture.width + 16 + GAP + x);
            [0, 1, 2].map(|c| picture.pixels[start + c])
        };
        let corner = [at(truth, 4, 8), at(truth, 12, 14), at(truth, 6, 10), at(said, 4, 8)];
        assert_eq!(corner, [[255; 3], [255; 3], [0; 3], [90, 255, 90]]);
        // The first scene has no box.
        assert!(truth.pixels[..3 * 16].iter().all(|&v| v == 0));
    }
}
