//! Locks between processes.

use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::io::{Error, ErrorKind, Read as _, Result, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::folder::{Folder, locate};
use crate::write::write_new_in;

/// Maximum number of bytes of a lock file that are read for a message.
const LONGEST_OWNER: u64 = 200;

/// Time between two attempts.
const STEP: Duration = Duration::from_millis(25);

/// Holds the lock of a file until it is dropped or the process ends for any reason.
///
/// On a file system without locks, `<file>.owner` is created exclusively and removed on drop. If the process is killed, the file remains,
/// and the error of the next process names the file to remove. A process that takes the kernel lock also respects an existing
/// `<file>.owner`: nodes of a cluster may mount one file system differently.
#[derive(Debug)]
pub struct Lock {
    _file: File,
    /// The file that replaces the kernel lock, if it is unavailable.
    owned: Option<Owned>,
}

#[derive(Debug)]
struct Owned {
    folder: Folder,
    name: OsString,
    reason: String,
}

/// Why a lock was not taken.
#[derive(Debug)]
pub enum LockError {
    /// Another process holds the lock.
    Held {
        /// That process, or `unknown process`.
        owner: String,
        /// The file that replaces the kernel lock and remains if its process is killed.
        left: Option<PathBuf>,
    },
    /// The file cannot be created, or is not a regular file.
    Io(Error),
}

impl std::fmt::Display for LockError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LockError::Held { owner, left: None } => write!(f, "{owner}"),
            LockError::Held { owner, left: Some(file) } => {
                write!(f, "{owner}; if that process has ended, remove {}", file.display())
            }
            LockError::Io(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for LockError {}

impl Lock {
    /// Takes the lock of a file, or fails immediately. A missing file is created.
    ///
    /// # Errors
    ///
    /// Returns an error if another process holds the lock, or if the file cannot be created or is not a regular file.
    pub fn try_take(file: &Path) -> std::result::Result<Lock, LockError> {
        try_take_with(file, File::try_lock)
    }

    /// Waits for the lock of a file for at most `patience`. If another process holds the lock, calls `waits` once with the error that
    /// names the owner.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Lock::try_take`]; [`LockError::Held`] only after `patience`.
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

    /// If a file replaces the kernel lock: a message with the reason and the file.
    pub fn substitute(&self) -> Option<String> {
        self.owned.as_ref().map(|owned| {
            let file = owned.folder.path().join(&owned.name);
            format!(
                "this file system has no locks ({}), so {} replaces a lock; if this process is killed, remove that file",
                owned.reason,
                file.display()
            )
        })
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Some(owned) = &self.owned {
            let _ = owned.folder.remove(&owned.name);
        }
    }
}

fn try_take_with(
    path: &Path,
    try_lock: impl Fn(&File) -> std::result::Result<(), TryLockError>,
) -> std::result::Result<Lock, LockError> {
    let (folder, name) = locate(path, true).map_err(LockError::Io)?;
    let mut file = folder.open_or_create(&name).map_err(LockError::Io)?;
    let mut substitute = name.clone();
    substitute.push(".owner");
    let left = || Some(folder.path().join(&substitute));
    match try_lock(&file) {
        Ok(()) => {
            // A process on a mount without locks may be running.
            if let Ok(other) = folder.open_file(&substitute) {
                return Err(LockError::Held { owner: owner(&other), left: left() });
            }
            // Only for messages; the lock itself is the kernel's.
            let _ = write_owner(&mut file);
            Ok(Lock { _file: file, owned: None })
        }
        Err(TryLockError::WouldBlock) => Err(LockError::Held { owner: owner(&file), left: None }),
        Err(TryLockError::Error(reason)) => {
            match write_new_in(&folder, &substitute, this_process().as_bytes()) {
                Ok(()) => {
                    let owned = Owned { folder, name: substitute, reason: reason.to_string() };
                    Ok(Lock { _file: file, owned: Some(owned) })
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    let other = folder.open_file(&substitute);
                    let owner =
                        other.map_or_else(|_| "unknown process".into(), |file| owner(&file));
                    Err(LockError::Held { owner, left: left() })
                }
                Err(error) => Err(LockError::Io(error)),
            }
        }
    }
}

/// This process, for messages.
fn this_process() -> String {
    format!("process {} on {}", std::process::id(), host())
}

fn write_owner(file: &mut File) -> Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(this_process().as_bytes())
}

/// The process that wrote a lock file.
fn owner(file: &File) -> String {
    let mut bytes = Vec::new();
    let _ = file.take(LONGEST_OWNER).read_to_end(&mut bytes);
    let text: String =
        String::from_utf8_lossy(&bytes).trim().chars().filter(|c| !c.is_control()).collect();
    if text.is_empty() { "unknown process".into() } else { text }
}

/// The machine's name.
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

    fn without_locks(_: &File) -> std::result::Result<(), TryLockError> {
        Err(TryLockError::Error(Error::from(ErrorKind::Unsupported)))
    }

    /// Catches two processes that both hold the lock, a lock that is not released, and a message without the owner.
    #[test]
    fn a_lock_has_one_owner() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new/.lock");
        let first = Lock::try_take(&file).unwrap();
        assert_eq!(first.substitute(), None);
        let held = Lock::try_take(&file).unwrap_err().to_string();
        assert!(held.starts_with(&format!("process {} on ", std::process::id())), "{held}");
        let mut told = 0;
        assert!(Lock::take(&file, Duration::from_millis(60), |_| told += 1).is_err());
        assert_eq!(told, 1);
        drop(first);
        Lock::take(&file, Duration::ZERO, |_| told += 1).unwrap();
        assert_eq!(told, 1);
    }

    /// Simulates a file system without locks, such as some network file systems. Catches two owners, an owner that a process with kernel
    /// locks ignores, a replacement file that remains, and messages that do not name the file to remove.
    #[test]
    fn without_locks_a_file_replaces_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(".lock");
        let substitute = folder.path().join(".lock.owner");
        let take = || try_take_with(&file, without_locks);
        let first = take().unwrap();
        let note = first.substitute().unwrap();
        assert!(
            note.contains("unsupported") && note.contains(".lock.owner replaces a lock"),
            "{note}"
        );
        for held in [take().unwrap_err(), Lock::try_take(&file).unwrap_err()] {
            let held = held.to_string();
            let own = format!("process {} on {}", std::process::id(), host());
            assert!(held.starts_with(&own), "{held}");
            let remedy = format!("if that process has ended, remove {}", substitute.display());
            assert!(held.ends_with(&remedy), "{held}");
        }
        drop(first);
        assert!(!substitute.exists());
        // A killed process left the file; escape sequences in it must not reach the terminal.
        std::fs::write(&substitute, "process 1 on \u{1b}[31mnode").unwrap();
        assert!(take().unwrap_err().to_string().starts_with("process 1 on [31mnode; if that"));
        std::fs::remove_file(&substitute).unwrap();
        take().unwrap();
    }

    /// Catches a lock that truncates the target of a link, blocks on a pipe, or accepts a directory.
    #[cfg(unix)]
    #[test]
    fn only_a_regular_file_is_a_lock() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("target");
        std::fs::write(&target, "precious").unwrap();
        let file = |name: &str| folder.path().join(name);
        std::os::unix::fs::symlink(&target, file("link")).unwrap();
        std::fs::create_dir(file("folder")).unwrap();
        let made = std::process::Command::new("mkfifo").arg(file("pipe")).status();
        assert!(made.is_ok_and(|status| status.success()), "mkfifo is required");
        for (name, reason) in
            [("link", "a symbolic link"), ("folder", "a directory"), ("pipe", "a named pipe")]
        {
            let error = Lock::try_take(&file(name)).unwrap_err().to_string();
            assert!(error.contains(reason), "{name}: {error}");
        }
        assert_eq!(std::fs::read_to_string(target).unwrap(), "precious");
    }
}
