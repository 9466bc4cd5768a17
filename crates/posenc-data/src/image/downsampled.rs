//! ImageNet downsampled to 64 × 64 (or another side), in the two public variants. Their filters differ, so results on one do not compare
//! with results on the other.
//!
//! - [`Variant::Archives`] (Chrabaszcz et al. 2017): `train_data_batch_1.npz` … and `val_data.npz`, each with `data`, bytes
//!   `(n, 3 side²)`: all of red row by row, then green, then blue. `labels` and `mean` are not read.
//! - [`Variant::Pictures`] (van den Oord et al. 2016): folders `train_64x64` and `valid_64x64` of PNG files.

use std::path::{Path, PathBuf};

use posenc_files::limits::MAX_ARCHIVE_BYTES;
use posenc_math::random::below;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::directory::file_name;
use crate::error::DataError;
use crate::files::{files_in, has_ending};
use crate::image::picture::Picture;
use crate::npz::{self, Element};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Split {
    Training,
    Validation,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    Archives,
    Pictures,
}

/// The images of a split, read on demand.
#[derive(Debug, Clone)]
pub struct DownsampledImages {
    side: usize,
    variant: Variant,
    /// Archives or pictures, sorted by name (numbers by value).
    files: Vec<PathBuf>,
    /// Number of files in the folder that are not pictures.
    skipped: usize,
    place: Place,
    open: Vec<u8>,
}

/// Position in a random pass over all images.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    left: Vec<usize>,
    file: Option<usize>,
    /// Images of the current file that remain.
    images: Vec<usize>,
}

impl DownsampledImages {
    /// Finds the images of `side` × `side` pixels of a split in `folder`. If both variants exist, archives are used.
    pub fn open(folder: &Path, side: usize, split: Split) -> Result<Self, DataError> {
        let (prefix, pictures) = match split {
            Split::Training => ("train_data_batch_", format!("train_{side}x{side}")),
            Split::Validation => ("val_data", format!("valid_{side}x{side}")),
        };
        let mut files = files_in(folder)?;
        files.retain(|path| {
            let name = file_name(path);
            name.starts_with(prefix) && name.ends_with(".npz")
        });
        let (mut variant, mut skipped) = (Variant::Archives, 0);
        let inner = folder.join(&pictures);
        if files.is_empty() && inner.is_dir() {
            variant = Variant::Pictures;
            files = files_in(&inner)?;
            let total = files.len();
            files.retain(|path| has_ending(path, &["png"]));
            skipped = total - files.len();
        }
        if files.is_empty() {
            let hint = format!(
                "downsampled ImageNet is expected as archives train_data_batch_1.npz, …, val_data.npz or as folders \
                 of PNG files train_{side}x{side} and valid_{side}x{side}"
            );
            let wanted = format!("{prefix}*.npz and no pictures in {pictures}/");
            return Err(DataError::missing(folder, wanted, hint));
        }
        // batch_10 after batch_9.
        files.sort_by_key(|path| (file_name(path).len(), path.clone()));
        let (place, open) = Default::default();
        Ok(DownsampledImages { side, variant, files, skipped, place, open })
    }

    pub fn variant(&self) -> Variant {
        self.variant
    }

    /// Number of skipped files in the folder of pictures, which are not pictures.
    pub fn skipped(&self) -> usize {
        self.skipped
    }

    fn bytes(&self) -> usize {
        3 * self.side * self.side
    }

    /// The next `count` images in random order, each as interleaved RGB bytes, row by row. All images of a file come before those of the
    /// next file, and all files before the first repeats. Only one archive is in memory at a time.
    pub fn batch(&mut self, count: usize, rng: &mut ChaCha8Rng) -> Result<Vec<Vec<u8>>, DataError> {
        let mut images = Vec::with_capacity(count);
        while images.len() < count {
            if self.place.images.is_empty() {
                if self.place.left.is_empty() {
                    self.place.left = (0..self.files.len()).collect();
                }
                let next = below(rng, self.place.left.len());
                let file = self.place.left.swap_remove(next);
                self.open = self.read(&self.files[file])?;
                self.place.file = Some(file);
                self.place.images = (0..self.open.len() / self.bytes()).collect();
                continue;
            }
            let next = below(rng, self.place.images.len());
            let image = self.place.images.swap_remove(next);
            images.push(self.open[image * self.bytes()..][..self.bytes()].to_vec());
        }
        Ok(images)
    }

    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Resumes from a position in the same files. Returns `false`, without any change, if the position does not fit these files.
    pub fn go_on(&mut self, place: Place) -> Result<bool, DataError> {
        let open = match place.file {
            Some(file) if file < self.files.len() => self.read(&self.files[file])?,
            Some(_) => return Ok(false),
            None => Vec::new(),
        };
        let images = open.len() / self.bytes();
        let fits = place.left.iter().all(|&file| file < self.files.len())
            && place.images.iter().all(|&image| image < images);
        if fits {
            (self.place, self.open) = (place, open);
        }
        Ok(fits)
    }

    /// The first `count` images in file order, or all if there are fewer.
    pub fn first(&self, count: usize) -> Result<Vec<Vec<u8>>, DataError> {
        let mut images: Vec<Vec<u8>> = Vec::new();
        for file in &self.files {
            if images.len() >= count {
                break;
            }
            let read = self.read(file)?;
            let missing = count - images.len();
            images.extend(read.chunks_exact(self.bytes()).take(missing).map(<[u8]>::to_vec));
        }
        Ok(images)
    }

    /// All images of a file as interleaved RGB bytes.
    fn read(&self, path: &Path) -> Result<Vec<u8>, DataError> {
        match self.variant {
            Variant::Archives => self.read_archive(path),
            Variant::Pictures => self.read_picture(path),
        }
    }

    fn read_archive(&self, path: &Path) -> Result<Vec<u8>, DataError> {
        let array = npz::read_within(path, "data", &[Element::Byte], MAX_ARCHIVE_BYTES)?;
        let n = self.bytes();
        if !matches!(array.shape[..], [count, bytes] if count > 0 && bytes == n) {
            let required = format!("(n, {n}) with n at least 1: 3 colors of {0} × {0}", self.side);
            return Err(DataError::shape(path, "data", &array.shape, required));
        }
        let mut bytes = array.bytes;
        let pixels = self.side * self.side;
        let mut image = vec![0; self.bytes()];
        for planes in bytes.chunks_exact_mut(3 * pixels) {
            for (pixel, out) in image.chunks_exact_mut(3).enumerate() {
                for (color, out) in out.iter_mut().enumerate() {
                    *out = planes[color * pixels + pixel];
                }
            }
            planes.copy_from_slice(&image);
        }
        Ok(bytes)
    }

    fn read_picture(&self, path: &Path) -> Result<Vec<u8>, DataError> {
        let picture = Picture::read(path)?;
        let side = self.side as u32;
        if (picture.width(), picture.height()) != (side, side) || picture.is_deep() {
            let message = format!(
                "{} × {} pixels of {} bits, but {side} × {side} pixels of 8 bits are expected; fetch the file again or \
                 remove it",
                picture.width(),
                picture.height(),
                if picture.is_deep() { 16 } else { 8 }
            );
            return Err(DataError::at(path, message));
        }
        Ok(picture.into_rgb().into_raw())
    }
}
