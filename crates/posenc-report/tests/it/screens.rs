//! Pages with recorded screens and the captions of each method.

use crate::common;

use std::path::Path;

use common::{LOCAL, REFERENCE, catalog, paper, records};
use posenc_experiments::record::captions::{BoxKind, Described, Layout, LayoutNode};
use posenc_experiments::record::{CaptionRecord, CaptionedMethod, UnitCaptions};
use posenc_experiments::schema::Profile;
use posenc_report::{Inputs, Records, Report, render};

/// A screen with a bar and two settings. `labelled` lists the labeled boxes.
fn layout(words: [&str; 2], labelled: &[usize]) -> Layout {
    let node = |kind, bounds, word: Option<&str>| LayoutNode {
        kind,
        bounds,
        word: word.map(str::to_owned),
    };
    let mut nodes = vec![node(BoxKind::Icon, [2.0, 3.0, 9.0, 7.0], None)];
    for (top, word) in [(20.0, words[0]), (30.0, words[1])] {
        nodes.push(node(BoxKind::Text, [4.0, top, 40.0, top + 4.0], Some(word)));
        nodes.push(node(BoxKind::Switch, [80.0, top, 92.0, top + 4.0], None));
    }
    Layout { nodes, widgets: labelled.to_vec() }
}

fn method(group: &str, id: &str, profile: Profile, said: [(&str, bool); 4]) -> CaptionedMethod {
    let references = ["go back", "turn on music", "turn on a|b *c*", "turn on <i>"];
    let widgets = said.iter().zip(references).map(|((said, is_right), reference)| Described {
        references: vec![reference.into()],
        said: (*said).into(),
        is_right: *is_right,
    });
    CaptionedMethod {
        group: group.into(),
        method: id.into(),
        seed: 0,
        profile,
        device: "cpu".into(),
        data: "-".into(),
        captions: UnitCaptions {
            layouts: vec![layout(["music", "a|b *c*"], &[0, 2, 4]), layout(["<i>", "news"], &[2])],
            widgets: widgets.collect(),
        },
    }
}

/// Three methods, two of them with the same name, and one more on other screens.
fn captions() -> CaptionRecord {
    let all =
        [("go back", true), ("toggle music setting", true), ("turn on a|b *c*", true), ("", false)];
    let few = [("go up", true), ("turn on news", false), ("turn on music", false), ("<b>", false)];
    let mut elsewhere = method("complex", "Gau σ=0.04", Profile::Paper, all);
    elsewhere.captions.layouts.truncate(1);
    elsewhere.captions.widgets.truncate(3);
    elsewhere.captions.layouts[0].widgets = vec![4, 2, 0];
    CaptionRecord {
        methods: vec![
            method("simple", "Tri", Profile::Smoke, few),
            method("simple", "Gau σ=0.04", Profile::Smoke, all),
            method("complex", "Tri", Profile::Paper, all),
            elsewhere,
        ],
    }
}

fn with_captions(mut records: Records) -> Records {
    let key = ("demo".to_owned(), "fig4".to_owned());
    records.items.get_mut(&key).expect("the item").captions = captions();
    records
}

fn report(reference: &Records, local: Option<&Records>) -> Report {
    let root = tempfile::tempdir().expect("a directory");
    let catalog = catalog(root.path());
    let inputs = Inputs { catalog: &catalog, reference, local, repository: "..", record: None };
    render(&inputs).expect("a report")
}

/// The part of a page about screens, without its last note.
fn section(report: &Report) -> String {
    let page = paper(report);
    let from = page.find("**Captions of each method").expect("the section");
    let end = "one training run per method, with the first seed";
    let to = from + page[from..].rfind(end).expect("its notes");
    page[from..to].to_owned()
}

fn drawings(report: &Report) -> Vec<String> {
    let names = report.files.keys().map(|file| file.display().to_string());
    names.filter(|file| file.contains(".screen-")).collect()
}

#[test]
fn a_page_with_screens() {
    let report = report(&with_captions(records(REFERENCE)), None);
    insta::assert_snapshot!("screens", section(&report));
    assert_eq!(
        drawings(&report),
        ["1", "2", "3"].map(|n| format!("figures/demo/fig4.screen-{n}.svg"))
    );
}

/// Catches broken links, rows whose width differs from their header, a run whose screens replace those of the other
/// run, and drawings that remain after their record is removed.
#[test]
fn screens_of_both_runs_have_their_drawings() {
    let both = report(&with_captions(records(REFERENCE)), Some(&with_captions(records(LOCAL))));
    let page = section(&both);
    assert_eq!(drawings(&both).len(), 6);
    let sources: Vec<&str> =
        page.split("src=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert_eq!(sources.len(), 6);
    for source in sources {
        let source = source.strip_prefix("../").expect("a path above the folder of items");
        assert!(both.files.contains_key(Path::new(source)), "{source}");
    }
    let mut cells = None;
    for line in page.lines() {
        let pipes = line.matches('|').count() - line.matches("\\|").count();
        match (line.starts_with('|'), cells) {
            (false, _) => cells = None,
            (true, None) => cells = Some(pipes),
            (true, Some(expected)) => assert_eq!(pipes, expected, "{line}"),
        }
    }
    let directory = tempfile::tempdir().expect("a directory");
    both.write(directory.path()).expect("written");
    let without = report(&records(REFERENCE), None);
    assert!(drawings(&without).is_empty());
    let page = paper(&without);
    assert!(!page.contains("Captions of each method"));
    let stale = without.check(directory.path()).expect("checked");
    let old = stale.iter().filter(|s| s.to_string().contains(".screen-"));
    assert_eq!(old.count(), 6, "{stale:?}");
}
