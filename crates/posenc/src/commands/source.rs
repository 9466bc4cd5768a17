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
        let files = tables_of_papers(&self.directory)?;
        let mut items: Vec<_> = files.iter().filter_map(|file| item_of(file)).collect();
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

/// `<paper>/<item>/units.csv` for all items of the papers in a directory of records.
fn tables_of_papers(directory: &Path) -> Result<Vec<String>> {
    let entries = |folder: &Path| -> Result<Vec<String>> {
        let entries = posenc_files::entries(folder)
            .with_context(|| format!("{} cannot be listed", folder.display()))?;
        Ok(entries.into_iter().filter_map(|entry| entry.name.into_string().ok()).collect())
    };
    let mut tables = Vec::new();
    if directory.is_dir() {
        for paper in entries(directory)?.into_iter().filter(|name| is_key(name)) {
            let folder = directory.join(&paper);
            if folder.is_dir() {
                let items = entries(&folder)?.into_iter();
                let own = items.map(|item| format!("{paper}/{item}/{}", item::FILES[0]));
                tables.extend(own.filter(|table| is_there(&directory.join(table))));
            }
        }
    }
    Ok(tables)
}

/// Paper and item of `<paper>/<item>/units.csv`. Rejects other names.
fn item_of(path: &str) -> Option<(String, String)> {
    let (paper, file) = path.split_once('/')?;
    let item = file.strip_suffix(item::FILES[0])?.strip_suffix('/')?;
    (is_key(paper) && is_key(item)).then(|| (paper.to_owned(), item.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches other files next to the records, such as pictures, and names that lead out of the folder, that are treated as items.
    #[test]
    fn items_have_a_table_of_units_in_a_folder_of_their_paper() {
        assert_eq!(item_of("lff/fig1/units.csv"), Some(("lff".to_owned(), "fig1".to_owned())));
        for other in [
            "lff/fig1/provenance.json",
            "benchmarks.json",
            "lff/units.csv",
            "lff//units.csv",
            "../fig1/units.csv",
            "lff/../fig1/units.csv",
            "lff/../units.csv",
            "/fig1/units.csv",
            "lff/a\\b/units.csv",
            "lff/a b/units.csv",
        ] {
            assert_eq!(item_of(other), None, "{other}");
        }
    }
}
