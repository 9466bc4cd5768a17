//! What can go wrong with data that a user can change.
//!
//! Every message says what is wrong and where, what is allowed, and what to do about it.

use std::path::{Path, PathBuf};

/// The image formats that are read, as messages name them.
pub(crate) const FORMATS: &str = "PNG, JPEG or TIFF";

/// What a person does to get video support.
pub const VIDEO_CURE: &str = "to read video files, install FFmpeg's development files (apt-get install libavcodec-dev \
     libavformat-dev libavutil-dev libavfilter-dev libavdevice-dev libswresample-dev libswscale-dev pkg-config \
     libclang-dev clang) and start again through cargo xtask";

/// An error of a loader, of the manifest or of the data directory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// A file that was asked for is not there.
    #[error("{}: there is no such {what}; check the path", path.display())]
    NotFound {
        /// Path that was looked for.
        path: PathBuf,
        /// "file" or "folder".
        what: &'static str,
    },

    /// The operating system refused to read a file or folder.
    #[error("{}: cannot be read ({source}); check that it is readable for this user", path.display())]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },

    /// A photograph has no room for a crop.
    #[error(
        "{name}: {height} × {width} pixels, reduced by {reduce}, hold no crop of {side} × {side}; give larger \
         photographs, or lower `side` or `reduce`"
    )]
    TooSmallToCut {
        /// The photograph.
        name: String,
        /// Its rows.
        height: usize,
        /// Its columns.
        width: usize,
        /// Side of a crop.
        side: usize,
        /// Factor by which photographs are reduced first.
        reduce: usize,
    },

    /// The data directory that was asked for does not exist.
    #[error(
        "data directory {}, given by {given_by}, is not a directory; create it, name another one, or leave \
         {given_by} out to use data/ in the repository",
        path.display()
    )]
    NoDataDirectory {
        /// Path as it was given.
        path: PathBuf,
        /// The option or environment variable it came from.
        given_by: &'static str,
    },

    /// A file that should be an npz archive cannot be opened as one.
    #[error(
        "{}: not a complete npz archive ({reason}); an npz is a zip file of .npy arrays, so a download that was \
         cut short looks like this: fetch the file again",
        path.display()
    )]
    NotAnArchive {
        /// The file.
        path: PathBuf,
        /// What the zip reader found.
        reason: String,
    },

    /// The archive does not hold the array that was asked for.
    #[error(
        "{}: no array named '{key}'; the archive holds {}; is this the right file?",
        path.display(),
        list(present, "no arrays")
    )]
    MissingKey {
        /// The archive.
        path: PathBuf,
        /// Name that was asked for.
        key: String,
        /// Names of the arrays that are there.
        present: Vec<String>,
    },

    /// An archive that should hold one array holds another number of them.
    #[error(
        "{}: the archive holds {}, but one array is expected, (frames, height, width, 3) or (clips, frames, height, \
         width, 3); save that one alone: numpy.savez(FILE, clip=array)",
        path.display(),
        list(present, "no arrays")
    )]
    NotOneArray {
        /// The archive.
        path: PathBuf,
        /// Names of the arrays that are there.
        present: Vec<String>,
    },

    /// An array inside an archive is damaged.
    #[error("{}: array '{key}' is damaged: {reason}; fetch the file again", path.display())]
    DamagedArray {
        /// The archive.
        path: PathBuf,
        /// Name of the array.
        key: String,
        /// What is wrong with it.
        reason: String,
    },

    /// An array holds another element type than those that are read.
    #[error(
        "{}: array '{key}' has elements of type {found}, but only 8-bit unsigned integers ('|u1'){} are read; save it \
         again with .astype('uint8'){}",
        path.display(),
        if *floats { " and 32-bit numbers in [0, 1] ('<f4')" } else { "" },
        if *floats { " or .astype('float32')" } else { "" }
    )]
    WrongElementType {
        /// The archive.
        path: PathBuf,
        /// Name of the array.
        key: String,
        /// The type as the array's header writes it.
        found: String,
        /// Whether 32-bit numbers would be read, too.
        floats: bool,
    },

    /// An array of 32-bit numbers has values that no pixel has.
    #[error(
        "{}: array '{key}' holds the value {value}, but pixels as 32-bit numbers lie in [0, 1]; divide by the largest \
         value, or save 0 to 255 with .astype('uint8')",
        path.display()
    )]
    WrongValue {
        /// The archive.
        path: PathBuf,
        /// Name of the array.
        key: String,
        /// The first value that is out of range, or NaN.
        value: f32,
    },

    /// An array has another shape than the data set's.
    #[error("{}: array '{key}' has shape {}, but {required} is required", path.display(), tuple(found))]
    WrongShape {
        /// The archive.
        path: PathBuf,
        /// Name of the array.
        key: String,
        /// The shape found.
        found: Vec<u64>,
        /// The shapes allowed, in words.
        required: String,
    },

    /// Something announces more memory than is granted.
    #[error(
        "{}: {what} announces {bytes} bytes, but at most {limit} are read; the file is damaged or not meant for \
         this program: use smaller data",
        path.display()
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The array or image.
        what: String,
        /// Size announced.
        bytes: u128,
        /// Size granted.
        limit: u64,
    },

    /// A file cannot be decoded as an image.
    #[error("{}: not a readable image ({reason}); {FORMATS} are read: save it again in one of them", path.display())]
    NotAnImage {
        /// The file.
        path: PathBuf,
        /// What the decoder found.
        reason: String,
    },

    /// An image has samples that are neither 8- nor 16-bit integers.
    #[error(
        "{}: pixels of type {found} are not read; save it again with 8 or 16 bits for each of one (gray), three \
         (RGB) or four (RGBA) channels",
        path.display()
    )]
    WrongPixelType {
        /// The file.
        path: PathBuf,
        /// The pixel type found.
        found: String,
    },

    /// An image is smaller than the data set's images.
    #[error(
        "{}: the image is {width}×{height} pixels, but {purpose} needs at least {required}×{required}; larger \
         ones are cropped and reduced, smaller ones are never enlarged: use a larger image",
        path.display()
    )]
    TooSmall {
        /// The file.
        path: PathBuf,
        /// What needs more, such as "data set 'div2k-test'".
        purpose: String,
        /// Width found.
        width: u32,
        /// Height found.
        height: u32,
        /// Side length required.
        required: u32,
    },

    /// A name that records cannot hold as it is.
    #[error(
        "{:?}: records name signals by their files, one to a line, so a name must be UTF-8 without control characters \
         such as line breaks; rename it",
        path
    )]
    UnwritableName {
        /// The file or folder.
        path: PathBuf,
    },

    /// A folder holds no images.
    #[error(
        "{}: the folder holds no images; put {FORMATS} files into it (sub-folders are not searched)",
        path.display()
    )]
    EmptyFolder {
        /// The folder.
        path: PathBuf,
    },

    /// A data set of the other kind was asked for.
    #[error(
        "data set '{id}' holds {held}, but {asked} are asked for; name a set of {asked} ('data list' shows them)"
    )]
    WrongKind {
        /// Name of the data set.
        id: String,
        /// "images" or "clips".
        held: &'static str,
        /// "images" or "clips".
        asked: &'static str,
    },

    /// A video file is to be read by a build that cannot.
    #[error("{}: this build reads no video files; {VIDEO_CURE}; or give a folder of frames or an npz array", path.display())]
    NoVideoSupport {
        /// The file.
        path: PathBuf,
    },

    /// FFmpeg cannot make sense of a file.
    #[error(
        "{}: not a readable video ({reason}); allowed is whatever this machine's FFmpeg decodes, such as mp4 with H.264: \
         check that the file is complete, or convert it with: ffmpeg -i FILE -pix_fmt yuv420p OUT.mp4",
        path.display()
    )]
    NotAVideo {
        /// The file.
        path: PathBuf,
        /// What FFmpeg said.
        reason: String,
    },

    /// A video breaks off, or is damaged in the middle.
    #[error(
        "{}: damaged after {decoded} frames{} ({reason}); a download or copy that was cut short looks like this: fetch the \
         file again",
        path.display(),
        announced.map(|n| format!(" of {n}")).unwrap_or_default()
    )]
    DamagedVideo {
        /// The file.
        path: PathBuf,
        /// Frames that came before.
        decoded: usize,
        /// Frames that the file's header announces, where it does.
        announced: Option<u64>,
        /// What FFmpeg said.
        reason: String,
    },

    /// A clip has fewer frames than are needed.
    #[error(
        "{}: the clip has {frames} frames, but {purpose} needs at least {required}; frames are never made up: use a \
         longer clip",
        path.display()
    )]
    ClipTooShort {
        /// The file or folder.
        path: PathBuf,
        /// Frames found.
        frames: usize,
        /// What needs more, such as "data set 'video-clips'".
        purpose: String,
        /// Frames required.
        required: usize,
    },

    /// The frames of a clip are smaller than needed.
    #[error(
        "{}: the frames have {width}×{height} pixels, but {purpose} needs at least {required}×{required}; larger ones are \
         reduced, smaller ones are never enlarged: use a clip with larger frames",
        path.display()
    )]
    FramesTooSmall {
        /// The file or folder.
        path: PathBuf,
        /// Width found.
        width: usize,
        /// Height found.
        height: usize,
        /// What needs more, such as "data set 'video-clips'".
        purpose: String,
        /// Side length required.
        required: usize,
    },

    /// The frames of a clip differ in size or channels.
    #[error(
        "{}: frame {frame} is {found}, but the frames before it are {expected}; all frames of a clip must be alike: cut \
         the clip there, or bring the frames to one size",
        path.display()
    )]
    FramesDiffer {
        /// The file, or the file of the frame.
        path: PathBuf,
        /// Number of the frame, counted from 0.
        frame: usize,
        /// What the frame is, such as "640×480 RGB".
        found: String,
        /// What it should be.
        expected: String,
    },

    /// A clip would take more memory than is granted.
    #[error(
        "{}: each frame takes {bytes} bytes in memory and the clip more than {limit}; only {fitting} frames would fit: \
         give a size to reduce it to (--size N), or use smaller frames",
        path.display()
    )]
    ClipTooLarge {
        /// The file or folder.
        path: PathBuf,
        /// Frames that would fit.
        fitting: usize,
        /// Bytes for each frame.
        bytes: u64,
        /// Bytes granted.
        limit: u64,
    },

    /// One clip is asked for, and there are several.
    #[error(
        "{}: there are {} clips ({}), but one is asked for; name the file or folder of one, or save the array of one",
        path.display(),
        present.len(),
        present.iter().take(5).map(String::as_str).collect::<Vec<_>>().join(", ")
    )]
    NotOneClip {
        /// The file or folder.
        path: PathBuf,
        /// Names of the clips.
        present: Vec<String>,
    },

    /// A folder holds no clips.
    #[error(
        "{}: the folder holds no clips; put video files into it (such as mp4), folders of frames ({FORMATS}), or the \
         frames of one clip",
        path.display()
    )]
    EmptyClipFolder {
        /// The folder.
        path: PathBuf,
    },

    /// A signal cannot be reduced to a side length.
    #[error(
        "'{name}' cannot be reduced to a side of {side}; 1 to {shortest} is allowed, as its shortest side is"
    )]
    NotAReduction {
        /// Name of the signal.
        name: String,
        /// Side length that was asked for.
        side: usize,
        /// Length of its shortest axis.
        shortest: usize,
    },

    /// A signal has no form that a file format takes.
    #[error("'{name}' cannot be written: {reason}")]
    UnwritableSignal {
        /// Name of the signal.
        name: String,
        /// What is wrong with it.
        reason: String,
    },

    /// A file or folder cannot be written.
    #[error(
        "{}: cannot be written ({source}); check that the folder exists, that this user may write there, and that the \
         disk is not full",
        path.display()
    )]
    Unwritable {
        /// The file or folder.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },

    /// Frames would be mixed with images that are there.
    #[error("{}: the folder holds images already, which would mix with the frames; name another folder", path.display())]
    FolderInUse {
        /// The folder.
        path: PathBuf,
    },

    /// The manifest is not as it should be.
    #[error("{}{}: {reason}", path.display(), line.map(|line| format!(":{line}")).unwrap_or_default())]
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// Line, counted from one, where it is known.
        line: Option<usize>,
        /// What is wrong, and what is allowed.
        reason: String,
    },

    /// A picture of a set whose pictures are all alike is not.
    #[error("{}: {found}, but {required} are expected; fetch the file again or remove it", path.display())]
    WrongPicture {
        /// The file.
        path: PathBuf,
        /// What it is like.
        found: String,
        /// What it should be like.
        required: String,
    },

    /// A folder of files lacks one that its format asks for.
    #[error("{}: no {wanted}; {hint}", folder.display())]
    MissingFile {
        /// The folder.
        folder: PathBuf,
        /// What was looked for.
        wanted: String,
        /// What the folder should hold.
        hint: String,
    },

    /// A file of text cannot be read.
    #[error("{}{}: {reason}", path.display(), line.map(|line| format!(":{line}")).unwrap_or_default())]
    DamagedText {
        /// The file.
        path: PathBuf,
        /// Line, counted from one, where it is known.
        line: Option<usize>,
        /// What is wrong, what is allowed, what to do.
        reason: String,
    },

    /// A file of annotations is damaged, or does not fit its photographs.
    #[error("{}: {entry}{reason}; correct the entry, or fetch the file again", path.display())]
    WrongAnnotation {
        /// The file.
        path: PathBuf,
        /// The entry and a colon; empty for the file as a whole.
        entry: String,
        /// What is wrong with it.
        reason: String,
    },

    /// An entry of a file of user interfaces is damaged.
    #[error("{}: {entry}{reason}; correct the entry, or fetch the file again", path.display())]
    WrongEntry {
        /// The file.
        path: PathBuf,
        /// Line and place of the entry and a colon; empty for the file as a whole.
        entry: String,
        /// What is wrong with it.
        reason: String,
    },

    /// A file of trained weights is damaged, or is that of another model.
    #[error("{}: {reason}", path.display())]
    WrongWeights {
        /// The file.
        path: PathBuf,
        /// What is wrong, what is allowed, what to do.
        reason: String,
    },

    /// The manifest has no such data set.
    #[error("there is no data set '{id}'; the manifest {} has {}", path.display(), list(known, "none"))]
    UnknownDataSet {
        /// Name that was asked for.
        id: String,
        /// The manifest.
        path: PathBuf,
        /// Names that exist.
        known: Vec<String>,
    },

    /// A row or column outside an image was asked for.
    #[error("image '{image}' has no {what} {index}: it has {len} of them, counted from 0")]
    OutOfImage {
        /// Name of the image.
        image: String,
        /// "row" or "column".
        what: &'static str,
        /// Index that was asked for.
        index: usize,
        /// How many there are.
        len: usize,
    },
}

impl DataError {
    /// Turns an operating-system error on `path` into one that says whether the file is missing.
    pub(crate) fn io(path: &Path, what: &'static str, source: std::io::Error) -> Self {
        match source.kind() {
            std::io::ErrorKind::NotFound => DataError::NotFound { path: path.to_owned(), what },
            _ => DataError::Unreadable { path: path.to_owned(), source },
        }
    }
}

fn list(names: &[String], none: &str) -> String {
    match names {
        [] => none.to_owned(),
        _ => names.join(", "),
    }
}

fn tuple(shape: &[u64]) -> String {
    let axes: Vec<String> = shape.iter().map(u64::to_string).collect();
    format!("({})", axes.join(", "))
}
