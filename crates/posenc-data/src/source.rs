//! From the name of a data set to its images, whatever they come from.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::digest;
use crate::directory::DataDirectory;
use crate::error::DataError;
use crate::image::Image;
use crate::manifest::{DataSet, Layout, Manifest};
use crate::npz::{self, ByteArray};
use crate::picture::{self, Picture};

/// Where a set of signals came from; it decides what its results may be compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The paper's own data: the checksum is the manifest's.
    Published,
    /// Found where the paper's data lie, but with another checksum.
    Other,
    /// Generated, since nothing was found.
    Embedded,
    /// Images of the user's own.
    User,
}

/// What identifies a set of signals; known without decoding a user's images or generating any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// `div2k-test`, `other:div2k-test`, `embedded:dead-leaves` or `user:<name of the folder>`.
    pub label: String,
    /// Where the signals come from.
    pub origin: Origin,
    /// 64 hexadecimal digits that change whenever a signal of the set does: the SHA-256 of the
    /// pixels for the paper's data, of names and file contents for a user's, of generator, version
    /// and seed for generated images. It does not depend on how many signals are loaded.
    pub sha256: String,
    /// Names of the signals that [`DataSource::load`] gives, in its order.
    pub signals: Vec<String>,
    /// What a person should know, one sentence each.
    pub warnings: Vec<String>,
}

/// The signals of a data set.
#[derive(Debug, Clone, PartialEq)]
pub struct ImageSet {
    /// As [`Identity::label`].
    pub label: String,
    /// The images, all with the size and the channels that the manifest names.
    pub signals: Vec<Image>,
    /// As [`Identity::sha256`].
    pub identity_sha256: String,
    /// Where they come from.
    pub origin: Origin,
    /// What a person should know, one sentence each.
    pub warnings: Vec<String>,
}

/// The manifest, a data directory and the user's own images.
#[derive(Debug, Clone)]
pub struct DataSource {
    manifest: Manifest,
    directory: DataDirectory,
    overrides: BTreeMap<String, PathBuf>,
}

/// Data found for a set, as far read as is needed to identify it.
pub(crate) enum Found {
    /// An array at one of the layout's paths.
    Array(ByteArray),
    /// An image at one of the layout's paths.
    Picture(Box<Picture>),
    /// Files of the user's, in the order of their names.
    Files(Vec<PathBuf>),
    /// Nothing is there.
    Nothing,
}

impl Found {
    /// Names of the signals, as the images get them.
    fn names(&self, set: &DataSet) -> Vec<String> {
        match self {
            Found::Array(array) => {
                let n = array.shape.first().map_or(0, |&n| n as usize);
                (0..n.min(set.count)).map(array_name).collect()
            }
            Found::Picture(picture) => vec![file_name(&picture.path)],
            Found::Files(files) => files.iter().take(set.count).map(|f| file_name(f)).collect(),
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

    /// Takes the images of `path`, a folder or one image file, for data set `id` (the option
    /// `--images ID=PATH`).
    ///
    /// # Errors
    /// When there is no such data set, or `path` is neither an image file nor a folder with images.
    pub fn use_images(&mut self, id: &str, path: &Path) -> Result<(), DataError> {
        self.manifest.get(id)?;
        user_files(path)?;
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

    /// What [`DataSource::load`] would give, without its signals.
    ///
    /// # Errors
    /// As [`DataSource::load`], except for what only decoding a user's images shows.
    pub fn identity(&self, id: &str, seed: u64) -> Result<Identity, DataError> {
        let set = self.manifest.get(id)?;
        let (mut identity, found) = self.find(set, seed)?;
        identity.signals = found.names(set);
        Ok(identity)
    }

    /// Loads data set `id`.
    ///
    /// Taken is the first that exists of: the images given by [`DataSource::use_images`]; the files
    /// that the manifest names; a folder `<id>/` with images in the data directory; the embedded
    /// generator, whose images follow from `seed`. At most `limit` and never more than the
    /// manifest's `count` signals are loaded, the first ones.
    ///
    /// # Errors
    /// When there is no such data set, or when what was found cannot be used. A damaged file is an
    /// error: nothing is silently replaced by the stand-in.
    pub fn load(&self, id: &str, seed: u64, limit: Option<usize>) -> Result<ImageSet, DataError> {
        let set = self.manifest.get(id)?;
        let (identity, found) = self.find(set, seed)?;
        let n_signals = limit.unwrap_or(usize::MAX).min(set.count);
        let (size, channels) = (set.size as usize, set.channels.count());
        let mut warnings = identity.warnings;
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
                pictures
                    .map(|picture| adapt(picture, set, &mut warnings))
                    .collect::<Result<_, _>>()?
            }
            Found::Files(files) => {
                if files.len() > set.count {
                    let (n_files, count) = (files.len(), set.count);
                    warnings.push(format!(
                        "{}: there are {n_files} images, the first {count} by name are used",
                        identity.label
                    ));
                }
                let read = |file: &PathBuf| adapt(Picture::read(file)?, set, &mut warnings);
                files.iter().take(n_signals).map(read).collect::<Result<_, _>>()?
            }
            Found::Nothing => (0..n_signals)
                .map(|i| set.stand_in.image(seed, id, i, size, set.channels))
                .collect(),
        };
        Ok(ImageSet {
            label: identity.label,
            signals,
            identity_sha256: identity.sha256,
            origin: identity.origin,
            warnings,
        })
    }

    /// Looks for a data set and identifies what is there.
    pub(crate) fn find(&self, set: &DataSet, seed: u64) -> Result<(Identity, Found), DataError> {
        let id = &set.id;
        if let Some(path) = self.overrides.get(id) {
            return user_identity(set, path, user_files(path)?);
        }
        let folder = self.directory.images_folder(id);
        let in_folder = match folder.is_dir() {
            true => match picture::images_in(&folder) {
                Err(DataError::EmptyFolder { .. }) => Some(Vec::new()),
                files => Some(files?),
            },
            false => None,
        };
        let mut warnings = Vec::new();
        if let Some(path) = self.layout_path(set) {
            if in_folder.is_some_and(|files| !files.is_empty()) {
                warnings.push(format!(
                    "{id}: {} is used, not the images in {}; use --images {id}={} for those",
                    path.display(),
                    folder.display(),
                    folder.display()
                ));
            }
            let (sha256, found) = read_layout(set, &path)?;
            let (label, origin) = if sha256 == set.sha256 {
                (id.clone(), Origin::Published)
            } else {
                warnings.push(format!(
                    "{id}: the pixels of {} have SHA-256 {sha256}, the published ones {}; results on them are \
                     labeled other:{id} and not compared with published values",
                    path.display(),
                    set.sha256
                ));
                (format!("other:{id}"), Origin::Other)
            };
            return Ok((Identity { label, origin, sha256, signals: Vec::new(), warnings }, found));
        }
        match in_folder {
            Some(files) if !files.is_empty() => return user_identity(set, &folder, files),
            Some(_) => warnings.push(format!("{id}: {} holds no images", folder.display())),
            None => {}
        }
        let label = format!("embedded:{}", set.stand_in.name());
        warnings.push(format!(
            "{id}: not found in {} (looked for {}); generated images stand in, labeled {label}",
            self.directory.path().display(),
            set.layout
                .any_of()
                .iter()
                .map(|path| path.display().to_string())
                .collect::<Vec<_>>()
                .join(", ")
        ));
        let specification = set.stand_in.specification(seed, id, set.size as usize, set.channels);
        let sha256 = digest::of_bytes(specification.as_bytes());
        Ok((
            Identity { label, origin: Origin::Embedded, sha256, signals: Vec::new(), warnings },
            Found::Nothing,
        ))
    }

    /// The first of the layout's paths at which something lies.
    pub(crate) fn layout_path(&self, set: &DataSet) -> Option<PathBuf> {
        set.layout
            .any_of()
            .iter()
            .map(|path| self.directory.path().join(path))
            .find(|path| path.exists())
    }
}

/// Reads what lies at a path of the layout; gives the SHA-256 of its pixels.
fn read_layout(set: &DataSet, path: &Path) -> Result<(String, Found), DataError> {
    match &set.layout {
        Layout::Npz { key, .. } => {
            let array = npz::read_array(path, key)?;
            let (size, channels) = (u64::from(set.size), set.channels.count() as u64);
            if !matches!(array.shape[..], [n, h, w, c] if n > 0 && (h, w, c) == (size, size, channels))
            {
                return Err(DataError::WrongShape {
                    path: path.to_owned(),
                    key: key.clone(),
                    found: array.shape,
                    required: format!("(n, {size}, {size}, {channels}) with n at least 1"),
                });
            }
            Ok((digest::of_bytes(&array.bytes), Found::Array(array)))
        }
        Layout::Image { .. } => {
            let picture = Picture::read(path)?;
            Ok((picture.pixels_sha256(), Found::Picture(Box::new(picture))))
        }
    }
}

/// Brings a picture to the size and the channels of the data set.
fn adapt(picture: Picture, set: &DataSet, warnings: &mut Vec<String>) -> Result<Image, DataError> {
    let picture = picture.fit(set.size, &set.id)?;
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

/// A folder's images, or the one image file itself.
fn user_files(path: &Path) -> Result<Vec<PathBuf>, DataError> {
    match std::fs::metadata(path)
        .map_err(|source| DataError::io(path, "file or folder", source))?
        .is_dir()
    {
        true => picture::images_in(path),
        false => Ok(vec![path.to_owned()]),
    }
}

fn user_identity(
    set: &DataSet,
    path: &Path,
    files: Vec<PathBuf>,
) -> Result<(Identity, Found), DataError> {
    // The version counts changes to how a user's images are brought to size.
    let mut text =
        format!("user images, version 1, size {}, {} channels\n", set.size, set.channels.count());
    for file in files.iter().take(set.count) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{} {}", digest::of_file(file)?, file_name(file));
    }
    let named = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let identity = Identity {
        label: format!("user:{}", file_name(&named)),
        origin: Origin::User,
        sha256: digest::of_bytes(text.as_bytes()),
        signals: Vec::new(),
        warnings: Vec::new(),
    };
    Ok((identity, Found::Files(files)))
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
