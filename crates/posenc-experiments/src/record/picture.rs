//! Pictures that a unit produces in addition to its numbers, and their PNG files.

use std::io::Cursor;
use std::path::Path;

use crate::text::{MAX_RECORD_BYTES, read_bytes};

/// What a protocol measured, as an image.
///
/// Pixels are 8-bit sRGB values, row by row from the top, channels fastest.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    /// What it shows: one of [`NAMES`].
    pub name: String,
    pub signal: String,
    pub width: usize,
    pub height: usize,
    /// 1 (gray) or 3 (red, green, blue).
    pub channels: usize,
    /// `height * width * channels` values.
    pub pixels: Vec<u8>,
    /// PSNR of this picture in dB, for its caption.
    pub psnr: Option<f64>,
}

/// What a picture is in relation to its signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// The signal itself, which all methods share.
    Truth,
    /// A method's reconstruction of the signal.
    Reconstruction,
    /// The error of a reconstruction.
    Error,
}

/// A name that a picture may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name {
    pub name: &'static str,
    pub role: Role,
    /// Which part of the signal it shows, in words; empty for the whole.
    pub part: &'static str,
}

impl Name {
    const fn new(name: &'static str, role: Role, part: &'static str) -> Self {
        Name { name, role, part }
    }

    /// In words, such as `error, x–t slice`.
    pub fn words(&self) -> String {
        let role = match self.role {
            Role::Truth => "ground truth",
            Role::Reconstruction => "reconstruction",
            Role::Error => "error",
        };
        match self.part {
            "" => role.to_owned(),
            part => format!("{role}, {part}"),
        }
    }
}

/// All names that pictures may have.
pub const NAMES: &[Name] = &[
    Name::new("truth", Role::Truth, ""),
    Name::new("reconstruction", Role::Reconstruction, ""),
    Name::new("error", Role::Error, ""),
    Name::new("truth-frames", Role::Truth, "frames"),
    Name::new("frames", Role::Reconstruction, "frames"),
    Name::new("error-frames", Role::Error, "frames"),
    Name::new("truth-slice", Role::Truth, "x–t slice"),
    Name::new("slice", Role::Reconstruction, "x–t slice"),
    Name::new("error-slice", Role::Error, "x–t slice"),
    Name::new("true-boxes", Role::Truth, "boxes"),
    Name::new("boxes", Role::Reconstruction, "boxes"),
];

/// The name with this text; `None` if no name has it.
pub fn name(text: &str) -> Option<&'static Name> {
    NAMES.iter().find(|n| n.name == text)
}

/// Digits of the checksum in the name of a file.
const DIGITS: usize = 16;

/// Name of a picture's file in the record of an item, from its BLAKE3 checksum in hexadecimal. Equal pictures share one.
pub fn file_name(blake3: &str) -> String {
    format!("{}.png", &blake3[..DIGITS.min(blake3.len())])
}

/// Whether a name is one of [`file_name`].
pub fn is_file_name(name: &str) -> bool {
    let digits = name.strip_suffix(".png").unwrap_or_default();
    digits.len() == DIGITS && digits.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Why a file does not have the BLAKE3 checksum that begins with these digits; `None` if it does.
pub(super) fn damage(file: &Path, digits: &str) -> Option<String> {
    if !posenc_files::is_there(file) {
        return Some(format!("{}: is missing", file.display()));
    }
    match read_bytes(file, MAX_RECORD_BYTES) {
        Ok(bytes) if blake3::hash(&bytes).to_hex().starts_with(digits) => None,
        Ok(_) => {
            Some(format!("{}: damaged (its checksum does not match its content)", file.display()))
        }
        Err(e) => Some(e.to_string()),
    }
}

/// Whether the repository may contain pictures of data with this label: only generated signals, or no data. Other pictures belong to
/// third parties.
pub fn is_publishable(data: &str) -> bool {
    data == "-" || data.starts_with("embedded:")
}

/// Maximum number of pixels on a side.
const LARGEST: usize = 16_384;

/// Maximum number of pixels. A PNG file of a few kilobytes can contain this many, and a reader allocates all of them.
const MAX_PIXELS: usize = 1 << 26;

/// Maximum bytes that the decoder may allocate in addition to the pixels: a few rows, and text chunks, which our files do not have.
const MAX_DECODER_BYTES: usize = 1 << 23;

/// Why a picture cannot be kept or shown, and what is allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PictureError(String);

impl PictureError {
    fn of_file(reason: impl std::fmt::Display) -> Self {
        PictureError(format!("not a PNG file written by posenc: {reason}"))
    }
}

/// Whether a picture may have this size.
pub(super) fn check_size(width: usize, height: usize, channels: usize) -> Result<(), PictureError> {
    let sides = [width, height];
    let is_wrong = sides.iter().any(|s| *s == 0 || *s > LARGEST);
    if is_wrong || width * height > MAX_PIXELS || ![1, 3].contains(&channels) {
        return Err(PictureError(format!(
            "{width} × {height} pixels of {channels} channels; allowed: 1 to {LARGEST} on a side, {MAX_PIXELS} in all, 1 or 3 \
             channels"
        )));
    }
    Ok(())
}

impl Picture {
    /// A picture without a PSNR.
    pub fn new(
        name: impl Into<String>,
        signal: impl Into<String>,
        (width, height, channels): (usize, usize, usize),
        pixels: Vec<u8>,
    ) -> Self {
        let (name, signal) = (name.into(), signal.into());
        Picture { name, signal, width, height, channels, pixels, psnr: None }
    }

    /// Sets its PSNR in dB.
    pub fn psnr(mut self, psnr: f64) -> Self {
        self.psnr = Some(psnr);
        self
    }

    fn check(&self) -> Result<(), PictureError> {
        let Picture { width, height, channels, .. } = *self;
        if name(&self.name).is_none() {
            let names = NAMES.iter().map(|n| n.name).collect::<Vec<_>>().join(", ");
            return Err(PictureError(format!("no such name; allowed: {names}")));
        }
        if self.signal.is_empty() {
            return Err(PictureError("its signal has no name".into()));
        }
        check_size(width, height, channels)?;
        let (found, expected) = (self.pixels.len(), width * height * channels);
        if found != expected {
            let message = format!("{found} values, expected {expected} for its size");
            return Err(PictureError(message));
        }
        Ok(())
    }

    /// Whether the bytes of a PNG file are those that posenc writes for its pixels.
    pub fn is_own_file(bytes: &[u8]) -> bool {
        let own = Picture::from_png("truth", "-", bytes).and_then(|picture| picture.png());
        own.is_ok_and(|own| own == bytes)
    }

    /// The picture as a PNG file: the same bytes for the same pixels.
    pub fn png(&self) -> Result<Vec<u8>, PictureError> {
        self.check()?;
        let mut bytes = Vec::new();
        // Both sides are at most `LARGEST`.
        let mut encoder = png::Encoder::new(&mut bytes, self.width as u32, self.height as u32);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_color(match self.channels {
            1 => png::ColorType::Grayscale,
            _ => png::ColorType::Rgb,
        });
        // Not flate2: its back end, and thus the bytes, would depend on the features that other crates enable.
        encoder.set_deflate_compression(png::DeflateCompression::FdeflateUltraFast);
        encoder.set_filter(png::Filter::Adaptive);
        let mut writer = encoder.write_header().map_err(PictureError::of_file)?;
        writer.write_image_data(&self.pixels).map_err(PictureError::of_file)?;
        writer.finish().map_err(PictureError::of_file)?;
        Ok(bytes)
    }

    /// Reads a PNG file that [`Picture::png`] wrote. The PSNR is only in the record, so it is `None`.
    pub fn from_png(name: &str, signal: &str, bytes: &[u8]) -> Result<Self, PictureError> {
        let limits = png::Limits { bytes: MAX_DECODER_BYTES };
        let decoder = png::Decoder::new_with_limits(Cursor::new(bytes), limits);
        let mut reader = decoder.read_info().map_err(PictureError::of_file)?;
        let info = reader.info();
        let (width, height) = (info.width as usize, info.height as usize);
        let channels = match (info.color_type, info.bit_depth) {
            (png::ColorType::Grayscale, png::BitDepth::Eight) => 1,
            (png::ColorType::Rgb, png::BitDepth::Eight) => 3,
            (color, depth) => return Err(PictureError::of_file(format!("{color:?}, {depth:?}"))),
        };
        check_size(width, height, channels)?;
        let mut pixels = vec![0; width * height * channels];
        reader.next_frame(&mut pixels).map_err(PictureError::of_file)?;
        let picture = Picture::new(name, signal, (width, height, channels), pixels);
        picture.check()?;
        Ok(picture)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(size: (usize, usize, usize)) -> Picture {
        let n = size.0 * size.1 * size.2;
        let pixels = (0..n as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        Picture::new("truth", "a", size, pixels)
    }

    /// Catches pixels that do not read back equal, and bytes that depend on anything but the pixels, or are not recognized as ours.
    #[test]
    fn a_png_file_keeps_every_pixel() {
        for size in [(1, 1, 1), (7, 5, 3), (300, 2, 1), (64, 64, 3)] {
            let picture = noise(size);
            let bytes = picture.png().unwrap();
            assert_eq!(Picture::from_png("truth", "a", &bytes).unwrap(), picture);
            assert!(
                Picture::is_own_file(&bytes) && !Picture::is_own_file(&[&bytes[..], b"x"].concat())
            );
            let renamed = Picture { name: "error".into(), signal: "b".into(), ..picture };
            assert_eq!(renamed.psnr(3.0).png().unwrap(), bytes, "{size:?}");
        }
    }

    /// Catches another encoder or other settings, which would change every committed picture.
    #[test]
    fn the_bytes_are_pinned() {
        // Smooth with a little noise, as pictures are: every filter is used.
        let mut picture = noise((64, 48, 3));
        for (i, value) in picture.pixels.iter_mut().enumerate() {
            *value = (*value >> 5) + (i / 192 * 2) as u8 + (i / 3 % 64) as u8;
        }
        let bytes = picture.png().unwrap();
        let sum = blake3::hash(&bytes).to_hex().to_string();
        assert_eq!((bytes.len(), &sum[..16]), (3525, "199115415a79ba72"));
    }

    /// Catches data other than generated signals that counts as publishable.
    #[test]
    fn the_label_of_the_data_decides_what_is_publishable() {
        assert!(["embedded:dead-leaves", "-"].into_iter().all(is_publishable));
        for data in ["div2k-test", "other:div2k-test", "user:embedded", "embedded", ""] {
            assert!(!is_publishable(data), "{data}");
        }
    }

    #[test]
    fn wrong_pictures_are_refused() {
        let good = noise((4, 4, 1));
        let refused = |picture: Picture| picture.png().unwrap_err().to_string();
        let name = refused(Picture { name: "trut".into(), ..good.clone() });
        assert!(name.contains("allowed: truth, reconstruction"), "{name}");
        let signal = refused(Picture { signal: String::new(), ..good.clone() });
        assert_eq!(signal, "its signal has no name");
        for (width, height, channels) in
            [(0, 4, 1), (4, 20_000, 1), (4, 4, 2), (16_000, 16_000, 3), (usize::MAX, 4, 1)]
        {
            let size = refused(Picture { width, height, channels, ..good.clone() });
            let expected = format!("{width} × {height} pixels of {channels} channels; allowed:");
            assert!(size.starts_with(&expected), "{size}");
        }
        let short = refused(Picture { pixels: vec![0; 15], ..good.clone() });
        assert_eq!(short, "15 values, expected 16 for its size");
        let bytes = good.png().unwrap();
        assert!(Picture::from_png("truth", "a", &bytes[..bytes.len() / 2]).is_err());
        assert!(Picture::from_png("truth", "a", b"no PNG").is_err());
    }
}
