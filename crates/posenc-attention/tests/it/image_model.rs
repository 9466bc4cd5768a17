//! The image model: causal masking, the optimizer, LSH attention compared with its formula, reversible
//! steps, and the paper's size.

use burn::tensor::{Int, Tensor, TensorData, activation};
use posenc_attention::draw::Draw;
use posenc_attention::image_model::lsh::LshAttention;
use posenc_attention::image_model::{Fixed, ImageModel, Lsh, Sizes, cross_entropy, tokens};
use posenc_attention::layers::TransformerSizes;
use posenc_attention::optimizer::Adam;
use posenc_attention::trainer::Trainer;
use posenc_attention::{Device, parameters};
use posenc_data::generate::GrayLeaves;
use posenc_math::lff::divergence::{Divergence, Form};
use posenc_math::lff::encoding::{Encoding, Modulator};
use posenc_math::lff::parameters::reformer_base;
use posenc_math::lff::schedule::{Decay, LearningRate};
use posenc_math::random::{stream, uniform_vector};
use rand_chacha::ChaCha8Rng;

use crate::{assert_close, cpu, fourier, streams};

const SIDE: usize = 6;

/// A small model of gray images with full attention.
pub const GRAY: Sizes = Sizes {
    side: SIDE,
    levels: 4,
    color_width: None,
    concatenated: None,
    transformer: TransformerSizes { width: 16, heads: 2, feed_forward: 32, layers: 2 },
    lsh: None,
    reversible: false,
    divergence: None,
};

const LSH: Lsh = Lsh { head_width: 4, chunk: 12, buckets: 6, rounds: 2, dropout: 0.0 };

/// A small Reformer: colors, LSH attention and reversible layers.
pub const REFORMER: Sizes =
    Sizes { side: 4, levels: 8, color_width: Some(4), lsh: Some(LSH), reversible: true, ..GRAY };

pub fn built(sizes: &Sizes, encoding: &Encoding, seed: u64, device: &Device) -> ImageModel {
    ImageModel::new(sizes, encoding, streams(seed), device)
}

pub fn model(seed: u64, device: &Device) -> ImageModel {
    built(&GRAY, &fourier(1.0, 1, 8, 0.1), seed, device)
}

/// Learned features with a modulator that has layer norms.
pub fn modulated(hidden: usize) -> Encoding {
    let modulator = Modulator { hidden, layer_norm: true, dropout: 0.1 };
    Encoding { modulator: Some(modulator), ..fourier(1.0, 1, 8, 0.1) }
}

/// Images in which each level follows from the level before it.
pub fn repeated(sizes: &Sizes, device: &Device) -> Tensor<2, Int> {
    let image = |i: u8| (0..sizes.length()).map(|t| ((t + usize::from(i)) % 8) as u8).collect();
    tokens(&(0..4).map(image).collect::<Vec<Vec<u8>>>(), device)
}

fn trainer(model: ImageModel, steps: usize) -> Trainer<ImageModel> {
    let learning_rate = LearningRate { peak: 0.01, warm_up: 0, decay: Decay::Constant, steps };
    Trainer::new(model, Adam::new(0.9, 0.98, 1e-9), learning_rate)
}

/// Losses of steps on one batch, and the trained model.
pub fn stepped(
    model: ImageModel,
    batch: &Tensor<2, Int>,
    fixed: &Fixed,
    steps: usize,
    draws: &mut ChaCha8Rng,
) -> (Vec<f64>, ImageModel) {
    let mut trainer = trainer(model, steps);
    let losses = (0..steps).map(|_| ImageModel::step(&mut trainer, batch, fixed, draws)).collect();
    assert!(trainer.operations > 0.0);
    (losses, trainer.model)
}

/// Log-probabilities of a pass without dropout.
fn passed(model: &ImageModel, images: &Tensor<2, Int>, fixed: &Fixed) -> Tensor<3> {
    model.forward(images, fixed, false, &mut stream(2, "hash")).0
}

fn images(seed: u64, count: usize) -> Vec<Vec<u8>> {
    let law = GrayLeaves::new(SIDE, 4);
    let mut rng = stream(seed, "images");
    (0..count).map(|_| law.image(&mut rng)).collect()
}

/// Catches a mask that lets a pixel attend to itself or to later pixels, and a shift in the wrong direction.
#[test]
fn no_pixel_sees_itself_or_later_ones() {
    let (model, device) = (model(1, &cpu()), cpu());
    let (fixed, image) = (model.fix(&device), images(2, 1).remove(0));
    crate::assert_causal(&[0, 7, SIDE * SIDE - 1], 4, |changed| {
        let mut image = image.clone();
        changed.into_iter().for_each(|pixel| image[pixel] = (image[pixel] + 1) % 4);
        parameters::numbers(passed(&model, &tokens(&[image], &device), &fixed))
    });
}

/// Catches a stream that is reconstructed incorrectly, a gradient that is lost or counted twice, and random numbers or orders that differ when
/// a layer is recomputed. The reference is one graph of the whole model.
#[test]
fn reversible_gradients_match_a_plain_graph() {
    let (device, mut sizes) = (cpu(), REFORMER);
    sizes.transformer.layers = 3;
    let lsh = Lsh { chunk: 6, dropout: 0.2, ..LSH };
    let divergence = Divergence { form: Form::Pooled, weight: 0.5 };
    for (lsh, divergence) in [(Some(lsh), None), (None, Some(divergence))] {
        let sizes = Sizes { lsh, divergence, ..sizes };
        let model = built(&sizes, &modulated(8), 1, &device);
        let (fixed, images) = (model.fix(&device), repeated(&sizes, &device));
        let loss = model.loss(&images, &fixed, &mut stream(5, "step"));
        let nats = parameters::number(loss.value.clone());
        let whole = loss.penalty.into_iter().fold(loss.value, |loss, penalty| loss + penalty);
        let expected = parameters::gradients(&model, &whole.backward());
        let mut trainer = trainer(model.clone(), 1);
        let own = ImageModel::step(&mut trainer, &images, &fixed, &mut stream(5, "step"));
        assert!((own - nats).abs() < 1e-6, "{own} {nats}");
        // After one step the first moment is a tenth of the gradient.
        let [values, moments, _] = trainer.state();
        let largest = expected.iter().fold(0.0f32, |m, g| m.max(g.abs()));
        let found: Vec<f32> = moments.iter().map(|m| 10.0 * m).collect();
        assert_close(&found, &expected, 1e-4 * largest);
        let moved = expected.iter().filter(|g| g.abs() > 1e-4 * largest).count();
        assert!(moved > expected.len() / 2);
        assert_ne!(values, parameters::values(&model));
    }
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
        let mut model = model(5, &device);
        let mut expected: Vec<f64> =
            parameters::values(&model).into_iter().map(f64::from).collect();
        let mut moments = vec![[0.0; 2]; expected.len()];
        for (batch, t) in batches.iter().zip(1..) {
            let fixed = model.fix(&device);
            let gradients = cross_entropy(passed(&model, batch, &fixed), batch).backward();
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

fn random(count: usize) -> Vec<f32> {
    let numbers = uniform_vector(&mut stream(3, "x"), count, -1.0, 1.0);
    numbers.into_iter().map(|v| v as f32).collect()
}

fn slots_of(numbers: &[f32], width: usize) -> Tensor<3> {
    let shape = [1, numbers.len() / width, width];
    Tensor::from_data(TensorData::new(numbers.to_vec(), shape), &cpu())
}

/// With one chunk for all slots, hashing has no effect: the output is softmax(Q K̂ᵀ) V over earlier slots. Catches wrong keys, masks and
/// orders, and a wrong average over rounds.
#[test]
fn one_chunk_is_full_attention_to_earlier_slots() {
    let device = cpu();
    let (slots, width, heads, d) = (10, 6, 2, LSH.head_width);
    let x = slots_of(&random(slots * width), width);
    let tensor = |numbers: Vec<f32>, shape: [usize; 2]| {
        Tensor::<2>::from_data(TensorData::new(numbers, shape), &device)
    };
    // The first slot attends only to itself.
    let hidden = |i: usize| if i % slots < (i / slots).max(1) { 0.0 } else { -1e9 };
    let bias = tensor((0..slots * slots).map(hidden).collect(), [slots; 2]);
    for rounds in [1, 2, 3] {
        let lsh = Lsh { chunk: slots, rounds, ..LSH };
        let mut rng = stream(1, "attention");
        let attention =
            LshAttention::new(&mut Draw { rng: &mut rng, device: &device }, width, heads, &lsh);
        // The chunk of a round also attends to the chunk of the previous round, which contains the same slots.
        let (found, _) = attention.forward(x.clone(), false, &mut stream(2, "hash"), None);
        let (weights, size) = (parameters::values(&attention), width * heads * d);
        let matrix = |place: usize, shape| tensor(weights[place * size..][..size].to_vec(), shape);
        let [query, value] =
            [0, 1].map(|i| x.clone().reshape([slots, width]).matmul(matrix(i, [width, heads * d])));
        let heads = (0..heads).map(|head| {
            let part = |all: &Tensor<2>| all.clone().slice([0..slots, head * d..(head + 1) * d]);
            let (q, v) = (part(&query), part(&value));
            let k = q.clone() / (q.clone().powf_scalar(2.0).mean_dim(1) + 1e-6).sqrt();
            let scores = q.matmul(k.transpose()) / (d as f64).sqrt() + bias.clone();
            activation::softmax(scores, 1).matmul(v)
        });
        let joined = Tensor::cat(heads.collect(), 1);
        let expected = joined.clone().matmul(matrix(2, [joined.dims()[1], width]));
        assert_close(&parameters::numbers(found), &parameters::numbers(expected), 1e-5);
    }
}

/// Equal queries share a bucket, so a slot attends to an equal slot at any distance. Catches slots that are not sorted by bucket, and an
/// order that is not inverted.
#[test]
fn equal_slots_attend_to_each_other_across_chunks() {
    let device = cpu();
    let lsh = Lsh { head_width: 8, chunk: 4, buckets: 32, rounds: 1, dropout: 0.0 };
    let (slots, width) = (32, 8);
    let mut rng = stream(1, "attention");
    let attention = LshAttention::new(&mut Draw { rng: &mut rng, device: &device }, width, 1, &lsh);
    // Two equal slots, 30 apart, with large numbers: the output of the later slot is the value of the earlier one.
    let mut numbers = random(slots * width);
    for c in 0..width {
        numbers[width + c] = if c % 2 == 0 { 40.0 } else { -40.0 };
        numbers[31 * width + c] = numbers[width + c];
    }
    let of_last = |numbers: &[f32]| {
        let draws = &mut stream(2, "hash");
        let (found, _) = attention.forward(slots_of(numbers, width), false, draws, None);
        parameters::numbers(found)[31 * width..].to_vec()
    };
    let with = of_last(&numbers);
    // Only slot 1 matters: changing the other slots has no effect, changing slot 1 does.
    let mut others = numbers.clone();
    for slot in (2..31).chain([0]) {
        for c in 0..width {
            others[slot * width + c] *= -0.5;
        }
    }
    let difference =
        |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| (x - y).abs()).fold(0.0f32, f32::max);
    assert!(difference(&with, &of_last(&others)) < 1e-3);
    let mut without = numbers.clone();
    without[width..2 * width].fill(0.1);
    assert!(difference(&with, &of_last(&without)) > 1.0);
}

/// Catches a bias that the paper's parameter counts exclude, a missing color embedding, and operations that are not counted: dense layers
/// alone need 1.139 · 10¹⁵ operations for 256 images.
#[test]
fn the_papers_model_has_the_papers_size() {
    let sizes = Sizes {
        side: 64,
        levels: 256,
        color_width: Some(256),
        transformer: TransformerSizes { width: 1024, heads: 8, feed_forward: 4096, layers: 6 },
        lsh: Some(Lsh::default()),
        ..REFORMER
    };
    let base: u64 = reformer_base().iter().map(posenc_math::lff::parameters::Module::count).sum();
    let model = built(&sizes, &modulated(32), 1, &cpu());
    assert_eq!(parameters::count(&model) as u64, base + 53_088);
    let cost = sizes.operations(256);
    assert!(cost > 1.139e15 && cost < 1.25e15, "{cost:e}");
}

/// Catches a flat encoding with a color embedding.
#[test]
fn flat_encodings_have_no_colors() {
    let plane = crate::sines();
    let flat = Encoding { flat: true, ..plane.clone() };
    let count = |encoding: &Encoding| parameters::count(&built(&REFORMER, encoding, 1, &cpu()));
    assert_eq!(count(&flat) + 3 * 4, count(&plane));
}

/// Catches a combination of attention and layers that does not train, a reversible step that is another one than the plain one, and
/// attention to neighbors that is missing or not a share.
#[test]
fn attention_layers_and_colors_combine() {
    let lsh = Some(Lsh { chunk: 8, ..LSH });
    for (color_width, lsh, reversible) in
        [(None, None, true), (None, lsh, false), (Some(4), None, false), (Some(4), lsh, false)]
    {
        let sizes = Sizes { color_width, lsh, reversible, ..REFORMER };
        let model = built(&sizes, &modulated(8), 1, &cpu());
        let (fixed, batch) = (model.fix(&cpu()), repeated(&sizes, &cpu()));
        let (losses, model) = stepped(model, &batch, &fixed, 20, &mut stream(1, "steps"));
        assert!(losses[19] < losses[0], "{sizes:?}: {losses:?}");
        let images: Vec<u8> = (0..sizes.length()).map(|t| (t % 8) as u8).collect();
        let found = model.evaluate(&fixed, &[images], &mut stream(7, "measure"));
        assert_eq!(found.left.len(), if lsh.is_none() { 2 } else { 0 });
        let mut both = found.left.iter().zip(&found.upper);
        assert!(both.all(|(l, u)| *l > 0.0 && *u > 0.0 && l + u < 1.0), "{found:?}");
        assert!(found.bits < 4.0, "{found:?}");
    }
}
