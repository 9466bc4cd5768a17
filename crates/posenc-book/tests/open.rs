//! `book --open` with programs in place of a browser.
#![cfg(unix)]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// A folder name that a shell would split and run.
const FOLDER: &str = "a & b; $(touch ran) 'c' \"d\" #%20";

/// Creates a program that writes its arguments, one per line, to a file next to it.
fn program(folder: &Path, name: &str) -> PathBuf {
    let file = folder.join(name);
    let script =
        "#!/bin/sh\nprintf '%s\\n' \"$@\" > \"$0.part\"\nmv \"$0.part\" \"$0.arguments\"\n";
    std::fs::write(&file, script).expect("a file");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).expect("permissions");
    file
}

/// Creates a repository without experiments, whose site is built quickly.
fn repository(root: &Path) {
    for folder in ["experiments", "data"] {
        std::fs::create_dir_all(root.join(folder)).expect("a folder");
    }
}

/// The arguments of a program. It runs on its own, so this waits until it has written them.
fn arguments(program: &Path) -> String {
    let file = PathBuf::from(format!("{}.arguments", program.display()));
    let started = Instant::now();
    while !file.exists() {
        assert!(
            started.elapsed() < Duration::from_secs(180),
            "{} was not started",
            program.display()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    std::fs::read_to_string(file).expect("arguments")
}

/// Catches a page that is not opened, and a path that passes through a shell on its way to the browser.
#[test]
fn the_browser_gets_the_path_of_the_first_page() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path();
    repository(root);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::iter::once(root.to_owned()).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(path).expect("a path");
    let chosen = program(root, "chosen-browser");
    let system = program(root, "xdg-open");
    let mut page = None;
    for (variable, program) in [(Some(&chosen), &chosen), (None, &system)] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_posenc-book"));
        command
            .args(["--root", ".", "--out", FOLDER, "--open"])
            .current_dir(root)
            .env("PATH", &path);
        match variable {
            Some(browser) => command.env("BROWSER", browser),
            None => command.env_remove("BROWSER"),
        };
        let output = command.output().expect("posenc-book starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let opened = arguments(program);
        let expected = std::path::absolute(root.join(FOLDER).join("index.html")).expect("a path");
        // The current directory may be known under another name.
        assert!(Path::new(opened.trim_end_matches('\n')).is_absolute(), "{opened}");
        let opened = std::fs::canonicalize(opened.trim_end_matches('\n')).expect("the page");
        assert_eq!(opened, std::fs::canonicalize(expected).expect("the page"));
        page = Some(opened);
    }
    assert!(page.is_some_and(|page| page.is_file()));
    assert!(!root.join("ran").exists(), "the path was run as a command");
}

/// Catches a failure to open the browser that is not reported.
#[test]
fn a_missing_browser_is_reported() {
    let directory = tempfile::tempdir().expect("a directory");
    repository(directory.path());
    let output = Command::new(env!("CARGO_BIN_EXE_posenc-book"))
        .args(["--root", ".", "--out", "book", "--open"])
        .current_dir(directory.path())
        .env("BROWSER", "/no/such/browser")
        .output()
        .expect("posenc-book starts");
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("index.html cannot be opened") && error.contains("BROWSER"), "{error}");
    assert!(directory.path().join("book/index.html").is_file(), "the site is there all the same");
}
