use std::path::{Path, PathBuf};

use image::{DynamicImage, GrayImage, ImageBuffer, Rgb, Rgb32FImage, RgbaImage};
use posenc_data::Picture;
use tempfile::TempDir;

use crate::support::{assert_refused, assert_says, save_rgb};

/// A picture in a folder that is deleted when dropped.
fn saved(name: &str, image: DynamicImage) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    image.save(&path).unwrap();
    (folder, path)
}

/// As [`saved`], with the picture of [`save_rgb`].
fn rgb(name: &str, width: u32, height: u32) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    save_rgb(&path, width, height);
    (folder, path)
}

#[test]
fn png_and_tiff_give_the_same_pixels_and_jpeg_nearly_so() {
    let read = |name: &str| Picture::read(&rgb(name, 20, 12).1).unwrap();
    let (png, tiff, jpeg) = (read("a.png"), read("a.tiff"), read("a.jpg"));
    assert_eq!((png.width(), png.height(), png.channels()), (20, 12, 3));
    assert_eq!(png.pixels_sha256(), tiff.pixels_sha256());
    assert_eq!(png.to_signal(String::new()), tiff.to_signal(String::new()));
    let (exact, lossy) = (png.to_signal(String::new()), jpeg.to_signal(String::new()));
    let largest =
        exact.values.iter().zip(&lossy.values).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(largest > 0.0 && largest < 0.15, "{largest}");
}

#[test]
fn values_are_scaled_to_one_by_their_depth() {
    let words = ImageBuffer::from_vec(2, 1, vec![65535u16, 13107]).unwrap();
    let bytes = GrayImage::from_vec(2, 1, vec![255, 51]).unwrap();
    for image in [DynamicImage::ImageLuma16(words), DynamicImage::ImageLuma8(bytes)] {
        let (_folder, path) = saved("gray.png", image);
        assert_eq!(Picture::read(&path).unwrap().to_signal(String::new()).values, [1.0, 0.2]);
    }
}

#[test]
fn the_checksum_of_the_pixels_has_16_bit_values_low_byte_first() {
    let deep = ImageBuffer::from_fn(1, 1, |_, _| Rgb([0x0102u16, 0x0304, 0x0506]));
    let (_folder, path) = saved("deep.png", DynamicImage::ImageRgb16(deep));
    let expected = crate::support::sha256(&[2, 1, 4, 3, 6, 5]);
    assert_eq!(Picture::read(&path).unwrap().pixels_sha256(), expected);
}

#[test]
fn alpha_is_dropped_with_a_warning() {
    let clear = RgbaImage::from_vec(1, 1, vec![10, 20, 30, 0]).unwrap();
    let (_folder, path) = saved("clear.png", DynamicImage::ImageRgba8(clear));
    let picture = Picture::read(&path).unwrap();
    assert_eq!(picture.to_signal(String::new()).values, [10.0 / 255.0, 20.0 / 255.0, 30.0 / 255.0]);
    assert_says(&picture.warnings.join("\n"), &["clear.png", "alpha channel is ignored"]);
}

#[test]
fn a_missing_image_and_a_file_that_is_no_image_are_distinguished() {
    let error = Picture::read(Path::new("/nowhere/a.png")).unwrap_err();
    assert_says(&error, &["/nowhere/a.png", "file not found"]);
    // The content counts, not the name.
    let (_folder, real) = rgb("real.png", 3, 3);
    let path = real.with_file_name("note.png");
    std::fs::write(&path, "only words").unwrap();
    let allowed = ["note.png", "not a readable image", "PNG, JPEG or TIFF"];
    assert_refused(Picture::read(&path), &allowed);
    std::fs::rename(real, &path).unwrap();
    assert!(Picture::read(&path).is_ok());
}

#[test]
fn an_image_that_was_cut_short_is_an_error() {
    let (_folder, path) = rgb("half.png", 40, 40);
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    assert_refused(Picture::read(&path), &["half.png", "not a readable image"]);
}

/// Catches a decoder that fills the missing part of a picture, or reads what follows it as pixels.
#[test]
fn truncated_jpegs_are_refused_and_what_follows_a_whole_one_is_ignored() {
    let (_folder, path) = rgb("a.jpg", 64, 48);
    let parse = |parts: &[&[u8]]| Picture::parse(&path, &parts.concat());
    // With restart markers, subsampled colors and ten scans.
    let progressive = include_bytes!("../data/progressive.jpg").to_vec();
    for whole in [std::fs::read(&path).unwrap(), progressive] {
        let picture = parse(&[&whole]).unwrap();
        for tail in [&b"a video"[..], b"\xFF\xD9", &whole, &whole[..whole.len() / 2]] {
            assert_eq!(parse(&[&whole, tail]).unwrap(), picture);
        }
        let scan = whole.windows(2).position(|pair| pair == b"\xFF\xDA").unwrap();
        for cut in (scan + 20..whole.len() - 40).step_by(5) {
            for tail in [&b"\xFF\xD9"[..], b"MotionPhoto_Data\xFF\xD9", &[0x5A; 9000], &whole] {
                let error = parse(&[&whole[..cut], tail, b"\xFF\xD9"]).err();
                let error = error.unwrap_or_else(|| panic!("accepted: {cut} and {tail:?}"));
                assert_says(&error, &["a.jpg", "truncated"]);
            }
        }
    }
}

#[test]
fn floating_point_pixels_are_refused() {
    let (_folder, path) = saved("float.tiff", DynamicImage::ImageRgb32F(Rgb32FImage::new(2, 2)));
    assert_refused(Picture::read(&path), &["float.tiff", "32F", "8 or 16 bits"]);
}

fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _: u32| {
        if crc & 1 == 1 { 0xEDB8_8320 ^ (crc >> 1) } else { crc >> 1 }
    };
    !bytes.iter().fold(!0, |crc: u32, &byte| (0..8).fold(crc ^ u32::from(byte), step))
}

// Decoding would allocate 2.7 GB, or more than any machine has.
#[test]
fn a_header_that_announces_a_giant_image_is_refused() {
    for side in [30_000u32, 1_000_000] {
        let (_folder, path) = rgb("giant.png", 4, 4);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[16..20].copy_from_slice(&side.to_be_bytes());
        bytes[20..24].copy_from_slice(&side.to_be_bytes());
        let crc = crc32(&bytes[12..29]);
        bytes[29..33].copy_from_slice(&crc.to_be_bytes());
        std::fs::write(&path, bytes).unwrap();
        assert_refused(Picture::read(&path), &["giant.png"]);
    }
}

#[test]
fn a_larger_image_is_cut_to_the_middle_and_reduced() {
    let (_folder, path) = rgb("wide.png", 64, 32);
    let picture = Picture::read(&path).unwrap().fit(16, "the test").unwrap();
    assert_eq!((picture.width(), picture.height()), (16, 16));
    assert_says(&picture.warnings.join("\n"), &["wide.png", "64×32", "16×16"]);
    let image = picture.to_signal(String::new());
    // Red runs from 0 to 1 over 64 columns; the middle 32 keep a quarter to three quarters of it.
    let channel = |c: usize| -> Vec<f64> { image.values[c..].iter().step_by(3).copied().collect() };
    let red = channel(0);
    for (x, value) in red[..16].iter().enumerate() {
        let expected = (16.0 + 2.0 * x as f64 + 0.5) / 64.0;
        assert!((value - expected).abs() < 0.02, "column {x}: {value} against {expected}");
    }
    let green = channel(1);
    assert!(green[0] < 0.05 && green[15 * 16] > 0.9, "rows are not kept");
}

#[test]
fn an_image_of_the_right_size_is_left_alone() {
    let (_folder, path) = rgb("exact.png", 16, 16);
    let picture = Picture::read(&path).unwrap();
    assert_eq!(picture.clone().fit(16, "the test").unwrap(), picture);
}
