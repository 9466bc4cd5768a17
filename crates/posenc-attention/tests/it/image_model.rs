//! The image model: causal masking, gradients, the divergence, and the optimizer.

use posenc_attention::image_model::{ImageModel, Sizes, cross_entropy, tokens};
use posenc_attention::layers::TransformerSizes;
use posenc_attention::optimizer::Adam;
use posenc_attention::{Device, parameters};
use posenc_data::generate::GrayLeaves;
use posenc_math::lff::divergence::{Divergence, Form};
use posenc_math::lff::learned::FrequencyStatistics;
use posenc_math::random::stream;

use crate::{assert_gradients, cpu, fourier, trained};

const SIDE: usize = 6;

pub fn model(seed: u64, divergence: Option<Divergence>, device: &Device) -> ImageModel {
    let transformer = TransformerSizes { width: 16, heads: 2, feed_forward: 32, layers: 2 };
    let sizes = Sizes { side: SIDE, levels: 4, concatenated: None, transformer, divergence };
    let (mut content, mut code) = (stream(seed, "content"), stream(seed, "code"));
    let encoding = fourier(1.0, 1, 8, 0.1);
    ImageModel::new(&sizes, &encoding, &mut content, &mut code, device).unwrap()
}

fn images(seed: u64, count: usize) -> Vec<Vec<u8>> {
    let law = GrayLeaves::new(SIDE, 4);
    let mut rng = stream(seed, "images");
    (0..count).map(|_| law.image(&mut rng)).collect()
}

/// Catches a mask that lets a pixel attend to itself or to later pixels, and a shift in the wrong direction.
#[test]
fn no_pixel_sees_itself_or_later_ones() {
    let (model, device) = (model(1, None, &cpu()), cpu());
    let (fixed, length) = (model.fix(&device), SIDE * SIDE);
    let predictions = |image: &Vec<u8>| {
        let pass = model.forward(&tokens(std::slice::from_ref(image), &device), &fixed, None);
        parameters::numbers(pass.log_probabilities)
    };
    let image = images(2, 1).remove(0);
    let before = predictions(&image);
    for changed in [0, 7, length - 1] {
        let mut other = image.clone();
        other[changed] = (other[changed] + 1) % 4;
        let after = predictions(&other);
        let same = |pixel: usize| before[pixel * 4..][..4] == after[pixel * 4..][..4];
        assert!(
            (0..=changed).all(same),
            "pixel {changed} or an earlier pixel attends to pixel {changed}"
        );
        assert!(
            changed + 1 == length || !same(changed + 1),
            "the pixel after {changed} does not attend to it"
        );
    }
}

/// Catches a derivative of a layer, kernel or encoding that is wrong.
#[test]
fn gradients_match_finite_differences() {
    let (model, device) = (model(3, None, &cpu()), cpu());
    let (batch, fixed) = (tokens(&images(4, 4), &device), model.fix(&device));
    assert_gradients(&model, |model| {
        cross_entropy(model.forward(&batch, &fixed, None).log_probabilities, &batch)
    });
}

/// Catches a divergence that is missing from the gradient. With a large weight, the covariance form makes the frequencies isotropic; the
/// pooled form does not.
#[test]
fn the_divergence_shapes_the_frequencies() {
    let shape = |divergence: Option<Divergence>| {
        let (model, law) = (model(1, divergence, &cpu()), GrayLeaves::new(SIDE, 4));
        let (mut rng, mut masks) = (stream(1, "batches"), stream(1, "masks"));
        let fixed = model.fix(&cpu());
        let (_, model) = trained(model, Adam::new(0.9, 0.98, 1e-9), 0.01, 150, |model| {
            let batch: Vec<_> = (0..8).map(|_| law.image(&mut rng)).collect();
            Some(model.loss(&batch, &fixed, &mut masks))
        });
        let (rows, m) = model.position_encoding().frequencies().unwrap();
        FrequencyStatistics::new(&rows, m, &[]).unwrap()
    };
    let free = shape(None);
    let held = shape(Some(Divergence { form: Form::Covariance, weight: 30.0 }));
    assert!(
        held.anisotropy < 1.1 && free.anisotropy > 1.3,
        "{} {}",
        held.anisotropy,
        free.anisotropy
    );
    let printed = shape(Some(Divergence { form: Form::Pooled, weight: 30.0 }));
    assert!(printed.anisotropy > 1.3, "{}", printed.anisotropy);
}

/// Catches a step that differs from Adam in the moments, their bias correction, the place of ε, the learning rate, decoupled weight
/// decay, or clipping by the global norm. Expected values follow Kingma and Ba (2015) and Loshchilov and Hutter (2019), in double
/// precision.
#[test]
fn steps_match_the_formulas_of_adam() {
    let device = cpu();
    let batches: Vec<_> = (0..4).map(|seed| tokens(&images(20 + seed, 4), &device)).collect();
    let (beta1, beta2, epsilon, rate) = (0.8, 0.95, 1e-3, 0.02);
    for (weight_decay, limit) in [(0.0, None), (0.3, None), (0.0, Some(0.05)), (0.3, Some(1e9))] {
        let mut adam = Adam::new(beta1, beta2, epsilon);
        (adam.weight_decay, adam.max_grad_norm) = (weight_decay, limit);
        let mut model = model(5, None, &device);
        let mut expected: Vec<f64> =
            parameters::values(&model).into_iter().map(f64::from).collect();
        let mut moments = vec![[0.0; 2]; expected.len()];
        for (batch, t) in batches.iter().zip(1..) {
            let fixed = model.fix(&device);
            let log_probabilities = model.forward(batch, &fixed, None).log_probabilities;
            let gradients = cross_entropy(log_probabilities, batch).backward();
            let slopes = parameters::gradients(&model, &gradients);
            let norm = slopes.iter().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt();
            assert!(norm > 0.05, "the gradient of batch {t} has norm {norm}: nothing is clipped");
            let factor = limit.map_or(1.0, |limit: f64| (limit / norm).min(1.0));
            let before = parameters::values(&model);
            model = adam.step(model, &gradients, rate);
            let after = parameters::values(&model);
            let mut moved = 0;
            for (i, [m, v]) in moments.iter_mut().enumerate() {
                let g = factor * f64::from(slopes[i]);
                *m = beta1 * *m + (1.0 - beta1) * g;
                *v = beta2 * *v + (1.0 - beta2) * g * g;
                let (m, v) = (*m / (1.0 - beta1.powi(t)), *v / (1.0 - beta2.powi(t)));
                let decayed = (1.0 - rate * weight_decay) * f64::from(before[i]);
                expected[i] = decayed - rate * m / (v.sqrt() + epsilon);
                let difference = (f64::from(after[i]) - expected[i]).abs();
                let limit = 2e-6 * (1.0 + expected[i].abs());
                assert!(difference < limit, "{i} at step {t}: {} and {}", after[i], expected[i]);
                moved += usize::from((f64::from(after[i]) - f64::from(before[i])).abs() > 1e-3);
            }
            // Adam's first steps are nearly as long as the learning rate, however small the gradient is.
            assert!(limit == Some(0.05) || moved > expected.len() / 4, "{moved} moved");
        }
    }
}

/// Catches parameters that are restored in another order, and an incomplete list of parameters that is accepted.
#[test]
fn parameters_are_restored() {
    let own = model(1, None, &cpu());
    let values = parameters::values(&own);
    let doubled: Vec<f32> = values.iter().map(|v| 2.0 * v).collect();
    let model = parameters::replaced(own, &doubled).unwrap();
    assert_eq!(parameters::values(&model), doubled);
    assert!(parameters::replaced(model, &doubled[1..]).is_none());
}
