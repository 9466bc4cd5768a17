//! Whole reports of a small repository.

use crate::common;

use std::fs;
use std::path::PathBuf;

use common::{
    LOCAL, Made, REFERENCE, catalog, changed_catalog, has, inputs, markdown, page, paper, records,
    rendered,
};
use posenc_experiments::record::ItemRecord;
use posenc_experiments::record::item::Sources;
use posenc_experiments::schema::Speed;
use posenc_report::{Inputs, Records, Report, render};

fn report(reference: &Records, local: Option<&Records>) -> Report {
    rendered(&catalog(), reference, local)
}

#[test]
fn pages_with_a_local_run() {
    let report = report(&records(REFERENCE), Some(&records(LOCAL)));
    insta::assert_snapshot!("local_readme", page(&report, "README.md"));
    insta::assert_snapshot!("local_paper", paper(&report));
}

#[test]
fn pages_without_records() {
    let report = report(&Records::default(), None);
    insta::assert_snapshot!("empty_paper", paper(&report));
    assert!(!report.files.keys().any(|p| p.starts_with("figures/demo")), "nothing to draw");
}

/// Catches equal numbers of two runs that are called the paper's, a number of repetitions without its run, an answer of this machine
/// without its data, and a list of claims without the evidence of this machine.
#[test]
fn two_runs_are_told_apart() {
    let equal = page(&report(&records(REFERENCE), Some(&records(REFERENCE))), "demo/fig1.md");
    assert!(!equal.contains("equal to the paper's"), "{equal}");
    has(&equal, &["stable rank<br>reference", "stable rank<br>this machine"]);
    let claims = page(&report(&records(REFERENCE), Some(&records(LOCAL))), "claims/demo.md");
    let row = "| ✓\u{a0}reproduced | paper's data, full | ?\u{a0}not\u{a0}comparable | other data | Gau reaches";
    let head = "| Reference run | Evidence | This machine | Evidence | Claim | Item |";
    has(&claims, &[head, row]);
    let mut single = records(REFERENCE);
    let rows = single.items.values_mut().map(|record| &mut record.table.rows);
    rows.for_each(|rows| rows.retain(|row| row.seed == 0));
    let few = page(&report(&records(REFERENCE), Some(&single)), "demo/fig1.md");
    assert!(few.contains("n = 3 (Reference run), n = 1 (This machine)"), "{few}");

    let groups = "groups:\n  - id: closed-form\n";
    let answer = "answer: [{ text: 'It reaches {gau.1:1}.', measured: [gau] }]\n";
    let change = |text: &str| text.replace(groups, &format!("{answer}{groups}"));
    let catalog = changed_catalog(change).expect("a catalog");
    let both =
        page(&rendered(&catalog, &records(REFERENCE), Some(&records(LOCAL))), "demo/table1.md");
    let own = "**Our answer (this machine).** It reaches 28.2.<br><sub>Evidence: other data, reduced (embedded images)</sub>\n";
    assert!(both.contains(own), "{both}");
}

/// Catches a plot of signals that draws the mean over all of them in each row: three signals of the demo differ by 1 dB each.
#[test]
fn rows_of_signals_show_their_own_values() {
    let by_signal = "kind: dots\n        series: signal\n        methods: [Tri]\n        signals: [image-00, image-01, image-02]\n";
    let change = |text: &str| text.replace("kind: dots\n", by_signal);
    let catalog = changed_catalog(change).expect("a catalog");
    let svg =
        page(&rendered(&catalog, &records(REFERENCE), None), "figures/demo/table1-values.svg");
    has(&svg, &["image-00", "image-01", "image-02"]);
    let centers = svg.split("<circle cx=\"").skip(1).filter_map(|c| c.split('"').next());
    let centers: Vec<f64> = centers.map(|x| x.parse().expect("a number")).collect();
    // The last two are in the legend.
    let [a, b, c, _, _] = centers[..] else { panic!("{centers:?}") };
    assert!(b - a > 10.0 && (c - b - (b - a)).abs() < 1.5, "{centers:?}");
}

/// Catches reduced runs and other data without a label: a reader would mistake them for the paper's.
#[test]
fn reduced_runs_and_other_data_are_labelled() {
    let small = report(&records(LOCAL), None);
    let text = paper(&small);
    let run = "- **Reduced run:** 2 of 4 sample counts (`rank`)";
    let data = "- **Data: embedded images**, in place of `pictures`";
    has(&text, &[run, data, "*Reduced run: 2 of 16 images · Data: embedded images*"]);
    let svg = page(&small, "figures/demo/fig1-curves.svg");
    has(&svg, &["profile smoke", "reduced run: 2 of 4 sample counts"]);
    let full = paper(&report(&records(REFERENCE), None));
    assert!(!full.contains("Reduced run") && !full.contains("in place of"), "{full}");
}

/// Catches a method whose settings are not listed, and numbers of one run that appear as those of the other.
#[test]
fn methods_without_embedders_are_compared_in_a_table() {
    let embedders = "{ kind: closed-form, step: 2 }
    variants:
      - { id: Tri, embedder: { kind: triangle, dimension: 16, half_width: 0.0625 } }
      - { id: Gau, embedder: { kind: gaussian, dimension: 16, sigma: 0.04 } }
";
    let methods = "{ kind: interpolation, step: 2 }
    variants:
      - { id: Tri, settings: { method: linear } }
      - { id: Gau, settings: { method: cubic } }
";
    let unknown = "      - { metric: rank, label: rank, digits: 0, aggregate: mean }\n";
    let change = |text: &str| text.replace(embedders, methods).replace(unknown, "");
    let catalog = changed_catalog(change).expect("a catalog");
    let mut local = records(LOCAL);
    let key = ("demo".to_owned(), "table1".to_owned());
    let rows = &mut local.items.get_mut(&key).expect("the item").table.rows;
    rows.iter_mut().filter(|row| row.metric == "time").for_each(|row| row.value = 7.0);
    let text = paper(&rendered(&catalog, &records(REFERENCE), Some(&local)));
    let head = "| Method | method | time (s)<br>Reference run | time (s)<br>This machine |";
    let rows = "| Tri | `linear` | 0.005 | 7 |\n| Gau | `cubic` | 0.005 | 7 |\n";
    assert!(text.contains(head) && text.contains(rows), "{text}");
}

/// Catches non-finite values that are hidden, and extreme values that make the report fail.
#[test]
fn numbers_that_are_not_finite_are_reported() {
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
    fs::copy(root.join("demo/fig1.md"), root.join("demo/fig9.md")).expect("copied");
    fs::copy(root.join("figures/demo/fig1-curves.svg"), root.join("figures/demo/old.svg"))
        .expect("copied");
    assert_eq!(
        stale(&one),
        [
            "README.md: differs from the records",
            "demo/fig9.md: is no longer part of the report",
            "errata.md: is missing",
            "figures/demo/old.svg: is no longer part of the report",
            "old.md: is no longer part of the report",
        ]
    );

    // Files of others stay: a page without the marker line, a plot with another first line, and the records. A check names plots.
    fs::write(root.join("notes.md"), "mine").expect("written");
    fs::write(root.join("figures/demo/mine.svg"), "<svg/>").expect("written");
    fs::create_dir_all(root.join("record/demo/fig1")).expect("a folder");
    fs::write(root.join("record/demo/fig1/values.csv"), "x").expect("written");
    one.write(root).expect("written");
    assert_eq!(stale(&one), ["figures/demo/mine.svg: is no longer part of the report"]);
    fs::remove_file(root.join("figures/demo/mine.svg")).expect("still there");
    assert!(!root.join("old.md").exists() && !root.join("figures/demo/old.svg").exists());
    assert!(root.join("notes.md").exists() && root.join("record/demo/fig1/values.csv").exists());

    // Without the local run, its pictures are removed.
    let two = report(&records(REFERENCE), None);
    two.write(root).expect("written");
    assert!(!root.join("figures/demo/fig1-curves-local.svg").exists());
    assert!(root.join("figures/demo/fig1-curves.svg").exists());
}

/// Catches records that change when they are written and read, and damaged files that are not named.
#[test]
fn records_are_read_from_a_directory() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path();
    let catalog = catalog();
    let mut made = records(REFERENCE);
    for ((paper, item), record) in &mut made.items {
        let folder = root.join("record").join(paper).join(item);
        let ItemRecord { table, provenance, .. } = &*record;
        ItemRecord::write(&folder, table, provenance, &Sources::new()).expect("written");
        record.provenance.tables =
            ItemRecord::read(&folder).expect("a record").and_then(|r| r.provenance.tables);
        assert!(record.provenance.tables.is_some());
        record.folder = folder;
    }
    assert_eq!(Records::read(&root.join("record"), &catalog).expect("records"), made);
    assert_eq!(Records::read(&root.join("nothing"), &catalog).expect("none"), Records::default());

    let damaged: PathBuf = root.join("record/demo/fig1/values.csv");
    let text = fs::read_to_string(&damaged).expect("the record");
    fs::write(&damaged, text.replacen("stable_rank,10,", "stable_rank,ten,", 1)).expect("written");
    let error = Records::read(&root.join("record"), &catalog).expect_err("damaged").to_string();
    assert!(error.contains("values.csv:") && error.contains("`ten` is not a number"), "{error}");
}

/// Catches workloads that are not measured yet and remove the table of an item.
#[test]
fn workloads_that_are_not_measured_are_named() {
    let mut catalog = catalog();
    let of_table = catalog.experiments.iter_mut().find(|e| e.item == "table1").expect("table1");
    let new = Speed { workload: "new".into(), covers: "all rows".into(), times: 1 };
    of_table.benchmarks = vec![new];
    let text = paper(&rendered(&catalog, &records(REFERENCE), None));
    assert!(text.contains("*Not measured yet:* `cargo xtask bench new --record`"), "{text}");
}

/// Catches an answer that no record can complete, so that its page silently lacks it.
#[test]
fn answers_take_only_published_numbers_that_exist() {
    let of_item = ["groups:\n  - id: rank\n", "answer: 'Print has {order.paper 1:1}.'\n"];
    let of_paper = ["data: [pictures]\n", "answer: ['Print has {fig1#order.paper 1:1}.']\n"];
    for [line, answer] in [of_item, of_paper] {
        let change = |text: &str| text.replace(line, &format!("{answer}{line}"));
        let error = changed_catalog(change).expect_err("an error");
        let needles = ["answer", "`{paper 1}` of `demo/fig1#order`", "data/papers/demo.csv"];
        assert!(needles.iter().all(|needle| error.contains(needle)), "{error}");
    }
}

/// Catches sentences of answers that are shown although their claims fail or were not run, on pages of items and papers, on the first
/// page and in the repository's README, and a published number next to other data.
#[test]
fn answers_state_only_what_the_record_shows() {
    let answer = "answer:\n\
                  \x20 - 'It reaches {gau.1:1} (paper: {gau.paper 1:1}).'\n\
                  \x20 - { text: 'It misses print, with {gau.1:1}.', fails: [gau] }\n\
                  \x20 - { text: Print is corrected., corrected: [gau] }\n\
                  \x20 - { text: Nothing is decided., open: [gau] }\n\
                  groups:\n  - id: closed-form\n";
    let of_paper = "data: [pictures]\nquestion: Is $x$ right?\nuntested: all on speed\n\
                    answer: ['Gau has {table1#gau.1:1}.', { text: Gau fails., fails: [table1#gau] }]\n\
                    short_answer:\n  - 'Shortly, [Gau](demo/table1.md) has {table1#gau.1:0}.'\n\
                    \x20 - { text: 'Shortly, Gau fails.', fails: [table1#gau] }\n";
    let change = |text: &str| {
        let text = text.replace("groups:\n  - id: closed-form\n", answer);
        text.replace("data: [pictures]\n", of_paper)
    };
    let catalog = changed_catalog(change).expect("a catalog");
    let readme = "# x\n\n<!-- answers: made -->\nstale\n<!-- /answers -->\nbelow\n";
    let shown = |reference: &Records| {
        let report = rendered(&catalog, reference, None);
        let own = posenc_report::with_answers(readme, &report).unwrap_or_default();
        let [item, paper, first] =
            ["demo/table1.md", "demo.md", "README.md"].map(|name| page(&report, name));
        [item, paper, first, own]
    };
    let [item, paper, first, own] = shown(&records(REFERENCE));
    assert!(item.contains("It reaches 27.6 (paper: 26.6 dB)."), "{item}");
    assert!(paper.contains("**Our answer.**\n\n- Gau has 27.6.\n"), "{paper}");
    let short = "Shortly, [Gau](demo/table1.md) has 28. <br><sub>Evidence: paper's data, full (pictures)</sub>\n";
    assert!(first.contains("(demo.md)\n\n**Is $x$ right?**\n") && first.contains(short), "{first}");
    let own_short = short.replace("(demo/", "(report/demo/").replace("<br>", "");
    assert!(own.contains(&own_short), "{own}");
    assert!(!own.contains("stale") && own.ends_with("<!-- /answers -->\nbelow\n"), "{own}");
    let report = rendered(&catalog, &records(REFERENCE), None);
    assert_eq!(posenc_report::with_answers("# x\n", &report), None);

    // A run of this machine without the paper says nothing of it, and one of another item that it decides nothing.
    let none = "This run decides none of the sentences above.";
    let mut of_fig1 = records(LOCAL);
    of_fig1.items.retain(|(_, item), _| item == "fig1");
    for (local, is_shown) in [(Records::default(), false), (of_fig1, true)] {
        let both = rendered(&catalog, &records(REFERENCE), Some(&local));
        for name in ["demo.md", "README.md"] {
            assert_eq!(page(&both, name).contains(none), is_shown, "{name}");
        }
    }

    let [item, paper, first, own] = shown(&records(Made { factor: 2.0, ..REFERENCE }));
    assert!(item.contains("**Our answer.** It misses print, with 55.2.\n"), "{item}");
    assert!(paper.contains("- Gau fails.\n") && !paper.contains("Gau has"), "{paper}");
    for page in [first, own] {
        assert!(page.contains("Shortly, Gau fails.") && !page.contains("Shortly, [Gau]"), "{page}");
    }
    let mut other = records(REFERENCE);
    let rows = other.items.values_mut().flat_map(|record| &mut record.table.rows);
    rows.filter(|row| row.data == "pictures").for_each(|row| row.data = "embedded:x".into());
    let [item, ..] = shown(&other);
    assert!(item.contains("**Our answer.** Nothing is decided.\n"), "{item}");
    // The answers of the paper have no sentence for this verdict.
    let unstated = ["answer", "short_answer"]
        .map(|key| format!("demo {key}: no sentence is true while `table1#gau` is not comparable"));
    assert_eq!(rendered(&catalog, &other, None).unstated, unstated);
    assert_eq!(rendered(&catalog, &records(REFERENCE), None).unstated, [""; 0]);
    for page in shown(&Records::default()) {
        assert!(!page.contains("Our answer") && !page.contains("Shortly"), "{page}");
    }
}

/// Catches a link to a file of the repository in a report outside one.
#[test]
fn a_report_outside_a_repository_has_no_links_into_one() {
    let (catalog, reference) = (catalog(), records(REFERENCE));
    let outside = Inputs { repository: "", ..inputs(&catalog, &reference) };
    let text = markdown(&render(&outside).expect("a report"));
    let links: Vec<_> = text.lines().filter(|line| line.contains("/docs/")).collect();
    assert!(links.is_empty(), "{links:?}");
}
