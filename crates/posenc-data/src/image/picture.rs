//! Image files: PNG, JPEG and TIFF with 8 or 16 bits for each channel.

use std::io::Cursor;
use std::path::{Path, PathBuf};

use image::imageops::FilterType;
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits, RgbImage};

use crate::clip::frame::Values;
use crate::digest;
use crate::error::{DataError, FORMATS};
use crate::files::{files_in, has_ending, read_whole};
use crate::image::{MAX_SIDE, jpeg};
use crate::pages::Page;
use crate::signal::Signal;
use posenc_files::limits::{MAX_ARRAY_BYTES, MAX_IMAGE_BYTES};

pub(crate) const IMAGE_ENDINGS: [&str; 5] = ["png", "jpg", "jpeg", "tif", "tiff"];

/// A decoded image file: gray or RGB, 8 or 16 bits, without alpha, upright.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    pub path: PathBuf,
    /// One of the variants `ImageLuma8`, `ImageLuma16`, `ImageRgb8`, `ImageRgb16`.
    image: DynamicImage,
    pub warnings: Vec<String>,
}

impl Picture {
    /// Reads the image file at `path`; its content, not its name, determines the format.
    ///
    /// An alpha channel is dropped, with a warning. A rotation stored in the file is applied. Of an animation, the still image is read, with
    /// a warning, and of a TIFF file the first page.
    pub fn read(path: &Path) -> Result<Self, DataError> {
        // A file is not much larger than its decoded image, so the same limit applies.
        Self::parse(path, &read_whole(path, "the image file", MAX_IMAGE_BYTES)?)
    }

    /// As [`Picture::read`], from the bytes of `path`, which is used in messages only.
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Self, DataError> {
        let (format, page) = page(path, bytes)?;
        let mut decoder = decoder(path, format, &page)?;
        // A file whose orientation cannot be read is treated as upright.
        let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
        let mut image = match format {
            ImageFormat::Jpeg => {
                jpeg::decode(bytes).map_err(|reason| not_an_image(path, &reason))?
            }
            _ => DynamicImage::from_decoder(decoder)
                .map_err(|error| not_an_image(path, &error.to_string()))?,
        };
        image.apply_orientation(orientation);

        let has_alpha = image.color().has_alpha();
        let image = match image {
            DynamicImage::ImageLuma8(_)
            | DynamicImage::ImageLuma16(_)
            | DynamicImage::ImageRgb8(_)
            | DynamicImage::ImageRgb16(_) => image,
            DynamicImage::ImageLumaA8(_) => DynamicImage::ImageLuma8(image.into_luma8()),
            DynamicImage::ImageLumaA16(_) => DynamicImage::ImageLuma16(image.into_luma16()),
            DynamicImage::ImageRgba8(_) => DynamicImage::ImageRgb8(image.into_rgb8()),
            DynamicImage::ImageRgba16(_) => DynamicImage::ImageRgb16(image.into_rgb16()),
            other => {
                let found = format!("{:?}", other.color());
                let message = format!(
                    "pixels of type {found} are not read; save it again with 8 or 16 bits for each of one (gray), three \
                     (RGB) or four (RGBA) channels"
                );
                return Err(DataError::at(path, message));
            }
        };
        let dropped = has_alpha.then(|| "the alpha channel is ignored".to_owned());
        let notes = page.note.iter().cloned().chain(dropped);
        let warnings = notes.map(|note| format!("{}: {note}", path.display())).collect();
        Ok(Picture { path: path.to_owned(), image, warnings })
    }

    pub fn width(&self) -> u32 {
        self.image.width()
    }

    pub fn height(&self) -> u32 {
        self.image.height()
    }

    /// 1 for gray, 3 for RGB.
    pub fn channels(&self) -> usize {
        self.image.color().channel_count().into()
    }

    /// The values of an image with 16 bits for each.
    fn words(&self) -> Option<&[u16]> {
        match &self.image {
            DynamicImage::ImageLuma16(image) => Some(image.as_raw()),
            DynamicImage::ImageRgb16(image) => Some(image.as_raw()),
            _ => None,
        }
    }

    pub(crate) fn is_deep(&self) -> bool {
        self.words().is_some()
    }

    /// SHA-256 of the pixels, row by row, channels fastest; 16-bit values with the low byte first. Unlike the file's checksum, it stays the
    /// same when an image is recompressed without loss.
    pub fn pixels_sha256(&self) -> String {
        match self.words() {
            Some(words) => {
                let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                digest::of_bytes(&bytes)
            }
            None => digest::of_bytes(self.image.as_bytes()),
        }
    }

    fn too_small(&self, purpose: &str, required: u32) -> DataError {
        let message = format!(
            "the image is {}×{} pixels, but {purpose} needs at least {required}×{required}; larger ones are cropped and \
             reduced, smaller ones are never enlarged: use a larger image",
            self.width(),
            self.height()
        );
        DataError::at(&self.path, message)
    }

    /// Makes a square of `size` pixels: cuts out the largest centered square and reduces it with the Catmull–Rom cubic
    /// filter, widened by the reduction factor so that it also low-passes. Filters the stored (gamma-encoded) values, as
    /// common tools do.
    pub fn fit(mut self, size: u32, purpose: &str) -> Result<Self, DataError> {
        let (width, height) = (self.width(), self.height());
        let side = width.min(height);
        if side < size {
            return Err(self.too_small(purpose, size));
        }
        if (width, height) != (size, size) {
            self.image = self
                .image
                .crop_imm((width - side) / 2, (height - side) / 2, side, side)
                .resize_exact(size, size, FilterType::CatmullRom);
            self.warnings.push(format!(
                "{}: {width}×{height} pixels, cropped to the central square and reduced to {size}×{size}",
                self.path.display()
            ));
        }
        Ok(self)
    }

    /// With 8 bits per channel; gray is repeated.
    pub(crate) fn into_rgb(self) -> RgbImage {
        self.image.into_rgb8()
    }

    /// Leaves an odd last row or column out, with a warning; an error for less than two rows or columns, or more values than
    /// [`MAX_ARRAY_BYTES`] allow.
    pub(crate) fn even(mut self) -> Result<Self, DataError> {
        let (width, height) = (self.width(), self.height());
        let bytes = 8 * u64::from(width) * u64::from(height) * self.channels() as u64;
        if bytes > MAX_ARRAY_BYTES {
            let what = format!("the whole image of {width}×{height} pixels in double precision");
            return Err(DataError::too_large(&self.path, what, bytes, MAX_ARRAY_BYTES));
        }
        if width.min(height) < 2 {
            return Err(self.too_small("any use", 2));
        }
        let (even_width, even_height) = (width & !1, height & !1);
        if (even_width, even_height) != (width, height) {
            self.image = self.image.crop_imm(0, 0, even_width, even_height);
            self.warnings.push(format!(
                "{}: {width}×{height} pixels; sides must be even; dropped the last {}: {even_width}×{even_height}",
                self.path.display(),
                match (width % 2, height % 2) {
                    (1, 1) => "column and row",
                    (1, _) => "column",
                    _ => "row",
                }
            ));
        }
        Ok(self)
    }

    /// All values, channels fastest.
    pub(crate) fn into_values(self) -> Values {
        match self.image {
            DynamicImage::ImageLuma16(image) => Values::Words(image.into_raw()),
            DynamicImage::ImageRgb16(image) => Values::Words(image.into_raw()),
            image => Values::Bytes(image.into_bytes()),
        }
    }

    /// As real numbers in [0, 1].
    pub fn to_signal(&self, name: String) -> Signal {
        let sides = vec![self.height() as usize, self.width() as usize];
        let values = match self.words() {
            Some(words) => words.iter().map(|&word| f64::from(word) / 65535.0).collect(),
            None => self.image.as_bytes().iter().map(|&byte| f64::from(byte) / 255.0).collect(),
        };
        Signal { name, sides, channels: self.channels(), values }
    }
}

/// Width and height of an image file as stored, from its header.
pub(crate) fn sides(path: &Path) -> Result<(u32, u32), DataError> {
    let bytes = read_whole(path, "the image file", MAX_IMAGE_BYTES)?;
    let (format, page) = page(path, &bytes)?;
    Ok(decoder(path, format, &page)?.dimensions())
}

fn not_an_image(path: &Path, reason: &str) -> DataError {
    let reason = reason.lines().next().unwrap_or_default().to_owned();
    DataError::NotAnImage { path: path.to_owned(), reason }
}

fn page<'a>(path: &Path, bytes: &'a [u8]) -> Result<(ImageFormat, Page<'a>), DataError> {
    let format = image::guess_format(bytes).map_err(|_| not_an_image(path, "unknown format"))?;
    let page = match format {
        ImageFormat::Png => Page::of_png(bytes),
        _ => Page::only(bytes),
    };
    Ok((format, page))
}

fn decoder<'a>(
    path: &Path,
    format: ImageFormat,
    page: &'a Page<'_>,
) -> Result<impl ImageDecoder + 'a, DataError> {
    let mut reader = ImageReader::with_format(Cursor::new(&page.bytes), format);
    let mut limits = Limits::default();
    limits.max_image_width = Some(MAX_SIDE);
    limits.max_image_height = Some(MAX_SIDE);
    limits.max_alloc = Some(MAX_IMAGE_BYTES);
    reader.limits(limits);
    let decoder = reader.into_decoder().map_err(|error| not_an_image(path, &error.to_string()))?;
    match decoder.total_bytes() {
        bytes if bytes > MAX_IMAGE_BYTES => {
            Err(DataError::too_large(path, "the image", bytes, MAX_IMAGE_BYTES))
        }
        _ => Ok(decoder),
    }
}

/// The image files directly inside `folder`, sorted by name; other files and sub-folders are skipped.
pub(crate) fn images_in(folder: &Path) -> Result<Vec<PathBuf>, DataError> {
    let mut files = files_in(folder)?;
    files.retain(|path| has_ending(path, &IMAGE_ENDINGS));
    if files.is_empty() {
        return Err(DataError::EmptyFolder(format!(
            "{}: the folder contains no images; put {FORMATS} files into it (sub-folders are not searched)",
            folder.display()
        )));
    }
    Ok(files)
}
