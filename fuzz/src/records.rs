//! Records, which the program writes and reads again, published values, and both on their way to pages.

use std::path::Path;
use std::sync::OnceLock;

use posenc_experiments::record::{
    Benchmarks, IndexedTable, ItemRecord, Provenance, Table, UnitRecord,
};
use posenc_experiments::schema::paper::Paper;
use posenc_experiments::verdict::{Context, judge};
use posenc_experiments::yaml::Document;
use posenc_experiments::{Catalog, Experiment, Published};
use posenc_report::{Inputs, Records, render};

use super::text;

/// An experiment with claims, plots and tables of all kinds; the input is its record.
const EXPERIMENT: &str = include_str!("demo/fig1.yaml");
const PAPER: &str = include_str!("demo/paper.yaml");
/// A record with a row for each method of the demo experiment.
const RECORD: &str = include_str!("demo/fig1.csv");

/// Maximum number of rows of a rendered report: drawing a few hundred takes a millisecond.
const MAX_ROWS: usize = 300;

/// A paper with one item; `None` if this crate's own files are invalid, which a test would detect.
fn catalog() -> Option<&'static Catalog> {
    static CATALOG: OnceLock<Option<Catalog>> = OnceLock::new();
    let read = || {
        let document = |name: &str, text| Document::parse(Path::new(name), text).ok();
        let paper = Paper::from_document(&document("paper.yaml", PAPER)?).ok()?;
        let experiment = document("fig1.yaml", EXPERIMENT)?;
        let experiment = Experiment::from_document(&experiment, posenc_protocols::KINDS).ok()?;
        let (papers, experiments) = (vec![paper], vec![experiment]);
        Some(Catalog { papers, experiments, ..Catalog::default() })
    };
    CATALOG.get_or_init(read).as_ref()
}

/// The table of two texts, one below the other: the second one begins at its header.
fn table(text: &str) -> Option<Table> {
    let (units, values) = text.split_at(text.find("unit,metric")?);
    Table::parse([Path::new("units.csv"), Path::new("values.csv")], [units, values]).ok()
}

/// Reads a record's table and judges every kind of claim on it; reads published values.
pub fn csv_records(bytes: &[u8]) -> usize {
    let Some(text) = text(bytes) else { return 0 };
    let published = Published::parse(Path::new("demo.csv"), text.to_owned());
    let mut accepted = usize::from(published.is_ok());
    if let (Some(table), Some(catalog)) = (table(text), catalog()) {
        accepted += 1;
        let published = &catalog.published;
        let record = &IndexedTable::new(table.clone());
        for experiment in &catalog.experiments {
            for claim in &experiment.claims {
                judge(claim, Context { experiment, record: Some(record), published });
            }
        }
        // The written table must be readable.
        let again = table.to_csv().ok();
        let again = again.and_then(|texts| self::table(&texts.concat()));
        let sizes = |table: &Table| (table.rows.len(), table.pictures.len());
        debug_assert_eq!(again.as_ref().map(sizes), Some(sizes(&table)));
    }
    accepted
}

/// Reads unit records, provenance and benchmarks.
pub fn json_records(bytes: &[u8]) -> usize {
    let Some(text) = text(bytes) else { return 0 };
    let file = Path::new("a.json");
    let read = [
        UnitRecord::parse(file, text).is_ok(),
        UnitRecord::parse(file, &enveloped(text)).is_ok(),
        Provenance::parse(file, text).is_ok_and(|own| {
            // Compares origins as a repeated run does.
            let origins: Vec<_> = own.origins.values().collect();
            origins.iter().zip(origins.iter().skip(1)).for_each(|(a, b)| {
                a.differences(b);
            });
            true
        }),
        Benchmarks::parse(file, text).is_ok(),
    ];
    read.into_iter().filter(|accepted| *accepted).count()
}

/// A unit record with a valid checksum, which a fuzzer would not guess.
fn enveloped(body: &str) -> String {
    let Ok(body) = serde_json::from_str::<serde_json::Value>(body) else { return String::new() };
    let checksum = blake3::hash(body.to_string().as_bytes()).to_hex();
    format!("{{\"checksum\":\"{checksum}\",\"body\":{body}}}")
}

/// Renders the pages and plots of a record.
pub fn report(bytes: &[u8]) -> usize {
    let parsed = text(bytes)
        .and_then(table)
        .filter(|table| table.rows.len() + table.pictures.len() <= MAX_ROWS);
    let (Some(table), Some(catalog)) = (parsed, catalog()) else { return 0 };
    rendered(catalog, table)
}

/// 1 if the report of a catalog with this record can be rendered, else 0.
fn rendered(catalog: &Catalog, table: Table) -> usize {
    let record = ItemRecord { table, ..ItemRecord::default() };
    let records = Records {
        items: [(("demo".to_owned(), "fig1".to_owned()), record)].into(),
        ..Records::default()
    };
    let inputs = Inputs {
        catalog,
        reference: &records,
        local: None,
        repository: "",
        record: Some("record"),
        local_record: None,
    };
    usize::from(render(&inputs).is_ok())
}

/// Renders the report of an experiment with the same text as its title, description, analysis, deviations, claims, captions and labels.
pub fn pages(bytes: &[u8]) -> usize {
    let (Some(text), Some(catalog)) = (text(bytes), catalog()) else { return 0 };
    let mut catalog = catalog.clone();
    for paper in &mut catalog.papers {
        paper.title = text.to_owned();
        paper.summary = text.to_owned();
    }
    for experiment in &mut catalog.experiments {
        experiment.title = text.to_owned();
        experiment.shows = text.to_owned();
        experiment.analysis = text.to_owned();
        experiment.deviations = vec![text.to_owned()];
        experiment.claims.iter_mut().for_each(|claim| claim.says = text.to_owned());
        experiment.plots.iter_mut().for_each(|plot| plot.caption = text.to_owned());
        experiment.tables.iter_mut().for_each(|table| table.title = text.to_owned());
    }
    rendered(&catalog, table(RECORD).unwrap_or_default())
}
