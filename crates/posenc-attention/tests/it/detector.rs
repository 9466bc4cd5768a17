//! The detector: masking, learning, and reproducibility.

use posenc_attention::detector::{
    Coordinates, Detector, GroundTruth, ImageInput, Sizes, detections,
};
use posenc_attention::layers::TransformerSizes;
use posenc_attention::optimizer::Adam;
use posenc_attention::parameters;
use posenc_attention::trainer::Trainer;
use posenc_data::generate::{ObjectImage, ObjectScene};
use posenc_math::detection::boxes::center;
use posenc_math::detection::precision::average_precision;
use posenc_math::lff::encoding::{Encoding, Features};
use posenc_math::lff::schedule::{Decay, LearningRate};
use posenc_math::random::stream;

fn sizes(coordinates: Coordinates) -> Sizes {
    Sizes {
        patch: 8,
        cells: 4,
        transformer: TransformerSizes { width: 16, heads: 2, feed_forward: 32, layers: 1 },
        decoder_layers: 2,
        queries: 4,
        classes: 3,
        coordinates,
        code_at_input: true,
    }
}

fn sine() -> Encoding {
    Encoding { features: Features::Sine, ..Encoding::none() }
}

fn input(image: ObjectImage) -> ImageInput {
    let target = |o: &posenc_data::generate::Object| GroundTruth {
        class: o.class,
        place: center(o.corners),
    };
    let targets = image.objects.iter().map(target).collect();
    ImageInput { size: [image.height, image.width], pixels: image.pixels, targets }
}

fn model(sizes: &Sizes, encoding: &Encoding, seed: u64) -> Detector {
    let device = posenc_attention::cpu();
    let (mut content, mut code) = (stream(seed, "content"), stream(seed, "code"));
    Detector::new(sizes, encoding, &mut content, &mut code, &device).unwrap()
}

fn trainer(model: Detector, steps: usize) -> Trainer<Detector> {
    let mut adam = Adam::new(0.9, 0.999, 1e-8);
    (adam.weight_decay, adam.max_grad_norm) = (1e-4, Some(1.0));
    let learning_rate = LearningRate { peak: 0.003, warm_up: 10, decay: Decay::LinearTail, steps };
    Trainer::new(model, adam, learning_rate)
}

const GRIDS: [[usize; 2]; 4] = [[3, 3], [3, 4], [4, 3], [4, 4]];

/// Catches padding that is attended to, and misplaced pixels: up to rounding, an image must have the same detections alone and next to a
/// larger image.
#[test]
fn padding_does_not_change_detections() {
    let device = posenc_attention::cpu();
    for coordinates in [Coordinates::Normalized, Coordinates::Cells] {
        let sizes = sizes(coordinates);
        let model = model(&sizes, &sine(), 1);
        let mut rng = stream(1, "images");
        let image = |side: usize, rng: &mut _| input(ObjectScene::draw(rng).whole(side, rng));
        let (small, large) = (image(24, &mut rng), image(32, &mut rng));
        let alone = detections(&model, &sizes, std::slice::from_ref(&small), &device).unwrap();
        let grids = model.grids(&sizes, &GRIDS, sizes.cells, &device);
        let batch =
            posenc_attention::detector::Batch::new(&[large, small], &sizes, &grids, &device);
        let said = model.forward(&sizes, &batch.unwrap(), &grids).pop().unwrap();
        let boxes = parameters::numbers(said.boxes);
        for (query, detection) in alone[0].detections.iter().enumerate() {
            let own = &boxes[4 * (sizes.queries + query)..][..4];
            let beside =
                posenc_math::detection::boxes::corners([0, 1, 2, 3].map(|c| f64::from(own[c])));
            for (a, b) in detection.corners.iter().zip(beside) {
                assert!((a / 24.0 - b).abs() < 1e-5, "{detection:?} {beside:?}");
            }
        }
    }
}

/// Catches a training step whose parts work alone but not together, wrongly shared random streams, and lost gradient clipping or weight
/// decay.
#[test]
fn a_small_detector_learns_reproducibly() {
    let device = posenc_attention::cpu();
    let sizes = sizes(Coordinates::Normalized);
    let run = |seed: u64| {
        let mut rng = stream(seed, "batches");
        let mut trainer = trainer(model(&sizes, &sine(), seed), 150);
        let grids = trainer.model.grids(&sizes, &GRIDS, sizes.cells, &device);
        let mut losses = Vec::new();
        while trainer.is_running() {
            let batch: Vec<ImageInput> =
                (0..16).map(|_| input(ObjectScene::training_image(&[24, 32], &mut rng))).collect();
            losses.push(trainer.step(|model| model.loss(&batch, &sizes, &grids, None, &device)));
        }
        (losses, parameters::values(&trainer.model), trainer.model)
    };
    let (losses, values, trained) = run(1);
    let mean = |losses: &[f64]| losses.iter().sum::<f64>() / losses.len() as f64;
    assert!(mean(&losses[130..]) < 0.8 * mean(&losses[..20]), "{losses:?}");
    let mut rng = stream(9, "held out");
    let images: Vec<ImageInput> =
        (0..40).map(|_| input(ObjectScene::draw(&mut rng).whole(32, &mut rng))).collect();
    let precision = |model: &Detector| {
        let found = detections(model, &sizes, &images, &device).unwrap();
        average_precision(&found, sizes.classes, 100).at_50
    };
    let (after, before) = (precision(&trained), precision(&model(&sizes, &sine(), 1)));
    assert!(after > 0.02 && after > 2.0 * before, "{before} {after}");
    let again = run(1);
    assert_eq!((&losses, &values), (&again.0, &again.1));
    assert_ne!(losses, run(2).0);
}

/// Catches training that continues on images without position encodings.
#[test]
fn images_of_another_size_are_refused() {
    let device = posenc_attention::cpu();
    let sizes = sizes(Coordinates::Cells);
    let mut trainer = trainer(model(&sizes, &sine(), 1), 5);
    let grids = trainer.model.grids(&sizes, &GRIDS, sizes.cells, &device);
    let mut rng = stream(1, "image");
    let wide = input(ObjectScene::draw(&mut rng).whole(40, &mut rng));
    let loss = trainer.step(|model| model.loss(&[wide], &sizes, &grids, None, &device));
    assert!(loss.is_nan() && !trainer.is_running());
    let table = Encoding { features: Features::Embed, uniform: true, ..Encoding::none() };
    let normalized = Sizes { coordinates: Coordinates::Normalized, ..sizes.clone() };
    let (mut content, mut code) = (stream(1, "content"), stream(1, "code"));
    let refused = Detector::new(&normalized, &table, &mut content, &mut code, &device);
    assert_eq!(refused.unwrap_err().0, "features");
    model(&sizes, &table, 1);
}
