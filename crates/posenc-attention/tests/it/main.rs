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
use posenc_attention::{Module, cpu};
use posenc_math::lff::encoding::{Encoding, Features, Modulator};
use posenc_math::lff::schedule::{Decay, LearningRate};
use posenc_math::random::stream;
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

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
    assert!(trainer.operations > 0.0);
    (losses, trainer.model)
}

#[track_caller]
fn assert_close(a: &[f32], b: &[f32], tolerance: f32) {
    assert_eq!(a.len(), b.len());
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        assert!((a - b).abs() < tolerance, "{i}: {a} {b}");
    }
}

/// Checks that prediction i depends on all items before item i and on no others. `predictions` has `width` numbers for each item, with one
/// item changed if given.
fn assert_causal(items: &[usize], width: usize, predictions: impl Fn(Option<usize>) -> Vec<f32>) {
    let before = predictions(None);
    for &changed in items {
        let after = predictions(Some(changed));
        let is_same = |(a, b): (&[f32], &[f32])| a == b;
        let rows = before.chunks_exact(width).zip(after.chunks_exact(width)).map(is_same);
        let same: Vec<bool> = rows.collect();
        assert!(!same[..=changed].contains(&false), "a prediction up to {changed} depends on it");
        assert_ne!(same.get(changed + 1), Some(&true), "the next does not depend on {changed}");
    }
}
