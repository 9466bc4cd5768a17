//! `skip` under the real test harness: this binary starts itself with the variables that `cargo xtask test` and `.ci/run` set.

use std::path::Path;
use std::process::{Command, Output};

use posenc_testing::{Need, REQUIRE, SKIPPED, Skip, skip};

/// The environment variable that makes the two tests below skip.
const INNER: &str = "POSENC_TESTING_INNER";

#[test]
fn inner_skips_twice() {
    if std::env::var_os(INNER).is_some() {
        skip(Need::Data, "no folder\nof films");
        skip(Need::Data, "no folder of films");
    }
}

#[test]
fn inner_skips() {
    if std::env::var_os(INNER).is_some() {
        skip(Need::Slurm, "sbatch is not on the PATH");
    }
}

/// Runs the inner tests; also returns what they wrote to the file of [`SKIPPED`].
fn run(name: &str, required: &str, more: &[&str]) -> (Output, String) {
    let file =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    let output = Command::new(std::env::current_exe().unwrap())
        .arg("inner")
        .args(more)
        .env(INNER, "1")
        .env(REQUIRE, required)
        .env(SKIPPED, &file)
        .output()
        .unwrap();
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    // The file does not exist if no test was skipped.
    let _ = std::fs::remove_file(&file);
    (output, text)
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Catches a skip that is lost because the harness discards the output of passing tests, and one that is reported for the wrong test.
#[test]
fn skips_reach_the_file_without_nocapture() {
    for more in [&[][..], &["--test-threads=1"]] {
        let (output, text) = run("reach", "", more);
        assert!(output.status.success(), "{}", printed(&output));
        assert!(!printed(&output).contains("skipped:"), "{}", printed(&output));
        let mut skips: Vec<Skip> = text.lines().map(|line| Skip::parse(line).unwrap()).collect();
        skips.sort_by(|a, b| (&a.test, &a.text).cmp(&(&b.test, &b.text)));
        let seen: Vec<_> = skips.iter().map(|s| (s.test.as_str(), s.need)).collect();
        let twice = ("posenc-testing/skip::inner_skips_twice", Need::Data);
        assert_eq!(seen, [("posenc-testing/skip::inner_skips", Need::Slurm), twice, twice]);
        assert!(skips[0].text.contains("sbatch is not on the PATH; install it with"), "{text}");
    }
}

/// Catches a missing required tool that does not fail the tests.
#[test]
fn a_required_tool_that_is_missing_is_a_failure() {
    let (output, text) = run("required", "slurm,chromium", &[]);
    let told = printed(&output);
    assert!(!output.status.success(), "{told}");
    assert!(told.contains("POSENC_REQUIRE lists `slurm`"), "{told}");
    assert!(told.contains("1 passed; 1 failed"), "{told}");
    assert!(!text.contains("slurm") && text.contains("data is missing"), "{text}");
}

/// Catches a misspelled requirement that is ignored.
#[test]
fn an_unknown_requirement_is_a_failure() {
    let (output, text) = run("unknown", "slrum", &[]);
    let told = printed(&output);
    assert!(!output.status.success() && text.is_empty(), "{told}{text}");
    assert!(
        told.contains("unknown word `slrum`; allowed words, separated by commas: slurm"),
        "{told}"
    );
}
