//! Sizes of pictures, and shrunken copies for pages that would be too heavy.

use std::io::Cursor;

use image::codecs::jpeg::JpegEncoder;
use image::imageops::FilterType;
use image::{ImageFormat, ImageReader};

use crate::html::tags;

/// How a picture is shrunk: image pixels per pixel of the page, and JPEG quality.
pub type Shrinking = (f64, u8);

/// Steps from hardly visible to the smallest size.
pub const STEPS: [Shrinking; 5] = [(2.0, 88), (1.5, 80), (1.0, 75), (1.0, 50), (0.6, 40)];

pub fn is_picture(name: &str) -> bool {
    [".svg", ".png", ".jpg"].iter().any(|end| name.ends_with(end))
}

/// Whether a file is a drawing, which can be shown in any size.
pub fn is_drawing(name: &str) -> bool {
    name.ends_with(".svg")
}

/// Width and height of a picture, in pixels of the page.
pub fn size(name: &str, bytes: &[u8]) -> Option<(u32, u32)> {
    if is_drawing(name) {
        let text = std::str::from_utf8(bytes).ok()?;
        let root = tags(text).find(|tag| tag.name == "svg")?;
        let number = |name: &str| root.attribute(name)?.trim_end_matches("px").parse::<f64>().ok();
        return Some((number("width")?.round() as u32, number("height")?.round() as u32));
    }
    reader(bytes)?.into_dimensions().ok()
}

fn reader(bytes: &[u8]) -> Option<ImageReader<Cursor<&[u8]>>> {
    ImageReader::new(Cursor::new(bytes)).with_guessed_format().ok()
}

/// A picture as JPEG, no larger than needed for a display width of `shown`; `None` for a drawing, or if the result
/// would not be smaller.
pub fn shrunk(bytes: &[u8], shown: u32, (density, quality): Shrinking) -> Option<Vec<u8>> {
    let reader = reader(bytes)?;
    if !matches!(reader.format()?, ImageFormat::Png | ImageFormat::Jpeg) {
        return None;
    }
    let picture = reader.decode().ok()?.into_rgb8();
    let (width, height) = picture.dimensions();
    let wanted = ((f64::from(shown) * density).round() as u32).clamp(1, width.max(1));
    let picture = if wanted < width {
        let scale = f64::from(wanted) / f64::from(width);
        let high = ((f64::from(height) * scale).round() as u32).max(1);
        image::imageops::resize(&picture, wanted, high, FilterType::Triangle)
    } else {
        picture
    };
    let mut out = Vec::new();
    picture.write_with_encoder(JpegEncoder::new_with_quality(&mut out, quality)).ok()?;
    (out.len() < bytes.len()).then_some(out)
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A picture that PNG cannot compress.
    pub fn noise(width: u32, height: u32) -> Vec<u8> {
        let mut state = 1u32;
        let picture = image::RgbImage::from_fn(width, height, |_, _| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let [a, b, c, _] = state.to_be_bytes();
            image::Rgb([a, b, c])
        });
        let mut out = Cursor::new(Vec::new());
        picture.write_to(&mut out, ImageFormat::Png).unwrap();
        out.into_inner()
    }

    /// Catches steps that do not reduce the size in bytes, and pictures that are enlarged.
    #[test]
    fn every_step_is_lighter() {
        let picture = noise(200, 100);
        assert_eq!(size("a.png", &picture), Some((200, 100)));
        let mut before = picture.len();
        for step in STEPS {
            let small = shrunk(&picture, 100, step).unwrap();
            assert!(small.len() < before, "{step:?}: {} of {before}", small.len());
            assert!(size("a.jpg", &small).unwrap().0 <= 200);
            before = small.len();
        }
        assert_eq!(size("a.jpg", &shrunk(&picture, 100, (1.0, 75)).unwrap()), Some((100, 50)));
        assert_eq!(shrunk(b"<svg/>", 100, STEPS[0]), None);
        let drawing = b"<?xml?>\n<svg width=\"960\" height=\"480.4px\" viewBox=\"0 0 1 1\">";
        assert_eq!(size("a.svg", drawing), Some((960, 480)));
    }
}
