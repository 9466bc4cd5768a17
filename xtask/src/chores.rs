//! Chores of the repository: `test`, and `check` for formatting, lints and the report.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::process::{ExitCode, ExitStatus, Stdio};

use posenc_testing::SKIPPED;

use crate::outcomes::{Outcomes, Skips};
use crate::process::{cargo, exit_code, root, runner, target_directory};
use crate::{filters, gpu, video};

/// `test`: all tests of the workspace in the runner's own profile, so that dependencies are built once. The last line sums the
/// results of all crates; the lines above it list the skipped tests by what is missing.
pub fn test(arguments: &[OsString]) -> Result<ExitCode, String> {
    // Reports a misspelled requirement now, not at the first skipped test.
    posenc_testing::required()?;
    let features = [video::features(), gpu::features_for_tests()].concat();
    // Tests run the real binary. A run of all targets builds it, in parallel with the tests; a selection may not build it.
    if arguments.first().is_some_and(|argument| argument.to_string_lossy().starts_with('-')) {
        let mut build = cargo();
        build.args(["build", "--release", "--workspace", "--bin", "posenc"]).args(&features);
        let status = build.status().map_err(|e| format!("cargo cannot be started: {e}"))?;
        if !status.success() {
            return Ok(exit_code(status));
        }
    }
    let all = [&["--workspace", "--no-fail-fast"], &features[..]].concat();
    let skips = Skips::in_folder(&root().join(target_directory()))?;
    let mut outcomes = Outcomes::default();
    let status = run_tests(&all, arguments, &skips, &mut outcomes)?;
    if status.success() && outcomes.none_matched() {
        return Err(filters::no_match(arguments, &names(&all)));
    }
    // `--list` and `--no-run` have no results to sum.
    if !status.success() || outcomes.has_results() {
        println!();
        print!("{}", outcomes.summary(skips.read()?));
    }
    Ok(exit_code(status))
}

/// Runs `cargo test` on a selection, shows its output and counts the outcomes.
fn run_tests(
    selection: &[&str],
    arguments: &[OsString],
    skips: &Skips,
    outcomes: &mut Outcomes,
) -> Result<ExitStatus, String> {
    let mut child = cargo()
        .args(["test", "--release"])
        .args(selection)
        .args(arguments)
        .env(SKIPPED, skips.file())
        .env("RUST_TEST_THREADS", test_threads())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| format!("cargo cannot be started: {e}"))?;
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).lines() {
            let line = line.map_err(|e| format!("the tests' output cannot be read: {e}"))?;
            println!("{line}");
            outcomes.take(&line);
        }
    }
    child.wait().map_err(|e| format!("waiting for cargo failed: {e}"))
}

/// Number of tests that run at a time: twice the number of cores, since many tests wait for other programs.
fn test_threads() -> OsString {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::env::var_os("RUST_TEST_THREADS").unwrap_or_else(|| (2 * cores).to_string().into())
}

/// The names of all tests except doc tests; empty if cargo fails.
fn names(selection: &[&str]) -> Vec<String> {
    let output = cargo()
        .args(["test", "--release", "--quiet", "--tests"])
        .args(selection)
        .args(["--", "--list"])
        .stderr(Stdio::null())
        .output();
    let text = output.map_or_else(|_| Vec::new(), |output| output.stdout);
    let text = String::from_utf8_lossy(&text);
    text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect()
}

/// The files of the embedders. `cargo fmt` does not find them, because a macro declares their modules.
fn kinds() -> Result<Vec<String>, String> {
    let folder = root().join("crates/posenc-math/src/embedder");
    let unreadable = |error| format!("{}: {error}", folder.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let file = if path.is_dir() { path.join("mod.rs") } else { path };
        files.push(file.display().to_string());
    }
    files.sort();
    Ok(files)
}

/// `check`: formatting, lints and the freshness of the report.
pub fn check() -> Result<ExitCode, String> {
    let clippy = [
        &["clippy", "--release", "--workspace", "--all-targets"][..],
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
