//! Folders, and the protected ones that no path below them leaves.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, FileType};

static PROTECTED: RwLock<BTreeSet<PathBuf>> = RwLock::new(BTreeSet::new());

/// Protects a folder, which may be a link and need not exist yet: from now on, this process reaches nothing outside of it through a link
/// or `..` below it. Of nested protected folders, only the outermost counts.
pub fn protect(root: &Path) {
    if let Ok(root) = std::path::absolute(root) {
        PROTECTED.write().unwrap_or_else(PoisonError::into_inner).insert(root);
    }
}

/// The outermost protected folder that contains an absolute path.
fn protected(path: &Path) -> Option<&Path> {
    let roots = PROTECTED.read().unwrap_or_else(PoisonError::into_inner);
    path.ancestors().filter(|folder| roots.contains(*folder)).last()
}

/// Whether a path is below a protected folder.
pub(crate) fn is_protected(path: &Path) -> Result<bool> {
    let path = std::path::absolute(path)?;
    Ok(path.parent().and_then(protected).is_some())
}

/// Opens a folder; with `create`, missing folders are created.
pub(crate) fn open_folder(path: &Path, create: bool) -> Result<Dir> {
    let path = std::path::absolute(path)?;
    let root = protected(&path).unwrap_or(&path);
    if create {
        std::fs::create_dir_all(root)?;
    }
    let folder = Dir::open_ambient_dir(root, ambient_authority())?;
    let below = path.strip_prefix(root).map_err(Error::other)?;
    if below.as_os_str().is_empty() {
        return Ok(folder);
    }
    let opened = match folder.open_dir(below) {
        Err(error) if create && error.kind() == ErrorKind::NotFound => {
            folder.create_dir_all(below).and_then(|()| folder.open_dir(below))
        }
        opened => opened,
    };
    opened.map_err(|error| match (error.kind(), error.raw_os_error()) {
        // Such an error is not the operating system's.
        (ErrorKind::PermissionDenied, None) => Error::new(
            error.kind(),
            format!(
                "{} leads out of {} through a link or `..`; replace the link with a directory",
                path.display(),
                root.display()
            ),
        ),
        _ => error,
    })
}

/// Creates a folder and its missing parents.
pub fn make_folder(path: &Path) -> Result<()> {
    open_folder(path, true).map(drop)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    File,
    Folder,
    Link,
    Special,
}

impl Kind {
    pub(crate) fn of(kind: FileType) -> Kind {
        match kind {
            kind if kind.is_file() => Kind::File,
            kind if kind.is_dir() => Kind::Folder,
            kind if kind.is_symlink() => Kind::Link,
            _ => Kind::Special,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::File => "a regular file",
            Kind::Folder => "a directory",
            Kind::Link => "a symbolic link",
            Kind::Special => "a pipe, socket or device",
        }
    }
}

/// A directory entry; links are not followed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    pub name: OsString,
    pub kind: Kind,
}

/// The entries of a folder, sorted by name.
pub fn entries(folder: &Path) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for entry in open_folder(folder, false)?.entries()? {
        let entry = entry?;
        // Otherwise, the entry was removed in the meantime.
        if let Ok(found) = entry.metadata() {
            entries.push(Entry { name: entry.file_name(), kind: Kind::of(found.file_type()) });
        }
    }
    entries.sort();
    Ok(entries)
}

/// Maximum depth of nested folders that [`sweep`] visits.
const MAX_DEPTH: usize = 32;

/// Removes half-written files of killed processes from a folder and its subfolders, and returns their paths. Links are not followed.
/// Files that cannot be removed are skipped.
pub fn sweep(folder: &Path) -> Vec<PathBuf> {
    let mut removed = Vec::new();
    let mut folders = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        for Entry { name, kind } in entries(&folder).unwrap_or_default() {
            let path = folder.join(&name);
            if kind == Kind::Folder && depth < MAX_DEPTH {
                folders.push((path, depth + 1));
            } else if kind == Kind::File
                && is_half_written(&name)
                && crate::remove(&path).is_ok_and(|was_there| was_there)
            {
                removed.push(path);
            }
        }
    }
    removed
}

/// Whether a name is one of a temporary file of this crate: `.writing-<process>-<number>-<hexadecimal digits>.tmp`.
pub fn is_half_written(name: &OsStr) -> bool {
    let numbers = name.to_str().and_then(|n| n.strip_prefix(".writing-")?.strip_suffix(".tmp"));
    numbers.is_some_and(|numbers| {
        let is_number = |n: &str| !n.is_empty() && n.chars().all(|c| c.is_ascii_hexdigit());
        numbers.split('-').count() == 3 && numbers.split('-').all(is_number)
    })
}
