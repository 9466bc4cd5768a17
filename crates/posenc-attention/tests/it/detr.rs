//! The detector at the paper's scale: its outputs, losses and training steps equal those of DETR, and it reads weight files.

use std::path::{Path, PathBuf};

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Gradients, Tensor};
use posenc_attention::detector::{Coordinates, GroundTruth, ImageInput, loss};
use posenc_attention::detr::{Batch, Detr, Holds, Rates};
use posenc_attention::optimizer::Adam;
use posenc_attention::parameters;
use posenc_attention::trainer::TrainState;
use posenc_data::WeightFile;
use posenc_math::lff::detr::Sizes;
use posenc_math::lff::encoding::{Encoding, Features};
use posenc_math::random::stream;
use serde_json::Value;

/// Sizes of the stored example.
fn sizes() -> Sizes {
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
        dropout: 0.0,
    }
}

fn sine() -> Encoding {
    Encoding { features: Features::Sine, ..Encoding::none() }
}

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn random_model(sizes: &Sizes, seed: u64) -> Detr {
    let device = posenc_attention::cpu();
    let (mut content, mut code) = (stream(seed, "content"), stream(seed, "code"));
    Detr::new(sizes, &sine(), &mut content, &mut code, &device).unwrap()
}

fn read(model: Detr, name: &str, holds: Holds) -> Result<Detr, String> {
    let file = WeightFile::open(&data(name)).map_err(|e| e.to_string())?;
    model.with_weights(holds, &mut |name, shape| file.array(name, shape)).map_err(|e| e.to_string())
}

fn example() -> (Value, Vec<ImageInput>) {
    let text = std::fs::read_to_string(data("detr.json")).unwrap();
    let example: Value = serde_json::from_str(&text).unwrap();
    let list = |value: &Value| -> Vec<f64> {
        value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
    };
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

/// Shapes of all parameters with a gradient, and the L2 norms of the gradients.
fn lengths(model: &Detr, gradients: &Gradients) -> Vec<(Vec<usize>, f64)> {
    struct Lengths<'a>(&'a Gradients, Vec<(Vec<usize>, f64)>);
    impl ModuleVisitor for Lengths<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if let Some(gradient) = param.val().grad(self.0) {
                let square: f64 =
                    parameters::numbers(gradient).iter().map(|&v| f64::from(v).powi(2)).sum();
                self.1.push((param.val().dims().to_vec(), square.sqrt()));
            }
        }
    }
    let mut all = Lengths(gradients, Vec::new());
    model.visit(&mut all);
    all.1
}

/// Catches a wrong stride, border or norm, a wrong order of taps, heads or coordinates, a mask that hides the wrong cells, a wrong loss
/// term or weight, and an array that is read into the wrong parameter. The reference is DETR in PyTorch, with the weights of its
/// checkpoint.
#[test]
fn predictions_and_losses_match_the_public_model() {
    let (sizes, device) = (sizes(), posenc_attention::cpu());
    let (example, images) = example();
    let model = read(random_model(&sizes, 1), "detr.pth", Holds::Model).unwrap();
    let batch = Batch::new(&images, &device).unwrap();
    let said = model.forward(&sizes, &batch, Coordinates::Normalized, None);
    assert_eq!(said.len(), 2);
    for (layer, said) in said.iter().enumerate() {
        for (name, found) in [("classes", said.classes.clone()), ("boxes", said.boxes.clone())] {
            let expected = example[name][layer].as_array().unwrap();
            let found = parameters::numbers(found);
            assert_eq!(found.len(), expected.len());
            for (found, expected) in found.iter().zip(expected) {
                let expected = expected.as_f64().unwrap();
                assert!((f64::from(*found) - expected).abs() < 1e-4, "{name}: {found} {expected}");
            }
        }
    }
    let targets: Vec<Vec<GroundTruth>> = images.iter().map(|i| i.targets.clone()).collect();
    let loss = loss(&said, &targets).unwrap();
    let expected = example["loss"].as_f64().unwrap();
    assert!((parameters::number(loss.clone()) / expected - 1.0).abs() < 1e-5);
    let found = lengths(&model, &loss.backward());
    for (name, shape) in [
        ("backbone.0.body.layer2.0.conv2.weight", vec![36, 4]),
        ("backbone.0.body.layer4.0.downsample.0.weight", vec![32, 64]),
        ("input_proj.weight", vec![64, 16]),
        ("query_embed.weight", vec![5, 16]),
    ] {
        let expected = example["gradient_lengths"][name].as_f64().unwrap();
        let found = found.iter().find(|(own, _)| *own == shape).unwrap().1;
        assert!((found / expected - 1.0).abs() < 1e-3, "{name}: {found} {expected}");
    }
}

/// Catches safetensors files that are read differently from PyTorch checkpoints.
#[test]
fn the_network_alone_is_read_from_safetensors() {
    let (sizes, device) = (sizes(), posenc_attention::cpu());
    let (_, images) = example();
    let batch = Batch::new(&images, &device).unwrap();
    let say = |model: &Detr| {
        let said = model.forward(&sizes, &batch, Coordinates::Normalized, None).pop().unwrap();
        parameters::numbers(said.boxes)
    };
    let whole = read(random_model(&sizes, 1), "detr.pth", Holds::Model).unwrap();
    let own = read(random_model(&sizes, 1), "network.safetensors", Holds::Backbone).unwrap();
    assert_ne!(say(&own), say(&random_model(&sizes, 1)));
    assert_ne!(say(&own), say(&whole));
    let again = read(whole.clone(), "network.safetensors", Holds::Backbone).unwrap();
    assert_eq!(say(&again), say(&whole));
}

/// Catches a panic, and a message that does not name the missing or wrong array.
#[test]
fn weights_of_another_model_and_damaged_files_are_refused() {
    let other = Sizes { width: 32, ..sizes() };
    let error = read(random_model(&other, 1), "detr.pth", Holds::Model).unwrap_err();
    assert!(error.contains("detr.pth") && error.contains("`input_proj.weight`"), "{error}");
    assert!(error.contains("[16, 64, 1, 1]") && error.contains("[32, 64, 1, 1]"), "{error}");
    let deeper = Sizes { blocks: [1, 2, 1, 2], ..sizes() };
    let error = read(random_model(&deeper, 1), "network.safetensors", Holds::Backbone).unwrap_err();
    assert!(error.contains("no array `layer4.1.conv1.weight`"), "{error}");
    let folder = tempfile::tempdir().unwrap();
    for name in ["detr.pth", "network.safetensors"] {
        let bytes = std::fs::read(data(name)).unwrap();
        let path = folder.path().join(name);
        for part in [0, 5, 40, bytes.len() / 2, bytes.len() - 1] {
            std::fs::write(&path, &bytes[..part]).unwrap();
            let opened = WeightFile::open(&path).map_err(|e| e.to_string());
            let read = opened.and_then(|file| {
                let read = &mut |name: &str, shape: &[usize]| file.array(name, shape);
                let holds = if name == "detr.pth" { Holds::Model } else { Holds::Backbone };
                random_model(&sizes(), 1).with_weights(holds, read).map_err(|e| e.to_string())
            });
            let error = read.map(|_| ()).unwrap_err();
            assert!(error.contains(name), "{part}: {error}");
        }
    }
    let error = WeightFile::in_folder(folder.path()).unwrap_err().to_string();
    assert!(error.contains("single file of weights (there are 2)"), "{error}");
}

/// Catches a surplus or missing layer at full size, and weights that are trained but should be frozen.
#[test]
fn the_full_model_has_the_published_size() {
    let model = random_model(&Sizes::default(), 1);
    assert_eq!(parameters::count(&model), 41_577_888);
    assert_eq!(parameters::count_trained(&model), 41_302_368);
}

fn steps(seed: u64, steps: usize) -> (Vec<f64>, Detr, Adam) {
    let sizes = Sizes { dropout: 0.1, ..sizes() };
    let device = posenc_attention::cpu();
    let (_, images) = example();
    let batch = Batch::new(&images, &device).unwrap();
    let mut model = random_model(&sizes, seed);
    let mut adam = Adam::new(0.9, 0.999, 1e-8);
    adam.max_grad_norm = Some(0.1);
    let rates = Rates { backbone: 1e-3, head: 2e-3 };
    let mut masks = stream(seed, "masks");
    let losses = (0..steps).map(|_| {
        let loss;
        let coordinates = Coordinates::Normalized;
        (model, loss) =
            model.clone().step(&sizes, &batch, coordinates, &mut adam, rates, &mut masks);
        loss
    });
    let losses = losses.collect();
    (losses, model, adam)
}

/// Catches a step that does not learn, random numbers that do not come from the seed, and frozen weights that change or are trained after
/// a checkpoint is restored.
#[test]
fn steps_learn_reproducibly_and_keep_the_first_stage_frozen() {
    let (losses, model, adam) = steps(1, 30);
    assert_eq!(losses, steps(1, 30).0);
    assert_ne!(losses, steps(2, 30).0);
    assert!(losses[29] < 0.7 * losses[0], "{losses:?}");
    let before = parameters::values(&random_model(&sizes(), 1));
    let after = parameters::values(&model);
    // The first convolution: its weights and its norm.
    let first = 49 * 3 * 2 + 4;
    assert_eq!(before[..first], after[..first]);
    let moved = before.iter().zip(&after).filter(|(a, b)| a != b).count();
    let trained = parameters::count_trained(&model);
    assert!(moved <= trained && moved > trained * 3 / 4, "{moved} {trained}");
    let mut other = adam.clone();
    let restored =
        TrainState::of(&model, &adam).restore(&random_model(&sizes(), 3), &mut other).unwrap();
    assert_eq!(parameters::count_trained(&restored), trained);
}
