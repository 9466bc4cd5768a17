//! Files and manifests that several tests use.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use image::{DynamicImage, RgbImage};
use posenc_data::{DataDirectory, DataSource, Identity, Manifest, Signal};
use posenc_files::testing::{Need, skip};
use zip::write::{SimpleFileOptions, ZipWriter};

/// The bytes of a `.npy` file with this header text, version 1.
pub fn npy(header: &str, elements: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(elements);
    bytes
}

/// A header as numpy writes it.
pub fn header(descr: &str, shape: &str) -> String {
    format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}\n")
}

pub fn zipped(arrays: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut archive = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in arrays {
        archive.start_file(format!("{name}.npy"), SimpleFileOptions::default()).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

pub fn write_npz(path: &Path, arrays: &[(&str, Vec<u8>)]) {
    std::fs::write(path, zipped(arrays)).unwrap();
}

/// `n` images of `size` × `size` RGB pixels that differ everywhere.
pub fn pixels(n: usize, size: usize) -> Vec<u8> {
    (0..n * size * size * 3).map(|i| (i * 7 + i / 251) as u8).collect()
}

/// Saves an RGB image whose red and green grow with the column and the row.
pub fn save_rgb(path: &Path, width: u32, height: u32) {
    let ramp = |at: u32, len: u32| (at * 255 / len.max(1)) as u8;
    let image =
        RgbImage::from_fn(width, height, |x, y| image::Rgb([ramp(x, width), ramp(y, height), 90]));
    DynamicImage::ImageRgb8(image).save(path).unwrap();
}

/// A manifest of four sets with the same checksum: three images in an npz archive or as files, one gray image, two clips of 4 frames of 8 × 8
/// pixels in a folder, and two that are always generated.
pub fn manifest(sha256: &str) -> Manifest {
    let set = |id: &str, kind: &str, count: usize, own: &str| {
        format!(
            "- id: {id}\n  title: This is {id}\n  license: none\n  origin: this test\n  kind: {kind}\n  count: {count}\n  {own}\n"
        )
    };
    let layout = |layout: &str| format!("layout: {{ {layout} }}\n  sha256: '{sha256}'");
    let images = "size: 16\n  used_by: [paper/fig1]\n  channels";
    let clips = "frames: 4\n  size: 8\n  used_by: []\n  channels: rgb";
    let trio = "key: test_data, any_of: [trio/first.npz, trio/second.npz, trio/files]";
    let films = format!("{}\n  substitutes_for: films nobody has", layout("any_of: [footage]"));
    let text = [
        "sets:\n".to_owned(),
        set("trio", "images", 3, &format!("{images}: rgb\n  {}", layout(trio))),
        set(
            "single",
            "images",
            1,
            &format!("{images}: gray\n  {}", layout("any_of: [single/image.png]")),
        ),
        set("folder", "clips", 2, &format!("{clips}\n  {films}")),
        set("always", "clips", 2, clips),
    ];
    Manifest::parse(&text.concat(), Path::new("manifest.yaml")).unwrap()
}

pub struct Data {
    pub folder: tempfile::TempDir,
    /// The checksum of all sets in the manifest.
    pub sha256: String,
}

impl Data {
    pub fn empty() -> Self {
        Data { folder: tempfile::tempdir().unwrap(), sha256: "0".repeat(64) }
    }

    /// With the archive of the first set, of `n` images.
    pub fn with_trio(n: usize) -> Self {
        let data = Data::empty();
        let bytes = pixels(n, 16);
        std::fs::create_dir(data.path("trio")).unwrap();
        let array = npy(&header("|u1", &format!("{n}, 16, 16, 3")), &bytes);
        write_npz(&data.path("trio/second.npz"), &[("test_data", array)]);
        Data { sha256: sha256(&bytes), ..data }
    }

    pub fn path(&self, relative: &str) -> PathBuf {
        self.folder.path().join(relative)
    }

    pub fn manifest(&self) -> Manifest {
        manifest(&self.sha256)
    }

    pub fn directory(&self) -> DataDirectory {
        DataDirectory::resolve(Some(self.folder.path()), Path::new("/")).unwrap()
    }

    pub fn source(&self) -> DataSource {
        DataSource::new(self.manifest(), self.directory())
    }
}

/// Identity and signals of a set.
pub fn loaded(source: &DataSource, id: &str, seed: u64) -> (Identity, Vec<Signal>) {
    (source.identity(id, seed).unwrap(), source.load(id, seed).unwrap())
}

pub fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest as _;
    sha2::Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Fails unless `message` contains all `parts`: the error, its place, the allowed values, the remedy.
#[track_caller]
pub fn assert_says(message: &impl ToString, parts: &[&str]) {
    let message = message.to_string();
    for part in parts {
        assert!(message.contains(part), "the message lacks {part:?}: {message}");
    }
}

/// As [`assert_says`], for the error of a result.
#[track_caller]
pub fn assert_refused<T>(result: Result<T, posenc_data::DataError>, parts: &[&str]) {
    let Err(error) = result else { panic!("it is accepted; expected: {parts:?}") };
    assert_says(&error, parts);
}

/// The directory with the real data; skips the calling test if it is missing or lacks this file or folder.
#[track_caller]
pub fn real(relative: &str) -> Option<PathBuf> {
    let directory = std::env::var_os("POSENC_DATA").filter(|value| !value.is_empty());
    let Some(directory) = directory.map(PathBuf::from) else {
        skip(Need::Data, "POSENC_DATA is not set");
        return None;
    };
    if !directory.join(relative).exists() {
        skip(Need::Data, format!("{} has no {relative}", directory.display()));
        return None;
    }
    Some(directory)
}
