//! What a run may write and remove: folders for output, and files that a run can prove to have made.

use std::ffi::OsStr;
use std::io::{Error, ErrorKind};
use std::path::{Component, Path, PathBuf};

use posenc_files::{Entry, entries, is_half_written};

use crate::yaml::FileError;

/// Refuses a folder for output unless it is missing or empty, or `is_ours` recognizes it as output of an earlier run. The repository at
/// `root` and the folder `report/` of any repository are never allowed.
pub fn check_folder(
    folder: &Path,
    root: &Path,
    is_ours: impl FnOnce(&Path) -> bool,
) -> Result<(), FileError> {
    check_file(folder, root)?;
    if is_ours(folder) {
        return Ok(());
    }
    let remedy = "name a new or empty folder, or the output of an earlier run, with --out";
    let found = match entries(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        found => found.map_err(|e| FileError::of(folder, format!("{e}; {remedy}")))?,
    };
    // A run that was killed at its start leaves only these.
    let is_left = |name: &OsStr| name == ".lock" || is_half_written(name);
    match found.iter().find(|entry| !is_left(&entry.name)) {
        None => Ok(()),
        Some(Entry { name, .. }) => {
            let message = format!("contains {name:?} and is not the output of this command");
            Err(FileError::of(folder, format!("{message}; {remedy}")))
        }
    }
}

/// Refuses a path for output that is the repository at `root`, or its folder `report/` or that of another repository, or is in one.
pub fn check_file(path: &Path, root: &Path) -> Result<(), FileError> {
    let remedy = "nothing is written there; name another path";
    let problem = |what: String| FileError::of(path, format!("{what}; {remedy}"));
    let resolved = |path: &Path| resolved(path).map_err(|e| problem(e.to_string()));
    let place = resolved(path)?;
    let is_root =
        |p: &&Path| p.join("experiments").is_dir() && p.join("data/manifest.yaml").is_file();
    for root in place.ancestors().filter(is_root).chain([root]) {
        if place == resolved(root)? {
            return Err(problem("is a repository".to_owned()));
        }
        if place.starts_with(resolved(&root.join("report"))?) {
            return Err(problem(format!("is in the reference of {}", root.display())));
        }
    }
    Ok(())
}

/// A path without links and `..`. It need not exist.
fn resolved(path: &Path) -> std::io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    for folder in path.ancestors() {
        match folder.canonicalize() {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            found => {
                let rest = path.strip_prefix(folder).map_err(Error::other)?;
                if rest.components().any(|part| part == Component::ParentDir) {
                    return Err(Error::other("`..` follows a folder that does not exist"));
                }
                return Ok(found?.join(rest));
            }
        }
    }
    Ok(path)
}

/// Removes files that a run made, and names them on standard error, or their number and folder if they are many. True if one was there.
pub fn remove(files: &[PathBuf], why: &str) -> Result<bool, FileError> {
    const NAMED: usize = 8;
    let mut removed = Vec::new();
    for file in files {
        let error = |e| FileError::of(file, format!("cannot be removed: {e}"));
        removed.extend(posenc_files::remove(file).map_err(error)?.then_some(file));
    }
    match removed.as_slice() {
        few if few.len() <= NAMED => {
            few.iter().for_each(|file| eprintln!("removed: {}: {why}", file.display()));
        }
        many => {
            let folder = many[0].parent().unwrap_or(many[0]);
            eprintln!("removed: {} files, such as in {}: {why}", many.len(), folder.display());
        }
    }
    Ok(!removed.is_empty())
}
