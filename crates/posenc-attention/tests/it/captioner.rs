//! The small captioner: masking, learning from positions, and beam search.

use burn::tensor::activation;
use posenc_attention::caption::Search;
use posenc_attention::captioner::{
    Batch, Captioner, Node, ScreenInput, Sizes, Statistics, WidgetInput,
};
use posenc_attention::layers::TransformerSizes;
use posenc_attention::optimizer::Adam;
use posenc_attention::{Device, parameters};
use posenc_math::lff::encoding::Encoding;
use posenc_math::random::{stream, uniform_vector};
use rand_chacha::ChaCha8Rng;

use crate::{assert_close, cpu, streams, summed_tables, trained};

fn sizes() -> Sizes {
    Sizes {
        node_words: 3,
        node_kinds: 2,
        vocabulary: 7,
        max_len: 2,
        transformer: TransformerSizes { width: 32, heads: 4, feed_forward: 32, layers: 1 },
        decoder_layers: 1,
        divergence: None,
        public: None,
    }
}

fn fourier(groups: usize) -> Encoding {
    crate::fourier(10.0, groups, 16, 0.2)
}

fn search(beams: usize) -> Search {
    Search { beams, alpha: 0.6, max_len: sizes().max_len }
}

/// Two boxes next to each other, one labeled by a word. The other box's caption is "left" (4) or "right" (5) followed by its
/// neighbor's word (5, 6).
fn screen(rng: &mut ChaCha8Rng) -> ScreenInput {
    let draws = uniform_vector(rng, 4, 0.0, 1.0);
    let is_left = draws[0] < 0.5;
    let word = 1 + usize::from(draws[1] < 0.5);
    let top = 60.0 * draws[2];
    let at = |side: f64| [10.0 + 50.0 * side, top, 30.0 + 50.0 * side, top + 20.0 * draws[3] + 5.0];
    let node = |word, side| Node {
        text: vec![word],
        resource: Vec::new(),
        kind: usize::from(word > 0),
        is_clickable: word == 0,
        tree: [2, 0, 0],
        bounds: at(side),
    };
    let side = f64::from(u8::from(!is_left));
    let nodes = vec![node(word, 1.0 - side), node(0, side)];
    let caption = vec![if is_left { 4 } else { 5 }, 4 + word];
    ScreenInput { nodes, widgets: vec![widget(1, caption)] }
}

fn widget(node: usize, caption: Vec<usize>) -> WidgetInput {
    WidgetInput { node, caption, pixels: Vec::new() }
}

fn model(encoding: &Encoding, seed: u64, device: &Device) -> Captioner {
    Captioner::new(&sizes(), encoding, Vec::new(), streams(seed), device)
}

/// The losses of a training, and the model.
pub fn learned(
    encoding: &Encoding,
    seed: u64,
    steps: usize,
    device: &Device,
) -> (Vec<f64>, Captioner) {
    let mut adam = Adam::new(0.9, 0.99, 1e-9);
    adam.max_grad_norm = Some(5.0);
    let (mut batches, mut masks) = (stream(seed, "batches"), stream(seed, "masks"));
    trained(model(encoding, seed, device), adam, 0.007, steps, |model| {
        let batch: Vec<ScreenInput> = (0..16).map(|_| screen(&mut batches)).collect();
        let batch = Batch::new(&batch, &sizes(), device);
        model.loss(&batch, &mut Statistics::new(), &mut masks)
    })
}

/// Catches position encodings that do not reach the decoder or come from another widget.
#[test]
fn boxes_are_learned_only_with_positions() {
    let mut rng = stream(9, "held out");
    let held_out: Vec<ScreenInput> = (0..100).map(|_| screen(&mut rng)).collect();
    let right = |encoding: &Encoding| {
        let (_, model) = learned(encoding, 1, 120, &cpu());
        let said = model.captions(&held_out, search(1), &cpu());
        let right = held_out.iter().zip(&said).filter(|(s, said)| s.widgets[0].caption == **said);
        right.count()
    };
    for encoding in [fourier(1), fourier(2), fourier(4), summed_tables()] {
        let right = right(&encoding);
        assert!(right > 90, "{encoding:?}: {right}");
    }
    let right = right(&Encoding::none());
    assert!(right < 75, "{right}");
}

/// Compares the scores of screens in a batch with those of each alone.
pub fn assert_same_alone(model: &Captioner, sizes: &Sizes, screens: &[ScreenInput]) {
    let scores = |screens: &[ScreenInput]| {
        let batch = Batch::new(screens, sizes, &cpu());
        parameters::numbers(model.scores(&batch, None, None))
    };
    let alone: Vec<f32> = screens.iter().flat_map(|s| scores(std::slice::from_ref(s))).collect();
    assert_close(&scores(screens), &alone, 1e-5);
}

/// Catches attention to the nodes of another screen, and widgets that are taken from another screen of a batch.
#[test]
fn screens_have_the_same_results_alone_and_in_a_batch() {
    let model = model(&fourier(2), 3, &cpu());
    let mut rng = stream(3, "screens");
    let mut screens: Vec<ScreenInput> = (0..3).map(|_| screen(&mut rng)).collect();
    let more = screens[0].nodes[0].clone();
    screens[1].nodes.push(more);
    screens[1].widgets.push(widget(2, vec![4]));
    assert_same_alone(&model, &sizes(), &screens);
}

/// Catches a search that drops the best caption, normalizes by a wrong length, or continues after the end, by comparison with all
/// captions.
#[test]
fn a_wide_beam_finds_the_best_of_all_captions() {
    let (sizes, device) = (sizes(), cpu());
    let mut rng = stream(5, "screens");
    let screens: Vec<ScreenInput> = (0..12).map(|_| screen(&mut rng)).collect();
    let words = [2, 4, 5, 6];
    let mut all = vec![vec![]];
    all.extend(words.iter().map(|&a| vec![a]));
    all.extend(words.iter().flat_map(|&a| words.iter().map(move |&b| vec![a, b])));
    let mut differs = 0;
    for seed in 0..3 {
        let model = model(&fourier(4), seed, &device);
        let found = model.captions(&screens, search(30), &device);
        let greedy = model.captions(&screens, search(1), &device);
        for (screen, (found, greedy)) in screens.iter().zip(found.iter().zip(&greedy)) {
            let score = |caption: &Vec<usize>| {
                let mut one = screen.clone();
                one.widgets[0].caption.clone_from(caption);
                let batch = Batch::new(&[one], &sizes, &device);
                let length = caption.len() + 1;
                let next = activation::log_softmax(model.scores(&batch, None, None), 1);
                let next = parameters::numbers(next);
                let wanted = caption.iter().copied().chain([1]).enumerate();
                let sum: f64 = wanted.map(|(i, w)| f64::from(next[i * sizes.vocabulary + w])).sum();
                sum / ((5.0 + length as f64) / 6.0).powf(0.6)
            };
            let best = all.iter().map(score).fold(f64::NEG_INFINITY, f64::max);
            assert!((score(found) - best).abs() < 1e-5, "{found:?}");
            assert!(greedy.len() <= 2 && score(greedy) <= best + 1e-5);
            differs += usize::from(greedy != found);
        }
    }
    assert!(differs > 0, "greedy search was never worse: the test shows nothing");
}
