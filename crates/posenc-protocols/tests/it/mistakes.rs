//! Errors about experiment files contain the line and the remedy.

use std::path::Path;

use posenc_experiments::schema::paper::Paper;
use posenc_experiments::yaml::Document;

use crate::{FILE, parse};

/// Requires that the message about `mistake` begins with `place` and contains all `needles`.
fn names(message: &str, place: &str, mistake: &str, needles: &[&str]) {
    assert!(message.starts_with(place), "{mistake}: {message}");
    for needle in needles {
        assert!(message.contains(needle), "{mistake}: no `{needle}` in: {message}");
    }
}

/// Requires an error for each change of [`FILE`]: the replaced text, its replacement, and texts that the message must contain.
fn are_refused(cases: &[(&str, &str, &[&str])]) {
    assert!(parse(FILE).is_ok(), "{:?}", parse(FILE).err());
    for (from, to, needles) in cases {
        assert!(FILE.contains(from), "{from}");
        let message = parse(&FILE.replacen(from, to, 1)).expect_err(to);
        names(&message, "a.yaml", to, needles);
    }
}

/// Catches a mistake that is accepted, or a message without its line and remedy.
#[test]
fn mistakes_are_named_with_line_and_remedy() {
    let cases: &[(&str, &str, &[&str])] = &[
        ("item: mexican-hat", "itme: mexican-hat", &["a.yaml:3", "did you mean `item`"]),
        (
            "{ reduced: one image, signals: 1 }",
            "{ variants: [Guu], reduced: one image }",
            &["a.yaml:14", "groups[0].profiles.smoke.variants[0]", "no variant `Guu`", "`Gau`?"],
        ),
        (
            "{ reduced: one image, signals: 1 }",
            "{ variants: [], reduced: one image }",
            &["a.yaml:14", "groups[0].profiles.smoke.variants", "remove the key"],
        ),
        ("samples: [1, 2]", "samples: many", &["a.yaml:16", "groups[1].protocol.samples"]),
        ("samples: [1, 2]", "samples: [0]", &["samples", "whole numbers from 1"]),
        ("values: [0.1]", "values: [0.1, 0]", &["a.yaml:16", "protocol.sweep.values", "sigma"]),
        (
            "parameter: sigma",
            "parameter: sgima",
            &["a.yaml:16", "protocol.sweep.parameter", "sigma"],
        ),
        ("sigma: 0.1 }", "sigma: 0 }", &["a.yaml:18", "embedder.sigma", "0"]),
        ("sigma: 0.1 }", "sigma: -1 }", &["a.yaml:18", "embedder.sigma"]),
        ("sigma: 0.1 }", "sigma: .nan }", &["a.yaml:18", "embedder.sigma"]),
        ("dimension: 16", "dimension: 0", &["a.yaml:18", "embedder.dimension"]),
        ("dimension: 16", "dimension: 1.5", &["embedder.dimension"]),
        ("dimension: 16, sigma", "dimension: 16, sgima", &["a.yaml:18", "sigma"]),
        (
            "kind: gaussian, dimension: 16",
            "kind: gausian, dimension: 16",
            &["a.yaml:18", "gaussian"],
        ),
        (
            "{ kind: gaussian, dimension: 16, sigma: 0.1 }",
            "{ kind: formula, dimension: 16, psi: \"exp(-u*\" }",
            &["a.yaml:18", "psi"],
        ),
        (
            "{ kind: gaussian, dimension: 16, sigma: 0.1 }",
            "{ kind: formula, dimension: 16, psi: \"ln(-1-u*u)\" }",
            &["a.yaml:18", "psi", "NaN"],
        ),
        ("id: rank", "id: images", &["a.yaml:15", "appears twice"]),
        (
            "kind: stable-rank",
            "kind: stable-rnak",
            &["; allowed: ", "; did you mean `stable-rank`?"],
        ),
        (
            "kind: trend",
            "kind: tend",
            &["unknown kind `tend`; allowed: value,", "; did you mean `trend`?"],
        ),
        (
            "kind: gaussian, dimension: 16",
            "kind: 3, dimension: 16",
            &["embedder.kind", "allowed: a string"],
        ),
        ("id: first", "id: first.one", &["a.yaml:20", "claims[0].id", "a-z"]),
        ("group: rank, metric", "group: rang, metric", &["a.yaml:23", "allowed: images, rank"]),
        ("id: rank", "id: rank\n    metrics: [params]", &["claims[0].check.of", "not recorded"]),
        (
            "metric: stable_rank }, direction",
            "metric: stable_rnak }, direction",
            &["a.yaml:23", "claims[0].check.of.metric", "did you mean `stable_rank`"],
        ),
        (
            "kind: trend, of: { group: rank, metric: stable_rank }, direction: increasing }",
            "kind: bound, of: { group: rank, metric: stable_rank }, at_most: 1e999 }",
            &["a.yaml:23", "claims[0].check.at_most", "no metric `1e999`"],
        ),
        (
            "kind: trend, of: { group: rank, metric: stable_rank }, direction: increasing }",
            "kind: bound, of: { group: rank, metric: stable_rank }, at_most: .nan }",
            &["a.yaml:23", "claims[0].check.at_most", "write a finite number"],
        ),
        (
            "kind: trend, of: { group: rank, metric: stable_rank }, direction: increasing }",
            "kind: bound, of: { group: rank, metric: stable_rank }, at_most: 1, at_least: 2 }",
            &["a.yaml:23", "claims[0].check.at_least", "2 is above `at_most`, 1"],
        ),
        (
            "metric: stable_rank }, direction",
            "metric: stable_rank, x: { from: 2, to: 1 } }, direction",
            &["a.yaml:23", "claims[0].check.of.x", "`from` 2 is above `to` 1"],
        ),
        ("signals: 1", "signals: 0", &["a.yaml:14", "allowed: 1 to"]),
        (
            "- id: images",
            "- id: images\n    seeds: 0",
            &["a.yaml:9", "groups[0].seeds", "allowed: 1 to"],
        ),
        (
            "signals: 1",
            "seeds: 0",
            &["a.yaml:14", "groups[0].profiles.smoke.seeds", "allowed: 1 to"],
        ),
        ("smoke: {", "paper: {", &["cannot be reduced"]),
        (
            "smoke: {",
            "quick: { refused: it runs at `long` }\n      smoke: {",
            &["groups[0].profiles.quick.refused", "define `long`"],
        ),
        ("data: { set: div2k-test }", "seeds: 1", &["a.yaml:14", "no `data`"]),
        ("kind: extra", "kind: picture", &["a.yaml:4", "kind"]),
        ("paper: extensions", "paper: \"a/b\"", &["a.yaml:2", "a-z"]),
        ("groups:\n", "groups: 3\nextra:\n", &["a.yaml"]),
        (
            "group: rank, metric: stable_rank }, direction",
            "from: published, group: rank, metric: stable_rank }, direction",
            &["a.yaml:23", "claims[0].check.of.from", "only allowed in `with`"],
        ),
        (
            "x: { label: N }",
            "markers: [{ label: a, shape: star, at: { Gua: 3 } }]\n        x: { label: N }",
            &["a.yaml:31", "plots[0].panels[0].markers[0].at", "no variant `Gua`"],
        ),
        (
            "x: { label: N }",
            "more: [{ metric: a, label: b }]\n        x: { label: N }",
            &["plots[0].panels[0].series", "`more` is only allowed with `metric`"],
        ),
        (
            "x: { label: N }",
            "x: { label: N, scale: log, from: 0 }",
            &["a.yaml:31", "plots[0].panels[0].x", "above 0"],
        ),
        (
            "y: { label: rank }",
            "y: { label: rank, scale: log, to: -1 }",
            &["a.yaml:32", "plots[0].panels[0].y", "above 0"],
        ),
    ];
    are_refused(cases);
    let second_claims: &[(&str, &[&str])] = &[
        (
            "kind: position, of: { group: rank, metric: a }, feature: highest, below_highest: 3, at: 1",
            &["claims[1].check.below_highest", "first-above"],
        ),
        (
            "kind: position, of: { group: rank, metric: a }, feature: highest",
            &["claims[1].check", "missing field `at`"],
        ),
        (
            "kind: agreement, of: { group: rank, metric: a }, tolerance: { standard_errors: 2 }",
            &["claims[1].check.tolerance", "`published_runs`"],
        ),
        (
            "kind: bound, of: { group: rank, methods: [Gua], metric: a }, at_most: 1",
            &["claims[1].check.of.methods", "no variant `Gua`"],
        ),
        (
            "kind: bound, of: { group: rank, signal: a, signals: [b], metric: a }, at_most: 1",
            &["claims[1].check.of.signals", "not with `signal`"],
        ),
        (
            "kind: bound, of: { group: rank, signals: [], metric: a }, at_most: 1",
            &["claims[1].check.of.signals", "at least one name"],
        ),
    ];
    for (check, needles) in second_claims {
        let claims = format!(
            "direction: increasing }}\n  - id: second\n    says: a\n    source: b\n    check: {{ {check} }}"
        );
        are_refused(&[("direction: increasing }", &claims, needles)]);
    }
}

/// As above, for pictures and tables.
#[test]
fn mistakes_in_pictures_and_tables_are_named_with_line_and_remedy() {
    let cases: &[(&str, &str, &[&str])] = &[
        ("title: A grid", "titel: A grid", &["a.yaml:41", "did you mean `title`"]),
        ("id: grid", "id: A grid", &["a.yaml:40", "pictures[0].id", "a-z"]),
        (
            "groups: [images]\n    show",
            "groups: [imags]\n    show",
            &["a.yaml:42", "pictures[0].groups[0]", "did you mean `images`"],
        ),
        ("groups: [images]\n    show", "groups: []\n    show", &["pictures[0].groups", "empty"]),
        (
            "truth, reconstruction",
            "truth, recontruction",
            &["a.yaml:43", "pictures[0].show[1]", "did you mean `reconstruction`", "truth-frames"],
        ),
        ("truth, reconstruction", "truth, truth", &["pictures[0].show[1]", "appears twice"]),
        ("[truth, reconstruction, error]", "[]", &["pictures[0].show", "empty"]),
        (
            "title: A grid",
            "title: A grid\n    kind: gird",
            &["pictures[0].kind", "did you mean `grid`"],
        ),
        (
            "title: A table",
            "title: A table\n    rows: metric",
            &["a.yaml:36", "tables[0].rows", "signal-x"],
        ),
    ];
    are_refused(cases);
}

/// As above, for training settings.
#[test]
fn mistakes_in_training_are_named_with_line_and_remedy() {
    let settings = "lines: { rows: [5] }, learning_rate: 1e-3, epochs: 10";
    let with = |more: &str, embedder: &str| {
        let protocol = format!("{{ kind: network-1d, {more} }}");
        let text = FILE.replace("{ kind: closed-form }", &protocol);
        parse(&text.replace("{ kind: gaussian, dimension: 256, sigma: 0.0025 }", embedder))
    };
    let gaussian = "{ kind: gaussian, dimension: 256, sigma: 0.0025 }";
    let accepted = [
        "",
        "width: 8, depth: 2, curve_every: 5, mean_of_first: 4, layers: true, reconstruction: {}",
        "sweep: { parameter: step, values: [1, 2] }, abscissa: samples",
    ];
    for more in accepted {
        let parsed = with(&format!("{settings}, {more}"), gaussian);
        assert!(parsed.is_ok(), "{more}: {:?}", parsed.err());
    }
    let rule = settings.replace("1e-3", "{ base: 1e-3, sigma: 0.1, exponent: -0.5 }");
    assert!(with(&rule, gaussian).is_ok());
    let cases: &[(&str, &[&str])] = &[
        ("width: 0", &["protocol.width", "allowed: 1 to"]),
        ("depth: 17", &["protocol.depth", "0 to 16"]),
        ("depth: -1", &["protocol.depth"]),
        ("step: 0", &["protocol.step", "1 to"]),
        ("repeats: 0", &["protocol.repeats"]),
        ("repeats: 100001", &["protocol.repeats"]),
        ("weight_decay: 1", &["protocol.weight_decay", "below 1"]),
        ("value_scale: 0", &["protocol.value_scale", "above 0"]),
        ("value_scale: .nan", &["protocol.value_scale", "above 0"]),
        ("mean_of_last: 0", &["protocol.mean_of_last"]),
        ("curve_every: 11", &["protocol.curve_every", "0 to 10"]),
        ("mean_of_first: 5", &["protocol.mean_of_first", "curve_every"]),
        ("layers: true", &["protocol.layers", "curve_every"]),
        ("scale: bach", &["protocol.scale", "did you mean `batch`"]),
        ("test: al", &["protocol.test", "midpoints"]),
        ("reconstruction: { outside: 2 }", &["protocol.reconstruction.outside", "0 to 1"]),
        (
            "sweep: { parameter: sgima, values: [1] }",
            &["protocol.sweep.parameter", "sigma", "`step`"],
        ),
        ("sweep: { parameter: sigma, values: [1, 0] }", &["protocol.sweep.values", "sigma"]),
        ("sweep: { parameter: step, values: [0] }", &["protocol.sweep.values", "whole numbers"]),
        (
            "sweep: { parameter: sigma, values: [1] }, abscissa: samples",
            &["protocol.abscissa", "allowed: parameter"],
        ),
        (
            "sweep: { parameter: sigma, values: [1] }, curve_every: 2",
            &["protocol.curve_every", "without a sweep"],
        ),
        (
            "sweep: { parameter: sigma, values: [1] }, reconstruction: {}",
            &["protocol.reconstruction", "without a sweep"],
        ),
    ];
    for (more, needles) in cases {
        let message = with(&format!("{settings}, {more}"), gaussian).expect_err(more);
        names(&message, "a.yaml:10", more, needles);
    }
    let replaced: &[(&str, &str, &[&str])] = &[
        ("rows: [5]", "rows: [-1]", &["protocol.lines.rows", "whole numbers"]),
        ("rows: [5]", "rows: [0.5]", &["protocol.lines.rows", "whole numbers"]),
        ("{ rows: [5] }", "{}", &["protocol.lines", "no line"]),
        ("1e-3", "0", &["protocol.learning_rate", "1e-30 to 1e3"]),
        ("1e-3", "fast", &["protocol.learning_rate", "a number or {base, sigma, exponent}"]),
        ("1e-3", "{ base: 1, sigma: 0, exponent: 1 }", &["learning_rate.sigma", "above 0"]),
        ("epochs: 10", "epochs: 0", &["protocol.epochs"]),
    ];
    for (from, to, needles) in replaced {
        let message = with(&settings.replace(from, to), gaussian).expect_err(to);
        names(&message, "a.yaml:10", to, needles);
    }
    let steep = rule.replace("-0.5", "10").replace("0.1", "1e9");
    let message = with(&steep, gaussian).expect_err("a rate of nothing");
    assert!(message.contains("learning_rate") && message.contains("sigma = 0.0025"), "{message}");
    let message = with(&rule, "{ kind: impulse, dimension: 256 }").expect_err("no sigma");
    assert!(message.contains("learning_rate") && message.contains("impulse"), "{message}");
    let text =
        FILE.replace("{ kind: closed-form }", &format!("{{ kind: network-1d, {settings} }}"));
    let seeds =
        text.replace("data: { set: div2k-test }", "data: { set: div2k-test }\n    seeds: 2");
    let message = parse(&seeds).expect_err("seeds");
    assert!(message.contains("a.yaml:10") && message.contains("`repeats`"), "{message}");
}

/// Catches numbers that would exhaust memory or take weeks. Each must be an error with line, key and allowed values.
#[test]
fn absurd_numbers_are_refused() {
    let protocol = |settings: &str| FILE.replace("{ kind: closed-form }", settings);
    let one_line = "kind: network-1d, lines: { random: 1 }, learning_rate: 0.1";
    let image = "kind: image-model, side: 8, levels: 4, held_out: 4, encoding: { features: sine }, steps: 9, learning_rate: 0.1, \
                 warm_up: 1, measure_every: 1, heads: 1";
    let scenes = "kind: detection, encoding: { features: sine }, heads: 1, decoder_layers: 1, queries: 2, steps: 9, \
                  learning_rate: 0.1, warm_up: 1, measure_every: 1";
    let words = "kind: translation, lengths: constant, held_out: 4, heads: 1, deviation: 1, steps: 9, learning_rate: 0.1, \
                 warm_up: 1, bin: 1";
    let variants: String = (0..1001)
        .map(|i| format!("      - {{ id: v{i}, embedder: {{ kind: gaussian, dimension: 16, sigma: 0.1 }} }}\n"))
        .collect();
    let gaussian = "      - { id: Gau, embedder: { kind: gaussian, dimension: 16, sigma: 0.1 } }\n";
    let many = |count: usize| -> String {
        variants.lines().take(count).map(|l| format!("{l}\n")).collect()
    };
    let sweep = "values: { from: 0.01, to: 1, count: 100 } }";
    for (text, expected) in [
        (FILE.replace("samples: [1, 2]", "samples: { from: 0, to: 1e18, step: 1e-9 }"), "1 to 10000 numbers"),
        (FILE.replace("samples: [1, 2]", "samples: { from: 1, to: 2, count: 1000000000 }"), "2 to 10000"),
        (FILE.replace("dimension: 256", "dimension: 1000000000000"), "10000000"),
        (FILE.replace("- id: images", "- id: images\n    seeds: 1000000000"), "allowed: 1 to 100000"),
        (FILE.replace("signals: 1 }", "signals: 1000000000 }"), "allowed: 1 to 100000"),
        (FILE.replace(gaussian, &variants), "1002 variants; allowed: 1000"),
        (
            FILE.replace(gaussian, &many(500)).replace("- id: rank", "- id: rank\n    seeds: 1000"),
            "the file has at least 100001 variants × seeds; allowed: up to 100000",
        ),
        (
            FILE.replace(gaussian, &many(500)).replace("values: [0.1] }", sweep),
            "the file has at least 20100 sweep values over all variants and profiles; allowed: up to 20000",
        ),
        (
            FILE.replace(gaussian, &many(900)).replace("samples: [1, 2]", "samples: { from: 1, to: 8000, step: 1 }"),
            "bytes of settings over all variants and profiles; allowed: up to 16777216",
        ),
        (protocol(&format!("{{ {one_line}, epochs: 10, width: 1000000000 }}")), "allowed: 1 to 8192"),
        (protocol(&format!("{{ {one_line}, epochs: 1000000000000 }}")), "allowed: 1 to 100000000"),
        (protocol(&format!("{{ {one_line}, epochs: 10, repeats: 1000000000 }}")), "allowed: 1 to 100000"),
        (
            protocol(&format!("{{ {one_line}, epochs: 10000000, curve_every: 1 }}")),
            "yields 2.0e7 points over 2 runs; allowed: 1e6",
        ),
        (
            protocol(&format!("{{ {image}, layers: 48, width: 4096, feed_forward: 65536, batch: 1 }}")),
            "2.9e10 weights; allowed: 2e9",
        ),
        (
            protocol(&format!("{{ {image}, layers: 48, width: 64, feed_forward: 64, batch: 4096, side: 64 }}")
                .replace("side: 8, ", "")),
            "a step would keep",
        ),
        (
            protocol(&format!(
                "{{ {scenes}, sides: [512], held_out: 100000, width: 8, feed_forward: 8, encoder_layers: 0, batch: 1 }}"
            )),
            "the scenes need 315 GB; allowed: 64 GB",
        ),
        (
            protocol(&format!(
                "{{ {scenes}, sides: [18446744073709551608], held_out: 1, width: 8, feed_forward: 8, encoder_layers: 0, \
                 batch: 1 }}"
            )),
            "at most 512",
        ),
        (
            protocol(&format!("{{ {words}, words: 9, max_len: 512, layers: 48, width: 8, feed_forward: 8, batch: 4096 }}"))
                .replace("data: { set: div2k-test }", "")
                .replace("signals: 1 }", "}"),
            "a step would keep",
        ),
    ] {
        let message = parse(&text).unwrap_err();
        assert!(message.starts_with("a.yaml:") && message.contains(expected), "`{expected}`: {message}");
    }
}

/// Catches keys of papers and items that are not valid file names, such as paths to other folders.
#[test]
fn keys_are_valid_file_names() {
    for bad in ["../x", "/x", "a/b", "a\\\\b", "C:", "..", ".", "", "a\\0", "A", "é"] {
        for key in ["paper: extensions", "item: mexican-hat"] {
            let name = key.split(':').next().unwrap();
            let message = parse(&FILE.replace(key, &format!("{name}: \"{bad}\""))).unwrap_err();
            assert!(
                message.contains(&format!("`{name}`")) && message.contains("a-z, 0-9"),
                "{message}"
            );
        }
        let paper = "{ key: K, title: t, authors: [], venue: v, year: 1, summary: s, items: [{ item: I, name: n, title: t }] }";
        for (from, other, path) in [("K", "I", "key"), ("I", "K", "items[0].item")] {
            let text = paper.replace(&format!(": {from}"), &format!(": \"{bad}\""));
            let document = Document::parse(
                Path::new("paper.yaml"),
                &text.replace(&format!(": {other}"), ": x"),
            );
            let message = Paper::from_document(&document.unwrap()).unwrap_err().to_string();
            assert!(message.contains(path) && message.contains("a-z, 0-9"), "{message}");
        }
    }
}

/// A file whose settings come from anchors, merge keys, variants and profiles.
const LAYERS: &str = r#"
paper: extensions
item: mexican-hat
kind: extra
title: A title
shows: What it shows
groups:
  - id: one
    data: { set: div2k-test }
    protocol: &network
      kind: network-nd
      learning_rate: 0.1
      epochs: 10
    variants: &variants
      - id: Gau
        embedder:
          kind: gaussian
          dimension: 16
          sigma: 0.1
        settings:
          depth: 1
    profiles:
      smoke:
        reduced: few epochs
        settings:
          epochs: 2
  - id: two
    data: { set: div2k-test }
    protocol:
      <<: *network
      width: 8
    variants: *variants
claims:
  - id: first
    says: it is high
    source: nowhere
    check:
      kind: bound
      of:
        group: two
        metric: test_psnr
        x:
          from: 1
          to: 2
      at_most: 3
"#;

/// Catches a typo that is reported at the line of another layer of settings, of an alias, or of the end of its mapping.
#[test]
fn typos_are_reported_at_their_line() {
    let text = LAYERS;
    parse(text).unwrap();
    for (from, to) in [
        ("learning_rate: 0.1", "learning_rat: 0.1"),
        ("learning_rate: 0.1", "learning_rate: fast"),
        ("learning_rate: 0.1", "learning_rate: -1"),
        ("      epochs: 10", "      epoch: 10"),
        ("sigma: 0.1", "sigma: -0.1"),
        ("depth: 1", "deph: 1"),
        ("depth: 1", "depth: 17"),
        ("reduced: few", "reduce: few"),
        ("epochs: 2", "epoch: 2"),
        ("epochs: 2", "epochs: 0"),
        ("width: 8", "widht: 8"),
        ("width: 8", "width: 0"),
        ("kind: network-nd", "kind: network-md"),
        ("kind: gaussian", "kind: gausian"),
        ("source: nowhere", "sorce: nowhere"),
        ("group: two", "gruop: two"),
        ("group: two", "group: tow"),
        ("at_most: 3", "at_mots: 3"),
    ] {
        let line = text.lines().position(|line| line.contains(from)).unwrap() + 1;
        let message = parse(&text.replacen(from, to, 1)).expect_err(to);
        let place = format!("a.yaml:{line}: ");
        assert!(message.starts_with(&place), "{to}, line {line}: {message}");
    }
}
