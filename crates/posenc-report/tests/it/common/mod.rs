//! A small repository in a temporary directory, and records for it.

use std::fs;
use std::path::Path;

use posenc_experiments::Catalog;
use posenc_experiments::record::item::Sources;
use posenc_experiments::record::picture::file_name;
use posenc_experiments::record::{ItemRecord, Picture, Provenance, Row};
use posenc_experiments::schema::Profile;
pub use posenc_files::testing::has;
use posenc_report::{Inputs, PageKind, Records, Report, render};

/// The pages of the paper and its items as one text.
pub fn paper(report: &Report) -> String {
    let own =
        report.pages.iter().filter(|page| matches!(page.kind, PageKind::Paper | PageKind::Item));
    let texts = own.map(|page| String::from_utf8_lossy(&report.files[&page.path]).into_owned());
    texts.collect::<Vec<_>>().join("\n")
}

const FILES: [(&str, &str); 5] = [
    ("experiments/demo/paper.yaml", include_str!("../fixture/paper.yaml")),
    ("experiments/demo/01-fig1.yaml", include_str!("../fixture/01-fig1.yaml")),
    ("experiments/demo/02-fig2.yaml", include_str!("../fixture/02-fig2.yaml")),
    ("experiments/demo/03-table1.yaml", include_str!("../fixture/03-table1.yaml")),
    ("experiments/demo/04-fig4.yaml", include_str!("../fixture/04-fig4.yaml")),
];

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
    let record = ItemRecord { table: rows.into(), ..ItemRecord::default() };
    records.items.insert((paper.into(), item.into()), record);
    records
}

/// All Markdown of a report.
pub fn markdown(report: &Report) -> String {
    let pages = report.files.iter().filter(|(path, _)| path.extension().is_some_and(|e| e == "md"));
    pages.map(|(_, bytes)| String::from_utf8_lossy(bytes).into_owned()).collect()
}

/// Inputs of the report of a repository next to its records.
pub fn inputs<'a>(catalog: &'a Catalog, reference: &'a Records) -> Inputs<'a> {
    let (repository, record) = ("..", Some("record"));
    Inputs { catalog, reference, local: None, repository, record, local_record: None }
}

/// The report of a repository next to its records.
pub fn rendered(catalog: &Catalog, reference: &Records, local: Option<&Records>) -> Report {
    let local_record = Some("../record");
    render(&Inputs { local, local_record, ..inputs(catalog, reference) }).expect("a report")
}

/// The text of a file of a report.
pub fn page(report: &Report, name: &str) -> String {
    let bytes = report.files.get(Path::new(name)).unwrap_or_else(|| panic!("no {name}"));
    String::from_utf8(bytes.clone()).expect("text")
}

/// The catalog of these files. Fails if the schema rejects them.
pub fn repository(files: &[(&str, &str)]) -> Result<Catalog, String> {
    let root = tempfile::tempdir().expect("a directory");
    fs::create_dir_all(root.path().join("data/papers")).expect("a folder");
    for (name, text) in files {
        let file = root.path().join(name);
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(file, text).expect("a file");
    }
    Catalog::read(root.path(), posenc_protocols::KINDS).map_err(|error| error.to_string())
}

/// The catalog of the small repository.
pub fn catalog() -> Catalog {
    changed_catalog(str::to_owned).expect("a catalog")
}

/// Like [`catalog`], with changed files. Fails if the schema rejects the change.
pub fn changed_catalog(change: impl Fn(&str) -> String) -> Result<Catalog, String> {
    catalog_with(&[], change)
}

/// Like [`changed_catalog`], with more files.
pub fn catalog_with(
    more: &[(&str, &str)],
    change: impl Fn(&str) -> String,
) -> Result<Catalog, String> {
    let changed = FILES.map(|(name, text)| (name, change(text)));
    let mut files = changed.each_ref().map(|(name, text)| (*name, text.as_str())).to_vec();
    files.push(("data/papers/demo.csv", include_str!("../fixture/demo.csv")));
    files.extend(more);
    repository(&files)
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
            versions: [("rustc".to_owned(), "1.95.0".to_owned())].into(),
            machine: "A machine | of some kind".into(),
            cores: 2,
            data: [(made.data.to_owned(), "ab".repeat(32))].into(),
            units: 3,
            seconds: 1.25,
            ..Provenance::default()
        };
        let record = ItemRecord { table: rows.into(), provenance, ..ItemRecord::default() };
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

/// The record of Figure 4 of a run, with pictures of two images and a clip, written below a directory of records. The pictures of the group
/// `simple` come from a reduced run.
pub fn with_pictures(directory: &Path, made: Made, data: &str) -> ItemRecord {
    let key = ("demo".to_owned(), "fig4".to_owned());
    let ItemRecord { mut table, provenance, .. } = records(made).items.remove(&key).expect("it");
    let mut sources = Sources::new();
    let scratch = tempfile::tempdir().expect("a folder");
    let mut add = |group: &str, method: &str, signal: &str, name: &str, size: (usize, usize)| {
        let is_truth = name.starts_with("truth");
        let seed = if is_truth { signal.len() } else { (group.len() + 2) * method.len() };
        let (width, height) = size;
        let pixels = (0..width * height * 3).map(|i| ((i * (seed + name.len())) % 251) as u8);
        let pixels = pixels.collect();
        let picture = Picture::new(name, signal, (width, height, 3), pixels);
        let bytes = picture.png().expect("a picture");
        let unit = file_name(&blake3::hash(&bytes).to_hex());
        let source = scratch.path().join(&unit);
        fs::write(&source, bytes).expect("written");
        sources.insert(unit.clone(), source);
        let measured = 20.0 + (seed % 7) as f64;
        let has_psnr = !is_truth && name != "error";
        let one = Row {
            signal: signal.into(),
            profile: if group == "simple" { Profile::Smoke } else { Profile::Paper },
            data: data.into(),
            ..Row::new(group, method, name, if has_psnr { measured + 0.123 } else { f64::NAN })
        };
        if name == "reconstruction" {
            let (metric, unit) = ("test_psnr".into(), "dB".into());
            table.rows.push(Row { metric, value: measured, unit, ..one.clone() });
        }
        let (x, y) = (Some(width as f64), Some(height as f64));
        table.pictures.push(Row { x, y, unit, ..one });
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
    let folder = directory.join("demo/fig4");
    ItemRecord::write(&folder, &table, &provenance, &sources).expect("written");
    ItemRecord::read(&folder).expect("intact").expect("a record")
}
