//! One `reproduce` at a time in one directory, and one process at a time that writes the reference.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use posenc_files::LockError;

use crate::repository::Repository;

/// Name of the lock's file in an output directory and in `report/`.
const FILE: &str = ".lock";

/// How long a process waits for another one that writes the reference: many times what that takes.
const PATIENCE: Duration = Duration::from_secs(600);

/// Holds a directory until it is dropped, or until the process ends however it ends.
pub struct Lock {
    _lock: posenc_files::Lock,
}

impl Lock {
    /// Takes an output directory, which is made if it is missing; fails at once if another process has it.
    ///
    /// # Errors
    ///
    /// Another process has the directory, or it cannot be written.
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

    /// Takes `report/`, so that what is read from its records is still there when they are written. Waits for a process
    /// that has it.
    ///
    /// # Errors
    ///
    /// Another process does not give it back, or it cannot be written.
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
