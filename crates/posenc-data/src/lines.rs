//! Text that is read line by line, within limits.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use posenc_files::limits::MAX_LINE_BYTES;

use crate::error::DataError;

/// Calls `read_line` with each line and its number, from 1, until it returns `false`. `hint` says what a line must be.
pub(crate) fn each_line(
    path: &Path,
    text: impl Read,
    max: u64,
    hint: &str,
    mut read_line: impl FnMut(usize, &[u8]) -> Result<bool, DataError>,
) -> Result<(), DataError> {
    let mut text = BufReader::with_capacity(1 << 18, text.take(max + 1));
    let (mut line, mut total) = (Vec::new(), 0);
    for number in 1.. {
        line.clear();
        let n = (&mut text).take(MAX_LINE_BYTES as u64 + 1).read_until(b'\n', &mut line);
        total += n.map_err(|error| {
            let reason = format!("cannot be read further ({error}); fetch the file again");
            DataError::at_line(path, number, reason)
        })? as u64;
        if total > max {
            return Err(DataError::too_large(path, "the text", total, max));
        }
        if line.len() > MAX_LINE_BYTES {
            let reason = format!("more than {MAX_LINE_BYTES} bytes in a line; {hint}");
            return Err(DataError::at_line(path, number, reason));
        }
        if line.is_empty() || !read_line(number, &line)? {
            break;
        }
    }
    Ok(())
}
