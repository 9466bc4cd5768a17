//! Errors in data that a user can fix.
//!
//! Every message states the error, its place, the allowed values, and how to fix it.

use std::fmt::Display;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Supported image formats, as named in messages.
pub(crate) const FORMATS: &str = "PNG, JPEG or TIFF";

pub const VIDEO_CURE: &str = "to read video files, install FFmpeg's development files (apt-get install libavcodec-dev \
     libavformat-dev libavutil-dev libavfilter-dev libavdevice-dev libswresample-dev libswscale-dev pkg-config \
     libclang-dev clang) and start again through cargo xtask";

/// An error of a loader, of the manifest or of the data directory. Errors that no code distinguishes are [`DataError::Invalid`].
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    #[error("{}: {what} not found; check the path", path.display())]
    NotFound { path: PathBuf, what: &'static str },

    #[error("{}: not a readable image ({reason}); {FORMATS} are read: save it again in one of them", path.display())]
    NotAnImage { path: PathBuf, reason: String },

    /// A folder contains no file of the expected kind.
    #[error("{0}")]
    EmptyFolder(String),

    #[error("{0}")]
    Invalid(String),
}

impl DataError {
    pub(crate) fn io(path: &Path, what: &'static str, error: std::io::Error) -> Self {
        match error.kind() {
            ErrorKind::NotFound => DataError::NotFound { path: path.to_owned(), what },
            _ => Self::at(
                path,
                format_args!("cannot be read ({error}); check that it is readable for this user"),
            ),
        }
    }

    pub(crate) fn unwritable(path: &Path, error: std::io::Error) -> Self {
        Self::at(
            path,
            format_args!(
                "cannot be written ({error}); check that the folder exists, that this user may write there, and that \
                 the disk is not full"
            ),
        )
    }

    /// A message about a file or folder.
    pub(crate) fn at(path: &Path, message: impl Display) -> Self {
        DataError::Invalid(format!("{}: {message}", path.display()))
    }

    /// A message about a line, counted from one.
    pub(crate) fn at_line(path: &Path, line: usize, message: impl Display) -> Self {
        DataError::Invalid(format!("{}:{line}: {message}", path.display()))
    }

    /// A message about an entry of a file; `entry` ends with a colon and a space, or is empty for the file as a whole.
    pub(crate) fn in_entry(path: &Path, entry: &str, reason: impl Display) -> Self {
        Self::at(path, format_args!("{entry}{reason}; correct the entry, or fetch the file again"))
    }

    /// An array does not have the required shape.
    pub(crate) fn shape(path: &Path, key: &str, found: &[usize], required: impl Display) -> Self {
        let axes: Vec<String> = found.iter().map(usize::to_string).collect();
        let found = axes.join(", ");
        Self::at(
            path,
            format_args!("array '{key}' has shape ({found}), but {required} is required"),
        )
    }

    pub(crate) fn too_large(
        path: &Path,
        what: impl Display,
        bytes: impl Into<u128>,
        max: u64,
    ) -> Self {
        let bytes: u128 = bytes.into();
        Self::at(
            path,
            format_args!(
                "{what} announces {bytes} bytes, but at most {max} are read; the file is damaged or not meant for \
                 this program: use smaller data"
            ),
        )
    }

    /// A folder lacks a file that its format requires.
    pub(crate) fn missing(folder: &Path, wanted: impl Display, hint: impl Display) -> Self {
        Self::at(folder, format_args!("no {wanted}; {hint}"))
    }
}

/// The names, separated by commas; `none` if there are no names.
pub(crate) fn list(names: &[String], none: &str) -> String {
    match names {
        [] => none.to_owned(),
        _ => names.join(", "),
    }
}
