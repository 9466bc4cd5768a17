//! Hostile files and faults, on the real binary: each command ends with an error that names file and reason, and nothing
//! changes outside of `out/`, `report/` and the folder for temporary files.
#![cfg(unix)]

use crate::common;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{EXPERIMENT, Process, Repository, with_a_failing_unit};

const DEFINITION: &str = "experiments/extensions/01-mexican-hat.yaml";
const TABLE: &str = "report/record/extensions/mexican-hat/values.csv";
const SMOKE: [&str; 3] = ["reproduce", "--profile", "smoke"];

/// A repository, and a folder that no command may change.
struct Scene {
    repository: Repository,
    foreign: tempfile::TempDir,
    before: BTreeMap<PathBuf, Vec<u8>>,
}

impl std::ops::Deref for Scene {
    type Target = Repository;

    fn deref(&self) -> &Repository {
        &self.repository
    }
}

/// Checks that the foreign folder is unchanged and no temporary file is left.
impl Drop for Scene {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        assert!(listing(&[self.foreign.path()]) == self.before, "a foreign file changed");
        let left: Vec<_> = std::fs::read_dir(self.temporary.path()).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

impl Scene {
    fn new() -> Self {
        let foreign = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(foreign.path().join("extensions/mexican-hat")).unwrap();
        for file in
            ["file", ".writing-1-2-3.tmp", "extensions/.writing-2-3-4.tmp", "extensions/a.svg"]
        {
            std::fs::write(foreign.path().join(file), "precious").unwrap();
        }
        let before = listing(&[foreign.path()]);
        Scene { repository: Repository::with_experiment(EXPERIMENT), foreign, before }
    }

    /// A repository with records in `out/` and `report/`.
    fn recorded() -> Self {
        let scene = Scene::new();
        scene.ok(&["reproduce", "--profile", "smoke", "--record"]);
        scene
    }

    fn at(&self, file: &str) -> PathBuf {
        self.path().join(file)
    }

    /// Replaces a file or folder by a hostile one.
    fn replace(&self, file: &str, hostile: Hostile) {
        let path = self.at(file);
        self.clear(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        match hostile {
            Hostile::Pipe => {
                assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
            }
            Hostile::Zeros => symlink("/dev/zero", &path).unwrap(),
            Hostile::Dangling => symlink("/nowhere/at/all", &path).unwrap(),
        }
    }

    fn clear(&self, file: &str) {
        let path = self.at(file);
        let Ok(metadata) = std::fs::symlink_metadata(&path) else { return };
        match metadata.is_dir() {
            true => std::fs::remove_dir_all(path).unwrap(),
            false => std::fs::remove_file(path).unwrap(),
        }
    }
}

/// What a reader may block on, read endlessly, or treat as missing. `posenc-files` has tests of all others.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Hostile {
    /// A named pipe without a writer.
    Pipe,
    /// A link to `/dev/zero`.
    Zeros,
    Dangling,
}

const ALL: [Hostile; 3] = [Hostile::Pipe, Hostile::Zeros, Hostile::Dangling];

/// Catches commands that read hostile definitions, records or data endlessly, block on them, or treat them as missing.
#[test]
fn hostile_inputs_are_named() {
    let scene = Scene::recorded();
    let record = "report/record/extensions/mexican-hat";
    let provenance = format!("{record}/provenance.json");
    let plan = &["reproduce", "--dry-run"][..];
    let check = &["report", "--check"][..];
    let other = "records/extensions/mexican-hat/units.csv";
    for (file, arguments) in [
        (DEFINITION, plan),
        ("experiments/extensions/paper.yaml", plan),
        // Published values are optional for this paper.
        ("data/papers/extensions.csv", plan),
        ("data/manifest.yaml", plan),
        (TABLE, check),
        (TABLE, &["diff", "report/record", "out/record"]),
        (&provenance, check),
        ("report/record/benchmarks.json", check),
        (other, &["diff", "records", "records"]),
        (other, &["verify", "--from", "records"]),
        ("photo.png", &["fit", "photo.png", "--out", "fitted.png"]),
        ("photo.png", &["reproduce", "--images", "div2k-test=photo.png", "--profile", "smoke"]),
        ("clip.npz", &["fit", "clip.npz", "--out", "fitted.npz"]),
    ] {
        let whole = std::fs::read(scene.at(file)).ok();
        let name = file.rsplit('/').next().unwrap();
        // `posenc-files` refuses devices as it refuses pipes.
        for hostile in [Hostile::Pipe, Hostile::Dangling] {
            scene.replace(file, hostile);
            scene.fails(arguments, &[name]);
        }
        scene.clear(file);
        whole.into_iter().for_each(|bytes| std::fs::write(scene.at(file), bytes).unwrap());
    }
    scene.ok(plan);
    scene.ok(check);
    // The page of speed, and a generated one.
    for file in ["docs/SPEED.md", "report/extensions/mexican-hat.md"] {
        scene.replace(file, Hostile::Pipe);
        assert_ne!(scene.run(check).code, 0, "{file}");
        scene.clear(file);
    }
    scene.ok(&["report"]);
    // A link to data is followed. The name of the temporary file is already taken by a link.
    scene.picture("elsewhere.png", 64);
    symlink(scene.at("elsewhere.png"), scene.at("photo.png")).unwrap();
    symlink(scene.foreign.path().join("file"), scene.at("fitted.png.tmp")).unwrap();
    scene.ok(&["fit", "photo.png", "--out", "fitted.png"]);
    assert!(scene.at("fitted.png").exists());
}

/// Catches runs that read hostile files in `out/` endlessly, block on them, or do not replace them.
#[test]
fn hostile_files_in_the_output_directory_cost_only_themselves() {
    let scene = Scene::recorded();
    let raw = scene.raw("out").remove(0);
    let raw = raw.strip_prefix(scene.path()).unwrap().to_str().unwrap().to_owned();
    for file in [
        "out/timings.json",
        "out/record/extensions/mexican-hat/values.csv",
        "out/report/extensions/mexican-hat.md",
        &raw,
    ] {
        for hostile in [Hostile::Pipe, Hostile::Zeros] {
            scene.replace(file, hostile);
            let run = scene.ok(&SMOKE);
            let runs = if file == raw { "1 of 6 units to run" } else { "0 of 6 units to run" };
            assert!(run.stderr.contains(runs), "{file} {hostile:?}: {}", run.stderr);
            let is_replaced = std::fs::metadata(scene.at(file)).is_ok_and(|found| found.is_file());
            assert!(is_replaced || file.ends_with("timings.json"), "{file} {hostile:?}");
        }
    }
}

/// Catches a lock that truncates its target, blocks on a pipe, or is not reported.
#[test]
fn a_hostile_lock_is_named() {
    let scene = Scene::new();
    for hostile in ALL {
        scene.replace("out/.lock", hostile);
        for share in [&[][..], &["--share", "1/2"]] {
            let needles = ["out/.lock cannot be locked", "a regular file is required", "--out"];
            scene.fails(&[&SMOKE, share].concat(), &needles);
        }
        scene.replace("report/.lock", hostile);
        scene.fails(&["report"], &["report/.lock cannot be locked", "a regular file is required"]);
    }
    scene.clear("out/.lock");
    symlink(scene.foreign.path().join("file"), scene.at("out/.lock")).unwrap();
    scene.fails(&SMOKE, &["out/.lock cannot be locked", "a symbolic link"]);
    // Folders that nobody can write to.
    scene.fails(&["reproduce", "--out", "/proc/posenc"], &["/proc/posenc", "--out"]);
    scene.fails(&["reproduce", "--out", "/dev/null"], &["/dev/null", "--out"]);
}

/// Catches writing, removing and sweeping through links to folders.
#[test]
fn links_below_our_folders_are_not_followed() {
    let scene = Scene::recorded();
    let foreign = scene.foreign.path();
    for (folder, arguments) in [
        ("out/raw", &["reproduce", "--profile", "smoke", "--force"][..]),
        ("out/raw/extensions", &["reproduce", "--profile", "smoke", "--force"]),
        ("out/record", &SMOKE),
        ("out/report", &SMOKE),
        ("out/report/figures", &SMOKE),
        ("report/figures", &["report"]),
        ("report/record/extensions", &["reproduce", "--profile", "smoke", "--force", "--record"]),
    ] {
        let aside = scene.at("aside");
        std::fs::rename(scene.at(folder), &aside).unwrap();
        symlink(foreign, scene.at(folder)).unwrap();
        scene.fails(arguments, &[folder, "leads out of"]);
        scene.clear(folder);
        std::fs::rename(&aside, scene.at(folder)).unwrap();
    }
    // Loops and half-written files in a folder that is swept.
    symlink(foreign, scene.at("out/raw/link")).unwrap();
    symlink(scene.at("out/raw"), scene.at("out/raw/extensions/loop")).unwrap();
    scene.write("out/raw/extensions/.writing-3-4-5f.tmp", "");
    scene.ok(&SMOKE);
    assert!(!scene.at("out/raw/extensions/.writing-3-4-5f.tmp").exists());
    // A link at the path of a file is replaced, not followed.
    scene.clear("out/record/extensions/mexican-hat/values.csv");
    symlink(foreign.join("file"), scene.at("out/record/extensions/mexican-hat/values.csv"))
        .unwrap();
    scene.ok(&SMOKE);
    scene.ok(&["report"]);
}

/// Everything below the given folders, with the content of files and the target of links.
fn listing(folders: &[&Path]) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut paths: Vec<PathBuf> = folders.iter().map(|folder| (*folder).to_owned()).collect();
    while let Some(path) = paths.pop() {
        let kind = std::fs::symlink_metadata(&path).unwrap().file_type();
        let content = match kind {
            kind if kind.is_dir() => {
                paths.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
                Vec::new()
            }
            kind if kind.is_symlink() => {
                std::fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            }
            _ => std::fs::read(&path).unwrap(),
        };
        found.insert(path, content);
    }
    found
}

/// Catches a command that writes or removes anything in a folder that no run made, in the reference or in the repository itself.
#[test]
fn wrong_folders_for_output_are_refused_and_unchanged() {
    let scene = Scene::recorded();
    let (root, foreign) = (scene.path(), scene.foreign.path());
    scene.picture("photo.png", 32);
    symlink(scene.at("report"), scene.at("link")).unwrap();
    symlink(scene.at("experiments"), scene.at("definitions")).unwrap();
    // A copy of the reference, and another repository.
    let copy = tempfile::tempdir().unwrap();
    common::copy(&scene.at("report"), copy.path());
    let other = tempfile::tempdir().unwrap();
    for folder in ["experiments", "data", "report/record"] {
        common::copy(&scene.at(folder), &other.path().join(folder));
    }
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let mut wrong: Vec<String> = [
        "report",
        "report/record/extensions",
        "report/new/folder",
        ".",
        "..",
        "experiments/extensions/..",
        "out/record",
        "out/report/figures",
        "link/new",
        "link/../report",
        "definitions",
        "new/../report",
        "data/manifest.yaml",
    ]
    .map(str::to_owned)
    .into();
    wrong.extend(
        [root, foreign, copy.path(), other.path(), &other.path().join("report/new")].map(path),
    );
    let all = [root, foreign, copy.path(), other.path()];
    let before = listing(&all);
    let check = |arguments: &[&str]| {
        scene.fails(arguments, &["; name a"]);
        assert!(listing(&all) == before, "{arguments:?} changed something");
    };
    for out in &wrong {
        check(&["reproduce", "--profile", "smoke", "--force", "--out", out]);
    }
    // Other commands check a folder with the same function.
    for out in ["report/new/folder", ".", &path(foreign)] {
        check(&["report", "--out", out]);
    }
    for arguments in [
        &["reproduce", "--slurm", "2", "--out", "experiments"][..],
        &["fit", "photo.png", "--out", "link/fitted.png"],
    ] {
        check(arguments);
    }
    // Without the marker, only the default folder may contain anything.
    std::fs::remove_file(scene.at("out/.posenc-out")).unwrap();
    scene.fails(&["reproduce", "--profile", "smoke", "--out", "out"], &["with --out"]);
    scene.ok(&SMOKE);
}

/// Catches a run that removes files that it did not make, or that removes its own without naming them.
#[test]
fn only_files_that_a_run_made_are_removed() {
    let scene = Scene::recorded();
    let name = format!("checkpoints/{}.bin", "0123456789abcdef".repeat(4));
    let others = [
        "record/notes.txt",
        "record/extensions/other.csv",
        "record/extensions/mexican-hat/mine.png",
        "report/notes.md",
        "report/figures/extensions/mine.svg",
        "report/pictures/extensions/mexican-hat/mine.png",
        "raw/.writing-notes.tmp",
        &name,
    ]
    .map(|file| format!("out/{file}"));
    others.iter().for_each(|file| scene.write(file, "mine"));
    let table = "out/record/extensions/mexican-hat/values.csv";
    let plot = "out/report/figures/extensions/mexican-hat-rank.svg";
    assert!(scene.at(table).exists() && scene.at(plot).exists());
    // The only unit fails, so the item has no record any more.
    let failing = with_a_failing_unit();
    let (start, rest) = failing.split_once("      - { id: Gaussian,").unwrap();
    let (_, failing) = rest.split_once("      - { id: RFF,").unwrap();
    let (failing, _) = failing.split_once("  - id: images").unwrap();
    scene.write(DEFINITION, &format!("{start}      - {{ id: RFF,{failing}"));
    let run = scene.run(&SMOKE).ends_with(1);
    for file in [table, "out/record/extensions/mexican-hat/provenance.json", plot] {
        assert!(!scene.at(file).exists(), "{file}");
        run.says(&[&format!("{file}: ")]);
    }
    assert!(others.iter().all(|file| scene.read(file) == "mine"));
}

/// Catches a run that removes or changes records of items that it does not run, such as copies of the reference.
#[test]
fn records_of_other_items_stay() {
    let repository = Repository::new();
    let reference = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../report/record");
    let record = repository.path().join("out/record");
    common::copy(&reference, &record);
    let mut before = listing(&[&record]);
    repository.ok(&["reproduce", "rethinking/fig3", "--profile", "smoke"]);
    let mut after = listing(&[&record]);
    for files in [&mut before, &mut after] {
        files.retain(|file, _| !file.starts_with(record.join("rethinking/fig3")));
    }
    assert!(before.len() > 200 && before == after);
}

/// Catches a command that runs a program which the configuration of the repository names.
#[test]
fn a_hostile_git_configuration_runs_nothing() {
    let scene = Scene::recorded();
    let outside = tempfile::tempdir().unwrap();
    let (script, proof) = (outside.path().join("evil"), outside.path().join("proof"));
    std::fs::create_dir(outside.path().join("hooks")).unwrap();
    for file in [&script, &outside.path().join("hooks/post-index-change")] {
        std::fs::write(file, format!("#!/bin/sh\ntouch {}\nexit 1\n", proof.display())).unwrap();
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    scene.write(".gitattributes", "* filter=evil diff=evil\n*.csv filter=more\n");
    let git = |arguments: &[&str]| common::git(scene.path(), arguments);
    git(&["init", "--quiet"]);
    git(&["add", "experiments", "data", "report", ".gitattributes"]);
    git(&["commit", "--quiet", "--message", "all"]);
    let commit = git(&["rev-parse", "--short=12", "HEAD"]);
    let config = format!(
        "[core]\nrepositoryFormatVersion = 1\nfsmonitor = EVIL\nhooksPath = {}\npager = EVIL\nsshCommand = EVIL\n\
         gitProxy = EVIL\naskPass = EVIL\neditor = EVIL\n[diff]\nexternal = EVIL\n[diff \"evil\"]\ntextconv = EVIL\n\
         command = EVIL\n[filter \"evil\"]\nclean = EVIL\nsmudge = EVIL\nrequired = true\n[filter \"more\"]\nprocess = EVIL\n\
         required = true\n[alias]\nx = !EVIL\n[credential]\nhelper = EVIL\n[extensions]\npartialClone = evil\n\
         [remote \"evil\"]\nurl = ext::EVIL\npromisor = true\n[protocol \"ext\"]\nallow = always\n[gpg]\nprogram = EVIL\n",
        outside.path().join("hooks").display()
    );
    let file = scene.at(".git/config");
    let config = config.replace("EVIL", script.to_str().unwrap());
    std::fs::write(&file, std::fs::read_to_string(&file).unwrap() + &config).unwrap();
    // The same content with other times, so that git would run the filters.
    let touch = |file: &str| {
        std::fs::write(scene.at(file), std::fs::read(scene.at(file)).unwrap()).unwrap();
    };
    let control = |setting: &str, arguments: &[&str]| {
        touch(DEFINITION);
        let mut command = Command::new("git");
        command.arg("-C").arg(scene.path()).args(["-c", setting]).args(arguments);
        command.output().unwrap();
        assert!(std::fs::remove_file(&proof).is_ok(), "{arguments:?} runs nothing here");
    };
    control("core.hooksPath=", &["status"]);
    control("core.fsmonitor=false", &["-c", "core.hooksPath=", "status"]);
    for arguments in [&["reproduce", "--profile", "smoke", "--force", "--record"][..], &["doctor"]]
    {
        touch(DEFINITION);
        scene.ok(arguments);
        assert!(!proof.exists(), "{arguments:?} ran a program");
    }
    let provenance = scene.read("out/record/extensions/mexican-hat/provenance.json");
    assert!(provenance.contains(&format!("\"commit\": \"{commit}\"")), "{provenance}");
}

/// Catches output and data folders that are rejected because they are links.
#[test]
fn users_may_keep_folders_elsewhere() {
    let scene = Scene::new();
    let elsewhere = tempfile::tempdir().unwrap();
    symlink(elsewhere.path(), scene.at("out")).unwrap();
    std::fs::rename(scene.at("data"), scene.at("definitions")).unwrap();
    symlink(scene.at("definitions"), scene.at("data")).unwrap();
    std::fs::rename(scene.at(DEFINITION), scene.at("elsewhere.yaml")).unwrap();
    symlink(scene.at("elsewhere.yaml"), scene.at(DEFINITION)).unwrap();
    scene.ok(&SMOKE);
    assert!(elsewhere.path().join("report/extensions/mexican-hat.md").exists());
    scene.ok(&SMOKE).says(&["0 of 6 units to run"]);
}

/// Catches file names that are not UTF-8 and cause a panic or are treated as records.
#[test]
fn file_names_that_are_not_utf8_are_no_records() {
    let scene = Scene::recorded();
    let name = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
    for folder in ["out/raw/extensions/mexican-hat", "report/record", "report"] {
        std::fs::create_dir_all(scene.at(folder)).unwrap();
        std::fs::write(scene.at(folder).join(name(b"\xff.json")), "{").unwrap();
        std::fs::write(scene.at(folder).join(name(b"mexican\xff.csv")), "{").unwrap();
    }
    scene.ok(&SMOKE);
    scene.ok(&["report", "--check"]);
    scene.ok(&["diff", "report/record", "out/record"]);
    let definition = scene.at("experiments/extensions").join(name(b"\xff\x1b.yaml"));
    std::fs::write(&definition, "paper: [").unwrap();
    scene.fails(&SMOKE, &["experiments/extensions/"]);
    std::fs::remove_file(definition).unwrap();
    let mut command = scene.command(&["reproduce", "--profile", "smoke", "--out"]);
    command.arg(name(b"out\xff"));
    Process::start(command).ended().ends_with(0);
}

/// Catches files whose permissions are wider than the umask says.
#[test]
fn the_umask_decides_who_may_read() {
    let scene = Scene::new();
    scene.run_after("umask 077", &SMOKE).ends_with(0);
    let files = common::contents(&scene.at("out"));
    assert!(files.len() > 10);
    for file in files.into_keys() {
        let mode = std::fs::metadata(&file).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}: {mode:o}", file.display());
    }
}

/// Catches rows that are lost when several runs record at the same time.
#[test]
fn runs_that_record_at_the_same_time_lose_no_row() {
    let methods = ["rank/Gaussian", "rank/RFF", "rank/Gaussian formula", "images/Mexican hat"];
    let scene = Scene::new();
    let outs = ["a", "b", "c", "d"];
    let selectors = methods.map(|method| format!("extensions/mexican-hat/{method}"));
    // All units are computed before, so that the processes record at the same time.
    for (selector, out) in selectors.iter().zip(outs) {
        scene.ok(&["reproduce", selector, "--profile", "smoke", "--out", out]);
    }
    let record = |(selector, out): (&String, &str)| {
        let arguments = ["reproduce", selector, "--profile", "smoke", "--out", out, "--record"];
        Process::start(scene.command(&arguments))
    };
    let started: Vec<_> = selectors.iter().zip(outs).map(record).collect();
    for one in started {
        one.ended().ends_with(0);
    }
    let table = scene.table("report/record");
    for method in methods {
        let (group, method) = method.split_once('/').unwrap();
        let rows = table.matches(&format!(",{group},{method},")).count();
        assert!(rows > 0, "{method} is lost");
    }
    scene.ok(&["report", "--check"]);
}
