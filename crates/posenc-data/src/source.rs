//! Loads the signals of a data set by name, from any source.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::clip::Clip;
use crate::digest;
use crate::directory::DataDirectory;
use crate::error::{DataError, VIDEO_CURE};
use crate::files::file_name;
use crate::footage::{self, Footage};
use crate::frame::ClipRequest;
use crate::image::Image;
use crate::manifest::{DataSet, Kind, Layout, Manifest};
use crate::npz::{self, RawArray};
use crate::picture::{self, Picture};
use crate::video::{no_support, video_support};

/// Source of a set of signals, which decides what its results may be compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The paper's own data: the checksum is the manifest's.
    Published,
    /// The manifest's files with the manifest's checksum, which replace data of the paper that is unavailable. They are real
    /// and the same everywhere, but results do not compare with published values.
    Substitute,
    /// Found at the path of the paper's data, but with another checksum.
    Other,
    /// Generated, because nothing was found.
    Embedded,
    /// Images or clips of the user's own.
    User,
}

/// Identity of a set of signals, known without decoding a user's images or generating any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// `div2k-test`, `substitute:video-clips`, `other:div2k-test`, `embedded:dead-leaves` or `user:<name of the folder>`. It equals the
    /// name of the set only if the signals are the paper's own.
    pub label: String,
    /// Where the signals come from.
    pub origin: Origin,
    /// 64 hexadecimal digits that change whenever a signal of the set does: the SHA-256 of the
    /// pixels for the paper's data, of names and file contents for a user's and for videos, of
    /// generator, version and seed for generated signals. It does not depend on how many signals
    /// are loaded.
    pub sha256: String,
    /// Names of the loaded signals, in order.
    pub signals: Vec<String>,
    /// Warnings, one sentence each.
    pub warnings: Vec<String>,
}

/// The images of a data set, all with the size and the channels that the manifest names.
pub type ImageSet = SignalSet<Image>;

/// The clips of a data set, all with the frames, the size and the channels that the manifest names.
pub type ClipSet = SignalSet<Clip>;

/// The signals of a data set.
#[derive(Debug, Clone, PartialEq)]
pub struct SignalSet<S> {
    /// As [`Identity::label`].
    pub label: String,
    /// The signals, in the order of [`Identity::signals`].
    pub signals: Vec<S>,
    /// As [`Identity::sha256`].
    pub identity_sha256: String,
    /// Where they come from.
    pub origin: Origin,
    /// Warnings, one sentence each.
    pub warnings: Vec<String>,
}

impl<S> SignalSet<S> {
    fn new(identity: Identity, signals: Vec<S>) -> Self {
        let Identity { label, origin, sha256: identity_sha256, warnings, .. } = identity;
        SignalSet { label, signals, identity_sha256, origin, warnings }
    }
}

/// The manifest, a data directory and the user's own images.
#[derive(Debug, Clone)]
pub struct DataSource {
    manifest: Manifest,
    directory: DataDirectory,
    overrides: BTreeMap<String, PathBuf>,
}

/// Data found for a set, read only as far as needed to identify it.
pub(crate) enum Found {
    /// An array at one of the layout's paths.
    Array(RawArray),
    /// An image at one of the layout's paths.
    Picture(Box<Picture>),
    /// Image files of the user's, in the order of their names.
    Files(Vec<PathBuf>),
    /// Clips, the manifest's or the user's.
    Footage(Vec<Footage>),
    /// No data.
    Nothing,
}

impl Found {
    /// Names of the signals.
    fn names(&self, set: &DataSet) -> Vec<String> {
        match self {
            Found::Array(array) => {
                let n = array.shape.first().map_or(0, |&n| n as usize);
                (0..n.min(set.count)).map(array_name).collect()
            }
            Found::Picture(picture) => vec![file_name(&picture.path)],
            Found::Files(files) => files.iter().take(set.count).map(|f| file_name(f)).collect(),
            Found::Footage(clips) => clips.iter().take(set.count).map(Footage::name).collect(),
            Found::Nothing => (0..set.count).map(|i| set.stand_in.signal_name(i)).collect(),
        }
    }
}

fn array_name(index: usize) -> String {
    format!("image-{index:02}")
}

impl DataSource {
    /// A source without images of the user's own, except in folders of the data directory.
    #[must_use]
    pub fn new(manifest: Manifest, directory: DataDirectory) -> Self {
        DataSource { manifest, directory, overrides: BTreeMap::new() }
    }

    /// Uses the signals at `path` for data set `id` (the option `--images ID=PATH`): a folder or one image file for a set of images; for a
    /// set of clips a video file, an npz file, a folder of frames, or a folder of such folders and of video files.
    ///
    /// # Errors
    /// When there is no such data set, `path` contains none of these, or `path` names a video that this build cannot read.
    pub fn use_images(&mut self, id: &str, path: &Path) -> Result<(), DataError> {
        let set = self.manifest.get(id)?;
        if let Found::Footage(clips) = user_files(set, path)?
            && let Some(video) = unreadable_video(&clips)
        {
            return Err(no_support(video));
        }
        self.overrides.insert(id.to_owned(), path.to_owned());
        Ok(())
    }

    /// The manifest.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The data directory.
    #[must_use]
    pub fn directory(&self) -> &DataDirectory {
        &self.directory
    }

    /// Identity of the set that [`DataSource::load`] or [`DataSource::load_clips`] would return.
    ///
    /// # Errors
    /// As those, except for errors that only decoding reveals.
    pub fn identity(&self, id: &str, seed: u64) -> Result<Identity, DataError> {
        let set = self.manifest.get(id)?;
        let (mut identity, found) = self.find(set, seed)?;
        identity.signals = found.names(set);
        Ok(identity)
    }

    /// Loads data set `id` of images.
    ///
    /// The signals come from the first source that exists: the images given by [`DataSource::use_images`]; the files that the manifest
    /// names; a folder `<id>/` with images in the data directory; the embedded generator, whose images depend on `seed`. Loads the first
    /// `limit` signals, and never more than the manifest's `count`.
    ///
    /// # Errors
    /// When there is no such data set of images, or when what was found cannot be used. A damaged
    /// file is an error: nothing is silently replaced by the stand-in.
    pub fn load(&self, id: &str, seed: u64, limit: Option<usize>) -> Result<ImageSet, DataError> {
        let set = self.manifest.get(id)?;
        if set.kind != Kind::Images {
            return Err(wrong_kind(set, "images"));
        }
        let (mut identity, found) = self.find(set, seed)?;
        let n_signals = limit.unwrap_or(usize::MAX).min(set.count);
        let (size, channels) = (set.size as usize, set.channels.count());
        let warnings = &mut identity.warnings;
        let signals = match found {
            Found::Array(array) => array
                .bytes
                .chunks_exact(size * size * channels)
                .take(n_signals)
                .enumerate()
                .map(|(i, bytes)| Image::from_bytes(array_name(i), size, size, channels, bytes))
                .collect(),
            Found::Picture(picture) => {
                let pictures = [*picture].into_iter().take(n_signals);
                pictures.map(|picture| adapt(picture, set, warnings)).collect::<Result<_, _>>()?
            }
            Found::Files(files) => {
                warnings.extend(unused(set, &identity.label, files.len()));
                let read = |file: &PathBuf| adapt(Picture::read(file)?, set, warnings);
                files.iter().take(n_signals).map(read).collect::<Result<_, _>>()?
            }
            Found::Nothing | Found::Footage(_) => (0..n_signals)
                .map(|i| set.stand_in.image(seed, id, i, size, set.channels))
                .collect(),
        };
        Ok(SignalSet::new(identity, signals))
    }

    /// Loads data set `id` of clips, from the same sources in the same order as [`DataSource::load`]. The embedded generator also replaces
    /// video files that this build cannot read ([`video_support`]).
    ///
    /// Clips that do not have the manifest's frames and size are prepared as in the papers: the middle is cut from the first 2 `frames`
    /// frames, resized to 2 `size` × 2 `size`. Each clip is decoded frame by frame.
    ///
    /// # Errors
    /// As [`DataSource::load`]; a clip that is truncated, or has too few or too small frames, is an error that names the file.
    pub fn load_clips(
        &self,
        id: &str,
        seed: u64,
        limit: Option<usize>,
    ) -> Result<ClipSet, DataError> {
        let set = self.manifest.get(id)?;
        let Kind::Clips { frames } = set.kind else {
            return Err(wrong_kind(set, "clips"));
        };
        let (mut identity, found) = self.find(set, seed)?;
        let n_signals = limit.unwrap_or(usize::MAX).min(set.count);
        let (size, frames) = (set.size as usize, frames as usize);
        let warnings = &mut identity.warnings;
        let signals = match found {
            Found::Footage(clips) => {
                warnings.extend(unused(set, &identity.label, clips.len()));
                // Notes on the manifest's own files are not needed.
                let own = matches!(identity.origin, Origin::Published | Origin::Substitute);
                let purpose = format!("data set '{id}'");
                let read = |clip: &Footage| {
                    let name = clip.name();
                    let target = ClipRequest { path: clip.path(), name: &name, purpose: &purpose };
                    let (read, notes) = target.middle_cube(clip.frames()?, frames, size)?;
                    if !own {
                        warnings.extend(notes);
                    }
                    Ok(set.channels.convert_clip(read))
                };
                clips.iter().take(n_signals).map(read).collect::<Result<_, _>>()?
            }
            Found::Nothing | Found::Array(_) | Found::Picture(_) | Found::Files(_) => (0
                ..n_signals)
                .map(|i| set.stand_in.clip(seed, id, i, frames, size, set.channels))
                .collect(),
        };
        Ok(SignalSet::new(identity, signals))
    }

    /// Finds and identifies the data of a set.
    pub(crate) fn find(&self, set: &DataSet, seed: u64) -> Result<(Identity, Found), DataError> {
        let id = &set.id;
        if let Some(path) = self.overrides.get(id) {
            return user_identity(set, path, user_files(set, path)?);
        }
        let stand_in = set.stand_in.name();
        let mut warnings = Vec::new();
        if set.layout == Layout::Generated {
            return Ok(generated(set, seed, warnings));
        }
        let folder = self.directory.images_folder(id);
        let in_folder = match folder.is_dir() {
            true => match user_files(set, &folder) {
                Err(DataError::EmptyFolder(_)) => {
                    warnings.push(format!(
                        "{id}: {} contains no {}",
                        folder.display(),
                        set.kind.name()
                    ));
                    None
                }
                found => Some(found?),
            },
            false => None,
        };
        if let Some(path) = self.layout_path(set) {
            if in_folder.is_some() {
                warnings.push(format!(
                    "{id}: {} is used, not the {} in {}; use --images {id}={} for those",
                    path.display(),
                    set.kind.name(),
                    folder.display(),
                    folder.display()
                ));
            } else {
                // An empty folder does not matter if other files are found.
                warnings.clear();
            }
            let (sha256, found) = read_layout(set, &path)?;
            if needs_video(&found) {
                warnings.push(no_video(id, &path, stand_in));
                return Ok(generated(set, seed, warnings));
            }
            let what = match set.kind {
                Kind::Images => "the pixels of",
                Kind::Clips { .. } => "the clips in",
            };
            let what = format!("{what} {}", path.display());
            let own = set.substitutes_for.as_deref();
            let (label, origin) = compared(id, own, &what, &sha256, &set.sha256, &mut warnings);
            return Ok((Identity { label, origin, sha256, signals: Vec::new(), warnings }, found));
        }
        if let Some(found) = in_folder {
            if !needs_video(&found) {
                return user_identity(set, &folder, found);
            }
            warnings.push(no_video(id, &folder, stand_in));
            return Ok(generated(set, seed, warnings));
        }
        warnings.push(format!(
            "{id}: not found in {} (looked for {}); using generated {} instead, labeled embedded:{stand_in}",
            self.directory.path().display(),
            set.layout
                .any_of()
                .iter()
                .map(|path| path.display().to_string())
                .collect::<Vec<_>>()
                .join(", "),
            set.kind.name()
        ));
        Ok(generated(set, seed, warnings))
    }

    /// The first existing path of the layout.
    pub(crate) fn layout_path(&self, set: &DataSet) -> Option<PathBuf> {
        set.layout
            .any_of()
            .iter()
            .map(|path| self.directory.path().join(path))
            .find(|path| path.exists())
    }
}

/// Label and origin of the data found for a set, from its checksum and the manifest's. `own` is the data that the set replaces; `what`
/// describes the data found.
pub(crate) fn compared(
    id: &str,
    own: Option<&str>,
    what: &str,
    sha256: &str,
    published: &str,
    warnings: &mut Vec<String>,
) -> (String, Origin) {
    match (own, sha256 == published) {
        (None, true) => (id.to_owned(), Origin::Published),
        (Some(own), true) => {
            warnings.push(format!(
                "{id}: used instead of {own}; results are labeled substitute:{id} and not compared with published \
                 values"
            ));
            (format!("substitute:{id}"), Origin::Substitute)
        }
        (_, false) => {
            warnings.push(format!(
                "{id}: {what} have SHA-256 {sha256}, the published ones {published}; results on them are labeled \
                 other:{id} and not compared with published values"
            ));
            (format!("other:{id}"), Origin::Other)
        }
    }
}

/// The generated signals that replace a missing set, identified by their generator's settings.
fn generated(set: &DataSet, seed: u64, warnings: Vec<String>) -> (Identity, Found) {
    let mut text = set.stand_in.specification(seed, &set.id, set.size as usize, set.channels);
    if let Kind::Clips { frames } = set.kind {
        // Writing to a string cannot fail.
        let _ = write!(text, " frames {frames}");
    }
    let identity = Identity {
        label: format!("embedded:{}", set.stand_in.name()),
        origin: Origin::Embedded,
        sha256: digest::of_bytes(text.as_bytes()),
        signals: Vec::new(),
        warnings,
    };
    (identity, Found::Nothing)
}

fn wrong_kind(set: &DataSet, asked: &'static str) -> DataError {
    DataError::Invalid(format!(
        "data set '{}' contains {}, but {asked} are expected; name a set of {asked} ('data list' shows them)",
        set.id,
        set.kind.name()
    ))
}

/// A warning if more signals were found than the set has.
fn unused(set: &DataSet, label: &str, found: usize) -> Option<String> {
    let (kind, count) = (set.kind.name(), set.count);
    (found > count)
        .then(|| format!("{label}: there are {found} {kind}, the first {count} by name are used"))
}

/// A video among the clips, if this build cannot read videos.
fn unreadable_video(clips: &[Footage]) -> Option<&Path> {
    let video = clips.iter().find(|clip| clip.needs_video() && !video_support());
    video.map(Footage::path)
}

fn needs_video(found: &Found) -> bool {
    matches!(found, Found::Footage(clips) if unreadable_video(clips).is_some())
}

fn no_video(id: &str, path: &Path, stand_in: &str) -> String {
    format!(
        "{id}: {} contains video files, which this build cannot read; using generated clips instead, labeled \
         embedded:{stand_in}; {VIDEO_CURE}",
        path.display()
    )
}

/// Reads the data at a path of the layout and returns its SHA-256.
fn read_layout(set: &DataSet, path: &Path) -> Result<(String, Found), DataError> {
    match &set.layout {
        Layout::Npz { key, .. } if set.kind != Kind::Images => {
            let (sha256, clips) = footage::in_array(path, key)?;
            Ok((sha256, Found::Footage(clips)))
        }
        Layout::Clips { .. } | Layout::Generated => {
            let clips = footage::at(path)?;
            let used = &clips[..clips.len().min(set.count)];
            Ok((digest::of_bytes(footage::list(used)?.as_bytes()), Found::Footage(clips)))
        }
        Layout::Npz { key, .. } => {
            let array = npz::read_array(path, key)?;
            let (size, channels) = (u64::from(set.size), set.channels.count() as u64);
            if !matches!(array.shape[..], [n, h, w, c] if n > 0 && (h, w, c) == (size, size, channels))
            {
                let required = format!("(n, {size}, {size}, {channels}) with n at least 1");
                return Err(DataError::shape(path, key, &array.shape, required));
            }
            Ok((digest::of_bytes(&array.bytes), Found::Array(array)))
        }
        Layout::Image { .. } => {
            let picture = Picture::read(path)?;
            Ok((picture.pixels_sha256(), Found::Picture(Box::new(picture))))
        }
    }
}

/// Converts a picture to the size and the channels of the data set.
fn adapt(picture: Picture, set: &DataSet, warnings: &mut Vec<String>) -> Result<Image, DataError> {
    let picture = picture.fit(set.size, &format!("data set '{}'", set.id))?;
    let name = file_name(&picture.path);
    let image = picture.to_image(name);
    let from = image.channels;
    warnings.extend(picture.warnings);
    let image = set.channels.convert(image);
    if from != image.channels {
        let what = if from == 1 {
            "gray, repeated as red, green and blue"
        } else {
            "a color image, its luminance is used"
        };
        warnings.push(format!("{}: {what}", picture.path.display()));
    }
    Ok(image)
}

/// The user's own signals at a path: a folder's images or the one image file itself, or clips.
fn user_files(set: &DataSet, path: &Path) -> Result<Found, DataError> {
    if set.kind != Kind::Images {
        let clips = footage::at(path)?;
        clips.iter().try_for_each(|clip| check_name(clip.path()))?;
        return Ok(Found::Footage(clips));
    }
    let metadata =
        std::fs::metadata(path).map_err(|source| DataError::io(path, "file or folder", source))?;
    let files = match metadata.is_dir() {
        true => picture::images_in(path)?,
        false => vec![path.to_owned()],
    };
    files.iter().try_for_each(|file| check_name(file))?;
    Ok(Found::Files(files))
}

/// Checks that records can contain a name: names that differ only in invalid UTF-8 would collide, and a line break would split a line.
fn check_name(path: &Path) -> Result<(), DataError> {
    let is_plain = |name: &std::ffi::OsStr| {
        name.to_str().is_some_and(|name| !name.chars().any(char::is_control))
    };
    match path.file_name().is_none_or(is_plain) {
        true => Ok(()),
        false => Err(DataError::Invalid(format!(
            "{path:?}: records name signals by their files, one to a line, so a name must be UTF-8 without control \
             characters such as line breaks; rename it"
        ))),
    }
}

fn user_identity(set: &DataSet, path: &Path, found: Found) -> Result<(Identity, Found), DataError> {
    // The versions count changes to how a user's signals are resized.
    let (size, channels) = (set.size, set.channels.count());
    let mut text = match set.kind {
        Kind::Images => format!("user images, version 1, size {size}, {channels} channels\n"),
        Kind::Clips { frames } => {
            format!("user clips, version 1, {frames} frames, size {size}, {channels} channels\n")
        }
    };
    match &found {
        Found::Files(files) => {
            for file in files.iter().take(set.count) {
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{} {}", digest::of_file(file)?, file_name(file));
            }
        }
        Found::Footage(clips) => {
            text.push_str(&footage::list(&clips[..clips.len().min(set.count)])?);
        }
        Found::Array(_) | Found::Picture(_) | Found::Nothing => {}
    }
    let named = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    check_name(&named)?;
    let identity = Identity {
        label: format!("user:{}", file_name(&named)),
        origin: Origin::User,
        sha256: digest::of_bytes(text.as_bytes()),
        signals: Vec::new(),
        warnings: Vec::new(),
    };
    Ok((identity, found))
}
