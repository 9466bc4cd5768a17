//! Short trainings of every model: they learn, follow from their seed, and are the same on wgpu as on the CPU.

use posenc_attention::image_model::tokens;
use posenc_attention::optimizer::Adam;
use posenc_attention::{Device, Module, parameters};
use posenc_data::generate::{GrayLeaves, Lengths, ObjectScene, Translation};
use posenc_math::lff::encoding::Coordinates;
use posenc_math::random::stream;

use crate::{
    boxes, captioner, detr, image_model, public_captioner, summed_tables, trained, translator,
};

/// Losses and parameters of a training with a seed, for a number of steps.
type Run = fn(u64, usize, &Device) -> (Vec<f64>, Vec<f32>);

/// Each model with a number of steps, and an upper bound of the mean loss of the last five steps over that of the first five.
const MODELS: [(&str, Run, usize, f64); 8] = [
    ("image model", image_model, 60, 0.85),
    ("reformer", reformer, 60, 0.55),
    ("detector of patches", patches, 100, 0.85),
    ("detector on a residual network", residual, 30, 0.75),
    ("labeller", boxes::learned, 60, 0.8),
    ("captioner", captioner, 60, 0.6),
    ("public captioner", public_captioner::learned, 40, 0.65),
    ("translator", translator, 100, 0.9),
];

pub fn numbers<M: Module>((losses, model): (Vec<f64>, M)) -> (Vec<f64>, Vec<f32>) {
    (losses, parameters::values(&model))
}

fn image_model(seed: u64, steps: usize, device: &Device) -> (Vec<f64>, Vec<f32>) {
    let model = image_model::model(seed, device);
    let (law, fixed) = (GrayLeaves::new(6, 4), model.fix(device));
    let (mut rng, mut masks) = (stream(seed, "batches"), stream(seed, "masks"));
    numbers(trained(model, Adam::new(0.9, 0.98, 1e-9), 0.01, steps, |model| {
        let batch: Vec<_> = (0..8).map(|_| law.image(&mut rng)).collect();
        model.loss(&tokens(&batch, device), &fixed, &mut masks)
    }))
}

fn reformer(seed: u64, steps: usize, device: &Device) -> (Vec<f64>, Vec<f32>) {
    let sizes = image_model::REFORMER;
    let model = image_model::built(&sizes, &image_model::modulated(8), seed, device);
    let (fixed, batch) = (model.fix(device), image_model::repeated(&sizes, device));
    let draws = &mut stream(seed, "steps");
    numbers(image_model::stepped(model, &batch, &fixed, steps, draws))
}

fn patches(seed: u64, steps: usize, device: &Device) -> (Vec<f64>, Vec<f32>) {
    let model = detr::patches(Coordinates::Normalized, seed, device);
    let grids = model.grids(&detr::GRIDS, 4, device);
    let mut adam = Adam::new(0.9, 0.999, 1e-8);
    (adam.weight_decay, adam.max_grad_norm) = (1e-4, Some(1.0));
    let mut rng = stream(seed, "batches");
    numbers(trained(model, adam, 0.003, steps, |model| {
        let image = |_| detr::scene(ObjectScene::training_image(&[24, 32], &mut rng));
        let batch: Vec<_> = (0..16).map(image).collect();
        model.loss(&model.batch(&batch, Some(&grids), device), None)
    }))
}

fn residual(seed: u64, steps: usize, device: &Device) -> (Vec<f64>, Vec<f32>) {
    let model = detr::residual(&detr::sizes(0.1), seed, device);
    let mut adam = Adam::new(0.9, 0.999, 1e-8);
    adam.max_grad_norm = Some(0.1);
    model.slow_down(&mut adam, 1e-3);
    let batch = model.batch(&detr::example().1, None, device);
    let mut masks = stream(seed, "masks");
    let loss = |model: &_| posenc_attention::detr::Detr::loss(model, &batch, Some(&mut masks));
    numbers(trained(model, adam, 2e-3, steps, loss))
}

fn captioner(seed: u64, steps: usize, device: &Device) -> (Vec<f64>, Vec<f32>) {
    numbers(captioner::learned(&summed_tables(), seed, steps, device))
}

fn translator(seed: u64, steps: usize, device: &Device) -> (Vec<f64>, Vec<f32>) {
    let languages = Translation::new(8, Lengths::Uniform, 12, &mut stream(seed, "languages"));
    let mut rng = stream(seed, "batches");
    let model = translator::model(seed, device);
    numbers(trained(model, Adam::new(0.9, 0.98, 1e-9), 0.01, steps, |model| {
        let pair = |_| {
            let pair = languages.pair(&mut rng);
            (pair.source, pair.target)
        };
        let batch: Vec<_> = (0..16).map(pair).collect();
        model.loss(&batch, &translator::SIZES, device)
    }))
}

/// Catches a training step whose parts work alone but not together, random numbers that do not come from the seed, dropout that is not
/// applied, and lost gradient clipping or weight decay.
#[test]
fn every_model_learns_reproducibly() {
    for (name, run, steps, bound) in MODELS {
        let (losses, values) = run(1, steps, &crate::cpu());
        let mean = |losses: &[f64]| losses.iter().sum::<f64>() / losses.len() as f64;
        let share = mean(&losses[steps - 5..]) / mean(&losses[..5]);
        assert!(share < bound, "{name}: {share}");
        let (again, same) = run(1, 12, &crate::cpu());
        assert_eq!(again, losses[..12], "{name}");
        assert_eq!(same, run(1, 12, &crate::cpu()).1, "{name}");
        assert_ne!(values, same, "{name}");
        assert_ne!(run(2, 12, &crate::cpu()).0, again, "{name}");
    }
}

/// Catches a kernel, a derivative, a mask or a gather that differs between the devices, and a sum whose order varies between runs. There
/// are only a few steps, because a bucket or an assignment that differs by rounding changes all later steps.
#[cfg(feature = "wgpu")]
#[test]
fn every_model_trains_on_wgpu_as_on_the_cpu() {
    use posenc_attention::DeviceKind;
    use posenc_files::testing::{Need, skip};

    let device = match posenc_attention::wgpu(DeviceKind::Cpu) {
        Ok(device) => device,
        Err(why) => return skip(Need::Vulkan, format!("there is no software adapter: {why}")),
    };
    for (name, run, ..) in MODELS {
        let (losses, _) = run(1, 4, &device);
        for (own, expected) in losses.iter().zip(run(1, 4, &crate::cpu()).0) {
            assert!((own - expected).abs() <= 1e-4 * expected.abs(), "{name}: {own} {expected}");
        }
        assert_eq!(losses, run(1, 4, &device).0, "{name}");
    }
}
