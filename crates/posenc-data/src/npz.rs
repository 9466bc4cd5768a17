//! Arrays of 8-bit integers and 32-bit numbers in numpy's npz archives.
//!
//! An npz is a zip archive with one `.npy` file per array: the magic `\x93NUMPY`, a version, the length of a header, the header (a Python
//! dictionary with `descr`, `fortran_order` and `shape`) and the elements in C order. This parser reads only what the data sets need.
//! General parsers recurse on nested headers and trust the lengths in them, and this one must survive any bytes.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use posenc_files::limits::MAX_ARRAY_BYTES;
use zip::ZipArchive;

use crate::error::{DataError, list};
use crate::files;

/// Maximum size of a header in bytes. numpy writes 128 bytes; structured types may need more.
const MAX_HEADER_BYTES: usize = 1 << 16;
/// Maximum number of axes, as in numpy.
const MAX_AXES: usize = 64;
/// Maximum number of characters of a header in a message.
const SHOWN: usize = 200;
/// Bytes that are allocated up front. A larger buffer grows with the data that is read.
const FIRST_ALLOCATION: u64 = 1 << 24;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    Byte,
    Float,
}

impl Element {
    /// The type that a header names without the order of its bytes; `None` for one that is not read.
    fn of(kind: &str) -> Option<Self> {
        match kind {
            "u1" => Some(Element::Byte),
            "f4" => Some(Element::Float),
            _ => None,
        }
    }

    pub(crate) fn size(self) -> usize {
        match self {
            Element::Byte => 1,
            Element::Float => 4,
        }
    }
}

/// An array in C order (last index fastest), as stored in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawArray {
    pub shape: Vec<usize>,
    pub element: Element,
    /// Bytes of all elements, the low byte of each first.
    pub bytes: Vec<u8>,
}

/// Names of the arrays in an archive, sorted.
pub fn array_names(path: &Path) -> Result<Vec<String>, DataError> {
    Ok(names(&open(path)?))
}

/// Reads the array `key` of the archive at `path`.
pub fn read_array(path: &Path, key: &str) -> Result<RawArray, DataError> {
    read_within(path, key, &[Element::Byte], MAX_ARRAY_BYTES)
}

/// Reads the array `key` of the archive at `path`, if its elements are of an allowed type and it is not larger than `limit`.
pub(crate) fn read_within(
    path: &Path,
    key: &str,
    allowed: &[Element],
    limit: u64,
) -> Result<RawArray, DataError> {
    let mut archive = open(path)?;
    let entry = format!("{key}.npy");
    if archive.index_for_name(&entry).is_none() {
        let present = list(&names(&archive), "no arrays");
        let message = format!(
            "no array named '{key}'; the archive contains {present}; is this the right file?"
        );
        return Err(DataError::at(path, message));
    }
    let what = format!("array '{key}'");
    match archive.by_name(&entry) {
        Ok(mut file) => read_from(&mut file, path, &what, allowed, limit),
        Err(error) => Err(damaged(path, &what, &error.to_string())),
    }
}

fn damaged(path: &Path, what: &str, reason: &str) -> DataError {
    DataError::at(path, format!("{what} is damaged: {reason}; fetch the file again"))
}

fn read_from(
    file: &mut impl Read,
    path: &Path,
    what: &str,
    allowed: &[Element],
    limit: u64,
) -> Result<RawArray, DataError> {
    let damaged = |reason: String| damaged(path, what, &reason);
    let header = Header::read(file).map_err(damaged)?;
    let kind = header.descr.trim_start_matches(['<', '>', '|', '=']);
    let element = Element::of(kind).filter(|element| allowed.contains(element));
    let Some(element) = element else {
        // A mere `astype` would wrap values around, or make zeros and ones of them.
        let (types, cure) = match allowed {
            [Element::Byte] => (
                "8-bit unsigned integers ('|u1')",
                "(255 * numpy.clip(x / WHITE, 0, 1)).round().astype('uint8')",
            ),
            _ => (
                "8-bit unsigned integers ('|u1') and 32-bit numbers in [0, 1] ('<f4')",
                "numpy.clip(x / WHITE, 0, 1).astype('float32')",
            ),
        };
        let message = format!(
            "{what} has elements of type {}, but only {types} are read; with numpy and the array x, save {cure}, where \
             WHITE is the value of white, such as 65535, 255 or 1",
            header.descr
        );
        return Err(DataError::at(path, message));
    };
    if header.fortran_order {
        let message = format!(
            "{what} is stored in Fortran order (first index fastest), but only C order is read; save it again with \
             numpy.ascontiguousarray(x)"
        );
        return Err(DataError::at(path, message));
    }
    let mut axes = header.shape.iter();
    let n_bytes =
        axes.try_fold(element.size() as u128, |bytes, &axis| bytes.checked_mul(axis as u128));
    let n_bytes = match n_bytes {
        Some(n_bytes) if n_bytes <= limit.into() => n_bytes as u64,
        _ => {
            let bytes = n_bytes.unwrap_or(u128::MAX);
            return Err(DataError::too_large(path, what.to_owned(), bytes, limit));
        }
    };

    let mut bytes = Vec::with_capacity(n_bytes.min(FIRST_ALLOCATION) as usize);
    // Reads one byte more than announced to detect a surplus. The zip reader verifies the checksum at the end.
    file.take(n_bytes + 1).read_to_end(&mut bytes).map_err(|error| damaged(error.to_string()))?;
    if bytes.len() as u64 != n_bytes {
        let found = if bytes.len() as u64 > n_bytes {
            "more".to_owned()
        } else {
            format!("only {}", bytes.len())
        };
        return Err(damaged(format!("its header announces {n_bytes} bytes, but {found} follow")));
    }
    if header.descr.starts_with('>') {
        bytes.chunks_exact_mut(element.size()).for_each(<[u8]>::reverse);
    }
    Ok(RawArray { shape: header.shape, element, bytes })
}

fn open(path: &Path) -> Result<ZipArchive<BufReader<File>>, DataError> {
    let file = files::open(path)?;
    ZipArchive::new(BufReader::new(file)).map_err(|error| {
        let message = format!(
            "not a complete npz archive ({error}); an npz is a zip file of .npy arrays, so the download may be \
             incomplete: fetch the file again"
        );
        DataError::at(path, message)
    })
}

fn names<R: Read + std::io::Seek>(archive: &ZipArchive<R>) -> Vec<String> {
    // Names that are not valid text are skipped, because they cannot be requested.
    let mut names: Vec<String> = archive
        .file_names()
        .filter_map(|name| name.ok()?.strip_suffix(".npy").map(str::to_owned))
        .collect();
    names.sort();
    names
}

#[derive(Debug, PartialEq, Eq)]
struct Header {
    /// Element type: a string such as `|u1`, or the source text of a structured type.
    descr: String,
    fortran_order: bool,
    shape: Vec<usize>,
}

impl Header {
    fn read(reader: &mut impl Read) -> Result<Self, String> {
        let cut_short = |error: std::io::Error| format!("its header cannot be read ({error})");
        let mut start = [0; 8];
        reader.read_exact(&mut start).map_err(cut_short)?;
        if &start[..6] != b"\x93NUMPY" {
            return Err("it does not start like a .npy file".to_owned());
        }
        let digits = match start[6] {
            1 => 2,
            2 | 3 => 4,
            version => {
                return Err(format!(
                    "version {version} of the .npy format is unknown (1, 2 and 3 are read)"
                ));
            }
        };
        let mut length = [0; 4];
        reader.read_exact(&mut length[..digits]).map_err(cut_short)?;
        let length = u32::from_le_bytes(length) as usize;
        if length > MAX_HEADER_BYTES {
            return Err(format!(
                "its header announces {length} bytes, at most {MAX_HEADER_BYTES} are read"
            ));
        }
        let mut text = vec![0; length];
        reader.read_exact(&mut text).map_err(cut_short)?;
        let text = str::from_utf8(&text).map_err(|_| "its header is not text".to_owned())?;
        Self::parse(text).ok_or_else(|| {
            let shown: String = text.trim().chars().take(SHOWN).collect();
            format!("its header {shown:?} is not understood")
        })
    }

    /// Parses the dictionary; `None` for what no writer writes.
    fn parse(text: &str) -> Option<Self> {
        let value = |key: &str| {
            let keys = [format!("'{key}':"), format!("\"{key}\":")];
            Some(keys.iter().find_map(|key| text.split_once(key))?.1.trim_start())
        };
        let descr = value("descr")?;
        let descr = match descr.chars().next()? {
            quote @ ('\'' | '"') => descr.split(quote).nth(1)?,
            _ => descr.get(..=descr.rfind(']')?)?,
        };
        let order = value("fortran_order")?;
        let fortran_order = order.starts_with("True");
        let axes = value("shape")?.strip_prefix('(')?.split_once(')')?.0.split(',');
        let axes = axes.map(str::trim).filter(|axis| !axis.is_empty());
        let shape: Vec<usize> = axes.map(|axis| axis.parse().ok()).collect::<Option<_>>()?;
        let is_sound = (fortran_order || order.starts_with("False")) && shape.len() <= MAX_AXES;
        is_sound.then(|| Header { descr: descr.to_owned(), fortran_order, shape })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_as_numpy_writes_them_are_understood() {
        let text =
            "{'descr': '|u1', 'fortran_order': False, 'shape': (16, 512, 512, 3), }          \n";
        let expected =
            Header { descr: "|u1".to_owned(), fortran_order: false, shape: vec![16, 512, 512, 3] };
        assert_eq!(Header::parse(text), Some(expected));
        // A scalar, one axis, a structured type with commas inside of brackets and quotes.
        assert_eq!(
            Header::parse("{'descr':'|u1','fortran_order':False,'shape':()}").unwrap().shape,
            [0usize; 0]
        );
        assert_eq!(
            Header::parse("{'descr':'|u1','fortran_order':True,'shape':(7,)}").unwrap().shape,
            [7]
        );
        let structured =
            "{'descr': [('a,)', '<u2'), ('b', '<f4')], 'fortran_order': False, 'shape': (2,)}";
        assert_eq!(Header::parse(structured).unwrap().descr, "[('a,)', '<u2'), ('b', '<f4')]");
    }

    #[test]
    fn headers_that_numpy_would_not_write_are_refused() {
        for text in [
            "",
            "{}",
            "{'descr': '|u1', 'fortran_order': False}",
            "{'descr': '|u1', 'fortran_order': 0, 'shape': (1,)}",
            "{'descr': '|u1', 'fortran_order': False, 'shape': (-1,)}",
            "{'descr': '|u1', 'fortran_order': False, 'shape': (99999999999999999999999,)}",
            "{'descr': [('a', '<u2'), 'fortran_order': False, 'shape': (1,)}",
            "{'descr': '|u1', 'fortran_order': False, 'shape': (1,",
        ] {
            assert_eq!(Header::parse(text), None, "{text}");
        }
        let axes = "1,".repeat(65);
        let text = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({axes})}}");
        assert_eq!(Header::parse(&text), None);
    }
}
