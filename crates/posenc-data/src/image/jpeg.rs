//! JPEG files. Lenient decoders fill the missing part of a truncated picture, or read what follows it as pixels.

use std::collections::BTreeMap;

use image::{DynamicImage, GrayImage, RgbImage};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::{bytestream::ZCursor, colorspace::ColorSpace, options::DecoderOptions};

use crate::image::MAX_SIDE;

/// Maximum number of superfluous bytes at the end of a scan; some cameras write a few.
const MAX_SUPERFLUOUS: usize = 4;

/// Decodes the first picture of a file as 8-bit gray or RGB values. What follows it is ignored: phones append a video or more pictures.
pub(crate) fn decode(bytes: &[u8]) -> Result<DynamicImage, String> {
    let truncated = |reason: &str| format!("the file is truncated: {reason}");
    let (data, last_scan) = first_picture(bytes)
        .ok_or_else(|| truncated("its first picture has no end marker or too few scans"))?;
    // Without its last bytes, a picture is incomplete, unless they come from something behind a truncated scan.
    let shorter = data.get(..data.len().saturating_sub(MAX_SUPERFLUOUS));
    let shorter = shorter.filter(|_| last_scan > MAX_SUPERFLUOUS).map(decode_strictly);
    let image = decode_strictly(&data)
        .map_err(|reason| format!("the file is truncated or damaged: {reason}"))?;
    match shorter {
        Some(Ok(other)) if other == image => Err(truncated("other data follow an incomplete scan")),
        _ => Ok(image),
    }
}

fn decode_strictly(data: &[u8]) -> Result<DynamicImage, String> {
    // No Huffman code consists of ones alone, so reading beyond the data is an error. After an end marker, the decoder would read zeros.
    let data = [data, &[0xFF, 0].repeat(16), &[0xFF, 0xD9]].concat();
    let side = MAX_SIDE as usize;
    let options = DecoderOptions::default().set_strict_mode(true);
    let options = options.set_max_width(side).set_max_height(side);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(&data), options);
    decoder.decode_headers().map_err(|error| error.to_string())?;
    let is_gray = decoder.input_colorspace() == Some(ColorSpace::Luma);
    let colors = if is_gray { ColorSpace::Luma } else { ColorSpace::RGB };
    decoder.set_options(options.jpeg_set_out_colorspace(colors));
    let pixels = decoder.decode().map_err(|error| error.to_string())?;
    let (width, height) = decoder.dimensions().unwrap_or_default();
    let (width, height) = (width as u32, height as u32);
    let image = match is_gray {
        true => GrayImage::from_raw(width, height, pixels).map(DynamicImage::from),
        false => RgbImage::from_raw(width, height, pixels).map(DynamicImage::from),
    };
    image.ok_or_else(|| "too few pixels".to_owned())
}

/// The headers and scans of the first picture, without its end marker and other segments, and the length of the last scan's data. `None` if
/// there is no end marker, or if a coefficient is not in the scans with all its digits.
fn first_picture(bytes: &[u8]) -> Option<(Vec<u8>, usize)> {
    let (mut picture, mut rest) = (vec![0xFF, 0xD8], bytes.get(2..)?);
    // By component, one bit for each of 64 coefficients.
    let mut missing = BTreeMap::new();
    let (mut is_progressive, mut last_scan) = (false, 0);
    loop {
        // Bytes between segments are skipped, as decoders do.
        rest = rest.get(place_of_marker(rest, |_| true)?..)?;
        let [_, marker, after @ ..] = rest else { return None };
        rest = after;
        let segment = match marker {
            0xD9 => break,
            0xD8 => return None,
            0x01 | 0xD0..=0xD7 => continue,
            _ => rest.split_off(..usize::from(u16::from_be_bytes(*rest.first_chunk()?)))?,
        };
        // Of the other segments, only those about the colors matter.
        if matches!(marker, 0xE1..=0xED | 0xEF | 0xFE) {
            continue;
        }
        picture.extend([0xFF, *marker]);
        picture.extend(segment);
        match (marker, segment) {
            (0xC0..=0xC2, [_, _, _, _, _, _, _, _, components @ ..]) => {
                is_progressive = *marker == 0xC2;
                missing.extend(components.chunks(3).map(|component| (component[0], u64::MAX)));
            }
            (0xDA, [_, _, n, header @ ..]) => {
                let (components, spectrum) = header.split_at_checked(2 * usize::from(*n))?;
                let found = match *spectrum {
                    _ if !is_progressive => u64::MAX,
                    [first @ ..=63, last @ ..=63, digits] if digits & 15 == 0 => {
                        u64::MAX >> (63 - last) & u64::MAX << first
                    }
                    _ => 0,
                };
                for component in components.chunks(2) {
                    missing.entry(component[0]).and_modify(|missing| *missing &= !found);
                }
                last_scan = place_of_marker(rest, |marker| !(0xD0..=0xD7).contains(&marker))?;
                picture.extend(rest.split_off(..last_scan)?);
            }
            _ => {}
        }
    }
    missing.values().all(|missing| *missing == 0).then_some((picture, last_scan))
}

fn place_of_marker(bytes: &[u8], is_it: impl Fn(u8) -> bool) -> Option<usize> {
    let is_marker =
        |pair: &[u8; 2]| pair[0] == 0xFF && !matches!(pair[1], 0 | 0xFF) && is_it(pair[1]);
    bytes.array_windows().position(is_marker)
}
