//! One `reproduce` at a time in one directory.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};

/// Holds the directory until it is dropped, or until the process ends however it ends.
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the directory, creating it; fails at once if another process has it.
    pub fn take(directory: &Path) -> Result<Self> {
        std::fs::create_dir_all(directory).with_context(|| {
            format!(
                "{} cannot be created; choose another place with --out DIR",
                directory.display()
            )
        })?;
        let path = directory.join(".lock");
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path)
            .with_context(|| {
                format!("{} cannot be written; choose another place with --out DIR", path.display())
            })?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut owner = String::new();
                let _ = file.read_to_string(&mut owner);
                bail!(
                    "another reproduce is at work in {} ({}); wait for it, or use another --out DIR",
                    directory.display(),
                    owner.trim()
                );
            }
            Err(TryLockError::Error(e)) => {
                return Err(e).with_context(|| format!("{} cannot be locked", path.display()));
            }
        }
        // The number is only for the message above; the lock itself is the kernel's.
        let _ = file.set_len(0);
        let _ = file.rewind();
        let _ = write!(file, "process {}", std::process::id());
        let _ = file.flush();
        Ok(Lock { _file: file })
    }
}
