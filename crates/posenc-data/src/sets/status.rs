//! Status of each data set, for `data list` and `data check`.

use std::fmt;
use std::path::{Path, PathBuf};

use posenc_files::escaped;

use crate::clip::footage;
use crate::clip::video::video_support;
use crate::directory::DataDirectory;
use crate::error::{DataError, VIDEO_CURE};
use crate::files::FileSet;
use crate::sets::fetch::Download;
use crate::sets::manifest::{DataSet, Kind, Manifest};
use crate::sets::origin::Origin;
use crate::sets::source::DataSource;

#[derive(Debug)]
pub struct Status {
    pub id: String,
    pub title: String,
    /// Number, kind and size of its signals, such as "16 images of 512×512 pixels".
    pub signals: String,
    pub state: State,
    /// The file or folder that was found, or the first path that was searched.
    pub path: PathBuf,
    pub license: String,
    pub origin: String,
    pub download: Download,
    /// The items of the papers that use it, as `paper/item`.
    pub used_by: Vec<String>,
    /// Label of the generated signals that replace a missing set; `None` if the protocols that read it do not run then.
    pub stand_in: Option<String>,
}

#[derive(Debug)]
pub enum State {
    /// The files are there; their checksums were not compared.
    Present,
    /// The files are there and have the published checksum.
    Published,
    /// The files are there and have the manifest's checksum; they are used instead of the paper's.
    Substitute,
    /// Video files are there, which this build does not read; the stand-in is generated.
    NeedsVideo,
    /// The set has no files; it is always generated.
    Generated,
    /// The files are there and have another checksum.
    Other { sha256: String },
    /// The files are missing; the stand-in, if any, is generated.
    Absent,
    /// The files are there but cannot be used.
    Unusable(DataError),
}

/// Status of every data set, without reading its files.
pub fn list(manifest: &Manifest, directory: &DataDirectory) -> Vec<Status> {
    statuses(manifest, directory, false)
}

/// As [`list`], with checksums of all existing files.
pub fn check(manifest: &Manifest, directory: &DataDirectory) -> Vec<Status> {
    statuses(manifest, directory, true)
}

fn statuses(manifest: &Manifest, directory: &DataDirectory, compare: bool) -> Vec<Status> {
    let source = DataSource::new(manifest.clone(), directory.clone());
    let sets = manifest.sets().iter().map(|set| of_signals(&source, set, compare));
    let files = manifest.file_sets().iter().map(|set| of_files(directory, set, compare));
    sets.chain(files).collect()
}

/// A status with what both kinds of sets have.
macro_rules! status {
    ($set:expr, { $($own:tt)* }) => {
        Status {
            id: $set.id.clone(),
            title: $set.title.clone(),
            license: $set.license.clone(),
            origin: $set.origin.clone(),
            download: $set.download(),
            used_by: $set.used_by.clone(),
            $($own)*
        }
    };
}

fn of_signals(source: &DataSource, set: &DataSet, compare: bool) -> Status {
    let (path, state) = state(source, set, compare);
    let (state, signals) = (state.unwrap_or_else(State::Unusable), describe(set));
    status!(set, { signals, state, path, stand_in: Some(set.generated_label()) })
}

fn of_files(directory: &DataDirectory, set: &FileSet, compare: bool) -> Status {
    let (path, state) = match set.folder(directory) {
        None => (first(directory, &set.any_of).unwrap_or_default(), State::Absent),
        Some(folder) if !compare => (folder, State::Present),
        Some(folder) => match set.find(directory) {
            Ok(Some(found)) => (folder, State::compared(found.origin, found.sha256)),
            Ok(None) => (folder, State::Absent),
            Err(error) => (folder, State::Unusable(error)),
        },
    };
    status!(set, { signals: set.format.name().to_owned(), state, path, stand_in: None })
}

fn first(directory: &DataDirectory, any_of: &[PathBuf]) -> Option<PathBuf> {
    any_of.first().map(|path| directory.path().join(path))
}

/// State of a set of signals, and its path.
fn state(source: &DataSource, set: &DataSet, compare: bool) -> (PathBuf, Result<State, DataError>) {
    let first = first(source.directory(), set.any_of()).unwrap_or_default();
    if set.layout.is_none() {
        return (first, Ok(State::Generated));
    }
    let Some(path) = source.layout_path(set) else { return (first, Ok(State::Absent)) };
    // The seed only matters for generated signals, which have nothing to check.
    let state = match compare {
        true => source.find(set, 0).map(|(found, _)| State::compared(found.origin, found.sha256)),
        false if needs_video(set, &path) => Ok(State::NeedsVideo),
        false => Ok(State::Present),
    };
    (path, state)
}

/// Whether this build cannot read the videos at a path.
fn needs_video(set: &DataSet, path: &Path) -> bool {
    let may_be_video = set.kind == Kind::Clips && !video_support();
    may_be_video && footage::at(path).is_ok_and(|clips| footage::unreadable(&clips).is_some())
}

fn describe(set: &DataSet) -> String {
    let (count, size) = (set.count, set.size);
    let plural = if count == 1 { "" } else { "s" };
    match set.frames {
        None => format!("{count} image{plural} of {size}×{size} pixels"),
        Some(frames) => {
            format!("{count} clip{plural} of {frames} frames of {size}×{size} pixels")
        }
    }
}

impl State {
    /// State of files whose checksum was compared.
    fn compared(origin: Origin, sha256: String) -> Self {
        match origin {
            Origin::Published => State::Published,
            Origin::Substitute => State::Substitute,
            Origin::Other => State::Other { sha256 },
            // The files exist and the generator was chosen, so the files are videos.
            Origin::Embedded => State::NeedsVideo,
            // There is no published checksum to compare with.
            Origin::User => State::Present,
        }
    }
}

impl Status {
    /// Status of the data set `id` as by [`check`]; `None` if there is no such set.
    pub fn checked(manifest: &Manifest, directory: &DataDirectory, id: &str) -> Option<Status> {
        let Some(set) = manifest.sets().iter().find(|set| set.id == id) else {
            return Some(of_files(directory, manifest.file_set(id)?, true));
        };
        let source = DataSource::new(manifest.clone(), directory.clone());
        Some(of_signals(&source, set, true))
    }

    /// A line about what was found, and where.
    pub fn found(&self) -> String {
        let path = self.path.display();
        let stand_in = self.stand_in.as_deref().unwrap_or_default();
        match &self.state {
            State::Present => format!("present    {path} (checksum not compared)"),
            State::Published => format!("present    {path} (the published data)"),
            State::Substitute => {
                format!("present    {path} (the manifest's, used instead of the paper's)")
            }
            State::NeedsVideo => format!(
                "unread     {path} contains video files, which this build cannot read; {stand_in} is used instead; {VIDEO_CURE}"
            ),
            State::Generated => format!("generated  always, as {stand_in}"),
            State::Other { sha256 } => {
                format!("other data {path} (they have SHA-256 {sha256}, not the published one)")
            }
            State::Absent if self.stand_in.is_none() => {
                format!("absent     looked for {path}; experiments that read it are skipped")
            }
            State::Absent => format!("absent     looked for {path}; {stand_in} is used instead"),
            State::Unusable(error) => format!("unusable   {error}"),
        }
    }

    /// Whether the files cannot be used or are not the published data.
    pub fn needs_attention(&self) -> bool {
        matches!(self.state, State::Other { .. } | State::Unusable(_))
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Escaped, so that each value stays on its line.
        let (title, license, origin) =
            (escaped(&self.title), escaped(&self.license), escaped(&self.origin));
        writeln!(f, "{}: {title}", self.id)?;
        writeln!(f, "  {}", self.found())?;
        writeln!(f, "  signals    {}", self.signals)?;
        writeln!(f, "  license    {license}")?;
        writeln!(f, "  origin     {origin}")?;
        if !matches!(self.state, State::Generated) {
            writeln!(f, "  size       {}", self.download.size())?;
            writeln!(f, "  get        {}", escaped(&self.download.instructions(&self.id)))?;
        }
        let used_by = match self.used_by[..] {
            [] => "no item yet".to_owned(),
            _ => self.used_by.join(", "),
        };
        write!(f, "  used by    {used_by}")
    }
}
