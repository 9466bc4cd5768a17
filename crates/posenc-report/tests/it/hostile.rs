//! Texts of experiments and records that try to break out of their place on a page.

use crate::common;

use std::path::Path;

use common::{LOCAL, REFERENCE, changed_catalog, inputs, records};
use posenc_experiments::Catalog;
use posenc_experiments::record::Row;
use posenc_report::{Inputs, Records, Report, render};
use pulldown_cmark::{Event, Options, Parser, Tag};
use serde_json::Value;

/// Texts of one line (`lines`) that in a table, a list, a heading, a link or a summary could change what is around them, and of several
/// lines (`blocks`), which texts of experiments may have.
fn hostile(kind: &str) -> Vec<String> {
    let all: Value = serde_json::from_str(include_str!("fixture/hostile.json")).expect("JSON");
    serde_json::from_value(all[kind].clone()).expect("texts")
}

fn report(catalog: &Catalog, reference: &Records, local: &Records) -> Report {
    let inputs = inputs(catalog, reference);
    render(&Inputs { local: Some(local), record: None, ..inputs }).expect("a report")
}

/// The structure of a page: headings, tables with their rows and cells, tags, links and pictures.
fn skeleton(page: &str, links: bool) -> Vec<String> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let parts = Parser::new_ext(page, options).filter_map(|event| match event {
        Event::Start(Tag::Heading { level, .. }) => Some(level.to_string()),
        Event::Start(Tag::Table(columns)) => Some(format!("table {}", columns.len())),
        Event::Start(Tag::TableRow) => Some("row".to_owned()),
        Event::Start(Tag::TableCell) => Some("cell".to_owned()),
        Event::Start(Tag::Link { dest_url, .. }) if links => Some(format!("link {dest_url}")),
        Event::Start(Tag::Image { dest_url, .. }) if links => Some(format!("image {dest_url}")),
        Event::Start(Tag::List(_)) if links => Some("list".to_owned()),
        Event::Start(Tag::CodeBlock(_)) if links => Some("code".to_owned()),
        // Code that backticks cannot delimit is written as HTML.
        Event::InlineHtml(html) if ["<code>", "</code>"].contains(&&*html) => None,
        Event::Html(html) | Event::InlineHtml(html) => Some(tags(&html)),
        _ => None,
    });
    parts.collect()
}

/// Pictures of other hosts, and links other than paths and those by `http`, `https` and `mailto`.
fn forbidden(page: &str) -> Vec<String> {
    let all = Parser::new_ext(page, Options::ENABLE_TABLES).filter_map(|event| match event {
        Event::Start(Tag::Link { dest_url, .. }) => {
            Some((dest_url, &["http", "https", "mailto"][..]))
        }
        Event::Start(Tag::Image { dest_url, .. }) => Some((dest_url, &[][..])),
        _ => None,
    });
    let is_wrong = |(to, schemes): &(pulldown_cmark::CowStr<'_>, &[&str])| {
        let scheme = to.split_once(':').map(|(scheme, _)| scheme.trim().to_lowercase());
        scheme.is_some_and(|scheme| !schemes.contains(&&*scheme))
            || (schemes.is_empty() && to.starts_with("//"))
    };
    all.filter(is_wrong).map(|(to, _)| to.to_string()).collect()
}

/// The tags of raw HTML without the values of descriptions.
fn tags(html: &str) -> String {
    html.split(" alt=").next().unwrap_or_default().trim().to_owned()
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("JSON")
}

/// The report with `text` in every text field of an experiment; `None` if the schema rejects it.
fn of_experiment(text: &str, is_block: bool) -> Option<Report> {
    let long = quoted(text);
    let short = if is_block { quoted("x") } else { long.clone() };
    let signals = quoted(&format!("16 {}", if is_block { "x" } else { text }));
    let data = format!("data: {{ set: pictures, signals: {signals} }}");
    let change = |yaml: &str| {
        let mut yaml = yaml.to_owned();
        for (from, key, to) in [
            ("A demonstration of pages", "", &short),
            ("Nowhere", "", &short),
            ("[Ada One, Bea Two, Cy Three]", "", &format!("[{short}]")),
            ("\"Figure 1\"", "", &short),
            ("\"Stable rank | distance\"", "", &short),
            ("|\n  What the paper is about, with $\\lVert x\\rVert$ in it.", "", &long),
            ("Stable rank of two embedders", "", &short),
            ("Curves that rise and saturate.", "", &long),
            ("The stable rank rises with N, |Δ| > 0.", "", &long),
            ("Fig. 1, caption", "", &short),
            ("Stable rank; dashed, $\\min(N, \\cdot)$.", "", &long),
            ("\"(a) stable rank\"", "", &short),
            ("samples N", "", &short),
            ("Stable rank at two sample counts", "", &short),
            ("row_label: N", "row_label: ", &short),
            ("label: stable rank, digits", "label: ", &format!("{short}, digits")),
            ("|\n  A text with $10{,}000$ in it.", "", &long),
            ("Only three of the curves.", "", &long),
            ("2 of 4 sample counts", "", &short),
            ("Reconstructions and five times the absolute error", "", &short),
            ("data: { set: pictures }", "", &data),
        ] {
            yaml = yaml.replace(from, &format!("{key}{to}"));
        }
        yaml
    };
    let catalog = changed_catalog(change).ok()?;
    Some(report(&catalog, &records(REFERENCE), &records(LOCAL)))
}

/// The report with `text` in every text field of a record.
fn of_records(text: &str) -> Report {
    let change = |yaml: &str| yaml.replace("RFF", &quoted(text)).replace("method: RFF", "");
    let catalog = changed_catalog(change)
        .unwrap_or_else(|_| changed_catalog(str::to_owned).expect("a catalog"));
    let changed = |made| {
        let mut records = records(made);
        for record in records.items.values_mut() {
            let p = &mut record.provenance;
            p.command = text.into();
            p.commit = text.into();
            p.machine = text.into();
            p.versions = [(text.to_owned(), text.to_owned())].into();
            p.data = [(text.to_owned(), text.to_owned())].into();
            for row in &mut record.table.rows {
                if row.method == "RFF" {
                    row.method = text.into();
                }
                if row.signal != "-" {
                    row.signal = format!("{text}{}", row.signal);
                }
                row.data = text.into();
                row.device = text.into();
                row.unit = text.into();
            }
        }
        records
    };
    report(&catalog, &changed(REFERENCE), &changed(LOCAL))
}

fn pages(report: &Report) -> impl Iterator<Item = (&Path, &str)> {
    let pages = report.files.iter().filter(|(path, _)| path.extension().is_some_and(|e| e == "md"));
    pages.map(|(path, bytes)| (path.as_path(), std::str::from_utf8(bytes).expect("text")))
}

fn compare(plain: &Report, hostile: &Report, text: &str, links: bool) {
    for ((path, plain), (_, page)) in pages(plain).zip(pages(hostile)) {
        let loaded = forbidden(page);
        assert!(loaded.is_empty(), "{text:?} in {}: {loaded:?}\n{page}", path.display());
        let (wanted, found) = (skeleton(plain, links), skeleton(page, links));
        let place = wanted.iter().zip(&found).position(|(a, b)| a != b);
        let place = place.unwrap_or(wanted.len().min(found.len()));
        assert!(
            wanted == found,
            "{text:?} changes {} at {place}: {:?} became {:?}\n{page}",
            path.display(),
            wanted.get(place),
            found.get(place)
        );
    }
}

/// Checks that the drawings of a report have known elements and no characters that XML forbids.
fn check_drawings(report: &Report, text: &str) {
    for (path, bytes) in &report.files {
        if path.extension().is_none_or(|e| e != "svg") {
            continue;
        }
        let svg = std::str::from_utf8(bytes).expect("text");
        let names = svg.split('<').skip(1).map(|part| {
            part.split([' ', '>', '/', '\n']).find(|name| !name.is_empty()).unwrap_or_default()
        });
        for name in names {
            let known = "svg title style rect path polyline polygon circle text line g";
            let is_known = known.split(' ').any(|known| known == name);
            assert!(is_known, "{text:?} gives <{name}> in {}", path.display());
        }
        assert!(!svg.contains(" onload=\""), "{text:?} in {}", path.display());
        assert!(!svg.chars().any(|c| c.is_control() && c != '\n' || c == '\u{fffe}'));
    }
}

/// Catches a title, claim, analysis, method, signal, label or line of provenance that ends its code span, cell or list, or breaks out of
/// a drawing.
#[test]
fn texts_stay_in_their_place() {
    let of_plain = [of_experiment("x", false).expect("a catalog"), of_records("x")];
    let mut shown = 0;
    let texts = hostile("lines");
    for text in &texts {
        let hostile = [of_experiment(text, false), Some(of_records(text))];
        for (plain, hostile) in of_plain.iter().zip(&hostile) {
            let Some(hostile) = hostile else { continue };
            compare(plain, hostile, text, false);
            check_drawings(hostile, text);
            shown += 1;
        }
    }
    assert!(shown > texts.len() + 40, "only {shown} texts were shown");
    for text in ["]]>", "\u{fffe}\u{0}\u{1b}a", "\" onload=\"x", "a' b=\"c"] {
        of_experiment(text, false).iter().for_each(|report| check_drawings(report, text));
        check_drawings(&of_records(text), text);
    }
    let mut shown = 0;
    for text in hostile("blocks") {
        let Some(hostile) = of_experiment(&text, true) else { continue };
        shown += 1;
        for ((path, plain), (_, page)) in pages(&of_plain[0]).zip(pages(&hostile)) {
            // An analysis may have tables of its own; all else is as before.
            let own = |part: &String| !["table 1", "row", "cell"].contains(&part.as_str());
            let of = |page: &str| skeleton(page, false).into_iter().filter(own).collect::<Vec<_>>();
            assert_eq!(of(plain), of(page), "{text:?} changes {}\n{page}", path.display());
        }
    }
    assert!(shown > 12, "only {shown} blocks were shown");
}

/// Catches time quadratic in the size of a record: each of these tables and curves would take hours.
#[test]
fn a_record_of_many_signals_methods_and_places_is_shown() {
    const MANY: usize = 30_000;
    let mut records = records(REFERENCE);
    let mut change = |item: &str, make: &dyn Fn(usize, &Row) -> Row| {
        let record =
            records.items.get_mut(&("demo".to_owned(), item.to_owned())).expect("a record");
        let first = record.table.rows.first().expect("a row").clone();
        record.table.rows.extend((0..MANY).map(|i| make(i, &first)));
    };
    change("table1", &|i, row| Row { signal: format!("image {i}"), ..row.clone() });
    change("fig1", &|i, row| Row {
        method: "RFF".into(),
        metric: "stable_rank".into(),
        x: Some(1.0 + i as f64),
        ..row.clone()
    });
    change("fig1", &|i, row| Row {
        method: format!("method {i}"),
        metric: "stable_rank".into(),
        ..row.clone()
    });
    let by_signal =
        |text: &str| text.replace("title: Table 1\n", "title: Table 1\n    rows: signal\n");
    let catalog = changed_catalog(by_signal).expect("a catalog");
    let report = report(&catalog, &records, &Records::default());
    let page = common::paper(&report);
    let has = |part: &str| page.lines().filter(|line| line.contains(part)).count();
    assert_eq!([has("| image 29999 |"), has("| 29,999 |")], [1, 1]);
    assert!(report.files.contains_key(Path::new("figures/demo/fig1-curves.svg")));
}
