//! The part of a PNG file that pixels depend on.

use std::borrow::Cow;

pub(crate) struct Page<'a> {
    /// A file whose first picture it is.
    pub bytes: Cow<'a, [u8]>,
    pub note: Option<String>,
}

impl<'a> Page<'a> {
    pub(crate) fn only(bytes: &'a [u8]) -> Self {
        Page { bytes: bytes.into(), note: None }
    }

    /// The still image of a PNG file, without chunks that pixels do not depend on: color profiles and texts may expand to any size.
    pub(crate) fn of_png(bytes: &'a [u8]) -> Self {
        let (signature, mut rest) = bytes.split_at_checked(8).unwrap_or((bytes, &[]));
        let (mut kept, mut n_frames) = (signature.to_vec(), 1);
        while let Some(length) = rest.first_chunk() {
            let end = rest.len().min((u32::from_be_bytes(*length) as usize).saturating_add(12));
            let chunk = rest.split_off(..end).unwrap_or_default();
            match chunk.get(4..8) {
                Some(b"acTL") => {
                    n_frames = chunk[8..].first_chunk().map_or(1, |n| u32::from_be_bytes(*n));
                }
                Some(b"tRNS" | b"eXIf" | [b'A'..=b'Z', ..]) => kept.extend(chunk),
                _ => {}
            }
        }
        let note = (n_frames > 1)
            .then(|| format!("the still image of an animation with {n_frames} frames is used"));
        Page { bytes: kept.into(), note }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches metadata of a few kilobytes that a decoder expands to gigabytes, and one frame of an animation that is read without a word.
    #[test]
    fn of_a_png_file_only_pixels_are_kept() {
        let chunk = |name: &str, data: &[u8]| {
            [&(data.len() as u32).to_be_bytes(), name.as_bytes(), data, &[0; 4]].concat()
        };
        let (mut all, mut expected) =
            (b"\x89PNG\r\n\x1a\n".to_vec(), b"\x89PNG\r\n\x1a\n".to_vec());
        for name in ["IHDR", "iCCP", "zTXt", "iTXt", "acTL", "tRNS", "eXIf", "IDAT", "fdAT", "IEND"]
        {
            let chunk = chunk(name, &[0, 0, 0, 5, 0, 0, 0, 0]);
            all.extend(&chunk);
            if ["IHDR", "tRNS", "eXIf", "IDAT", "IEND"].contains(&name) {
                expected.extend(&chunk);
            }
        }
        let page = Page::of_png(&all);
        assert_eq!(page.bytes, expected);
        assert_eq!(page.note.unwrap(), "the still image of an animation with 5 frames is used");
        for end in 0..all.len() {
            assert!(Page::of_png(&all[..end]).bytes.len() <= end);
        }
    }
}
