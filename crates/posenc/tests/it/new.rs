//! `new`: its files can be read, planned and run; a rejected command leaves no files.

use crate::common;

use std::path::Path;

use common::{Repository, contents};

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
    let repository = Repository::new();
    let before = contents(repository.path());
    repository.ok(&[&LORENTZIAN[..], &["--dry-run"]].concat());
    assert_eq!(contents(repository.path()), before, "--dry-run wrote something");

    let run = repository.ok(&LORENTZIAN);
    assert!(run.stdout.contains(FILE), "{}", run.stdout);
    let paper = repository.read("experiments/extensions/paper.yaml");
    assert!(paper.contains("  - { item: lorentzian, name: \"Lorentzian\","), "{paper}");
    repository.ok(&["reproduce", "extensions/lorentzian"]);
    let page = repository.read("out/report/extensions/lorentzian.md");
    let section = &page;
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
    for part in ["lorentzian-line-local.svg", "error of", "Closed form, 128"] {
        assert!(section.to_lowercase().contains(&part.to_lowercase()), "{part}: {section}");
    }
    let gallery = repository.read("out/report/embedders.md");
    assert!(gallery.contains("`1/(1+(u/w)^2)`") && gallery.contains("### Lorentzian"), "{gallery}");

    repository.fails(&LORENTZIAN, &["`lorentzian` is an item of", "choose another name"]);
}

/// Catches a rejection without a clear message, or one that leaves some of its files.
#[test]
fn refused_commands_leave_no_files() {
    let repository = Repository::new();
    with_code(&repository);
    let before = contents(repository.path());
    let formula = |name: &'static str| ["new", "embedder", name, "--formula", "exp(-u^2)"];
    repository.fails(&formula("gaussian"), &["is a kind of embedder already"]);
    repository.fails(&formula("mexican-hat"), &["is an item of experiments/extensions/paper.yaml"]);
    repository.fails(&formula("paper"), &["choose another"]);
    repository.fails(&formula("struct"), &["a keyword of Rust"]);
    repository.fails(&formula("../x"), &["is not a valid name; allowed: 1 to 40 of a-z"]);
    repository
        .fails(&["new", "embedder", "hat", "--formula", "exp(-u^2"], &["--formula", "parenthes"]);
    repository
        .fails(&["new", "embedder", "hat", "--formula", "u/w"], &["uses 'w'", "--set NAME=VALUE"]);
    repository
        .fails(&["new", "embedder", "registry"], &["has a module `registry`", "another name"]);
    repository
        .fails(&["new", "embedder", "hat", "--code", "--formula", "u"], &["cannot be used with"]);
    let from = |item: &'static str| ["new", "experiment", "mine", "--from", item];
    repository.fails(&from("trading/tabel1"), &["Did you mean trading/table1?"]);
    repository.fails(&from("trading"), &["no such item"]);
    repository.fails(&from("lff/errata"), &["checks the errata of its paper"]);
    repository.fails(
        &["new", "experiment", "mine", "--from", "trading/table1", "--group", "closed"],
        &["has no such group; allowed: simple,"],
    );
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
}

/// Catches a line of code that is missing or in the wrong list. `extending.rs` compiles the code.
#[test]
fn an_embedder_by_code_is_registered_everywhere() {
    let repository = Repository::new();
    with_code(&repository);
    repository.ok(&["new", "embedder", "two_sided"]);
    let folder = "crates/posenc-math/src/embedder";
    let code = repository.read(&format!("{folder}/two_sided.rs"));
    assert!(
        code.contains("name: \"two-sided\"") && code.contains("struct TwoSidedProfile"),
        "{code}"
    );
    assert!(!code.contains("{{"), "{code}");
    let text = repository.read(&format!("{folder}/mod.rs"));
    assert!(text.contains("    matrix\n    two_sided\n    // new kinds"), "{text}");
    let text = repository.read("experiments/extensions/10-two-sided.yaml");
    assert!(text.contains("{ kind: two-sided, dimension: 128, width: 0.01 }"), "{text}");
}

/// Catches an item whose copy is rejected, plans nothing, or loses its comments; and a group that cannot be copied alone.
#[test]
fn every_item_can_be_copied() {
    let repository = Repository::new();
    let listed = repository.ok(&["list"]).stdout;
    let mut items: Vec<(String, Vec<String>)> = Vec::new();
    for line in listed.lines().filter(|l| !l.contains("no experiment yet")) {
        match line.strip_prefix("  ") {
            None => items.push((line.split(": ").next().unwrap().to_owned(), Vec::new())),
            Some(group) => {
                items.last_mut().unwrap().1.push(group.split(": ").next().unwrap().to_owned())
            }
        }
    }
    items.retain(|(item, _)| !item.ends_with("/errata"));
    assert!(items.len() > 50, "{}", items.len());
    let copy = |name: &str, item: &str, group: Option<&str>| {
        let mut arguments = vec!["new", "experiment", name, "--from", item];
        arguments.extend(group.into_iter().flat_map(|g| ["--group", g]));
        // Fails unless the catalog reads the copy and plans it at every profile.
        let run = repository.ok(&arguments);
        let file = run
            .stdout
            .lines()
            .find_map(|l| l.trim().strip_prefix("new "))
            .unwrap()
            .trim()
            .to_owned();
        repository.read(&file)
    };
    for (i, (item, groups)) in items.iter().enumerate() {
        let text = copy(&format!("copy-{i}"), item, None);
        assert!(!text.contains("without the comments"), "{item}");
        // Only groups that share settings may depend on other groups.
        let shares = groups.len() > 1 && text.contains(": &");
        let last = groups.last().map(String::as_str).filter(|_| shares);
        if let Some(last) = last {
            let text = copy(&format!("part-{i}"), item, Some(last));
            assert_eq!(
                text.matches(&format!("- id: {last}\n")).count().min(1),
                1,
                "{item}: {text}"
            );
        }
    }
    let plan = repository.ok(&[
        "reproduce",
        "extensions/copy-*",
        "--dry-run",
        "--verbose",
        "--profile",
        "smoke",
    ]);
    let copies =
        (0..items.len()).filter(|i| plan.stdout.contains(&format!("extensions/copy-{i}/")));
    // Without data, items that only read files plan nothing.
    assert!(copies.count() + 4 >= items.len(), "{}", plan.stdout);
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
    repository.fails(
        &with(&["new", "experiment", "b", "--from", "mine/first-item"]),
        &["new paper NAME"],
    );
    repository.ok(&with(&["new", "paper", "mine", "--dry-run"]));
    let made = repository.ok(&with(&["new", "paper", "mine"])).stdout;
    assert!(made.contains("reproduce mine/first-item --include '"), "{made}");
    repository.fails(&with(&["new", "paper", "mine"]), &["nothing is overwritten"]);
    repository.ok(&with(&["new", "experiment", "copied", "--from", "mine/first-item"]));
    repository.ok(&with(&[
        "new",
        "embedder",
        "bell",
        "--formula",
        "exp(-(u/w)^2)",
        "--set",
        "w=0.01",
    ]));
    assert_eq!(contents(repository.path()), before);
    let text = std::fs::read_to_string(folder.join("10-copied.yaml")).unwrap();
    assert!(
        text.contains("paper: mine\n") && text.contains("/experiments/schema.json\n"),
        "{text}"
    );
    let listed = repository.ok(&with(&["list"])).stdout;
    for item in ["extensions/mexican-hat:", "mine/first-item:", "mine/copied:", "mine/bell:"] {
        assert!(listed.contains(item), "{item}: {listed}");
    }
    let run = repository.ok(&with(&["reproduce", "mine/first-item"]));
    assert!(run.stderr.contains("  mine/first-item narrow-higher: ✓ (holds)"), "{}", run.stderr);
    assert!(repository.read("out/report/mine/first-item.md").contains("first-item.yaml"));
    repository.ok(&["report", "--check"]);
    repository.fails(&with(&["report"]), &["--include needs --out"]);
    repository.ok(&with(&["report", "--out", "shown"]));
    assert!(repository.path().join("shown/mine/first-item.md").exists());
    repository.fails(&with(&["reproduce", "--record"]), &["cannot be used with"]);
    let verified = repository.ok(&with(&["verify", "mine", "--from", "out/record"]));
    assert!(verified.stdout.contains("equal"), "{}", verified.stdout);

    // A broken file is reported, and the others run.
    std::fs::write(folder.join("10-copied.yaml"), text.replacen("kind: extra", "kind: extar", 1))
        .unwrap();
    let broken =
        repository.fails(&with(&["reproduce", "mine/first-item"]), &["10-copied.yaml:", "`extar`"]);
    assert_eq!(broken.code, 1, "{}", broken.stderr);
    assert!(repository.read("out/report/README.md").contains("Left out because of errors"));
    let listed = repository.fails(&with(&["list"]), &["10-copied.yaml:"]).stdout;
    assert!(
        listed.contains("mine/first-item:") && listed.contains("no experiment yet"),
        "{listed}"
    );
}
