//! Chores of the repository: `test`, and `check` for formatting, lints and the report.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use crate::machine::entries;
use crate::process::{SITE_FEATURES, cargo, exit_code, root, runner};
use crate::{gpu, video};

/// `test`: all tests of the workspace in the runner's own profile, so that dependencies are built once. `cargo nextest` runs them if it
/// is installed, else `cargo test`; both get the arguments.
pub fn test(arguments: &[OsString]) -> Result<ExitCode, String> {
    let features = [&SITE_FEATURES, video::features(), gpu::features_for_tests()].concat();
    let run = |mut command: Command| {
        command.status().map_err(|e| format!("cargo cannot be started: {e}"))
    };
    // Tests run the real binary. A run of all targets builds it, in parallel with the tests; a selection may not build it.
    if arguments.first().is_some_and(|argument| argument.to_string_lossy().starts_with('-')) {
        let mut build = cargo();
        build.args(["build", "--release", "--workspace", "--bin", "posenc"]).args(&features);
        let status = run(build)?;
        if !status.success() {
            return Ok(exit_code(status));
        }
    }
    let mut tests = cargo();
    if !has_nextest() {
        tests.args(["test", "--release", "--workspace", "--no-fail-fast"]);
        tests.args(&features).args(arguments).env("RUST_TEST_THREADS", test_threads());
        return Ok(exit_code(run(tests)?));
    }
    tests.args(["nextest", "run", "--cargo-profile", "release", "--workspace", "--no-fail-fast"]);
    tests.args(&features).args(arguments).env("NEXTEST_TEST_THREADS", test_threads());
    // nextest runs no examples of the documentation. Its summary comes last.
    if arguments.is_empty() {
        let mut examples = cargo();
        examples.args(["test", "--release", "--workspace", "--doc"]).args(&features);
        let (examples, tests) = (run(examples)?, run(tests)?);
        return Ok(exit_code(if examples.success() { tests } else { examples }));
    }
    Ok(exit_code(run(tests)?))
}

fn has_nextest() -> bool {
    let mut version = cargo();
    version.args(["nextest", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    version.status().is_ok_and(|status| status.success())
}

/// Number of tests that run at a time: twice the number of cores, since many tests wait for other programs.
fn test_threads() -> OsString {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::env::var_os("RUST_TEST_THREADS").unwrap_or_else(|| (2 * cores).to_string().into())
}

/// The files of the embedders. `cargo fmt` does not find them, because a macro declares their modules.
fn kinds() -> Result<Vec<String>, String> {
    let folder = root().join("crates/posenc-math/src/embedder");
    let mut files = Vec::new();
    for path in entries(&folder) {
        let file = if path.is_dir() { path.join("mod.rs") } else { path };
        files.push(file.display().to_string());
    }
    files.sort();
    if files.is_empty() {
        return Err(format!("{}: no files of embedders", folder.display()));
    }
    Ok(files)
}

/// Prints the number of lines of Rust in each crate, so that growth is seen.
fn count_lines() -> Result<(), String> {
    let crates = root().join("crates");
    let mut folders: Vec<PathBuf> = entries(&crates);
    folders.extend(["fuzz", "xtask"].map(|name| root().join(name)));
    folders.sort();
    let mut all = 0;
    for folder in folders {
        let (mut count, mut open) = (0, vec![folder.clone()]);
        while let Some(path) = open.pop() {
            if path.is_dir() && !path.ends_with("target") {
                open.extend(entries(&path));
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
                count += text.iter().filter(|byte| **byte == b'\n').count();
            }
        }
        println!("{count:>7} {}", folder.strip_prefix(root()).unwrap_or(&folder).display());
        all += count;
    }
    println!("{all:>7} lines of Rust");
    Ok(())
}

/// `check`: formatting, lints and the freshness of the report.
pub fn check() -> Result<ExitCode, String> {
    count_lines()?;
    let clippy = [
        &["clippy", "--release", "--workspace", "--all-targets"][..],
        &SITE_FEATURES,
        video::features(),
        gpu::features_for_tests(),
        &["--", "-D", "warnings"],
    ]
    .concat();
    let kinds = kinds()?;
    let format: Vec<&str> = ["fmt", "--all", "--check", "--"]
        .into_iter()
        .chain(kinds.iter().map(String::as_str))
        .collect();
    let steps: [&[&str]; 2] = [&format, &clippy];
    for step in steps {
        eprintln!("cargo {}", step.join(" "));
        let status =
            cargo().args(step).status().map_err(|e| format!("cargo cannot be started: {e}"))?;
        if !status.success() {
            return Ok(exit_code(status));
        }
    }
    runner(&["report".into(), "--check".into()])
}
