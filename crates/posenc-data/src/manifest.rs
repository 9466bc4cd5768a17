//! The manifest `data/manifest.yaml`: the data sets with their licenses and paths, the items that use them, and the
//! generators that replace missing ones.
//!
//! Serde reads into private types whose names begin with `Wire`; they reject unknown keys. [`Manifest::parse`] converts them
//! to [`DataSet`]s, which are valid by construction.

use std::collections::BTreeSet;
use std::fmt;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use posenc_files::limits::{MAX_ARRAY_BYTES, MAX_MANIFEST_BYTES};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer};

use crate::clip::Clip;
use crate::error::{DataError, list};
use crate::fetch::{Download, RemoteFile, check_url};
use crate::files::{FileSet, Format, inside, read_whole};
use crate::generate::Generator;
use crate::image::Image;

/// Maximum length of a text or path in bytes, ten times the longest one in use.
const MAX_TEXT_BYTES: usize = 5000;

/// All data sets, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    path: PathBuf,
    sets: Vec<DataSet>,
    file_sets: Vec<FileSet>,
}

/// One data set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataSet {
    /// Name: small letters, digits and hyphens.
    pub id: String,
    /// Title in one line.
    pub title: String,
    /// What a signal of the set is.
    pub kind: Kind,
    /// License of the data.
    pub license: String,
    /// Author and address.
    pub origin: String,
    /// Side length of the (square) images or frames.
    pub size: u32,
    /// Channels of the signals.
    pub channels: Channels,
    /// Number of signals.
    pub count: usize,
    /// Location in the data directory.
    pub layout: Layout,
    /// SHA-256 of the data. For images and arrays: of the stored elements, image by image or frame by frame, row by row,
    /// channels fastest. For a folder of video files: of the lines that `sha256sum` prints for them. Empty for a set that is
    /// always generated.
    pub sha256: String,
    /// How its files can be obtained.
    pub download: Download,
    /// The unavailable data of the paper that the set's own files replace.
    pub substitutes_for: Option<String>,
    /// The items of the papers that use it, as `paper/item`.
    pub used_by: Vec<String>,
    /// Generator of the signals that replace a missing set.
    pub stand_in: Generator,
}

/// What a signal of a data set is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Square images.
    Images,
    /// Video clips with square frames.
    Clips {
        /// Number of frames of each.
        frames: u32,
    },
}

impl Kind {
    /// "images" or "clips".
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Images => "images",
            Kind::Clips { .. } => "clips",
        }
    }
}

/// Channels of a data set's signals; loaded signals are converted to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Channels {
    /// Red, green, blue.
    Rgb,
    /// One channel: gray as stored, or the luminance of a color image.
    Gray,
}

impl Channels {
    /// 3 or 1.
    #[must_use]
    pub fn count(self) -> usize {
        match self {
            Channels::Rgb => 3,
            Channels::Gray => 1,
        }
    }

    pub(crate) fn convert(self, image: Image) -> Image {
        match (self, image.channels) {
            (Channels::Rgb, 3) | (Channels::Gray, 1) => image,
            (Channels::Rgb, _) => image.rgb(),
            (Channels::Gray, _) => image.luminance(),
        }
    }

    pub(crate) fn convert_clip(self, clip: Clip) -> Clip {
        match self {
            Channels::Rgb => clip.rgb(),
            Channels::Gray => clip.luminance(),
        }
    }
}

/// Location of a data set; the first existing path is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layout {
    /// An array (count, size, size, channels) in an npz archive; for clips (count, frames, size, size, channels).
    Npz {
        /// Name of the array.
        key: String,
        /// Relative paths of the archive.
        any_of: Vec<PathBuf>,
    },
    /// One image file.
    Image {
        /// Relative paths of the image.
        any_of: Vec<PathBuf>,
    },
    /// Clips: a video file, a folder of video files or of folders of frames.
    Clips {
        /// Relative paths of the file or folder.
        any_of: Vec<PathBuf>,
    },
    /// No files: the set is always generated.
    Generated,
}

impl Layout {
    /// Relative paths at which the data may be.
    #[must_use]
    pub fn any_of(&self) -> &[PathBuf] {
        match self {
            Layout::Npz { any_of, .. } | Layout::Image { any_of } | Layout::Clips { any_of } => {
                any_of
            }
            Layout::Generated => &[],
        }
    }
}

impl Manifest {
    /// Reads a manifest.
    ///
    /// # Errors
    /// When the file cannot be read, or as [`Manifest::parse`].
    pub fn read(path: &Path) -> Result<Self, DataError> {
        let bytes = read_whole(path, "the manifest", MAX_MANIFEST_BYTES)?;
        let text = String::from_utf8(bytes)
            .map_err(|_| DataError::at(path, "not UTF-8; convert it: iconv -t UTF-8"))?;
        Self::parse(&text, path)
    }

    /// Parses a manifest; `path` is used in messages only.
    ///
    /// # Errors
    /// When the text violates the format; the message names the line.
    pub fn parse(text: &str, path: &Path) -> Result<Self, DataError> {
        let fail = |line: Option<usize>, reason: String| match line {
            Some(line) => DataError::at_line(path, line, reason),
            None => DataError::at(path, reason),
        };
        if text.len() as u64 > MAX_MANIFEST_BYTES {
            let message = format!("more than {MAX_MANIFEST_BYTES} bytes, the limit");
            return Err(fail(None, message));
        }
        // libyaml treats a byte order mark as a separate document.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if let Some((line, message)) = posenc_files::unreadable(text) {
            return Err(fail(Some(line), message));
        }
        let last = posenc_files::line_at(text.as_bytes(), text.len());
        let wire: WireManifest = serde_yaml::from_str(text).map_err(|error| {
            let line = error.location().map(|location| location.line().clamp(1, last));
            let reason = error.to_string();
            // The message starts with the location, so the one at the end is removed.
            let reason =
                reason.rsplit_once(" at line ").map_or(reason.as_str(), |(reason, _)| reason);
            fail(line, reason.to_owned())
        })?;

        let mut ids = BTreeSet::new();
        let mut unique = |id: &str| match ids.insert(id.to_owned()) {
            true => Ok(()),
            false => Err(fail(
                line_of_id(text, id, 1),
                format!("data set '{id}' is defined twice; give each its own id"),
            )),
        };
        let wrong = |id: &str, reason: String| {
            fail(line_of_id(text, id, 0), format!("data set '{id}': {reason}"))
        };
        let mut sets: Vec<DataSet> = Vec::with_capacity(wire.sets.len());
        for set in wire.sets {
            let id = set.id.0.clone();
            unique(&id)?;
            sets.push(set.into_data_set().map_err(|reason| wrong(&id, reason))?);
        }
        let mut file_sets: Vec<FileSet> = Vec::with_capacity(wire.file_sets.len());
        for set in wire.file_sets {
            let id = set.id.0.clone();
            unique(&id)?;
            file_sets.push(set.into_file_set().map_err(|reason| wrong(&id, reason))?);
        }
        Ok(Manifest { path: path.to_owned(), sets, file_sets })
    }

    /// The sets of files that protocols read directly, in the order of the file.
    #[must_use]
    pub fn file_sets(&self) -> &[FileSet] {
        &self.file_sets
    }

    /// The set of files named `id`, if there is one.
    #[must_use]
    pub fn file_set(&self, id: &str) -> Option<&FileSet> {
        self.file_sets.iter().find(|set| set.id == id)
    }

    /// The data sets, in the order of the file.
    #[must_use]
    pub fn sets(&self) -> &[DataSet] {
        &self.sets
    }

    /// The data set named `id`.
    ///
    /// # Errors
    /// When no set has this name; the message lists the existing ones.
    pub fn get(&self, id: &str) -> Result<&DataSet, DataError> {
        self.sets.iter().find(|set| set.id == id).ok_or_else(|| {
            let sets = self.sets.iter().map(|set| set.id.clone());
            let known: Vec<String> =
                sets.chain(self.file_sets.iter().map(|set| set.id.clone())).collect();
            DataError::Invalid(format!(
                "there is no data set '{id}'; the manifest {} has {}",
                self.path.display(),
                list(&known, "none")
            ))
        })
    }
}

/// Line, counted from one, of the `nth` definition (counted from zero) of data set `id`.
fn line_of_id(text: &str, id: &str, nth: usize) -> Option<usize> {
    let defines = |line: &str| {
        let line = line.trim_start().trim_start_matches("- ").trim_start();
        let value = line.strip_prefix("id:").map(|value| value.trim().trim_matches(['"', '\'']));
        value.is_some_and(|value| value == id)
    };
    let mut at = 0;
    let lines = text.split(['\n', '\r']).map(|line| {
        at += line.len() + 1;
        (at - 1 - line.len(), line)
    });
    let found = lines.filter(|(_, line)| defines(line)).nth(nth);
    found.map(|(at, _)| posenc_files::line_at(text.as_bytes(), at))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireManifest {
    sets: Vec<WireSet>,
    #[serde(default)]
    file_sets: Vec<WireFileSet>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireFileSet {
    id: WireId,
    title: WireText,
    license: WireText,
    origin: WireText,
    format: Format,
    any_of: Vec<WirePath>,
    sha256: Option<WireSha256>,
    #[serde(default)]
    files: Vec<WireFile>,
    steps: Option<WireText>,
    substitutes_for: Option<WireText>,
    used_by: Vec<WireText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireSet {
    id: WireId,
    title: WireText,
    kind: WireKind,
    license: WireText,
    origin: WireText,
    size: WireCount<4096>,
    frames: Option<WireCount<4096>>,
    channels: Channels,
    count: WireCount<10_000>,
    layout: Option<WireLayout>,
    sha256: Option<WireSha256>,
    #[serde(default)]
    files: Vec<WireFile>,
    steps: Option<WireText>,
    substitutes_for: Option<WireText>,
    used_by: Vec<WireText>,
    stand_in: WireStandIn,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireFile {
    path: WirePath,
    bytes: WireCount<{ u32::MAX }>,
    sha256: WireDigits,
    url: Option<WireUrl>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum WireKind {
    Images,
    Clips,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireLayout {
    key: Option<WireText>,
    any_of: Vec<WirePath>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireStandIn {
    generator: Generator,
}

/// Paths of a set; at least one.
fn paths(any_of: Vec<WirePath>, key: &str) -> Result<Vec<PathBuf>, String> {
    match any_of.is_empty() {
        true => Err(format!("{key} is empty; give at least one path in the data directory")),
        false => Ok(any_of.into_iter().map(|path| path.0).collect()),
    }
}

/// How the files of a set can be obtained. Every file must be below a path of `any_of`, so that the set is found afterwards.
fn download(
    files: Vec<WireFile>,
    steps: Option<WireText>,
    any_of: &[PathBuf],
) -> Result<Download, String> {
    let mut paths = BTreeSet::new();
    for WireFile { path: WirePath(path), .. } in &files {
        let shown = path.display();
        if !any_of.iter().any(|place| path.starts_with(place)) {
            return Err(format!("file '{shown}' lies at none of the paths of any_of"));
        }
        if path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".")) {
            return Err(format!("file '{shown}' is hidden, so it would not be read; rename it"));
        }
        if !paths.insert(path) {
            return Err(format!("file '{shown}' is listed twice; remove one entry"));
        }
    }
    let files = files.into_iter().map(|file| RemoteFile {
        path: file.path.0,
        bytes: file.bytes.0.into(),
        sha256: file.sha256.0,
        url: file.url.map(|url| url.0),
    });
    Ok(Download { files: files.collect(), steps: steps.map(|steps| steps.0) })
}

impl WireFileSet {
    fn into_file_set(self) -> Result<FileSet, String> {
        let any_of = paths(self.any_of, "any_of")?;
        let download = download(self.files, self.steps, &any_of)?;
        Ok(FileSet {
            id: self.id.0,
            title: self.title.0,
            license: self.license.0,
            origin: self.origin.0,
            format: self.format,
            any_of,
            sha256: self.sha256.map(|sha256| sha256.0),
            download,
            substitutes_for: self.substitutes_for.map(|text| text.0),
            used_by: self.used_by.into_iter().map(|text| text.0).collect(),
        })
    }
}

impl WireSet {
    fn into_data_set(self) -> Result<DataSet, String> {
        let (size, count) = (self.size.0, self.count.0);
        let kind = match (self.kind, self.frames) {
            (WireKind::Images, None) => Kind::Images,
            (WireKind::Clips, Some(frames)) => Kind::Clips { frames: frames.0 },
            (WireKind::Images, Some(_)) => {
                return Err("images have no frames; leave frames out, or set kind to clips".into());
            }
            (WireKind::Clips, None) => {
                return Err("frames is missing; give the number of frames of each clip".into());
            }
        };
        let generator = self.stand_in.generator;
        if generator.makes() != kind.name() {
            return Err(format!(
                "generator {} makes {}, but the set contains {}; {} does",
                generator.name(),
                generator.makes(),
                kind.name(),
                Generator::of(kind).name()
            ));
        }
        if let Kind::Clips { frames } = kind {
            let bytes = 4 * 3 * u64::from(frames) * u64::from(size) * u64::from(size);
            if bytes > MAX_ARRAY_BYTES {
                return Err(format!(
                    "a clip of {frames} frames of {size}×{size} pixels takes {bytes} bytes; at most \
                     {MAX_ARRAY_BYTES} are allowed: reduce size or frames"
                ));
            }
        }
        let layout = match self.layout {
            Some(layout) => layout.into_layout(kind, count)?,
            None => Layout::Generated,
        };
        let sha256 = match (&layout, self.sha256) {
            (Layout::Generated, None) => String::new(),
            (Layout::Generated, Some(_)) => {
                return Err("sha256 is given, but no layout; a set without layout is always \
                            generated and has no checksum"
                    .to_owned());
            }
            (_, Some(sha256)) => sha256.0,
            (_, None) => {
                return Err("sha256 is missing; every set with a layout needs one".to_owned());
            }
        };
        let download = download(self.files, self.steps, layout.any_of())?;
        Ok(DataSet {
            id: self.id.0,
            title: self.title.0,
            kind,
            license: self.license.0,
            origin: self.origin.0,
            size,
            channels: self.channels,
            count: count as usize,
            layout,
            sha256,
            download,
            substitutes_for: self.substitutes_for.map(|text| text.0),
            used_by: self.used_by.into_iter().map(|text| text.0).collect(),
            stand_in: generator,
        })
    }
}

impl WireLayout {
    fn into_layout(self, kind: Kind, count: u32) -> Result<Layout, String> {
        let any_of = paths(self.any_of, "layout.any_of")?;
        match (self.key, kind) {
            (Some(key), _) => Ok(Layout::Npz { key: key.0, any_of }),
            (None, Kind::Clips { .. }) => Ok(Layout::Clips { any_of }),
            (None, Kind::Images) if count == 1 => Ok(Layout::Image { any_of }),
            (None, Kind::Images) => Err(format!(
                "count is {count}, but a layout without a key is a single image; set layout.key to the name of \
                 the array in the npz archive, or count to 1"
            )),
        }
    }
}

/// Checks a scalar while the parser still knows its line: an error of `#[serde(try_from)]` would be reported at the start of the data set.
struct Checked<T>(PhantomData<T>);

impl<T: TryFrom<String, Error = String>> Visitor<'_> for Checked<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        T::try_from(text.to_owned()).map_err(E::custom)
    }
}

/// As [`Checked`], for the whole numbers from 1 to `MAX`.
struct CheckedCount<const MAX: u32>;

impl<const MAX: u32> Visitor<'_> for CheckedCount<MAX> {
    type Value = WireCount<MAX>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number from 1 to {MAX}")
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<WireCount<MAX>, E> {
        match u32::try_from(value) {
            Ok(value) if (1..=MAX).contains(&value) => Ok(WireCount(value)),
            _ => Err(E::custom(format!("{value} is out of range; 1 to {MAX} is allowed"))),
        }
    }
}

/// A whole number from 1 to `MAX`.
struct WireCount<const MAX: u32>(u32);

impl<'de, const MAX: u32> Deserialize<'de> for WireCount<MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_u64(CheckedCount)
    }
}

macro_rules! checked {
    ($($text:ty),*) => {$(
        impl<'de> Deserialize<'de> for $text {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(Checked(PhantomData))
            }
        }
    )*};
}

checked!(WireId, WireSha256, WireDigits, WireUrl, WirePath, WireText);

/// Free text. Its length is limited, because an alias of three bytes can repeat it.
struct WireText(String);

impl TryFrom<String> for WireText {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.len() <= MAX_TEXT_BYTES {
            true => Ok(WireText(text)),
            false => {
                Err(format!("a text of {} bytes; allowed: up to {MAX_TEXT_BYTES}", text.len()))
            }
        }
    }
}

/// An id; it is also the name of the folder for a user's own images.
struct WireId(String);

impl TryFrom<String> for WireId {
    type Error = String;

    fn try_from(id: String) -> Result<Self, String> {
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        match id.bytes().all(allowed) && id.bytes().any(|byte| byte != b'-') && id.len() <= 60 {
            true => Ok(WireId(id)),
            false => Err(format!(
                "id '{id}' is not allowed; use small letters, digits and hyphens, at most 60"
            )),
        }
    }
}

struct WireSha256(String);

impl TryFrom<String> for WireSha256 {
    type Error = String;

    fn try_from(digits: String) -> Result<Self, String> {
        match digits.len() == 64 && is_hexadecimal(&digits) {
            true => Ok(WireSha256(digits)),
            false => {
                Err(format!("'{digits}' is not a SHA-256; 64 digits 0-9 and a-f are required"))
            }
        }
    }
}

fn is_hexadecimal(digits: &str) -> bool {
    digits.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// A SHA-256, or its leading digits where no more are published.
struct WireDigits(String);

impl TryFrom<String> for WireDigits {
    type Error = String;

    fn try_from(digits: String) -> Result<Self, String> {
        match (8..=64).contains(&digits.len()) && is_hexadecimal(&digits) {
            true => Ok(WireDigits(digits)),
            false => Err(format!(
                "'{digits}' is not the beginning of a SHA-256; 8 to 64 digits 0-9 and a-f are required"
            )),
        }
    }
}

struct WireUrl(String);

impl TryFrom<String> for WireUrl {
    type Error = String;

    fn try_from(url: String) -> Result<Self, String> {
        check_url(&url).map(|()| WireUrl(url))
    }
}

/// A path that stays inside the data directory.
struct WirePath(PathBuf);

impl TryFrom<String> for WirePath {
    type Error = String;

    fn try_from(path: String) -> Result<Self, String> {
        inside(&WireText::try_from(path)?.0).map(WirePath)
    }
}
