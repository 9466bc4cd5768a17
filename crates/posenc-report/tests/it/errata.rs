//! Errata pages: texts from `posenc_math::errata`, numbers from the record.

use std::fs;
use std::path::Path;

use posenc_experiments::Catalog;
use posenc_experiments::record::{ItemRecord, Row, Table};
use posenc_report::{Inputs, Records, render};

const PAPER: &str = "\
key: trading
title: Trading
authors: [A B]
venue: V
year: 2022
summary: S
items:
  - { item: errata, name: Errata, title: Errors }
";

const ERRATA: &str = "\
paper: trading
item: errata
kind: extra
title: Errors
shows: Errors.
groups:
  - { id: checks, protocol: { kind: errata }, variants: [{ id: all }] }
";

fn row(method: &str, signal: &str, metric: &str, value: f64) -> Row {
    Row { signal: signal.into(), ..Row::new("checks", method, metric, value) }
}

/// Catches errata that an item shows without their numbers, and errata that it does not list.
#[test]
fn an_item_shows_the_errata_that_it_names() {
    let own: Vec<_> =
        posenc_math::errata::all().into_iter().filter(|e| e.paper() == "trading").collect();
    let (first, second) = (own[0].id, own[1].id);
    let rows = vec![
        row(first, "$D(0)$", "printed", 0.25),
        row(first, "$D(0)$", "measured", 0.5),
        row(second, "q", "measured", 7.0),
    ];
    let (page, _) = pages(rows, &format!("errata: [{first}]\n"));
    let from = page.find("## Errata").expect("a heading");
    assert!(page[from..].contains("  | $D(0)$ | 0.25 | 0.5 | – |"), "{page}");
    assert!(page[from..].contains(&format!("(../errata/trading.md#{first})")), "{page}");
    assert!(!page.contains(second), "{page}");
    let (page, _) = pages(Vec::new(), "");
    assert!(!page.contains("## Errata"), "{page}");
    let wrong = catalog("errata: [no-such]\n").1.expect_err("a name that is none");
    assert!(wrong.contains("90-errata.yaml:") && wrong.contains("no-such"), "{wrong}");
}

fn catalog(more: &str) -> (tempfile::TempDir, Result<Catalog, String>) {
    let root = tempfile::tempdir().expect("a directory");
    let folder = root.path().join("experiments/trading");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("paper.yaml"), PAPER).expect("written");
    fs::write(folder.join("90-errata.yaml"), format!("{ERRATA}{more}")).expect("written");
    let catalog =
        Catalog::read(root.path(), posenc_protocols::KINDS).map_err(|e| format!("{e:#?}{e}"));
    (root, catalog)
}

/// The page of the item, and both errata pages.
fn pages(rows: Vec<Row>, more: &str) -> (String, String) {
    let (_root, catalog) = catalog(more);
    let catalog = catalog.expect("a catalog");
    let mut records = Records::default();
    let record = ItemRecord { table: Table { rows }, ..ItemRecord::default() };
    records.items.insert(("trading".into(), "errata".into()), record);
    let inputs = Inputs {
        catalog: &catalog,
        reference: &records,
        local: None,
        repository: "",
        record: None,
        costs: None,
    };
    let report = render(&inputs).expect("a report");
    let page = |name: &str| String::from_utf8(report.files[Path::new(name)].clone()).expect("text");
    (page("trading/errata.md"), page("errata.md") + &page("errata/trading.md"))
}

#[test]
fn errata_are_shown_with_their_numbers() {
    let all = posenc_math::errata::all();
    let own: Vec<_> = all.iter().filter(|e| e.paper() == "trading").collect();
    let (first, second, third) = (own[0].id, own[1].id, own[2].id);
    let rows = vec![
        row(first, "$D(0)$", "printed", 0.25),
        row(first, "$D(0)$", "measured", 0.333_333_3),
        row(first, "$D(0)$", "corrected", 1.0 / 3.0),
        row(first, "-", "holds", 1.0),
        row(second, "q", "measured", f64::NAN),
        row(second, "-", "holds", 0.0),
    ];
    let (page, text) = pages(rows, "");
    let section = |id: &str| {
        let from = text.find(&format!("<a id=\"{id}\">")).expect("the section");
        let to = text[from + 5..].find("<a id=").map_or(text.len(), |n| from + 5 + n);
        text[from..to].to_owned()
    };
    let found = section(first);
    assert!(found.contains("| $D(0)$ | 0.25 | 0.333333 | 0.333333 |"), "{found}");
    assert!(found.contains("✅ confirmed by its check"), "{found}");
    assert!(found.contains("**Printed.**") && found.contains("**Correct.**"), "{found}");
    let found = section(second);
    assert!(found.contains("❌ not confirmed") && found.contains("| q | – | NaN | – |"), "{found}");
    assert!(section(third).contains("– check not run"));
    assert!(text.contains(&format!("1 of {}", own.len())), "{text}");
    assert!(page.contains("(../errata/trading.md)"), "{page}");
}
