//! Files and manifests that several tests use.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use image::{DynamicImage, RgbImage};
use posenc_data::{DataDirectory, DataSource, ENVIRONMENT_VARIABLE, Manifest};
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

/// Writes an archive with these `.npy` files.
pub fn write_npz(path: &Path, arrays: &[(&str, Vec<u8>)]) {
    let mut archive = ZipWriter::new(std::fs::File::create(path).unwrap());
    for (name, bytes) in arrays {
        archive.start_file(format!("{name}.npy"), SimpleFileOptions::default()).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap();
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

/// A manifest of three images in an npz archive and one gray image, 16 × 16 pixels.
pub fn manifest(array_sha256: &str) -> Manifest {
    let gray_sha256 = "0".repeat(64);
    let text = format!(
        "sets:
- id: trio
  title: Three images
  kind: images
  license: none
  origin: this test
  size: 16
  channels: rgb
  count: 3
  layout: {{ key: test_data, any_of: [trio/first.npz, trio/second.npz] }}
  sha256: '{array_sha256}'
  used_by: [paper/fig1]
  stand_in: {{ generator: dead-leaves }}
- id: single
  title: One gray image
  kind: images
  license: none
  origin: this test
  size: 16
  channels: gray
  count: 1
  layout: {{ any_of: [single/image.png] }}
  sha256: '{gray_sha256}'
  used_by: []
  stand_in: {{ generator: dead-leaves }}
"
    );
    Manifest::parse(&text, Path::new("manifest.yaml")).unwrap()
}

/// A data directory with the archive of [`manifest`]'s first set, of `n` images.
pub struct Data {
    pub folder: tempfile::TempDir,
    pub sha256: String,
}

impl Data {
    pub fn empty() -> Self {
        Data { folder: tempfile::tempdir().unwrap(), sha256: "0".repeat(64) }
    }

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

    pub fn directory(&self) -> DataDirectory {
        DataDirectory::resolve(Some(self.folder.path()), Path::new("/")).unwrap()
    }

    pub fn source(&self) -> DataSource {
        DataSource::new(manifest(&self.sha256), self.directory())
    }
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

/// The directory with the real data; skips the calling test if it is missing or lacks this file or folder.
#[track_caller]
pub fn real(relative: &str) -> Option<PathBuf> {
    let directory = std::env::var_os(ENVIRONMENT_VARIABLE).filter(|value| !value.is_empty());
    let Some(directory) = directory.map(PathBuf::from) else {
        skip(Need::Data, format!("{ENVIRONMENT_VARIABLE} is not set"));
        return None;
    };
    if !directory.join(relative).exists() {
        skip(Need::Data, format!("{} has no {relative}", directory.display()));
        return None;
    }
    Some(directory)
}
