//! Inspects the machine to find out which features can be built.

use std::path::{Path, PathBuf};

/// Entries of a directory; empty if it cannot be read.
pub fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

pub fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Library folders of one architecture, such as `/usr/lib/x86_64-linux-gnu`.
pub fn library_folders() -> Vec<PathBuf> {
    let mut folders = entries(Path::new("/usr/lib"));
    folders.retain(|path| file_name(path).contains("-linux-"));
    folders
}
