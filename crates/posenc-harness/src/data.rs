//! Data sets of a run: identified when planning, loaded once when a unit needs them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use anyhow::{Context, Result, bail};
use posenc_data::{
    ClipSet, DataDirectory, DataError, DataSource, FileIdentity, Format, Identity, ImageSet, Kind,
    Manifest,
};

use crate::options::DataOptions;
use crate::repository::Repository;

/// A data set once it has been decoded, or why it could not be.
type Decoded<T> = OnceLock<Result<Arc<T>, String>>;

type Loaded<T> = Mutex<BTreeMap<String, Arc<Decoded<T>>>>;

/// A set of files that a protocol reads directly.
pub struct Files {
    pub format: Format,
    /// Identity of the files, or a sentence about where to get them.
    pub found: Result<FileIdentity, String>,
}

/// The data sets of a run.
pub struct DataSets {
    source: DataSource,
    seed: u64,
    identities: Mutex<BTreeMap<String, Arc<Identity>>>,
    files: Mutex<BTreeMap<String, Arc<Files>>>,
    images: Loaded<ImageSet>,
    clips: Loaded<ClipSet>,
}

/// Data source with the manifest of the repository and the data directory and images that the options name.
pub fn source(repository: &Repository, options: &DataOptions) -> Result<DataSource> {
    let manifest = Manifest::read(&repository.manifest())?;
    let directory = DataDirectory::resolve(options.data.as_deref(), repository.root())?;
    let mut source = DataSource::new(manifest, directory);
    for text in &options.images {
        let Some((set, path)) = text.split_once('=') else {
            bail!("--images {text}: allowed is SET=DIR, such as div2k-test=photos");
        };
        source.use_images(set, &below_home(path))?;
    }
    Ok(source)
}

/// A path with `~/` at its start replaced by the user's folder: a shell does this at the start of a word only, not after `=`.
fn below_home(path: &str) -> PathBuf {
    let below = path.strip_prefix("~/").zip(std::env::home_dir());
    below.map_or_else(|| PathBuf::from(path), |(rest, home)| home.join(rest))
}

impl DataSets {
    /// Creates the data sets without reading any file.
    pub fn new(source: DataSource, seed: u64) -> Self {
        DataSets {
            source,
            seed,
            identities: Mutex::default(),
            files: Mutex::default(),
            images: Mutex::default(),
            clips: Mutex::default(),
        }
    }

    /// Identity of a data set on this machine: label, checksum, signals.
    pub fn identity(&self, set: &str) -> Result<Arc<Identity>> {
        let mut identities = lock(&self.identities);
        if let Some(identity) = identities.get(set) {
            return Ok(identity.clone());
        }
        let identity =
            self.source.identity(set, self.seed).with_context(|| format!("data set `{set}`"))?;
        let identity = Arc::new(identity);
        identities.insert(set.to_owned(), identity.clone());
        Ok(identity)
    }

    /// A set of files on this machine; `None` for a set of signals.
    pub fn files(&self, set: &str) -> Result<Option<Arc<Files>>> {
        let mut files = lock(&self.files);
        if let Some(known) = files.get(set) {
            return Ok(Some(known.clone()));
        }
        let Some(described) = self.source.manifest().file_set(set) else {
            return Ok(None);
        };
        let directory = self.source.directory();
        let found = described.find(directory).with_context(|| format!("data set `{set}`"))?;
        let found = found.ok_or_else(|| described.absence(directory));
        let known = Arc::new(Files { format: described.format, found });
        files.insert(set.to_owned(), known.clone());
        Ok(Some(known))
    }

    /// The folder of a set of files.
    pub fn folder(&self, set: &str) -> Result<PathBuf> {
        match self.files(set)?.as_deref() {
            Some(Files { found: Ok(identity), .. }) => Ok(identity.folder.clone()),
            Some(Files { found: Err(absence), .. }) => bail!("{absence}"),
            None => bail!("data set `{set}` is not a set of files"),
        }
    }

    /// Whether the signals of a data set are clips.
    pub fn is_clips(&self, set: &str) -> Result<bool> {
        Ok(matches!(self.source.manifest().get(set)?.kind, Kind::Clips))
    }

    /// The images of a data set, decoded once for all units. The first caller decodes; others that
    /// need the same set wait for it, callers of other sets do not.
    pub fn load(&self, set: &str) -> Result<Arc<ImageSet>> {
        once(&self.images, set, || self.source.load(set, self.seed, None))
    }

    /// The clips of a data set, decoded like the images of [`DataSets::load`].
    pub fn load_clips(&self, set: &str) -> Result<Arc<ClipSet>> {
        once(&self.clips, set, || self.source.load_clips(set, self.seed, None))
    }
}

fn once<T>(
    loaded: &Loaded<T>,
    set: &str,
    load: impl FnOnce() -> Result<T, DataError>,
) -> Result<Arc<T>> {
    let cell = lock(loaded).entry(set.to_owned()).or_default().clone();
    cell.get_or_init(|| load().map(Arc::new).map_err(|e| e.to_string()))
        .clone()
        .map_err(|message| anyhow::anyhow!("data set `{set}`: {message}"))
}

/// Locks a mutex even if it is poisoned: a panic in another worker leaves the map valid, because entries are only added.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
