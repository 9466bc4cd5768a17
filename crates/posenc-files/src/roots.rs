//! Protected folders, below which no link is followed.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{Error, ErrorKind, Result};
use std::path::{Component, Path, PathBuf};
use std::sync::{PoisonError, RwLock};

static ROOTS: RwLock<BTreeSet<PathBuf>> = RwLock::new(BTreeSet::new());

/// Protects a folder: from now on, this process follows no symbolic link below `root`. The folder itself may be a link and need not exist
/// yet.
///
/// Of nested protected folders, only the outermost counts.
pub fn protect(root: &Path) {
    if let Ok(root) = std::path::absolute(root) {
        ROOTS.write().unwrap_or_else(PoisonError::into_inner).insert(root);
    }
}

/// A path, split into a folder that may be reached through links and the names below it that may not.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SplitPath {
    pub root: PathBuf,
    pub names: Vec<OsString>,
}

/// Splits `path` at the outermost protected folder that contains it; `None` if no protected folder does.
///
/// # Errors
///
/// Returns an error if the path below the protected folder contains `..`.
pub(crate) fn protected(path: &Path) -> Result<Option<SplitPath>> {
    let path = std::path::absolute(path)?;
    let roots = ROOTS.read().unwrap_or_else(PoisonError::into_inner);
    let Some(root) = path.ancestors().filter(|folder| roots.contains(*folder)).last() else {
        return Ok(None);
    };
    let below = path.strip_prefix(root).map_err(Error::other)?;
    let names = below.components().map(|component| match component {
        Component::Normal(name) => Ok(name.to_owned()),
        _ => Err(Error::new(
            ErrorKind::InvalidInput,
            format!("the path leads out of {}", root.display()),
        )),
    });
    Ok(Some(SplitPath { names: names.collect::<Result<_>>()?, root: root.to_owned() }))
}

/// Like [`protected`], but also splits other paths: links to the folder of the file are followed, a link in place of the file is not.
pub(crate) fn split(path: &Path) -> Result<SplitPath> {
    if let Some(split) = protected(path)?
        && !split.names.is_empty()
    {
        return Ok(split);
    }
    let Some(name) = path.file_name() else {
        return Err(Error::new(ErrorKind::InvalidInput, "the path has no file name"));
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    Ok(SplitPath {
        root: folder.unwrap_or(Path::new(".")).to_owned(),
        names: vec![name.to_owned()],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a path that leaves a protected folder, one that is not recognized as being below it, and a nested protected folder that
    /// becomes a root of its own and could then be a link.
    #[test]
    fn paths_below_protected_folders_are_split() {
        let root = std::env::temp_dir().join("posenc-files-roots");
        protect(&root);
        let split = |path: &Path| split(path).map(|split| (split.root, split.names.len()));
        assert_eq!(split(&root.join("a/b")).unwrap(), (root.clone(), 2));
        assert_eq!(split(&root.join("./a//b")).unwrap(), (root.clone(), 2));
        protect(&root.join("a"));
        assert_eq!(split(&root.join("a/b")).unwrap(), (root.clone(), 2));
        let error = split(&root.join("a/../../b")).unwrap_err().to_string();
        assert!(error.contains("leads out of"), "{error}");
        // The folder itself, and a folder whose name has the same prefix.
        assert_eq!(split(&root).unwrap(), (std::env::temp_dir().components().collect(), 1));
        let other = root.with_file_name("posenc-files-roots-2");
        assert_eq!(split(&other.join("a")).unwrap(), (other, 1));
        assert_eq!(split(Path::new("a")).unwrap(), (".".into(), 1));
        assert!(split(Path::new("..")).is_err());
    }
}
