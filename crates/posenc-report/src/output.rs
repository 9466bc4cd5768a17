//! The finished report: written to a directory, or compared with one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use posenc_experiments::record::table::write_atomically;

use crate::pages::MARKER;

/// All files of a report, by path below its directory.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Their bytes.
    pub files: BTreeMap<PathBuf, Vec<u8>>,
    /// The pages that have parts which can stand alone, by path: for readers other than that of one file.
    pub sections: BTreeMap<PathBuf, Vec<Section>>,
    /// PNG files beside the reference's pictures that its index does not list: they belong to no
    /// report.
    pub unlisted: Vec<PathBuf>,
}

/// A part of a page: what stands before the first heading of the second level, or a heading with what is below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// The place that links name, where it has one of its own; in a paper's page, the item.
    pub anchor: Option<String>,
    /// The heading as Markdown, without its marks.
    pub title: String,
    /// The part as it stands in the page, with heading and anchor.
    pub text: String,
}

impl Section {
    /// The part that begins a page, with the page's title.
    pub(crate) fn opening(title: String, text: String) -> Self {
        Section { anchor: None, title, text }
    }

    /// What is below the heading.
    pub fn body(&self) -> &str {
        let heading = format!("# {}\n\n", self.title);
        self.text.split_once(&heading).map_or(&*self.text, |(_, body)| body)
    }
}

/// The bytes of a page.
pub(crate) fn joined(page: &[Section]) -> Vec<u8> {
    let text: String = page.iter().map(|section| &*section.text).collect();
    (text.trim_end().to_owned() + "\n").into_bytes()
}

/// A file that differs from what the records give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stale {
    /// Path below the report's directory.
    pub path: PathBuf,
    /// What is wrong with it.
    pub why: &'static str,
}

impl std::fmt::Display for Stale {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.why)
    }
}

impl Report {
    /// Writes what differs, each file whole or not at all, and removes generated pages and
    /// pictures that are no longer part of the report. Other files stay as they are.
    ///
    /// # Errors
    ///
    /// A file that cannot be written or removed, by name.
    pub fn write(&self, directory: &Path) -> Result<()> {
        for (path, bytes) in &self.files {
            let file = directory.join(path);
            if std::fs::read(&file).is_ok_and(|old| old == *bytes) {
                continue;
            }
            write_atomically(&file, bytes)
                .with_context(|| format!("{} cannot be written", file.display()))?;
        }
        for path in self.surplus(directory)? {
            let file = directory.join(&path);
            std::fs::remove_file(&file)
                .with_context(|| format!("{} cannot be removed", file.display()))?;
            // A folder that this leaves empty goes too; one that is not empty stays.
            if let Some(folder) = file.parent().filter(|f| *f != directory) {
                let _ = std::fs::remove_dir(folder);
            }
        }
        Ok(())
    }

    /// Files of `directory` that differ from the report, are missing, or do not belong to it.
    ///
    /// # Errors
    ///
    /// A directory that cannot be listed.
    pub fn check(&self, directory: &Path) -> Result<Vec<Stale>> {
        let mut stale = Vec::new();
        for (path, bytes) in &self.files {
            match std::fs::read(directory.join(path)) {
                Ok(old) if old == *bytes => {}
                Ok(_) => stale.push(Stale { path: path.clone(), why: "differs from the records" }),
                Err(_) => stale.push(Stale { path: path.clone(), why: "is missing" }),
            }
        }
        for path in self.surplus(directory)? {
            stale.push(Stale { path, why: "is no longer part of the report" });
        }
        stale.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(stale)
    }

    /// Generated files that the report does not have: pages with our first line, and pictures.
    fn surplus(&self, directory: &Path) -> Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        for file in list(directory)? {
            let page = file.extension().is_some_and(|e| e == "md");
            if page && std::fs::read(&file).is_ok_and(|b| b.starts_with(MARKER.as_bytes())) {
                found.push(file);
            }
        }
        let of = |folder: &Path, ending: &str| -> Result<Vec<PathBuf>> {
            let files = list(folder)?.into_iter();
            Ok(files.filter(|f| f.extension().is_some_and(|e| e == ending)).collect())
        };
        let folders = |folder: &Path| -> Result<Vec<PathBuf>> {
            Ok(list(folder)?.into_iter().filter(|f| f.is_dir()).collect())
        };
        for paper in folders(&directory.join("figures"))? {
            found.extend(of(&paper, "svg")?);
        }
        for paper in folders(&directory.join("pictures"))? {
            for item in folders(&paper)? {
                found.extend(of(&item, "png")?);
            }
        }
        let mut surplus: Vec<PathBuf> = found
            .into_iter()
            .filter_map(|f| f.strip_prefix(directory).ok().map(Path::to_owned))
            .filter(|f| !self.files.contains_key(f))
            .chain(self.unlisted.iter().filter(|f| directory.join(f).exists()).cloned())
            .collect();
        surplus.sort();
        Ok(surplus)
    }
}

fn list(directory: &Path) -> Result<Vec<PathBuf>> {
    if !directory.exists() {
        return Ok(Vec::new());
    }
    let entries = std::fs::read_dir(directory)
        .and_then(|entries| entries.map(|e| e.map(|e| e.path())).collect::<Result<Vec<_>, _>>())
        .with_context(|| format!("{} cannot be listed", directory.display()))?;
    Ok(entries)
}
