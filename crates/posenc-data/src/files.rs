//! Sets of files that a protocol reads directly: text, annotations, archives too large to be loaded whole.

use std::fmt::Write as _;
use std::fs::{DirEntry, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::digest;
use crate::directory::{DataDirectory, file_name};
use crate::error::DataError;
use crate::sets::fetch::{Download, RemoteFile};
use crate::sets::fields;
use crate::sets::origin::{Origin, compared};

/// Maximum number of files that are listed in a set without a published checksum, more than in ImageNet.
const MAX_FILES: usize = 2_000_000;

/// Maximum length, in characters, of an entry's path in a message; the middle of longer ones is left out.
const MAX_PLACE: usize = 160;

/// Content of a set of files, which selects its reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Downsampled ImageNet, as npz archives or folders of PNG files: [`crate::DownsampledImages`].
    DownsampledImages,
    /// Sentences and their translations: [`crate::ParallelText`].
    ParallelText,
    /// Photographs with boxes: [`crate::AnnotatedImages`].
    AnnotatedImages,
    /// A file of trained weights: [`crate::WeightFile`].
    Weights,
    /// Screens with labelled boxes: [`crate::interfaces::LabelledScreens`].
    LabelledScreens,
    /// Screens with captions of widgets: [`crate::interfaces::WidgetScreens`].
    WidgetCaptions,
    /// Vectors of words: [`crate::interfaces::WordVectors`].
    WordVectors,
}

impl Format {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Format::DownsampledImages => "downsampled images",
            Format::ParallelText => "parallel text",
            Format::AnnotatedImages => "annotated images",
            Format::Weights => "weights",
            Format::LabelledScreens => "labelled screens",
            Format::WidgetCaptions => "widget captions",
            Format::WordVectors => "word vectors",
        }
    }
}

/// A set of files in the manifest. If it is missing, the protocols that read it do not run; nothing replaces it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSet {
    #[serde(deserialize_with = "fields::id")]
    pub id: String,
    #[serde(deserialize_with = "fields::text")]
    pub title: String,
    #[serde(deserialize_with = "fields::text")]
    pub license: String,
    #[serde(deserialize_with = "fields::text")]
    pub origin: String,
    pub format: Format,
    /// Relative paths of the folder; the first that exists is used.
    #[serde(deserialize_with = "fields::paths")]
    pub any_of: Vec<PathBuf>,
    /// SHA-256 of the output of `sha256sum *` in the folder; `None` if no checksum is published.
    #[serde(default, deserialize_with = "fields::sha256")]
    pub sha256: Option<String>,
    #[serde(default)]
    pub files: Vec<RemoteFile>,
    #[serde(default, deserialize_with = "fields::some_text")]
    pub steps: Option<String>,
    /// The unavailable data of the paper that the set replaces.
    #[serde(default, deserialize_with = "fields::some_text")]
    pub substitutes_for: Option<String>,
    /// The items of the papers that use it, as `paper/item`.
    #[serde(deserialize_with = "fields::texts")]
    pub used_by: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileIdentity {
    /// The set's name for the paper's own data, else the name with the prefix `substitute:`, `other:` or `unverified:`.
    pub label: String,
    /// Where the files come from; [`Origin::User`] if there is no checksum to compare with.
    pub origin: Origin,
    /// Changes whenever the files do.
    pub sha256: String,
    pub folder: PathBuf,
    pub warnings: Vec<String>,
}

impl FileSet {
    /// Looks for the set in a data directory; `None` if it is missing.
    pub fn find(&self, directory: &DataDirectory) -> Result<Option<FileIdentity>, DataError> {
        let Some(folder) = self.folder(directory) else {
            return Ok(None);
        };
        let id = &self.id;
        let mut warnings = Vec::new();
        let (sha256, is_listed) = match self.format {
            // Weights of two trainings may have the same file name and size.
            Format::Weights | Format::WordVectors => self.of_content(&folder)?,
            _ if self.sha256.is_some() => self.of_content(&folder)?,
            _ => (of_names(&folder)?, false),
        };
        let published = match &self.sha256 {
            Some(published) => published,
            None if is_listed => &sha256,
            None => {
                warnings.push(format!(
                    "{id}: no checksum of {} is published; results on them are labeled unverified:{id}",
                    folder.display()
                ));
                let (label, origin) = (format!("unverified:{id}"), Origin::User);
                return Ok(Some(FileIdentity { label, origin, sha256, folder, warnings }));
            }
        };
        let what = format!("the files in {}", folder.display());
        let own = self.substitutes_for.as_deref();
        let (label, origin) = compared(id, own, &what, &sha256, published, &mut warnings);
        Ok(Some(FileIdentity { label, origin, sha256, folder, warnings }))
    }

    /// Checksum of the files directly inside a folder, and whether they are those that the manifest lists.
    fn of_content(&self, folder: &Path) -> Result<(String, bool), DataError> {
        let listing = digest::list(&files_in(folder)?)?;
        let line = |file: &RemoteFile| format!("{}  {}", file.sha256, file_name(&file.path));
        let mut listed: Vec<String> = self.files.iter().map(line).collect();
        let mut found: Vec<&str> = listing.lines().collect();
        listed.sort();
        found.sort_unstable();
        let is_listed = !listed.is_empty() && found == listed;
        Ok((digest::of_bytes(listing.as_bytes()), is_listed))
    }

    pub fn download(&self) -> Download {
        Download::new(&self.files, self.steps.as_deref())
    }

    /// The first path that is a folder.
    pub(crate) fn folder(&self, directory: &DataDirectory) -> Option<PathBuf> {
        let mut paths = self.any_of.iter().map(|path| directory.path().join(path));
        paths.find(|path| path.is_dir())
    }

    /// A sentence about where to get the missing set.
    #[must_use]
    pub fn absence(&self, directory: &DataDirectory) -> String {
        let paths: Vec<String> = self.any_of.iter().map(|p| p.display().to_string()).collect();
        format!(
            "{0}: not found in {1} (looked for {2}); it is available from {3}; see `cargo xtask data fetch {0}`",
            self.id,
            directory.path().display(),
            paths.join(", "),
            self.origin
        )
    }
}

pub(crate) fn open(path: &Path) -> Result<File, DataError> {
    posenc_files::open(path).map_err(|error| DataError::io(path, "file", error))
}

/// Reads a regular file of at most `max` bytes.
pub(crate) fn read_whole(path: &Path, what: &str, max: u64) -> Result<Vec<u8>, DataError> {
    posenc_files::read(path, max).map_err(|error| match error.kind() {
        ErrorKind::InvalidData => DataError::at(path, format_args!("{what}: {error}")),
        _ => DataError::io(path, "file", error),
    })
}

/// Parses JSON as `T`. In messages, the path inside the JSON precedes the error, and `hint` follows it.
pub(crate) fn from_json<T: DeserializeOwned>(
    path: &Path,
    bytes: &[u8],
    hint: impl Fn(&serde_json::Error) -> String,
) -> Result<T, DataError> {
    let wrong = |place: &str, reason: String| DataError::in_entry(path, &shortened(place), reason);
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let place = match error.path().to_string().as_str() {
            "." => String::new(),
            place => format!("{place}: "),
        };
        let inner = error.inner();
        wrong(&place, format!("{inner}{}", hint(inner)))
    })?;
    reader.end().map_err(|error| wrong("", error.to_string()))?;
    Ok(value)
}

fn shortened(place: &str) -> String {
    let characters: Vec<char> = place.chars().collect();
    if characters.len() <= MAX_PLACE {
        return place.to_owned();
    }
    let half = MAX_PLACE / 2;
    let first: String = characters[..half].iter().collect();
    let last: String = characters[characters.len() - half..].iter().collect();
    format!("{first}…{last}")
}

/// All entries of a folder, sorted by name.
fn listed(folder: &Path) -> Result<Vec<(PathBuf, DirEntry)>, DataError> {
    let entries = std::fs::read_dir(folder).and_then(|entries| {
        entries.map(|entry| entry.map(|entry| (entry.path(), entry))).collect::<Result<Vec<_>, _>>()
    });
    let mut entries = entries.map_err(|source| DataError::io(folder, "folder", source))?;
    entries.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(entries)
}

/// Whether a name begins with a period, such as that of "._photo.jpg", which some systems leave next to photo.jpg.
pub(crate) fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

/// Files and folders directly inside a folder, sorted by name, without hidden ones.
pub(crate) fn paths_in(folder: &Path) -> Result<Vec<PathBuf>, DataError> {
    let paths = listed(folder)?.into_iter().map(|(path, _)| path);
    Ok(paths.filter(|path| !is_hidden(path)).collect())
}

/// The files among [`paths_in`]. Follows links, because data are often stored elsewhere.
pub(crate) fn files_in(folder: &Path) -> Result<Vec<PathBuf>, DataError> {
    Ok(paths_in(folder)?.into_iter().filter(|path| path.is_file()).collect())
}

/// The only file in a folder whose name fits. `what` is one, in words; `hint` says what is expected.
pub(crate) fn only_file(
    folder: &Path,
    what: &str,
    hint: &str,
    fits: impl Fn(&str) -> bool,
) -> Result<PathBuf, DataError> {
    let mut files = files_in(folder)?;
    files.retain(|path| fits(&file_name(path)));
    match files.len() {
        1 => Ok(files.remove(0)),
        0 => Err(DataError::missing(folder, what, hint)),
        n => {
            let wanted = format!("single {what} (there are {n})");
            Err(DataError::missing(folder, wanted, format_args!("{hint}; remove all but one")))
        }
    }
}

pub(crate) fn has_ending(path: &Path, endings: &[&str]) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    endings.iter().any(|known| ending.eq_ignore_ascii_case(known))
}

/// Checksum of the names and sizes of all files below a folder.
fn of_names(folder: &Path) -> Result<String, DataError> {
    let mut text = String::new();
    let mut folders = vec![folder.to_owned()];
    let mut count = 0;
    while let Some(next) = folders.pop() {
        let mut inner = Vec::new();
        for (path, entry) in listed(&next)? {
            // Links to folders are not followed, because they may form cycles.
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                inner.push(path);
            } else if !is_hidden(&path)
                && let Ok(metadata) = std::fs::metadata(&path)
                && metadata.is_file()
            {
                let name = path.strip_prefix(folder).unwrap_or(&path);
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{} {}", metadata.len(), name.display());
                count += 1;
            }
        }
        folders.extend(inner.into_iter().rev());
        if count > MAX_FILES {
            let limit = MAX_FILES as u64;
            return Err(DataError::too_large(folder, "the number of files", count as u128, limit));
        }
    }
    Ok(digest::of_bytes(text.as_bytes()))
}
