//! Directories of records to compare.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use posenc_experiments::record::{ItemRecord, Provenance, Table, item};
use posenc_experiments::schema::is_key;
use posenc_files::is_there;

pub struct Source {
    pub name: String,
    directory: PathBuf,
}

impl Source {
    /// Opens a directory that contains `<paper>/<item>/units.csv` or `record/<paper>/<item>/units.csv`. Fails if it has no records.
    pub fn open(name: &str) -> Result<Self> {
        let given = Path::new(name);
        for directory in [given.to_owned(), given.join("record")] {
            let source = Source { name: name.to_owned(), directory };
            if !source.items()?.is_empty() {
                return Ok(source);
            }
        }
        bail!(
            "{name} has no records; a directory of records holds <paper>/<item>/units.csv, such as report/record or out/record, or \
             ../before/report/record after `git worktree add ../before REVISION`"
        )
    }

    /// Paper and item of every record, sorted.
    pub fn items(&self) -> Result<Vec<(String, String)>> {
        let mut items = Vec::new();
        for paper in keys_in(&self.directory)? {
            let folder = self.directory.join(&paper);
            for item in keys_in(&folder)? {
                if is_there(&folder.join(&item).join(item::FILES[0])) {
                    items.push((paper.clone(), item));
                }
            }
        }
        items.sort();
        Ok(items)
    }

    /// The record of an item with its provenance; `None` if the source has no such record. Fails on a damaged file and on a table
    /// that does not match its provenance.
    pub fn read(&self, paper: &str, item: &str) -> Result<Option<(Table, Provenance)>> {
        let record = ItemRecord::read_tables(&item::folder(&self.directory, paper, item));
        record.with_context(|| format!("record of {}", self.name))
    }
}

/// Names in a folder that a paper or an item can have; none if there is no such folder.
fn keys_in(folder: &Path) -> Result<Vec<String>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let entries = posenc_files::entries(folder)
        .with_context(|| format!("{} cannot be listed", folder.display()))?;
    let names = entries.into_iter().filter_map(|entry| entry.name.into_string().ok());
    Ok(names.filter(|name| is_key(name)).collect())
}
