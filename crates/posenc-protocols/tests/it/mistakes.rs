//! Errors about experiment files contain the line and the remedy.

use std::path::Path;

use posenc_experiments::schema::paper::Paper;
use posenc_experiments::yaml::Document;

use crate::{FILE, parse};

/// The errors for the changes of a file, a line each: the replaced text, ` => ` and its replacement. No text is replaced by an addition.
pub fn refusals(cases: &str, parsed: impl Fn(&str, &str) -> Result<(), String>) -> String {
    let error = |case: &str| {
        let (from, to) = case.split_once(" => ").expect(case);
        let [from, to] = [from, to].map(|text| text.replace("\\n", "\n"));
        let message = parsed(&from, &to).expect_err(case);
        assert!(message.starts_with("a.yaml"), "{case}: {message}");
        format!("{case}\n    {message}\n")
    };
    cases.lines().filter(|line| !line.is_empty()).map(error).collect()
}

/// Settings after a change.
pub fn replaced(settings: &str, from: &str, to: &str) -> String {
    assert!(settings.contains(from), "{from}");
    if from.is_empty() { format!("{settings}, {to}") } else { settings.replace(from, to) }
}

/// Parses [`FILE`] after a change.
fn changed(from: &str, to: &str) -> Result<(), String> {
    assert!(FILE.contains(from), "{from}");
    parse(&FILE.replacen(from, to, 1)).map(drop)
}

/// Catches a mistake that is accepted, or a message without its line and remedy.
#[test]
fn mistakes_are_named_with_line_and_remedy() {
    assert_eq!(changed("", ""), Ok(()));
    insta::assert_snapshot!("files", refusals(FILES, changed));
    let claim = |_: &str, check: &str| {
        let second = format!("- id: second\n    says: a\n    source: b\n    check: {{ {check} }}");
        changed("plots:", &format!("  {second}\nplots:"))
    };
    insta::assert_snapshot!("claims", refusals(CLAIMS, claim));
}

const FILES: &str = r#"
item: mexican-hat => itme: mexican-hat
caption: test_psnr => caption: psnr
{ reduced: one image, signals: 1 } => { variants: [Guu], reduced: one image }
{ reduced: one image, signals: 1 } => { variants: [], reduced: one image }
samples: [1, 2] => samples: many
samples: [1, 2] => samples: [0]
samples: [1, 2] => samples: { from: 0, to: 1e18, step: 1e-9 }
samples: [1, 2] => samples: { from: 1, to: 2, count: 1000000000 }
dimension: 256 => dimension: 1000000000000
values: [0.1] => values: [0.1, 0]
parameter: sigma => parameter: sgima
sigma: 0.1 } => sigma: 0 }
sigma: 0.1 } => sigma: -1 }
sigma: 0.1 } => sigma: .nan }
dimension: 16 => dimension: 0
dimension: 16 => dimension: 1.5
dimension: 16, sigma => dimension: 16, sgima
kind: gaussian, dimension: 16 => kind: gausian, dimension: 16
{ kind: gaussian, dimension: 16, sigma: 0.1 } => { kind: formula, dimension: 16, psi: "exp(-u*" }
{ kind: gaussian, dimension: 16, sigma: 0.1 } => { kind: formula, dimension: 16, psi: "ln(-1-u*u)" }
id: rank => id: images
kind: stable-rank => kind: stable-rnak
kind: trend => kind: tend
kind: gaussian, dimension: 16 => kind: 3, dimension: 16
id: first => id: first.one
group: rank, metric => group: rang, metric
id: rank => id: rank\n    metrics: [params]
metric: stable_rank }, direction => metric: stable_rnak }, direction
kind: trend, of: { group: rank, metric: stable_rank }, direction: increasing } => kind: bound, of: { group: rank, metric: stable_rank }, at_most: 1e999 }
kind: trend, of: { group: rank, metric: stable_rank }, direction: increasing } => kind: bound, of: { group: rank, metric: stable_rank }, at_most: .nan }
kind: trend, of: { group: rank, metric: stable_rank }, direction: increasing } => kind: bound, of: { group: rank, metric: stable_rank }, at_most: 1, at_least: 2 }
metric: stable_rank }, direction => metric: stable_rank, x: { from: 2, to: 1 } }, direction
signals: 1 => signals: 0
signals: 1 => signals: 1000000000
- id: images => - id: images\n    seeds: 0
- id: images => - id: images\n    seeds: 1000000000
signals: 1 => seeds: 0
smoke: { => paper: {
smoke: { => quick: { refused: it runs at `long` }\n      smoke: {
data: { set: div2k-test } => seeds: 1
kind: extra => kind: picture
paper: extensions => paper: "a/b"
groups:\n => groups: 3\nextra:\n
group: rank, metric: stable_rank }, direction => from: published, group: rank, metric: stable_rank }, direction
x: { label: N } => markers: [{ label: a, shape: star, at: { Gua: 3 } }]\n        x: { label: N }
x: { label: N } => more: [{ metric: a, label: b }]\n        x: { label: N }
x: { label: N } => x: { label: N, scale: log, from: 0 }
y: { label: rank } => y: { label: rank, scale: log, to: -1 }
title: A grid => titel: A grid
id: grid => id: A grid
groups: [images]\n    show => groups: [imags]\n    show
groups: [images]\n    show => groups: []\n    show
truth, reconstruction => truth, recontruction
truth, reconstruction => truth, truth
[truth, reconstruction, error] => []
title: A grid => title: A grid\n    kind: gird
title: A table => title: A table\n    rows: metric
"#;

const CLAIMS: &str = "
 => kind: position, of: { group: rank, metric: a }, feature: highest, below_highest: 3, at: 1
 => kind: position, of: { group: rank, metric: a }, feature: highest
 => kind: agreement, of: { group: rank, metric: a }, tolerance: { standard_errors: 2 }
 => kind: bound, of: { group: rank, methods: [Gua], metric: a }, at_most: 1
 => kind: bound, of: { group: rank, signal: a, signals: [b], metric: a }, at_most: 1
 => kind: bound, of: { group: rank, signals: [], metric: a }, at_most: 1
";

/// As above, for training settings.
#[test]
fn mistakes_in_training_are_named_with_line_and_remedy() {
    let gaussian = "{ kind: gaussian, dimension: 256, sigma: 0.0025 }";
    let with = |settings: &str, embedder: &str| {
        let protocol = format!("{{ kind: network-1d, {settings} }}");
        let text = FILE.replace("{ kind: closed-form }", &protocol);
        parse(&text.replace(gaussian, embedder)).map(drop)
    };
    let accepted = [
        "width: 8, depth: 2, curve_every: 5, mean_of_first: 4, layers: true, reconstruction: {}",
        "sweep: { parameter: step, values: [1, 2] }, abscissa: samples",
    ];
    for more in accepted {
        assert_eq!(with(&format!("{TRAINING}, {more}"), gaussian), Ok(()), "{more}");
    }
    assert_eq!(with(TRAINING, gaussian), Ok(()));
    let rule = TRAINING.replace("1e-3", "{ base: 1e-3, sigma: 0.1, exponent: -0.5 }");
    assert_eq!(with(&rule, gaussian), Ok(()));
    let refused = refusals(TRAININGS, |from, to| with(&replaced(TRAINING, from, to), gaussian));
    insta::assert_snapshot!("training", refused);
    let steep = rule.replace("-0.5", "10").replace("0.1", "1e9");
    let message = with(&steep, gaussian).expect_err("a rate of nothing");
    assert!(message.contains("learning_rate") && message.contains("sigma = 0.0025"), "{message}");
    let message = with(&rule, "{ kind: impulse, dimension: 256 }").expect_err("no sigma");
    assert!(message.contains("learning_rate") && message.contains("impulse"), "{message}");
    let seeds = format!("{{ kind: network-1d, {TRAINING} }}\n    seeds: 2");
    let message = parse(&FILE.replace("{ kind: closed-form }", &seeds)).expect_err("seeds");
    assert!(message.contains("a.yaml:11") && message.contains("`repeats`"), "{message}");
}

const TRAINING: &str = "lines: { rows: [5] }, learning_rate: 1e-3, epochs: 10";

const TRAININGS: &str = "
 => width: 0
 => width: 1000000000
 => depth: 17
 => depth: -1
 => step: 0
 => repeats: 0
 => repeats: 100001
 => weight_decay: 1
 => value_scale: 0
 => value_scale: .nan
 => mean_of_last: 0
 => curve_every: 11
 => mean_of_first: 5
 => layers: true
 => scale: bach
 => test: al
 => reconstruction: { outside: 2 }
 => sweep: { parameter: sgima, values: [1] }
 => sweep: { parameter: sigma, values: [1, 0] }
 => sweep: { parameter: step, values: [0] }
 => sweep: { parameter: sigma, values: [1] }, abscissa: samples
 => sweep: { parameter: sigma, values: [1] }, curve_every: 2
 => sweep: { parameter: sigma, values: [1] }, reconstruction: {}
rows: [5] => rows: [-1]
rows: [5] => rows: [0.5]
{ rows: [5] } => {}
1e-3 => 0
1e-3 => fast
1e-3 => { base: 1, sigma: 0, exponent: 1 }
epochs: 10 => epochs: 0
epochs: 10 => epochs: 1000000000000
epochs: 10 => epochs: 10000000, curve_every: 1
";

/// Catches files whose parts are small and whose whole would exhaust memory or take weeks.
#[test]
fn absurd_products_are_refused() {
    let gaussian = "      - { id: Gau, embedder: { kind: gaussian, dimension: 16, sigma: 0.1 } }\n";
    let many = |count: usize| -> String {
        (0..count).map(|i| gaussian.replace("Gau", &format!("v{i}"))).collect()
    };
    for (count, from, to, expected) in [
        (1001, "", "", "1002 variants; allowed: 1000"),
        (
            500,
            "- id: rank",
            "- id: rank\n    seeds: 1000",
            "the file has at least 100001 variants × seeds; allowed: up to 100000",
        ),
        (
            500,
            "values: [0.1] }",
            "values: { from: 0.01, to: 1, count: 100 } }",
            "the file has at least 20100 sweep values over all variants and profiles; allowed: up to 20000",
        ),
        (
            900,
            "samples: [1, 2]",
            "samples: { from: 1, to: 8000, step: 1 }",
            "bytes of settings over all variants and profiles; allowed: up to 16777216",
        ),
    ] {
        let text = FILE.replace(gaussian, &many(count)).replacen(from, to, 1);
        let message = parse(&text).unwrap_err();
        assert!(
            message.starts_with("a.yaml:") && message.contains(expected),
            "`{expected}`: {message}"
        );
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
