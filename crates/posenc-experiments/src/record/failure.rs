//! Units that failed: `out/failed/<paper>/<item>/<unit>-<key>.json`, one per unit, and the list that the local report shows,
//! `out/record/<paper>/<item>/failures.json`.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::table::write_atomically;
use super::unit::{self, KeyParts, UnitRecord};
use crate::text::{MAX_RECORD_BYTES, parsed, read_record, read_text, write_json};
use crate::yaml::FileError;

/// A unit that failed, as the report shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    pub group: String,
    pub method: String,
    /// Signal; `-` without data.
    pub signal: String,
    /// Repetition, from 0.
    pub seed: u64,
    pub reason: String,
    pub seconds: f64,
}

/// A failure as stored on disk, one file per unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnitFailure {
    /// What the unit's result would have depended on.
    pub parts: KeyParts,
    pub failure: Failure,
}

impl UnitFailure {
    /// Reads a failure and verifies its checksum.
    pub fn read(file: &Path) -> Result<Self, FileError> {
        unit::parse_sealed(file, &read_text(file, MAX_RECORD_BYTES)?)
    }

    /// Writes it atomically, under the name that the unit's record would have.
    pub fn write(&self, folder: &Path) -> std::io::Result<()> {
        let bytes = unit::sealed(self).map_err(std::io::Error::other)?;
        write_atomically(&folder.join(UnitRecord::file_name(&self.parts)), &bytes)
    }
}

/// The list of an item's failures in its folder.
pub const FILE: &str = "failures.json";

/// The failures of an item; none if there is no file.
///
/// # Errors
///
/// A damaged file.
pub fn read_failures(folder: &Path) -> Result<Vec<Failure>, FileError> {
    let file = folder.join(FILE);
    let Some(text) = read_record(&file)? else { return Ok(Vec::new()) };
    parsed(&file, &text, "reproduce writes it anew")
}

/// Writes the failures of an item; without failures, removes the list.
pub fn write_failures(folder: &Path, failures: &[Failure]) -> Result<(), FileError> {
    let file = folder.join(FILE);
    if failures.is_empty() {
        posenc_files::remove(&file).map(drop).map_err(|e| FileError::unwritable(&file, e))
    } else {
        write_json(&file, failures).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure() -> UnitFailure {
        let failure = Failure {
            group: "g".into(),
            method: "m".into(),
            signal: "-".into(),
            seed: 0,
            reason: "took longer than 10 min".into(),
            seconds: 600.25,
        };
        UnitFailure { parts: KeyParts::example(), failure }
    }

    /// Catches a failure that does not read back equal, and a truncated or edited one that is accepted.
    #[test]
    fn failures_read_back_or_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        failure().write(directory.path()).unwrap();
        let file = directory.path().join(UnitRecord::file_name(&failure().parts));
        assert_eq!(UnitFailure::read(&file).unwrap(), failure());
        let whole = std::fs::read(&file).unwrap();
        for position in 0..whole.len() {
            std::fs::write(&file, &whole[..position]).unwrap();
            assert!(UnitFailure::read(&file).is_err(), "{position} bytes");
            let mut edited = whole.clone();
            edited[position] ^= 1;
            std::fs::write(&file, edited).unwrap();
            assert!(UnitFailure::read(&file).is_err(), "byte {position}");
        }
    }

    /// Catches a list that remains after its units have run, and a damaged one that reads as empty.
    #[test]
    fn the_list_of_an_item_is_written_and_removed() {
        let directory = tempfile::tempdir().unwrap();
        let read = || read_failures(directory.path());
        assert_eq!(read().unwrap(), Vec::new());
        let all = [failure().failure];
        write_failures(directory.path(), &all).unwrap();
        assert_eq!(read().unwrap(), all);
        std::fs::write(directory.path().join(FILE), "[{").unwrap();
        assert!(read().is_err());
        write_failures(directory.path(), &[]).unwrap();
        assert_eq!(read().unwrap(), Vec::new());
    }
}
