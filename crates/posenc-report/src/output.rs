//! The finished report: written to a directory, or compared with one.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use posenc_experiments::output::remove;
use posenc_experiments::record::Picture;
use posenc_experiments::text::MAX_RECORD_BYTES;
use posenc_experiments::verdict::Classified;
use posenc_experiments::yaml::FileError;
use posenc_files::{Kind, entries, is_same, is_there, write_if_changed};

use crate::markdown;
use crate::pages::MARKER;
use crate::plot::STYLE;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// Verdicts by paper and item: those of this machine's run if the report shows one, else those of the reference.
    pub verdicts: BTreeMap<(String, String), Vec<Classified>>,
    /// Contents of all files, by path below the report's directory.
    pub files: BTreeMap<PathBuf, Vec<u8>>,
    /// The Markdown pages in reading order.
    pub pages: Vec<Page>,
    /// The short answers, as Markdown with links relative to the report; `None` without answers.
    pub digest: Option<String>,
    /// Answers of the reference run in which no sentence states the verdict of a claim that they name.
    pub unstated: Vec<String>,
}

/// A Markdown page and its place among the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Path below the report's directory.
    pub path: PathBuf,
    pub kind: PageKind,
}

/// What a page is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageKind {
    /// The answers to all papers: the first page.
    Summary,
    /// The index of a paper.
    Paper,
    /// An item of the paper whose index precedes it.
    Item,
    /// An overview across papers, such as that of the claims.
    Overview,
    /// A part of the overview that precedes it.
    Part,
}

/// A file that is changed, missing, or no longer part of the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stale {
    /// Path below the report's directory.
    pub path: PathBuf,
    pub why: &'static str,
}

impl std::fmt::Display for Stale {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.why)
    }
}

impl Report {
    /// Adds a notice below the title of the first page, for example that a run is not finished.
    pub fn with_notice(mut self, notice: &str) -> Self {
        if let Some(page) = self.files.get_mut(Path::new("README.md")) {
            let text = String::from_utf8_lossy(page).into_owned();
            let title = text.find("\n# ").map_or(0, |at| at + 1);
            let end = text.get(title..).and_then(|rest| rest.find('\n')).map_or(0, |at| title + at);
            let (head, rest) = text.split_at(end);
            *page = format!("{head}\n\n> {}{rest}", markdown::plain(notice)).into_bytes();
        }
        self
    }

    /// Adds a notice about files that were left out of the catalog.
    pub fn with_notice_about(self, broken: &[FileError]) -> Self {
        let errors: Vec<String> = broken.iter().map(ToString::to_string).collect();
        match errors.is_empty() {
            true => self,
            false => {
                self.with_notice(&format!("Left out because of errors: {}", errors.join("; ")))
            }
        }
    }

    /// Writes files that changed, each atomically, and removes generated pages, plots and pictures that are no longer part of
    /// the report. Other files are not touched.
    pub fn write(&self, directory: &Path) -> Result<()> {
        posenc_files::protect(directory);
        for (path, bytes) in &self.files {
            let file = directory.join(path);
            write_if_changed(&file, bytes)
                .with_context(|| format!("{} cannot be written", file.display()))?;
        }
        let surplus = self.surplus(directory)?.into_iter().map(|path| directory.join(path));
        let is_own = |file: &PathBuf| is_page(file) || is_plot(file) || is_picture(file);
        let surplus: Vec<PathBuf> = surplus.filter(is_own).collect();
        remove(&surplus, "no longer part of the report")?;
        // Remove folders as well if they are empty now.
        for folder in surplus.iter().filter_map(|file| file.parent()).filter(|f| *f != directory) {
            posenc_files::remove_empty_folder(folder);
        }
        Ok(())
    }

    /// Files of `directory` that differ from the report, are missing, or do not belong to it.
    pub fn check(&self, directory: &Path) -> Result<Vec<Stale>> {
        let mut stale = Vec::new();
        for (path, bytes) in &self.files {
            let file = directory.join(path);
            match is_there(&file) {
                _ if is_same(&file, bytes) => {}
                true => stale.push(Stale { path: path.clone(), why: "differs from the records" }),
                false => stale.push(Stale { path: path.clone(), why: "is missing" }),
            }
        }
        for path in self.surplus(directory)? {
            stale.push(Stale { path, why: "is no longer part of the report" });
        }
        stale.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(stale)
    }

    /// Generated files in `directory` that the report does not have: pages that begin with [`MARKER`], plots and
    /// pictures.
    fn surplus(&self, directory: &Path) -> Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        let of = |folder: &Path, ending: &str| -> Result<Vec<PathBuf>> {
            let files = list(folder, Kind::File)?.into_iter();
            Ok(files.filter(|f| f.extension().is_some_and(|e| e == ending)).collect())
        };
        let folders = |folder: &Path| list(folder, Kind::Folder);
        for folder in folders(directory)?.into_iter().chain([directory.to_owned()]) {
            found.extend(of(&folder, "md")?.into_iter().filter(|file| is_page(file)));
        }
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
            .collect();
        surplus.sort();
        Ok(surplus)
    }
}

pub fn is_report(directory: &Path) -> bool {
    is_page(&directory.join("README.md"))
}

/// Whether a file begins with [`MARKER`].
fn is_page(file: &Path) -> bool {
    start(file, MARKER.len()) == MARKER.as_bytes()
}

/// Whether the first line of a file ends like that of our plots. It contains a description of at most a few hundred bytes.
fn is_plot(file: &Path) -> bool {
    let start = start(file, 1 << 16);
    let line = start.split(|byte| *byte == b'\n').next().unwrap_or_default();
    line.starts_with(b"<svg ") && line.ends_with(STYLE.as_bytes())
}

fn is_picture(file: &Path) -> bool {
    posenc_files::read(file, MAX_RECORD_BYTES).is_ok_and(|bytes| Picture::is_own_file(&bytes))
}

/// The first bytes of a regular file; none if it cannot be read.
fn start(file: &Path, most: usize) -> Vec<u8> {
    let mut start = Vec::new();
    let _ =
        posenc_files::open(file).and_then(|file| file.take(most as u64).read_to_end(&mut start));
    start
}

/// Entries of one kind in a folder; none if the folder is missing.
fn list(directory: &Path, kind: Kind) -> Result<Vec<PathBuf>> {
    if !is_there(directory) {
        return Ok(Vec::new());
    }
    let found = entries(directory)
        .with_context(|| format!("{} cannot be listed", directory.display()))?
        .into_iter();
    Ok(found.filter(|e| e.kind == kind).map(|e| directory.join(e.name)).collect())
}
