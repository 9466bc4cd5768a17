//! Where the frames of clips come from: video files, folders of frames, npz arrays.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::clip::frame::{Frame, Frames, Values, check_size};
use crate::clip::natural;
use crate::clip::video::{self, video_support};
use crate::digest;
use crate::directory::file_name;
use crate::error::{self, DataError, FORMATS};
use crate::files::{has_ending, paths_in};
use crate::image::picture::{self, Picture};
use crate::npz::{self, Element, RawArray};
use posenc_files::limits::MAX_ARRAY_BYTES;

/// Extensions of video files in a folder. A file that is named itself may have any extension.
const VIDEO_ENDINGS: [&str; 13] =
    ["mp4", "m4v", "mov", "mkv", "webm", "avi", "mpg", "mpeg", "ogv", "wmv", "flv", "y4m", "gif"];

/// Maximum number of clips in an array, as in a set. A clip of one voxel has one byte in the file, but takes about a hundred in memory.
const MAX_CLIPS: usize = 10_000;

/// The frames of one clip, not yet decoded.
#[derive(Debug, Clone)]
pub(crate) enum Footage {
    Video(PathBuf),
    Frames { folder: PathBuf, files: Vec<PathBuf> },
    Slice(Slice),
}

/// Clip `index` of an array (n, frames, height, width, channels), or the only one of an array
/// without the first axis.
#[derive(Debug, Clone)]
pub(crate) struct Slice {
    path: PathBuf,
    key: String,
    array: Arc<RawArray>,
    index: usize,
}

impl Footage {
    /// Name of the clip: that of the file or folder, or `clip-00` and so on.
    pub(crate) fn name(&self) -> String {
        match self {
            Footage::Slice(slice) if slice.array.shape.len() == 5 => {
                format!("clip-{:02}", slice.index)
            }
            _ => file_name(self.path()),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            Footage::Video(path) => path,
            Footage::Frames { folder, .. } => folder,
            Footage::Slice(slice) => &slice.path,
        }
    }

    /// SHA-256 of the data that the frames are decoded from. For a video these are the bytes of the file, because decoded pixels may differ
    /// between versions of FFmpeg.
    pub(crate) fn sha256(&self) -> Result<String, DataError> {
        match self {
            Footage::Video(path) => digest::of_file(path),
            Footage::Frames { files, .. } => Ok(digest::of_bytes(digest::list(files)?.as_bytes())),
            Footage::Slice(slice) => {
                let header = format!("{:?} {:?}\n", slice.array.element, slice.shape());
                Ok(digest::of_bytes(&[header.as_bytes(), slice.bytes()].concat()))
            }
        }
    }

    /// The frames, decoded on demand.
    pub(crate) fn frames(&self) -> Result<Frames<'_>, DataError> {
        match self {
            Footage::Video(path) => video::frames(path),
            Footage::Frames { files, .. } => {
                Ok(Box::new(files.iter().map(|file| in_picture(Picture::read(file)?))))
            }
            Footage::Slice(slice) => Ok(Box::new(slice.frames())),
        }
    }
}

impl Slice {
    /// Frames, height, width and channels.
    fn shape(&self) -> [usize; 4] {
        self.array.shape.last_chunk().copied().unwrap_or_default()
    }

    fn bytes(&self) -> &[u8] {
        let length = self.shape().iter().product::<usize>() * self.array.element.size();
        &self.array.bytes[self.index * length..(self.index + 1) * length]
    }

    fn frames(&self) -> impl Iterator<Item = Result<Frame, DataError>> {
        let [_, height, width, channels] = self.shape();
        let frame = height * width * channels * self.array.element.size();
        self.bytes().chunks_exact(frame.max(1)).map(move |bytes| {
            let values = match self.array.element {
                Element::Byte => Values::Bytes(bytes.to_vec()),
                // Clips are read as bytes or in single precision.
                _ => Values::Floats(self.floats(bytes)?),
            };
            Ok(Frame { width, height, channels, values })
        })
    }

    /// Single-precision values, which must lie in [0, 1].
    fn floats(&self, bytes: &[u8]) -> Result<Vec<f32>, DataError> {
        let value = |bytes: &[u8; 4]| f32::from_le_bytes(*bytes);
        let values: Vec<f32> = bytes.as_chunks().0.iter().map(value).collect();
        match values.iter().find(|value| !(0.0..=1.0).contains(*value)) {
            None => Ok(values),
            Some(&value) => {
                let message = format!(
                    "array '{}' contains the value {value}, but pixels as 32-bit numbers lie in [0, 1]; with numpy and the \
                     array x, save numpy.clip(x / WHITE, 0, 1).astype('float32'), where WHITE is the value of white",
                    self.key
                );
                Err(DataError::at(&self.path, message))
            }
        }
    }
}

fn in_picture(picture: Picture) -> Result<Frame, DataError> {
    let [width, height] = [picture.width(), picture.height()].map(|side| side as usize);
    let channels = picture.channels();
    check_size(&picture.path, "the frame", [width, height], 3)?;
    Ok(Frame { width, height, channels, values: picture.into_values() })
}

/// The clips at `path`: a video file, an npz file with a single array, a folder of frames, or a
/// folder of video files and of folders of frames, in the order of [`natural::sort`].
pub(crate) fn at(path: &Path) -> Result<Vec<Footage>, DataError> {
    let metadata =
        std::fs::metadata(path).map_err(|source| DataError::io(path, "file or folder", source))?;
    if metadata.is_dir() {
        return in_folder(path);
    }
    if !has_ending(path, &["npz"]) {
        return Ok(vec![Footage::Video(path.to_owned())]);
    }
    let mut keys = npz::array_names(path)?;
    match (keys.pop(), keys.is_empty()) {
        (Some(key), true) => in_array(path, &key).map(|(_, clips)| clips),
        (last, _) => {
            keys.extend(last);
            let message = format!(
                "the archive contains {}, but one array is expected, (frames, height, width, 3) or (clips, frames, height, \
                 width, 3); save that one alone: numpy.savez(FILE, clip=array)",
                error::list(&keys, "no arrays")
            );
            Err(DataError::at(path, message))
        }
    }
}

/// The clips of the array `key` in an npz archive, and SHA-256 of its elements.
pub(crate) fn in_array(path: &Path, key: &str) -> Result<(String, Vec<Footage>), DataError> {
    let array = npz::read_within(path, key, &[Element::Byte, Element::Float], MAX_ARRAY_BYTES)?;
    let (n_clips, shape) = match array.shape[..] {
        [n, frames, height, width, channels] => (n, [frames, height, width, channels]),
        [frames, height, width, channels] => (1, [frames, height, width, channels]),
        _ => (0, [0; 4]),
    };
    if n_clips == 0 || n_clips > MAX_CLIPS || shape.contains(&0) || ![1, 3].contains(&shape[3]) {
        let required = format!(
            "(clips, frames, height, width, 3), the same without the first axis, or 1 instead of 3 for gray; at most \
             {MAX_CLIPS} clips"
        );
        return Err(DataError::shape(path, key, &array.shape, required));
    }
    let what = format!("each frame of the array `{key}`");
    check_size(path, &what, [shape[2], shape[1]], shape[3] * array.element.size())?;
    let (sha256, array) = (digest::of_bytes(&array.bytes), Arc::new(array));
    let clip = |index| {
        let (path, key, array) = (path.to_owned(), key.to_owned(), array.clone());
        Footage::Slice(Slice { path, key, array, index })
    };
    Ok((sha256, (0..n_clips).map(clip).collect()))
}

/// A video among the clips, if this build cannot read videos.
pub(crate) fn unreadable(clips: &[Footage]) -> Option<&Path> {
    let is_unreadable = |clip: &&Footage| matches!(clip, Footage::Video(_)) && !video_support();
    clips.iter().find(is_unreadable).map(Footage::path)
}

fn in_folder(folder: &Path) -> Result<Vec<Footage>, DataError> {
    let mut paths = paths_in(folder)?;
    natural::sort(&mut paths);
    let mut clips = Vec::new();
    for path in paths {
        if path.is_dir() {
            clips.extend(frames_in(&path)?);
        } else if has_ending(&path, &VIDEO_ENDINGS) {
            clips.push(Footage::Video(path));
        }
    }
    if clips.is_empty() {
        clips.extend(frames_in(folder)?);
    }
    match clips.is_empty() {
        true => Err(DataError::EmptyFolder(format!(
            "{}: the folder contains no clips; put video files into it (such as mp4), folders of frames ({FORMATS}), or the \
             frames of one clip",
            folder.display()
        ))),
        false => Ok(clips),
    }
}

fn frames_in(folder: &Path) -> Result<Option<Footage>, DataError> {
    match picture::images_in(folder) {
        Ok(mut files) => {
            natural::sort(&mut files);
            Ok(Some(Footage::Frames { folder: folder.to_owned(), files }))
        }
        Err(DataError::EmptyFolder(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The lines of [`digest::lines`] of some clips.
pub(crate) fn list(clips: &[Footage]) -> Result<String, DataError> {
    digest::lines(clips, Footage::sha256, Footage::name)
}
