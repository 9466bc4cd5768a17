//! Reads a single picture or clip of the user's, outside of any data set.

use std::path::Path;

use crate::clip::footage::{self, Footage};
use crate::clip::frame::ClipRequest;
use crate::clip::video::video_support;
use crate::directory::file_name;
use crate::error::{DataError, VIDEO_CURE};
use crate::files::has_ending;
use crate::image::picture::{IMAGE_ENDINGS, Picture};
use crate::signal::Signal;

/// A signal, with warnings about how it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    pub signal: Signal,
    pub warnings: Vec<String>,
}

/// Reads whatever is at `path`: a folder or an npz file as by [`load_clip_file`], a file whose
/// content is an image as by [`load_picture_file`], anything else as a video.
pub fn load_signal_file(path: &Path, size: Option<u32>) -> Result<Loaded, DataError> {
    if !path.is_dir() && !has_ending(path, &["npz"]) {
        match load_picture_file(path, size) {
            Err(DataError::NotAnImage { reason, .. }) if !has_ending(path, &IMAGE_ENDINGS) => {
                if !video_support() {
                    let message = format!(
                        "not a readable image ({reason}), and this build cannot read video files; {VIDEO_CURE}"
                    );
                    return Err(DataError::at(path, message));
                }
            }
            read => return read,
        }
    }
    load_clip_file(path, size)
}

/// Reads an image file. With a `size`, the largest central square is cropped and reduced to `size` × `size`. Without one, the whole image
/// is used except for an odd last row or column. Gray stays gray, an alpha channel is dropped, and 16-bit values v become v/65535. Warnings
/// report all of this.
pub fn load_picture_file(path: &Path, size: Option<u32>) -> Result<Loaded, DataError> {
    let picture = Picture::read(path)?;
    let mut picture = match size {
        Some(size) => picture.fit(size, "the requested size")?,
        None => picture.even()?,
    };
    let file = path.display();
    if picture.is_deep() {
        picture.warnings.push(format!("{file} has 16 bits per value; PNG output keeps 8 of them"));
    }
    if picture.channels() == 1 {
        picture.warnings.push(format!("{file}: gray, read as one channel"));
    }
    let signal = picture.to_signal(file_name(path));
    Ok(Loaded { signal, warnings: picture.warnings })
}

/// Reads a clip: a video file, an npz file with one array of one clip, or a folder of frames. With a `size`, the central square of the
/// frames and all frames are averaged to a cube of side `size`. Without one, all voxels are used except for an odd last frame, row or
/// column. At most [`crate::MAX_FRAMES`] frames are used. Warnings report all of this.
pub fn load_clip_file(path: &Path, size: Option<u32>) -> Result<Loaded, DataError> {
    let clips = footage::at(path)?;
    let [clip] = &clips[..] else {
        let names: Vec<String> = clips.iter().take(5).map(Footage::name).collect();
        let message = format!(
            "there are {} clips ({}), but one is expected; name the file or folder of one clip",
            clips.len(),
            names.join(", ")
        );
        return Err(DataError::at(path, message));
    };
    let name = file_name(path);
    let target = ClipRequest { path, name: &name, purpose: "the requested size" };
    let (signal, warnings) = target.whole(clip.frames()?, size.map(|size| size as usize))?;
    Ok(Loaded { signal, warnings })
}
