//! Whole reports of a small repository.

use crate::common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{LOCAL, Made, REFERENCE, catalog, records};
use posenc_experiments::Catalog;
use posenc_experiments::record::Benchmark;
use posenc_experiments::schema::{Profile, Speed};
use posenc_report::{Inputs, Records, Report, render};

fn report(reference: &Records, local: Option<&Records>) -> Report {
    let root = tempfile::tempdir().expect("a directory");
    report_of(&catalog(root.path()), reference, local)
}

fn report_of(catalog: &Catalog, reference: &Records, local: Option<&Records>) -> Report {
    let inputs =
        Inputs { catalog, reference, local, repository: "..", record: Some("record"), costs: None };
    render(&inputs).expect("a report")
}

fn page(report: &Report, name: &str) -> String {
    let bytes = report.files.get(Path::new(name)).expect("the page");
    String::from_utf8(bytes.clone()).expect("text")
}

#[test]
fn reference_pages() {
    let report = report(&records(REFERENCE), None);
    insta::assert_snapshot!("reference_readme", page(&report, "README.md"));
    insta::assert_snapshot!("reference_paper", page(&report, "demo.md"));
    let files: Vec<_> = report.files.keys().map(|p| p.display().to_string()).collect();
    insta::assert_snapshot!("reference_files", files.join("\n"));
}

#[test]
fn pages_with_a_local_run() {
    let report = report(&records(REFERENCE), Some(&records(LOCAL)));
    insta::assert_snapshot!("local_readme_results", {
        let text = page(&report, "README.md");
        let from = text.find("## Results").expect("results");
        let to = text.find("## What was easy").expect("the next section");
        text[from..to].to_owned()
    });
    insta::assert_snapshot!("local_paper", page(&report, "demo.md"));
}

#[test]
fn pages_without_records() {
    let report = report(&Records::default(), None);
    insta::assert_snapshot!("empty_paper", page(&report, "demo.md"));
    assert!(!report.files.keys().any(|p| p.starts_with("figures/demo")), "nothing to draw");
}

#[test]
fn pictures() {
    let report = report(&records(REFERENCE), None);
    insta::assert_snapshot!("curves", page(&report, "figures/demo/fig1-curves.svg"));
    insta::assert_snapshot!("map", page(&report, "figures/demo/fig2-map.svg"));
}

#[test]
fn the_same_inputs_give_the_same_bytes() {
    let (reference, local) = (records(REFERENCE), records(LOCAL));
    assert_eq!(report(&reference, Some(&local)), report(&reference, Some(&local)));
}

/// A reader must never take a reduced run or other data for the paper's.
#[test]
fn reduced_runs_and_other_data_are_labelled() {
    let small = report(&records(LOCAL), None);
    let text = page(&small, "demo.md");
    assert!(text.contains("> **Reduced run:** 2 of 4 sample counts (`rank`)"), "{text}");
    assert!(text.contains("> **Data: embedded images**, in place of `pictures`"), "{text}");
    assert!(text.contains("*Reduced run: 2 of 16 images · Data: embedded images*"), "{text}");
    let svg = page(&small, "figures/demo/fig1-curves.svg");
    assert!(svg.contains("profile smoke"), "{svg}");
    assert!(svg.contains("reduced run: 2 of 4 sample counts"), "{svg}");
    let full = page(&report(&records(REFERENCE), None), "demo.md");
    assert!(!full.contains("Reduced run") && !full.contains("in place of"), "{full}");
}

/// A reader must never take a control of ours for a run of the paper's: not above the item, and not below a plot that shows
/// nothing else. Beside groups of the paper the plot needs no such words.
#[test]
fn groups_of_ours_are_labelled() {
    let root = tempfile::tempdir().expect("a directory");
    let mut catalog = catalog(root.path());
    catalog.experiments[0].groups[0].ours = Some("a control with other samples".into());
    let of_ours = report_of(&catalog, &records(REFERENCE), None);
    let text = page(&of_ours, "demo.md");
    let label = "> **Ours, not the paper's:** a control with other samples (`rank`)";
    assert!(text.contains(label), "{text}");
    assert!(text.contains("Ours: a control with other samples*"), "{text}");
    let svg = page(&of_ours, "figures/demo/fig1-curves.svg");
    assert!(svg.contains("ours: a control with other samples"), "{svg}");
    let papers = report(&records(REFERENCE), None);
    assert!(!page(&papers, "demo.md").contains("Ours"));
    assert!(!page(&papers, "figures/demo/fig1-curves.svg").contains("ours:"));
}

/// A table of which some rows are reduced or on other data says so at each number.
#[test]
fn a_mixed_table_labels_its_numbers() {
    let mut mixed = records(REFERENCE);
    let key = ("demo".to_owned(), "table1".to_owned());
    let record = mixed.items.get_mut(&key).expect("the item");
    for row in record.table.rows.iter_mut().filter(|r| r.method == "Gau") {
        row.profile = Profile::Smoke;
        row.data = "embedded:dead-leaves".into();
    }
    let text = page(&report(&mixed, None), "demo.md");
    let tri = "27.30 ± 0.82<br><sub>+0.94</sub>";
    let gau = "**27.60 ± 0.82**<br><sub>reduced, embedded:dead-leaves</sub>";
    assert!(text.contains(tri) && text.contains(gau), "{text}");
    assert!(text.contains("measured on embedded:dead-leaves, pictures"), "{text}");
}

/// A smoke run beside a full one must neither be averaged into it nor hide it.
#[test]
fn the_largest_profile_is_shown() {
    let mut mixed = records(REFERENCE);
    let wrong = Made { profile: Profile::Smoke, data: "embedded images", factor: 100.0 };
    for (key, record) in records(wrong).items {
        mixed.items.entry(key).or_default().table.rows.extend(record.table.rows);
    }
    let (mixed, full) = (report(&mixed, None), report(&records(REFERENCE), None));
    assert_eq!(page(&mixed, "demo.md"), page(&full, "demo.md"));
}

/// Failed measurements are results: they must be seen, and nothing may break.
#[test]
fn numbers_that_are_not_finite() {
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e130, -1e130] {
        let mut broken = records(REFERENCE);
        for record in broken.items.values_mut() {
            record.table.rows.iter_mut().step_by(3).for_each(|r| r.value = bad);
        }
        let report = report(&broken, Some(&records(LOCAL)));
        if !bad.is_finite() {
            let svg = page(&report, "figures/demo/fig1-curves.svg");
            assert!(svg.contains("not finite"), "{svg}");
        }
    }
}

#[test]
fn writing_and_checking() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path();
    let one = report(&records(REFERENCE), Some(&records(LOCAL)));
    one.write(root).expect("written");
    assert_eq!(one.check(root).expect("checked"), []);

    let stale = |report: &Report| -> Vec<String> {
        report.check(root).expect("checked").iter().map(ToString::to_string).collect()
    };
    // A changed byte, a missing page, a page and a picture too many.
    let mut text = fs::read(root.join("README.md")).expect("the page");
    let last = text.len() - 2;
    text[last] ^= 1;
    fs::write(root.join("README.md"), text).expect("written");
    fs::remove_file(root.join("errata.md")).expect("removed");
    fs::copy(root.join("demo.md"), root.join("old.md")).expect("copied");
    fs::write(root.join("figures/demo/old.svg"), "<svg/>").expect("written");
    assert_eq!(
        stale(&one),
        [
            "README.md: differs from the records",
            "errata.md: is missing",
            "figures/demo/old.svg: is no longer part of the report",
            "old.md: is no longer part of the report",
        ]
    );

    // Other people's files stay: a page without our first line, and the records.
    fs::write(root.join("notes.md"), "mine").expect("written");
    fs::create_dir_all(root.join("record/demo")).expect("a folder");
    fs::write(root.join("record/demo/fig1.csv"), "x").expect("written");
    one.write(root).expect("written");
    assert_eq!(stale(&one), Vec::<String>::new());
    assert!(!root.join("old.md").exists() && !root.join("figures/demo/old.svg").exists());
    assert!(root.join("notes.md").exists() && root.join("record/demo/fig1.csv").exists());

    // Without the local run its pictures go.
    let two = report(&records(REFERENCE), None);
    two.write(root).expect("written");
    assert!(!root.join("figures/demo/fig1-curves-local.svg").exists());
    assert!(root.join("figures/demo/fig1-curves.svg").exists());
}

/// Records read back from disk give the report they were made from.
#[test]
fn records_are_read_from_a_directory() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path();
    let catalog = catalog(root);
    let made = records(REFERENCE);
    for ((paper, item), record) in &made.items {
        let file = |end: &str| root.join("record").join(paper).join(format!("{item}.{end}"));
        record.table.write(&file("csv"), paper, item).expect("written");
        record.provenance.write(&file("provenance.json")).expect("written");
    }
    assert_eq!(Records::read(&root.join("record"), &catalog).expect("records"), made);
    assert_eq!(Records::read(&root.join("nothing"), &catalog).expect("none"), Records::default());

    let damaged: PathBuf = root.join("record/demo/fig1.csv");
    let text = fs::read_to_string(&damaged).expect("the record");
    fs::write(&damaged, text.replacen("stable_rank,10.0,", "stable_rank,ten,", 1))
        .expect("written");
    let error = Records::read(&root.join("record"), &catalog).expect_err("damaged").to_string();
    assert!(error.contains("fig1.csv:") && error.contains("`ten` is not a number"), "{error}");
}

/// Catches a ratio the wrong way round, seconds of one step shown as those of a whole run, and a
/// workload without a measurement that takes the others' rows with it.
#[test]
fn speed_stands_beside_the_item_that_names_its_workloads() {
    let root = tempfile::tempdir().expect("a directory");
    let mut catalog = catalog(root.path());
    let speed = |workload: &str, times| Speed {
        workload: workload.into(),
        covers: format!("rows of {workload}"),
        times,
    };
    let of_table = catalog.experiments.iter_mut().find(|e| e.item == "table1").expect("table1");
    of_table.benchmarks = vec![speed("fast", 2000), speed("new", 1), speed("sparse", 1)];
    let mut reference = records(REFERENCE);
    let shown = |reference: &Records| {
        let inputs = Inputs {
            catalog: &catalog,
            reference,
            local: None,
            repository: "..",
            record: Some("record"),
            costs: None,
        };
        page(&render(&inputs).expect("a report"), "demo.md")
    };
    let before = shown(&reference);
    assert!(
        before.contains("*Not measured yet:* `cargo xtask bench fast new sparse --record`"),
        "{before}"
    );

    let fast = Benchmark {
        title: "One step".into(),
        unit: "s per step".into(),
        ours_s: 0.001_25,
        torch_s: Some(0.005),
        jax_s: None,
        gemm_gflops: 180.0,
        share_of_gemm: 0.876,
        threads: 2,
        peers: vec!["torch 2.15".into()],
        machine: "A | machine".into(),
        commit: String::new(),
    };
    // More than the whole rate, where arithmetic that is left out was counted.
    let sparse = Benchmark { share_of_gemm: 1.44, torch_s: None, ..fast.clone() };
    reference.benchmarks.0.insert("fast".into(), fast);
    reference.benchmarks.0.insert("sparse".into(), sparse);
    let text = shown(&reference);
    let from = text.find("**Speed on the same cores").expect("the table");
    let to = from + text[from..].find("**Claims**").expect("the claims");
    insta::assert_snapshot!("speed", &text[from..to]);
}

/// Catches failures that the page does not show, that the summary does not count, that a claim does not name, or that stand in the
/// report of the reference.
#[test]
fn failures_of_this_machine_are_shown_and_counted() {
    let mut local = records(LOCAL);
    let key = ("demo".to_owned(), "fig1".to_owned());
    let failure = posenc_experiments::record::Failure {
        group: "rank".into(),
        method: "RFF".into(),
        signal: "-".into(),
        seed: 2,
        reason: "took longer than 10 min".into(),
        seconds: 600.0,
    };
    local.items.entry(key).or_default().failures = (0..22)
        .map(|seed| posenc_experiments::record::Failure { seed, ..failure.clone() })
        .collect();
    let other = ("demo".to_owned(), "table1".to_owned());
    local
        .items
        .insert(other, posenc_report::Record { failures: vec![failure], ..Default::default() });
    let report = report(&records(REFERENCE), Some(&local));
    let paper = page(&report, "demo.md");
    assert!(paper.contains("**Failed on this machine:** 22 units"), "{paper}");
    assert!(paper.contains("| RFF (rank) | – | 2 | took longer than 10 min |"), "{paper}");
    assert!(paper.contains("and 2 more."), "{paper}");
    assert!(paper.contains("22 units of it failed"), "{paper}");
    assert!(paper.contains("**Failed on this machine:** 1 unit\n"), "{paper}");
    let summary = page(&report, "README.md");
    assert!(
        summary.contains("**Failed on this machine:** 23 units ([Figure 1](demo.md#fig1) 22, "),
        "{summary}"
    );
    let reference = self::report(&records(REFERENCE), None);
    assert!(!page(&reference, "demo.md").contains("Failed"));
}
