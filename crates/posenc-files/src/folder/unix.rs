//! Folders as open directory descriptors. Names are looked up relative to a descriptor, so no path component can be exchanged between two
//! operations.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Error, Result};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::{Entry, Kind, not_a_folder};

/// An open folder.
#[derive(Debug)]
pub(crate) struct Folder {
    descriptor: OwnedFd,
    path: PathBuf,
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// Opening never blocks on a pipe without a writer, and no terminal becomes the controlling terminal.
const FILE: OFlags = OFlags::CLOEXEC.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// Permissions of new files, before the umask.
fn readable() -> Mode {
    Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP | Mode::ROTH | Mode::WOTH
}

fn executable() -> Mode {
    Mode::RWXU | Mode::RWXG | Mode::RWXO
}

fn kind(kind: FileType) -> Kind {
    match kind {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Folder,
        FileType::Symlink => Kind::Link,
        FileType::Fifo => Kind::Pipe,
        FileType::Socket => Kind::Socket,
        _ => Kind::Device,
    }
}

impl Folder {
    /// Opens a folder; links are followed.
    pub fn open(path: &Path) -> Result<Self> {
        let descriptor = rustix::fs::openat(CWD, path, FOLDER, Mode::empty())?;
        Ok(Folder { descriptor, path: path.to_owned() })
    }

    /// Its path, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a folder in this one; links are not followed.
    pub fn enter(&self, name: &OsStr, root: &Path) -> Result<Self> {
        let path = self.path.join(name);
        let flags = FOLDER | OFlags::NOFOLLOW;
        match rustix::fs::openat(&self.descriptor, name, flags, Mode::empty()) {
            Ok(descriptor) => Ok(Folder { descriptor, path }),
            Err(error) => match self.kind(name) {
                Ok(Kind::Folder) | Err(_) => Err(error.into()),
                Ok(kind) => Err(not_a_folder(&path, root, kind)),
            },
        }
    }

    /// The type of an entry.
    pub fn kind(&self, name: &OsStr) -> Result<Kind> {
        let found = rustix::fs::statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(kind(FileType::from_raw_mode(found.st_mode)))
    }

    /// Creates a folder in this one if it does not exist.
    pub fn make(&self, name: &OsStr) -> Result<()> {
        match rustix::fs::mkdirat(&self.descriptor, name, executable()) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a regular file for reading.
    pub fn open_file(&self, name: &OsStr) -> Result<File> {
        self.kind(name)?.require_file()?;
        self.open_with(name, OFlags::RDONLY)
    }

    /// Opens a regular file for reading and writing, and creates it if it does not exist.
    pub fn open_or_create(&self, name: &OsStr) -> Result<File> {
        if let Ok(kind) = self.kind(name) {
            kind.require_file()?;
        }
        self.open_with(name, OFlags::RDWR | OFlags::CREATE)
    }

    fn open_with(&self, name: &OsStr, flags: OFlags) -> Result<File> {
        let flags = flags | FILE | OFlags::NOFOLLOW;
        let file = File::from(rustix::fs::openat(&self.descriptor, name, flags, readable())?);
        // The file may have been replaced since the first check.
        Kind::of(file.metadata()?.file_type()).require_file()?;
        Ok(file)
    }

    /// Creates a file that must not exist yet.
    pub fn create_new(&self, name: &OsStr, is_program: bool) -> Result<File> {
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = if is_program { executable() } else { readable() };
        Ok(File::from(rustix::fs::openat(&self.descriptor, name, flags, mode)?))
    }

    /// Renames a file within this folder, over another one.
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> Result<()> {
        Ok(rustix::fs::renameat(&self.descriptor, from, &self.descriptor, to)?)
    }

    /// Removes a file or a link.
    pub fn remove(&self, name: &OsStr) -> Result<()> {
        Ok(rustix::fs::unlinkat(&self.descriptor, name, AtFlags::empty())?)
    }

    /// Removes an empty folder.
    pub fn remove_folder(&self, name: &OsStr) -> Result<()> {
        Ok(rustix::fs::unlinkat(&self.descriptor, name, AtFlags::REMOVEDIR)?)
    }

    /// Waits until the entries of the folder are on disk.
    pub fn sync(&self) -> Result<()> {
        match rustix::fs::fsync(&self.descriptor) {
            // Some network file systems cannot synchronize folders.
            Ok(()) | Err(Errno::INVAL | Errno::NOTSUP | Errno::BADF | Errno::ROFS) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The entries of the folder, unsorted.
    pub fn entries(&self) -> Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for entry in Dir::read_from(&self.descriptor)? {
            let entry = entry?;
            let name = OsString::from_vec(entry.file_name().to_bytes().to_vec());
            if name == "." || name == ".." {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => match self.kind(&name) {
                    Ok(kind) => kind,
                    // Removed in the meantime.
                    Err(_) => continue,
                },
                known => kind(known),
            };
            entries.push(Entry { name, kind });
        }
        Ok(entries)
    }
}

/// Opens a regular file for reading; links are followed.
pub(crate) fn open_following(path: &Path) -> Result<File> {
    // Check before opening, since opening a device can have side effects.
    Kind::of(std::fs::metadata(path)?.file_type()).require_file()?;
    let flags = i32::try_from(FILE.bits()).map_err(Error::other)?;
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    // The file may have been replaced since the first check.
    Kind::of(file.metadata()?.file_type()).require_file()?;
    Ok(file)
}
