//! The model of boxes: masking, and dependence on positions.

use posenc_attention::boxes::{Bounds, LabelledScreen, Labeller, Masks};
use posenc_attention::layers::TransformerSizes;
use posenc_attention::optimizer::Adam;
use posenc_attention::{Device, parameters};
use posenc_math::lff::encoding::Encoding;
use posenc_math::random::{stream, uniform_vector};
use rand_chacha::ChaCha8Rng;

use crate::models::numbers;
use crate::{assert_close, cpu, streams, summed_tables, trained};

fn fourier(groups: usize) -> Encoding {
    Encoding { scale: Some(3.0), ..crate::fourier(10.0, groups, 16, 0.2) }
}

fn labeller(encoding: &Encoding, seed: u64, device: &Device) -> Labeller {
    let sizes = TransformerSizes { width: 32, heads: 4, feed_forward: 32, layers: 1 };
    Labeller::new(sizes, 0.1, 3, encoding, streams(seed), device)
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

/// The losses of a training on screens of one to five boxes, and the parameters.
pub fn learned(seed: u64, steps: usize, device: &Device) -> (Vec<f64>, Vec<f32>) {
    let mut rng = stream(1, "screens");
    let screens: Vec<LabelledScreen> = (0..1024).map(|i| labelled(&mut rng, 1 + i % 5)).collect();
    let (mut layers, mut code) = (stream(seed, "layers"), stream(seed, "code masks"));
    let mut batches = screens.chunks(32).cycle();
    let model = labeller(&crate::fourier(10.0, 2, 16, 0.2), seed, device);
    numbers(trained(model, Adam::new(0.9, 0.999, 1e-8), 0.005, steps, |model| {
        let batch: Vec<&LabelledScreen> = batches.next().unwrap().iter().collect();
        let masks = Masks { layers: &mut layers, code: &mut code };
        model.loss(&batch, Some(masks), device)
    }))
}

/// Catches padding that is attended to or counted in the loss: a batch must have the same loss and gradients as its screens alone.
#[test]
fn padding_does_not_change_losses_or_gradients() {
    let device = cpu();
    let mut rng = stream(3, "screens");
    let screens: Vec<LabelledScreen> = [2, 5, 1].map(|n| labelled(&mut rng, n)).to_vec();
    let model = labeller(&fourier(2), 1, &device);
    let loss = |screens: &[&LabelledScreen]| {
        let loss = model.loss(screens, None, &device).value;
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
    assert_close(&gradients, &sum.1, 1e-5);
}

/// Catches position encodings that do not reach the model, a model that depends on the order of boxes, one that ignores the other boxes, and
/// one that distinguishes boxes without positions.
#[test]
fn only_positions_distinguish_boxes() {
    let device = cpu();
    let mut rng = stream(4, "screens");
    let boxes = labelled(&mut rng, 4).boxes;
    let turned: Vec<Bounds> = [2, 0, 3, 1].map(|i| boxes[i]).to_vec();
    for encoding in [fourier(1), fourier(2), fourier(4), summed_tables()] {
        let model = labeller(&encoding, 2, &device);
        let rows = model.of_screen(&boxes, &device);
        let moved = model.of_screen(&turned, &device);
        let wanted: Vec<f32> =
            [2, 0, 3, 1].iter().flat_map(|&i| rows[3 * i..][..3].to_vec()).collect();
        assert_close(&moved, &wanted, 1e-5);
        let alone = model.of_screen(&boxes[..1], &device);
        assert!(rows[..3].iter().zip(&alone).any(|(a, b)| (a - b).abs() > 1e-4));
        assert!(rows[..3].iter().zip(&rows[3..]).any(|(a, b)| (a - b).abs() > 1e-4));
    }
    let model = labeller(&Encoding::none(), 2, &device);
    let rows = model.of_screen(&boxes, &device);
    rows.chunks_exact(3).for_each(|row| assert_close(row, &rows[..3], 1e-5));
}

/// Catches a modulator that changes the masks of the layers, and dropout that is not applied.
#[test]
fn position_encodings_have_a_mask_stream_of_their_own() {
    let device = cpu();
    let screen = labelled(&mut stream(5, "screens"), 3);
    let places = [fourier(2), Encoding::none()].map(|encoding| {
        let (mut layers, mut code) = (stream(1, "layers"), stream(1, "code masks"));
        let masks = Masks { layers: &mut layers, code: &mut code };
        let model = labeller(&encoding, 1, &device);
        let loss = model.loss(&[&screen], Some(masks), &device).value;
        let plain = model.loss(&[&screen], None, &device).value;
        assert_ne!(parameters::number(loss), parameters::number(plain));
        [layers.get_word_pos(), code.get_word_pos()]
    });
    assert!(places[0][0] > 0 && places[0][0] == places[1][0]);
    assert!(places[0][1] > 0 && places[1][1] == 0);
}
