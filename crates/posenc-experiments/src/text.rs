//! Text of regular files, with a limit on its length.

use std::borrow::Cow;
use std::path::Path;

pub use posenc_files::limits::MAX_RECORD_BYTES;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::FileError;

/// What to do about a damaged record.
pub(crate) const RESTORE: &str = "restore the file (git checkout) or delete it";

/// BLAKE3 of a text, in hexadecimal. Windows line ends, which git may write, do not change it.
pub(crate) fn checksum(text: &str) -> String {
    blake3::hash(text.replace("\r\n", "\n").as_bytes()).to_hex().to_string()
}

/// What precedes the checksum of a JSON object, after `{` alone on a line.
pub(crate) const CHECKSUM: &str = "  \"checksum\": \"";

/// A value as JSON with one line per entry; the first entry of an object is the checksum of the others.
pub(crate) fn sealed(file: &Path, value: &impl Serialize) -> Result<String, FileError> {
    let text = serde_json::to_string_pretty(value).map_err(|e| FileError::unwritable(file, e))?;
    let text = text + "\n";
    Ok(match text.strip_prefix("{\n") {
        Some(rest) => format!("{{\n{CHECKSUM}{}\",\n{rest}", checksum(&text)),
        None => text,
    })
}

/// Parses the text of [`sealed`] and verifies its checksum, which records from before checksums lack. Errors name `file` and its line.
pub(crate) fn unsealed<T: DeserializeOwned>(file: &Path, text: &str) -> Result<T, FileError> {
    let rest = ["{\n", "{\r\n"].into_iter().find_map(|start| text.strip_prefix(start));
    let rest = rest.and_then(|rest| rest.strip_prefix(CHECKSUM)?.split_once("\","));
    let text: Cow<'_, str> = match rest {
        Some((sum, rest)) if checksum(&format!("{{{rest}")) != sum => {
            let message = format!("damaged: its checksum does not match its content; {RESTORE}");
            return Err(FileError::of(file, message));
        }
        // Lines keep their numbers.
        Some((_, rest)) => format!("{{\n{rest}").into(),
        None => text.into(),
    };
    let damaged =
        |e: serde_json::Error| FileError::of(file, format!("damaged: {e}; {RESTORE}")).at(e.line());
    serde_json::from_str(&text).map_err(damaged)
}

/// The text of a file of at most `max` bytes.
pub fn read_text(file: &Path, max: u64) -> Result<String, FileError> {
    let bytes = read_bytes(file, max)?;
    String::from_utf8(bytes).map_err(|e| {
        let line = posenc_files::line_at(e.as_bytes(), e.utf8_error().valid_up_to());
        FileError::of(file, "not UTF-8; convert it: iconv -t UTF-8").at(line)
    })
}

/// The text of a record; `None` if there is no such file.
pub(crate) fn read_record(file: &Path) -> Result<Option<String>, FileError> {
    posenc_files::is_there(file).then(|| read_text(file, MAX_RECORD_BYTES)).transpose()
}

/// The last part of a path; empty for paths without one.
pub(crate) fn file_name(path: &Path) -> String {
    path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The bytes of a file of at most `max` bytes.
pub fn read_bytes(file: &Path, max: u64) -> Result<Vec<u8>, FileError> {
    posenc_files::read(file, max).map_err(|e| FileError::of(file, format!("cannot be read: {e}")))
}

/// A sealed record as earlier versions wrote it, for tests that edit it.
#[cfg(test)]
pub(crate) fn without_checksum(text: &str) -> String {
    let (seal, rest) = text.split_once(",\n").unwrap();
    assert!(seal.contains(CHECKSUM));
    format!("{{\n{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a device or a long file that is read, and bytes that are not UTF-8 but accepted or reported without their line.
    #[cfg(unix)]
    #[test]
    fn long_files_and_files_that_are_not_utf8_are_refused() {
        let endless = read_text(Path::new("/dev/zero"), 1000).unwrap_err().to_string();
        assert!(
            endless.contains("/dev/zero") && endless.contains("a pipe, socket or device"),
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
