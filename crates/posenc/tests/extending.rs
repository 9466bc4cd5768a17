//! `docs/EXTENDING.md`, followed to the letter: what it writes is written, what it runs is run, what it compiles is compiled.
//!
//! A comment above each code block says what is to be done with it: `run` (the commands), `run, exit 1`, `compile` (the commands,
//! after a build), `write: FILE`, `insert: FILE after "TEXT"` or `before`, `shown: FILE` (the block stands there), `paste: FILE …`.

// A binary of its own: its compiler uses all cores, which the limits of time of other tests would not stand.
#[path = "it/common/mod.rs"]
mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::Repository;
use posenc_testing::{Need, skip};

/// One thing to do.
#[derive(Debug)]
struct Step {
    section: char,
    directive: String,
    block: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The steps of the document; a code block without a directive is a mistake.
fn steps() -> Vec<Step> {
    let text = std::fs::read_to_string(root().join("docs/EXTENDING.md")).unwrap();
    let mut steps: Vec<Step> = Vec::new();
    let mut section = ' ';
    let mut open: Option<String> = None;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let trimmed = line.trim();
        if let Some(heading) = line.strip_prefix("## ") {
            section = heading.chars().next().unwrap();
        } else if let Some(directive) =
            trimmed.strip_prefix("<!-- ").and_then(|d| d.strip_suffix(" -->"))
        {
            if directive.starts_with("paste") {
                steps.push(Step { section, directive: directive.into(), block: String::new() });
            } else {
                open = Some(directive.to_owned());
            }
        } else if trimmed.starts_with("```") {
            let indent = line.len() - line.trim_start().len();
            let block: Vec<&str> = lines.by_ref().take_while(|l| l.trim() != "```").collect();
            let block: Vec<&str> = block.iter().map(|l| l.get(indent..).unwrap_or("")).collect();
            let directive =
                open.take().unwrap_or_else(|| panic!("no directive above {}", block.join("\n")));
            steps.push(Step { section, directive, block: block.join("\n") + "\n" });
        }
    }
    assert!(open.is_none(), "no block after {open:?}");
    steps
}

/// The commands of a block, in words without `cargo xtask`. Environment variables stand before them.
fn commands(block: &str) -> Vec<Vec<String>> {
    let words = |line: &str| {
        let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
        for c in line.chars() {
            match c {
                '"' => quoted = !quoted,
                ' ' if !quoted => {
                    words.extend(Some(std::mem::take(&mut word)).filter(|w| !w.is_empty()))
                }
                '#' if !quoted && word.is_empty() => break,
                c => word.push(c),
            }
        }
        words.extend(Some(word).filter(|w| !w.is_empty()));
        words
    };
    let all = block.lines().map(words).filter(|w: &Vec<String>| !w.is_empty());
    let stripped = |mut words: Vec<String>| {
        let start = words.iter().position(|word| word == "cargo").unwrap();
        assert_eq!(words[start + 1], "xtask", "{words:?}");
        words.drain(start..start + 2);
        words
    };
    all.map(stripped).collect()
}

/// Does a step that changes a file.
fn edit(repository: &Repository, step: &Step) {
    let (what, rest) = step.directive.split_once(": ").unwrap();
    match what {
        "write" => repository.write(rest, &step.block),
        "shown" => {
            let text = repository.read(rest);
            assert!(text.contains(step.block.trim()), "{rest} has no {}", step.block);
        }
        "insert" => {
            let (file, place) = rest.split_once(' ').unwrap();
            let (side, needle) = place.split_once(' ').unwrap();
            let needle = needle.trim_matches('"');
            let text = repository.read(file);
            // A line that is just that goes before lines that have it somewhere.
            let places = |fits: &dyn Fn(&str) -> bool| -> Vec<usize> {
                (text.lines().enumerate()).filter(|(_, l)| fits(l)).map(|(i, _)| i).collect()
            };
            let whole = places(&|l| l == needle);
            let found = if whole.is_empty() { places(&|l| l.contains(needle)) } else { whole };
            assert_eq!(found.len(), 1, "`{needle}` in {file}");
            let at = found[0] + usize::from(side == "after");
            let mut lines: Vec<&str> = text.lines().collect();
            let block: Vec<&str> = step.block.lines().collect();
            lines.splice(at..at, block);
            repository.write(file, &(lines.join("\n") + "\n"));
        }
        other => panic!("unknown directive {other}"),
    }
}

fn picture(repository: &Repository, file: &str, side: u32) {
    let path = repository.path().join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    // Waves and an edge: something to interpolate.
    let pixel = |x: u32, y: u32| {
        let wave = (f64::from(x) * 0.21).sin() * (f64::from(y) * 0.13).cos();
        let edge = if x > y { 60.0 } else { 0.0 };
        image::Rgb([(100.0 + 70.0 * wave + edge) as u8, (x % 251) as u8, (y % 241) as u8])
    };
    image::RgbImage::from_fn(side, side, pixel).save(path).unwrap();
}

/// Catches a command, a key, a place or an outcome of the document that is not so: sections A, C, E, F and G, with the real binary.
#[test]
fn the_sections_without_compiling_can_be_followed() {
    let repository = Repository::new();
    picture(&repository, "photos/one.png", 520);
    let steps = steps();
    let mut output = String::new();
    let mut done = BTreeMap::new();
    for step in steps.iter().filter(|s| "ACEFG".contains(s.section)) {
        if step.section == 'C' && step.directive == "run, exit 1" {
            picture(&repository, "data/photos/mine.png", 64);
        }
        match step.directive.as_str() {
            "run" | "run, exit 1" => {
                for words in commands(&step.block) {
                    let words: Vec<&str> = words.iter().map(String::as_str).collect();
                    let run = repository.run(&words);
                    let expected = i32::from(step.directive.ends_with("exit 1"));
                    assert_eq!(run.code, expected, "{words:?}: {}{}", run.stdout, run.stderr);
                    output = run.stdout + &run.stderr;
                    if words.contains(&"--images") {
                        let page = repository.read("out/report/trading.md");
                        assert!(page.contains("user:"), "no label of the folder");
                    }
                }
            }
            directive if directive.starts_with("paste") => {
                let is_sum = |w: &&str| w.len() == 64 && w.chars().all(|c| c.is_ascii_hexdigit());
                let words = output.split(|c: char| !c.is_ascii_alphanumeric());
                let sum = words
                    .filter(is_sum)
                    .find(|w| !w.starts_with("000"))
                    .unwrap_or_else(|| panic!("{output}"));
                let manifest = repository.read("data/manifest.yaml");
                repository.write("data/manifest.yaml", &manifest.replace(&"0".repeat(64), sum));
            }
            _ => edit(&repository, step),
        }
        *done.entry(step.section).or_insert(0) += 1;
    }
    assert_eq!(done.keys().collect::<String>(), "ACEFG", "{done:?}");

    // What it promises is there.
    let page = repository.read("out/report/extensions.md");
    let section = page.split("<a id=\"lorentzian\">").nth(1).unwrap();
    for part in [
        "lorentzian-spectrum-local.svg",
        "Conditioning of 64 rows",
        "How far each is off, on four images",
        "dead-leaves-03--error.png",
        "rank of the Gaussian is 16.32",
    ] {
        assert!(section.contains(part), "{part}: {section}");
    }
    let claim = |id: &str| {
        let start = format!("| <a id=\"lorentzian-{id}\">");
        section
            .lines()
            .find(|l| l.starts_with(&start))
            .unwrap_or_else(|| panic!("no claim {id}"))
            .to_owned()
    };
    assert!(claim("gaussian-value").contains("✅"), "{}", claim("gaussian-value"));
    assert!(claim("gaussian-falls-faster").contains("✅"), "{}", claim("gaussian-falls-faster"));
    assert!(!repository.read("data/manifest.yaml").contains(&"0".repeat(64)));
    let listed = repository.ok(&["list", "extensions/narrow-table1"]).stdout;
    assert!(listed.contains("  closed-form: ") && !listed.contains("simple"), "{listed}");
}

/// Catches code of the document, or of `new embedder`, that does not compile, fails its tests or does not run: sections B and D.
#[test]
fn the_sections_with_compiling_can_be_followed() {
    let Some(workshop) = Workshop::open() else {
        skip(Need::Cargo, "cargo does not start, or the tests were built without --release");
        return;
    };
    let repository = Repository::new();
    for name in ["crates", "xtask", "docs"] {
        common::copy(&root().join(name), &repository.path().join(name));
    }
    for name in ["Cargo.toml", "Cargo.lock", "FORMAT.md"] {
        std::fs::copy(root().join(name), repository.path().join(name)).unwrap();
    }
    let mut later = Vec::new();
    let (mut written, mut started) = (0, 0);
    for step in steps().iter().filter(|s| "BD".contains(s.section)) {
        match step.directive.as_str() {
            "run" => {
                for words in commands(&step.block) {
                    let words: Vec<&str> = words.iter().map(String::as_str).collect();
                    repository.ok(&words);
                    // What it wrote compiles and passes as it stands, too.
                    let starting = "crates/posenc-math/src/embedder/lorentz.rs";
                    let twin = repository.read(starting).replace("\"lorentz\"", "\"starting\"");
                    repository.write(&starting.replace("lorentz", "starting"), &twin);
                    started += 1;
                }
            }
            "compile" => later.extend(commands(&step.block)),
            _ => {
                edit(&repository, step);
                written += 1;
            }
        }
    }
    assert!(written == 8 && started == 1 && later.len() == 5, "{written} {started} {later:?}");
    let kinds = "crates/posenc-math/src/embedder/mod.rs";
    let text = repository.read(kinds);
    repository.write(kinds, &text.replace("// new kinds: above", "starting\n// new kinds: above"));

    let binary = workshop.build(repository.path());
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
                let mut command = repository.command(words);
                let mut built = Command::new(&binary);
                built.args(words).current_dir(repository.path());
                for (key, value) in command.get_envs() {
                    match value {
                        Some(value) => built.env(key, value),
                        None => built.env_remove(key),
                    };
                }
                command = built;
                let run: common::Run = command.output().unwrap().into();
                assert_eq!(run.code, 0, "{words:?}: {}{}", run.stdout, run.stderr);
            }
        }
    }
    let passed = workshop.test(&names, &environment);
    // Three of the starting profile, one of the document's, one of all kinds, two of examples, one of the page of protocols.
    assert!(passed >= 8, "{passed} tests of {names:?}");
    let protocols = std::fs::read_to_string(workshop.tree.join("docs/protocols.md")).unwrap();
    assert!(protocols.contains("## row-norm\n\nComputes norms of embedded rows."), "{protocols}");
    let page = repository.read("out/report/extensions.md");
    for (part, verdict) in [("norms-ends-are-shorter", "✅"), ("lorentz-rank-rises", "✅")] {
        let line = page.lines().find(|l| l.contains(part)).unwrap_or_else(|| panic!("no {part}"));
        assert!(line.contains(verdict), "{line}");
    }
    assert!(repository.read("out/report/embedders.md").contains("## Lorentz\n"));
}

/// Where a changed copy of the workspace is built, from the dependencies that this very build has compiled.
struct Workshop {
    cargo: PathBuf,
    /// `target/release` of the build that this test belongs to.
    release: PathBuf,
    tree: PathBuf,
    target: PathBuf,
}

const CRATES: [&str; 12] = [
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
    "posenc-testing",
    "posenc-text",
];

impl Workshop {
    fn open() -> Option<Self> {
        let cargo = std::env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from);
        Command::new(&cargo).arg("--version").output().ok().filter(|o| o.status.success())?;
        let binary = std::env::current_exe().ok()?;
        let release = binary.parent()?.parent()?.to_owned();
        if release.file_name()? != "release" {
            return None;
        }
        // Kept from one run to the next: what did not change is not compiled again.
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("extending");
        Some(Workshop { cargo, release, tree: folder.join("tree"), target: folder.join("target") })
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
        // Ours need not be fast; dependencies stay as they are.
        for name in CRATES {
            command.args(["--config", &format!("profile.release.package.{name}.opt-level=0")]);
        }
        command.arg("--target-dir").arg(&self.target).current_dir(&self.tree);
        command
    }

    /// Builds the repository's sources; gives the binary.
    fn build(&self, repository: &Path) -> PathBuf {
        let folders = ["crates", "xtask", "docs", "experiments", "data"];
        for name in folders.into_iter().chain(["Cargo.toml", "Cargo.lock", "FORMAT.md"]) {
            follow(&repository.join(name), &self.tree.join(name));
        }
        let (from, to) = (&self.release, self.target.join("release"));
        for (folder, linked) in [("deps", true), ("build", true), (".fingerprint", false)] {
            adopt(&from.join(folder), &to.join(folder), linked);
        }
        let output = self.command("build", &["--workspace", "--bin", "posenc"]).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{told}");
        to.join(if cfg!(windows) { "posenc.exe" } else { "posenc" })
    }

    /// Runs the tests of those names that the document touches; how many passed.
    fn test(&self, names: &[String], environment: &[(&str, &str)]) -> usize {
        let which = [
            "-p",
            "posenc-math",
            "-p",
            "posenc-protocols",
            "-p",
            "posenc",
            "--lib",
            "--test",
            "format",
        ];
        let mut command = self.command("test", &which);
        command.arg("--").args(names).envs(environment.iter().copied());
        let output = command.output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
        told.lines().filter(|l| l.starts_with("test ") && l.ends_with(" ok")).count()
    }
}

/// Makes `to` what `from` is, leaving alone what is the same.
fn follow(from: &Path, to: &Path) {
    if from.is_dir() {
        std::fs::create_dir_all(to).unwrap();
        for entry in std::fs::read_dir(to).unwrap() {
            let entry = entry.unwrap();
            if !from.join(entry.file_name()).exists() {
                let path = entry.path();
                if path.is_dir() {
                    std::fs::remove_dir_all(path).unwrap()
                } else {
                    std::fs::remove_file(path).unwrap()
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

/// Gives `to` the files of dependencies that `from` has, with their times, by which cargo knows that they are fresh. Large ones,
/// which nobody writes again, are linked.
fn adopt(from: &Path, to: &Path, linked: bool) {
    std::fs::create_dir_all(to).unwrap();
    let Ok(entries) = std::fs::read_dir(from) else { return };
    for entry in entries.flatten() {
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("posenc") || name.starts_with("libposenc") || name.starts_with("xtask")
        {
            continue;
        }
        if source.is_dir() {
            adopt(&source, &target, linked);
            continue;
        }
        // Results of build scripts' runs are small, and written in place when one runs again.
        let large = linked && std::fs::metadata(&source).is_ok_and(|m| m.len() > 1 << 16);
        if target.exists() || (large && std::fs::hard_link(&source, &target).is_ok()) {
            continue;
        }
        let copied = std::fs::copy(&source, &target).and_then(|_| {
            let modified = std::fs::metadata(&source)?.modified()?;
            std::fs::File::options().write(true).open(&target)?.set_modified(modified)
        });
        // A file that another build takes away meanwhile is compiled anew.
        drop(copied);
    }
}
