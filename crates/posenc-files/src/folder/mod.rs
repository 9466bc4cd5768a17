//! Access to folders without following symbolic links.

#[cfg(unix)]
mod unix;
#[cfg(unix)]
use unix as system;

#[cfg(not(unix))]
mod other;
#[cfg(not(unix))]
use other as system;

use std::ffi::{OsStr, OsString};
use std::fs::FileType;
use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};

pub(crate) use system::Folder;
pub(crate) use system::open_following;

use crate::roots::{SplitPath, protected, split};

/// The type of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A named pipe.
    Pipe,
    /// A socket.
    Socket,
    /// A device.
    Device,
}

impl Kind {
    /// In words, for messages.
    pub fn name(self) -> &'static str {
        match self {
            Kind::File => "a regular file",
            Kind::Folder => "a directory",
            Kind::Link => "a symbolic link",
            Kind::Pipe => "a named pipe",
            Kind::Socket => "a socket",
            Kind::Device => "a device",
        }
    }

    pub(crate) fn of(kind: FileType) -> Kind {
        #[cfg(unix)]
        {
            use std::os::unix::fs::FileTypeExt as _;
            if kind.is_fifo() {
                return Kind::Pipe;
            }
            if kind.is_socket() {
                return Kind::Socket;
            }
        }
        match kind {
            kind if kind.is_file() => Kind::File,
            kind if kind.is_dir() => Kind::Folder,
            kind if kind.is_symlink() => Kind::Link,
            _ => Kind::Device,
        }
    }

    /// Refuses everything but a regular file.
    pub(crate) fn require_file(self) -> Result<()> {
        match self {
            Kind::File => Ok(()),
            other => Err(Error::new(
                ErrorKind::InvalidInput,
                format!("it is {}; a regular file is required", other.name()),
            )),
        }
    }
}

/// A directory entry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// The name.
    pub name: OsString,
    /// Its type; links are not followed.
    pub kind: Kind,
}

/// Prefix and suffix of files that are being written.
pub(crate) const WRITING: (&str, &str) = (".writing-", ".tmp");

/// Maximum depth of nested folders that [`sweep`] visits.
const DEEPEST: usize = 32;

/// The error for a path that is not a folder.
fn not_a_folder(path: &Path, root: &Path, kind: Kind) -> Error {
    let message = match kind {
        Kind::Link => format!(
            "{} is a symbolic link; links below {} are not followed; replace it with a directory",
            path.display(),
            root.display()
        ),
        kind => format!("{} is {}; a directory is required", path.display(), kind.name()),
    };
    Error::new(ErrorKind::NotADirectory, message)
}

/// Opens the folder that contains a file; also returns the file name. With `create`, missing folders are created.
pub(crate) fn locate(path: &Path, create: bool) -> Result<(Folder, OsString)> {
    let mut place = split(path)?;
    let Some(name) = place.names.pop() else {
        return Err(Error::new(ErrorKind::InvalidInput, "the path has no file name"));
    };
    Ok((enter(&place, create)?, name))
}

fn enter(place: &SplitPath, create: bool) -> Result<Folder> {
    if create {
        std::fs::create_dir_all(&place.root)?;
    }
    let mut folder = Folder::open(&place.root)?;
    for name in &place.names {
        if create {
            folder.make(name)?;
        }
        folder = folder.enter(name, &place.root)?;
    }
    Ok(folder)
}

/// Opens a folder; below a protected folder, links are not followed.
fn folder_at(path: &Path) -> Result<Folder> {
    match protected(path)? {
        Some(place) => enter(&place, false),
        None => Folder::open(path),
    }
}

/// Creates a folder and its missing parents; below a protected folder, links are not followed.
///
/// # Errors
///
/// Returns an error if a folder cannot be created, or if a link or file is in its place.
pub fn make_folder(path: &Path) -> Result<()> {
    match protected(path)? {
        Some(place) => enter(&place, true).map(drop),
        None => std::fs::create_dir_all(path),
    }
}

/// The entries of a folder, sorted by name. Links are not followed.
pub fn entries(folder: &Path) -> Result<Vec<Entry>> {
    let mut entries = folder_at(folder)?.entries()?;
    entries.sort();
    Ok(entries)
}

/// Removes a file or a link, never the target of a link. Returns false if it does not exist.
pub fn remove(path: &Path) -> Result<bool> {
    let removed = locate(path, false).and_then(|(folder, name)| folder.remove(&name));
    match removed {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Removes a folder if it is empty.
pub fn remove_empty_folder(path: &Path) {
    if let Ok((folder, name)) = locate(path, false) {
        // A folder that is not empty stays.
        let _ = folder.remove_folder(&name);
    }
}

/// Removes half-written files of killed processes from a folder and its subfolders, and returns their paths. Links are not followed.
/// Files that cannot be removed are skipped.
pub fn sweep(folder: &Path) -> Vec<PathBuf> {
    let mut removed = Vec::new();
    if let Ok(folder) = folder_at(folder) {
        sweep_below(&folder, folder.path(), 0, &mut removed);
    }
    removed
}

fn sweep_below(folder: &Folder, root: &Path, depth: usize, removed: &mut Vec<PathBuf>) {
    for entry in folder.entries().unwrap_or_default() {
        match entry.kind {
            Kind::Folder if depth < DEEPEST => {
                if let Ok(inner) = folder.enter(&entry.name, root) {
                    sweep_below(&inner, root, depth + 1, removed);
                }
            }
            Kind::File if is_half_written(&entry.name) && folder.remove(&entry.name).is_ok() => {
                removed.push(folder.path().join(&entry.name));
            }
            _ => {}
        }
    }
}

/// Whether a name is one of a temporary file of this crate: `.writing-<process>-<number>-<hexadecimal digits>.tmp`.
pub fn is_half_written(name: &OsStr) -> bool {
    let is_of = |part: &str, radix| !part.is_empty() && part.chars().all(|c| c.is_digit(radix));
    let of_name = |name: &str| {
        let numbers: Vec<&str> =
            name.strip_prefix(WRITING.0)?.strip_suffix(WRITING.1)?.split('-').collect();
        Some(matches!(numbers[..], [process, number, now]
            if is_of(process, 10) && is_of(number, 10) && is_of(now, 16)))
    };
    name.to_str().and_then(of_name).unwrap_or(false)
}

#[cfg(test)]
mod tests;
