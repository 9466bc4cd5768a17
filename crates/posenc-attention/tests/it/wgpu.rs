//! Compares training on a wgpu software adapter with training on the CPU. Built with the feature `wgpu`.
#![cfg(feature = "wgpu")]

use std::sync::{Mutex, OnceLock, PoisonError};

use posenc_attention::image_model::{self, ImageModel, Measured, evaluate};
use posenc_attention::layers::TransformerSizes;
use posenc_attention::optimizer::Adam;
use posenc_attention::reformer::{Hashing, Reformer};
use posenc_attention::trainer::Trainer;
use posenc_attention::translator::{self, Translator};
use posenc_attention::{Device, DeviceKind, reformer};
use posenc_data::generate::GrayLeaves;
use posenc_files::testing::{Need, skip};
use posenc_math::lff::encoding::{Encoding, Features, Modulator};
use posenc_math::lff::schedule::{Decay, LearningRate};
use posenc_math::random::stream;

/// Runs a test on the software adapter, one test at a time; skips it if there is no adapter.
fn with_adapter(test: impl FnOnce(&Device)) {
    static DEVICE: OnceLock<Result<Device, String>> = OnceLock::new();
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    match DEVICE.get_or_init(|| posenc_attention::wgpu(DeviceKind::Cpu)) {
        Ok(device) => test(device),
        Err(why) => skip(Need::Vulkan, format!("there is no software adapter: {why}")),
    }
}

fn encoding() -> Encoding {
    Encoding {
        features: Features::Fourier,
        gamma: Some(1.0),
        learned: true,
        modulator: Some(Modulator { hidden: 8, layer_norm: true, dropout: 0.1 }),
        ..Encoding::none()
    }
}

#[track_caller]
fn assert_near(own: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(own.len(), expected.len());
    for (i, (a, b)) in own.iter().zip(expected).enumerate() {
        assert!((a - b).abs() <= tolerance * b.abs(), "{i}: {a} {b}");
    }
}

fn image_losses(device: &Device) -> Vec<f64> {
    let transformer = TransformerSizes { width: 16, heads: 2, feed_forward: 32, layers: 2 };
    let sizes = image_model::Sizes { side: 6, levels: 4, concatenated: None, transformer };
    let (mut content, mut code) = (stream(1, "content"), stream(1, "code"));
    let model = ImageModel::new(&sizes, &encoding(), &mut content, &mut code, device).unwrap();
    let law = GrayLeaves::new(sizes.side, sizes.levels);
    let mut rng = stream(1, "batches");
    let learning_rate = LearningRate { peak: 0.01, warm_up: 5, decay: Decay::Constant, steps: 12 };
    let held_out: Vec<Vec<u8>> = {
        let mut rng = stream(1, "held out");
        (0..6).map(|_| law.image(&mut rng)).collect()
    };
    let mut masks = stream(1, "masks");
    let fixed = model.fix(&sizes, device);
    let mut trainer = Trainer::new(model, Adam::new(0.9, 0.98, 1e-9), learning_rate);
    let mut measured = Measured::default();
    while trainer.is_running() {
        let batch: Vec<_> = (0..4).map(|_| law.image(&mut rng)).collect();
        let nats = trainer.step(|model| Some(model.loss(&batch, &sizes, &fixed, None, &mut masks)));
        measured
            .record(&trainer, nats, 1, |model| evaluate(model, &sizes, &fixed, &held_out, device));
    }
    measured.measurements.iter().flat_map(|m| [m.training_bits, m.evaluation.bits]).collect()
}

/// Catches a kernel or derivative that differs between the devices, and a sum whose order varies between runs.
#[test]
fn the_image_model_trains_as_on_the_cpu_and_reproducibly() {
    with_adapter(|device| {
        let own = image_losses(device);
        assert_near(&own, &image_losses(&posenc_attention::cpu()), 1e-4);
        assert_eq!(own, image_losses(device));
    });
}

/// Catches padding masks and word positions that differ between the devices.
#[test]
fn the_translator_trains_as_on_the_cpu() {
    let losses = |device: &Device| {
        let transformer = TransformerSizes { width: 16, heads: 2, feed_forward: 16, layers: 1 };
        let sizes = translator::Sizes { words: 6, positions: 8, transformer };
        let model = Translator::new(&sizes, 0.02, &mut stream(1, "content"), device);
        let rate = LearningRate { peak: 0.01, warm_up: 2, decay: Decay::Constant, steps: 8 };
        let pair = |i: usize| ((0..2 + i % 5).collect(), (0..1 + i % 5).rev().collect());
        let pairs: Vec<translator::Pair> = (0..6).map(pair).collect();
        let mut trainer = Trainer::new(model, Adam::new(0.9, 0.98, 1e-9), rate);
        let mut losses: Vec<f64> = Vec::new();
        while trainer.is_running() {
            trainer.step(|model| model.loss(&pairs, &sizes, device));
            losses.push(translator::evaluate(&trainer.model, &pairs, device));
        }
        assert_eq!(trainer.diverged(), None);
        losses
    };
    with_adapter(|device| assert_near(&losses(device), &losses(&posenc_attention::cpu()), 1e-4));
}

/// Catches gathers and gradients that differ between the devices. The test makes only a few steps, because a bucket that differs by
/// rounding changes all later steps.
#[test]
fn the_reformer_trains_as_on_the_cpu() {
    let losses = |device: &Device| {
        let hashing =
            Hashing { heads: 2, head_width: 4, chunk: 12, buckets: 6, rounds: 2, dropout: 0.2 };
        let sizes = reformer::Sizes {
            side: 4,
            levels: 8,
            layers: 2,
            width: 16,
            pixel_width: 12,
            feed_forward: 32,
            hashing,
        };
        let (mut content, mut code) = (stream(1, "content"), stream(1, "code"));
        let mut model =
            Reformer::new(&sizes, &encoding(), &mut content, &mut code, device).unwrap();
        let fixed = model.fix(&sizes, device);
        let mut adam = Adam::new(0.9, 0.98, 1e-9);
        let mut rng = stream(1, "steps");
        let images: Vec<Vec<u8>> = (0..2)
            .map(|i| (0..sizes.length()).map(|t| ((t * t + i) % 8) as u8).collect())
            .collect();
        let batch = image_model::tokens(&images, device);
        let mut losses = Vec::new();
        for _ in 0..4 {
            let loss;
            (model, loss) = model.step(&batch, &fixed, &mut adam, 0.003, &mut rng);
            losses.push(loss);
        }
        losses
    };
    with_adapter(|device| assert_near(&losses(device), &losses(&posenc_attention::cpu()), 1e-4));
}
