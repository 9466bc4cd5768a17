//! The model of boxes: masking, dependence on positions, and learning.

use posenc_attention::boxes::{Bounds, LabelledScreen, Labeller, Layers, Masks};
use posenc_attention::layers::TransformerSizes;
use posenc_attention::optimizer::Adam;
use posenc_attention::parameters;
use posenc_attention::trainer::Trainer;
use posenc_math::lff::encoding::{Encoding, Features, Modulator};
use posenc_math::lff::schedule::{Decay, LearningRate};
use posenc_math::random::{stream, uniform_vector};
use rand_chacha::ChaCha8Rng;

fn layers(dropout: f64) -> Layers {
    let sizes = TransformerSizes { width: 32, heads: 4, feed_forward: 32, layers: 1 };
    Layers { sizes, dropout }
}

fn fourier(groups: usize) -> Encoding {
    Encoding {
        features: Features::Fourier,
        groups,
        gamma: Some(10.0),
        learned: true,
        scale: Some(3.0),
        modulator: Some(Modulator { hidden: 16, layer_norm: false, dropout: 0.2 }),
        ..Encoding::none()
    }
}

fn encodings() -> [Encoding; 4] {
    let embed = Encoding { features: Features::Embed, summed: true, ..Encoding::none() };
    [fourier(1), fourier(2), fourier(4), embed]
}

fn labeller(encoding: &Encoding, seed: u64) -> Labeller {
    let (mut content, mut code) = (stream(seed, "content"), stream(seed, "code"));
    let device = posenc_attention::cpu();
    Labeller::new(layers(0.1), 3, encoding, &mut content, &mut code, &device).unwrap()
}

fn random_box(rng: &mut ChaCha8Rng) -> Bounds {
    let draws = uniform_vector(rng, 4, 0.0, 1.0);
    let (left, top) = (80.0 * draws[0], 80.0 * draws[1]);
    [left, top, left + 1.0 + 18.0 * draws[2], top + 1.0 + 18.0 * draws[3]]
}

/// Label 0 in the left half; in the right half 1 for the uppermost box of the screen, else 2.
fn labelled(rng: &mut ChaCha8Rng, count: usize) -> LabelledScreen {
    let boxes: Vec<Bounds> = (0..count).map(|_| random_box(rng)).collect();
    let uppermost = boxes.iter().map(|b| b[1]).fold(f64::INFINITY, f64::min);
    let label = |b: &Bounds| match b[0] < 40.0 {
        true => 0,
        false if b[1] == uppermost => 1,
        false => 2,
    };
    let labels = boxes.iter().map(label).collect();
    LabelledScreen { boxes, labels }
}

fn trained(model: Labeller, screens: &[LabelledScreen], steps: usize) -> (Vec<f64>, Labeller) {
    let device = posenc_attention::cpu();
    let learning_rate = LearningRate { peak: 0.01, warm_up: 10, decay: Decay::Cosine, steps };
    let mut trainer = Trainer::new(model, Adam::new(0.9, 0.999, 1e-8), learning_rate);
    let (mut layers, mut code) = (stream(1, "layers"), stream(1, "code masks"));
    let mut losses = Vec::new();
    for batch in screens.chunks(32).cycle().take(steps) {
        let batch: Vec<&LabelledScreen> = batch.iter().collect();
        let masks = Masks { layers: &mut layers, code: &mut code };
        losses.push(trainer.step(|model| model.loss(&batch, Some(masks), &device)));
    }
    assert!(trainer.operations() > 0.0 && !trainer.is_running());
    (losses, trainer.model)
}

fn close(a: &[f32], b: &[f32]) {
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(b) {
        assert!((a - b).abs() < 1e-5, "{a} {b}");
    }
}

/// Catches position encodings that do not reach the model, boxes that do not attend to each other, random numbers that do not come from
/// the seed, and labels of another screen of the batch.
#[test]
fn labels_are_learned_only_with_positions() {
    let mut rng = stream(1, "screens");
    let screens: Vec<LabelledScreen> = (0..1024).map(|i| labelled(&mut rng, 1 + i % 5)).collect();
    let held_out: Vec<LabelledScreen> = (0..100).map(|i| labelled(&mut rng, 1 + i % 5)).collect();
    let truth: Vec<usize> = held_out.iter().flat_map(|s| s.labels.clone()).collect();
    let right = |model: &Labeller| {
        let all: Vec<&LabelledScreen> = held_out.iter().collect();
        let said = model.labels(&all, &posenc_attention::cpu()).unwrap();
        assert_eq!(said.len(), truth.len());
        said.iter().zip(&truth).filter(|(a, b)| a == b).count() as f64 / truth.len() as f64
    };
    for encoding in encodings() {
        let (losses, model) = trained(labeller(&encoding, 1), &screens, 250);
        assert!(right(&model) > 0.8, "{encoding:?}: {}", right(&model));
        assert_eq!(losses, trained(labeller(&encoding, 1), &screens, 250).0);
    }
    let (_, model) = trained(labeller(&Encoding::none(), 1), &screens, 250);
    assert!(right(&model) < 0.6, "{}", right(&model));
}

/// Catches padding that is attended to or counted in the loss: a batch must have the same loss and gradients as its screens alone.
#[test]
fn padding_does_not_change_losses_or_gradients() {
    let device = posenc_attention::cpu();
    let mut rng = stream(3, "screens");
    let screens: Vec<LabelledScreen> = [2, 5, 1].map(|n| labelled(&mut rng, n)).to_vec();
    let model = labeller(&fourier(2), 1);
    let loss = |screens: &[&LabelledScreen]| {
        let loss = model.loss(screens, None, &device).unwrap().value;
        (parameters::number(loss.clone()), parameters::gradients(&model, &loss.backward()))
    };
    let all: Vec<&LabelledScreen> = screens.iter().collect();
    let (together, gradients) = loss(&all);
    assert!(gradients.iter().all(|g| g.is_finite()) && gradients.iter().any(|g| *g != 0.0));
    // The loss is a mean over boxes, so the weight of a screen is its number of boxes.
    let mut sum = (0.0, vec![0.0; gradients.len()]);
    for screen in &all {
        let share = screen.boxes.len() as f64 / 8.0;
        let (own, own_gradients) = loss(&[screen]);
        sum.0 += share * own;
        let both = sum.1.iter_mut().zip(own_gradients);
        both.for_each(|(sum, own)| *sum += share as f32 * own);
    }
    assert!((together - sum.0).abs() < 1e-6, "{together} {}", sum.0);
    close(&gradients, &sum.1);
}

/// Catches a model that depends on the order of boxes, one that ignores the other boxes, and one that distinguishes boxes without
/// positions.
#[test]
fn only_positions_distinguish_boxes() {
    let device = posenc_attention::cpu();
    let mut rng = stream(4, "screens");
    let boxes = labelled(&mut rng, 4).boxes;
    let turned: Vec<Bounds> = [2, 0, 3, 1].map(|i| boxes[i]).to_vec();
    for encoding in encodings() {
        let model = labeller(&encoding, 2);
        let rows = model.of_screen(&boxes, &device).unwrap();
        let moved = model.of_screen(&turned, &device).unwrap();
        let wanted: Vec<f32> =
            [2, 0, 3, 1].iter().flat_map(|&i| rows[3 * i..][..3].to_vec()).collect();
        close(&moved, &wanted);
        let alone = model.of_screen(&boxes[..1], &device).unwrap();
        assert!(rows[..3].iter().zip(&alone).any(|(a, b)| (a - b).abs() > 1e-4));
        assert!(rows[..3].iter().zip(&rows[3..]).any(|(a, b)| (a - b).abs() > 1e-4));
    }
    let model = labeller(&Encoding::none(), 2);
    let rows = model.of_screen(&boxes, &device).unwrap();
    rows.chunks_exact(3).for_each(|row| close(row, &rows[..3]));
}

/// Catches a modulator that changes the masks of the layers, and dropout that is not applied.
#[test]
fn position_encodings_have_a_mask_stream_of_their_own() {
    let device = posenc_attention::cpu();
    let screen = labelled(&mut stream(5, "screens"), 3);
    let places = [fourier(2), Encoding::none()].map(|encoding| {
        let (mut layers, mut code) = (stream(1, "layers"), stream(1, "code masks"));
        let masks = Masks { layers: &mut layers, code: &mut code };
        let model = labeller(&encoding, 1);
        let loss = model.loss(&[&screen], Some(masks), &device).unwrap().value;
        let plain = model.loss(&[&screen], None, &device).unwrap().value;
        assert_ne!(parameters::number(loss), parameters::number(plain));
        [layers.get_word_pos(), code.get_word_pos()]
    });
    assert!(places[0][0] > 0 && places[0][0] == places[1][0]);
    assert!(places[0][1] > 0 && places[1][1] == 0);
}

/// Catches invalid screens that cause a panic instead of being rejected.
#[test]
fn invalid_screens_are_rejected() {
    let device = posenc_attention::cpu();
    let mut rng = stream(6, "screens");
    let model = labeller(&fourier(2), 1);
    let good = labelled(&mut rng, 2);
    let refused = |change: &dyn Fn(&mut LabelledScreen)| {
        let mut screen = good.clone();
        change(&mut screen);
        model.loss(&[&good, &screen], None, &device).is_none()
    };
    assert!(!refused(&|_| {}));
    assert!(refused(&|s| s.labels[0] = 3));
    assert!(refused(&|s| s.labels.truncate(1)));
    assert!(refused(&|s| (s.boxes, s.labels) = (vec![], vec![])));
    assert!(model.loss(&[], None, &device).is_none());
}
