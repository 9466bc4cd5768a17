//! The Reformer: hashed attention compared with its formula, parameter counts, learning, and reproducibility. The reversible step is
//! tested next to its code.

use burn::tensor::{Device, Int, Tensor, TensorData};
use posenc_attention::draw::Draw;
use posenc_attention::image_model::tokens;
use posenc_attention::parameters;
use posenc_attention::reformer::hashing::{Draws, HashedAttention};
use posenc_attention::reformer::{Hashing, Reformer, Sizes};
use posenc_math::lff::encoding::{Encoding, Modulator};
use posenc_math::lff::parameters::reformer_base;
use posenc_math::random::stream;

const HASHING: Hashing =
    Hashing { heads: 2, head_width: 4, chunk: 12, buckets: 6, rounds: 2, dropout: 0.0 };

pub fn sizes() -> Sizes {
    let hashing = HASHING;
    Sizes { side: 4, levels: 8, layers: 2, width: 16, pixel_width: 12, feed_forward: 32, hashing }
}

pub fn encoding() -> Encoding {
    let modulator = Modulator { hidden: 8, layer_norm: true, dropout: 0.1 };
    Encoding { modulator: Some(modulator), ..crate::fourier(1.0, 1, 8, 0.1) }
}

/// Images in which each level follows from the level before it.
pub fn images(sizes: &Sizes, device: &Device) -> Tensor<2, Int> {
    let image = |i: u8| (0..sizes.length()).map(|t| ((t + usize::from(i)) % 8) as u8).collect();
    tokens(&(0..4).map(image).collect::<Vec<Vec<u8>>>(), device)
}

pub fn model(sizes: &Sizes, encoding: &Encoding, seed: u64, device: &Device) -> Reformer {
    let (mut content, mut code) = (stream(seed, "content"), stream(seed, "code"));
    Reformer::new(sizes, encoding, &mut content, &mut code, device).unwrap()
}

fn input(slots: usize, width: usize, device: &Device) -> (Vec<f64>, Tensor<3>) {
    let numbers =
        posenc_math::random::uniform_vector(&mut stream(3, "x"), slots * width, -1.0, 1.0);
    let single: Vec<f32> = numbers.iter().map(|&v| v as f32).collect();
    (numbers, Tensor::from_data(TensorData::new(single, [1, slots, width]), device))
}

/// With one chunk for all slots, hashing has no effect: the output is softmax(Q K̂ᵀ) V over earlier slots. Catches wrong keys, masks and
/// orders, and a wrong average over rounds.
#[test]
fn one_chunk_is_full_attention_to_earlier_slots() {
    let device = posenc_attention::cpu();
    let (slots, width) = (10, 6);
    for rounds in [1, 2, 3] {
        let hashing = Hashing { chunk: slots, rounds, ..HASHING };
        let mut rng = stream(1, "attention");
        let attention =
            HashedAttention::new(&mut Draw { rng: &mut rng, device: &device }, width, &hashing);
        let weights = parameters::values(&attention);
        let (numbers, x) = input(slots, width, &device);
        let draws = Draws::new(&hashing, false, &mut stream(2, "hash"), &device);
        // The chunk of a round also attends to the chunk of the previous round, which contains the same slots.
        let found = parameters::numbers(attention.forward(x, &draws, None).0);
        let inner = hashing.heads * hashing.head_width;
        let d = hashing.head_width;
        let matrix = |start: usize, rows: usize, columns: usize| {
            move |weights: &[f32], r: usize, c: usize| {
                assert!(r < rows && c < columns);
                f64::from(weights[start + r * columns + c])
            }
        };
        let (wq, wv) = (matrix(0, width, inner), matrix(width * inner, width, inner));
        let wo = matrix(2 * width * inner, inner, width);
        let project = |w: &dyn Fn(&[f32], usize, usize) -> f64, t: usize, c: usize| -> f64 {
            (0..width).map(|i| numbers[t * width + i] * w(&weights, i, c)).sum()
        };
        for t in 0..slots {
            let mut joined = vec![0.0; inner];
            for head in 0..hashing.heads {
                let row = |w: &dyn Fn(&[f32], usize, usize) -> f64, t: usize| -> Vec<f64> {
                    (head * d..(head + 1) * d).map(|c| project(w, t, c)).collect()
                };
                let q = row(&wq, t);
                let score = |s: usize| {
                    let k = row(&wq, s);
                    let square = k.iter().map(|v| v * v).sum::<f64>() / d as f64 + 1e-6;
                    let dot: f64 = q.iter().zip(&k).map(|(a, b)| a * b).sum();
                    dot / (square * d as f64).sqrt()
                };
                // The first slot attends only to itself.
                let seen: Vec<usize> = if t == 0 { vec![0] } else { (0..t).collect() };
                let exponentials: Vec<f64> = seen.iter().map(|&s| score(s).exp()).collect();
                let total: f64 = exponentials.iter().sum();
                for (&s, e) in seen.iter().zip(&exponentials) {
                    for (c, v) in row(&wv, s).iter().enumerate() {
                        joined[head * d + c] += e / total * v;
                    }
                }
            }
            for c in 0..width {
                let expected: f64 = (0..inner).map(|i| joined[i] * wo(&weights, i, c)).sum();
                let own = f64::from(found[t * width + c]);
                assert!(
                    (own - expected).abs() < 1e-5,
                    "{rounds} rounds, {t}, {c}: {own} {expected}"
                );
            }
        }
    }
}

/// Equal queries share a bucket, so a slot attends to an equal slot at any distance. Catches slots that are not sorted by bucket, and an
/// order that is not inverted.
#[test]
fn equal_slots_attend_to_each_other_across_chunks() {
    let device = posenc_attention::cpu();
    let hashing =
        Hashing { heads: 1, head_width: 8, chunk: 4, buckets: 32, rounds: 1, dropout: 0.0 };
    let (slots, width) = (32, 8);
    let mut rng = stream(1, "attention");
    let attention =
        HashedAttention::new(&mut Draw { rng: &mut rng, device: &device }, width, &hashing);
    // Two equal slots, 30 apart, with large numbers: the output of the later slot is the value of the earlier one.
    let (mut numbers, _) = input(slots, width, &device);
    for c in 0..width {
        numbers[width + c] = if c % 2 == 0 { 40.0 } else { -40.0 };
        numbers[31 * width + c] = numbers[width + c];
    }
    let tensor = |numbers: &[f64]| {
        let single: Vec<f32> = numbers.iter().map(|&v| v as f32).collect();
        Tensor::<3>::from_data(TensorData::new(single, [1, slots, width]), &device)
    };
    let draws = Draws::new(&hashing, false, &mut stream(2, "hash"), &device);
    let of_last = |numbers: &[f64]| {
        let found = parameters::numbers(attention.forward(tensor(numbers), &draws, None).0);
        found[31 * width..].to_vec()
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

/// Catches a bias that the paper's parameter counts exclude, and a missing color embedding.
#[test]
fn the_papers_model_has_the_papers_size() {
    let device = posenc_attention::cpu();
    let modulated = Encoding {
        modulator: Some(Modulator { hidden: 32, layer_norm: true, dropout: 0.1 }),
        ..encoding()
    };
    let base: u64 = reformer_base().iter().map(posenc_math::lff::parameters::Module::count).sum();
    let model = model(&Sizes::default(), &modulated, 1, &device);
    assert_eq!(parameters::count(&model) as u64, base + 53_088);
}

/// Catches a flat encoding with a color embedding, and invalid sizes that cause a panic.
#[test]
fn flat_encodings_have_no_colors_and_invalid_sizes_are_named() {
    let device = posenc_attention::cpu();
    let plane = crate::sines();
    let flat = Encoding { flat: true, ..plane.clone() };
    let count = |encoding: &Encoding| parameters::count(&model(&sizes(), encoding, 1, &device));
    assert_eq!(count(&flat) + 3 * 4, count(&plane));
    let hashing = Hashing { chunk: 7, ..HASHING };
    let (mut content, mut code) = (stream(1, "content"), stream(1, "code"));
    let wrong = Sizes { hashing, ..sizes() };
    let model = Reformer::new(&wrong, &plane, &mut content, &mut code, &device);
    assert_eq!(model.unwrap_err().0, "hashing.chunk");
}
