//! Raw records on disk: `<out>/raw/<paper>/<item>/<unit>-<key>.json`.

use std::path::{Path, PathBuf};

use anyhow::Result;
use posenc_experiments::record::{KeyParts, UnitRecord};

/// The raw records of a directory.
#[derive(Debug, Clone)]
pub struct Store {
    directory: PathBuf,
    checkpoints: PathBuf,
}

/// What the store has for a unit.
#[derive(Debug)]
pub enum Found {
    /// A record of exactly this key.
    Record(Box<UnitRecord>),
    /// Records of the same unit under other keys: the parts that differ from the nearest.
    Stale(Vec<&'static str>),
    /// A record of this key that cannot be used, and why.
    Damaged(String),
    /// Nothing.
    Nothing,
}

impl Store {
    /// The store below `out`.
    pub fn new(out: &Path) -> Self {
        Store { directory: out.join("raw"), checkpoints: out.join("checkpoints") }
    }

    /// Where jobs in flight keep what they have reached.
    pub fn checkpoints(&self) -> &Path {
        &self.checkpoints
    }

    fn folder(&self, paper: &str, item: &str) -> PathBuf {
        self.directory.join(paper).join(item)
    }

    /// Where a unit's record lies.
    pub fn file(&self, paper: &str, item: &str, parts: &KeyParts) -> PathBuf {
        self.folder(paper, item).join(UnitRecord::file_name(parts))
    }

    /// Whether a usable record of exactly this key exists. A file is read to find out: a
    /// damaged record must be run again, not skipped.
    pub fn find(&self, paper: &str, item: &str, parts: &KeyParts) -> Found {
        let file = self.file(paper, item, parts);
        if !file.exists() {
            return Found::Nothing;
        }
        match UnitRecord::read(&file) {
            Ok(record) if record.parts == *parts => Found::Record(Box::new(record)),
            Ok(_) => Found::Damaged(format!("{}: belongs to another unit", file.display())),
            Err(error) => Found::Damaged(error.to_string()),
        }
    }

    /// As [`Store::find`], and for units without a record says what changed since the nearest
    /// older one. Slower: it lists the folder.
    pub fn explain(&self, paper: &str, item: &str, parts: &KeyParts) -> Found {
        let found = self.find(paper, item, parts);
        if !matches!(found, Found::Nothing) {
            return found;
        }
        let name = UnitRecord::file_name(parts);
        // The file name is <unit>-<16 digits>.json.
        let prefix = &name[..name.len() - "0123456789abcdef.json".len()];
        let Ok(entries) = std::fs::read_dir(self.folder(paper, item)) else {
            return Found::Nothing;
        };
        let mut nearest: Option<Vec<&'static str>> = None;
        for entry in entries.flatten() {
            let other = entry.file_name().to_string_lossy().into_owned();
            if other.len() != name.len() || !other.starts_with(prefix) {
                continue;
            }
            let Ok(record) = UnitRecord::read(&entry.path()) else {
                continue;
            };
            if record.parts.identity != parts.identity {
                continue;
            }
            let differences = parts.differences(&record.parts);
            if nearest.as_ref().is_none_or(|n| differences.len() < n.len()) {
                nearest = Some(differences);
            }
        }
        nearest.map_or(Found::Nothing, Found::Stale)
    }

    /// Writes a record whole or not at all.
    pub fn write(&self, paper: &str, item: &str, record: &UnitRecord) -> Result<()> {
        Ok(record.write(&self.file(paper, item, &record.parts))?)
    }

    /// Removes what a killed process left half written.
    pub fn sweep(&self) {
        let mut folders = vec![self.directory.clone(), self.checkpoints.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                let name = entry.file_name().to_string_lossy().into_owned();
                if path.is_dir() {
                    folders.push(path);
                } else if name.starts_with(".writing-") && name.ends_with(".tmp") {
                    let _ = std::fs::remove_file(path);
                }
            }
        }
    }
}
