//! Settings of protocols that are refused, each a change of a valid protocol.

use crate::parse;

const PIXELS: &str = "kind: image-model, side: 6, heads: 2, batch: 4, levels: 4, held_out: 8, layers: 1, width: 16, feed_forward: 16, \
                      steps: 6, learning_rate: 0.01, warm_up: 2, measure_every: 2, encoding: { features: sine }";

const SENTENCES: &str = "kind: translation, words: 8, max_len: 12, lengths: log-normal, held_out: 8, layers: 1, width: 16, heads: 2, \
                         feed_forward: 16, deviation: 0.02, batch: 4, steps: 6, learning_rate: 0.01, warm_up: 2, bin: 4";

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
    let fourier =
        "features: fourier, learned: true, gamma: 1 }, divergence: { form: pooled, weight: -1";
    let sine = "features: sine";
    // Changes of valid protocols: a text and its replacement (or an addition), and a part of the message.
    type Changes<'a> = &'a [(&'a str, &'a str, &'a str)];
    let cases: &[(&str, &str, Changes<'_>)] = &[
        (
            "",
            PIXELS,
            &[
                ("heads: 2", "heads: 3", "3 heads do not divide a width of 16"),
                (sine, "features: fourier", "gamma: missing"),
                (sine, "features: fourier, gamma: 1, width: 15", "equal the model's width of 16"),
                (sine, "features: cosine", "cosine"),
                (sine, "features: sine, learned: true", "only allowed with `features: fourier`"),
                (sine, fourier, "above 0"),
                ("side: 6, heads: 2, batch: 4", "side: 64, heads: 16, batch: 4096", "would keep"),
                ("measure_every: 2", "measure_every: 7", "allowed: 1 to 6"),
            ],
        ),
        ("", SENTENCES, &[("bin: 4", "bin: 7", "1 to 6"), ("heads: 2", "heads: 3", "not divide")]),
        (
            "",
            CAPTIONS,
            &[
                ("heads: 2", "heads: 3", "do not divide"),
                (sine, "features: sine, flat: true", "four coordinates"),
                (sine, "features: sine, summed: true", "summed"),
                (sine, "features: fourier, gamma: 1, groups: 3", "groups"),
                ("", "similarity: [10, 2]", "`encoding.groups: 2`"),
                ("", "divergence: { form: pooled, weight: 1 }", "learned: true"),
                ("", "jitter: 3", "jitter"),
                ("", "beams: 0", "beams"),
                ("", "scale: pixels", "hundredths"),
                ("", "shown: 17", "0 to 16"),
                ("held_out: 6", "held_out: 0", "held_out"),
                ("steps: 8", "steps: 0", "steps"),
            ],
        ),
        (
            "    data: { set: rico-widget-captioning }\n",
            CAPTIONS,
            &[("", "beams: 2", "only allowed with `protocol.public`")],
        ),
        (
            BOXES,
            LABELS,
            &[
                ("heads: 2", "heads: 3", "do not divide"),
                ("dropout: 0.1", "dropout: 1", "dropout"),
                ("", "held_out: 1", "above 0, below 1"),
                ("", "validation: 1", "below 1"),
                ("[0.004]", "[0.004, 0.01]", "several learning rates need validation screens"),
                ("[0.004]", "[]", "learning_rates"),
                ("[0.004]", "[0]", "above 0"),
                ("min_count: 20", "min_count: 0", "min_count"),
                ("measure_every: 4", "measure_every: 0", "measure_every"),
                ("", "weight_decay: -1", "weight_decay"),
                (sine, "features: sine, flat: true", "four coordinates"),
                ("features: sine }", "features: embed }, scale: shares", "a row per hundredth"),
                (sine, "features: fourier", "gamma"),
                ("", "folds: 3", "folds"),
            ],
        ),
        ("", LABELS, &[("", "scale: hundredths", "needs `data:")]),
        ("", "kind: box-positions", &[("", "jitter: 1", "protocol.screens")]),
        (BOXES, "kind: box-positions", &[("", "screens: 3", "required without `data`")]),
        (
            "",
            WIDGETS,
            &[
                ("heads: 2", "heads: 3", "do not divide"),
                ("types: 12", "types: 11", "types"),
                ("width: 8, heads: 2", "width: 9, heads: 1", "even"),
                ("", "similarity: [10, 2]", "only allowed without `public`"),
                ("channels: [2, 3]", "channels: []", "channels"),
                ("groups: 4", "groups: 3", "groups"),
                ("", "beams: 0", "beams"),
                ("features: fourier", "features: embed", "gamma"),
            ],
        ),
        (
            IMAGES,
            NETWORK,
            &[
                ("", "fraction: 1", "above 0 and below 1"),
                ("", "fraction: 0", "above 0 and below 1"),
                ("", "fraction: 0.5, step: 2", "one of the two"),
                ("", "step: 1", "2 to 64"),
                ("", "step: 3, test: centers", "even"),
                ("", "encoding: complex, depth: 2", "0, 1"),
                ("", "encoding: complex, directions: grid", "encoding: simple"),
                ("", "directions: joint", "rff"),
                ("", "encoding: complex, products: gram, fraction: 0.5", "products: gram"),
                ("", "encoding: complex, products: gram, depth: 1", "products: gram"),
                ("", "encoding: complex, products: gram, output: sigmoid", "products: gram"),
                (
                    "",
                    "encoding: complex, products: gram, sweep: { parameter: depth, values: [0, 1] }",
                    "0 to 0",
                ),
                ("", "blending: {}", "encoding: complex"),
                ("", "sweep: { parameter: depth, values: [0.5] }", "whole numbers"),
                (
                    "",
                    "sweep: { parameter: sigma, values: [0.1], also: { dimension: [4, 8] } }",
                    "2 values",
                ),
                ("", "scale: unit", "train, batch, none"),
                ("", "center: true, output: sigmoid", "pictures: true"),
                ("", "beta2: 1", "below 1"),
            ],
        ),
        ("    data: { set: div2k-train }\n", PIXELS, &[("", "reduce: 2", "`held_out` is missing")]),
        (
            "    data: { set: div2k-train, held_out: div2k-test, pick: [0] }\n",
            PIXELS,
            &[("", "reduce: 2", "reads whole sets")],
        ),
        (
            "    data: { set: div2k-train, held_out: div2k-test }\n",
            "kind: closed-form",
            &[("", "step: 2", "only allowed with `psnr-prediction` and `image-model`")],
        ),
    ];
    for (data, valid, changes) in cases {
        for (from, to, needle) in *changes {
            let changed = match from.is_empty() {
                true => format!("{valid}, {to}"),
                false => valid.replace(from, to),
            };
            assert_ne!(changed, *valid, "{from}");
            let message = parsed(data, &changed).expect_err(to);
            assert!(message.starts_with("a.yaml:") && message.contains(needle), "{to}: {message}");
        }
    }
    for (data, valid) in [("", PIXELS), ("", SENTENCES), ("", CAPTIONS), (BOXES, LABELS)] {
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
