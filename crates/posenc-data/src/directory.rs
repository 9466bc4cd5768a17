//! The data directory, and paths of files below it.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use crate::error::DataError;

/// The environment variable that names the data directory.
const ENVIRONMENT_VARIABLE: &str = "POSENC_DATA";

/// Maximum length in bytes of a path that a file names; systems allow about 4,000.
const MAX_PATH: usize = 1000;

/// The directory that the manifest's paths are relative to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataDirectory {
    path: PathBuf,
}

impl DataDirectory {
    /// The directory named by `explicit` (the option `--data`), else by the environment variable
    /// `POSENC_DATA`, else `data/` in the repository.
    /// It is an error if the option or the variable names something that is not a directory. `data/` itself may be missing: every data set
    /// then has its stand-in.
    pub fn resolve(explicit: Option<&Path>, repository: &Path) -> Result<Self, DataError> {
        Self::resolve_with(explicit, std::env::var_os(ENVIRONMENT_VARIABLE), repository)
    }

    fn resolve_with(
        explicit: Option<&Path>,
        environment: Option<OsString>,
        repository: &Path,
    ) -> Result<Self, DataError> {
        let environment = environment.filter(|value| !value.is_empty()).map(PathBuf::from);
        let (path, given_by) = match (explicit, environment) {
            (Some(path), _) => (path.to_owned(), "--data"),
            (None, Some(path)) => (path, ENVIRONMENT_VARIABLE),
            (None, None) => {
                return Ok(DataDirectory { path: repository.join("data") });
            }
        };
        if !path.is_dir() {
            return Err(DataError::Invalid(format!(
                "data directory {}, given by {given_by}, is not a directory; create it, name another one, or leave \
                 {given_by} out to use data/ in the repository",
                path.display()
            )));
        }
        Ok(DataDirectory { path })
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Checks that a path that a file names stays below its folder, or returns why not. The result does not depend on the operating system:
/// backslashes and drives are rejected.
pub(crate) fn inside(path: &str) -> Result<PathBuf, String> {
    let relative = PathBuf::from(path);
    let is_below = relative.components().all(|part| matches!(part, Component::Normal(_)));
    let has_drive = path.as_bytes().get(1) == Some(&b':');
    let is_plain = !path.contains(|c: char| c == '\\' || c.is_control()) && !has_drive;
    match is_below && is_plain && !path.is_empty() && path.len() <= MAX_PATH {
        true => Ok(relative),
        false => Err(format!(
            "path '{}' may lead out of the folder; allowed: names separated by `/`, at most {MAX_PATH} bytes, without \
             '..', backslashes, drives and control characters",
            path.escape_debug()
        )),
    }
}

pub(crate) fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches another order of precedence, and a named directory that is missing or a file.
    #[test]
    fn the_option_wins_over_the_variable_and_the_variable_over_the_repository() {
        let (option, variable) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let repository = Path::new("/nowhere");
        let set = || Some(variable.path().as_os_str().to_owned());
        let resolve = |explicit, environment| {
            DataDirectory::resolve_with(explicit, environment, repository).map(|found| found.path)
        };
        assert_eq!(resolve(Some(option.path()), set()).unwrap(), option.path());
        assert_eq!(resolve(None, set()).unwrap(), variable.path());
        assert_eq!(resolve(None, None).unwrap(), repository.join("data"));
        // An empty variable counts as unset, because shells make it easy to set one.
        assert_eq!(resolve(None, Some(OsString::new())).unwrap(), repository.join("data"));
        let file = tempfile::NamedTempFile::new().unwrap();
        for wrong in [Path::new("/nowhere/at/all"), file.path()] {
            let by_option = resolve(Some(wrong), set()).unwrap_err().to_string();
            let name = wrong.display();
            assert!(by_option.contains(&format!("{name}, given by --data, is not")), "{by_option}");
            let by_variable = resolve(None, Some(wrong.into())).unwrap_err().to_string();
            assert!(by_variable.contains("given by POSENC_DATA"), "{by_variable}");
        }
    }

    /// Catches a path in a manifest or in annotations that leads out of its folder on any system.
    #[test]
    fn paths_stay_inside() {
        for good in ["a.npz", "a/b.png", "a..b/c", "...", "données/1.png", "a b", "ab:c"] {
            assert_eq!(inside(good), Ok(PathBuf::from(good)), "{good}");
        }
        for bad in [
            "",
            "..",
            ".",
            "../a",
            "a/../../b",
            "/etc/passwd",
            "a/..",
            "\\\\server\\a",
            "..\\a",
            "a\\..\\b",
            "C:\\a",
            "C:a",
            "c:/a",
            "a\0b",
            "a\nb",
        ] {
            let message = inside(bad).unwrap_err();
            assert!(message.contains("may lead out of the folder"), "{bad}");
        }
        assert!(inside(&"a".repeat(1001)).is_err());
    }
}
