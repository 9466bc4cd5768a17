//! Locks between processes.

use std::fs::{File, TryLockError};
use std::io::{Error, Read as _, Result, Seek as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::open_or_create;

/// Maximum number of bytes of a lock file that are read for a message.
const MAX_OWNER_BYTES: u64 = 200;

const STEP: Duration = Duration::from_millis(25);

/// Holds the lock of a file until it is dropped or the process ends for any reason. On a file system without locks, it is only a note.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Why a lock was not taken.
#[derive(Debug)]
pub enum LockError {
    /// Another process holds the lock.
    Held {
        /// That process, or `unknown process`.
        owner: String,
    },
    /// The file cannot be created, or is not a regular file.
    Io(Error),
}

impl std::fmt::Display for LockError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LockError::Held { owner } => write!(f, "{owner}"),
            LockError::Io(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for LockError {}

impl Lock {
    /// Takes the lock of a file, or fails immediately. A missing file is created.
    pub fn try_take(path: &Path) -> std::result::Result<Lock, LockError> {
        let owner = format!("process {} on {}", std::process::id(), host());
        Lock::locked(path, File::try_lock, &owner)
    }

    /// As [`Lock::try_take`], but together with other processes that share the lock. Messages of others name this one as `owner`.
    pub fn try_share(path: &Path, owner: &str) -> std::result::Result<Lock, LockError> {
        Lock::locked(path, File::try_lock_shared, owner)
    }

    fn locked(
        path: &Path,
        lock: fn(&File) -> std::result::Result<(), TryLockError>,
        own: &str,
    ) -> std::result::Result<Lock, LockError> {
        let mut file = open_or_create(path).map_err(LockError::Io)?;
        match lock(&file) {
            // Only for messages; the lock itself is the kernel's.
            Ok(()) => _ = write_owner(&mut file, own),
            Err(TryLockError::WouldBlock) => {
                return Err(LockError::Held { owner: owner(&file) });
            }
            Err(TryLockError::Error(reason)) => crate::eprintln!(
                "note: {} cannot be locked ({reason}); make sure that no other run writes there",
                path.display()
            ),
        }
        Ok(Lock { _file: file })
    }

    /// Waits for the lock of a file for at most `patience`. If another process holds the lock, calls `waits` once with the error that
    /// names the owner.
    ///
    /// # Errors
    ///
    /// Those of [`Lock::try_take`]; [`LockError::Held`] only after `patience`.
    pub fn take(
        file: &Path,
        patience: Duration,
        waits: impl FnOnce(&LockError),
    ) -> std::result::Result<Lock, LockError> {
        let (began, mut waits) = (Instant::now(), Some(waits));
        loop {
            match Lock::try_take(file) {
                Err(held @ LockError::Held { .. }) if began.elapsed() < patience => {
                    if let Some(waits) = waits.take() {
                        waits(&held);
                    }
                    std::thread::sleep(STEP);
                }
                result => return result,
            }
        }
    }
}

fn write_owner(file: &mut File, owner: &str) -> Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(owner.as_bytes())
}

/// The process that wrote a lock file.
fn owner(file: &File) -> String {
    let mut bytes = Vec::new();
    let _ = file.take(MAX_OWNER_BYTES).read_to_end(&mut bytes);
    match crate::one_line(&bytes) {
        text if text.is_empty() => "unknown process".into(),
        text => text,
    }
}

pub fn host() -> String {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = kernel.or_else(|| std::env::var("HOSTNAME").ok());
    let name = name.or_else(|| std::env::var("COMPUTERNAME").ok());
    let name = name.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
    name.unwrap_or_else(|| "this machine".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches two processes that both hold the lock, a lock that is not released, a message without the owner or with its escape
    /// sequences, and a lock that truncates the target of a link.
    #[test]
    fn a_lock_has_one_owner() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new/.lock");
        let first = Lock::try_take(&file).unwrap();
        let held = Lock::try_take(&file).unwrap_err().to_string();
        assert_eq!(held, format!("process {} on {}", std::process::id(), host()));
        std::fs::write(&file, "process 1 on \u{1b}[31mnode").unwrap();
        let held = Lock::try_take(&file).unwrap_err().to_string();
        assert_eq!(held, "process 1 on \\u{1b}[31mnode");
        let mut told = 0;
        assert!(Lock::take(&file, Duration::from_millis(60), |_| told += 1).is_err());
        assert_eq!(told, 1);
        drop(first);
        Lock::take(&file, Duration::ZERO, |_| told += 1).unwrap();
        assert_eq!(told, 1);
        #[cfg(unix)]
        {
            let link = folder.path().join("link");
            std::os::unix::fs::symlink(&file, &link).unwrap();
            let error = Lock::try_take(&link).unwrap_err().to_string();
            assert!(error.contains("a symbolic link"), "{error}");
        }
    }
}
