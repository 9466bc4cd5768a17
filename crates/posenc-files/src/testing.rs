//! Files of a folder, and visible skips: a test whose tool or data is missing calls [`skip`] and returns.
//!
//! The test harness counts such a test as passed and discards what it prints. [`skip`] therefore writes past the harness. The environment
//! variable `POSENC_REQUIRE` lists what must be available, such as `slurm,ffmpeg`: a skip for lack of it is a failure.

use std::fmt::Display;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Files in a folder and below, in order; none if there is no such folder.
#[must_use]
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

/// Requires that a text contains all of `needles`.
///
/// # Panics
/// If it lacks one.
#[track_caller]
pub fn has(text: &str, needles: &[&str]) {
    for needle in needles {
        assert!(text.contains(needle), "no `{needle}` in: {text}");
    }
}

/// Something that a test needs and a machine may lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    Slurm,
    Ffmpeg,
    Vulkan,
    Chromium,
    Data,
    /// The permission to mount a file system.
    Mount,
    Curl,
    /// Cargo and a release build.
    Cargo,
}

/// All needs and how to provide them.
const REMEDIES: [(Need, &str); 8] = [
    (Need::Slurm, "install it with `apt-get install slurm-wlm munge`"),
    (
        Need::Ffmpeg,
        "install it with `apt-get install libavcodec-dev libavformat-dev libavutil-dev libavfilter-dev libavdevice-dev \
         libswresample-dev libswscale-dev pkg-config libclang-dev clang` and run the tests by `cargo xtask test`",
    ),
    (
        Need::Vulkan,
        "install a software adapter with `apt-get install libvulkan1 mesa-vulkan-drivers` and run the tests by \
         `cargo xtask test`",
    ),
    (Need::Chromium, "install it with `apt-get install chromium`"),
    (
        Need::Data,
        "set POSENC_DATA to a directory with the published data; `cargo xtask data list` shows its layout",
    ),
    (Need::Mount, "run the tests as root"),
    (Need::Curl, "install it with `apt-get install curl`"),
    (Need::Cargo, "run the tests with `cargo xtask test`"),
];

impl Need {
    fn word(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

/// Whether `required`, the value of `POSENC_REQUIRE`, lists the need. An unknown word is an error, since it would require nothing.
fn is_required(need: Need, required: &str) -> Result<bool, String> {
    let known = REMEDIES.map(|(need, _)| need.word());
    let mut words = required.split(',').map(str::trim).filter(|word| !word.is_empty());
    match words.clone().find(|word| !known.contains(&(*word).to_owned())) {
        Some(word) => Err(format!(
            "POSENC_REQUIRE: unknown word `{word}`; allowed words, separated by commas: {}",
            known.join(", ")
        )),
        None => Ok(words.any(|word| word == need.word())),
    }
}

/// Reports that the calling test skips some or all of its checks because `need` is missing; `detail` describes what exactly. The test
/// continues after the call, usually with `return`.
///
/// # Panics
///
/// If `POSENC_REQUIRE` lists the need or an unknown word: the test then fails.
#[track_caller]
pub fn skip(need: Need, detail: impl Display) {
    let place = std::panic::Location::caller();
    let remedy = REMEDIES.iter().find(|(known, _)| *known == need).map_or("", |(_, remedy)| remedy);
    let detail = detail.to_string().replace(['\n', '\r'], " ");
    let line = format!("skipped: {place}: {} is missing: {detail}; {remedy}", need.word());
    let required = std::env::var_os("POSENC_REQUIRE").unwrap_or_default();
    match is_required(need, &required.to_string_lossy()) {
        Ok(false) => {}
        Ok(true) => panic!("{line}\nPOSENC_REQUIRE lists it, so a skipped test is a failure"),
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
        assert_eq!(is_required(Need::Data, "slurm, ffmpeg"), Ok(false));
        assert_eq!(is_required(Need::Data, " data, slurm,"), Ok(true));
        let error = is_required(Need::Slurm, "slurm,ffmepg").unwrap_err();
        assert!(error.contains("`ffmepg`") && error.contains("chromium"), "{error}");
    }
}
