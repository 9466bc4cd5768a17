use std::path::Path;

use posenc_data::npz::{array_names, read_array};

use crate::support::{assert_refused, assert_says, header, npy, write_npz};

/// An archive with one array of this header and these elements.
fn archive(header: &str, elements: &[u8]) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::with_suffix(".npz").unwrap();
    write_npz(file.path(), &[("test_data", npy(header, elements))]);
    file
}

#[test]
fn a_written_array_is_read_back_unchanged() {
    let elements: Vec<u8> = (0..24).collect();
    let file = archive(&header("|u1", "2, 2, 2, 3"), &elements);
    let array = read_array(file.path(), "test_data").unwrap();
    assert_eq!((array.shape, array.bytes), (vec![2, 2, 2, 3], elements));
    assert_eq!(array_names(file.path()).unwrap(), ["test_data"]);
}

#[test]
fn a_missing_file_is_named() {
    let error = read_array(Path::new("/nowhere/data_div2k.npz"), "test_data").unwrap_err();
    assert_says(&error, &["/nowhere/data_div2k.npz", "file not found"]);
}

#[test]
fn a_missing_key_lists_the_keys_that_are_there() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let array = npy(&header("|u1", "1,"), &[1]);
    write_npz(file.path(), &[("train_data", array.clone()), ("labels", array)]);
    let error = read_array(file.path(), "test_data").unwrap_err();
    assert_says(&error, &["'test_data'", "labels, train_data", "right file"]);
}

#[test]
fn an_archive_that_was_cut_short_is_recognized() {
    let file = archive(&header("|u1", "100,"), &[5; 100]);
    let bytes = std::fs::read(file.path()).unwrap();
    for keep in [0, 10, bytes.len() / 2, bytes.len() - 1] {
        std::fs::write(file.path(), &bytes[..keep]).unwrap();
        let error = read_array(file.path(), "test_data").unwrap_err();
        assert_says(&error, &["not a complete npz archive", "fetch the file again"]);
    }
}

/// Catches an array that its header does not describe, and a cure that wraps values around, or makes zeros and ones of them. An allocation of
/// 10¹² bytes would abort the process; 10²⁴ would overflow the product.
#[test]
fn arrays_that_their_header_does_not_describe_are_refused() {
    let cure = "(255 * numpy.clip(x / WHITE, 0, 1)).round().astype('uint8')";
    let too_large = "at most 1073741824";
    for (descr, shape, n, parts) in [
        ("|u1", "10,", 9, ["'test_data'", "10 bytes, but only 9"]),
        ("|u1", "10,", 11, ["10 bytes", "more follow"]),
        ("<f4", "1,", 8, ["'|u1'", cure]),
        (">f2", "1,", 8, [">f2", cure]),
        ("|b1", "1,", 8, ["|b1", cure]),
        ("<u2", "1,", 8, ["<u2", cure]),
        ("<i8", "1,", 8, ["<i8", cure]),
        ("|u1", "1000000, 1000000", 8, ["announces", too_large]),
        ("|u1", "1000000, 1000000, 1000000, 1000000", 8, ["announces", too_large]),
        ("|u1", "18446744073709551615, 2", 8, ["announces", too_large]),
        // Within the limit, but not in the file: memory grows with the data that is read.
        ("|u1", "1000000000", 8, ["'test_data'", "only 8 follow"]),
    ] {
        let file = archive(&header(descr, shape), &vec![0; n]);
        assert_refused(read_array(file.path(), "test_data"), &parts);
    }
}

#[test]
fn fortran_order_is_refused_with_the_cure() {
    let text = header("|u1", "2, 2").replace("False", "True");
    let error = read_array(archive(&text, &[0; 4]).path(), "test_data").unwrap_err().to_string();
    assert!(error.contains("Fortran order") && error.contains("ascontiguousarray"), "{error}");
    assert!(!error.contains("damaged"), "{error}");
}

#[test]
fn an_entry_that_is_no_npy_file_is_damaged() {
    let file = tempfile::NamedTempFile::new().unwrap();
    write_npz(file.path(), &[("test_data", b"not an array at all".to_vec())]);
    assert_refused(read_array(file.path(), "test_data"), &["'test_data'", "like a .npy file"]);
}

#[test]
fn a_flipped_bit_is_found_by_the_checksum() {
    let file = archive(&header("|u1", "1000,"), &[5; 1000]);
    let mut bytes = std::fs::read(file.path()).unwrap();
    let sound = read_array(file.path(), "test_data").unwrap();
    // Somewhere in the compressed elements, after the two headers.
    let at = bytes.windows(4).position(|window| window == b"PK\x01\x02").unwrap() - 4;
    bytes[at] ^= 0x10;
    std::fs::write(file.path(), &bytes).unwrap();
    assert!(read_array(file.path(), "test_data").is_err(), "{} elements", sound.bytes.len());
}
