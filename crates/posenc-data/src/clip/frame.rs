//! Frames of a clip as read from a file, and the preparation of clips from them.

use std::collections::VecDeque;
use std::path::Path;

use posenc_files::limits::MAX_ARRAY_BYTES;

use crate::error::DataError;
use crate::image::Channels;
use crate::reduce::{self, Axis};
use crate::signal::Signal;

/// Maximum number of frames of a clip, as in the papers.
pub const MAX_FRAMES: usize = 256;

/// Maximum number of pixels of a frame, slightly more than 8K. A frame keeps the numbers of its file in memory, 3 to 12 bytes for each pixel, next to
/// its averages in double precision; FFmpeg holds up to twenty at a time.
const MAX_FRAME_PIXELS: u64 = 36 << 20;

/// Checks the number of a frame's pixels, of `bytes` bytes each.
pub(crate) fn check_size(
    path: &Path,
    what: &str,
    [width, height]: [usize; 2],
    bytes: usize,
) -> Result<(), DataError> {
    let pixels = width as u128 * height as u128;
    if pixels <= u128::from(MAX_FRAME_PIXELS) {
        return Ok(());
    }
    let (found, max) = (pixels.saturating_mul(bytes as u128), MAX_FRAME_PIXELS * bytes as u64);
    Err(DataError::too_large(path, format!("{what} ({width}×{height} pixels)"), found, max))
}

/// One frame: `height` rows of `width` pixels of `channels` values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Frame {
    pub width: usize,
    pub height: usize,
    pub channels: usize,
    pub values: Values,
}

/// The values of a frame as stored in the file; a large frame in another type would take four times as much memory.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Values {
    Bytes(Vec<u8>),
    Words(Vec<u16>),
    /// Between 0 and 1.
    Floats(Vec<f32>),
}

/// Frames in order, each read on demand.
pub(crate) type Frames<'a> = Box<dyn Iterator<Item = Result<Frame, DataError>> + 'a>;

type Shape = (usize, usize, usize);

impl Frame {
    fn shape(&self) -> Shape {
        (self.width, self.height, self.channels)
    }

    /// Averages the frame along both axes; values are in [0, 1].
    fn averaged(&self, rows: &Axis, columns: &Axis) -> Vec<f32> {
        // Rows first, because they are long and often only half of them are kept.
        let row = self.width * self.channels;
        let (fewer, white) = match &self.values {
            Values::Bytes(bytes) => (reduce::along::<_, f64>(bytes, rows, row), 255.0),
            Values::Words(words) => (reduce::along(words, rows, row), 65535.0),
            Values::Floats(floats) => (reduce::along(floats, rows, row), 1.0),
        };
        let means: Vec<f64> = reduce::along(&fewer, columns, self.channels);
        means.iter().map(|mean| (mean / white) as f32).collect()
    }
}

fn describe((width, height, channels): Shape) -> String {
    format!("{width}×{height} {}", if channels == 1 { "gray" } else { "RGB" })
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct ClipRequest<'a> {
    /// The file or folder, for messages.
    pub path: &'a Path,
    pub name: &'a str,
    /// Purpose of the clip, such as "data set 'video-clips'".
    pub purpose: &'a str,
}

/// Frames of one shape, averaged along axes that follow from their sides.
struct Averages<'a, A> {
    request: &'a ClipRequest<'a>,
    frames: Frames<'a>,
    required: usize,
    axis: A,
    /// The shape of all frames, and the axes of their rows and columns.
    alike: Option<(Shape, [Axis; 2])>,
    n_read: usize,
}

impl<A: Fn(usize, usize) -> Axis> Averages<'_, A> {
    fn next(&mut self) -> Result<Option<Vec<f32>>, DataError> {
        let Some(frame) = self.frames.next().transpose()? else { return Ok(None) };
        let (width, height, _) = frame.shape();
        let square = width.min(height);
        if self.alike.is_none() && square < self.required {
            return Err(self.request.too_small(width, height, self.required));
        }
        let (shape, [rows, columns]) = self.alike.get_or_insert_with(|| {
            (frame.shape(), [(self.axis)(height, square), (self.axis)(width, square)])
        });
        if frame.shape() != *shape {
            return Err(self.request.differs(self.n_read, frame.shape(), *shape));
        }
        self.n_read += 1;
        Ok(Some(frame.averaged(rows, columns)))
    }

    /// The shape and the axes, if there were at least this many frames.
    fn at_least(self, frames: usize) -> Result<(Shape, [Axis; 2]), DataError> {
        let enough = self.alike.filter(|_| self.n_read >= frames);
        enough.ok_or_else(|| self.request.too_short(self.n_read, frames))
    }
}

impl<'a> ClipRequest<'a> {
    fn too_short(&self, frames: usize, required: usize) -> DataError {
        let message = format!(
            "the clip has {frames} frames, but {} needs at least {required}; no frames are generated: use a longer clip",
            self.purpose
        );
        DataError::at(self.path, message)
    }

    fn too_small(&self, width: usize, height: usize, required: usize) -> DataError {
        let message = format!(
            "the frames have {width}×{height} pixels, but {} needs at least {required}×{required}; larger ones are \
             reduced, smaller ones are never enlarged: use a clip with larger frames",
            self.purpose
        );
        DataError::at(self.path, message)
    }

    fn differs(&self, frame: usize, found: Shape, expected: Shape) -> DataError {
        let message = format!(
            "frame {frame} is {}, but the frames before it are {}; all frames of a clip must be alike: cut the clip there, \
             or convert the frames to one size and color mode",
            describe(found),
            describe(expected)
        );
        DataError::at(self.path, message)
    }

    fn averages<A: Fn(usize, usize) -> Axis>(
        &'a self,
        frames: Frames<'a>,
        required: usize,
        axis: A,
    ) -> Averages<'a, A> {
        Averages { request: self, frames, required, axis, alike: None, n_read: 0 }
    }

    /// Prepares a clip as in `trading`, Section 6.2.
    ///
    /// Takes the first 2 `n_frames` frames (all, and at least `n_frames`, if there are fewer), resizes each to 2 `side` ×
    /// 2 `side` by averaging with one factor per side, and cuts out the middle `n_frames` × `side` × `side`. A side below
    /// 2 `side` is cut without resizing, because nothing is enlarged.
    ///
    /// Keeps one full frame and at most 1.5 `n_frames` cut frames in memory.
    pub(crate) fn middle_cube(
        &self,
        frames: Frames<'_>,
        (n_frames, side, to): (usize, usize, Channels),
    ) -> Result<Signal, DataError> {
        let mut kept: VecDeque<Vec<f32>> = VecDeque::new();
        let mut n_passed = 0;
        let frames = Box::new(frames.take(2 * n_frames));
        let mut averages = self.averages(frames, side, |n, _| middle(n, side));
        while let Some(frame) = averages.next()? {
            kept.push_back(frame);
            // Frames before the middle of those read so far are also before the middle of a longer clip.
            while n_passed < averages.n_read.saturating_sub(n_frames) / 2 {
                kept.pop_front();
                n_passed += 1;
            }
        }
        let ((_, _, channels), _) = averages.at_least(n_frames)?;
        let voxels: Vec<f32> = kept.into_iter().take(n_frames).flatten().collect();
        let voxels = to.convert(voxels, channels);
        let sides = [n_frames, side, side];
        Ok(Signal::from_voxels(self.name.to_owned(), sides, to.count(), &voxels))
    }

    /// Prepares a clip from whole frames. With a `size`, the central square of each frame and all frames are averaged over boxes to a cube
    /// of side `size`. Without a size, an odd last frame, row or column is left out. At most [`MAX_FRAMES`] frames are used. The second
    /// value describes the changes.
    pub(crate) fn whole(
        &self,
        frames: Frames<'_>,
        size: Option<usize>,
    ) -> Result<(Signal, Vec<String>), DataError> {
        let required = size.unwrap_or(2);
        let mut voxels: Vec<f32> = Vec::new();
        let mut averages = self.averages(frames, required, |n, square| match size {
            Some(size) => square_in(n, square, size),
            None => even(n),
        });
        while averages.n_read < MAX_FRAMES
            && let Some(frame) = averages.next()?
        {
            // With a size, only means over these frames are kept in double precision.
            let per_value = if size.is_some() { 4 } else { 8 };
            let bytes = per_value * frame.len() as u64;
            if per_value * voxels.len() as u64 + bytes > MAX_ARRAY_BYTES {
                let message = format!(
                    "each frame takes {bytes} bytes in memory and the clip more than {MAX_ARRAY_BYTES}; only {} frames \
                     would fit: give a size to reduce it to (--size N), or use smaller frames",
                    averages.n_read - 1
                );
                return Err(DataError::at(self.path, message));
            }
            voxels.extend(frame);
        }
        let n_frames = averages.n_read;
        let has_more = n_frames == MAX_FRAMES && averages.frames.next().transpose()?.is_some();
        let ((width, height, channels), [rows, columns]) = averages.at_least(required)?;
        let file = self.path.display();
        let mut notes = Vec::new();
        if has_more {
            notes.push(format!("{file}: using only the first {MAX_FRAMES} frames"));
        }
        let (new_height, new_width) = (rows.keep.len(), columns.keep.len());
        let new_frames = size.unwrap_or(n_frames - n_frames % 2);
        if (new_frames, new_height, new_width) != (n_frames, height, width) {
            let how = match size {
                Some(_) => "cropped to the central square and averaged to",
                None => "odd last frames, rows and columns dropped:",
            };
            notes.push(format!(
                "{file}: {n_frames} frames of {width}×{height} pixels, {how} {new_frames} of {new_width}×{new_height}"
            ));
        }
        let frame = new_height * new_width * channels;
        if let Some(size) = size {
            voxels = reduce::along(&voxels, &Axis::whole(n_frames, size), frame);
        }
        voxels.truncate(new_frames * frame);
        let sides = [new_frames, new_height, new_width];
        Ok((Signal::from_voxels(self.name.to_owned(), sides, channels, &voxels), notes))
    }
}

/// Resizes `n` samples to 2 `side`, if there are as many, and keeps the middle `side`.
fn middle(n: usize, side: usize) -> Axis {
    let resized = n.min(2 * side);
    let start = (resized - side) / 2;
    Axis { n, from: 0..n, m: resized, keep: start..start + side }
}

/// The middle `square` of `n` samples, averaged to `size`.
fn square_in(n: usize, square: usize, size: usize) -> Axis {
    let start = (n - square) / 2;
    Axis { n, from: start..start + square, m: size, keep: 0..size }
}

/// All samples but an odd last one.
fn even(n: usize) -> Axis {
    Axis::cut(n, 0..n - n % 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target() -> ClipRequest<'static> {
        ClipRequest { path: Path::new("a.mp4"), name: "a.mp4", purpose: "the test" }
    }

    /// Gray frames; frame t has the value t/255.
    fn counting(n: usize, width: usize, height: usize) -> Frames<'static> {
        Box::new((0..n).map(move |t| {
            let values = Values::Bytes(vec![t as u8; width * height]);
            Ok(Frame { width, height, channels: 1, values })
        }))
    }

    /// The frame numbers of a clip of constant frames.
    fn numbers(clip: &Signal) -> Vec<u8> {
        let length = clip.height() * clip.width();
        clip.values.iter().step_by(length).map(|v| (v * 255.0).round() as u8).collect()
    }

    #[test]
    fn the_middle_of_twice_as_many_frames_is_used() {
        for (n, expected) in [(8, 2..6), (100, 2..6), (7, 1..5), (6, 1..5), (5, 0..4), (4, 0..4)] {
            let clip = target().middle_cube(counting(n, 8, 8), (4, 4, Channels::Gray)).unwrap();
            assert_eq!(numbers(&clip), expected.collect::<Vec<u8>>(), "of {n}");
        }
    }

    #[test]
    fn frames_are_squeezed_to_twice_the_side_and_cut() {
        // Columns 0, …, 31 become 8 means of four; the middle four begin with that of 8 to 11.
        let values = Values::Words((0..16 * 32).map(|i| (i % 32) * 1000).collect());
        let frame = Frame { width: 32, height: 16, channels: 1, values };
        let frames: Frames = Box::new(std::iter::repeat_n(frame, 4).map(Ok));
        let clip = target().middle_cube(frames, (2, 4, Channels::Gray)).unwrap();
        assert_eq!(clip.sides, [2, 4, 4]);
        let expected =
            [9.5, 13.5, 17.5, 21.5].map(|mean| f64::from((mean * 1000.0 / 65535.0) as f32));
        assert_eq!(clip.values[..4], expected);
    }

    #[test]
    fn a_whole_clip_is_even_or_a_cube() {
        let (clip, notes) = target().whole(counting(5, 7, 6), None).unwrap();
        assert_eq!(clip.sides, [4, 6, 6]);
        assert_eq!(numbers(&clip), [0, 1, 2, 3]);
        assert!(notes[0].contains("5 frames of 7×6") && notes[0].contains("4 of 6×6"), "{notes:?}");
        let (cube, notes) = target().whole(counting(6, 12, 9), Some(3)).unwrap();
        assert_eq!(cube.sides, [3, 3, 3]);
        assert!(notes[0].contains("3 of 3×3"), "{notes:?}");
        // Means of frames 0 and 1, 2 and 3, 4 and 5.
        assert!((cube.values[9] - 2.5 / 255.0).abs() < 1e-7);
        assert!(target().whole(counting(2, 8, 8), Some(3)).is_err());
        assert!(target().whole(counting(4, 8, 2), Some(3)).is_err());
    }

    #[test]
    fn long_clips_are_cut_at_the_limit_with_a_warning() {
        let (clip, notes) = target().whole(counting(MAX_FRAMES + 1, 2, 2), None).unwrap();
        assert_eq!(clip.sides[0], MAX_FRAMES);
        assert!(notes[0].contains("first 256"), "{notes:?}");
        let (_, notes) = target().whole(counting(MAX_FRAMES, 2, 2), None).unwrap();
        assert_eq!(notes, [""; 0]);
    }
}
