//! Arrays of numbers that other programs computed.

use std::collections::BTreeMap;

use half::{bf16, f16};
use posenc_data::{NumberArray, read_numbers};
use safetensors::Dtype;
use safetensors::tensor::TensorView;

use crate::support::{header, npy, zipped};

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
    let double = npy(&header("<f8", "2, 3"), &double_bytes());
    let single = npy(&header("<f4", "2, 3"), &bytes(|x| (x as f32).to_le_bytes()));
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
        ("h.npy", None, npy(&header("<f2", "2, 3"), &half)),
        ("i.npy", None, npy(&header(">f8", "2, 3"), &bytes(f64::to_be_bytes))),
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
    let double = npy(&header("<f8", "2, 3"), &double_bytes());
    let tensors = |names: &[&str]| tensors(names, Dtype::F64, &double_bytes());
    for (file, name, bytes, part) in [
        ("a.npy", Some("psi"), double.clone(), "remove the name"),
        ("b.npy", None, double[..double.len() - 8].to_vec(), "announces 48 bytes, but only 40"),
        (
            "c.npy",
            None,
            npy(&header("<f8", "2, 3").replace("False", "True"), &double_bytes()),
            "ascontiguousarray",
        ),
        ("d.npy", None, npy(&header("<i8", "2, 3"), &double_bytes()), "x.astype('float64')"),
        ("l.npy", None, npy(&header("<c8", "2, 3"), &double_bytes()), "[x.real, x.imag]"),
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
        ("i.safetensors", Some("y"), tensors(&["x"]), "no tensor named 'y'; the file contains x"),
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
