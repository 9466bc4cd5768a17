//! Raw records on disk: `<out>/raw/<paper>/<item>/<unit>-<key>.json`, the pictures of a unit next to it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use posenc_experiments::record::{KeyParts, Picture, StoredPicture, UnitRecord};
use posenc_files::write_atomically;

use crate::lock::sweep;

/// The raw records of a directory.
#[derive(Debug, Clone)]
pub struct Store {
    directory: PathBuf,
    checkpoints: PathBuf,
}

/// Why a unit must run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    NoRecord,
    /// It has records under other keys only. These key parts differ from the nearest record.
    Changed(Vec<&'static str>),
    /// The record of its key is unusable, for this reason.
    Damaged(String),
    /// It ran with uncommitted changes, which a reference record may not have.
    Uncommitted,
    Forced,
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Reason::NoRecord => f.write_str("no record"),
            Reason::Changed(parts) => write!(f, "key changed: {}", parts.join(", ")),
            Reason::Damaged(why) => write!(f, "record unusable: {why}"),
            Reason::Uncommitted => f.write_str("ran with uncommitted changes"),
            Reason::Forced => f.write_str("forced"),
        }
    }
}

impl Store {
    pub fn new(out: &Path) -> Self {
        posenc_files::protect(out);
        Store { directory: out.join("raw"), checkpoints: out.join("checkpoints") }
    }

    /// Folder for the checkpoints of an item. Jobs of two items may have the same key.
    pub fn checkpoints(&self, paper: &str, item: &str) -> PathBuf {
        self.checkpoints.join(paper).join(item)
    }

    /// Folder with the records and pictures of an item.
    pub fn folder(&self, paper: &str, item: &str) -> PathBuf {
        self.directory.join(paper).join(item)
    }

    pub fn file(&self, paper: &str, item: &str, parts: &KeyParts) -> PathBuf {
        self.folder(paper, item).join(UnitRecord::file_name(parts))
    }

    /// Looks up a usable record of exactly this key, with all its pictures. Reads the files, because a unit with a damaged
    /// record must run again.
    pub fn find(
        &self,
        paper: &str,
        item: &str,
        parts: &KeyParts,
    ) -> Result<Box<UnitRecord>, Reason> {
        let file = self.file(paper, item, parts);
        if !posenc_files::is_there(&file) {
            return Err(Reason::NoRecord);
        }
        match UnitRecord::read(&file) {
            Ok(record) if record.parts == *parts => {
                let folder = self.folder(paper, item);
                let of_pictures = record.pictures.iter().find_map(|p| p.damage(&folder));
                of_pictures.map_or(Ok(Box::new(record)), |why| Err(Reason::Damaged(why)))
            }
            Ok(_) => Err(Reason::Damaged(format!("{}: belongs to another unit", file.display()))),
            Err(error) => Err(Reason::Damaged(error.to_string())),
        }
    }

    /// As [`Store::find`], but reports for units without a record what changed since the nearest older one. Slower, because it lists the
    /// folder.
    pub fn explain(
        &self,
        paper: &str,
        item: &str,
        parts: &KeyParts,
    ) -> Result<Box<UnitRecord>, Reason> {
        let found = self.find(paper, item, parts);
        if !matches!(found, Err(Reason::NoRecord)) {
            return found;
        }
        let name = UnitRecord::file_name(parts);
        // The file name is <unit>-<16 digits>.json.
        let prefix = &name[..name.len() - "0123456789abcdef.json".len()];
        let folder = self.folder(paper, item);
        let is_of_unit = |other: &OsString| {
            let other = other.to_string_lossy();
            other.len() == name.len() && other.ends_with(".json") && other.starts_with(prefix)
        };
        let names = posenc_files::entries(&folder).unwrap_or_default().into_iter().map(|e| e.name);
        let records = names.filter(is_of_unit).map(|name| UnitRecord::read(&folder.join(name)));
        let others = records.flatten().filter(|other| other.parts.identity == parts.identity);
        let nearest = others.map(|other| parts.differences(&other.parts)).min_by_key(Vec::len);
        Err(nearest.map_or(Reason::NoRecord, Reason::Changed))
    }

    /// Writes a record atomically: first its pictures, then the file that lists them.
    pub fn write(
        &self,
        paper: &str,
        item: &str,
        mut record: UnitRecord,
        pictures: &[Picture],
    ) -> Result<()> {
        let folder = self.folder(paper, item);
        let file = self.file(paper, item, &record.parts);
        record.pictures.clear();
        for (index, picture) in pictures.iter().enumerate() {
            let what = || format!("picture `{}` of {}", picture.name, picture.signal);
            let bytes = picture.png().with_context(what)?;
            let name = UnitRecord::picture_file_name(&record.parts, index, &picture.name);
            write_file(&folder.join(&name), &bytes)?;
            record.pictures.push(StoredPicture {
                name: picture.name.clone(),
                signal: picture.signal.clone(),
                width: picture.width,
                height: picture.height,
                channels: picture.channels,
                psnr: picture.psnr,
                file: name,
                blake3: blake3::hash(&bytes).to_hex().to_string(),
            });
        }
        write_file(&file, &record.bytes().map_err(anyhow::Error::msg)?)
    }

    /// Removes temporary files of killed processes.
    pub fn sweep(&self) {
        for folder in [&self.directory, &self.checkpoints] {
            sweep(folder);
        }
    }
}

/// Writes a file whole or not at all; an error names the file.
pub fn write_file(file: &Path, bytes: &[u8]) -> Result<()> {
    write_atomically(file, bytes).with_context(|| format!("{} cannot be written", file.display()))
}

#[cfg(test)]
mod tests;
