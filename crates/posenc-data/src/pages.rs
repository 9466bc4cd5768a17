//! Files with several pictures, where one is read: TIFF files with pages, and animated PNG files.

use std::borrow::Cow;

pub(crate) struct Page<'a> {
    /// A file whose first picture it is.
    pub bytes: Cow<'a, [u8]>,
    pub note: Option<String>,
    /// Whether its colors are multiplied by its alpha channel.
    pub is_premultiplied: bool,
}

impl<'a> Page<'a> {
    /// A file with one picture.
    pub(crate) fn only(bytes: &'a [u8]) -> Self {
        Page { bytes: bytes.into(), note: None, is_premultiplied: false }
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
        Page { bytes: kept.into(), note, is_premultiplied: false }
    }

    /// The first page of a TIFF file that is not a reduced copy of another one.
    pub(crate) fn of_tiff(bytes: &'a [u8]) -> Self {
        let number = |at: usize, length: usize| -> Option<usize> {
            let digits = bytes.get(at..at + length)?.iter();
            let add = |number: usize, digit: &u8| number << 8 | usize::from(*digit);
            Some(match bytes.first() {
                Some(b'I') => digits.rev().fold(0, add),
                _ => digits.fold(0, add),
            })
        };
        // The header and each page end with a link of four bytes to the next page.
        let (mut pages, mut link, mut left) = (Vec::new(), 4, bytes.len());
        while let Some(at) = number(link, 4).filter(|at| *at > 0)
            && let Some(n_tags) = number(at, 2)
            // Damaged links form a circle.
            && let Some(rest) = left.checked_sub(12 * n_tags + 6)
        {
            let (mut is_reduced, mut is_premultiplied) = (false, false);
            for tag in (at + 2..).step_by(12).take(n_tags) {
                // Short numbers come first in their field.
                let length = if number(tag + 2, 2) == Some(3) { 2 } else { 4 };
                match (number(tag, 2), number(tag + 8, length)) {
                    (Some(254), Some(kind)) => is_reduced |= kind & 1 == 1,
                    (Some(255), Some(kind)) => is_reduced |= kind == 2,
                    (Some(338), Some(kind)) => is_premultiplied = kind == 1,
                    _ => {}
                }
            }
            pages.push((link, is_reduced, is_premultiplied));
            (link, left) = (at + 2 + 12 * n_tags, rest);
        }
        let chosen = pages.iter().position(|(_, is_reduced, _)| !is_reduced).unwrap_or(0);
        let mut page = Page::only(bytes);
        if let Some(&(link, is_reduced, is_premultiplied)) = pages.get(chosen) {
            page.is_premultiplied = is_premultiplied;
            let what = if is_reduced { ", a reduced copy of a picture" } else { "" };
            let note = || format!("page {} of {} is used{what}", chosen + 1, pages.len());
            page.note = (pages.len() > 1 || is_reduced).then(note);
            // The decoder reads the page that the header names.
            if chosen > 0 {
                page.bytes.to_mut().copy_within(link..link + 4, 4);
            }
        }
        page
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
