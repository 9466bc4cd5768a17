//! Visible skips: a test whose tool or data is missing calls [`skip`] and returns.
//!
//! The test harness counts such a test as passed and discards what it prints. [`skip`] therefore also appends its line to
//! the file that [`SKIPPED`] names. `cargo xtask test` sets that variable, reads the file and counts these tests as
//! skipped. [`REQUIRE`] names the tools that must be available: a skip for one of them is a failure.

use std::fmt::Display;
use std::io::Write;

/// The environment variable that names the file for the lines of [`skip`].
pub const SKIPPED: &str = "POSENC_SKIPPED";
/// The environment variable that lists what must be available, such as `slurm,ffmpeg`.
pub const REQUIRE: &str = "POSENC_REQUIRE";

/// Something that a test needs and a machine may lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// Slurm and munge, for the tests of clusters.
    Slurm,
    /// FFmpeg, for the tests that read video files.
    Ffmpeg,
    /// A Vulkan adapter, for the tests of the device engine.
    Vulkan,
    /// Chromium or Chrome, for the tests of the site.
    Chromium,
    /// Real data.
    Data,
    /// The permission to mount a file system, for the tests of full disks.
    Mount,
    /// curl, for the tests of downloads.
    Curl,
    /// Cargo and a release build, for the tests that compile examples of the documentation.
    Cargo,
}

impl Need {
    /// All needs.
    pub const ALL: [Need; 8] = [
        Need::Slurm,
        Need::Ffmpeg,
        Need::Vulkan,
        Need::Chromium,
        Need::Data,
        Need::Mount,
        Need::Curl,
        Need::Cargo,
    ];

    /// Its name in [`REQUIRE`] and in the lines of [`skip`].
    pub fn word(self) -> &'static str {
        self.word_and_remedy().0
    }

    /// How to provide it.
    pub fn remedy(self) -> &'static str {
        self.word_and_remedy().1
    }

    fn word_and_remedy(self) -> (&'static str, &'static str) {
        match self {
            Need::Slurm => ("slurm", "install it with `apt-get install slurm-wlm munge`"),
            Need::Ffmpeg => (
                "ffmpeg",
                "install it with `apt-get install libavcodec-dev libavformat-dev libavutil-dev libavfilter-dev \
                 libavdevice-dev libswresample-dev libswscale-dev pkg-config libclang-dev clang` and run the tests by \
                 `cargo xtask test`",
            ),
            Need::Vulkan => (
                "vulkan",
                "install a software adapter with `apt-get install libvulkan1 mesa-vulkan-drivers` and run the tests by \
                 `cargo xtask test`",
            ),
            Need::Chromium => ("chromium", "install it with `apt-get install chromium`"),
            Need::Data => (
                "data",
                "set POSENC_DATA to a directory with the published data; `cargo xtask data list` shows its layout",
            ),
            Need::Mount => ("mount", "run the tests as root"),
            Need::Curl => ("curl", "install it with `apt-get install curl`"),
            Need::Cargo => ("cargo", "run the tests with `cargo xtask test`"),
        }
    }

    /// The need of that name.
    fn parse(word: &str) -> Option<Need> {
        Need::ALL.into_iter().find(|need| need.word() == word)
    }
}

/// The needs that [`REQUIRE`] lists.
///
/// # Errors
///
/// Returns an error if the variable has an unknown word; the message lists the allowed ones.
pub fn required() -> Result<Vec<Need>, String> {
    let text = std::env::var_os(REQUIRE).unwrap_or_default();
    parse_required(&text.to_string_lossy())
}

fn parse_required(text: &str) -> Result<Vec<Need>, String> {
    let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
    words
        .map(|word| {
            Need::parse(word).ok_or_else(|| {
                let allowed = Need::ALL.map(Need::word).join(", ");
                format!(
                    "{REQUIRE}: unknown word `{word}`; allowed words, separated by commas: {allowed}"
                )
            })
        })
        .collect()
}

/// Reports that the calling test skips some or all of its checks because `need` is missing; `detail` describes what exactly. The test
/// continues after the call, usually with `return`.
///
/// # Panics
///
/// If [`REQUIRE`] lists the need or an unknown word, or if the file of [`SKIPPED`] cannot be written: the test then fails.
#[track_caller]
pub fn skip(need: Need, detail: impl Display) {
    let skip = Skip { test: test_name(), need, text: format!("{detail}; {}", need.remedy()) };
    match required() {
        Ok(required) if required.contains(&need) => {
            panic!("{skip}\n{REQUIRE} lists `{}`, so a skipped test is a failure", need.word())
        }
        Ok(_) => {}
        Err(message) => panic!("{message}"),
    }
    eprintln!("{skip}");
    if let Some(path) = std::env::var_os(SKIPPED) {
        // A single write, so that lines of concurrent tests do not mix.
        let written = std::fs::File::options()
            .append(true)
            .create(true)
            .open(&path)
            .and_then(|mut file| file.write_all(format!("{skip}\n").as_bytes()));
        if let Err(error) = written {
            panic!("{SKIPPED}: {} cannot be written: {error}", path.display());
        }
    }
}

/// One line of [`skip`]: `skipped: TEST: WORD is missing: TEXT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skip {
    /// The test with its package and binary, such as `posenc/it::slurm::a_node_dies`.
    pub test: String,
    /// What is missing.
    pub need: Need,
    /// What exactly, and how to get it.
    pub text: String,
}

impl Display for Skip {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = self.text.replace(['\n', '\r'], " ");
        write!(f, "skipped: {}: {} is missing: {text}", self.test, self.need.word())
    }
}

impl Skip {
    /// Reads a line; `None` if it is not one of [`skip`].
    pub fn parse(line: &str) -> Option<Skip> {
        let (test, rest) = line.strip_prefix("skipped: ")?.split_once(": ")?;
        let (word, text) = rest.split_once(" is missing: ")?;
        Some(Skip { test: test.to_owned(), need: Need::parse(word)?, text: text.to_owned() })
    }
}

/// Package, binary and name of the running test. The harness names the thread of a test after it; on other threads, the caller's location
/// replaces the name.
#[track_caller]
fn test_name() -> String {
    let place = std::panic::Location::caller();
    let executable = std::env::current_exe().unwrap_or_default();
    let stem = executable.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    // Cargo adds a hash.
    let binary = stem.rsplit_once('-').map_or(&*stem, |(name, _)| name);
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
    let binary = match binary {
        // Unit tests of a library.
        _ if package.replace('-', "_") == binary => package,
        _ if package.is_empty() => binary.to_owned(),
        _ => format!("{package}/{binary}"),
    };
    match std::thread::current().name() {
        Some(name) if name != "main" => format!("{binary}::{name}"),
        _ => format!("{binary}::{}:{}", place.file(), place.line()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches skips that are not parsed as they were written, and other output that is parsed as a skip.
    #[test]
    fn lines_are_read_as_they_are_written() {
        for need in Need::ALL {
            let test = "posenc-book/browser::tables::sort".to_owned();
            let skip = Skip { test, need, text: "none: is missing: here".to_owned() };
            assert_eq!(Skip::parse(&skip.to_string()), Some(skip));
        }
        let lines = Skip { test: "a".into(), need: Need::Data, text: "one\ntwo".into() };
        assert_eq!(lines.to_string().lines().count(), 1);
        for other in ["skipped", "skipped: a: b", "skipped: a: coffee is missing: none", ""] {
            assert_eq!(Skip::parse(other), None, "{other}");
        }
    }

    /// Catches a misspelled word that is ignored.
    #[test]
    fn unknown_words_are_errors() {
        assert_eq!(parse_required(""), Ok(vec![]));
        assert_eq!(parse_required(" slurm, data,"), Ok(vec![Need::Slurm, Need::Data]));
        let error = parse_required("slurm,ffmepg").unwrap_err();
        assert!(
            error.contains("POSENC_REQUIRE: unknown word `ffmepg`") && error.contains("chromium"),
            "{error}"
        );
    }
}
