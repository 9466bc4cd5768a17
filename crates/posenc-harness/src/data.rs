//! Data sets of a run: identified when planning, loaded once when a unit needs them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use anyhow::{Result, bail};
use posenc_data::{
    DataDirectory, DataError, DataSource, FileIdentity, Format, Identity, Manifest, Signal,
};

use crate::options::DataOptions;
use crate::repository::Repository;

/// A data set once it has been read, or why it could not be.
type Read<T> = OnceLock<Result<Arc<T>, String>>;

type Loaded<T> = Mutex<BTreeMap<String, Arc<Read<T>>>>;

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
    identities: Loaded<Identity>,
    files: Loaded<Files>,
    signals: Loaded<Vec<Signal>>,
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
    pub fn new(source: DataSource, seed: u64) -> Self {
        DataSets {
            source,
            seed,
            identities: Mutex::default(),
            files: Mutex::default(),
            signals: Mutex::default(),
        }
    }

    /// Identity of a data set on this machine: label, checksum, signals.
    pub fn identity(&self, set: &str) -> Result<Arc<Identity>> {
        once(&self.identities, set, || self.source.identity(set, self.seed))
    }

    /// A set of files on this machine; `None` for a set of signals.
    pub fn files(&self, set: &str) -> Result<Option<Arc<Files>>> {
        let Some(described) = self.source.manifest().file_set(set) else {
            return Ok(None);
        };
        let directory = self.source.directory();
        let find = || {
            let found = described.find(directory)?.ok_or_else(|| described.absence(directory));
            Ok(Files { format: described.format, found })
        };
        once(&self.files, set, find).map(Some)
    }

    /// The folder of a set of files.
    pub fn folder(&self, set: &str) -> Result<PathBuf> {
        match self.files(set)?.as_deref() {
            Some(Files { found: Ok(identity), .. }) => Ok(identity.folder.clone()),
            Some(Files { found: Err(absence), .. }) => bail!("{absence}"),
            None => bail!("data set `{set}` is not a set of files"),
        }
    }

    /// The signals of a data set, decoded once for all units. The first caller decodes; others that
    /// need the same set wait for it, callers of other sets do not.
    pub fn load(&self, set: &str) -> Result<Arc<Vec<Signal>>> {
        once(&self.signals, set, || self.source.load(set, self.seed))
    }

    /// The signals of a data set that must be images.
    pub fn load_images(&self, set: &str) -> Result<Arc<Vec<Signal>>> {
        self.source.check_images(set)?;
        self.load(set)
    }
}

fn once<T>(
    loaded: &Loaded<T>,
    set: &str,
    load: impl FnOnce() -> Result<T, DataError>,
) -> Result<Arc<T>> {
    // A panic in another worker leaves the map valid, because entries are only added.
    let mut cells = loaded.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let cell = cells.entry(set.to_owned()).or_default().clone();
    drop(cells);
    cell.get_or_init(|| load().map(Arc::new).map_err(|e| e.to_string()))
        .clone()
        .map_err(|message| anyhow::anyhow!("data set `{set}`: {message}"))
}
