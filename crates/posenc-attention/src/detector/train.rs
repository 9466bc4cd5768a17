//! Training a detector, and what it finds.

use burn::module::Module as _;
use burn::tensor::{Device, activation};
use posenc_math::detection::boxes::corners;
use posenc_math::detection::precision::{Detection, Image, Truth};
use posenc_math::lff::schedule::LearningRate;

use super::{Batch, Detector, Grids, ImageInput, Said, Sizes, Weights, loss};
use crate::optimizer::Adam;
use crate::parameters::numbers;
use crate::progress::Progress;

/// Images that are looked at at once.
const CHUNK: usize = 32;

/// How a detector is trained.
#[derive(Debug, Clone)]
pub struct Training {
    /// Rate of each step.
    pub learning_rate: LearningRate,
    /// The optimizer at its beginning.
    pub adam: Adam,
    /// Weights of the loss.
    pub weights: Weights,
}

/// A training in flight.
#[derive(Debug)]
pub struct Trainer<'a> {
    /// The model, and how far it has come.
    pub progress: Progress<Detector>,
    sizes: &'a Sizes,
    weights: Weights,
    grids: Grids,
    device: &'a Device,
}

impl<'a> Trainer<'a> {
    /// At the beginning, for images whose grids of patches are among `grids`.
    pub fn new(
        model: Detector,
        sizes: &'a Sizes,
        training: &Training,
        grids: &[[usize; 2]],
        device: &'a Device,
    ) -> Self {
        let grids = model.grids(sizes, grids, sizes.cells, device);
        let progress = Progress::new(model, training.adam.clone(), training.learning_rate);
        Trainer { progress, sizes, weights: training.weights, grids, device }
    }

    /// One step; gives the loss before it. An image of another size than was said ends the training like a loss
    /// that is no number.
    pub fn step(&mut self, images: &[ImageInput]) -> f64 {
        let batch = Batch::new(images, self.sizes, &self.grids, self.device);
        let loss = batch.and_then(|batch| {
            let said = self.progress.model.forward(self.sizes, &batch, &self.grids);
            loss(&said, &batch.targets, &self.weights)
        });
        match loss {
            Some(loss) => self.progress.learn(loss, |_| None),
            None => {
                self.progress.end();
                f64::NAN
            }
        }
    }
}

/// What a model says of images of one size, in pixels, beside what is there; `None` for an image of another size. Every query
/// counts, with its likeliest class.
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
        let said = model.forward(sizes, &batch, &grids).pop()?;
        let all = of_said(said, &vec![size; chunk.len()]);
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

/// Corners in pixels of an image of `[rows, columns]`.
fn pixels(place: [f64; 4], size: [usize; 2]) -> [f64; 4] {
    let [left, top, right, bottom] = corners(place);
    let [height, width] = size.map(|n| n as f64);
    [left * width, top * height, right * width, bottom * height]
}

/// What is said of images of `[rows, columns]` pixels each: every query counts, with its likeliest class.
pub fn of_said(said: Said, sizes: &[[usize; 2]]) -> Vec<Vec<Detection>> {
    let [_, queries, scores] = said.classes.dims();
    let classes = scores - 1;
    let scores = numbers(activation::softmax(said.classes, 2));
    let boxes = numbers(said.boxes);
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
