//! `docs/EXTENDING.md`, followed to the letter: its files are written, its commands run, its code is compiled
//! (`common/guide.rs` lists the directives).

// A separate binary: its compiler uses all cores, which would exceed the time limits of other tests.
#[path = "it/common/mod.rs"]
mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::guide::{Guide, Step, commands, edit, shows};
use common::{Process, Repository};
use posenc_files::testing::{Need, skip};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn guide() -> Guide {
    Guide::read(&root().join("docs/EXTENDING.md"))
}

/// Whether a step needs no compiler: it neither changes code nor runs after such a change.
fn is_plain(step: &Step) -> bool {
    let changes_code = |s: &Step| {
        ["crates/", "FORMAT.md"].iter().any(|file| s.directive.contains(&format!(": {file}")))
    };
    // Y is "Your first experiment".
    "YACFGH".contains(step.section)
        && !changes_code(step)
        && step.directive != "compile"
        && !step.block.contains("triangle-wave")
}

/// Catches a wrong command, key, file or output in the document, with the real binary: the first experiment and all recipes except
/// those that need compiling.
#[test]
fn the_sections_without_compiling_can_be_followed() {
    let repository = Repository::new();
    repository.picture("photos/one.png", 520);
    let mut guide = guide();
    let mut done = BTreeMap::new();
    for step in guide.steps.clone().iter().filter(|step| is_plain(step)) {
        if step.section == 'C' && step.directive == "run, exit 1" {
            repository.picture("data/photos/mine.png", 64);
        }
        guide.follow(&repository, step);
        if step.block.contains("--images") {
            let pages = common::files_in(&repository.path().join("out/report"), "md");
            let has_label =
                |page: &PathBuf| std::fs::read_to_string(page).unwrap().contains("user:");
            assert!(pages.iter().any(has_label), "no label of the folder");
        }
        *done.entry(step.section).or_insert(0) += 1;
    }
    assert_eq!(done.keys().collect::<String>(), "ACFGHY", "{done:?}");

    // The report contains what the document promises.
    let page = repository.read("out/report/extensions/gaussian-width.md");
    for part in [
        "gaussian-width-rank-local.svg",
        "PSNR of the fitted images",
        "Reconstructions and errors of the first image",
        "alt=\"Error of dead-leaves-0",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!repository.read("data/manifest.yaml").contains(&"0".repeat(64)));
    let listed = repository.ok(&["list", "extensions/narrow-table1"]).stdout;
    assert!(listed.contains("  closed-form: ") && !listed.contains("simple"), "{listed}");
    guide.finish();
}

/// Catches code of the document, or of `new embedder`, that does not compile, fails its tests or does not run: B, D and G.
#[test]
fn the_sections_with_compiling_can_be_followed() {
    let Some(workshop) = Workshop::open() else {
        skip(Need::Cargo, "cargo does not start, or the tests were built without --release");
        return;
    };
    let repository = Repository::new();
    for name in ["crates", "fuzz", "xtask", "docs", "Cargo.toml", "Cargo.lock", "FORMAT.md"] {
        common::copy(&root().join(name), &repository.path().join(name));
    }
    let (mut later, mut shown) = (Vec::new(), Vec::new());
    let (mut written, mut started) = (0, 0);
    let mut guide = guide();
    for step in guide.steps.clone().iter().filter(|s| "BDG".contains(s.section)) {
        match step.directive.as_str() {
            "run" => {
                guide.follow(&repository, step);
                // The unchanged template compiles and passes its tests, too.
                let starting = "crates/posenc-math/src/embedder/lorentz.rs";
                let twin = repository.read(starting).replace("\"lorentz\"", "\"starting\"");
                repository.write(&starting.replace("lorentz", "starting"), &twin);
                started += 1;
            }
            "compile" => later.extend(commands(&step.block)),
            "run attention" => {}
            "output, in part" => shown.push(step.block.clone()),
            "output" if step.section == 'B' => guide.follow(&repository, step),
            "output" => {}
            _ => {
                edit(&repository, step);
                written += 1;
            }
        }
    }
    assert!(written == 14 && started == 1 && later.len() == 7, "{written} {started} {later:?}");
    let kinds = "crates/posenc-math/src/embedder/mod.rs";
    let text = repository.read(kinds);
    repository.write(kinds, &text.replace("// new kinds: above", "starting\n// new kinds: above"));

    let binary = workshop.build(repository.path());
    let mut printed = String::new();
    let mut names = vec!["starting".to_owned(), "every_kind".to_owned()];
    let mut environment = Vec::new();
    for words in &later {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["test", name] => names.push((*name).to_owned()),
            [setting, "test", name] => {
                environment.push(setting.split_once('=').unwrap());
                names.push((*name).to_owned());
            }
            words => {
                let command = repository.prepared(Command::new(&binary), words);
                let run = Process::start(command).ended().ends_with(0);
                printed += &(run.stdout + &run.stderr);
            }
        }
    }
    let tests = workshop.test(&names, &environment);
    // Three tests of the starting profile, one of the document, one of all kinds, two of examples.
    let passed = tests.lines().filter(|l| l.starts_with("test ") && l.ends_with(" ok")).count();
    assert!(passed >= 7, "{passed} tests of {names:?}");
    printed += &tests;
    shown.iter().for_each(|block| shows(&printed, block));
    let protocols = repository.read("out/report/protocols.md");
    assert!(protocols.contains("## row-norm\n\nComputes norms of embedded rows."), "{protocols}");
    for (item, claim) in [("norms", "ends-are-shorter"), ("lorentz", "rank-rises")] {
        let page = repository.read(&format!("out/report/extensions/{item}.md"));
        let part = format!("{item}-{claim}");
        let line = page.lines().find(|l| l.contains(&part)).unwrap_or_else(|| panic!("no {part}"));
        assert!(line.contains("✓\u{a0}holds"), "{line}");
    }
    assert!(repository.read("out/report/embedders.md").contains("## Lorentz\n"));
}

/// A changed copy of the workspace, built with the compiled dependencies of this build.
struct Workshop {
    cargo: PathBuf,
    /// The folder with the compiled dependencies.
    built: PathBuf,
    tree: PathBuf,
    /// Has the binaries of the copy, so that they do not replace those of this build.
    target: PathBuf,
}

const CRATES: [&str; 10] = [
    "posenc-attention",
    "posenc-data",
    "posenc-experiments",
    "posenc-files",
    "posenc-harness",
    "posenc-math",
    "posenc-nets",
    "posenc-protocols",
    "posenc-report",
    "posenc",
];

impl Workshop {
    fn open() -> Option<Self> {
        let cargo = std::env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from);
        Command::new(&cargo).arg("--version").output().ok().filter(|o| o.status.success())?;
        let binary = std::env::current_exe().ok()?;
        let release = binary.parent()?.parent()?;
        if release.file_name()? != "release" {
            return None;
        }
        let built = release.parent()?.to_owned();
        // The folder is kept between runs, so that unchanged crates are not compiled again.
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("extending");
        Some(Workshop { cargo, built, tree: folder.join("tree"), target: folder.join("target") })
    }

    fn command(&self, verb: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.cargo);
        command.args([verb, "--release", "--offline"]).args(arguments);
        let features: Vec<&str> = [
            (cfg!(feature = "video"), "posenc/video"),
            (cfg!(feature = "wgpu"), "posenc/wgpu"),
            (cfg!(feature = "attention-wgpu"), "posenc/attention-wgpu"),
        ]
        .into_iter()
        .filter_map(|(on, name)| on.then_some(name))
        .collect();
        if !features.is_empty() {
            command.args(["--features", &features.join(",")]);
        }
        // Our crates need not be fast; dependencies keep their profile.
        for name in CRATES {
            command.args(["--config", &format!("profile.release.package.{name}.opt-level=0")]);
        }
        command.env("CARGO_BUILD_BUILD_DIR", &self.built);
        command.arg("--target-dir").arg(&self.target).current_dir(&self.tree);
        command
    }

    /// Builds the repository's sources and returns the binary.
    fn build(&self, repository: &Path) -> PathBuf {
        // Tests include the readers of the fuzz targets.
        let folders = ["crates", "fuzz", "xtask", "docs", "experiments", "data"];
        for name in folders.into_iter().chain(["Cargo.toml", "Cargo.lock", "FORMAT.md"]) {
            follow(&repository.join(name), &self.tree.join(name));
        }
        let output = self.command("build", &["--workspace", "--bin", "posenc"]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        self.target.join("release").join(if cfg!(windows) { "posenc.exe" } else { "posenc" })
    }

    /// Runs the tests of these names where the document adds some; returns what cargo printed.
    fn test(&self, names: &[String], environment: &[(&str, &str)]) -> String {
        let run = |which: [&str; 2]| {
            // `posenc` has the features, and neither a library nor tests of this name.
            let mut command = self.command("test", &["-p", "posenc", "-p", which[0]]);
            command.args(which[1].split(' ')).arg("--").args(names);
            let output = command.envs(environment.iter().copied()).output().unwrap();
            let printed = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(
                output.status.success(),
                "{printed}{}",
                String::from_utf8_lossy(&output.stderr)
            );
            printed
        };
        run(["posenc-math", "--lib"]) + &run(["posenc-protocols", "--test it"])
    }
}

/// Makes `to` a copy of `from` without rewriting equal files.
fn follow(from: &Path, to: &Path) {
    if from.is_dir() {
        std::fs::create_dir_all(to).unwrap();
        for entry in std::fs::read_dir(to).unwrap() {
            let entry = entry.unwrap();
            if !from.join(entry.file_name()).exists() {
                let path = entry.path();
                match path.is_dir() {
                    true => std::fs::remove_dir_all(path).unwrap(),
                    false => std::fs::remove_file(path).unwrap(),
                }
            }
        }
        for entry in std::fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            follow(&entry.path(), &to.join(entry.file_name()));
        }
        return;
    }
    let bytes = std::fs::read(from).unwrap();
    if std::fs::read(to).ok().as_ref() != Some(&bytes) {
        std::fs::write(to, bytes).unwrap();
    }
}
