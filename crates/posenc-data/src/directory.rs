//! The data directory.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::error::DataError;

/// The environment variable that names the data directory.
const ENVIRONMENT_VARIABLE: &str = "POSENC_DATA";

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
}
