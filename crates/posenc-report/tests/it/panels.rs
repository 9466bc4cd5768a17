//! Bands, single runs, dark colors and marks of panels.

use posenc_experiments::record::Row;
use posenc_report::Report;

use crate::common::{page, paper_yaml, records_of, rendered, repository};

pub const FIGURE: &str = "\
paper: demo
item: fig1
kind: figure
title: A figure
shows: Nothing.
groups:
  - id: run
    protocol: { kind: network-1d, lines: { rows: [5] }, learning_rate: 0.1, epochs: 9, sweep: { parameter: sigma, values: [1, 10, 100] } }
    variants:
      - { id: Gau, embedder: { kind: gaussian, dimension: 10, sigma: 0.1 } }
      - { id: RFF, embedder: { kind: rff, dimension: 10, sigma: 1 } }
plots:
  - id: p
    caption: A caption.
    labels: legend
    panels:
      - title: a panel
        group: run
        metric: train_psnr
        x: { label: x, scale: log }
        y: { label: y }
PANEL
tables:
  - id: t
    title: A table
    groups: [run]
    columns:
      - { metric: train_psnr, label: PSNR, x: 1 }
COLUMN
";

/// `train_psnr` and `test_psnr` of both methods at x = 1, 10, 100 for two signals; a `target` that is the same.
pub fn rows() -> Vec<Row> {
    rows_of(&[("row 1", -2.0), ("row 2", 2.0)])
}

/// Like [`rows`], for signals with their offsets from the mean of `train_psnr`.
pub fn rows_of(signals: &[(&str, f64)]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (method, level) in [("Gau", 30.0), ("RFF", 20.0)] {
        for (i, x) in [1.0, 10.0, 100.0].into_iter().enumerate() {
            for (signal, step) in signals.iter().copied() {
                for (metric, value) in
                    [("train_psnr", level + i as f64), ("test_psnr", level - 5.0), ("target", 3.0)]
                {
                    let spread = if metric == "train_psnr" { step } else { 0.0 };
                    rows.push(Row {
                        signal: signal.into(),
                        x: Some(x),
                        ..Row::new("run", method, metric, value + spread)
                    });
                }
            }
        }
    }
    rows
}

pub fn report_of(rows: Vec<Row>, figure: &str, published: &str) -> Report {
    let root = tempfile::tempdir().expect("a directory");
    let header = "item,group,method,signal,metric,x,value,std,unit,source,note\n";
    let files = [
        ("experiments/demo/paper.yaml", &*paper_yaml("demo", &["fig1"])),
        ("experiments/demo/01-fig1.yaml", figure),
        ("data/papers/demo.csv", &format!("{header}{published}")),
    ];
    let catalog = repository(root.path(), &files).expect("a catalog");
    rendered(&catalog, &records_of("demo", "fig1", rows), None)
}

fn svg(panel: &str) -> String {
    let figure = FIGURE.replace("PANEL", panel).replace("COLUMN", "");
    page(&report_of(rows(), &figure, ""), "figures/demo/fig1-p.svg")
}

/// Catches a band whose name or width does not match its kind.
#[test]
fn bands_match_their_names() {
    let height = |svg: &str| {
        let band = svg.lines().find(|l| l.contains("opacity=\"0.18\"")).expect("a band");
        let points = band.split("points=\"").nth(1).and_then(|p| p.split('"').next()).expect("it");
        let ys = || points.split_whitespace().filter_map(|p| p.split(',').nth(1)?.parse().ok());
        ys().fold(f64::MIN, f64::max) - ys().fold(f64::MAX, f64::min)
    };
    // Eight values with a deviation of 2: the interval of their mean is ± 1.8.
    let names: Vec<String> = (1..=8).map(|i| format!("row {i}")).collect();
    let step = |i: usize| if i.is_multiple_of(2) { 2.0 } else { -2.0 };
    let signals: Vec<(&str, f64)> =
        names.iter().enumerate().map(|(i, name)| (name.as_str(), step(i))).collect();
    let of_eight = |panel: &str| {
        let figure = FIGURE.replace("PANEL", panel).replace("COLUMN", "");
        page(&report_of(rows_of(&signals), &figure, ""), "figures/demo/fig1-p.svg")
    };
    let (interval, deviation) = (of_eight(""), of_eight("        band: deviation"));
    assert!(interval.contains("95 % interval of the mean"));
    assert!(deviation.contains("mean ± standard deviation") && !deviation.contains("interval"));
    assert!(height(&interval) < height(&deviation));
    assert!(!of_eight("        band: none").contains("opacity=\"0.18\""));
    let one = svg("        signals: [row 1]");
    assert!(!one.contains("opacity=\"0.18\""), "one signal has no spread");
}

/// Catches an interval of two values, which is not informative.
#[test]
fn few_runs_are_drawn_instead_of_an_interval() {
    let runs = |svg: &str| {
        svg.lines().filter(|l| l.contains("<polyline fill=\"none\" opacity=\"0.5\"")).count()
    };
    let two = svg("");
    assert!(!two.contains("opacity=\"0.18\"") && two.contains("single runs"), "{two}");
    // Two of each method.
    assert_eq!(runs(&two), 4);
    assert_eq!(runs(&svg("        band: none")), 0);
}

/// Catches colors without a counterpart for dark backgrounds.
#[test]
fn every_color_has_a_dark_counterpart() {
    let svg = svg("");
    let style = svg.split("prefers-color-scheme: dark").nth(1).expect("a style sheet");
    for line in svg.lines().filter(|l| l.starts_with("<polyline") || l.starts_with("<text")) {
        let attribute = if line.starts_with("<text") { "fill" } else { "stroke" };
        let color = line.split(&format!("{attribute}=\"#")).nth(1).and_then(|c| c.get(..6));
        let color = color.expect("a color");
        assert!(style.contains(&format!("[{attribute}=\"#{color}\"]")), "{color} in {style}");
    }
}

/// Catches marks that are off the curve of their method between two of its points, and marks beyond its end.
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
