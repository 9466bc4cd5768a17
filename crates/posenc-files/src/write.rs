//! Atomic writing of files.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Error, ErrorKind, Result, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::folder::{Folder, WRITING, locate};
use crate::read::is_same;

/// Maximum number of names that are tried for a temporary file.
const MOST_NAMES: usize = 1000;

/// A file that is written and synchronized, but not yet renamed to its final name. Dropping it removes the file.
#[derive(Debug)]
pub struct Prepared {
    folder: Folder,
    temporary: OsString,
    name: OsString,
    is_there: bool,
}

impl Prepared {
    /// Renames the file to its final name, replacing an existing file or link, and waits until the name is on disk.
    ///
    /// # Errors
    ///
    /// Returns an error if a directory is in its place, or if the disk fails.
    pub fn commit(self) -> Result<()> {
        Prepared::commit_all(vec![self])
    }

    /// Like [`Prepared::commit`], for files that belong together: renames all of them before it waits for the disk, so that hardly any
    /// time passes in which only some are in place.
    pub fn commit_all(mut files: Vec<Prepared>) -> Result<()> {
        for file in &mut files {
            file.folder.rename(&file.temporary, &file.name)?;
            file.is_there = false;
        }
        files.iter().try_for_each(|file| file.folder.sync())
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        if self.is_there {
            let _ = self.folder.remove(&self.temporary);
        }
    }
}

/// Writes a temporary file next to its final path, ready to be renamed. Missing folders are created.
///
/// # Errors
///
/// Returns an error if the file cannot be written; if space ran out, the message has the number of bytes to write.
pub fn prepare(path: &Path, parts: &[&[u8]]) -> Result<Prepared> {
    let bytes: usize = parts.iter().map(|part| part.len()).sum();
    let prepared =
        prepare_with(path, |file| parts.iter().try_for_each(|part| file.write_all(part)));
    prepared.map_err(|error| match is_full(&error) {
        true => Error::new(
            error.kind(),
            format!("{error}; {bytes} bytes are needed, so free some disk space"),
        ),
        false => error,
    })
}

/// Like [`prepare`], but `write` writes the content; its errors are returned.
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
    Err(Error::new(ErrorKind::AlreadyExists, "found no unused name for a temporary file"))
}

/// Writes a file through a temporary one in the same folder, and waits until it is on disk.
///
/// # Errors
///
/// Returns the errors of [`prepare`] and [`Prepared::commit`].
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    write_parts_atomically(path, &[bytes])
}

/// Like [`write_atomically`], with content in several parts.
pub fn write_parts_atomically(path: &Path, parts: &[&[u8]]) -> Result<()> {
    prepare(path, parts)?.commit()
}

/// Like [`write_atomically`], but `write` writes the content; its errors are returned.
pub fn write_with(path: &Path, write: impl FnOnce(&mut File) -> Result<()>) -> Result<()> {
    prepare_with(path, write)?.commit()
}

/// Like [`write_atomically`], but does not touch a file that already has these bytes. Returns whether the file was written.
pub fn write_if_changed(path: &Path, bytes: &[u8]) -> Result<bool> {
    if is_same(path, bytes) {
        return Ok(false);
    }
    write_atomically(path, bytes).map(|()| true)
}

/// Creates a file that must not exist yet, and missing folders.
///
/// # Errors
///
/// Returns an error if a file or link of this name exists, or if a folder is not writable.
pub fn create_new(path: &Path) -> Result<File> {
    let (folder, name) = locate(path, true)?;
    folder.create_new(&name, false)
}

/// Opens a regular file for reading and writing. A missing file and missing folders are created.
///
/// # Errors
///
/// Returns an error if the file is not a regular file, or if a folder is not writable.
pub fn open_or_create(path: &Path) -> Result<File> {
    let (folder, name) = locate(path, true)?;
    folder.open_or_create(&name)
}

/// Like [`create_new`], with execute permission.
pub fn create_program(path: &Path) -> Result<File> {
    let (folder, name) = locate(path, true)?;
    folder.create_new(&name, true)
}

/// Like [`create_new`], with content, without waiting for the disk; for folders that only this process uses.
pub fn write_new(path: &Path, bytes: &[u8]) -> Result<()> {
    create_new(path)?.write_all(bytes)
}

/// Whether an error means that space ran out: on the disk, in a quota, or by a file size limit.
pub fn is_full(error: &Error) -> bool {
    use ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// Creates a file in an open folder, then writes and synchronizes it; removes it if that fails.
pub(crate) fn write_new_in(folder: &Folder, name: &OsStr, bytes: &[u8]) -> Result<()> {
    let mut file = folder.create_new(name, false)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    written.inspect_err(|_| {
        let _ = folder.remove(name);
    })
}
