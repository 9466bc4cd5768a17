//! Chores of the repository: tests, and the checks that need no tests.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::process::{ExitCode, ExitStatus, Stdio};

use crate::process::{cargo, exit_code, runner};
use crate::{gpu, video};

/// `test`: all tests of the workspace in the runner's own profile, so that dependencies are
/// built once; the last line sums the runs of all crates.
pub fn test(arguments: &[OsString]) -> Result<ExitCode, String> {
    let features = [video::features(), gpu::features_for_tests()].concat();
    // Tests run the real binary.
    let mut build = cargo();
    build.args(["build", "--release", "--workspace", "--bin", "posenc"]).args(&features);
    let status = build.status().map_err(|e| format!("cargo cannot be started: {e}"))?;
    if !status.success() {
        return Ok(exit_code(status));
    }
    let mut sums = [0usize; 3];
    let all: &[&str] = &[&["--workspace", "--no-fail-fast"], &features[..]].concat();
    let status = run_tests(all, arguments, &mut sums)?;
    println!();
    println!("{} passed, {} failed, {} skipped", sums[0], sums[1], sums[2]);
    Ok(exit_code(status))
}

/// Runs `cargo test` on a selection, shows its output and adds its counts to `sums`.
fn run_tests(
    selection: &[&str],
    arguments: &[OsString],
    sums: &mut [usize; 3],
) -> Result<ExitStatus, String> {
    let mut child = cargo()
        .args(["test", "--release"])
        .args(selection)
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| format!("cargo cannot be started: {e}"))?;
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).lines() {
            let line = line.map_err(|e| format!("the tests' output cannot be read: {e}"))?;
            println!("{line}");
            for (sum, count) in sums.iter_mut().zip(counts(&line)) {
                *sum += count;
            }
        }
    }
    child.wait().map_err(|e| format!("cargo cannot be waited for: {e}"))
}

/// Passed, failed and ignored tests of a `test result:` line; zeros for any other line.
fn counts(line: &str) -> [usize; 3] {
    let Some(rest) = line.strip_prefix("test result:") else {
        return [0; 3];
    };
    let count = |name: &str| {
        rest.split([';', '.'])
            .find_map(|part| part.trim().strip_suffix(name)?.trim().parse().ok())
            .unwrap_or(0)
    };
    [count("passed"), count("failed"), count("ignored")]
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
    let steps: [&[&str]; 2] = [&["fmt", "--all", "--check"], &clippy];
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

#[cfg(test)]
mod tests {
    use super::counts;

    /// Catches a change of the summary's wording that would sum up to nothing.
    #[test]
    fn summaries_are_counted() {
        let line = "test result: ok. 12 passed; 1 failed; 3 ignored; 0 measured; 7 filtered out; finished in 0.10s";
        assert_eq!(counts(line), [12, 1, 3]);
        assert_eq!(counts("test a::b ... ok"), [0, 0, 0]);
    }
}
