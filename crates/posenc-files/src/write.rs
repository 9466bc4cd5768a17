//! Writing files whole or not at all.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Error, ErrorKind, Result, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::folder::{Folder, WRITING, locate};
use crate::read::is_same;

/// Names that are tried for a temporary file.
const MOST_NAMES: usize = 1000;

/// A file that is written and synchronized, but does not have its name yet. Dropped, it is removed.
#[derive(Debug)]
pub struct Prepared {
    folder: Folder,
    temporary: OsString,
    name: OsString,
    is_there: bool,
}

impl Prepared {
    /// Gives the file its name, in place of a file or link that has it, and waits until the name is on the disk.
    ///
    /// # Errors
    ///
    /// A directory in its place, a disk that fails.
    pub fn commit(mut self) -> Result<()> {
        self.folder.rename(&self.temporary, &self.name)?;
        self.is_there = false;
        self.folder.sync()
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        if self.is_there {
            let _ = self.folder.remove(&self.temporary);
        }
    }
}

/// Writes a file next to its place, ready to be renamed. Folders that are missing are made.
///
/// # Errors
///
/// A file that cannot be written; if space ran out, the error says how much was to be written.
pub fn prepare(path: &Path, parts: &[&[u8]]) -> Result<Prepared> {
    let bytes: usize = parts.iter().map(|part| part.len()).sum();
    let prepared =
        prepare_with(path, |file| parts.iter().try_for_each(|part| file.write_all(part)));
    prepared.map_err(|error| match is_full(&error) {
        true => Error::new(
            error.kind(),
            format!("{error}; {bytes} bytes were to be written: free some space"),
        ),
        false => error,
    })
}

/// As [`prepare`], of what a function writes, whose errors are passed on.
pub fn prepare_with(path: &Path, write: impl FnOnce(&mut File) -> Result<()>) -> Result<Prepared> {
    let (folder, name) = locate(path, true)?;
    let (temporary, mut file) = temporary(&folder)?;
    let prepared = Prepared { folder, temporary, name, is_there: true };
    write(&mut file)?;
    file.sync_all()?;
    Ok(prepared)
}

/// Creates a file under a unique name. The kernel applies the umask, so the permissions never have to be corrected.
fn temporary(folder: &Folder) -> Result<(OsString, File)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let (prefix, suffix) = WRITING;
    for _ in 0..MOST_NAMES {
        let (process, number) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().subsec_nanos();
        let name = OsString::from(format!("{prefix}{process}-{number}-{now:x}{suffix}"));
        match folder.create_new(&name, false) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            created => return created.map(|file| (name, file)),
        }
    }
    Err(Error::new(ErrorKind::AlreadyExists, "no name is free for a temporary file"))
}

/// Writes a file by way of a temporary one in the same folder, and waits until it is on the disk.
///
/// # Errors
///
/// Those of [`prepare`] and [`Prepared::commit`].
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    write_parts_atomically(path, &[bytes])
}

/// As [`write_atomically`], of pieces that need not be next to each other in memory.
pub fn write_parts_atomically(path: &Path, parts: &[&[u8]]) -> Result<()> {
    prepare(path, parts)?.commit()
}

/// As [`write_atomically`], of what a function writes, whose errors are passed on.
pub fn write_with(path: &Path, write: impl FnOnce(&mut File) -> Result<()>) -> Result<()> {
    prepare_with(path, write)?.commit()
}

/// As [`write_atomically`], but leaves a file alone that has these bytes. True if it was written.
pub fn write_if_changed(path: &Path, bytes: &[u8]) -> Result<bool> {
    if is_same(path, bytes) {
        return Ok(false);
    }
    write_atomically(path, bytes).map(|()| true)
}

/// Creates a file that was not there, and folders that are missing.
///
/// # Errors
///
/// A file or link of this name; a folder that cannot be written.
pub fn create_new(path: &Path) -> Result<File> {
    let (folder, name) = locate(path, true)?;
    folder.create_new(&name, false)
}

/// Opens a regular file for reading and writing. A file that is missing is made, as are its folders.
///
/// # Errors
///
/// A file that is not a regular one; a folder that cannot be written.
pub fn open_or_create(path: &Path) -> Result<File> {
    let (folder, name) = locate(path, true)?;
    folder.open_or_create(&name)
}

/// As [`create_new`], of a file that can be executed.
pub fn create_program(path: &Path) -> Result<File> {
    let (folder, name) = locate(path, true)?;
    folder.create_new(&name, true)
}

/// As [`create_new`], with content and without waiting for the disk; for folders of this process alone.
pub fn write_new(path: &Path, bytes: &[u8]) -> Result<()> {
    create_new(path)?.write_all(bytes)
}

/// Whether an error means that there is no more space: the disk, a quota or a limit on the size of files.
pub fn is_full(error: &Error) -> bool {
    use ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// Creates a file in an open folder and writes it at once; removes it again if that fails.
pub(crate) fn write_new_in(folder: &Folder, name: &OsStr, bytes: &[u8]) -> Result<()> {
    let mut file = folder.create_new(name, false)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    written.inspect_err(|_| {
        let _ = folder.remove(name);
    })
}
