//! Visible skips: a test whose tool or data is missing calls [`skip`] and returns.
//!
//! The test harness counts such a test as passed and discards what it prints. [`skip`] therefore writes past the harness, so that the
//! output of `cargo test` contains its line. [`REQUIRE`] names the tools that must be available: a skip for one of them is a failure.

use std::fmt::Display;
use std::io::Write;

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
    const ALL: [Need; 8] = [
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
    fn word(self) -> &'static str {
        self.word_and_remedy().0
    }

    /// How to provide it.
    fn remedy(self) -> &'static str {
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
    fn parse(word: &str) -> Result<Need, String> {
        Need::ALL.into_iter().find(|need| need.word() == word).ok_or_else(|| {
            let allowed = Need::ALL.map(Need::word).join(", ");
            format!(
                "{REQUIRE}: unknown word `{word}`; allowed words, separated by commas: {allowed}"
            )
        })
    }
}

/// Whether `required`, the value of [`REQUIRE`], lists the need. An unknown word is an error, since it would require nothing.
fn is_required(need: Need, required: &str) -> Result<bool, String> {
    let words = required.split(',').map(str::trim).filter(|word| !word.is_empty());
    words.map(Need::parse).try_fold(false, |any, word| Ok(word? == need || any))
}

/// Reports that the calling test skips some or all of its checks because `need` is missing; `detail` describes what exactly. The test
/// continues after the call, usually with `return`.
///
/// # Panics
///
/// If [`REQUIRE`] lists the need or an unknown word: the test then fails.
#[track_caller]
pub fn skip(need: Need, detail: impl Display) {
    let place = std::panic::Location::caller();
    // The harness names the thread of a test after it.
    let thread = std::thread::current();
    let test = match thread.name() {
        Some(name) if name != "main" => name.to_owned(),
        _ => format!("{}:{}", place.file(), place.line()),
    };
    let detail = detail.to_string().replace(['\n', '\r'], " ");
    let line = format!("skipped: {test}: {} is missing: {detail}; {}", need.word(), need.remedy());
    let required = std::env::var_os(REQUIRE).unwrap_or_default();
    match is_required(need, &required.to_string_lossy()) {
        Ok(false) => {}
        Ok(true) => panic!("{line}\n{REQUIRE} lists it, so a skipped test is a failure"),
        Err(message) => panic!("{message}"),
    }
    // A macro would write to the harness. Without standard error, nobody reads it.
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a required tool whose absence does not fail the tests, and a misspelled word that is ignored.
    #[test]
    fn required_tools_and_unknown_words_are_failures() {
        for need in Need::ALL {
            assert_eq!(is_required(need, ""), Ok(false));
            assert_eq!(is_required(need, &format!(" {},", need.word())), Ok(true));
        }
        assert_eq!(is_required(Need::Data, "slurm, ffmpeg"), Ok(false));
        let error = is_required(Need::Slurm, "slurm,ffmepg").unwrap_err();
        assert!(
            error.contains("POSENC_REQUIRE: unknown word `ffmepg`") && error.contains("chromium"),
            "{error}"
        );
    }
}
