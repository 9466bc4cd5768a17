//! Panels by metric, marked points, references, bands, and published values under other names.

use std::fs;
use std::path::Path;

use posenc_experiments::Catalog;
use posenc_experiments::record::{Row, Table};
use posenc_experiments::schema::Profile;
use posenc_report::{Inputs, Record, Records, Report, render};

const PAPER: &str = "\
key: demo
title: Panels
authors: [Ada One]
venue: Nowhere
year: 2024
summary: None.
items:
  - { item: fig1, name: \"Figure 1\", title: \"A figure\" }
";

const FIGURE: &str = "\
paper: demo
item: fig1
kind: figure
title: A figure
shows: Nothing.
groups:
  - id: run
    protocol: { kind: stable-rank, samples: [1] }
    variants:
      - { id: Gau, embedder: { kind: gaussian, dimension: 10, sigma: 0.1 } }
      - { id: RFF, embedder: { kind: rff, dimension: 10, sigma: 1 } }
plots:
  - id: p
    caption: A caption.
    panels:
      - title: a panel
        group: run
        metric: train
        x: { label: x, scale: log }
        y: { label: y }
PANEL
tables:
  - id: t
    title: A table
    groups: [run]
    columns:
      - { metric: train, label: PSNR, x: 1 }
COLUMN
";

/// `train` and `test` of both methods at x = 1, 10, 100 for two signals; a `target` that is the same.
fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for (method, level) in [("Gau", 30.0), ("RFF", 20.0)] {
        for (i, x) in [1.0, 10.0, 100.0].into_iter().enumerate() {
            for (signal, step) in [("row 1", -2.0), ("row 2", 2.0)] {
                for (metric, value) in
                    [("train", level + i as f64), ("test", level - 5.0), ("target", 3.0)]
                {
                    let spread = if metric == "train" { step } else { 0.0 };
                    rows.push(Row {
                        group: "run".into(),
                        method: method.into(),
                        signal: signal.into(),
                        seed: 0,
                        metric: metric.into(),
                        x: Some(x),
                        y: None,
                        value: value + spread,
                        unit: String::new(),
                        profile: Profile::Paper,
                        device: "cpu".into(),
                        data: "-".into(),
                    });
                }
            }
        }
    }
    rows
}

fn report(panel: &str, column: &str, published: &str) -> Report {
    let root = tempfile::tempdir().expect("a directory");
    let folder = root.path().join("experiments/demo");
    fs::create_dir_all(&folder).expect("a folder");
    fs::create_dir_all(root.path().join("data/papers")).expect("a folder");
    let figure = FIGURE.replace("PANEL", panel).replace("COLUMN", column);
    let header = "item,group,method,signal,metric,x,value,std,unit,source,note\n";
    for (name, text) in [
        ("experiments/demo/paper.yaml", PAPER),
        ("experiments/demo/01-fig1.yaml", &figure),
        ("data/papers/demo.csv", &format!("{header}{published}")),
    ] {
        fs::write(root.path().join(name), text).expect("a file");
    }
    let catalog = Catalog::read(root.path(), posenc_protocols::KINDS).expect("a catalog");
    let mut records = Records::default();
    let record = Record { table: Table { rows: rows() }, ..Record::default() };
    records.items.insert(("demo".into(), "fig1".into()), record);
    let inputs = Inputs {
        catalog: &catalog,
        reference: &records,
        local: None,
        repository: "",
        record: None,
        costs: None,
    };
    render(&inputs).expect("a report")
}

fn text(report: &Report, name: &str) -> String {
    String::from_utf8(report.files.get(Path::new(name)).expect("a file").clone()).expect("text")
}

fn svg(panel: &str) -> String {
    text(&report(panel, "", ""), "figures/demo/fig1-p.svg")
}

/// Curves are drawn 2.2 pixels wide, in tenths of a pixel.
fn curves(svg: &str) -> usize {
    svg.lines().filter(|l| l.starts_with("<polyline") && l.contains("stroke-width=\"22\"")).count()
}

/// Samples of curves in the legend count as curves.
#[test]
fn metrics_make_curves_of_their_own() {
    assert_eq!(curves(&svg("")), 2 + 2);
    let one = svg(
        "        methods: [Gau]\n        series: metric\n        metric_label: training\n        \
                   more: [{ metric: test, label: between }]",
    );
    assert_eq!(curves(&one), 2 + 2);
    assert!(one.contains(">training<") && one.contains(">between<"), "{one}");
    let two = svg("        series: metric\n        more: [{ metric: test, label: between }]");
    assert_eq!(curves(&two), 4 + 4);
    assert!(two.contains(">RFF, between<") && two.contains(">Gau, train<"), "{two}");
}

/// Catches a target that is drawn once for every method, or not named.
#[test]
fn a_reference_is_drawn_once() {
    let with = svg("        reference: { metric: target, label: the target }");
    assert_eq!(curves(&with), 3 + 3);
    assert!(with.contains(">the target<"), "{with}");
}

/// Catches a band that says something else than it shows.
#[test]
fn bands_are_named_and_as_wide_as_they_say() {
    // Two values 4 apart: the interval of their mean is ± 25, their deviation ± 2.
    let height = |svg: &str| {
        let band = svg.lines().find(|l| l.contains("opacity=\"0.18\"")).expect("a band");
        let points = band.split("points=\"").nth(1).and_then(|p| p.split('"').next()).expect("it");
        let ys = || points.split_whitespace().filter_map(|p| p.split(',').nth(1)?.parse().ok());
        ys().fold(f64::MIN, f64::max) - ys().fold(f64::MAX, f64::min)
    };
    let (interval, deviation) = (svg(""), svg("        band: deviation"));
    assert!(interval.contains("95 % interval of the mean"));
    assert!(deviation.contains("mean ± standard deviation") && !deviation.contains("interval"));
    // The axis of the first is longer: compare with the distance of its curves.
    assert!(height(&interval) > 0.5 * 2600.0 && height(&deviation) < 0.5 * 2600.0);
    assert!(!svg("        band: none").contains("opacity=\"0.18\""));
    let one = svg("        signals: [row 1]");
    assert!(!one.contains("opacity=\"0.18\""), "one signal has no spread");
}

/// A mark lies on the curve of its method, also between two points of it, and not beyond its end.
#[test]
fn marks_lie_on_their_curves() {
    let marks = |at: &str| {
        let panel = format!(
            "        band: none\n        markers: [{{ label: the mark, shape: star, at: {{ {at} }} }}]"
        );
        let svg = svg(&panel);
        let star = |l: &&str| l.starts_with("<polygon") && l.matches(',').count() == 10;
        // In the panel and in the legend, each with a rim.
        let stars = svg.lines().filter(star).count();
        (stars, svg.contains(">the mark<"))
    };
    assert_eq!(marks("Gau: 5, RFF: 5"), (4 + 2, true));
    assert_eq!(marks("Gau: 100"), (2 + 2, true));
    assert_eq!(marks("Gau: 101"), (0, false));
}

/// Catches published values that are lost because they carry the paper's names.
#[test]
fn published_values_under_other_names() {
    let published =
        "fig1,notebook,N=8,,train,10,30,,dB,notebook,\nfig1,run,Gau,,final_train,,29,,dB,plot,\n";
    let crosses = |report: &Report| {
        let svg = text(report, "figures/demo/fig1-p.svg");
        svg.lines().filter(|l| l.contains("stroke-width=\"44\"")).count() / 2
    };
    assert_eq!(crosses(&report("", "", published)), 0);
    let panel = "        published_as: [{ group: notebook, method: \"N=8\", shown: Gau }]";
    let shown = report(panel, "", published);
    // One in the panel, one in the legend.
    assert_eq!(crosses(&shown), 2);
    assert!(!text(&shown, "demo.md").contains("29<sup>p</sup>"));
    let column = "      - { metric: train, label: the same, x: 10, published_metric: final_train }";
    let page = text(&report("", column, published), "demo.md");
    let row = page.lines().find(|l| l.starts_with("| Gau ")).expect("a row");
    assert!(row.contains("29<sup>p</sup>"), "{row}");
}
