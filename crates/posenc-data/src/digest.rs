//! Checksums: 64 lower-case hexadecimal digits of SHA-256.

use std::io::Read;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::directory::file_name;
use crate::error::DataError;

/// SHA-256 of some bytes, in hexadecimal.
pub(crate) fn of_bytes(bytes: &[u8]) -> String {
    hex(Sha256::new().chain_update(bytes))
}

/// SHA-256 of a file, read in pieces.
pub(crate) fn of_file(path: &Path) -> Result<String, DataError> {
    let unreadable = |source| DataError::io(path, "file", source);
    let file = posenc_files::open(path).map_err(unreadable)?;
    let length = file.metadata().map_err(unreadable)?.len();
    // A file that grows while it is read must not be read forever.
    let mut file = file.take(length.saturating_add(1));
    let (mut state, mut total) = (Sha256::new(), 0);
    let mut piece = vec![0; 1 << 16];
    loop {
        let n_read = file.read(&mut piece).map_err(unreadable)?;
        if n_read == 0 {
            return Ok(hex(state));
        }
        total += n_read as u64;
        if total > length {
            return Err(unreadable(std::io::Error::other("it grew while it was read")));
        }
        state.update(&piece[..n_read]);
    }
}

/// The lines `<SHA-256>  <name>`, as `sha256sum` prints them for files.
pub(crate) fn lines<T>(
    all: &[T],
    sha256: impl Fn(&T) -> Result<String, DataError>,
    name: impl Fn(&T) -> String,
) -> Result<String, DataError> {
    all.iter().map(|one| Ok(format!("{}  {}\n", sha256(one)?, name(one)))).collect()
}

/// The lines of [`lines`] of some files.
pub(crate) fn list(files: &[PathBuf]) -> Result<String, DataError> {
    lines(files, |file| of_file(file), |file| file_name(file))
}

fn hex(state: Sha256) -> String {
    state.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_the_standard() {
        // FIPS 180-2, appendix B.1.
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(of_bytes(b"abc"), expected);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"abc").unwrap();
        assert_eq!(of_file(file.path()).unwrap(), expected);
    }
}
