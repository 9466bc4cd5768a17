//! Locks: one `reproduce` per output directory, and one writer of the reference.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use posenc_files::LockError;

use crate::repository::Repository;

/// Name of the lock file in an output directory and in `report/`.
const FILE: &str = ".lock";

/// How long a process waits for another writer of the reference. Writing takes a small part of this time.
const PATIENCE: Duration = Duration::from_secs(600);

/// An exclusive lock on a directory. It is released when it is dropped or when the process ends for any reason.
pub struct Lock {
    _lock: posenc_files::Lock,
}

impl Lock {
    /// Locks an output directory and creates it if it is missing. Fails at once if another process holds the lock.
    ///
    /// # Errors
    ///
    /// Another process holds the lock, or the directory cannot be written.
    pub fn take(directory: &Path) -> Result<Self> {
        posenc_files::protect(directory);
        match posenc_files::Lock::try_take(&directory.join(FILE)) {
            Ok(lock) => Ok(Lock::of(lock)),
            Err(held @ LockError::Held { .. }) => bail!(
                "another reproduce is running in {} ({held}); wait for it, or use another --out DIR",
                directory.display()
            ),
            Err(LockError::Io(error)) => Err(anyhow!(error).context(format!(
                "{} cannot be locked; choose another place with --out DIR",
                directory.join(FILE).display()
            ))),
        }
    }

    /// Locks `report/`, so that its records do not change between reading and writing them. Waits while another process holds the lock.
    ///
    /// # Errors
    ///
    /// Another process holds the lock for too long, or the lock file cannot be written.
    pub fn of_reference(repository: &Repository) -> Result<Self> {
        let file = repository.report().join(FILE);
        let waits = |held: &LockError| {
            eprintln!(
                "waiting for another process that writes {} ({held})",
                repository.report().display()
            );
        };
        match posenc_files::Lock::take(&file, PATIENCE, waits) {
            Ok(lock) => {
                posenc_files::sweep(&repository.report());
                Ok(Lock::of(lock))
            }
            Err(held @ LockError::Held { .. }) => bail!(
                "another process has been writing {} for {} minutes ({held})",
                repository.report().display(),
                PATIENCE.as_secs() / 60
            ),
            Err(LockError::Io(error)) => {
                Err(anyhow!(error).context(format!("{} cannot be locked", file.display())))
            }
        }
    }

    fn of(lock: posenc_files::Lock) -> Self {
        if let Some(substitute) = lock.substitute() {
            eprintln!("note: {substitute}");
        }
        Lock { _lock: lock }
    }
}
