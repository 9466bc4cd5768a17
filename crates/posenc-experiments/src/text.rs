//! Text of files, with a limit on its length: a reader asks for memory only after it has seen how much there is.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::yaml::FileError;

/// Most bytes of a record: tables, records of units, captions, indices of pictures. The largest of the papers have 6 · 10⁶.
pub const MAX_RECORD_BYTES: u64 = 1 << 27;

/// The text of a file of at most `most` bytes.
///
/// # Errors
///
/// A file that cannot be read, is longer or is not UTF-8, by name.
pub fn read_text(file: &Path, most: u64) -> Result<String, FileError> {
    let bytes = read_bytes(file, most)?;
    String::from_utf8(bytes).map_err(|e| {
        let line = posenc_text::line_at(e.as_bytes(), e.utf8_error().valid_up_to());
        error(file, Some(line), "not UTF-8; convert it: iconv -t UTF-8".into())
    })
}

/// The bytes of a file of at most `most` bytes.
///
/// # Errors
///
/// A file that cannot be read or is longer, by name.
pub fn read_bytes(file: &Path, most: u64) -> Result<Vec<u8>, FileError> {
    let unreadable = |e: std::io::Error| error(file, None, format!("cannot be read: {e}"));
    let mut bytes = Vec::new();
    File::open(file)
        .map_err(unreadable)?
        .take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 > most {
        let message = format!("more than {most} bytes, which is the most for a file of its kind");
        return Err(error(file, None, message));
    }
    Ok(bytes)
}

fn error(file: &Path, line: Option<usize>, message: String) -> FileError {
    FileError { file: file.to_owned(), line, key: String::new(), message }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a file that is read without end, and bytes that are no text and pass or are named without their line.
    #[cfg(unix)]
    #[test]
    fn long_files_and_bytes_are_refused() {
        let endless = read_text(Path::new("/dev/zero"), 1000).unwrap_err().to_string();
        assert!(
            endless.contains("/dev/zero") && endless.contains("more than 1000 bytes"),
            "{endless}"
        );
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.txt");
        std::fs::write(&file, b"ab\nc\xff").unwrap();
        assert!(read_text(&file, 5).unwrap_err().to_string().contains("a.txt:2: not UTF-8"));
        assert_eq!(read_bytes(&file, 5).unwrap(), b"ab\nc\xff");
        assert!(read_bytes(&file, 4).is_err());
    }
}
