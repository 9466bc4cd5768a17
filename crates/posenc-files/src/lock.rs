//! One process at a time.

use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::io::{Error, ErrorKind, Read as _, Result, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::folder::{Folder, locate};
use crate::write::write_new_in;

/// Bytes of a lock's file that are read for a message.
const LONGEST_OWNER: u64 = 200;

/// Time between two attempts.
const STEP: Duration = Duration::from_millis(25);

/// Holds a file's lock until it is dropped, or until the process ends however it ends.
///
/// Where the file system has no locks, `<file>.owner` is created exclusively and removed at the end; of a process that is
/// killed it stays, and the next one says how to continue. Both kinds are respected whichever a process can take: a cluster's
/// nodes may mount one file system differently.
#[derive(Debug)]
pub struct Lock {
    _file: File,
    /// The file that stands for the lock, and why it is needed.
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
    /// Another process has it.
    Held {
        /// That process, or a reason why it is unknown.
        owner: String,
        /// The file that stands for the lock and stays if its process was killed.
        left: Option<PathBuf>,
    },
    /// The file cannot be made, or is no regular file.
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
    /// Takes the lock of a file, which is made if it is missing, or fails at once.
    ///
    /// # Errors
    ///
    /// Another process has it; the file cannot be made, or is a link, directory or anything but a regular file.
    pub fn try_take(file: &Path) -> std::result::Result<Lock, LockError> {
        try_take_with(file, File::try_lock)
    }

    /// Waits for the lock of a file, at most for `patience`. If the lock is taken, calls `waits` once with its owner.
    ///
    /// # Errors
    ///
    /// Those of [`Lock::try_take`]; the lock is still taken after `patience`.
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

    /// Why the kernel's lock was not available, and which file stands for it.
    pub fn substitute(&self) -> Option<String> {
        self.owned.as_ref().map(|owned| {
            let file = owned.folder.path().join(&owned.name);
            format!(
                "this file system has no locks ({}), so {} replaces one; if this process is killed, remove that file",
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
            // A process that could not lock may be at work.
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

/// This process, for people.
fn this_process() -> String {
    format!("process {} on {}", std::process::id(), host())
}

fn write_owner(file: &mut File) -> Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(this_process().as_bytes())
}

/// Who wrote a lock's file.
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

    /// Catches two processes that both have the lock, a lock that is not given back, and a message without the owner.
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

    /// A file system without locks, as some network file systems are. Catches two owners on it, an owner that a process
    /// with locks passes over, a substitute that stays, and messages that do not say what to remove.
    #[test]
    fn without_locks_a_file_stands_for_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(".lock");
        let substitute = folder.path().join(".lock.owner");
        let take = || try_take_with(&file, without_locks);
        let first = take().unwrap();
        let note = first.substitute().unwrap();
        assert!(
            note.contains("unsupported") && note.contains(".lock.owner replaces one"),
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
        // A process that was killed left it; what is in it is no terminal's command.
        std::fs::write(&substitute, "process 1 on \u{1b}[31mnode").unwrap();
        assert!(take().unwrap_err().to_string().starts_with("process 1 on [31mnode; if that"));
        std::fs::remove_file(&substitute).unwrap();
        take().unwrap();
    }

    /// Catches a lock that empties what a link points to, waits for a pipe, or takes a directory for its file.
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
