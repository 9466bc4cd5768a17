//! A small repository in a temporary directory, and records for it.

use std::fs;
use std::path::Path;

use posenc_experiments::Catalog;
use posenc_experiments::record::{Provenance, Row, Table};
use posenc_experiments::schema::Profile;
use posenc_report::{Record, Records};

const PAPER: &str = "\
key: demo
title: A demonstration of pages
authors: [Ada One, Bea Two, Cy Three]
venue: Nowhere
year: 2024
arxiv: \"0000.00000\"
summary: |
  What the paper is about, with $\\lVert x\\rVert$ in it.
items:
  - { item: fig1, name: \"Figure 1\", title: \"Stable rank | distance\" }
  - { item: fig2, name: \"Figure 2\", title: \"A map\" }
  - { item: table1, name: \"Table 1\", title: \"Images on a grid\" }
  - { item: fig3, name: \"Figure 3\", title: \"An item without an experiment\" }
";

const FIG1: &str = "\
paper: demo
item: fig1
kind: figure
title: Stable rank of two embedders
shows: Curves that rise and saturate.
groups:
  - id: rank
    seeds: 3
    protocol: { kind: stable-rank, samples: { from: 10, to: 40, step: 10 } }
    variants:
      - { id: \"Gau σ=0.01\", embedder: { kind: gaussian, dimension: 100, sigma: 0.01 } }
      - { id: \"Gau σ=0.1\", embedder: { kind: gaussian, dimension: 100, sigma: 0.1 } }
      - { id: RFF, embedder: { kind: rff, dimension: 100, sigma: 5 } }
    profiles:
      smoke: { reduced: 2 of 4 sample counts, settings: { samples: [10, 40] } }
claims:
  - id: rises
    says: The stable rank rises with N, |Δ| > 0.
    source: Fig. 1, caption
    check: { kind: trend, of: { group: rank, metric: stable_rank }, direction: increasing, slack: 0.02 }
  - id: order
    says: The narrow Gaussian is above RFF.
    source: Fig. 1
    check:
      kind: ordering
      of:
        - { group: rank, method: \"Gau σ=0.01\", metric: stable_rank }
        - { group: rank, method: RFF, metric: stable_rank }
  - id: saturation
    says: RFF saturates at 12.5.
    source: Prop. 3
    check:
      kind: value
      of: { group: rank, method: RFF, metric: stable_rank, x: 40 }
      expect: 12.5
      tolerance: { absolute: 0.1 }
plots:
  - id: curves
    caption: Stable rank; dashed, $\\min(N, \\cdot)$.
    panels:
      - title: \"(a) stable rank\"
        group: rank
        metric: stable_rank
        dashed: bound
        x: { label: samples N }
        y: { label: stable rank }
tables:
  - id: values
    title: Stable rank at two sample counts
    rows: x
    row_label: N
    groups: [rank]
    methods: [RFF]
    columns:
      - { metric: stable_rank, label: stable rank, digits: 1 }
analysis: |
  A text with $10{,}000$ in it.
deviations:
  - Only three of the curves.
";

const FIG2: &str = "\
paper: demo
item: fig2
kind: figure
title: Similarity to a center
shows: A map.
groups:
  - id: similarity
    protocol: { kind: similarity, code: sine, grid: 4, center: [1, 1], dimension: 8, distances: [1] }
    variants:
      - { id: Sine-2D }
plots:
  - id: map
    caption: Similarity.
    panels:
      - title: Sine-2D
        kind: heatmap
        group: similarity
        metric: similarity
        x: { label: column }
        y: { label: row }
        color_label: similarity
";

const TABLE1: &str = "\
paper: demo
item: table1
kind: table
title: Images on a grid
shows: A table.
groups:
  - id: closed-form
    data: { set: pictures }
    protocol: { kind: closed-form, step: 2 }
    variants:
      - { id: Tri, embedder: { kind: triangle, dimension: 16, half_width: 0.0625 } }
      - { id: Gau, embedder: { kind: gaussian, dimension: 16, sigma: 0.04 } }
    profiles:
      smoke: { reduced: 2 of 16 images, signals: 2 }
claims:
  - id: gau
    says: Gau reaches 26.63 dB.
    source: Table 1
    check:
      kind: value
      of: { group: closed-form, method: Gau, metric: test_psnr }
      expect: published
      tolerance: { published_deviations: 1 }
tables:
  - id: table1
    title: Table 1
    groups: [simple, closed-form]
    columns:
      - { metric: test_psnr, label: \"test PSNR (dB)\", best: highest }
      - { metric: rank, label: rank, digits: 0, aggregate: mean }
      - { metric: params, label: parameters, digits: 0, aggregate: mean }
";

const PUBLISHED: &str = "\
item,group,method,signal,metric,x,value,std,unit,source,note
fig1,rank,RFF,,stable_rank,20,11.9,,,plot,
fig1,rank,RFF,,stable_rank,40,12.1,,,plot,
table1,simple,Tri,,test_psnr,,24.56,3.75,dB,paper,
table1,simple,Tri,,params,,329475,,count,paper,
table1,closed-form,Tri,,test_psnr,,26.36,3.39,dB,paper,
table1,closed-form,Gau,,test_psnr,,26.63,3.86,dB,notebook,
table1,closed-form,LogF,,test_psnr,,,,dB,paper,not reported (ill-conditioned)
";

/// Writes the repository and reads its catalog.
pub fn catalog(root: &Path) -> Catalog {
    let folder = root.join("experiments/demo");
    fs::create_dir_all(&folder).expect("a folder");
    fs::create_dir_all(root.join("data/papers")).expect("a folder");
    for (name, text) in [
        ("paper.yaml", PAPER),
        ("01-fig1.yaml", FIG1),
        ("02-fig2.yaml", FIG2),
        ("03-table1.yaml", TABLE1),
    ] {
        fs::write(folder.join(name), text).expect("a file");
    }
    fs::write(root.join("data/papers/demo.csv"), PUBLISHED).expect("a file");
    Catalog::read(root).expect("a catalog")
}

/// Which run to make up.
#[derive(Clone, Copy)]
pub struct Made {
    /// Profile of all rows.
    pub profile: Profile,
    /// Data of rows that have some.
    pub data: &'static str,
    /// Factor of all values.
    pub factor: f64,
}

/// The published protocol on the paper's data.
pub const REFERENCE: Made = Made { profile: Profile::Paper, data: "pictures", factor: 1.0 };
/// A small run on other data.
pub const LOCAL: Made = Made { profile: Profile::Smoke, data: "embedded images", factor: 1.02 };

/// Records of all items.
pub fn records(made: Made) -> Records {
    let mut records = Records::default();
    for (item, rows) in [("fig1", fig1(made)), ("fig2", fig2(made)), ("table1", table1(made))] {
        let provenance = Provenance {
            command: "cargo xtask reproduce".into(),
            commit: "0123456789abcdef0123-dirty".into(),
            versions: [("rustc".to_owned(), "1.95.0".to_owned())].into(),
            machine: "A machine | of some kind".into(),
            cores: 2,
            seed: 0,
            data: [(made.data.to_owned(), "ab".repeat(32))].into(),
            units: 3,
            seconds: 1.25,
            peak_memory: None,
        };
        let record = Record { table: Table { rows }, provenance, ..Record::default() };
        records.items.insert(("demo".into(), item.into()), record);
    }
    records
}

fn row(made: Made, group: &str, method: &str, metric: &str, value: f64) -> Row {
    Row {
        group: group.into(),
        method: method.into(),
        signal: "-".into(),
        seed: 0,
        metric: metric.into(),
        x: None,
        y: None,
        value: value * made.factor,
        unit: String::new(),
        profile: made.profile,
        device: "cpu".into(),
        data: "-".into(),
    }
}

fn fig1(made: Made) -> Vec<Row> {
    let mut rows = Vec::new();
    for (method, bound) in [("Gau σ=0.01", 28.2), ("Gau σ=0.1", 2.82), ("RFF", 12.5)] {
        for n in [10.0, 20.0, 30.0, 40.0f64] {
            rows.push(Row { x: Some(n), ..row(made, "rank", method, "bound", n.min(bound)) });
            for seed in 0..3 {
                let value = n * bound / (n + bound) + 0.1 * seed as f64;
                let one = row(made, "rank", method, "stable_rank", value);
                rows.push(Row { x: Some(n), seed, ..one });
            }
        }
    }
    rows
}

fn fig2(made: Made) -> Vec<Row> {
    let mut rows = Vec::new();
    for i in 0..16 {
        let (x, y) = ((i / 4) as f64, (i % 4) as f64);
        let one = row(made, "similarity", "Sine-2D", "similarity", 1.0 / (1.0 + x * y));
        rows.push(Row { x: Some(x), y: Some(y), ..one });
    }
    rows
}

fn table1(made: Made) -> Vec<Row> {
    let mut rows = Vec::new();
    for (method, level) in [("Tri", 26.3), ("Gau", 26.6)] {
        for (i, signal) in ["image-00", "image-01", "image-02"].into_iter().enumerate() {
            for (metric, value) in [("test_psnr", level + i as f64), ("rank", 16.0)] {
                rows.push(Row {
                    signal: signal.into(),
                    data: made.data.into(),
                    ..row(made, "closed-form", method, metric, value)
                });
            }
        }
    }
    rows
}
