//! Reading files that others may have created.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

use crate::folder::{locate, open_following};
use crate::roots::protected;

/// Why a file cannot be read.
#[derive(Debug)]
pub enum ReadError {
    /// It cannot be opened or read, or is not a regular file.
    Io(Error),
    /// It is longer than its reader accepts.
    TooLong {
        /// Number of bytes that were found; more than `most`.
        length: u64,
        /// Maximum number of bytes.
        most: u64,
    },
}

impl std::fmt::Display for ReadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ReadError::Io(error) => write!(f, "{error}"),
            ReadError::TooLong { most, .. } => {
                write!(f, "the file exceeds {most} bytes, the limit for its kind")
            }
        }
    }
}

impl std::error::Error for ReadError {}

impl From<ReadError> for Error {
    fn from(error: ReadError) -> Error {
        match error {
            ReadError::Io(error) => error,
            long => Error::new(ErrorKind::FileTooLarge, long.to_string()),
        }
    }
}

/// Opens a regular file for reading. Links are followed, except below a [protected](crate::protect) folder.
///
/// Opening never blocks, because anything but a regular file is an error. Reading a regular file waits only for the disk.
///
/// # Errors
///
/// Returns an error if the file cannot be opened, is a directory, named pipe, socket or device, or is a link below a protected folder.
pub fn open(path: &Path) -> Result<File> {
    match protected(path)? {
        Some(split) if !split.names.is_empty() => {
            let (folder, name) = locate(path, false)?;
            folder.open_file(&name)
        }
        _ => open_following(path),
    }
}

/// Reads a regular file of at most `most` bytes. Links are followed as by [`open`].
///
/// # Errors
///
/// Returns the errors of [`open`], and [`ReadError::TooLong`] if the file is longer or grows beyond `most` during the read.
pub fn read(path: &Path, most: u64) -> std::result::Result<Vec<u8>, ReadError> {
    let file = open(path).map_err(ReadError::Io)?;
    let length = file.metadata().map_err(ReadError::Io)?.len();
    if length > most {
        return Err(ReadError::TooLong { length, most });
    }
    let mut bytes = Vec::new();
    // One byte more, so that `read_to_end` finds the end without reallocating.
    let reserved = bytes.try_reserve_exact(usize::try_from(length + 1).unwrap_or(usize::MAX));
    reserved.map_err(|_| ReadError::Io(ErrorKind::OutOfMemory.into()))?;
    file.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(ReadError::Io)?;
    match bytes.len() as u64 {
        length if length > most => Err(ReadError::TooLong { length, most }),
        _ => Ok(bytes),
    }
}

/// Whether the path exists. A dangling link or an inaccessible path counts as existing, so that a reader gets the error.
pub fn is_there(path: &Path) -> bool {
    match std::fs::symlink_metadata(path) {
        Ok(_) => true,
        Err(error) => error.kind() != ErrorKind::NotFound,
    }
}

/// Whether a regular file has exactly these bytes.
pub fn is_same(path: &Path, bytes: &[u8]) -> bool {
    read(path, bytes.len() as u64).is_ok_and(|found| found == bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a file that is read beyond its limit, and one that is refused at the limit.
    #[test]
    fn files_are_read_up_to_their_limit() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        std::fs::write(&file, b"12345").unwrap();
        assert_eq!(read(&file, 5).unwrap(), b"12345");
        let error = read(&file, 4).unwrap_err();
        assert!(matches!(error, ReadError::TooLong { length: 5, most: 4 }), "{error}");
        assert!(is_same(&file, b"12345") && !is_same(&file, b"1234") && !is_same(&file, b"123456"));
        assert!(!is_same(&folder.path().join("b"), b"") && !is_there(&folder.path().join("b")));
    }

    /// Catches a reader that trusts the reported length. Files in `/proc` report a length of zero, like a file that grows after it is
    /// opened.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_that_grows_is_read_up_to_its_limit() {
        let file = Path::new("/proc/self/status");
        assert_eq!(std::fs::metadata(file).unwrap().len(), 0);
        let error = read(file, 10).unwrap_err();
        assert!(matches!(error, ReadError::TooLong { length: 11, most: 10 }), "{error}");
        assert!(read(file, 1 << 16).unwrap().len() > 10);
        assert!(!is_same(file, b""));
    }

    /// Catches a reader that blocks on a pipe or reads a device, directly or through a link, and one that accepts a directory.
    #[cfg(unix)]
    #[test]
    fn only_regular_files_are_read() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let made = std::process::Command::new("mkfifo").arg(at("pipe")).status();
        assert!(made.is_ok_and(|status| status.success()), "mkfifo is required");
        symlink(at("pipe"), at("to-pipe")).unwrap();
        symlink("/dev/zero", at("to-zero")).unwrap();
        symlink(at("missing"), at("dangling")).unwrap();
        symlink(at("loop"), at("loop")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        for (name, reason) in [
            ("pipe", "it is a named pipe; a regular file is required"),
            ("to-pipe", "a named pipe"),
            ("to-zero", "a device"),
            ("socket", "a socket"),
            (".", "a directory"),
            ("dangling", "No such file"),
            ("loop", "symbolic link"),
        ] {
            let error = read(&at(name), 100).unwrap_err().to_string();
            assert!(error.contains(reason), "{name}: {error}");
            assert!(is_there(&at(name)), "{name}");
        }
        // Links to regular files are followed, since data are often stored elsewhere.
        std::fs::write(at("file"), "x").unwrap();
        symlink(at("file"), at("to-file")).unwrap();
        assert_eq!(read(&at("to-file"), 1).unwrap(), b"x");
    }
}
