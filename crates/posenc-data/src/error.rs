//! What can go wrong with data that a user can change.
//!
//! Every message says what is wrong and where, what is allowed, and what to do about it.

use std::path::{Path, PathBuf};

/// The image formats that are read, as messages name them.
pub(crate) const FORMATS: &str = "PNG, JPEG or TIFF";

/// An error of a loader, of the manifest or of the data directory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// A file that was asked for is not there.
    #[error("{}: there is no such {what}; check the path", path.display())]
    NotFound {
        /// Path that was looked for.
        path: PathBuf,
        /// "file" or "folder".
        what: &'static str,
    },

    /// The operating system refused to read a file or folder.
    #[error("{}: cannot be read ({source}); check that it is readable for this user", path.display())]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },

    /// The data directory that was asked for does not exist.
    #[error(
        "data directory {}, given by {given_by}, is not a directory; create it, name another one, or leave \
         {given_by} out to use data/ in the repository",
        path.display()
    )]
    NoDataDirectory {
        /// Path as it was given.
        path: PathBuf,
        /// The option or environment variable it came from.
        given_by: &'static str,
    },

    /// A file that should be an npz archive cannot be opened as one.
    #[error(
        "{}: not a complete npz archive ({reason}); an npz is a zip file of .npy arrays, so a download that was \
         cut short looks like this: fetch the file again",
        path.display()
    )]
    NotAnArchive {
        /// The file.
        path: PathBuf,
        /// What the zip reader found.
        reason: String,
    },

    /// The archive does not hold the array that was asked for.
    #[error(
        "{}: no array named '{key}'; the archive holds {}; is this the right file?",
        path.display(),
        list(present, "no arrays")
    )]
    MissingKey {
        /// The archive.
        path: PathBuf,
        /// Name that was asked for.
        key: String,
        /// Names of the arrays that are there.
        present: Vec<String>,
    },

    /// An array inside an archive is damaged.
    #[error("{}: array '{key}' is damaged: {reason}; fetch the file again", path.display())]
    DamagedArray {
        /// The archive.
        path: PathBuf,
        /// Name of the array.
        key: String,
        /// What is wrong with it.
        reason: String,
    },

    /// An array holds another element type than 8-bit integers.
    #[error(
        "{}: array '{key}' has elements of type {found}, but only 8-bit unsigned integers ('|u1') are read; save it \
         again with .astype('uint8')",
        path.display()
    )]
    WrongElementType {
        /// The archive.
        path: PathBuf,
        /// Name of the array.
        key: String,
        /// The type as the array's header writes it.
        found: String,
    },

    /// An array has another shape than the data set's.
    #[error("{}: array '{key}' has shape {}, but {required} is required", path.display(), tuple(found))]
    WrongShape {
        /// The archive.
        path: PathBuf,
        /// Name of the array.
        key: String,
        /// The shape found.
        found: Vec<u64>,
        /// The shapes allowed, in words.
        required: String,
    },

    /// Something announces more memory than is granted.
    #[error(
        "{}: {what} announces {bytes} bytes, but at most {limit} are read; the file is damaged or not meant for \
         this program: use smaller data",
        path.display()
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The array or image.
        what: String,
        /// Size announced.
        bytes: u128,
        /// Size granted.
        limit: u64,
    },

    /// A file cannot be decoded as an image.
    #[error("{}: not a readable image ({reason}); {FORMATS} are read: save it again in one of them", path.display())]
    NotAnImage {
        /// The file.
        path: PathBuf,
        /// What the decoder found.
        reason: String,
    },

    /// An image has samples that are neither 8- nor 16-bit integers.
    #[error(
        "{}: pixels of type {found} are not read; save it again with 8 or 16 bits for each of one (gray), three \
         (RGB) or four (RGBA) channels",
        path.display()
    )]
    WrongPixelType {
        /// The file.
        path: PathBuf,
        /// The pixel type found.
        found: String,
    },

    /// An image is smaller than the data set's images.
    #[error(
        "{}: the image is {width}×{height} pixels, but data set '{id}' needs at least {required}×{required}; larger \
         ones are cropped and reduced, smaller ones are never enlarged: use a larger image",
        path.display()
    )]
    TooSmall {
        /// The file.
        path: PathBuf,
        /// The data set it should stand in for.
        id: String,
        /// Width found.
        width: u32,
        /// Height found.
        height: u32,
        /// Side length required.
        required: u32,
    },

    /// A folder holds no images.
    #[error(
        "{}: the folder holds no images; put {FORMATS} files into it (sub-folders are not searched)",
        path.display()
    )]
    EmptyFolder {
        /// The folder.
        path: PathBuf,
    },

    /// The manifest is not as it should be.
    #[error("{}{}: {reason}", path.display(), line.map(|line| format!(":{line}")).unwrap_or_default())]
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// Line, counted from one, where it is known.
        line: Option<usize>,
        /// What is wrong, and what is allowed.
        reason: String,
    },

    /// The manifest has no such data set.
    #[error("there is no data set '{id}'; the manifest {} has {}", path.display(), list(known, "none"))]
    UnknownDataSet {
        /// Name that was asked for.
        id: String,
        /// The manifest.
        path: PathBuf,
        /// Names that exist.
        known: Vec<String>,
    },

    /// A row or column outside an image was asked for.
    #[error("image '{image}' has no {what} {index}: it has {len} of them, counted from 0")]
    OutOfImage {
        /// Name of the image.
        image: String,
        /// "row" or "column".
        what: &'static str,
        /// Index that was asked for.
        index: usize,
        /// How many there are.
        len: usize,
    },
}

impl DataError {
    /// Turns an operating-system error on `path` into one that says whether the file is missing.
    pub(crate) fn io(path: &Path, what: &'static str, source: std::io::Error) -> Self {
        match source.kind() {
            std::io::ErrorKind::NotFound => DataError::NotFound { path: path.to_owned(), what },
            _ => DataError::Unreadable { path: path.to_owned(), source },
        }
    }
}

fn list(names: &[String], none: &str) -> String {
    match names {
        [] => none.to_owned(),
        _ => names.join(", "),
    }
}

fn tuple(shape: &[u64]) -> String {
    let axes: Vec<String> = shape.iter().map(u64::to_string).collect();
    format!("({})", axes.join(", "))
}
