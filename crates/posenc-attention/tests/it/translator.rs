//! The translator: padding, causal masking, and learning.

use posenc_attention::layers::TransformerSizes;
use posenc_attention::optimizer::Adam;
use posenc_attention::parameters;
use posenc_attention::trainer::Trainer;
use posenc_attention::translator::{Batch, Sizes, Translator, evaluate};
use posenc_data::generate::{Lengths, Translation};
use posenc_math::lff::schedule::{Decay, LearningRate};
use posenc_math::random::stream;

const SIZES: Sizes = Sizes {
    words: 8,
    positions: 12,
    transformer: TransformerSizes { width: 16, heads: 2, feed_forward: 32, layers: 1 },
};

type Words = (Vec<usize>, Vec<usize>);

fn model(seed: u64) -> Translator {
    Translator::new(&SIZES, 0.02, &mut stream(seed, "content"), &posenc_attention::cpu())
}

fn loss(model: &Translator, pairs: &[Words]) -> f64 {
    let batch = Batch::new(pairs, &posenc_attention::cpu()).unwrap();
    f64::from(parameters::numbers(model.cross_entropy(&batch))[0])
}

/// Catches attention to padding, and a loss on padding.
#[test]
fn a_pair_has_the_same_loss_alone_and_next_to_a_longer_one() {
    let model = model(1);
    let short: Words = (vec![1, 5], vec![3, 2, 4]);
    let long: Words = (vec![7, 0, 2, 2, 6, 1, 3, 3, 4], vec![0, 1, 2, 3, 4, 5, 6]);
    let (a, b) =
        (loss(&model, std::slice::from_ref(&short)), loss(&model, std::slice::from_ref(&long)));
    // The targets have four and eight tokens, including the end.
    let both = loss(&model, &[short, long]);
    assert!((both - (4.0 * a + 8.0 * b) / 12.0).abs() < 1e-5, "{both}, {a}, {b}");
}

/// Catches a decoder that reads the word that it predicts, and a shift in the wrong direction.
#[test]
fn predictions_depend_only_on_earlier_words() {
    let (model, device) = (model(2), posenc_attention::cpu());
    let predictions = |target: &[usize]| {
        let batch = Batch::new(&[(vec![1, 5, 2, 7], target.to_vec())], &device).unwrap();
        let numbers = parameters::numbers(model.log_probabilities(&batch));
        let tokens = SIZES.words + 2;
        assert_eq!(numbers.len(), (target.len() + 1) * tokens);
        numbers.chunks_exact(tokens).map(<[f32]>::to_vec).collect::<Vec<_>>()
    };
    let before = predictions(&[3, 2, 6, 1]);
    for changed in 0..4 {
        let mut other = [3, 2, 6, 1];
        other[changed] = 0;
        let after = predictions(&other);
        // Prediction i is of word i.
        assert_eq!(
            before[..=changed],
            after[..=changed],
            "a prediction up to word {changed} depends on it"
        );
        assert_ne!(
            before[changed + 1],
            after[changed + 1],
            "the prediction after word {changed} does not depend on it"
        );
    }
}

/// Catches position embeddings that are not trained, seeds without an effect, and results that depend on anything but the seed.
#[test]
fn the_model_learns_reproducibly() {
    let run = |seed: u64| {
        let languages = Translation::new(8, Lengths::Uniform, 12, &mut stream(seed, "languages"));
        let mut rng = stream(seed, "batches");
        let draw = |rng: &mut _, count: usize| -> Vec<Words> {
            let pair = |rng: &mut _| {
                let pair = languages.pair(rng);
                (pair.source, pair.target)
            };
            (0..count).map(|_| pair(rng)).collect()
        };
        let held_out = draw(&mut stream(seed, "held out"), 40);
        let rate = LearningRate { peak: 0.01, warm_up: 10, decay: Decay::Constant, steps: 150 };
        let device = posenc_attention::cpu();
        let mut trainer = Trainer::new(model(seed), Adam::new(0.9, 0.98, 1e-9), rate);
        let mut losses = Vec::new();
        while trainer.is_running() {
            let batch = draw(&mut rng, 16);
            trainer.step(|model| model.loss(&batch, &SIZES, &device));
            if trainer.is_measured(50) {
                losses.push((trainer.steps(), evaluate(&trainer.model, &held_out, &device)));
            }
        }
        assert_eq!(trainer.diverged(), None);
        (losses, trainer.model)
    };
    let ((losses, a), (same, b), (other, _)) = (run(1), run(1), run(2));
    assert_eq!(losses, same);
    assert_eq!(parameters::values(&a), parameters::values(&b));
    assert_ne!(losses, other);
    let steps: Vec<usize> = losses.iter().map(|l| l.0).collect();
    assert_eq!(steps, [50, 100, 150]);
    assert!(losses[2].1 < 0.9 * (8f64).ln(), "{losses:?}");
    for (before, after) in model(1).positions().into_iter().zip(a.positions()) {
        assert_eq!(before.len(), SIZES.positions * SIZES.transformer.width);
        let moved = before.iter().zip(&after).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(moved > 0.05, "{moved}");
    }
}
