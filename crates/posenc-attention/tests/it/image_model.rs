//! The image model: causal masking, learning, and reproducibility.

use posenc_attention::image_model::{ImageModel, Measured, Sizes, cross_entropy, evaluate, tokens};
use posenc_attention::layers::TransformerSizes;
use posenc_attention::optimizer::Adam;
use posenc_attention::parameters;
use posenc_attention::trainer::Trainer;
use posenc_data::generate::GrayLeaves;
use posenc_math::lff::divergence::{Divergence, Form};
use posenc_math::lff::encoding::{Encoding, Features, Modulator};
use posenc_math::lff::schedule::{Decay, LearningRate};
use posenc_math::random::stream;

const SIZES: Sizes = Sizes {
    side: 6,
    levels: 4,
    concatenated: None,
    transformer: TransformerSizes { width: 16, heads: 2, feed_forward: 32, layers: 2 },
};

fn encoding() -> Encoding {
    Encoding {
        features: Features::Fourier,
        gamma: Some(1.0),
        learned: true,
        modulator: Some(Modulator { hidden: 8, layer_norm: true, dropout: 0.1 }),
        ..Encoding::none()
    }
}

fn model(seed: u64) -> ImageModel {
    let device = posenc_attention::cpu();
    let (mut content, mut code) = (stream(seed, "content"), stream(seed, "code"));
    ImageModel::new(&SIZES, &encoding(), &mut content, &mut code, &device).unwrap()
}

fn images(seed: u64, count: usize) -> Vec<Vec<u8>> {
    let law = GrayLeaves::new(SIZES.side, SIZES.levels);
    let mut rng = stream(seed, "images");
    (0..count).map(|_| law.image(&mut rng)).collect()
}

/// The model after training, and its measurements every `measure_every` steps.
fn run(
    seed: u64,
    (steps, measure_every): (usize, usize),
    divergence: Option<Divergence>,
) -> (ImageModel, Measured) {
    let device = posenc_attention::cpu();
    let law = GrayLeaves::new(SIZES.side, SIZES.levels);
    let mut rng = stream(seed, "batches");
    let learning_rate = LearningRate { peak: 0.01, warm_up: 5, decay: Decay::Constant, steps };
    let mut model = model(seed);
    if divergence.is_some() {
        model = model.with_target(1.0, &device);
    }
    let mut masks = stream(seed, "masks");
    let (fixed, held_out) = (model.fix(&SIZES, &device), images(9, 20));
    let mut trainer = Trainer::new(model, Adam::new(0.9, 0.98, 1e-9), learning_rate);
    let mut measured = Measured::default();
    while trainer.is_running() {
        let batch: Vec<_> = (0..8).map(|_| law.image(&mut rng)).collect();
        let nats =
            trainer.step(|model| Some(model.loss(&batch, &SIZES, &fixed, divergence, &mut masks)));
        measured.record(&trainer, nats, measure_every, |model| {
            evaluate(model, &SIZES, &fixed, &held_out, &device)
        });
    }
    (trainer.model, measured)
}

/// Catches a mask that lets a pixel attend to itself or to later pixels, and a shift in the wrong direction.
#[test]
fn no_pixel_sees_itself_or_later_ones() {
    let (model, device) = (model(1), posenc_attention::cpu());
    let fixed = model.fix(&SIZES, &device);
    let length = SIZES.length();
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

/// Compares the gradient of the whole model with finite differences of its loss, one parameter at a time.
#[test]
fn gradients_match_finite_differences() {
    let (model, device) = (model(3), posenc_attention::cpu());
    let batch = tokens(&images(4, 4), &device);
    let loss = |model: &ImageModel| {
        let fixed = model.fix(&SIZES, &device);
        f64::from(
            parameters::numbers(cross_entropy(
                model.forward(&batch, &fixed, None).log_probabilities,
                &batch,
            ))[0],
        )
    };
    let fixed = model.fix(&SIZES, &device);
    let gradients =
        cross_entropy(model.forward(&batch, &fixed, None).log_probabilities, &batch).backward();
    let slopes = parameters::gradients(&model, &gradients);
    let values = parameters::values(&model);
    assert_eq!(slopes.len(), values.len());
    // The largest slopes: in single precision, differences of small ones are noise.
    let mut order: Vec<usize> = (0..slopes.len()).collect();
    order.sort_by(|&a, &b| slopes[b].abs().total_cmp(&slopes[a].abs()));
    for &i in order.iter().take(400).step_by(13) {
        let moved = |by: f32| {
            let mut values = values.clone();
            values[i] += by;
            loss(&parameters::replaced(model.clone(), &values).unwrap())
        };
        let step = 4e-3;
        let slope = (moved(step) - moved(-step)) / f64::from(2.0 * step);
        let expected = f64::from(slopes[i]);
        assert!(
            (slope - expected).abs() < 0.03 * expected.abs() + 2e-4,
            "{i}: {slope} and {expected}"
        );
    }
}

#[test]
fn the_model_learns_reproducibly() {
    let [(a, curve), (b, same), (other, _)] = [1, 1, 2].map(|seed| run(seed, (60, 1), None));
    assert_eq!(curve, same);
    assert_eq!(parameters::values(&a), parameters::values(&b));
    assert_ne!(parameters::values(&a), parameters::values(&other));
    let [first, last] = [0, 59].map(|i| curve.measurements[i].evaluation.bits);
    assert!(last < first - 0.3, "{first} to {last}");
    for m in &curve.measurements {
        let (left, upper) = (&m.evaluation.left, &m.evaluation.upper);
        assert!(left.iter().chain(upper).all(|w| (0.0..=1.0).contains(w)));
    }
}

/// Catches a divergence that is missing from the gradient. With a large weight, the covariance form makes the frequencies isotropic; the
/// pooled form does not.
#[test]
fn the_divergence_shapes_the_frequencies() {
    let shape = |divergence: Option<Divergence>| {
        let (model, _) = run(1, (150, 150), divergence);
        let (rows, m) = model.position_encoding().frequencies().unwrap();
        posenc_math::lff::learned::FrequencyStatistics::new(&rows, m, &[]).unwrap()
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
    let device = posenc_attention::cpu();
    let batches: Vec<_> = (0..4).map(|seed| tokens(&images(20 + seed, 4), &device)).collect();
    let (beta1, beta2, epsilon, rate) = (0.8, 0.95, 1e-3, 0.02);
    for (weight_decay, limit) in [(0.0, None), (0.3, None), (0.0, Some(0.05)), (0.3, Some(1e9))] {
        let mut adam = Adam::new(beta1, beta2, epsilon);
        (adam.weight_decay, adam.max_grad_norm) = (weight_decay, limit);
        let mut model = model(5);
        let mut expected: Vec<f64> =
            parameters::values(&model).into_iter().map(f64::from).collect();
        let mut moments = vec![[0.0; 2]; expected.len()];
        for (batch, t) in batches.iter().zip(1..) {
            let fixed = model.fix(&SIZES, &device);
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
    let (trained, _) = run(1, (5, 5), None);
    let values = parameters::values(&trained);
    let doubled: Vec<f32> = values.iter().map(|v| 2.0 * v).collect();
    let model = parameters::replaced(trained.clone(), &doubled).unwrap();
    assert_eq!(parameters::values(&model), doubled);
    assert!(parameters::replaced(model, &doubled[1..]).is_none());
}
