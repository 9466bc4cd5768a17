//! Pages with recorded pictures.

use crate::common;

use std::fs;
use std::path::PathBuf;

use common::{LOCAL, Made, REFERENCE, catalog, has, inputs, paper, records, with_pictures};
use posenc_experiments::Catalog;
use posenc_experiments::record::ItemRecord;
use posenc_experiments::record::item::Sources;
use posenc_report::{Inputs, Records, Report, render};

const GENERATED: &str = "embedded:dead-leaves";

/// A repository with the records of the reference and their pictures in `report/record`.
struct Repository {
    root: tempfile::TempDir,
    catalog: Catalog,
}

impl Repository {
    fn new() -> Self {
        Repository { root: tempfile::tempdir().expect("a directory"), catalog: catalog() }
    }

    fn report_directory(&self) -> PathBuf {
        self.root.path().join("report")
    }

    /// The records of a run with pictures, which are below a folder.
    fn records(&self, folder: &str, made: Made, data: &str) -> Records {
        let record = with_pictures(&self.root.path().join(folder), made, data);
        let mut records = records(made);
        records.items.insert(("demo".to_owned(), "fig4".to_owned()), record);
        records
    }

    fn render(&self, local: Option<&Records>, record: Option<&str>) -> Report {
        let reference = self.records("report/record", REFERENCE, GENERATED);
        let inputs = inputs(&self.catalog, &reference);
        render(&Inputs { local, record, ..inputs }).expect("a report")
    }
}

/// The section of Figure 4 up to its folded parts on parameters.
fn section(report: &Report) -> String {
    let page = paper(report);
    let from = page.find("# Figure 4.").expect("the section");
    let to = from + page[from..].find("<summary>Settings").expect("its settings");
    page[from..to].to_owned()
}

/// Values of an attribute of all pictures on a page.
fn attributes<'a>(page: &'a str, name: &str) -> Vec<&'a str> {
    let start = format!(" {name}=\"");
    let tags = page.split("<img").skip(1).map(|t| t.split('>').next().unwrap_or(""));
    tags.map(|tag| {
        let from = tag.find(&start).expect("the attribute") + start.len();
        tag[from..].split('"').next().expect("its end")
    })
    .collect()
}

#[test]
fn a_page_with_pictures() {
    let repository = Repository::new();
    let report = repository.render(None, Some("record"));
    insta::assert_snapshot!("pictures", section(&report));
    // Pictures that lie in the record are not stored a second time.
    assert!(!report.files.keys().any(|f| f.extension().is_some_and(|e| e == "png")));
}

/// Catches broken links, pictures without a text alternative, and pictures too wide to fit side by side.
#[test]
fn every_picture_exists_and_has_a_text_alternative() {
    let repository = Repository::new();
    let directory = repository.report_directory();
    let page = section(&repository.render(None, Some("record")));
    let sources = attributes(&page, "src");
    assert_eq!(sources.len(), 9 + 4 + 2);
    let folder = directory.join("demo");
    std::fs::create_dir_all(&folder).expect("the folder of the page");
    for source in sources {
        assert!(folder.join(source).is_file(), "{source}");
    }
    for alt in attributes(&page, "alt") {
        assert!(alt.len() > 10 && !alt.contains(['|', '$', '`', '<']), "{alt}");
    }
    for width in attributes(&page, "width") {
        assert!((64..=640).contains(&width.parse::<usize>().expect("a number")), "{width}");
    }
    // Every row of a table has as many cells as its head, whatever signals and methods are named.
    let mut cells = None;
    for line in page.lines() {
        let pipes = line.matches('|').count() - line.matches("\\|").count();
        match (line.starts_with('|'), cells) {
            (false, _) => cells = None,
            (true, None) => cells = Some(pipes),
            (true, Some(expected)) => assert_eq!(pipes, expected, "{line}"),
        }
    }
}

/// Catches a report away from its record that lacks its pictures, mixes two runs, or keeps old files.
#[test]
fn a_report_elsewhere_has_copies() {
    let repository = Repository::new();
    let local = repository.records("out/record", LOCAL, "user:holiday");
    let report = repository.render(Some(&local), None);
    let page = section(&report);
    let of_both =
        ["Reference run", "This machine"].map(|who| format!("*{who} – Reduced run: a tenth"));
    has(&page, &[&of_both[0], &of_both[1], "Data: user:holiday*"]);
    let sources = attributes(&page, "src");
    assert_eq!(sources.len(), 2 * (9 + 4 + 2));
    assert!(sources.iter().any(|s| s.starts_with("../pictures/demo/fig4-local/")));

    let directory = repository.root.path().join("out/report");
    report.write(&directory).expect("written");
    for source in sources {
        assert!(directory.join("demo").join(source).is_file(), "{source}");
    }
    assert_eq!(report.check(&directory).expect("checked"), []);
    let other = directory.join("pictures/demo/fig4-local/mine.png");
    fs::write(&other, "x").expect("written");
    let stale = report.check(&directory).expect("checked");
    assert_eq!(stale.len(), 1);
    let name = "pictures/demo/fig4-local/mine.png";
    assert_eq!(stale[0].to_string(), format!("{name}: is no longer part of the report"));
    repository.render(None, None).write(&directory).expect("written");
    // A file that posenc did not write stays.
    let left = fs::read_dir(directory.join("pictures/demo/fig4-local")).expect("a folder");
    assert_eq!(left.map(|entry| entry.expect("an entry").path()).collect::<Vec<_>>(), [other]);
}

/// Catches a check that ignores pictures of the record that are damaged or missing.
#[test]
fn a_check_sees_the_pictures_of_the_record() {
    let repository = Repository::new();
    let directory = repository.report_directory();
    let all = repository.records("report/record", REFERENCE, GENERATED);
    for ((paper, item), ItemRecord { table, provenance, .. }) in &all.items {
        let folder = directory.join("record").join(paper).join(item);
        ItemRecord::write(&folder, table, provenance, &Sources::new()).expect("written");
    }
    let read = || Records::read(&directory.join("record"), &repository.catalog);
    let check = || {
        let reference = read().expect("records");
        let report = render(&inputs(&repository.catalog, &reference)).expect("a report");
        let stale = report.check(&directory).expect("checked");
        (report, stale.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    check().0.write(&directory).expect("written");
    assert_eq!(check().1, Vec::<String>::new());

    let record = all.get("demo", "fig4").expect("a record");
    let picture = record.table.pictures.iter().find(|p| p.metric == "error").expect("a picture");
    let file = record.folder.join(&picture.unit);
    let whole = fs::read(&file).expect("the picture");
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    fs::write(&file, damaged).expect("written");
    let error = read().expect_err("damaged").to_string();
    assert!(error.contains(&format!("{}: damaged", picture.unit)), "{error}");
    fs::remove_file(&file).expect("removed");
    let error = read().expect_err("missing").to_string();
    assert!(error.contains(&format!("{}: is missing", picture.unit)), "{error}");
    fs::write(&file, whole).expect("written");
    assert_eq!(check().1, Vec::<String>::new());
}
