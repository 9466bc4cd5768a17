//! What is there of each data set: the answers of `data list` and `data check`.

use std::fmt;
use std::path::PathBuf;

use crate::directory::DataDirectory;
use crate::error::DataError;
use crate::manifest::{DataSet, Manifest};
use crate::picture;
use crate::source::{DataSource, Origin};

/// What is there of one data set.
#[derive(Debug)]
pub struct Status {
    /// Name of the data set.
    pub id: String,
    /// Its title.
    pub title: String,
    /// What was found.
    pub state: State,
    /// The file or folder that was found, or the first path that was looked for.
    pub path: PathBuf,
    /// License of the data.
    pub license: String,
    /// Who made it, and where it can be had.
    pub origin: String,
    /// The items of the papers that use it, as `paper/item`.
    pub used_by: Vec<String>,
    /// Label of what stands in where it is absent.
    pub stand_in: String,
}

/// What was found of a data set.
#[derive(Debug)]
pub enum State {
    /// The files are there; their checksums were not compared.
    Present,
    /// The files are there and have the published checksum.
    Published,
    /// The files are there and have another checksum.
    Other {
        /// SHA-256 of the pixels found.
        sha256: String,
    },
    /// A folder of the user's own images stands in.
    User {
        /// Number of images in it.
        n_images: usize,
    },
    /// Nothing is there; the stand-in is generated.
    Absent,
    /// Something is there and cannot be used.
    Unusable(DataError),
}

/// Says for every data set what is there, without reading any of it.
#[must_use]
pub fn list(manifest: &Manifest, directory: &DataDirectory) -> Vec<Status> {
    statuses(manifest, directory, |_, _| State::Present)
}

/// As [`list`], and computes the checksum of everything that is there.
#[must_use]
pub fn check(manifest: &Manifest, directory: &DataDirectory) -> Vec<Status> {
    // The seed only matters for generated images, which have nothing to check.
    statuses(manifest, directory, |source, set| match source.find(set, 0) {
        Ok((identity, _)) if identity.origin == Origin::Published => State::Published,
        Ok((identity, _)) => State::Other { sha256: identity.sha256 },
        Err(error) => State::Unusable(error),
    })
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
            Some(path) => (path, of_layout(&source, set)),
            None if folder.is_dir() => match picture::images_in(&folder) {
                Ok(files) => (folder, State::User { n_images: files.len() }),
                Err(error) => (folder, State::Unusable(error)),
            },
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
            state,
            path,
            license: set.license.clone(),
            origin: set.origin.clone(),
            used_by: set.used_by.clone(),
            stand_in: format!("embedded:{}", set.stand_in.name()),
        }
    };
    manifest.sets().iter().map(status).collect()
}

impl Status {
    /// Whether something is there that cannot be used or is not the published data.
    #[must_use]
    pub fn needs_attention(&self) -> bool {
        matches!(self.state, State::Other { .. } | State::Unusable(_))
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.id, self.title)?;
        let path = self.path.display();
        match &self.state {
            State::Present => writeln!(f, "  present    {path} (checksum not compared)")?,
            State::Published => writeln!(f, "  present    {path} (the published data)")?,
            State::Other { sha256 } => {
                writeln!(
                    f,
                    "  other data {path} (pixels have SHA-256 {sha256}, not the published one)"
                )?;
            }
            State::User { n_images } => writeln!(f, "  your own   {path} ({n_images} images)")?,
            State::Absent => {
                writeln!(f, "  absent     looked for {path}; {} stands in", self.stand_in)?
            }
            State::Unusable(error) => writeln!(f, "  unusable   {error}")?,
        }
        writeln!(f, "  license    {}", self.license)?;
        writeln!(f, "  origin     {}", self.origin)?;
        let used_by = match self.used_by[..] {
            [] => "no item yet".to_owned(),
            _ => self.used_by.join(", "),
        };
        write!(f, "  used by    {used_by}")
    }
}
