//! Arrays of floating-point numbers from npy, npz and safetensors files.

use std::path::Path;

use half::{bf16, f16};
use safetensors::{Dtype, SafeTensors};

use crate::error::{DataError, list};
use crate::files::read_whole;
use crate::npz::{self, Element, RawArray};
use posenc_files::limits::MAX_RECORD_BYTES;

const TYPES: &str = "floating-point numbers of 16, 32 or 64 bits";

/// An array of numbers in C order (last index fastest).
#[derive(Debug, Clone, PartialEq)]
pub struct NumberArray {
    pub shape: Vec<usize>,
    /// The elements; their number is the product of `shape`.
    pub numbers: Vec<f64>,
}

/// Reads an array of floating-point numbers of 16, 32 or 64 bits from a `.npy`, `.npz` or `.safetensors` file.
///
/// `name` may be `None` if the file contains one array.
pub fn read_numbers(path: &Path, name: Option<&str>) -> Result<NumberArray, DataError> {
    let ending = path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
    match (ending.as_str(), name) {
        ("npy", None) => Ok(of_raw(npz::read_npy(path, FLOATS, MAX_RECORD_BYTES)?)),
        ("npy", Some(name)) => Err(DataError::at(
            path,
            format!("a .npy file contains one array without a name; remove the name '{name}'"),
        )),
        ("npz", name) => {
            let name = chosen(path, name, npz::array_names(path)?)?;
            Ok(of_raw(npz::read_within(path, &name, FLOATS, MAX_RECORD_BYTES)?))
        }
        ("safetensors", name) => safetensor(path, name),
        _ => Err(DataError::at(path, "allowed endings: .npy, .npz, .safetensors".to_owned())),
    }
}

const FLOATS: &[Element] = &[Element::Half, Element::Float, Element::Double];

fn chosen(path: &Path, name: Option<&str>, mut present: Vec<String>) -> Result<String, DataError> {
    match (name, present.len()) {
        (Some(name), _) => Ok(name.to_owned()),
        (None, 1) => Ok(present.remove(0)),
        (None, _) => {
            let message = match &present[..] {
                [] => "the file contains no arrays".to_owned(),
                names => format!(
                    "the file contains several arrays ({}); name the one to read",
                    names.join(", ")
                ),
            };
            Err(DataError::at(path, message))
        }
    }
}

fn of_raw(array: RawArray) -> NumberArray {
    let numbers = match array.element {
        Element::Double => numbers(&array.bytes, f64::from_le_bytes),
        Element::Half => numbers(&array.bytes, f16::from_le_bytes),
        _ => numbers(&array.bytes, f32::from_le_bytes),
    };
    NumberArray { shape: array.shape, numbers }
}

fn numbers<const N: usize, T: Into<f64>>(bytes: &[u8], of: fn([u8; N]) -> T) -> Vec<f64> {
    bytes.as_chunks().0.iter().map(|bytes| of(*bytes).into()).collect()
}

fn safetensor(path: &Path, name: Option<&str>) -> Result<NumberArray, DataError> {
    let wrong = |reason: String| DataError::at(path, reason);
    let bytes = read_whole(path, "the file of tensors", MAX_RECORD_BYTES)?;
    let tensors = SafeTensors::deserialize(&bytes)
        .map_err(|e| wrong(format!("not a readable safetensors file ({e}); write it again")))?;
    let present = || {
        let mut names: Vec<String> =
            tensors.names().iter().map(|name| (*name).to_owned()).collect();
        names.sort();
        names
    };
    let name = chosen(path, name, present())?;
    let tensor = tensors.tensor(&name).map_err(|_| {
        wrong(format!(
            "no tensor named '{name}'; the file contains {}",
            list(&present(), "no tensors")
        ))
    })?;
    let numbers = match tensor.dtype() {
        Dtype::F64 => numbers(tensor.data(), f64::from_le_bytes),
        Dtype::F32 => numbers(tensor.data(), f32::from_le_bytes),
        Dtype::F16 => numbers(tensor.data(), f16::from_le_bytes),
        Dtype::BF16 => numbers(tensor.data(), bf16::from_le_bytes),
        other => {
            return Err(wrong(format!(
                "tensor '{name}' has elements of type {other:?}; allowed: {TYPES}"
            )));
        }
    };
    Ok(NumberArray { shape: tensor.shape().to_vec(), numbers })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Write as _;

    use safetensors::tensor::TensorView;

    use super::*;

    /// What `numpy.save` writes for an array of shape (2, 3).
    fn npy(descr: &str, order: &str, bytes: &[u8]) -> Vec<u8> {
        let mut header =
            format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': (2, 3), }}");
        while (10 + header.len() + 1) % 64 != 0 {
            header.push(' ');
        }
        header.push('\n');
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend((header.len() as u16).to_le_bytes());
        file.extend(header.as_bytes());
        file.extend(bytes);
        file
    }

    fn zipped(arrays: &[(&str, Vec<u8>)]) -> Vec<u8> {
        let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        for (name, bytes) in arrays {
            let options = zip::write::SimpleFileOptions::default();
            archive.start_file(format!("{name}.npy"), options).unwrap();
            archive.write_all(bytes).unwrap();
        }
        archive.finish().unwrap().into_inner()
    }

    const NUMBERS: [f64; 6] = [0.5, -1.25, 3.0, 4.0, 5.5, -6.0];

    fn bytes<const N: usize>(of: impl Fn(f64) -> [u8; N]) -> Vec<u8> {
        NUMBERS.iter().flat_map(|x| of(*x)).collect()
    }

    fn double_bytes() -> Vec<u8> {
        bytes(f64::to_le_bytes)
    }

    fn tensors(names: &[&str], dtype: Dtype, bytes: &[u8]) -> Vec<u8> {
        let view = || TensorView::new(dtype, vec![2, 3], bytes).unwrap();
        let all: BTreeMap<&str, TensorView<'_>> = names.iter().map(|n| (*n, view())).collect();
        safetensors::serialize(&all, None).unwrap()
    }

    /// Catches a format, a precision or an array name that yields other numbers.
    #[test]
    fn all_formats_contain_the_same_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let double = npy("<f8", "False", &double_bytes());
        let single = npy("<f4", "False", &bytes(|x| (x as f32).to_le_bytes()));
        let (half, brain) =
            (bytes(|x| f16::from_f64(x).to_le_bytes()), bytes(|x| bf16::from_f64(x).to_le_bytes()));
        let expected = NumberArray { shape: vec![2, 3], numbers: NUMBERS.to_vec() };
        for (file, name, bytes) in [
            ("a.npy", None, double.clone()),
            ("b.NPY", None, single.clone()),
            ("c.npz", None, zipped(&[("psi", double.clone())])),
            ("d.npz", Some("psi"), zipped(&[("x", double), ("psi", single)])),
            ("e.safetensors", None, tensors(&["psi"], Dtype::F64, &double_bytes())),
            ("f.safetensors", Some("psi"), tensors(&["psi", "x"], Dtype::F16, &half)),
            ("g.safetensors", None, tensors(&["psi"], Dtype::BF16, &brain)),
            ("h.npy", None, npy("<f2", "False", &half)),
            ("i.npy", None, npy(">f8", "False", &bytes(f64::to_be_bytes))),
        ] {
            let path = folder.path().join(file);
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(read_numbers(&path, name).unwrap(), expected, "{file}");
        }
    }

    /// Catches files that are read although the named array is missing or unsupported, and errors without a remedy.
    #[test]
    fn files_without_a_number_array_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let double = npy("<f8", "False", &double_bytes());
        let tensors = |names: &[&str]| tensors(names, Dtype::F64, &double_bytes());
        for (file, name, bytes, part) in [
            ("a.npy", Some("psi"), double.clone(), "remove the name"),
            ("b.npy", None, double[..double.len() - 8].to_vec(), "announces 48 bytes, but only 40"),
            ("c.npy", None, npy("<f8", "True", &double_bytes()), "ascontiguousarray"),
            ("d.npy", None, npy("<i8", "False", &double_bytes()), "x.astype('float64')"),
            ("l.npy", None, npy("<c8", "False", &double_bytes()), "[x.real, x.imag]"),
            ("e.npy", None, b"no array".to_vec(), "does not start like"),
            (
                "f.npz",
                None,
                zipped(&[("x", double.clone()), ("psi", double.clone())]),
                "several arrays (psi, x)",
            ),
            ("g.npz", Some("y"), zipped(&[("x", double.clone())]), "no array named 'y'"),
            ("h.safetensors", None, tensors(&["psi", "x"]), "several arrays (psi, x)"),
            ("n.safetensors", None, tensors(&[]), "contains no arrays"),
            (
                "i.safetensors",
                Some("y"),
                tensors(&["x"]),
                "no tensor named 'y'; the file contains x",
            ),
            ("j.safetensors", None, b"no tensors".to_vec(), "not a readable safetensors"),
            ("k.csv", None, double, ".safetensors"),
        ] {
            let path = folder.path().join(file);
            std::fs::write(&path, bytes).unwrap();
            let error = read_numbers(&path, name).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains(file), "{file}: {error}");
        }
        let missing = read_numbers(&folder.path().join("none.npy"), None).unwrap_err().to_string();
        assert!(missing.contains("file not found"), "{missing}");
    }
}
