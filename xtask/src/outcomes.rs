//! Parses the output of the tests and summarizes it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

use posenc_testing::{Need, Skip};

/// The file to which skipped tests append their lines; removed at the end.
pub struct Skips(PathBuf);

impl Skips {
    /// Creates an empty file.
    pub fn in_folder(folder: &Path) -> Result<Self, String> {
        let file = folder.join(format!("skipped-{}.txt", std::process::id()));
        std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(&file, ""))
            .map_err(|e| format!("{} cannot be written: {e}", file.display()))?;
        Ok(Skips(file))
    }

    pub fn file(&self) -> &Path {
        &self.0
    }

    pub fn read(&self) -> Result<Vec<Skip>, String> {
        let text = std::fs::read_to_string(&self.0)
            .map_err(|e| format!("{} cannot be read: {e}", self.0.display()))?;
        let parse = |line| {
            Skip::parse(line).ok_or_else(|| format!("`{line}` is not a line of a skipped test"))
        };
        text.lines().map(parse).collect()
    }
}

impl Drop for Skips {
    fn drop(&mut self) {
        // A remaining file is harmless.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Counts of all test binaries.
#[derive(Debug, Default)]
pub struct Outcomes {
    passed: usize,
    failed: usize,
    ignored: usize,
    filtered: usize,
    /// Names of tests that failed, without their binaries.
    failures: BTreeSet<String>,
    /// Number of binaries that reported.
    results: usize,
}

impl Outcomes {
    pub fn take(&mut self, line: &str) {
        if let Some(name) = line.strip_prefix("test ").and_then(|l| l.strip_suffix(" ... FAILED")) {
            self.failures.insert(name.to_owned());
        }
        let Some(rest) = line.strip_prefix("test result:") else { return };
        let count = |name: &str| -> usize {
            rest.split([';', '.'])
                .find_map(|part| part.trim().strip_suffix(name)?.trim().parse().ok())
                .unwrap_or(0)
        };
        self.results += 1;
        self.passed += count("passed");
        self.failed += count("failed");
        self.ignored += count("ignored");
        self.filtered += count("filtered out");
    }

    /// Whether any binary reported its results.
    pub fn has_results(&self) -> bool {
        self.results > 0
    }

    /// Whether there are tests, and a filter left out all of them.
    pub fn none_matched(&self) -> bool {
        self.filtered > 0 && self.passed + self.failed + self.ignored == 0
    }

    /// Skipped tests grouped by the missing requirement, and the line of counts. libtest counts a skipped test as passed.
    pub fn summary(&self, skips: Vec<Skip>) -> String {
        let failed = |skip: &Skip| {
            skip.test.split_once("::").is_some_and(|(_, name)| self.failures.contains(name))
        };
        // A test may lack two things, or one twice; it counts once, under the first.
        let mut seen = BTreeSet::new();
        let mut by_need: BTreeMap<Need, Vec<Skip>> = BTreeMap::new();
        for skip in skips {
            if !failed(&skip) && seen.insert(skip.test.clone()) {
                by_need.entry(skip.need).or_default().push(skip);
            }
        }
        let mut text = String::new();
        for (need, skips) in &by_need {
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "{} skipped, {} is missing: {}",
                skips.len(),
                need.word(),
                need.remedy()
            );
            for skip in skips {
                // The line above says how to get it.
                let line = skip.to_string();
                let remedy = format!("; {}", need.remedy());
                let _ = writeln!(text, "  {}", line.strip_suffix(&remedy).unwrap_or(&line));
            }
        }
        if self.ignored > 0 {
            let _ = writeln!(text, "{} skipped by the attribute #[ignore]", self.ignored);
        }
        let skipped = seen.len();
        let passed = self.passed.saturating_sub(skipped);
        let _ = writeln!(
            text,
            "{passed} passed, {} failed, {} skipped",
            self.failed,
            skipped + self.ignored
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(lines: &[&str]) -> Outcomes {
        let mut outcomes = Outcomes::default();
        lines.iter().for_each(|line| outcomes.take(line));
        outcomes
    }

    /// Catches a changed wording of libtest's summary, which would count nothing.
    #[test]
    fn results_are_summed() {
        let sum = outcomes(&[
            "test a::b ... ok",
            "test result: ok. 12 passed; 1 failed; 3 ignored; 0 measured; 7 filtered out; finished in 0.10s",
            "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 12.34s",
        ]);
        let expected = "3 skipped by the attribute #[ignore]\n14 passed, 1 failed, 3 skipped\n";
        assert_eq!(sum.summary(vec![]), expected);
    }

    /// Catches a skipped test that counts as passed, twice, or next to its own failure.
    #[test]
    fn skipped_tests_count_once_and_not_as_passed() {
        let sum = outcomes(&[
            "test slurm::a ... ok",
            "test slurm::b ... FAILED",
            "test result: FAILED. 9 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1s",
        ]);
        let skip = |test: &str, need| Skip { test: test.to_owned(), need, text: "none".to_owned() };
        let skips = vec![
            skip("posenc/it::slurm::a", Need::Slurm),
            skip("posenc/it::slurm::a", Need::Data),
            skip("posenc/it::slurm::b", Need::Slurm),
            Skip {
                text: format!("none; {}", Need::Ffmpeg.remedy()),
                ..skip("posenc-data/it::videos", Need::Ffmpeg)
            },
        ];
        let text = sum.summary(skips);
        assert!(text.contains("1 skipped, slurm is missing: install it with"), "{text}");
        assert!(
            text.contains("  skipped: posenc-data/it::videos: ffmpeg is missing: none\n"),
            "{text}"
        );
        assert_eq!(text.lines().last(), Some("7 passed, 1 failed, 2 skipped"), "{text}");
    }

    /// Catches a filter without a match that counts as success, and a crate without tests that counts as a wrong filter.
    #[test]
    fn a_filter_without_a_match_is_recognized() {
        let result = |passed: u32, filtered: u32| {
            format!(
                "test result: ok. {passed} passed; 0 failed; 0 ignored; 0 measured; {filtered} filtered out; finished in 0s"
            )
        };
        assert!(outcomes(&[&result(0, 5), &result(0, 2)]).none_matched());
        assert!(!outcomes(&[&result(0, 5), &result(1, 2)]).none_matched());
        assert!(!outcomes(&[&result(0, 0)]).none_matched());
        assert!(!outcomes(&["a::b: test"]).none_matched());
    }
}
