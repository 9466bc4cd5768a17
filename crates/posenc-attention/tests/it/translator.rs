//! The translator: padding, causal masking, and learning.

use posenc_attention::layers::TransformerSizes;
use posenc_attention::translator::{Batch, Pair, Sizes, Translator, evaluate};
use posenc_attention::{Device, parameters};
use posenc_math::random::stream;

use crate::cpu;

pub const SIZES: Sizes = Sizes {
    words: 8,
    positions: 12,
    transformer: TransformerSizes { width: 16, heads: 2, feed_forward: 32, layers: 1 },
};

pub fn model(seed: u64, device: &Device) -> Translator {
    Translator::new(&SIZES, 0.02, &mut stream(seed, "content"), device)
}

/// Catches attention to padding, and a loss on padding.
#[test]
fn a_pair_has_the_same_loss_alone_and_next_to_a_longer_one() {
    let model = model(1, &cpu());
    let short: Pair = (vec![1, 5], vec![3, 2, 4]);
    let long: Pair = (vec![7, 0, 2, 2, 6, 1, 3, 3, 4], vec![0, 1, 2, 3, 4, 5, 6]);
    let loss = |pairs: &[Pair]| evaluate(&model, pairs, &cpu());
    let (a, b) = (loss(std::slice::from_ref(&short)), loss(std::slice::from_ref(&long)));
    // The targets have four and eight tokens, including the end.
    let both = loss(&[short, long]);
    assert!((both - (4.0 * a + 8.0 * b) / 12.0).abs() < 1e-5, "{both}, {a}, {b}");
}

/// Catches a decoder that reads the word that it predicts, and a shift in the wrong direction.
#[test]
fn predictions_depend_only_on_earlier_words() {
    let (model, device) = (model(2, &cpu()), cpu());
    crate::assert_causal(&[0, 1, 2, 3], SIZES.words + 2, |changed| {
        let mut target = vec![3, 2, 6, 1];
        changed.into_iter().for_each(|word| target[word] = 0);
        let batch = Batch::new(&[(vec![1, 5, 2, 7], target)], &device);
        parameters::numbers(model.log_probabilities(&batch))
    });
}

/// Catches position embeddings that are not trained, and a row of the start token among those of the target.
#[test]
fn position_embeddings_are_trained() {
    let (before, device) = (model(1, &cpu()), cpu());
    let pairs = [(vec![1, 5, 2, 7, 3], vec![3, 2, 4, 0])];
    let (losses, after) = crate::trained(
        before.clone(),
        posenc_attention::optimizer::Adam::new(0.9, 0.98, 1e-9),
        0.01,
        20,
        |model| model.loss(&pairs, &SIZES, &device),
    );
    assert!(losses[19] < losses[0]);
    for (before, after) in before.positions().into_iter().zip(after.positions()) {
        assert_eq!(before.len(), SIZES.positions * SIZES.transformer.width);
        let moved = |(a, b): (&[f32], &[f32])| a != b;
        let rows = before.chunks_exact(16).zip(after.chunks_exact(16)).map(moved);
        // Rows beyond the sentences keep their start.
        let rows: Vec<bool> = rows.collect();
        assert!(rows[..4].iter().all(|&moved| moved) && !rows[5..].contains(&true), "{rows:?}");
    }
    assert_eq!(parameters::count(&after), parameters::count(&before));
}
