//! A small repository in a temporary directory, and records for it.

use std::fs;
use std::path::Path;

use posenc_experiments::Catalog;
use posenc_experiments::record::gallery::Content;
use posenc_experiments::record::{
    Gallery, GalleryPicture, ItemRecord, Picture, Provenance, Row, Table, Value,
};
use posenc_experiments::schema::Profile;
use posenc_report::{Inputs, PageKind, Records, Report, render};

/// The pages of the paper and its items as one text.
pub fn paper(report: &Report) -> String {
    let own =
        report.pages.iter().filter(|page| matches!(page.kind, PageKind::Paper | PageKind::Item));
    let texts = own.map(|page| String::from_utf8_lossy(&report.files[&page.path]).into_owned());
    texts.collect::<Vec<_>>().join("\n")
}

const PAPER: &str = "\
key: demo
title: A demonstration of pages
authors: [Ada One, Bea Two, Cy Three]
venue: Nowhere
year: 2024
arxiv: \"0000.00000\"
summary: |
  What the paper is about, with $\\lVert x\\rVert$ in it.
data: [pictures]
items:
  - { item: fig1, name: \"Figure 1\", title: \"Stable rank | distance\" }
  - { item: fig2, name: \"Figure 2\", title: \"A map\" }
  - { item: table1, name: \"Table 1\", title: \"Images on a grid\" }
  - { item: fig4, name: \"Figure 4\", title: \"Pictures and clips\" }
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
      tolerance: { absolute: 3.86 }
tables:
  - id: table1
    title: Table 1
    groups: [simple, closed-form]
    columns:
      - { metric: test_psnr, label: \"test PSNR (dB)\", best: highest }
      - { metric: rank, label: rank, digits: 0, aggregate: mean }
      - { metric: params, label: parameters, digits: 0, aggregate: mean }
      - { metric: time, label: \"time (s)\", digits: 3, aggregate: mean }
plots:
  - id: values
    caption: Means with their standard deviations.
    panels:
      - title: closed form
        kind: dots
        group: closed-form
        metric: test_psnr
        x: { label: test PSNR (dB) }
        y: { label: encoder }
";

const FIG4: &str = "\
paper: demo
item: fig4
kind: figure
title: Pictures
shows: What the methods make of an image and of a clip.
groups:
  - id: simple
    data: { set: pictures }
    protocol: { kind: closed-form, step: 2 }
    variants: &both
      - { id: Tri, embedder: { kind: triangle, dimension: 16, half_width: 0.0625 } }
      - { id: \"Gau σ=0.04\", embedder: { kind: gaussian, dimension: 16, sigma: 0.04 } }
    profiles:
      smoke: { reduced: a tenth of the epochs }
  - id: complex
    data: { set: pictures }
    protocol: { kind: closed-form, step: 2 }
    variants: *both
  - id: clips
    data: { set: pictures }
    protocol: { kind: closed-form, step: 2 }
    variants:
      - { id: Gau, embedder: { kind: gaussian, dimension: 16, sigma: 0.04 } }
pictures:
  - id: grid
    title: Reconstructions and five times the absolute error
    groups: [simple, complex]
    show: [truth, reconstruction, error]
    caption: test_psnr
  - id: clip
    title: A clip, every other frame, and one line of it over time
    groups: [clips]
    kind: strip
    show: [truth-frames, frames, truth-slice, slice]
  - id: one
    title: One group
    groups: [complex]
    show: [reconstruction]
";

const PUBLISHED: &str = "\
item,group,method,signal,metric,x,value,std,unit,source,note
fig1,rank,RFF,,stable_rank,20,11.9,,,plot,
fig1,rank,RFF,,stable_rank,40,12.1,,,plot,
table1,simple,Tri,,test_psnr,,24.56,3.75,dB,paper,
table1,simple,Tri,,params,,329475,,count,paper,
table1,closed-form,Tri,,test_psnr,,26.36,3.39,dB,paper,
table1,closed-form,Tri,image-01,test_psnr,,27.4,,dB,notebook,
table1,closed-form,Tri,,time,,0.02,,s,paper,
table1,closed-form,Gau,,test_psnr,,26.63,3.86,dB,paper,
table1,closed-form,LogF,,test_psnr,,,,dB,paper,not reported (ill-conditioned)
";

/// `paper.yaml` of a paper with these items, whose data are `pictures`.
pub fn paper_yaml(key: &str, items: &[&str]) -> String {
    let item = |item: &&str| format!("  - {{ item: {item}, name: {item}, title: T }}\n");
    let items: String = items.iter().map(item).collect();
    format!(
        "key: {key}\ntitle: T\nauthors: [Ada One]\nvenue: Nowhere\nyear: 2024\nsummary: S.\ndata: [pictures]\nitems:\n{items}"
    )
}

/// Records of a single item.
pub fn records_of(paper: &str, item: &str, rows: Vec<Row>) -> Records {
    let mut records = Records::default();
    let record = ItemRecord { table: Table { rows }, ..ItemRecord::default() };
    records.items.insert((paper.into(), item.into()), record);
    records
}

/// All Markdown of a report.
pub fn markdown(report: &Report) -> String {
    let pages = report.files.iter().filter(|(path, _)| path.extension().is_some_and(|e| e == "md"));
    pages.map(|(_, bytes)| String::from_utf8_lossy(bytes).into_owned()).collect()
}

/// The report of a repository next to its records.
pub fn rendered(catalog: &Catalog, reference: &Records, local: Option<&Records>) -> Report {
    let (repository, record) = ("..", Some("record"));
    let inputs = Inputs { catalog, reference, local, repository, record };
    render(&inputs).expect("a report")
}

/// The text of a file of a report.
pub fn page(report: &Report, name: &str) -> String {
    let bytes = report.files.get(Path::new(name)).unwrap_or_else(|| panic!("no {name}"));
    String::from_utf8(bytes.clone()).expect("text")
}

/// Writes files below `root` and reads the definitions among them as a catalog. Fails if the schema rejects them.
pub fn repository(root: &Path, files: &[(&str, &str)]) -> Result<Catalog, String> {
    fs::create_dir_all(root.join("data/papers")).expect("a folder");
    for (name, text) in files {
        let file = root.join(name);
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(file, text).expect("a file");
    }
    Catalog::read(root, posenc_protocols::KINDS).map_err(|error| error.to_string())
}

/// Writes the repository and reads its catalog.
pub fn catalog(root: &Path) -> Catalog {
    changed_catalog(root, str::to_owned).expect("a catalog")
}

/// Like [`catalog`], with changed files. Fails if the schema rejects the change.
pub fn changed_catalog(root: &Path, change: impl Fn(&str) -> String) -> Result<Catalog, String> {
    let [paper, fig1, fig2, table1, fig4] = [PAPER, FIG1, FIG2, TABLE1, FIG4].map(change);
    let files = [
        ("experiments/demo/paper.yaml", paper.as_str()),
        ("experiments/demo/01-fig1.yaml", &fig1),
        ("experiments/demo/02-fig2.yaml", &fig2),
        ("experiments/demo/03-table1.yaml", &table1),
        ("experiments/demo/04-fig4.yaml", &fig4),
        ("data/papers/demo.csv", PUBLISHED),
    ];
    repository(root, &files)
}

/// Parameters of a synthetic run.
#[derive(Clone, Copy)]
pub struct Made {
    pub profile: Profile,
    /// Data label of the rows that use data.
    pub data: &'static str,
    pub factor: f64,
}

/// The published protocol on the paper's data.
pub const REFERENCE: Made = Made { profile: Profile::Paper, data: "pictures", factor: 1.0 };
/// A small run on other data.
pub const LOCAL: Made = Made { profile: Profile::Smoke, data: "embedded images", factor: 1.02 };

pub fn records(made: Made) -> Records {
    let mut records = Records::default();
    let items = [
        ("fig1", fig1(made)),
        ("fig2", fig2(made)),
        ("table1", table1(made)),
        ("fig4", fig4(made)),
    ];
    for (item, rows) in items {
        let provenance = Provenance {
            command: "cargo xtask reproduce".into(),
            commit: "0123456789abcdef0123-dirty".into(),
            commits: Default::default(),
            versions: [("rustc".to_owned(), "1.95.0".to_owned())].into(),
            machine: "A machine | of some kind".into(),
            cores: 2,
            seed: 0,
            data: [(made.data.to_owned(), "ab".repeat(32))].into(),
            units: 3,
            seconds: 1.25,
            peak_memory: None,
            tables: None,
            origins: Default::default(),
        };
        let record = ItemRecord { table: Table { rows }, provenance, ..ItemRecord::default() };
        records.items.insert(("demo".into(), item.into()), record);
    }
    records
}

fn row(made: Made, group: &str, method: &str, metric: &str, value: f64) -> Row {
    Row { profile: made.profile, ..Row::new(group, method, metric, value * made.factor) }
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
            let numbers = [("test_psnr", level + i as f64), ("rank", 16.0), ("time", 0.005)];
            for (metric, value) in numbers {
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

fn fig4(made: Made) -> Vec<Row> {
    let one = row(made, "complex", "Tri", "test_psnr", 26.0);
    vec![Row { signal: "image-00".into(), data: made.data.into(), ..one }]
}

/// Writes pictures of Figure 4 below a directory of records: two images and a clip. The pictures of the group `simple`
/// come from a reduced run.
pub fn write_pictures(directory: &Path, data: &str) {
    let mut all = Vec::new();
    let mut add = |group: &str, method: &str, signal: &str, name: &str, size: (usize, usize)| {
        let is_truth = name.starts_with("truth");
        let seed = if is_truth { signal.len() } else { (group.len() + 2) * method.len() };
        let (width, height) = size;
        let pixels = (0..width * height * 3).map(|i| ((i * (seed + name.len())) % 251) as u8);
        let pixels = pixels.collect();
        let picture = Picture::new(name, signal, (width, height, 3), pixels);
        let bytes = picture.png().expect("a picture");
        let measured = 20.0 + (seed % 7) as f64;
        let picture = GalleryPicture {
            group: group.into(),
            method: method.into(),
            signal: signal.into(),
            seed: 0,
            name: name.into(),
            width,
            height,
            channels: 3,
            enlarged: 1,
            psnr: (!is_truth && name != "error").then_some(measured + 0.123),
            values: vec![Value::new("test_psnr", measured).unit("dB")],
            profile: if group == "simple" { Profile::Smoke } else { Profile::Paper },
            device: "cpu".into(),
            data: data.into(),
            blake3: blake3_of(&bytes),
        };
        all.push((picture, Content::Bytes(bytes)));
    };
    for group in ["simple", "complex"] {
        for method in ["Tri", "Gau σ=0.04"] {
            for signal in ["a|b <c> *d* $e$", "image-00"] {
                for name in ["truth", "reconstruction", "error"] {
                    add(group, method, signal, name, (64, 48));
                }
            }
        }
    }
    for (name, size) in [
        ("truth-frames", (8 * 96, 96)),
        ("frames", (8 * 96, 96)),
        ("truth-slice", (96, 64)),
        ("slice", (96, 64)),
    ] {
        add("clips", "Gau", "walking", name, size);
    }
    Gallery::write(&directory.join("demo/fig4"), all).expect("written");
}

fn blake3_of(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}
