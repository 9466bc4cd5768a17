//! Whether this machine's tables and report are what they would be if they were made again.
//!
//! Making them takes seconds, of which a run that has nothing to do has none to spend. So a run leaves a checksum over all that went in and all
//! that came out, by content: definitions, published values, both records, raw records and failures, data, this program, the commit, the
//! machine; tables, pictures, pages. What changed in any of them, or was removed, is seen.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};
use posenc_experiments::Catalog;
use posenc_experiments::record::table::write_atomically;

use crate::arguments::Reproduce;
use crate::device::Devices;
use crate::machine;
use crate::repository::Repository;
use crate::run::data::DataSets;

/// Name of the checksum's file below the output directory.
const FILE: &str = "report.checksum";

/// What tables and report are made from.
pub struct Fresh<'a> {
    pub repository: &'a Repository,
    pub catalog: &'a Catalog,
    pub data: &'a DataSets,
    pub devices: &'a Devices,
    pub options: &'a Reproduce,
    pub out: &'a Path,
}

impl Fresh<'_> {
    /// Whether nothing has changed since the checksum was kept.
    pub fn is_fresh(&self) -> bool {
        let kept = std::fs::read_to_string(self.out.join(FILE)).unwrap_or_default();
        !kept.is_empty() && self.checksum().is_ok_and(|checksum| checksum == kept)
    }

    /// Keeps the checksum of what is there now. Without one the next run makes all anew.
    pub fn keep(&self) {
        let file = self.out.join(FILE);
        let kept = self.checksum().map(|checksum| write_atomically(&file, checksum.as_bytes()));
        if !matches!(kept, Ok(Ok(()))) {
            let _ = std::fs::remove_file(file);
        }
    }

    fn checksum(&self) -> Result<String> {
        let mut hasher = blake3::Hasher::new();
        let program = std::env::current_exe().context("this program's own file is not known")?;
        add_file(&mut hasher, "program", &program)?;
        for (name, folder) in [
            ("experiments", self.repository.root().join("experiments")),
            ("published", self.repository.root().join("data/papers")),
            ("reference", self.repository.record()),
            ("raw", self.out.join("raw")),
            ("failed", self.out.join("failed")),
            ("record", self.out.join("record")),
            ("report", self.out.join("report")),
        ] {
            add_folder(&mut hasher, name, &folder)?;
        }
        let groups = self.catalog.experiments.iter().flat_map(|e| &e.groups);
        let sets: BTreeSet<&String> = groups
            .filter_map(|g| g.data.as_ref())
            .flat_map(|d| std::iter::once(&d.set).chain(&d.held_out).chain(&d.weights))
            .collect();
        for set in sets {
            add(&mut hasher, set.as_bytes());
            match self.data.files(set)?.as_deref() {
                Some(files) => match &files.found {
                    Ok(found) => {
                        add(&mut hasher, format!("{} {}", found.label, found.sha256).as_bytes())
                    }
                    Err(_) => add(&mut hasher, b"absent"),
                },
                None => {
                    let identity = self.data.identity(set)?;
                    add(&mut hasher, format!("{identity:?}").as_bytes());
                }
            }
        }
        let run = format!(
            "{} {} {} {} {} {}",
            self.repository.commit(),
            machine::processor(),
            machine::cores(),
            self.devices.training(),
            self.options.seed,
            self.options.out.is_none()
        );
        add(&mut hasher, run.as_bytes());
        Ok(hasher.finalize().to_hex().to_string())
    }
}

/// Lengths keep what follows each other apart.
fn add(hasher: &mut blake3::Hasher, bytes: &[u8]) {
    hasher.update(&(bytes.len() as u64).to_le_bytes());
    hasher.update(bytes);
}

fn add_file(hasher: &mut blake3::Hasher, name: &str, file: &Path) -> Result<()> {
    add(hasher, name.as_bytes());
    add(hasher, &std::fs::read(file)?);
    Ok(())
}

/// All files below a folder, by name; a folder that is not there has none.
fn add_folder(hasher: &mut blake3::Hasher, name: &str, folder: &Path) -> Result<()> {
    add(hasher, name.as_bytes());
    let mut entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries.map(|e| e.map(|e| e.path())).collect::<std::io::Result<Vec<_>>>()?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    entries.sort();
    add(hasher, &(entries.len() as u64).to_le_bytes());
    for path in entries {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            add_folder(hasher, &name, &path)?;
        } else {
            add_file(hasher, &name, &path)?;
        }
    }
    Ok(())
}
