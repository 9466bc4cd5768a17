//! Compares models, kernels and encodings with references.

mod boxes;
mod captioner;
mod detr;
mod encoders;
mod image_model;
mod kernels;
mod models;
mod public_captioner;
mod translator;

use std::path::{Path, PathBuf};

use posenc_attention::optimizer::Adam;
use posenc_attention::trainer::{Loss, Trainer};
use posenc_attention::{Device, Module, parameters};
use posenc_math::lff::encoding::{Encoding, Features, Modulator};
use posenc_math::lff::schedule::{Decay, LearningRate};
use posenc_math::random::stream;
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

fn cpu() -> Device {
    posenc_attention::cpu()
}

/// The streams of the weights of a model and of its encoding.
fn streams(seed: u64) -> [ChaCha8Rng; 2] {
    ["content", "code"].map(|purpose| stream(seed, purpose))
}

fn sines() -> Encoding {
    Encoding { features: Features::Sine, ..Encoding::none() }
}

/// Learnable Fourier features with an MLP of `hidden` units.
fn fourier(gamma: f64, groups: usize, hidden: usize, dropout: f64) -> Encoding {
    Encoding {
        features: Features::Fourier,
        groups,
        gamma: Some(gamma),
        learned: true,
        modulator: Some(Modulator { hidden, layer_norm: false, dropout }),
        ..Encoding::none()
    }
}

/// One table per coordinate, whose rows are added.
fn summed_tables() -> Encoding {
    Encoding { features: Features::Embed, summed: true, ..Encoding::none() }
}

/// A stored file.
fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// A stored example.
fn stored(name: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(data(name)).unwrap()).unwrap()
}

fn list(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

/// The losses of a training, and the trained model.
fn trained<M: Module>(
    model: M,
    adam: Adam,
    peak: f64,
    steps: usize,
    mut loss: impl FnMut(&M) -> Loss,
) -> (Vec<f64>, M) {
    let learning_rate = LearningRate { peak, warm_up: 5, decay: Decay::Constant, steps };
    let mut trainer = Trainer::new(model, adam, learning_rate);
    let mut losses = Vec::new();
    while trainer.is_running() {
        losses.push(trainer.step(&mut loss));
    }
    assert_eq!((losses.len(), trainer.diverged()), (steps, None));
    assert!(trainer.operations() > 0.0);
    (losses, trainer.model)
}

#[track_caller]
fn assert_close(a: &[f32], b: &[f32], tolerance: f32) {
    assert_eq!(a.len(), b.len());
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        assert!((a - b).abs() < tolerance, "{i}: {a} {b}");
    }
}

/// Compares the gradients of a loss with finite differences, for some of the parameters with the largest slopes: in single precision,
/// differences of small ones are noise.
fn assert_gradients<M: Module>(model: &M, loss: impl Fn(&M) -> burn::Tensor<1>) {
    let slopes = parameters::gradients(model, &loss(model).backward());
    let values = parameters::values(model);
    assert_eq!(slopes.len(), values.len());
    let mut order: Vec<usize> = (0..slopes.len()).collect();
    order.sort_by(|&a, &b| slopes[b].abs().total_cmp(&slopes[a].abs()));
    for &i in order.iter().take(400).step_by(13) {
        let moved = |by: f32| {
            let mut values = values.clone();
            values[i] += by;
            parameters::number(loss(&parameters::replaced(model.clone(), &values).unwrap()))
        };
        let step = 4e-3;
        let slope = (moved(step) - moved(-step)) / f64::from(2.0 * step);
        let expected = f64::from(slopes[i]);
        let limit = 0.03 * expected.abs() + 2e-4;
        assert!((slope - expected).abs() < limit, "{i}: {slope} and {expected}");
    }
}
