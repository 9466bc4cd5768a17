//! The public captioner: its outputs, losses and training steps equal those of the public code, and its parts have
//! the published sizes.

use burn::tensor::activation;
use posenc_attention::caption::Search;
use posenc_attention::captioner::{
    Batch, Captioner, Node, ScreenInput, Sizes, Statistics, WidgetInput,
};
use posenc_attention::layers::TransformerSizes;
use posenc_attention::optimizer::Adam;
use posenc_attention::trainer::Trainer;
use posenc_attention::{Device, parameters};
use posenc_math::lff::encoding::{Encoding, Features};
use posenc_math::lff::parameters::table5_on_public_code;
use posenc_math::lff::schedule::{Decay, LearningRate};
use posenc_math::lff::widget::PublicInputs;
use posenc_math::random::stream;
use serde_json::Value;

use crate::captioner::assert_same_alone;
use crate::{assert_close, cpu, list, sines, stored, streams};

/// Sizes of the stored example.
fn sizes() -> Sizes {
    let public = PublicInputs {
        vocabulary: 12,
        word_width: 6,
        types: 12,
        tree_rows: 5,
        channels: vec![2, 3, 4],
        max_len: 10,
        dropout: 0.0,
        residual_dropout: 0.0,
    };
    with(public, TransformerSizes { width: 8, heads: 2, feed_forward: 12, layers: 2 })
}

/// A model with as many layers of the decoder as of the encoder.
fn with(public: PublicInputs, transformer: TransformerSizes) -> Sizes {
    Sizes {
        node_words: public.vocabulary,
        node_kinds: public.types,
        vocabulary: public.vocabulary,
        max_len: public.max_len,
        transformer,
        decoder_layers: transformer.layers,
        divergence: None,
        public: Some(public),
    }
}

fn full() -> Sizes {
    let transformer = TransformerSizes { width: 128, heads: 8, feed_forward: 512, layers: 6 };
    with(PublicInputs::default(), transformer)
}

fn public() -> Encoding {
    Encoding { features: Features::Embed, summed: true, projected: true, ..Encoding::none() }
}

/// A pseudo-random number between −½ and ½ from an integer, as in the script that generated the example.
fn noise(k: u64) -> f64 {
    let mut k = (k as u32).wrapping_mul(2_654_435_761).wrapping_add(12_345);
    k ^= k >> 15;
    k = k.wrapping_mul(739_982_445);
    k ^= k >> 13;
    f64::from(k) / f64::from(1u32 << 31) / 2.0 - 0.5
}

fn vectors(sizes: &Sizes) -> Vec<f32> {
    let count = (sizes.vocabulary * sizes.public.as_ref().unwrap().word_width) as u64;
    (0..count).map(|k| (0.7 * noise(1_000_000 + k)) as f32).collect()
}

fn random_model(sizes: &Sizes, encoding: &Encoding, seed: u64, device: &Device) -> Captioner {
    Captioner::new(sizes, encoding, vectors(sizes), streams(seed), device)
}

/// The model with the weights of the stored example.
fn public_model() -> Captioner {
    let model = random_model(&sizes(), &public(), 1, &cpu());
    let old = parameters::values(&model);
    let value = |(k, &old): (usize, &f32)| {
        // Gains and variances start at one.
        let u = noise(k as u64);
        (if old == 1.0 { 1.0 + 0.4 * u } else { 0.6 * u }) as f32
    };
    let values: Vec<f32> = old.iter().enumerate().map(value).collect();
    parameters::replaced(model, &values).unwrap()
}

fn words(value: &Value) -> Vec<usize> {
    list(value).into_iter().map(|v| v as usize).collect()
}

fn example() -> (Value, Vec<ScreenInput>) {
    let example = stored("widget.json");
    let mut count = 0;
    let screens = example["screens"].as_array().unwrap().iter().map(|screen| {
        let node = |node: &Value| Node {
            text: words(&node["text"]),
            resource: words(&node["resource"]),
            kind: node["kind"].as_u64().unwrap() as usize,
            is_clickable: node["clickable"] == 1,
            tree: words(&node["tree"]).try_into().unwrap(),
            bounds: list(&node["bounds"]).try_into().unwrap(),
        };
        let widgets = screen["widgets"].as_array().unwrap().iter().map(|widget| {
            let level = |k: usize| ((k * 37 + count * 101 + k * k / 7) % 256) as u8;
            let pixels = (0..64).map(level).collect();
            count += 1;
            let node = widget["node"].as_u64().unwrap() as usize;
            WidgetInput { node, caption: words(&widget["caption"]), pixels }
        });
        let nodes = screen["nodes"].as_array().unwrap().iter().map(node);
        ScreenInput { nodes: nodes.collect(), widgets: widgets.collect() }
    });
    let screens = screens.collect();
    (example, screens)
}

/// Catches a wrong border, stride or order of taps, wrong batch statistics or momentum, words that are looked up incorrectly, texts of
/// other nodes, parts in the wrong order, a misplaced norm, padding that is attended to, and lost or misrouted gradients. The reference
/// is the public model in PyTorch with the same weights.
#[test]
fn predictions_losses_and_gradients_match_the_public_model() {
    let (example, screens) = example();
    let model = public_model();
    assert_eq!(parameters::count(&model) as u64, example["parameters"].as_u64().unwrap());
    let batch = Batch::new(&screens, &sizes(), &cpu());
    // −log p of each word of the captions and of their ends. The stored losses are padded with zeros.
    let next = activation::log_softmax(model.scores(&batch, None, None), 1);
    let next = parameters::numbers(next);
    let captions = screens.iter().flat_map(|screen| &screen.widgets);
    let words = captions.flat_map(|widget| widget.caption.iter().copied().chain([1]));
    let rows = next.chunks_exact(sizes().vocabulary);
    let found: Vec<f32> = rows.zip(words).map(|(row, word)| -row[word]).collect();
    let evaluated = list(&example["evaluated"]).into_iter().filter(|&loss| loss != 0.0);
    assert_close(&found, &evaluated.map(|v| v as f32).collect::<Vec<_>>(), 1e-4);
    let mut statistics = Statistics::new();
    let loss = model.loss(&batch, &mut statistics, &mut stream(1, "masks"));
    let (after, loss) = (model.moved(&statistics), loss.value);
    let expected = example["loss"].as_f64().unwrap();
    let found = parameters::number(loss.clone());
    assert!((found - expected).abs() < 1e-5, "{found} {expected}");
    let gradients = parameters::gradients(&after, &loss.backward());
    let values = parameters::values(&after);
    let (mut offset, mut moved, mut counts) = (0, 0, Vec::new());
    let mut running = example["running"].as_array().unwrap().iter();
    parameters::visit(&after, None, |own| counts.push(own.count()));
    let named = example["gradients"].as_array().unwrap();
    assert_eq!(counts.len(), named.len());
    for (named, count) in named.iter().zip(counts) {
        let name = named[0].as_str().unwrap();
        let own = gradients[offset..][..count].iter().map(|&v| f64::from(v));
        let length = own.clone().map(|v| v * v).sum::<f64>().sqrt();
        let along: f64 = own.enumerate().map(|(k, v)| v * noise((offset + k) as u64)).sum();
        for (found, expected) in [(length, &named[1]), (along, &named[2])] {
            let expected = expected.as_f64().unwrap();
            let bound = 1e-4 * named[1].as_f64().unwrap() + 2e-7;
            assert!((found - expected).abs() < bound, "{name}: {found} {expected}");
        }
        if name.ends_with(".mean") || name.ends_with(".variance") {
            let expected = list(running.next().unwrap());
            for (found, expected) in values[offset..][..count].iter().zip(&expected) {
                assert!((f64::from(*found) - expected).abs() < 1e-5, "{name}: {found} {expected}");
            }
            moved += count;
        }
        offset += count;
    }
    assert_eq!(parameters::count_trained(&after), offset - moved);
}

fn fourier(groups: usize, width: usize, learned: bool, modulated: bool) -> Encoding {
    let encoding = crate::fourier(100.0, groups, width, 0.2);
    let modulator = encoding.modulator.clone().filter(|_| modulated);
    Encoding { width: Some(width), learned, modulator, ..encoding }
}

/// Catches a part that is missing, duplicated or has the wrong shape at full size, and an encoding whose module does not have the
/// calculated size.
#[test]
fn every_part_and_every_row_has_its_size() {
    let full = full();
    let encodings = [
        public(),
        public(),
        sines(),
        fourier(2, 64, true, false),
        fourier(1, 128, false, true),
        fourier(2, 64, false, true),
        fourier(4, 32, false, true),
        fourier(1, 128, true, true),
        fourier(2, 64, true, true),
        fourier(4, 32, true, true),
    ];
    for (row, encoding) in table5_on_public_code().iter().zip(&encodings) {
        let model = random_model(&full, encoding, 1, &cpu());
        assert_eq!(parameters::count_trained(&model) as u64, row.total, "{}", row.method);
        let parts: usize = model.parts().iter().map(|(_, count)| count).sum();
        assert_eq!(parts as u64, row.total, "{}", row.method);
    }
    let counts: Vec<usize> =
        random_model(&full, &public(), 1, &cpu()).parts().iter().map(|(_, count)| *count).collect();
    let expected = [
        38_528, 29_312, 16_768, 117_248, 241_536, 98_432, 49_280, 1_186_816, 1_581_568, 1_290_000,
        785_604, 1_980,
    ];
    assert_eq!(counts, expected);
    assert_eq!(counts.iter().sum::<usize>(), 5_437_072);
}

/// Catches a missing term of the operations. Counted manually, a screen of 60 nodes and 2.8 widgets needs about 1.1e9 operations (estimated
/// for the paper's runs).
#[test]
fn operations_are_close_to_a_manual_count() {
    let all = full().operations(&[60; 64], &[11; 180], 1500);
    assert!((0.8e9..1.4e9).contains(&(all / 64.0)), "{all:e}");
    let twice = full().operations(&[60; 128], &[11; 360], 3000);
    let tables = 6.0 * 1602.0 * 128.0 * 128.0;
    assert!(twice < 2.0 * all && twice > 2.0 * all - 2.0 * tables, "{all:e} {twice:e}");
}

/// Catches padding that is attended to, widgets of another screen, and mixed-up word indices in a batch.
#[test]
fn screens_have_the_same_results_alone_and_in_a_batch() {
    let (_, screens) = example();
    let model = public_model();
    assert_same_alone(&model, &sizes(), &screens);
    let device = cpu();
    let how = Search { beams: 4, alpha: 0.6, max_len: 10 };
    let said = model.captions(&screens, how, &device);
    let one: Vec<_> = screens
        .iter()
        .flat_map(|s| model.captions(std::slice::from_ref(s), how, &device))
        .collect();
    assert_eq!(said, one);
    // Greedy search returns the most likely word after each prefix.
    let greedy = Search { beams: 1, ..how };
    let said = model.captions(&screens, greedy, &device);
    let mut told = screens.clone();
    for (widget, said) in told.iter_mut().flat_map(|s| &mut s.widgets).zip(&said) {
        widget.caption = said.clone();
    }
    let batch = Batch::new(&told, &sizes(), &device);
    let v = sizes().vocabulary;
    let next = parameters::numbers(model.scores(&batch, None, None));
    let mut rows = next.chunks_exact(v);
    for said in &said {
        for (place, &word) in said.iter().chain(&[1]).enumerate() {
            let next = rows.next().unwrap();
            let is_best = (1..v).all(|other| other == 3 || next[other] <= next[word]);
            assert!(is_best || place == how.max_len, "{said:?}");
        }
    }
    assert!(rows.next().is_none());
}

/// The losses of a training on the stored example, and the parameters.
pub fn learned(seed: u64, steps: usize, device: &Device) -> (Vec<f64>, Vec<f32>) {
    let public = sizes().public.unwrap();
    let public = PublicInputs { dropout: 0.1, residual_dropout: 0.1, ..public };
    let sizes = with(public, sizes().transformer);
    let batch = Batch::new(&example().1, &sizes, device);
    let model = random_model(&sizes, &fourier(2, 4, true, true), seed, device);
    let mut adam = Adam::new(0.9, 0.997, 1e-9);
    adam.max_grad_norm = Some(5.0);
    let rate = LearningRate { peak: 0.01, warm_up: 0, decay: Decay::Constant, steps };
    let mut trainer = Trainer::new(model, adam, rate);
    let mut masks = stream(seed, "masks");
    let losses: Vec<f64> = (0..steps)
        .map(|_| {
            let mut statistics = Statistics::new();
            let loss = trainer.step(|model| model.loss(&batch, &mut statistics, &mut masks));
            trainer.model = trainer.model.clone().moved(&statistics);
            loss
        })
        .collect();
    (losses, parameters::values(&trainer.model))
}
