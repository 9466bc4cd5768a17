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
