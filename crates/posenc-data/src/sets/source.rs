//! Loads the signals of a data set by name, from any source.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::clip::footage::{self, Footage};
use crate::clip::frame::{ClipRequest, Values};
use crate::clip::video::no_support;
use crate::digest;
use crate::directory::{DataDirectory, file_name};
use crate::error::{DataError, VIDEO_CURE};
use crate::generate;
use crate::image::picture::{self, Picture};
use crate::npz::{self, Element, RawArray};
use crate::sets::manifest::{DataSet, Kind, Manifest};
use crate::sets::origin::{Origin, compared};
use crate::signal::Signal;
use posenc_files::limits::MAX_ARRAY_BYTES;

/// Identity of a set of signals, known without decoding a user's images or generating any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// `div2k-test`, `substitute:video-clips`, `other:div2k-test`, `embedded:dead-leaves` or `user:<name of the folder>`. It equals the
    /// name of the set only if the signals are the paper's own.
    pub label: String,
    pub origin: Origin,
    /// 64 hexadecimal digits that change whenever a signal of the set does: the SHA-256 of the
    /// pixels for the paper's pictures, of names and file contents for clips and a user's files, of
    /// generator, version and seed for generated signals.
    pub sha256: String,
    /// Names of the signals, in order.
    pub signals: Vec<String>,
    pub warnings: Vec<String>,
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
    /// An image file at one of the layout's paths, or those of the user, in the order of their names.
    Files(Vec<PathBuf>),
    /// Clips, the manifest's or the user's.
    Footage(Vec<Footage>),
    Nothing,
}

impl Found {
    /// Names of at most as many signals as the set has.
    fn names(&self, set: &DataSet) -> Vec<String> {
        match self {
            Found::Array(array) => {
                let n = array.shape.first().copied().unwrap_or_default();
                (0..n.min(set.count)).map(array_name).collect()
            }
            Found::Files(files) => files.iter().take(set.count).map(|f| file_name(f)).collect(),
            Found::Footage(clips) => clips.iter().take(set.count).map(Footage::name).collect(),
            Found::Nothing => (0..set.count).map(|i| set.kind.generated_name(i)).collect(),
        }
    }

    /// A warning if there are more files than the set has signals.
    fn unused(&self, set: &DataSet, label: &str) -> Option<String> {
        let found = match self {
            Found::Files(files) => files.len(),
            Found::Footage(clips) => clips.len(),
            Found::Array(_) | Found::Nothing => 0,
        };
        let (kind, count) = (set.kind.name(), set.count);
        (found > count).then(|| {
            format!("{label}: there are {found} {kind}, the first {count} by name are used")
        })
    }

    /// A video that this build cannot read.
    fn unreadable(&self) -> Option<&Path> {
        match self {
            Found::Footage(clips) => footage::unreadable(clips),
            _ => None,
        }
    }
}

fn array_name(index: usize) -> String {
    format!("image-{index:02}")
}

impl DataSource {
    /// A source without images of the user's own.
    pub fn new(manifest: Manifest, directory: DataDirectory) -> Self {
        DataSource { manifest, directory, overrides: BTreeMap::new() }
    }

    /// Uses the signals at `path` for data set `id` (the option `--images ID=PATH`): a folder or one image file for a set of images; for a
    /// set of clips a video file, an npz file, a folder of frames, or a folder of such folders and of video files, or of npz files.
    pub fn use_images(&mut self, id: &str, path: &Path) -> Result<(), DataError> {
        let set = self.manifest.get(id)?;
        let (found, _) = user_files(set, path)?;
        if let Some(video) = found.unreadable() {
            return Err(no_support(video));
        }
        self.overrides.insert(id.to_owned(), path.to_owned());
        Ok(())
    }

    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    pub fn directory(&self) -> &DataDirectory {
        &self.directory
    }

    /// Identity of the set that [`DataSource::load`] would return.
    pub fn identity(&self, id: &str, seed: u64) -> Result<Identity, DataError> {
        Ok(self.find(self.manifest.get(id)?, seed)?.0)
    }

    /// Loads data set `id`: signals that all have the size, the channels and the frames that the manifest names.
    ///
    /// The signals come from the first source that exists: those given by [`DataSource::use_images`]; the files that the manifest names;
    /// the embedded generator, whose signals depend on `seed` and which also replaces video files that this build cannot read
    /// ([`crate::video_support`]). Loads at most the manifest's `count`. A damaged file is an error: nothing is silently replaced
    /// by the stand-in.
    ///
    /// Clips that do not have the manifest's frames and size are prepared as in the papers: the middle is cut from the first 2 `frames`
    /// frames, resized to 2 `size` × 2 `size`. Each clip is decoded frame by frame.
    pub fn load(&self, id: &str, seed: u64) -> Result<Vec<Signal>, DataError> {
        let set = self.manifest.get(id)?;
        let (_, found) = self.find(set, seed)?;
        let (size, channels) = (set.size as usize, set.channels);
        let frames = set.frames.unwrap_or_default() as usize;
        Ok(match found {
            Found::Array(array) => array
                .bytes
                .chunks_exact(size * size * channels.count())
                .take(set.count)
                .enumerate()
                .map(|(i, bytes)| {
                    Signal::from_bytes(array_name(i), [size; 2], channels.count(), bytes)
                })
                .collect(),
            Found::Files(files) => {
                let read = |file: &PathBuf| adapt(Picture::read(file)?, set);
                files.iter().take(set.count).map(read).collect::<Result<_, _>>()?
            }
            Found::Footage(clips) => {
                let purpose = format!("data set '{id}'");
                let read = |clip: &Footage| {
                    let name = clip.name();
                    let target = ClipRequest { path: clip.path(), name: &name, purpose: &purpose };
                    target.middle_cube(clip.frames()?, (frames, size, channels))
                };
                clips.iter().take(set.count).map(read).collect::<Result<_, _>>()?
            }
            Found::Nothing => (0..set.count)
                .map(|i| match set.kind {
                    Kind::Images => generate::dead_leaves(seed, id, i, size, channels),
                    Kind::Clips => {
                        generate::moving_dead_leaves(seed, id, i, frames, size, channels)
                    }
                })
                .collect(),
        })
    }

    /// Refuses a set of clips.
    pub fn check_images(&self, id: &str) -> Result<(), DataError> {
        match self.manifest.get(id)?.kind {
            Kind::Images => Ok(()),
            Kind::Clips => Err(DataError::Invalid(format!(
                "data set '{id}' contains clips, but images are expected; name a set of images ('data list' shows them)"
            ))),
        }
    }

    /// Finds and identifies the data of a set.
    pub(crate) fn find(&self, set: &DataSet, seed: u64) -> Result<(Identity, Found), DataError> {
        let id = &set.id;
        if let Some(path) = self.overrides.get(id) {
            return user_identity(set, path, user_files(set, path)?);
        }
        let mut warnings = Vec::new();
        if set.layout.is_none() {
            return Ok(generated(set, seed, warnings));
        }
        let (root, kind) = (self.directory.path(), set.kind.name());
        let label = set.generated_label();
        if let Some(path) = self.layout_path(set) {
            let used = path.display();
            let (sha256, found) = read_layout(set, &path)?;
            if found.unreadable().is_some() {
                warnings.push(format!(
                    "{id}: {used} contains video files, which this build cannot read; using generated clips instead, \
                     labeled {label}; {VIDEO_CURE}"
                ));
                return Ok(generated(set, seed, warnings));
            }
            let what = match set.kind {
                Kind::Images => format!("the pixels of {used}"),
                Kind::Clips => format!("the clips in {used}"),
            };
            let published = set.sha256.as_deref().unwrap_or_default();
            let replaced = set.substitutes_for.as_deref();
            let (label, origin) = compared(id, replaced, &what, &sha256, published, &mut warnings);
            let signals = found.names(set);
            warnings.extend(found.unused(set, &label));
            return Ok((Identity { label, origin, sha256, signals, warnings }, found));
        }
        let paths: Vec<String> =
            set.any_of().iter().map(|path| path.display().to_string()).collect();
        warnings.push(format!(
            "{id}: not found in {} (looked for {}); using generated {kind} instead, labeled {label}; to get it: \
             cargo xtask data fetch {id}",
            root.display(),
            paths.join(", ")
        ));
        Ok(generated(set, seed, warnings))
    }

    /// The first existing path of the layout.
    pub(crate) fn layout_path(&self, set: &DataSet) -> Option<PathBuf> {
        let mut paths = set.any_of().iter().map(|path| self.directory.path().join(path));
        paths.find(|path| path.exists())
    }
}

/// The generated signals that replace a missing set, identified by all settings that determine them. The version counts changes of a
/// generator's output, so that records of other signals are not mistaken for records of these.
fn generated(set: &DataSet, seed: u64, warnings: Vec<String>) -> (Identity, Found) {
    let (name, channels) = (set.kind.generator(), set.channels.count());
    let (id, size) = (&set.id, set.size);
    let mut text = format!("{name} version 1 seed {seed} set {id} size {size} channels {channels}");
    if let Some(frames) = set.frames {
        text.push_str(&format!(" frames {frames}"));
    }
    let identity = Identity {
        label: set.generated_label(),
        origin: Origin::Embedded,
        sha256: digest::of_bytes(text.as_bytes()),
        signals: Found::Nothing.names(set),
        warnings,
    };
    (identity, Found::Nothing)
}

/// Reads the data at a path of the layout and returns its SHA-256.
fn read_layout(set: &DataSet, path: &Path) -> Result<(String, Found), DataError> {
    let key = set.layout.as_ref().and_then(|layout| layout.key.as_deref());
    match (set.kind, key) {
        (Kind::Clips, _) => {
            let clips = footage::at(path)?;
            let used = &clips[..clips.len().min(set.count)];
            Ok((digest::of_bytes(footage::list(used)?.as_bytes()), Found::Footage(clips)))
        }
        (Kind::Images, Some(_)) if path.is_dir() => {
            let array = in_files(set, path)?;
            Ok((digest::of_bytes(&array.bytes), Found::Array(array)))
        }
        (Kind::Images, Some(key)) => {
            let array = npz::read_array(path, key)?;
            let (size, channels) = (set.size as usize, set.channels.count());
            if !matches!(array.shape[..], [n, h, w, c] if n > 0 && (h, w, c) == (size, size, channels))
            {
                let required = format!("(n, {size}, {size}, {channels}) with n at least 1");
                return Err(DataError::shape(path, key, &array.shape, required));
            }
            Ok((digest::of_bytes(&array.bytes), Found::Array(array)))
        }
        (Kind::Images, None) => {
            let sha256 = Picture::read(path)?.pixels_sha256();
            Ok((sha256, Found::Files(vec![path.to_owned()])))
        }
    }
}

/// The images of a folder as the array of the layout that has the same pixels.
fn in_files(set: &DataSet, folder: &Path) -> Result<RawArray, DataError> {
    let files = picture::images_in(folder)?;
    let (size, channels) = (set.size as usize, set.channels.count());
    let total = (size * size * channels) as u128 * files.len() as u128;
    if total > u128::from(MAX_ARRAY_BYTES) {
        let what = format!("the folder with {} images", files.len());
        return Err(DataError::too_large(folder, what, total, MAX_ARRAY_BYTES));
    }
    let mut bytes = Vec::new();
    for file in &files {
        let picture = Picture::read(file)?;
        let found = (picture.width(), picture.height(), picture.channels());
        match picture.into_values() {
            Values::Bytes(values) if found == (set.size, set.size, channels) => {
                bytes.extend(values)
            }
            _ => {
                let message = format!(
                    "not an image of {size}×{size} pixels with {channels} channels of 8 bits, as data set '{0}' has; fetch \
                     the set again, or name a folder of your own images by --images {0}=DIR",
                    set.id
                );
                return Err(DataError::at(file, message));
            }
        }
    }
    let shape = vec![files.len(), size, size, channels];
    Ok(RawArray { shape, element: Element::Byte, bytes })
}

/// Converts a picture to the size and the channels of the data set.
fn adapt(picture: Picture, set: &DataSet) -> Result<Signal, DataError> {
    let picture = picture.fit(set.size, &format!("data set '{}'", set.id))?;
    Ok(picture.to_signal(file_name(&picture.path)).converted(set.channels))
}

/// The user's own signals at a path: a folder's images or the one image file itself, or clips. Also a warning for each image of the folder
/// that is too small and therefore skipped.
fn user_files(set: &DataSet, path: &Path) -> Result<(Found, Vec<String>), DataError> {
    if set.kind != Kind::Images {
        let clips = footage::at(path)?;
        clips.iter().try_for_each(|clip| check_name(clip.path()))?;
        return Ok((Found::Footage(clips), Vec::new()));
    }
    let metadata =
        std::fs::metadata(path).map_err(|source| DataError::io(path, "file or folder", source))?;
    if !metadata.is_dir() {
        check_name(path)?;
        return Ok((Found::Files(vec![path.to_owned()]), Vec::new()));
    }
    let (mut files, mut skipped) = (Vec::new(), Vec::new());
    for file in picture::images_in(path)? {
        check_name(&file)?;
        // Images beyond those of the set are not used. One that cannot be read is an error when it is loaded.
        let sides = if files.len() < set.count { picture::sides(&file).ok() } else { None };
        match sides {
            Some((width, height)) if width.min(height) < set.size => skipped.push(format!(
                "skipped: {}: {width}×{height} pixels, but data set '{}' needs at least {2}×{2}",
                file.display(),
                set.id,
                set.size
            )),
            _ => files.push(file),
        }
    }
    if files.is_empty() {
        let message = format!(
            "no image of the folder has at least {0}×{0} pixels, which data set '{1}' needs; smaller ones are never enlarged: \
             use larger images",
            set.size, set.id
        );
        return Err(DataError::at(path, message));
    }
    Ok((Found::Files(files), skipped))
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

fn user_identity(
    set: &DataSet,
    path: &Path,
    (found, skipped): (Found, Vec<String>),
) -> Result<(Identity, Found), DataError> {
    // The versions count changes to how a user's signals are resized.
    let (size, channels) = (set.size, set.channels.count());
    let mut text = match set.frames {
        None => format!("user images, version 1, size {size}, {channels} channels\n"),
        Some(frames) => {
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
        Found::Array(_) | Found::Nothing => {}
    }
    let named = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    check_name(&named)?;
    let label = format!("user:{}", file_name(&named));
    let identity = Identity {
        origin: Origin::User,
        sha256: digest::of_bytes(text.as_bytes()),
        signals: found.names(set),
        warnings: skipped.into_iter().chain(found.unused(set, &label)).collect(),
        label,
    };
    Ok((identity, found))
}
