//! Locks: one `reproduce` per output directory, and one writer of the reference.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use posenc_experiments::output::check_folder;
use posenc_files::{Lock, LockError};

use crate::options::Share;
use crate::repository::Repository;

/// Name of the lock file in an output directory and in `report/`.
const FILE: &str = ".lock";

/// Marks an output directory, so that a later run may write and remove files in it.
const MARKER: &str = ".posenc-out";

/// How long a process waits for another writer of the reference. Writing takes a small part of this time.
const PATIENCE: Duration = Duration::from_secs(600);

/// The output directory of a run: the given one, or `out` below the root, which may contain any files unless it is a link.
pub fn output(repository: &Repository, given: Option<&Path>) -> Result<PathBuf> {
    let out = repository.out(given);
    check_folder(&out, repository.root(), |out| {
        let is_default = given.is_none() && out.is_dir() && !out.is_symlink();
        is_default || posenc_files::open(&out.join(MARKER)).is_ok()
    })?;
    Ok(out)
}

/// Locks and marks an output directory, which [`output`] accepted, and creates it if it is missing. Fails at once if another process holds
/// the lock. Runs with `--share` share it, since they write different files.
pub fn take(directory: &Path, share: Option<Share>) -> Result<Lock> {
    posenc_files::protect(directory);
    let file = directory.join(FILE);
    let lock = match share {
        None => Lock::try_take(&file),
        Some(share) => {
            Lock::try_share(&file, &format!("share {share} on {}", posenc_files::host()))
        }
    };
    match lock {
        Ok(lock) => {
            let marker = directory.join(MARKER);
            posenc_files::open_or_create(&marker)
                .with_context(|| format!("{} cannot be written", marker.display()))?;
            Ok(lock)
        }
        Err(held @ LockError::Held { .. }) => bail!(
            "{} is running in {} ({held}); wait for it, or use another --out DIR",
            if share.is_some() { "a reproduce without --share" } else { "another reproduce" },
            directory.display()
        ),
        Err(LockError::Io(error)) => {
            let file = file.display();
            let message = format!("{file} cannot be locked; choose another place with --out DIR");
            Err(anyhow!(error).context(message))
        }
    }
}

/// Locks `report/`, so that its records do not change between reading and writing them. Waits while another process holds the lock.
pub fn of_reference(repository: &Repository) -> Result<Lock> {
    let (folder, file) = (repository.report(), repository.report().join(FILE));
    let waits = |held: &LockError| {
        eprintln!("waiting for another process that writes {} ({held})", folder.display());
    };
    match Lock::take(&file, PATIENCE, waits) {
        Ok(lock) => {
            sweep(&folder);
            Ok(lock)
        }
        Err(held @ LockError::Held { .. }) => bail!(
            "another process has been writing {} for {} minutes ({held})",
            folder.display(),
            PATIENCE.as_secs() / 60
        ),
        Err(LockError::Io(error)) => {
            Err(anyhow!(error).context(format!("{} cannot be locked", file.display())))
        }
    }
}

/// Removes half-written files of killed processes and names them.
pub fn sweep(folder: &Path) {
    for file in posenc_files::sweep(folder) {
        eprintln!("removed: {}: a killed process left it half-written", file.display());
    }
}
