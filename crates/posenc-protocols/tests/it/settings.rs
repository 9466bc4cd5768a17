//! Settings of protocols that are refused, each a change of a valid protocol.

use crate::mistakes::{refusals, replaced};
use crate::parse;

const PIXELS: &str = "kind: image-model, side: 6, heads: 2, batch: 4, levels: 4, held_out: 8, layers: 1, width: 16, feed_forward: 16, \
                      steps: 6, learning_rate: 0.01, warm_up: 2, measure_every: 2, encoding: { features: sine }";

const SENTENCES: &str = "kind: translation, words: 8, max_len: 12, lengths: log-normal, held_out: 8, layers: 1, batch: 4, width: 16, heads: 2, \
                         feed_forward: 16, deviation: 0.02, steps: 6, learning_rate: 0.01, warm_up: 2, bin: 4";

const CAPTIONS: &str = "kind: captioning, screens: 24, held_out: 6, width: 16, heads: 2, feed_forward: 16, encoder_layers: 1, \
                        decoder_layers: 1, batch: 4, steps: 8, learning_rate: 0.004, warm_up: 2, decay: cosine, encoding: { \
                        features: sine }";

const LABELS: &str = "kind: icon-labels, min_count: 20, max_boxes: 4, width: 16, heads: 2, feed_forward: 16, layers: 1, dropout: 0.1, \
                      batch: 4, steps: 8, measure_every: 4, learning_rates: [0.004], warm_up: 2, decay: cosine, encoding: { features: \
                      sine }";

const WIDGETS: &str = "kind: captioning, steps: 3, batch: 2, screens: 6, held_out: 4, learning_rate: 0.01, warm_up: 1, encoding: { features: \
                       fourier, learned: true, gamma: 100, groups: 4, width: 4, modulator: { hidden: 4, dropout: 0.2 } }, width: 8, \
                       heads: 2, feed_forward: 8, encoder_layers: 1, decoder_layers: 1, public: { vocabulary: 120, word_width: 6, types: 12, \
                       tree_rows: 30, channels: [2, 3] }";

const ALGORITHM: &str = "kind: position-encoding, encoding: { features: fourier, gamma: 1, width: 16 }, coordinates: 2, side: 4, width: 16, \
                         positions: 8, count_sides: [4, 8]";
const SCENES: &str = "kind: detection, sides: [16], held_out: 1, encoding: { features: sine }, width: 8, heads: 1, feed_forward: 8, \
                      encoder_layers: 0, decoder_layers: 1, queries: 2, batch: 1, steps: 9, learning_rate: 0.1, warm_up: 1, \
                      measure_every: 1";

const NETWORK: &str = "kind: network-nd, learning_rate: 0.1, epochs: 1";

const IMAGES: &str = "    data: { set: embedded-images }\n";
const BOXES: &str = "    data: { set: rico-semantics }\n";

/// Parses a file with one group.
fn parsed(data: &str, protocol: &str) -> Result<(), String> {
    let embedder = match protocol.contains("network-nd") || protocol.contains("closed-form") {
        true => ", embedder: { kind: gaussian, dimension: 16, sigma: 0.1 }",
        false => "",
    };
    let file = format!(
        "paper: extensions\nitem: mexican-hat\nkind: extra\ntitle: T\nshows: S\ngroups:\n  - id: group\n{data}    protocol: {{ \
         {protocol} }}\n    variants: [{{ id: one{embedder} }}]\n"
    );
    parse(&file).map(drop)
}

/// Catches meaningless settings that are accepted, and messages without location or remedy.
#[test]
fn meaningless_settings_are_refused() {
    let cases = [
        ("", PIXELS, "
heads: 2 => heads: 3
features: sine => features: fourier
features: sine => features: fourier, gamma: 1, width: 15
features: sine => features: cosine
features: sine => features: sine, learned: true
features: sine => features: sine, layer: gain, modulator: { hidden: 4 }
features: sine => features: fourier, learned: true, gamma: 1 }, divergence: { form: pooled, weight: -1
side: 6, heads: 2, batch: 4 => side: 64, heads: 16, batch: 4096
layers: 1, width: 16, feed_forward: 16 => layers: 48, width: 4096, feed_forward: 65536
measure_every: 2 => measure_every: 7
 => lsh: { chunk: 0 }
 => lsh: { chunk: 7 }
 => lsh: { buckets: 5 }
 => lsh: { rounds: 0 }
 => lsh: { chunk: 6, dropout: 1 }
"),
        ("", "kind: detr, encoding: { features: sine }", "
 => model: { heads: 7 }
 => model: { blocks: [3, 0, 6, 3] }
 => model: { dropout: 1 }
 => resizing: { short_sides: [] }
 => resizing: { before_window: [300] }
 => resizing: { measured: 0 }
"),
        ("", SENTENCES, "
bin: 4 => bin: 7
heads: 2 => heads: 3
max_len: 12, lengths: log-normal, held_out: 8, layers: 1, batch: 4 => max_len: 512, lengths: log-normal, held_out: 8, layers: 48, batch: 4096
"),
        ("", SCENES, "
sides: [16], held_out: 1 => sides: [512], held_out: 100000
sides: [16] => sides: [18446744073709551608]
"),
        ("", CAPTIONS, "
heads: 2 => heads: 3
features: sine => features: sine, flat: true
features: sine => features: sine, summed: true
features: sine => features: fourier, gamma: 1, groups: 3
 => similarity: [10, 2]
 => divergence: { form: pooled, weight: 1 }
 => jitter: 3
 => beams: 0
 => scale: pixels
 => shown: 17
held_out: 6 => held_out: 0
steps: 8 => steps: 0
"),
        ("    data: { set: rico-widget-captioning }\n", CAPTIONS, " => beams: 2"),
        (BOXES, LABELS, "
heads: 2 => heads: 3
dropout: 0.1 => dropout: 1
 => held_out: 1
 => validation: 1
[0.004] => [0.004, 0.01]
[0.004] => []
[0.004] => [0]
min_count: 20 => min_count: 0
measure_every: 4 => measure_every: 0
 => weight_decay: -1
features: sine => features: sine, flat: true
features: sine } => features: embed }, scale: shares
features: sine => features: fourier
 => folds: 3
"),
        ("", LABELS, " => scale: hundredths"),
        ("", ALGORITHM, "width: 16 }, => width: 16, layer: linear },"),
        ("", "kind: box-positions", " => jitter: 1"),
        (BOXES, "kind: box-positions", " => screens: 3"),
        ("", WIDGETS, "
heads: 2 => heads: 3
types: 12 => types: 11
width: 8, heads: 2 => width: 9, heads: 1
 => similarity: [10, 2]
types: 12 => types: 12, max_len: 9
types: 12 => types: 12, residual_dropout: 1
channels: [2, 3] => channels: []
channels: [2, 3] => channels: [4, 0]
groups: 4 => groups: 3
 => beams: 0
features: fourier => features: embed
"),
        (IMAGES, NETWORK, "
 => fraction: 1
 => fraction: 0
 => fraction: 0.5, step: 2
 => step: 1
 => step: 3, test: centers
 => encoding: complex, depth: 2
 => encoding: complex, directions: grid
 => directions: joint
 => encoding: complex, products: gram, fraction: 0.5
 => encoding: complex, products: gram, depth: 1
 => encoding: complex, products: gram, output: sigmoid
 => encoding: complex, products: gram, sweep: { parameter: depth, values: [0, 1] }
 => blending: {}
 => sweep: { parameter: depth, values: [0.5] }
 => sweep: { parameter: sigma, values: [0.1], also: { dimension: [4, 8] } }
 => scale: unit
 => center: true, output: sigmoid
 => beta2: 1
"),
        ("    data: { set: div2k-train }\n", PIXELS, " => reduce: 2"),
        ("    data: { set: div2k-train, held_out: div2k-test, pick: [0] }\n", PIXELS, " => reduce: 2"),
        ("    data: { set: div2k-train, held_out: div2k-test }\n", "kind: closed-form", " => step: 2"),
    ];
    let messages = cases.map(|(data, valid, changes)| {
        refusals(changes, |from, to| parsed(data, &replaced(valid, from, to)))
    });
    insta::assert_snapshot!("settings", messages.concat());
    for (data, valid) in
        [("", PIXELS), ("", SENTENCES), ("", SCENES), ("", CAPTIONS), (BOXES, LABELS)]
    {
        assert_eq!(parsed(data, valid), Ok(()));
    }
    assert_eq!((parsed("", WIDGETS), parsed(IMAGES, NETWORK)), (Ok(()), Ok(())));
}

/// Catches a depth that varies with another parameter but is not counted: one run of such a network would decide a claim.
#[test]
fn a_depth_that_varies_along_a_sweep_depends_on_the_start() {
    let depends = |sweep: &str, x: Option<f64>| {
        let file = format!(
            "paper: extensions\nitem: mexican-hat\nkind: extra\ntitle: T\nshows: S\ngroups:\n  - id: group\n{IMAGES}    protocol: {{ \
             {NETWORK}, sweep: {sweep} }}\n    variants: [{{ id: one, embedder: {{ kind: gaussian, dimension: 16, sigma: 0.1 }} }}]\n"
        );
        let group = &parse(&file).unwrap().groups[0];
        let resolved = group.resolved(posenc_experiments::Profile::Paper, 0).unwrap();
        resolved.protocol.depends_on_start(x)
    };
    let also = "{ parameter: sigma, values: [0.1, 0.2], also: { depth: [0, 2] } }";
    let swept = "{ parameter: depth, values: [0, 2] }";
    for (sweep, x, expected) in [
        (also, None, true),
        (also, Some(0.1), false),
        (also, Some(0.2), true),
        (swept, Some(0.0), false),
        (swept, Some(2.0), true),
        ("{ parameter: sigma, values: [0.1] }", None, false),
    ] {
        assert_eq!(depends(sweep, x), expected, "{sweep} at {x:?}");
    }
}

/// Catches a profile that runs variants it does not name, or drops those that it names.
#[test]
fn a_profile_runs_the_variants_that_it_names() {
    let gau = "embedder: { kind: gaussian, dimension: 16, sigma: 0.1 }";
    let file = format!(
        "paper: extensions\nitem: mexican-hat\nkind: extra\ntitle: T\nshows: S\ngroups:\n  - id: group\n    protocol: {{ kind: \
         stable-rank, samples: [4] }}\n    variants: [{{ id: one, {gau} }}, {{ id: two, {gau} }}]\n    profiles: {{ quick: {{ reduced: \
         one of two, variants: [two] }} }}\n"
    );
    let group = &parse(&file).unwrap().groups[0];
    let runs = |profile| [0, 1].map(|variant| group.resolved(profile, variant).is_some());
    assert_eq!(runs(posenc_experiments::Profile::Quick), [false, true]);
    assert_eq!(runs(posenc_experiments::Profile::Paper), [true, true]);
}
