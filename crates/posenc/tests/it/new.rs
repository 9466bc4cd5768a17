//! `new`: its files can be read, planned and run; a rejected command leaves no files.

use crate::common;

use std::path::Path;

use common::{EXPERIMENT, Repository, contents, has};
use posenc_experiments::derive::{NewItem, derive};
use posenc_experiments::plan::jobs;
use posenc_experiments::schema::MODELINE;
use posenc_experiments::selector::Selectors;
use posenc_experiments::{Catalog, Experiment, Profile};
use posenc_protocols::KINDS;

const LORENTZIAN: [&str; 7] =
    ["new", "embedder", "lorentzian", "--formula", "1/(1+(u/w)^2)", "--set", "w=0.01"];
const FILE: &str = "experiments/extensions/10-lorentzian.yaml";

/// Copies the sources of the embedders.
fn with_code(repository: &Repository) {
    let folder = "crates/posenc-math/src/embedder";
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    for file in ["mod.rs", "registry.rs"] {
        let text = std::fs::read_to_string(source.join(file)).unwrap();
        repository.write(&format!("{folder}/{file}"), &text);
    }
}

/// Catches a template whose claims, plots, tables or pictures name what no protocol records. Each must have content of this
/// machine.
#[test]
fn an_embedder_by_formula_is_in_the_report_of_a_run() {
    let repository = Repository::with_experiment(EXPERIMENT);
    repository.ok(&LORENTZIAN).prints(&[FILE]);
    let paper = repository.read("experiments/extensions/paper.yaml");
    has(&paper, &["  - { item: lorentzian, name: \"Lorentzian\","]);
    repository.ok(&["reproduce", "extensions/lorentzian"]);
    let section = repository.read("out/report/extensions/lorentzian.md");
    for absent in
        ["No plot yet", "No table yet", "No pictures yet", "This machine – Not run", "NaN"]
    {
        assert!(!section.contains(absent), "{absent}: {section}");
    }
    assert_eq!(section.matches("| <a id=\"lorentzian-").count(), 3);
    // Each claim must have a verdict on this machine: the only "not run" of the row is the reference's.
    for line in section.lines().filter(|l| l.starts_with("| <a id=\"lorentzian-")) {
        assert_eq!(line.matches("not\u{a0}run").count(), 1, "{line}");
    }
    has(&section.to_lowercase(), &["lorentzian-line-local.svg", "error of", "closed form, 128"]);
    let gallery = repository.read("out/report/embedders.md");
    has(&gallery, &["`1/(1+(u/w)^2)`", "### Lorentzian"]);

    repository.fails(&LORENTZIAN, &["`lorentzian` is an item of", "choose another name"]);
}

/// Catches a rejection without a clear message, or one that leaves some of its files.
#[test]
fn refused_commands_leave_no_files() {
    let repository = Repository::with_experiment(EXPERIMENT);
    with_code(&repository);
    let before = contents(repository.path());
    for (name, formula, needles) in [
        ("gaussian", "exp(-u^2)", ["is a kind of embedder already", ""]),
        ("mexican-hat", "exp(-u^2)", ["is an item of experiments/extensions/paper.yaml", ""]),
        ("paper", "exp(-u^2)", ["choose another", ""]),
        ("struct", "exp(-u^2)", ["a keyword of Rust", ""]),
        ("../x", "exp(-u^2)", ["is not a valid name; allowed: 1 to 40 of a-z", ""]),
        ("hat", "exp(-u^2", ["--formula", "parenthes"]),
        ("hat", "u/w", ["uses 'w'", "--set NAME=VALUE"]),
    ] {
        repository.fails(&["new", "embedder", name, "--formula", formula], &needles);
    }
    let module = ["has a module `registry`", "another name"];
    repository.fails(&["new", "embedder", "registry"], &module);
    let from = |item: &'static str| ["new", "experiment", "mine", "--from", item];
    repository.fails(
        &from("extensions/mexcian-hat"),
        &["no such item", "Did you mean extensions/mexican-hat?"],
    );
    let group = [&from("extensions/mexican-hat")[..], &["--group", "closed"]].concat();
    repository.fails(&group, &["has no such group; allowed: rank, images"]);
    assert_eq!(contents(repository.path()), before);

    // A list without the anchor comment at its end.
    for file in ["experiments/extensions/paper.yaml", "crates/posenc-math/src/embedder/mod.rs"] {
        let text = repository.read(file);
        repository.write(file, &text.replace(": above this line", ""));
        let before = contents(repository.path());
        repository
            .fails(&["new", "embedder", "two-sided"], &[file, "0 times", "add this line yourself"]);
        assert_eq!(contents(repository.path()), before);
        repository.write(file, &text);
    }
    let repository = Repository::new();
    repository.fails(&["new", "embedder", "two-sided"], &["no code can be added", "--formula"]);
    repository.fails(&from("lff/errata"), &["checks the errata of its paper"]);
}

/// Catches an item whose copy is rejected or plans nothing, and a group that cannot be copied alone.
#[test]
fn every_item_can_be_copied() {
    let repository = Repository::new();
    let is_errata = |e: &Experiment| {
        let mut settings = e.groups.iter().filter_map(|g| g.resolved(Profile::Paper, 0));
        settings.any(|r| r.protocol.kind().reads_published)
    };
    let catalog = Catalog::read(repository.path(), KINDS).unwrap();
    let mut lines = String::new();
    let mut copy = |name: String, source: &Experiment, groups: &[String]| {
        let text = std::fs::read_to_string(&source.file).unwrap();
        let new = NewItem {
            paper: "extensions",
            item: &name,
            title: "A copy",
            groups,
            modeline: MODELINE,
        };
        let text = derive(source, &text, &new).unwrap().text;
        repository.write(&format!("experiments/extensions/{name}.yaml"), &text);
        lines += &format!("  - {{ item: {name}, name: A copy, title: A copy }}\n");
        text
    };
    let sources: Vec<_> = catalog.experiments.iter().filter(|e| !is_errata(e)).collect();
    assert!(sources.len() > 50, "{}", sources.len());
    for (i, source) in sources.iter().enumerate() {
        copy(format!("copy-{i}"), source, &[]);
        if let Some(last) = source.groups.last().filter(|_| source.groups.len() > 1) {
            let text = copy(format!("part-{i}"), source, std::slice::from_ref(&last.id));
            let found = text.contains(&format!("- id: {}\n", last.id));
            assert!(found, "{}: {text}", source.id());
        }
    }
    let paper = "experiments/extensions/paper.yaml";
    let anchor = "  # new items: above this line";
    repository.write(paper, &repository.read(paper).replace(anchor, &(lines + anchor)));
    let catalog = Catalog::read(repository.path(), KINDS).unwrap();
    let copies = catalog.experiments.iter().filter(|e| e.id().starts_with("extensions/copy-"));
    for copy in copies.clone() {
        for profile in Profile::ALL {
            let plans = !jobs(std::iter::once(copy), &Selectors::default(), profile).is_empty();
            let is_left_out = copy.groups.iter().all(|group| !group.runs_at(profile));
            assert!(plans || is_left_out, "{} at {profile}", copy.id());
        }
    }
    assert_eq!(copies.count(), sources.len());
    repository.ok(&["reproduce", "extensions/copy-*", "--dry-run", "--profile", "smoke"]);
}

/// Catches a new paper that does not run or lacks its answer, a refused one that leaves its folder, a reference record of units that ran with
/// uncommitted changes, and a first page that a recorded run leaves behind.
#[test]
fn a_paper_in_the_repository() {
    let repository = Repository::with_experiment(common::EXPERIMENT);
    repository.write("README.md", "<!-- answers: made -->\n<!-- /answers -->\n");
    repository.write(".gitignore", "out/\n");
    common::git(repository.path(), &["init", "--quiet"]);
    let commit = || {
        common::git(repository.path(), &["add", "--all"]);
        common::git(repository.path(), &["commit", "--quiet", "--message", "all"]);
    };
    commit();
    repository.ok(&["new", "paper", "mine"]).prints(&["reproduce mine/table1\n"]);
    let refused = [
        (["new", "paper", "mine", "--include", "outer/inner"], "is the key of"),
        (["new", "paper", "mine", "--include", "present/inner"], "is the key of"),
        (["new", "paper", "other", "--include", "experiments/other"], "need no --include"),
    ];
    std::fs::create_dir(repository.path().join("present")).unwrap();
    for (arguments, why) in refused {
        repository.fails(&arguments, &[why]);
        assert!(!repository.path().join(arguments[4]).exists());
    }
    assert!(
        repository.path().join("present").exists() && !repository.path().join("outer").exists()
    );
    let run = repository.ok(&["reproduce", "mine"]);
    run.says(&[
        "  mine/table1 narrow-higher: ✓ (reproduced)",
        "  mine/table1 printed: ✓ (reproduced)",
    ]);
    has(&repository.read("out/report/mine.md"), &["differs from that of the wide one by +"]);
    has(&repository.read("out/report/coverage/mine.md"), &["Networks with a larger"]);
    commit();
    let plan = repository.ok(&["reproduce", "mine", "--record", "--dry-run"]);
    plan.prints(&["ran with uncommitted changes"]);
    repository.ok(&["reproduce", "mine", "--record"]);
    assert!(!repository.read("report/record/mine/table1/provenance.json").contains("-dirty"));
    repository.ok(&["report", "--check"]);
    repository.ok(&["reproduce", "mine", "--record"]).says(&["0 of 2 units to run"]);
    let folder = "experiments/mine";
    let second = ["new", "experiment", "second", "--from", "mine/table1", "--include", folder];
    repository.ok(&second).prints(&["reproduce mine/second\n"]);
    repository.ok(&["reproduce", "mine/second", "--include", folder]);
}

/// Catches a folder outside the repository whose items are not listed, run and shown, or that changes files of the repository.
#[test]
fn a_paper_outside_the_repository() {
    let repository = Repository::with_experiment(common::EXPERIMENT);
    repository.ok(&["report"]);
    let before = contents(repository.path());
    let outside = tempfile::tempdir().unwrap();
    let folder = outside.path().join("my paper");
    let include = ["--include", folder.to_str().unwrap()];
    let with = |arguments: &[&'static str]| [arguments, &include[..]].concat();
    repository
        .fails(&with(&["new", "experiment", "b", "--from", "mine/table1"]), &["new paper NAME"]);
    let made = repository.ok(&with(&["new", "paper", "mine"]));
    made.prints(&["reproduce mine/table1 --include '"]);
    repository.fails(&with(&["new", "paper", "mine"]), &["nothing is overwritten"]);
    repository.ok(&with(&["new", "experiment", "copied", "--from", "mine/table1"]));
    repository.ok(&with(&["new", "embedder", "bell", "--formula", "exp(-(u/0.01)^2)"]));
    assert_eq!(contents(repository.path()), before);
    let text = std::fs::read_to_string(folder.join("10-copied.yaml")).unwrap();
    has(&text, &["paper: mine\n", "/experiments/schema.json\n"]);
    let items = ["extensions/mexican-hat:", "mine/table1:", "mine/copied:", "mine/bell:"];
    repository.ok(&with(&["list"])).prints(&items);
    let run = repository.ok(&with(&["reproduce", "mine/table1"]));
    run.says(&["  mine/table1 narrow-higher: ✓ (reproduced)"]);
    assert!(repository.read("out/report/mine/table1.md").contains("table1.yaml"));
    repository.ok(&["report", "--check"]);
    repository.fails(&with(&["report"]), &["--include needs --out"]);
    repository.ok(&with(&["report", "--out", "shown"]));
    assert!(repository.path().join("shown/mine/table1.md").exists());
    repository.fails(&with(&["reproduce", "--record"]), &["cannot be used with"]);
    repository.ok(&with(&["verify", "mine", "--from", "out/record"])).prints(&["equal"]);

    // A broken file is reported, and the others run.
    std::fs::write(folder.join("10-copied.yaml"), text.replacen("kind: extra", "kind: extar", 1))
        .unwrap();
    let wrong = ["10-copied.yaml:", "`extar`"];
    repository.fails(&with(&["reproduce", "mine/table1"]), &wrong).ends_with(1);
    has(&repository.read("out/report/README.md"), &["Left out because of errors"]);
    let listed = repository.fails(&with(&["list"]), &["10-copied.yaml:"]);
    listed.prints(&["mine/table1:", "no experiment yet"]);
}
