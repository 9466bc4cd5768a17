//! Folders as paths, on systems without directory descriptors.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{ErrorKind, Result};
use std::path::{Path, PathBuf};

use super::{Entry, Kind, not_a_folder};

/// A folder with the same functions as the one for Unix.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    pub fn open(path: &Path) -> Result<Self> {
        std::fs::read_dir(path)?;
        Ok(Folder { path: path.to_owned() })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn enter(&self, name: &OsStr, root: &Path) -> Result<Self> {
        let path = self.path.join(name);
        match self.kind(name)? {
            Kind::Folder => Ok(Folder { path }),
            kind => Err(not_a_folder(&path, root, kind)),
        }
    }

    pub fn kind(&self, name: &OsStr) -> Result<Kind> {
        Ok(Kind::of(std::fs::symlink_metadata(self.path.join(name))?.file_type()))
    }

    pub fn make(&self, name: &OsStr) -> Result<()> {
        match std::fs::create_dir(self.path.join(name)) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }

    pub fn open_file(&self, name: &OsStr) -> Result<File> {
        self.kind(name)?.require_file()?;
        open_following(&self.path.join(name))
    }

    pub fn open_or_create(&self, name: &OsStr) -> Result<File> {
        if let Ok(kind) = self.kind(name) {
            kind.require_file()?;
        }
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        options.open(self.path.join(name))
    }

    pub fn create_new(&self, name: &OsStr, _is_program: bool) -> Result<File> {
        File::options().read(true).write(true).create_new(true).open(self.path.join(name))
    }

    pub fn rename(&self, from: &OsStr, to: &OsStr) -> Result<()> {
        std::fs::rename(self.path.join(from), self.path.join(to))
    }

    pub fn remove(&self, name: &OsStr) -> Result<()> {
        std::fs::remove_file(self.path.join(name))
    }

    pub fn remove_folder(&self, name: &OsStr) -> Result<()> {
        std::fs::remove_dir(self.path.join(name))
    }

    /// Folders cannot be synchronized here.
    pub fn sync(&self) -> Result<()> {
        Ok(())
    }

    pub fn entries(&self) -> Result<Vec<Entry>> {
        let entries = std::fs::read_dir(&self.path)?.map(|entry| {
            let entry = entry?;
            Ok(Entry { name: entry.file_name(), kind: Kind::of(entry.file_type()?) })
        });
        entries.collect()
    }
}

/// Opens a regular file for reading; links are followed.
pub(crate) fn open_following(path: &Path) -> Result<File> {
    Kind::of(std::fs::metadata(path)?.file_type()).require_file()?;
    let file = File::open(path)?;
    Kind::of(file.metadata()?.file_type()).require_file()?;
    Ok(file)
}
