//! Panels by metric, marked points, references, bands, and published values under other names.

use std::fs;
use std::path::Path;

use posenc_experiments::Catalog;
use posenc_experiments::record::{ItemRecord, Row, Table};
use posenc_report::{Inputs, Records, Report, render};

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

fn report(panel: &str, column: &str, published: &str) -> Report {
    report_of(rows(), &FIGURE.replace("PANEL", panel).replace("COLUMN", column), published)
}

pub fn report_of(rows: Vec<Row>, figure: &str, published: &str) -> Report {
    let root = tempfile::tempdir().expect("a directory");
    let folder = root.path().join("experiments/demo");
    fs::create_dir_all(&folder).expect("a folder");
    fs::create_dir_all(root.path().join("data/papers")).expect("a folder");
    let header = "item,group,method,signal,metric,x,value,std,unit,source,note\n";
    for (name, text) in [
        ("experiments/demo/paper.yaml", PAPER),
        ("experiments/demo/01-fig1.yaml", figure),
        ("data/papers/demo.csv", &format!("{header}{published}")),
    ] {
        fs::write(root.path().join(name), text).expect("a file");
    }
    let catalog = Catalog::read(root.path(), posenc_protocols::KINDS).expect("a catalog");
    let mut records = Records::default();
    let record = ItemRecord { table: Table { rows }, ..ItemRecord::default() };
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

pub fn text(report: &Report, name: &str) -> String {
    String::from_utf8(report.files.get(Path::new(name)).expect("a file").clone()).expect("text")
}

fn svg(panel: &str) -> String {
    text(&report(panel, "", ""), "figures/demo/fig1-p.svg")
}

/// Curves are drawn 2.2 pixels wide, in tenths of a pixel.
fn curves(svg: &str) -> usize {
    svg.lines().filter(|l| l.starts_with("<polyline") && l.contains("stroke-width=\"22\"")).count()
}

/// Catches metrics that share a curve. Samples in the legend count as curves.
#[test]
fn each_metric_has_its_own_curve() {
    assert_eq!(curves(&svg("")), 2 + 2);
    let one = svg(
        "        methods: [Gau]\n        series: metric\n        metric_label: training\n        \
                   more: [{ metric: test_psnr, label: between }]",
    );
    assert_eq!(curves(&one), 2 + 2);
    assert!(one.contains(">training<") && one.contains(">between<"), "{one}");
    let two = svg("        series: metric\n        more: [{ metric: test_psnr, label: between }]");
    assert_eq!(curves(&two), 4 + 4);
    assert!(two.contains(">RFF, between<") && two.contains(">Gau, train_psnr<"), "{two}");
}

/// Catches a target that is drawn once for every method, or not named.
#[test]
fn a_reference_is_drawn_once() {
    let with = svg("        reference: { metric: target, label: the target }");
    assert_eq!(curves(&with), 3 + 3);
    assert!(with.contains(">the target<"), "{with}");
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
        text(&report_of(rows_of(&signals), &figure, ""), "figures/demo/fig1-p.svg")
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

/// Catches curves that have no name without a legend, and colors other than the specified ones.
#[test]
fn curves_are_named_at_their_ends_in_the_specified_colors() {
    let figure = FIGURE
        .replace(
            "labels: legend",
            "labels: end\n    colors: { Gau: red }\n    names: { RFF: random }",
        )
        .replace("PANEL", "")
        .replace("COLUMN", "");
    let svg = text(&report_of(rows(), &figure, ""), "figures/demo/fig1-p.svg");
    assert_eq!(curves(&svg), 2, "no samples of a legend");
    assert!(svg.contains(">Gau<") && svg.contains(">random<") && !svg.contains(">RFF<"), "{svg}");
    let stroke = |svg: &str| {
        let line = svg.lines().find(|l| l.contains("stroke-width=\"22\"")).expect("a curve");
        line.split("stroke=\"").nth(1).and_then(|c| c.get(..7)).expect("a color").to_owned()
    };
    assert_ne!(stroke(&svg), stroke(&self::svg("")), "Gau is red");
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

/// Catches abscissas that `x_of` does not scale, and axes that run the wrong way.
#[test]
fn abscissas_are_scaled_and_reversed() {
    let first = |svg: &str| {
        let line = svg.lines().find(|l| l.contains("stroke-width=\"22\"")).expect("a curve");
        let points = line.split("points=\"").nth(1).expect("points");
        let x = |p: &str| p.split(',').next().and_then(|x| x.parse::<i32>().ok());
        let points: Vec<&str> = points.split('"').next().unwrap_or("").split(' ').collect();
        (x(points[0]).expect("x"), x(points[points.len() - 1]).expect("x"))
    };
    let plain = first(&svg("        band: none"));
    assert!(plain.0 < plain.1);
    let scaled = first(&svg("        band: none\n        x_of: { Gau: { times: 10 } }"));
    assert!(scaled.0 > plain.0, "{scaled:?} {plain:?}");
    let figure = FIGURE
        .replace("x: { label: x, scale: log }", "x: { label: x, scale: log, reversed: true }");
    let figure = figure.replace("PANEL", "        band: none").replace("COLUMN", "");
    let reversed = first(&text(&report_of(rows(), &figure, ""), "figures/demo/fig1-p.svg"));
    assert!(reversed.0 > reversed.1, "{reversed:?}");
}

/// Catches a published mean that is missing next to the measured one, and profiles that are not means over directions.
#[test]
fn dots_and_radial_profiles() {
    let published = "fig1,run,Gau,,train_psnr,,29,1.5,dB,paper,\n";
    let dots = FIGURE.replace(
        "        metric: train_psnr\n",
        "        kind: dots\n        metric: train_psnr\n",
    );
    let dots = dots.replace("PANEL", "").replace("COLUMN", "");
    let svg = text(&report_of(rows(), &dots, published), "figures/demo/fig1-p.svg");
    assert!(
        svg.contains(">Gau<") && svg.contains(">RFF<") && svg.contains("published, mean"),
        "{svg}"
    );
    let mut map = Vec::new();
    for (x, y) in [(0.0, 0.0), (1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0), (1.0, 1.0)] {
        let row = rows().into_iter().next().expect("a row");
        map.push(Row { x: Some(x), y: Some(y), value: 1.0 - x.abs(), ..row });
    }
    let radial = FIGURE.replace(
        "        metric: train_psnr\n",
        "        kind: radial\n        metric: train_psnr\n",
    );
    let radial = radial.replace(", scale: log", "").replace("PANEL", "").replace("COLUMN", "");
    let svg = text(&report_of(map, &radial, ""), "figures/demo/fig1-p.svg");
    assert!(svg.contains("standard deviation over directions"), "{svg}");
    // The center and one ring: the corner is beyond the last whole ring.
    assert_eq!(svg.lines().filter(|l| l.starts_with("<circle")).count(), 2, "{svg}");
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

/// Catches published values that are lost because the paper names them differently.
#[test]
fn published_values_under_other_names() {
    let published = "fig1,notebook,N=8,,train_psnr,10,30,,dB,notebook,\n";
    let crosses = |report: &Report| {
        let svg = text(report, "figures/demo/fig1-p.svg");
        svg.lines().filter(|l| l.contains("stroke-width=\"44\"")).count() / 2
    };
    assert_eq!(crosses(&report("", "", "")), 0);
    let panel = "        published_as: [{ group: notebook, method: \"N=8\", shown: Gau }]";
    let shown = report(panel, "", published);
    // One in the panel, one in the legend.
    assert_eq!(crosses(&shown), 2);
    assert!(!text(&shown, "demo/fig1.md").contains("29<sup>p</sup>"));
    let column =
        "      - { metric: train_psnr, label: the same, x: 10, published_metric: final_train }";
    let published = "fig1,run,Gau,,final_train,,29,,dB,plot,\n";
    let page = text(&report("", column, published), "demo/fig1.md");
    let row = page.lines().find(|l| l.starts_with("| Gau ")).expect("a row");
    assert!(row.contains("29<sup>p</sup>"), "{row}");
}
