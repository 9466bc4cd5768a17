//! Reading regular files with a limit, and writing files atomically.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Error, ErrorKind, Read as _, Result, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use cap_std::fs::{Dir, FileType, OpenOptions};

use crate::folder::{Kind, is_protected, open_folder};

/// Opens the folder that contains a file; also returns the file's name. With `create`, missing folders are created.
fn locate(path: &Path, create: bool) -> Result<(Dir, OsString)> {
    let path = std::path::absolute(path)?;
    match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) => Ok((open_folder(folder, create)?, name.to_owned())),
        _ => Err(Error::new(ErrorKind::InvalidInput, "the path has no file name")),
    }
}

/// Opens a regular file. Nothing else is opened, since opening a pipe waits and opening a device can have effects.
fn open_regular(folder: &Dir, name: OsString, options: &mut OpenOptions) -> Result<File> {
    if let Ok(found) = folder.symlink_metadata(&name) {
        require_regular(found.file_type())?;
    }
    open_replaced(folder, name, options)
}

/// The second half of [`open_regular`]: something else may have taken the place of the file since the first check. A pipe is then opened
/// without waiting for its other end, and a terminal without becoming the one that controls this process.
fn open_replaced(folder: &Dir, name: OsString, options: &mut OpenOptions) -> Result<File> {
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        cap_std::fs::OpenOptionsExt::custom_flags(options, flags.bits() as i32);
    }
    let file = folder.open_with(name, options)?;
    require_regular(file.metadata()?.file_type())?;
    Ok(file.into_std())
}

fn require_regular(found: FileType) -> Result<()> {
    match Kind::of(found) {
        Kind::File => Ok(()),
        kind => Err(Error::new(
            ErrorKind::InvalidInput,
            format!("it is {}; a regular file is required", kind.name()),
        )),
    }
}

/// Opens a regular file for reading. Links are followed, except below a [protected](crate::protect) folder.
pub fn open(path: &Path) -> Result<File> {
    let (folder, name) = match is_protected(path)? {
        true => locate(path, false)?,
        false => locate(&path.canonicalize()?, false)?,
    };
    open_regular(&folder, name, OpenOptions::new().read(true))
}

/// Reads a regular file of at most `max` bytes. Links are followed as by [`open`].
///
/// # Errors
///
/// Those of [`open`], and [`ErrorKind::InvalidData`] if the file is longer or grows beyond `max` during the read.
pub fn read(path: &Path, max: u64) -> Result<Vec<u8>> {
    let file = open(path)?;
    let too_large = |length: u64| {
        let message = format!(
            "{length} bytes are more than the {max} allowed for this kind of file; use a smaller file"
        );
        Err(Error::new(ErrorKind::InvalidData, message))
    };
    let length = file.metadata()?.len();
    if length > max {
        return too_large(length);
    }
    let mut bytes = Vec::new();
    // One byte more, so that `read_to_end` finds the end without reallocating.
    let reserved = bytes.try_reserve_exact(usize::try_from(length + 1).unwrap_or(usize::MAX));
    reserved.map_err(|_| Error::from(ErrorKind::OutOfMemory))?;
    file.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 {
        length if length > max => too_large(length),
        _ => Ok(bytes),
    }
}

/// Whether the path exists. A dangling link or an inaccessible path counts as existing, so that a reader gets the error.
pub fn is_there(path: &Path) -> bool {
    !std::fs::symlink_metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// Whether a regular file has exactly these bytes.
pub fn is_same(path: &Path, bytes: &[u8]) -> bool {
    read(path, bytes.len() as u64).is_ok_and(|found| found == bytes)
}

/// Removes a file or a link, never the target of a link. Returns false if it does not exist.
pub fn remove(path: &Path) -> Result<bool> {
    match locate(path, false).and_then(|(folder, name)| folder.remove_file(name)) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Removes a folder if it is empty.
pub fn remove_empty_folder(path: &Path) {
    let _ = locate(path, false).and_then(|(folder, name)| folder.remove_dir(name));
}

/// A file that is written and synchronized, but not yet renamed to its final name. Dropping it removes the file.
#[derive(Debug)]
pub struct Prepared {
    folder: Dir,
    temporary: Option<String>,
    name: OsString,
}

impl Prepared {
    /// Renames the file to its final name, replacing an existing file or link, and waits until the name is on disk.
    pub fn commit(self) -> Result<()> {
        Prepared::commit_all(vec![self])
    }

    /// Like [`Prepared::commit`], for files that belong together: renames all of them before it waits for the disk, so that hardly any
    /// time passes in which only some are in place.
    pub fn commit_all(mut files: Vec<Prepared>) -> Result<()> {
        for Prepared { folder, temporary, name } in &mut files {
            if let Some(from) = temporary {
                folder.rename(&*from, folder, &*name)?;
            }
            *temporary = None;
        }
        use ErrorKind::{InvalidInput, PermissionDenied, ReadOnlyFilesystem, Unsupported};
        files.iter().try_for_each(|file| {
            let synchronized = file.folder.open(".").and_then(|folder| folder.sync_all());
            synchronized.or_else(|error| match error.kind() {
                // Not every system and file system can synchronize folders.
                InvalidInput | PermissionDenied | ReadOnlyFilesystem | Unsupported => Ok(()),
                _ => Err(error),
            })
        })
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            let _ = self.folder.remove_file(temporary);
        }
    }
}

/// Writes a temporary file next to its final path, ready to be renamed. Missing folders are created.
///
/// # Errors
///
/// The file cannot be written; if space ran out, the message has the number of bytes to write.
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
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let (process, number) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().subsec_nanos();
    let temporary = format!(".writing-{process}-{number}-{now:x}.tmp");
    let (folder, name) = locate(path, true)?;
    let mut file = folder.open_with(&temporary, &exclusive())?.into_std();
    let prepared = Prepared { folder, temporary: Some(temporary), name };
    write(&mut file)?;
    file.sync_all()?;
    Ok(prepared)
}

/// Writes a file through a temporary one in the same folder, and waits until it is on disk.
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

/// Options to create a file that must not exist yet.
fn exclusive() -> OpenOptions {
    OpenOptions::new().read(true).write(true).create_new(true).clone()
}

/// Creates a program, which must not exist yet, and missing folders.
pub fn create_program(path: &Path) -> Result<File> {
    let (folder, name) = locate(path, true)?;
    let mut options = exclusive();
    #[cfg(unix)]
    cap_std::fs::OpenOptionsExt::mode(&mut options, 0o777);
    Ok(folder.open_with(name, &options)?.into_std())
}

/// Opens a regular file for reading and writing. A missing file and missing folders are created.
pub fn open_or_create(path: &Path) -> Result<File> {
    let (folder, name) = locate(path, true)?;
    open_regular(&folder, name, OpenOptions::new().read(true).write(true).create(true))
}

/// Whether an error means that space ran out: on the disk, in a quota, or by a file size limit.
pub fn is_full(error: &Error) -> bool {
    use ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

#[cfg(test)]
mod tests;
