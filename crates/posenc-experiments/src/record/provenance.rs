//! Where a record comes from: `report/record/<paper>/<item>.provenance.json`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::table::write_atomically;
use crate::yaml::FileError;

/// Where an item's record comes from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// Command that made the record.
    pub command: String,
    /// Git commit, with `-dirty` where the tree had changes; empty outside a repository.
    pub commit: String,
    /// Versions of the compiler and of the packages that numbers depend on.
    pub versions: BTreeMap<String, String>,
    /// Processor.
    pub machine: String,
    /// Cores the run was allowed to use.
    pub cores: usize,
    /// Seed of the run.
    pub seed: u64,
    /// Data sets used: label to sha256.
    pub data: BTreeMap<String, String>,
    /// Number of units.
    pub units: usize,
    /// Sum of the units' wall times, in seconds.
    pub seconds: f64,
    /// The largest of the units' peak memories, in bytes; absent where the system does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_memory: Option<u64>,
}

impl Provenance {
    /// Reads the file; a record without one gets an empty provenance.
    pub fn read(file: &Path) -> Result<Self, FileError> {
        let problem = |message: String| FileError {
            file: file.to_owned(),
            line: None,
            key: String::new(),
            message,
        };
        if !file.exists() {
            return Ok(Provenance::default());
        }
        let text =
            std::fs::read_to_string(file).map_err(|e| problem(format!("cannot be read: {e}")))?;
        serde_json::from_str(&text).map_err(|e| FileError {
            line: Some(e.line()),
            ..problem(format!("damaged: {e}; restore the file (git checkout) or delete it"))
        })
    }

    /// Writes the file.
    pub fn write(&self, file: &Path) -> Result<(), FileError> {
        let text = serde_json::to_string_pretty(self).unwrap_or_default() + "\n";
        write_atomically(file, text.as_bytes()).map_err(|e| FileError {
            file: file.to_owned(),
            line: None,
            key: String::new(),
            message: format!("cannot be written: {e}"),
        })
    }
}
