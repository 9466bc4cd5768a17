//! The manifest `data/manifest.yaml`: the data sets with their licenses and paths, the items that use them, and the
//! generators that replace missing ones.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use posenc_files::limits::{MAX_ARRAY_BYTES, MAX_MANIFEST_BYTES};
use serde::Deserialize;

use crate::error::{DataError, list};
use crate::files::{FileSet, is_hidden, read_whole};
use crate::image::Channels;
use crate::sets::fetch::{Download, RemoteFile};
use crate::sets::fields;

/// All data sets, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    #[serde(skip)]
    path: PathBuf,
    sets: Vec<DataSet>,
    #[serde(default)]
    file_sets: Vec<FileSet>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataSet {
    #[serde(deserialize_with = "fields::id")]
    pub id: String,
    #[serde(deserialize_with = "fields::text")]
    pub title: String,
    pub kind: Kind,
    #[serde(deserialize_with = "fields::text")]
    pub license: String,
    #[serde(deserialize_with = "fields::text")]
    pub origin: String,
    /// Side length of the (square) images or frames.
    #[serde(deserialize_with = "fields::side")]
    pub size: u32,
    /// Number of frames of each clip; `None` for images.
    #[serde(default, deserialize_with = "fields::frames")]
    pub frames: Option<u32>,
    pub channels: Channels,
    #[serde(deserialize_with = "fields::count")]
    pub count: usize,
    /// `None` for a set that is always generated.
    pub layout: Option<Layout>,
    /// SHA-256 of the data. For images and arrays: of the stored elements, image by image or frame by frame, row by row,
    /// channels fastest. For a folder of video files: of the lines that `sha256sum` prints for them. `None` without layout.
    #[serde(default, deserialize_with = "fields::sha256")]
    pub sha256: Option<String>,
    #[serde(default)]
    pub files: Vec<RemoteFile>,
    #[serde(default, deserialize_with = "fields::some_text")]
    pub steps: Option<String>,
    /// The unavailable data of the paper that the set's own files replace.
    #[serde(default, deserialize_with = "fields::some_text")]
    pub substitutes_for: Option<String>,
    /// The items of the papers that use it, as `paper/item`.
    #[serde(deserialize_with = "fields::texts")]
    pub used_by: Vec<String>,
}

/// What a signal of a data set is: a square image, or a video clip with square frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    Images,
    Clips,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Images => "images",
            Kind::Clips => "clips",
        }
    }

    /// Name of the generator whose signals replace those of a missing set.
    pub(crate) fn generator(self) -> &'static str {
        match self {
            Kind::Images => "dead-leaves",
            Kind::Clips => "moving-dead-leaves",
        }
    }

    pub(crate) fn generated_name(self, index: usize) -> String {
        format!("{}-{index:02}", self.generator())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layout {
    /// Name of an array (count, size, size, channels) in an npz archive, instead of which a folder may contain its images as files.
    /// Without it, one image file, or clips: a video file, a folder of video files or of folders of frames, or one of npz files.
    #[serde(default, deserialize_with = "fields::some_text")]
    pub key: Option<String>,
    /// Paths below the data directory; the first that exists is used.
    #[serde(deserialize_with = "fields::paths")]
    pub any_of: Vec<PathBuf>,
}

impl Manifest {
    pub fn read(path: &Path) -> Result<Self, DataError> {
        let bytes = read_whole(path, "the manifest", MAX_MANIFEST_BYTES)?;
        let text = String::from_utf8(bytes)
            .map_err(|_| DataError::at(path, "not UTF-8; convert it: iconv -t UTF-8"))?;
        Self::parse(&text, path)
    }

    /// Parses a manifest; `path` is used in messages only.
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
        let mut manifest: Manifest = serde_yaml::from_str(text).map_err(|error| {
            let line = error.location().map(|location| location.line().clamp(1, last));
            let reason = error.to_string();
            // The message starts with the location, so the one at the end is removed.
            let reason =
                reason.rsplit_once(" at line ").map_or(reason.as_str(), |(reason, _)| reason);
            fail(line, reason.to_owned())
        })?;

        let signals = manifest.sets.iter().map(|set| (&set.id, set.check()));
        let files =
            manifest.file_sets.iter().map(|set| (&set.id, check_files(&set.files, &set.any_of)));
        let mut ids = BTreeSet::new();
        for (id, checked) in signals.chain(files) {
            if !ids.insert(id) {
                let message = format!("data set '{id}' is defined twice; give each its own id");
                return Err(fail(line_of_id(text, id, 1), message));
            }
            checked.map_err(|reason| {
                fail(line_of_id(text, id, 0), format!("data set '{id}': {reason}"))
            })?;
        }
        manifest.path = path.to_owned();
        Ok(manifest)
    }

    /// The sets of files that protocols read directly.
    pub fn file_sets(&self) -> &[FileSet] {
        &self.file_sets
    }

    pub fn file_set(&self, id: &str) -> Option<&FileSet> {
        self.file_sets.iter().find(|set| set.id == id)
    }

    pub fn sets(&self) -> &[DataSet] {
        &self.sets
    }

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

impl DataSet {
    /// Relative paths at which the data may be.
    pub(crate) fn any_of(&self) -> &[PathBuf] {
        self.layout.as_ref().map_or(&[], |layout| &layout.any_of)
    }

    pub fn download(&self) -> Download {
        Download::new(&self.files, self.steps.as_deref())
    }

    /// Label of the signals that replace it if it is missing.
    pub(crate) fn generated_label(&self) -> String {
        format!("embedded:{}", self.kind.generator())
    }

    fn check(&self) -> Result<(), String> {
        let (kind, size, count) = (self.kind, self.size, self.count);
        match (kind, self.frames) {
            (Kind::Images, None) => {}
            (Kind::Clips, Some(frames)) => {
                let bytes = 8 * 3 * u64::from(frames) * u64::from(size) * u64::from(size);
                if bytes > MAX_ARRAY_BYTES {
                    return Err(format!(
                        "a clip of {frames} frames of {size}×{size} pixels takes {bytes} bytes; at most \
                         {MAX_ARRAY_BYTES} are allowed: reduce size or frames"
                    ));
                }
            }
            (Kind::Images, Some(_)) => {
                return Err("images have no frames; leave frames out, or set kind to clips".into());
            }
            (Kind::Clips, None) => {
                return Err("frames is missing; give the number of frames of each clip".into());
            }
        }
        match (&self.layout, &self.sha256) {
            (None, None) if self.files.is_empty() => Ok(()),
            (None, _) => Err("sha256 or files are given, but no layout; a set without layout is \
                              always generated and has none"
                .to_owned()),
            (Some(_), None) => {
                Err("sha256 is missing; every set with a layout needs one".to_owned())
            }
            (Some(Layout { key: None, .. }), _) if kind == Kind::Images && count > 1 => {
                Err(format!(
                    "count is {count}, but a layout without a key is a single image; set layout.key to the name of \
                     the array in the npz archive, or count to 1"
                ))
            }
            (Some(Layout { key: Some(_), .. }), _) if kind == Kind::Clips => {
                Err("clips have no layout.key; leave it out".to_owned())
            }
            (Some(layout), _) => check_files(&self.files, &layout.any_of),
        }
    }
}

/// Checks that there are paths, and that every file is below one of them, so that the set is found after a download.
fn check_files(files: &[RemoteFile], any_of: &[PathBuf]) -> Result<(), String> {
    if any_of.is_empty() {
        return Err("any_of is empty; give at least one path in the data directory".to_owned());
    }
    let mut paths = BTreeSet::new();
    for RemoteFile { path, .. } in files {
        let shown = path.display();
        if !any_of.iter().any(|place| path.starts_with(place)) {
            return Err(format!("file '{shown}' lies at none of the paths of any_of"));
        }
        if is_hidden(path) {
            return Err(format!("file '{shown}' is hidden, so it would not be read; rename it"));
        }
        if !paths.insert(path) {
            return Err(format!("file '{shown}' is listed twice; remove one entry"));
        }
    }
    Ok(())
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
