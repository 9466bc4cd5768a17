//! Errors in files that a user wrote.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use posenc_files::Escaping;

/// An error in a file that a user wrote.
#[derive(Debug, Clone, thiserror::Error)]
pub struct FileError {
    pub file: PathBuf,
    pub line: Option<usize>,
    /// Path of the key inside the document, such as `groups[0].variants[1].embedder.sigma`.
    pub key: String,
    /// What was wrong, what is allowed, what to do.
    pub message: String,
}

impl FileError {
    pub fn of(file: impl AsRef<Path>, message: impl Into<String>) -> Self {
        let file = file.as_ref().to_owned();
        FileError { file, line: None, key: String::new(), message: message.into() }
    }

    pub fn unwritable(file: impl AsRef<Path>, reason: impl std::fmt::Display) -> Self {
        FileError::of(file, format!("cannot be written: {reason}"))
    }

    pub fn at(self, line: usize) -> Self {
        FileError { line: Some(line), ..self }
    }

    pub fn key(self, key: impl Into<String>) -> Self {
        FileError { key: key.into(), ..self }
    }
}

impl std::fmt::Display for FileError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Names and messages quote what the file contains.
        let mut f = Escaping(f);
        write!(f, "{}", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if !self.key.is_empty() && self.key != "." {
            write!(f, ": `{}`", self.key)?;
        }
        write!(f, ": {}", self.message)
    }
}
