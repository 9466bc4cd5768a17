//! Where the frames of clips come from: video files, folders of frames, npz arrays.

use std::path::{Path, PathBuf};

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

/// The frames of one clip, not yet read.
#[derive(Debug)]
pub(crate) enum Footage {
    Video(PathBuf),
    Frames {
        folder: PathBuf,
        files: Vec<PathBuf>,
    },
    /// An npz file with one array (frames, height, width, channels).
    Array(PathBuf),
}

impl Footage {
    /// Name of the clip, that of its file or folder.
    pub(crate) fn name(&self) -> String {
        file_name(self.path())
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            Footage::Video(path) | Footage::Array(path) => path,
            Footage::Frames { folder, .. } => folder,
        }
    }

    /// SHA-256 of the data that the frames are decoded from. For a file these are its bytes: decoded pixels of a video may differ between
    /// versions of FFmpeg.
    pub(crate) fn sha256(&self) -> Result<String, DataError> {
        match self {
            Footage::Video(path) | Footage::Array(path) => digest::of_file(path),
            Footage::Frames { files, .. } => Ok(digest::of_bytes(digest::list(files)?.as_bytes())),
        }
    }

    /// The frames, decoded on demand.
    pub(crate) fn frames(&self) -> Result<Frames<'_>, DataError> {
        match self {
            Footage::Video(path) => video::frames(path),
            Footage::Frames { files, .. } => {
                Ok(Box::new(files.iter().map(|file| in_picture(Picture::read(file)?))))
            }
            Footage::Array(path) => array_frames(path),
        }
    }
}

/// The only array of an npz file, its name, and its numbers of frames, rows, columns and channels.
fn read_array(path: &Path) -> Result<(String, [usize; 4], RawArray), DataError> {
    let keys = npz::array_names(path)?;
    let [key] = &keys[..] else {
        let message = format!(
            "the archive contains {}, but one array is expected, (frames, height, width, 3); save that one alone: \
             numpy.savez(FILE, clip=array)",
            error::list(&keys, "no arrays")
        );
        return Err(DataError::at(path, message));
    };
    let array = npz::read_within(path, key, &[Element::Byte, Element::Float], MAX_ARRAY_BYTES)?;
    match array.shape[..] {
        [n, height, width, channels @ (1 | 3)] if !array.bytes.is_empty() => {
            let what = format!("each frame of the array `{key}`");
            check_size(path, &what, [width, height], channels * array.element.size())?;
            Ok((key.clone(), [n, height, width, channels], array))
        }
        _ => {
            let required = "(frames, height, width, 3), or 1 instead of 3 for gray";
            Err(DataError::shape(path, key, &array.shape, required))
        }
    }
}

fn array_frames(path: &Path) -> Result<Frames<'_>, DataError> {
    let (key, [n, height, width, channels], array) = read_array(path)?;
    let length = array.bytes.len() / n;
    let frame = move |t: usize| {
        let bytes = &array.bytes[t * length..(t + 1) * length];
        let values = match array.element {
            Element::Byte => Values::Bytes(bytes.to_vec()),
            // Clips are read as bytes or in single precision.
            _ => Values::Floats(floats(path, &key, bytes)?),
        };
        Ok(Frame { width, height, channels, values })
    };
    Ok(Box::new((0..n).map(frame)))
}

/// Single-precision values, which must lie in [0, 1].
fn floats(path: &Path, key: &str, bytes: &[u8]) -> Result<Vec<f32>, DataError> {
    let value = |bytes: &[u8; 4]| f32::from_le_bytes(*bytes);
    let values: Vec<f32> = bytes.as_chunks().0.iter().map(value).collect();
    match values.iter().find(|value| !(0.0..=1.0).contains(*value)) {
        None => Ok(values),
        Some(&value) => {
            let message = format!(
                "array '{key}' contains the value {value}, but pixels as 32-bit numbers lie in [0, 1]; with numpy and the \
                 array x, save numpy.clip(x / WHITE, 0, 1).astype('float32'), where WHITE is the value of white"
            );
            Err(DataError::at(path, message))
        }
    }
}

fn in_picture(picture: Picture) -> Result<Frame, DataError> {
    let [width, height] = [picture.width(), picture.height()].map(|side| side as usize);
    let channels = picture.channels();
    check_size(&picture.path, "the frame", [width, height], 3)?;
    Ok(Frame { width, height, channels, values: picture.into_values() })
}

/// The clips at `path`: a video file, an npz file with a single array, a folder of frames, a folder of video files and folders of frames, or
/// else a folder of npz files, in the order of [`natural::sort`].
pub(crate) fn at(path: &Path) -> Result<Vec<Footage>, DataError> {
    let metadata =
        std::fs::metadata(path).map_err(|source| DataError::io(path, "file or folder", source))?;
    if metadata.is_dir() {
        return in_folder(path);
    }
    Ok(vec![match has_ending(path, &["npz"]) {
        true => Footage::Array(path.to_owned()),
        false => Footage::Video(path.to_owned()),
    }])
}

/// A video among the clips, if this build cannot read videos.
pub(crate) fn unreadable(clips: &[Footage]) -> Option<&Path> {
    let is_unreadable = |clip: &&Footage| matches!(clip, Footage::Video(_)) && !video_support();
    clips.iter().find(is_unreadable).map(Footage::path)
}

fn in_folder(folder: &Path) -> Result<Vec<Footage>, DataError> {
    let mut paths = paths_in(folder)?;
    natural::sort(&mut paths);
    let (mut clips, mut arrays) = (Vec::new(), Vec::new());
    for path in paths {
        if path.is_dir() {
            clips.extend(frames_in(&path)?);
        } else if has_ending(&path, &VIDEO_ENDINGS) {
            clips.push(Footage::Video(path));
        } else if has_ending(&path, &["npz"]) {
            arrays.push(Footage::Array(path));
        }
    }
    if clips.is_empty() {
        clips.extend(frames_in(folder)?);
    }
    // Arrays beside frames or videos are something else, such as cameras.
    if clips.is_empty() {
        clips = arrays;
    }
    match clips.is_empty() {
        true => Err(DataError::EmptyFolder(format!(
            "{}: the folder contains no clips; put video files into it (such as mp4), folders of frames ({FORMATS}), the frames \
             of one clip, or npz files with one clip each",
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
