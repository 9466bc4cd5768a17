//! Status of each data set, for `data list` and `data check`.

use std::fmt;
use std::path::{Path, PathBuf};

use posenc_files::escaped;

use crate::directory::DataDirectory;
use crate::error::{DataError, VIDEO_CURE};
use crate::fetch::Download;
use crate::files::FileSet;
use crate::footage::{self, Footage};
use crate::manifest::{DataSet, Kind, Layout, Manifest};
use crate::picture;
use crate::source::{DataSource, Origin};
use crate::video::video_support;

/// Status of one data set.
#[derive(Debug)]
pub struct Status {
    /// Name of the data set.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Number, kind and size of its signals, such as "16 images of 512×512 pixels".
    pub signals: String,
    /// State of its files.
    pub state: State,
    /// The file or folder that was found, or the first path that was searched.
    pub path: PathBuf,
    /// License of the data.
    pub license: String,
    /// Author and address.
    pub origin: String,
    /// How its files can be obtained.
    pub download: Download,
    /// The items of the papers that use it, as `paper/item`.
    pub used_by: Vec<String>,
    /// Label of the generated signals that replace a missing set; `None` if the protocols that read it do not run then.
    pub stand_in: Option<String>,
}

/// State of a data set's files.
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
    Other {
        /// SHA-256 of what was found.
        sha256: String,
    },
    /// A folder of the user's own images or clips replaces the set.
    User {
        /// Number of images or clips in it.
        n_signals: usize,
    },
    /// The files are missing; the stand-in, if any, is generated.
    Absent,
    /// The files are there but cannot be used.
    Unusable(DataError),
}

/// Status of every data set, without reading its files.
#[must_use]
pub fn list(manifest: &Manifest, directory: &DataDirectory) -> Vec<Status> {
    let mut all = statuses(manifest, directory, |source, set| {
        let path = source.layout_path(set);
        let is_clips = matches!(set.layout, Layout::Clips { .. });
        match path.filter(|_| is_clips && !video_support()).map(|path| footage::at(&path)) {
            Some(Ok(clips)) if clips.iter().any(Footage::needs_video) => State::NeedsVideo,
            _ => State::Present,
        }
    });
    all.extend(of_files(manifest, directory, |_| State::Present));
    all
}

/// As [`list`], with checksums of all existing files.
#[must_use]
pub fn check(manifest: &Manifest, directory: &DataDirectory) -> Vec<Status> {
    // The seed only matters for generated images, which have nothing to check.
    let mut all = statuses(manifest, directory, |source, set| match source.find(set, 0) {
        Ok((identity, _)) => match identity.origin {
            Origin::Published => State::Published,
            Origin::Substitute => State::Substitute,
            // The files exist and the generator was chosen, so the files are videos.
            Origin::Embedded => State::NeedsVideo,
            Origin::Other | Origin::User => State::Other { sha256: identity.sha256 },
        },
        Err(error) => State::Unusable(error),
    });
    all.extend(of_files(manifest, directory, |set| match set.find(directory) {
        Ok(Some(identity)) => match identity.origin {
            Origin::Published => State::Published,
            Origin::Substitute => State::Substitute,
            Origin::Other => State::Other { sha256: identity.sha256 },
            // There is no published checksum to compare with.
            Origin::User | Origin::Embedded => State::Present,
        },
        Ok(None) => State::Absent,
        Err(error) => State::Unusable(error),
    }));
    all
}

fn statuses(
    manifest: &Manifest,
    directory: &DataDirectory,
    of_layout: impl Fn(&DataSource, &DataSet) -> State,
) -> Vec<Status> {
    let source = DataSource::new(manifest.clone(), directory.clone());
    let status = |set: &DataSet| {
        let folder = directory.images_folder(&set.id);
        let (path, state) = match source.layout_path(set) {
            _ if set.layout == Layout::Generated => (folder, State::Generated),
            Some(path) => (path, of_layout(&source, set)),
            None if folder.is_dir() => {
                let state = of_folder(set, &folder).unwrap_or_else(State::Unusable);
                (folder, state)
            }
            None => (
                set.layout
                    .any_of()
                    .first()
                    .map(|path| directory.path().join(path))
                    .unwrap_or(folder),
                State::Absent,
            ),
        };
        Status {
            id: set.id.clone(),
            title: set.title.clone(),
            signals: describe(set),
            state,
            path,
            license: set.license.clone(),
            origin: set.origin.clone(),
            download: set.download.clone(),
            used_by: set.used_by.clone(),
            stand_in: Some(format!("embedded:{}", set.stand_in.name())),
        }
    };
    manifest.sets().iter().map(status).collect()
}

fn of_files(
    manifest: &Manifest,
    directory: &DataDirectory,
    of_folder: impl Fn(&FileSet) -> State,
) -> Vec<Status> {
    let status = |set: &FileSet| {
        let first = set.any_of.first().map(|path| directory.path().join(path));
        let (path, state) = match set.folder(directory) {
            Some(folder) => (folder, of_folder(set)),
            None => (first.unwrap_or_default(), State::Absent),
        };
        Status {
            id: set.id.clone(),
            title: set.title.clone(),
            signals: set.format.name().to_owned(),
            state,
            path,
            license: set.license.clone(),
            origin: set.origin.clone(),
            download: set.download.clone(),
            used_by: set.used_by.clone(),
            stand_in: None,
        }
    };
    manifest.file_sets().iter().map(status).collect()
}

/// A folder of the user's own signals.
fn of_folder(set: &DataSet, folder: &Path) -> Result<State, DataError> {
    if set.kind == Kind::Images {
        return Ok(State::User { n_signals: picture::images_in(folder)?.len() });
    }
    let clips = footage::at(folder)?;
    let unreadable = !video_support() && clips.iter().any(Footage::needs_video);
    Ok(if unreadable { State::NeedsVideo } else { State::User { n_signals: clips.len() } })
}

fn describe(set: &DataSet) -> String {
    let (count, size) = (set.count, set.size);
    let plural = if count == 1 { "" } else { "s" };
    match set.kind {
        Kind::Images => format!("{count} image{plural} of {size}×{size} pixels"),
        Kind::Clips { frames } => {
            format!("{count} clip{plural} of {frames} frames of {size}×{size} pixels")
        }
    }
}

impl Status {
    /// Whether the files cannot be used or are not the published data.
    #[must_use]
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
        let path = self.path.display();
        let stand_in = self.stand_in.as_deref().unwrap_or_default();
        match &self.state {
            State::Present => writeln!(f, "  present    {path} (checksum not compared)")?,
            State::Published => writeln!(f, "  present    {path} (the published data)")?,
            State::Substitute => {
                writeln!(f, "  present    {path} (the manifest's, used instead of the paper's)")?;
            }
            State::NeedsVideo => writeln!(
                f,
                "  unread     {path} contains video files, which this build cannot read; {stand_in} is used instead; {VIDEO_CURE}"
            )?,
            State::Generated => writeln!(f, "  generated  always, as {stand_in}")?,
            State::Other { sha256 } => {
                writeln!(
                    f,
                    "  other data {path} (they have SHA-256 {sha256}, not the published one)"
                )?;
            }
            State::User { n_signals } => writeln!(f, "  your own   {path} ({n_signals} files)")?,
            State::Absent if self.stand_in.is_none() => {
                writeln!(
                    f,
                    "  absent     looked for {path}; experiments that read it are skipped"
                )?;
            }
            State::Absent => {
                writeln!(f, "  absent     looked for {path}; {stand_in} is used instead")?
            }
            State::Unusable(error) => writeln!(f, "  unusable   {error}")?,
        }
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
