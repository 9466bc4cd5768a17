//! The detector: it equals DETR's public code, reads weight files, and ignores padding.

use posenc_attention::detr::{Architecture, Detr, GroundTruth, Holds, ImageInput, loss};
use posenc_attention::optimizer::Adam;
use posenc_attention::{Device, parameters};
use posenc_data::WeightFile;
use posenc_data::generate::{ObjectImage, ObjectScene};
use posenc_math::detection::boxes::{center, corners};
use posenc_math::detection::precision::average_precision;
use posenc_math::lff::detr::Sizes;
use posenc_math::lff::encoding::Coordinates;
use posenc_math::random::stream;
use serde_json::Value;

use crate::{assert_close, cpu, data, list, sines, stored, streams, trained};

/// Sizes of the stored example.
pub fn sizes(dropout: f64) -> Sizes {
    Sizes {
        blocks: [1, 2, 1, 1],
        channels: 2,
        width: 16,
        heads: 2,
        feed_forward: 24,
        encoder_layers: 1,
        decoder_layers: 2,
        queries: 5,
        classes: 4,
        cells: 4,
        dropout,
    }
}

fn architecture(sizes: &Sizes, patch: Option<usize>, coordinates: Coordinates) -> Architecture {
    let code_at_input = patch.is_some();
    Architecture { sizes: sizes.clone(), patch, coordinates, code_at_input, divergence: None }
}

pub fn residual(sizes: &Sizes, seed: u64, device: &Device) -> Detr {
    let architecture = architecture(sizes, None, Coordinates::Normalized);
    Detr::new(&architecture, &sines(), streams(seed), device)
}

/// A model on patches of 8 × 8 pixels.
pub fn patches(coordinates: Coordinates, seed: u64, device: &Device) -> Detr {
    let architecture = architecture(&sizes(0.0), Some(8), coordinates);
    Detr::new(&architecture, &sines(), streams(seed), device)
}

/// All grids of images with sides of 24 and 32 pixels.
pub const GRIDS: [[usize; 2]; 4] = [[3, 3], [3, 4], [4, 3], [4, 4]];

pub fn scene(image: ObjectImage) -> ImageInput {
    let target = |o: &posenc_data::generate::Object| GroundTruth {
        class: o.class,
        place: center(o.corners),
    };
    let targets = image.objects.iter().map(target).collect();
    ImageInput { size: [image.height, image.width], pixels: image.pixels, targets }
}

fn read(model: Detr, name: &str, holds: Holds) -> Result<Detr, String> {
    let file = WeightFile::open(&data(name)).map_err(|e| e.to_string())?;
    model.with_weights(holds, &mut |name, shape| file.array(name, shape)).map_err(|e| e.to_string())
}

pub fn example() -> (Value, Vec<ImageInput>) {
    let example = stored("detr.json");
    let images = example["sizes"].as_array().unwrap().iter().enumerate().map(|(i, size)| {
        let size = list(size);
        let (height, width) = (size[0] as usize, size[1] as usize);
        let pixel = |k: usize| (0.5 + 0.5 * (0.037 * k as f64 + i as f64).sin()) as f32;
        let targets = example["targets"][i].as_array().unwrap().iter().map(|target| {
            let t = list(target);
            GroundTruth { class: t[0] as usize, place: [t[1], t[2], t[3], t[4]] }
        });
        ImageInput {
            size: [height, width],
            pixels: (0..3 * height * width).map(pixel).collect(),
            targets: targets.collect(),
        }
    });
    let images = images.collect();
    (example, images)
}

/// Catches a wrong stride, border or norm, a wrong order of taps, heads or coordinates, a mask that hides the wrong cells, a wrong loss
/// term or weight, and an array that is read into the wrong parameter. The reference is DETR in PyTorch, with the weights of its
/// checkpoint; a safetensors file has those of the network once more.
#[test]
fn predictions_and_losses_match_the_public_model() {
    let (sizes, device) = (sizes(0.0), cpu());
    let (example, images) = example();
    let other = read(residual(&sizes, 1, &device), "detr.pth", Holds::Model).unwrap();
    let blank = read(residual(&sizes, 2, &device), "network.safetensors", Holds::Backbone).unwrap();
    assert_ne!(parameters::values(&blank), parameters::values(&residual(&sizes, 2, &device)));
    let model = read(other, "network.safetensors", Holds::Backbone).unwrap();
    let batch = model.batch(&images, None, &device);
    let said = model.forward(&batch, None);
    assert_eq!(said.len(), 2);
    for (layer, said) in said.iter().enumerate() {
        for (name, found) in [("classes", said.classes.clone()), ("boxes", said.boxes.clone())] {
            let expected = list(&example[name][layer]).into_iter().map(|v| v as f32);
            assert_close(&parameters::numbers(found), &expected.collect::<Vec<_>>(), 1e-4);
        }
    }
    let targets: Vec<Vec<GroundTruth>> = images.iter().map(|i| i.targets.clone()).collect();
    let loss = loss(&said, &targets);
    let expected = example["loss"].as_f64().unwrap();
    assert!((parameters::number(loss.clone()) / expected - 1.0).abs() < 1e-5);
    let mut lengths: Vec<(Vec<usize>, f64)> = Vec::new();
    parameters::visit(&model, Some(&loss.backward()), |own| {
        let gradient = own.gradient.map_or_else(Vec::new, parameters::numbers);
        let square: f64 = gradient.into_iter().map(|v| f64::from(v).powi(2)).sum();
        lengths.push((own.shape, square.sqrt()));
    });
    for (name, shape) in [
        ("backbone.0.body.layer2.0.conv2.weight", vec![36, 4]),
        ("backbone.0.body.layer4.0.downsample.0.weight", vec![32, 64]),
        ("input_proj.weight", vec![64, 16]),
        ("query_embed.weight", vec![5, 16]),
    ] {
        let expected = example["gradient_lengths"][name].as_f64().unwrap();
        let found = lengths.iter().find(|(own, _)| *own == shape).unwrap().1;
        assert!((found / expected - 1.0).abs() < 1e-3, "{name}: {found} {expected}");
    }
}

/// Catches a panic, and a message that does not name the missing or wrong array.
#[test]
fn weights_of_another_model_and_damaged_files_are_refused() {
    let other = Sizes { width: 32, ..sizes(0.0) };
    let error = read(residual(&other, 1, &cpu()), "detr.pth", Holds::Model).unwrap_err();
    assert!(error.contains("detr.pth") && error.contains("`input_proj.weight`"), "{error}");
    assert!(error.contains("[16, 64, 1, 1]") && error.contains("[32, 64, 1, 1]"), "{error}");
    let deeper = Sizes { blocks: [1, 2, 1, 2], ..sizes(0.0) };
    let error =
        read(residual(&deeper, 1, &cpu()), "network.safetensors", Holds::Backbone).unwrap_err();
    assert!(error.contains("no array `layer4.1.conv1.weight`"), "{error}");
    let folder = tempfile::tempdir().unwrap();
    for (name, holds) in [("detr.pth", Holds::Model), ("network.safetensors", Holds::Backbone)] {
        let bytes = std::fs::read(data(name)).unwrap();
        let path = folder.path().join(name);
        for part in [0, 5, 40, bytes.len() / 2, bytes.len() - 1] {
            std::fs::write(&path, &bytes[..part]).unwrap();
            let model = residual(&sizes(0.0), 1, &cpu());
            let error = read(model, path.to_str().unwrap(), holds).unwrap_err();
            assert!(error.contains(name), "{part}: {error}");
        }
    }
    let error = WeightFile::in_folder(folder.path()).unwrap_err().to_string();
    assert!(error.contains("single file of weights (there are 2)"), "{error}");
}

/// Catches a surplus or missing layer at full size, and weights that are trained but should be frozen.
#[test]
fn the_full_model_has_the_published_size() {
    let model = residual(&Sizes::default(), 1, &cpu());
    assert_eq!(parameters::count(&model), 41_577_888);
    assert_eq!(parameters::count_trained(&model), 41_302_368);
}

/// Catches frozen weights that change, and a residual network without a learning rate of its own.
#[test]
fn the_first_stage_is_frozen_and_the_network_has_its_own_rate() {
    let device = cpu();
    let before = residual(&sizes(0.1), 1, &device);
    let batch = before.batch(&example().1, None, &device);
    let moved = |rate: f64| {
        let (mut adam, mut masks) = (Adam::new(0.9, 0.999, 1e-8), stream(1, "masks"));
        before.slow_down(&mut adam, rate);
        let (_, model) =
            trained(before.clone(), adam, 2e-3, 3, |model| model.loss(&batch, Some(&mut masks)));
        let pairs = parameters::values(&before).into_iter().zip(parameters::values(&model));
        pairs.map(|(a, b)| a != b).collect::<Vec<bool>>()
    };
    let (all, slow) = (moved(1e-3), moved(0.0));
    // The first convolution: its weights and its norm.
    assert!(!all[..49 * 3 * 2 + 4].contains(&true));
    let count = |moved: &[bool]| moved.iter().filter(|&&moved| moved).count();
    let trained = parameters::count_trained(&before);
    assert!(count(&all) <= trained && count(&all) > trained * 3 / 4, "{} {trained}", count(&all));
    let network = parameters::count(&before) - trained;
    assert!(count(&slow) < count(&all) && count(&slow) + network < all.len(), "{}", count(&slow));
}

/// Catches padding that is attended to, and misplaced pixels: up to rounding, an image must have the same detections alone and next to a
/// larger image.
#[test]
fn padding_does_not_change_detections() {
    let device = cpu();
    for coordinates in [Coordinates::Normalized, Coordinates::Cells] {
        let model = patches(coordinates, 1, &device);
        let mut rng = stream(1, "images");
        let image = |side: usize, rng: &mut _| scene(ObjectScene::draw(rng).whole(side, rng));
        let (small, large) = (image(24, &mut rng), image(32, &mut rng));
        let alone = model.detections(std::slice::from_ref(&small), &[[1, 1]], &device);
        let grids = model.grids(&GRIDS, 4, &device);
        let batch = model.batch(&[large, small], Some(&grids), &device);
        let boxes = parameters::numbers(model.forward(&batch, None).pop().unwrap().boxes);
        for (query, detection) in alone[0].iter().enumerate() {
            let own = &boxes[4 * (5 + query)..][..4];
            let beside = corners([0, 1, 2, 3].map(|c| f64::from(own[c])));
            for (a, b) in detection.corners.iter().zip(beside) {
                assert!((a - b).abs() < 1e-5, "{detection:?} {beside:?}");
            }
        }
    }
}

/// Catches detections of other images, and a loss that does not make detections precise.
#[test]
fn training_makes_detections_precise() {
    let device = cpu();
    let mut rng = stream(9, "held out");
    let images: Vec<ImageInput> =
        (0..40).map(|_| scene(ObjectScene::draw(&mut rng).whole(32, &mut rng))).collect();
    let precision =
        |model: &Detr| average_precision(&model.evaluated(&images, &device), 4, 100).at_50;
    let model = patches(Coordinates::Normalized, 1, &device);
    let (before, grids) = (precision(&model), model.grids(&GRIDS, 4, &device));
    let (_, model) = trained(model, Adam::new(0.9, 0.999, 1e-8), 0.003, 150, |model| {
        let image = |_| scene(ObjectScene::training_image(&[24, 32], &mut rng));
        let batch: Vec<ImageInput> = (0..16).map(image).collect();
        model.loss(&model.batch(&batch, Some(&grids), &device), None)
    });
    let after = precision(&model);
    assert!(after > 0.02 && after > 2.0 * before, "{before} {after}");
}
