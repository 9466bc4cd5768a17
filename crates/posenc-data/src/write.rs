//! Saving signals: PNG images, folders of PNG frames, npz arrays.
//!
//! A file is written under a temporary name in the same folder and renamed, so that a killed program leaves no partial file.

use std::fs::File;
use std::io::{BufWriter, Cursor, Write};
use std::path::Path;

use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::PngEncoder;
use image::{ExtendedColorType, ImageEncoder, RgbImage};
use zip::CompressionMethod;
use zip::write::{SimpleFileOptions, ZipWriter};

use crate::error::DataError;
use crate::signal::Signal;

impl Signal {
    /// Writes an image as a PNG file of 8-bit values: v becomes 255 v, rounded. Values outside of [0, 1] are clipped (a reconstruction
    /// overshoots), and NaN becomes 0.
    pub fn write_png(&self, path: &Path) -> Result<(), DataError> {
        let unwritable = |reason: String| unwritable_signal(&self.name, reason);
        let color = match self.channels {
            1 => ExtendedColorType::L8,
            3 => ExtendedColorType::Rgb8,
            n => return Err(unwritable(format!("it has {n} channels; PNG files take 1 or 3"))),
        };
        let side = |pixels: usize| u32::try_from(pixels).unwrap_or(u32::MAX);
        let (width, height) = (side(self.width()), side(self.height()));
        let values: Vec<u8> = self.values.iter().map(|&value| to_byte(value)).collect();
        if values.is_empty() || values.len() != self.width() * self.height() * self.channels {
            return Err(unwritable(format!(
                "{} values do not make {width}×{height} pixels",
                values.len()
            )));
        }
        let mut png = Cursor::new(Vec::new());
        PngEncoder::new(&mut png)
            .write_image(&values, width, height, color)
            .map_err(|error| unwritable(error.to_string()))?;
        write_whole(path, |file| file.write_all(png.get_ref()))
    }

    /// Writes the frames of a clip as `frame-0000.png`, `frame-0001.png`, … into `folder`, which is created if it is missing.
    /// [`crate::load_clip_file`] reads them again, up to the rounding to 8 bits.
    /// A folder that holds images already is an error: they would mix.
    pub fn write_frames(&self, folder: &Path) -> Result<(), DataError> {
        posenc_files::make_folder(folder)
            .map_err(|source| DataError::unwritable(folder, source))?;
        if crate::image::picture::images_in(folder).is_ok() {
            let message = "the folder already contains images, which would mix with the frames; name another folder";
            return Err(DataError::at(folder, message));
        }
        let sides = &self.sides[1..];
        let frames = self.values.chunks(sides.iter().product::<usize>() * self.channels);
        for (t, values) in frames.enumerate() {
            let name = format!("{}, frame {t}", self.name);
            let frame = Signal { name, sides: sides.into(), values: values.into(), ..*self };
            frame.write_png(&folder.join(format!("frame-{t:04}.png")))?;
        }
        Ok(())
    }

    /// Writes a clip as an npz archive with one float32 array named `clip` of shape (frames, height, width,
    /// channels), which numpy and [`crate::load_clip_file`] read. Values are neither rounded nor clipped.
    pub fn write_npz(&self, path: &Path) -> Result<(), DataError> {
        let mut shape: String = self.sides.iter().map(|side| format!("{side}, ")).collect();
        shape.push_str(&self.channels.to_string());
        write_whole(path, |file| {
            let mut archive = ZipWriter::new(file);
            start_array(&mut archive, "clip", "<f4", &shape)?;
            for values in self.values.chunks(1 << 14) {
                let bytes: Vec<u8> =
                    values.iter().flat_map(|&value| (value as f32).to_le_bytes()).collect();
                archive.write_all(&bytes)?;
            }
            archive.finish()?.flush()
        })
    }
}

/// Starts an array of an npz archive; its elements are written next.
fn start_array<W: Write + std::io::Seek>(
    archive: &mut ZipWriter<W>,
    key: &str,
    descr: &str,
    shape: &str,
) -> std::io::Result<()> {
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}");
    // The format requires that elements start at a multiple of 64 bytes.
    let length = (10 + text.len() + 1).next_multiple_of(64) - 10;
    archive.start_file(format!("{key}.npy"), options)?;
    archive.write_all(b"\x93NUMPY\x01\x00")?;
    archive.write_all(&(length as u16).to_le_bytes())?;
    archive.write_all(format!("{text:<width$}\n", width = length - 1).as_bytes())
}

/// Writes images as an archive of downsampled ImageNet: `data` `(n, 3 side²)` with all of red, then green, then blue, and `labels`, all 1.
/// Each image consists of interleaved RGB bytes, row by row.
pub fn write_archive(path: &Path, side: usize, images: &[Vec<u8>]) -> Result<(), DataError> {
    let (n, bytes) = (images.len(), 3 * side * side);
    if let Some(wrong) = images.iter().position(|image| image.len() != bytes) {
        let reason =
            format!("{} bytes are not 3 colors of {side} × {side} pixels", images[wrong].len());
        return Err(unwritable_signal(&format!("image {wrong}"), reason));
    }
    write_whole(path, |file| {
        let mut archive = ZipWriter::new(file);
        start_array(&mut archive, "data", "|u1", &format!("{n}, {bytes}"))?;
        for image in images {
            for color in 0..3 {
                let plane: Vec<u8> = image.iter().skip(color).step_by(3).copied().collect();
                archive.write_all(&plane)?;
            }
        }
        start_array(&mut archive, "labels", "<i8", &format!("{n},"))?;
        for _ in images {
            archive.write_all(&1i64.to_le_bytes())?;
        }
        archive.finish()?.flush()
    })
}

/// The nearest 8-bit value; NaN, which no `clamp` catches, is cast to 0.
fn to_byte(value: f64) -> u8 {
    (value.clamp(0.0, 1.0) * 255.0).round() as u8
}

/// Writes a picture as a JPEG file of this quality, from 1 to 100.
pub(crate) fn write_jpeg(path: &Path, picture: &RgbImage, quality: u8) -> Result<(), DataError> {
    let mut bytes = Vec::new();
    let encoder = JpegEncoder::new_with_quality(&mut bytes, quality);
    let written = picture.write_with_encoder(encoder).map_err(std::io::Error::other);
    let written = written.and_then(|()| posenc_files::write_atomically(path, &bytes));
    written.map_err(|error| DataError::unwritable(path, error))
}

/// Error for a signal that a file format cannot store.
pub(crate) fn unwritable_signal(name: &str, reason: String) -> DataError {
    DataError::Invalid(format!("'{name}' cannot be written: {reason}"))
}

/// Writes a file completely or not at all.
fn write_whole(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<&mut File>) -> std::io::Result<()>,
) -> Result<(), DataError> {
    // A mistyped folder is an error, not a new folder.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder {
        std::fs::metadata(folder).map_err(|source| DataError::unwritable(path, source))?;
    }
    let written = posenc_files::write_with(path, |file| {
        let mut file = BufWriter::new(file);
        write(&mut file)?;
        file.flush()
    });
    written.map_err(|source| DataError::unwritable(path, source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_rounded_and_clipped() {
        assert_eq!([-0.2, 0.0, 0.5, 0.999, 1.0, 7.0].map(to_byte), [0, 0, 128, 255, 255, 255]);
        assert_eq!(to_byte(f64::NAN), 0);
    }
}
