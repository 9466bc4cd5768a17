//! Converts predictions to detections.

use burn::module::Module as _;
use burn::tensor::{Device, activation};
use posenc_math::detection::boxes::corners;
use posenc_math::detection::precision::{Detection, Image, Truth};

use super::{Batch, Detector, ImageInput, Predictions, Sizes};
use crate::parameters::numbers;

const CHUNK: usize = 32;

/// Detections and ground truth of images of one size; `None` without images or if their sizes differ. Every query yields one detection,
/// of its most likely class.
pub fn detections(
    model: &Detector,
    sizes: &Sizes,
    images: &[ImageInput],
    device: &Device,
) -> Option<Vec<Image>> {
    let size = images.first()?.size;
    let grid = size.map(|pixels| pixels / sizes.patch);
    let model = model.clone().no_grad();
    let grids = model.grids(sizes, &[grid], grid[0].max(grid[1]), device);
    let mut found = Vec::with_capacity(images.len());
    for chunk in images.chunks(CHUNK) {
        let batch = Batch::new(chunk, sizes, &grids, device)?;
        let last = model.forward(sizes, &batch, &grids).pop()?;
        let all = into_detections(last, &vec![size; chunk.len()]);
        for (image, detections) in chunk.iter().zip(all) {
            let truths = image.targets.iter().map(|target| {
                let corners = pixels(target.place, size);
                let area = posenc_math::detection::boxes::area(corners);
                Truth { category: target.class, corners, area, crowd: false }
            });
            found.push(Image { truths: truths.collect(), detections });
        }
    }
    Some(found)
}

/// Corners in pixels of a box on an image of `[rows, columns]`.
fn pixels(place: [f64; 4], size: [usize; 2]) -> [f64; 4] {
    let [left, top, right, bottom] = corners(place);
    let [height, width] = size.map(|n| n as f64);
    [left * width, top * height, right * width, bottom * height]
}

/// The detections on images of `[rows, columns]` pixels each. Every query yields one detection, of its most likely class.
pub fn into_detections(predictions: Predictions, sizes: &[[usize; 2]]) -> Vec<Vec<Detection>> {
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
            Detection { category, corners: pixels(place, *size), score }
        };
        (i * queries..(i + 1) * queries).map(of_query).collect()
    };
    sizes.iter().enumerate().map(of_image).collect()
}
