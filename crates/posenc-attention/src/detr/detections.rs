//! Converts predictions to detections.

use burn::module::Module as _;
use burn::tensor::{Device, activation};
use posenc_math::detection::boxes::{area, corners};
use posenc_math::detection::precision::{Detection, Image, Truth};

use super::{Detr, ImageInput};
use crate::parameters::numbers;

const CHUNK: usize = 32;

/// Corners in pixels of a box on an image of `[rows, columns]`.
fn in_pixels(place: [f64; 4], size: [usize; 2]) -> [f64; 4] {
    let [left, top, right, bottom] = corners(place);
    let [height, width] = size.map(|n| n as f64);
    [left * width, top * height, right * width, bottom * height]
}

impl Detr {
    /// Detections in pixels of images whose `[rows, columns]` are `sizes`, from inputs that may have been resized. Every query yields one
    /// detection, of its most likely class.
    pub fn detections(
        &self,
        images: &[ImageInput],
        sizes: &[[usize; 2]],
        device: &Device,
    ) -> Vec<Vec<Detection>> {
        let model = self.clone().no_grad();
        let mut found = Vec::with_capacity(images.len());
        for (chunk, sizes) in images.chunks(CHUNK).zip(sizes.chunks(CHUNK)) {
            let predictions = model.forward(&model.batch(chunk, None, device), None).pop();
            let predictions = predictions.expect("a decoder has layers");
            let [_, queries, scores] = predictions.classes.dims();
            let classes = scores - 1;
            let scores = numbers(activation::softmax(predictions.classes, 2));
            let boxes = numbers(predictions.boxes);
            let of_image = |(i, size): (usize, &[usize; 2])| {
                let of_query = |row: usize| {
                    let scores = &scores[row * (classes + 1)..][..classes];
                    let best = (0..classes).max_by(|&a, &b| scores[a].total_cmp(&scores[b]));
                    let category = best.unwrap_or(0);
                    let place = [0, 1, 2, 3].map(|c| f64::from(boxes[4 * row + c]));
                    let score = scores.get(category).copied().map_or(0.0, f64::from);
                    Detection { category, corners: in_pixels(place, *size), score }
                };
                (i * queries..(i + 1) * queries).map(of_query).collect()
            };
            found.extend(sizes.iter().enumerate().map(of_image));
        }
        found
    }

    /// Detections with the objects on the images.
    pub fn evaluated(&self, images: &[ImageInput], device: &Device) -> Vec<Image> {
        let sizes: Vec<[usize; 2]> = images.iter().map(|image| image.size).collect();
        let found = self.detections(images, &sizes, device);
        let one = |(image, detections): (&ImageInput, _)| {
            let truths = image.targets.iter().map(|target| {
                let corners = in_pixels(target.place, image.size);
                Truth { category: target.class, corners, area: area(corners), crowd: false }
            });
            Image { truths: truths.collect(), detections }
        };
        images.iter().zip(found).map(one).collect()
    }
}
