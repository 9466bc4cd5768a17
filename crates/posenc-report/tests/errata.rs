//! The page of errata: texts from the mathematics, numbers from the record.

use std::fs;
use std::path::Path;

use posenc_experiments::Catalog;
use posenc_experiments::record::{Row, Table};
use posenc_experiments::schema::Profile;
use posenc_report::{Inputs, Record, Records, render};

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
    Row {
        group: "checks".into(),
        method: method.into(),
        signal: signal.into(),
        seed: 0,
        metric: metric.into(),
        x: None,
        y: None,
        value,
        unit: String::new(),
        profile: Profile::Paper,
        device: "cpu".into(),
        data: "-".into(),
    }
}

#[test]
fn numbers_join_their_texts() {
    let root = tempfile::tempdir().expect("a directory");
    let folder = root.path().join("experiments/trading");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("paper.yaml"), PAPER).expect("written");
    fs::write(folder.join("90-errata.yaml"), ERRATA).expect("written");
    let catalog = Catalog::read(root.path()).expect("a catalog");
    let all = posenc_math::errata::all();
    let own: Vec<_> = all.iter().filter(|e| e.paper == "trading").collect();
    let (first, second, third) = (own[0].id, own[1].id, own[2].id);
    let rows = vec![
        row(first, "$D(0)$", "printed", 0.25),
        row(first, "$D(0)$", "measured", 0.333_333_3),
        row(first, "$D(0)$", "corrected", 1.0 / 3.0),
        row(first, "-", "holds", 1.0),
        row(second, "q", "measured", f64::NAN),
        row(second, "-", "holds", 0.0),
    ];
    let mut records = Records::default();
    let record = Record { table: Table { rows }, ..Record::default() };
    records.items.insert(("trading".into(), "errata".into()), record);
    let inputs = Inputs {
        catalog: &catalog,
        reference: &records,
        local: None,
        repository: "",
        record: None,
    };
    let report = render(&inputs).expect("a report");
    let bytes = report.files[Path::new("errata.md")].clone();
    let text = String::from_utf8(bytes).expect("text");
    let section = |id: &str| {
        let from = text.find(&format!("<a id=\"{id}\">")).expect("the section");
        let to = text[from + 5..].find("<a id=").map_or(text.len(), |n| from + 5 + n);
        text[from..to].to_owned()
    };
    let found = section(first);
    assert!(found.contains("| $D(0)$ | 0.25 | 0.333333 | 0.333333 |"), "{found}");
    assert!(found.contains("✅ established by its check"), "{found}");
    assert!(found.contains("**Printed.**") && found.contains("**Correct.**"), "{found}");
    let found = section(second);
    assert!(
        found.contains("❌ not established") && found.contains("| q | – | NaN | – |"),
        "{found}"
    );
    assert!(section(third).contains("– check not run"));
    assert!(text.contains(&format!("1 of {}", own.len())), "{text}");
    let page = String::from_utf8(report.files[Path::new("trading.md")].clone()).expect("text");
    assert!(page.contains("(errata.md#trading)"), "{page}");
}
