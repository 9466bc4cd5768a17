//! Inspects the machine to find out which features can be built.

use std::path::{Path, PathBuf};

/// Reads an environment variable as yes or no; `None` if it is unset or has another value.
pub fn switch(variable: &str) -> Option<bool> {
    decision(&std::env::var_os(variable)?.to_string_lossy())
}

fn decision(word: &str) -> Option<bool> {
    match word.trim().to_lowercase().as_str() {
        "on" | "yes" | "1" | "true" => Some(true),
        "off" | "no" | "0" | "false" => Some(false),
        _ => None,
    }
}

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

#[cfg(test)]
mod tests {
    use super::decision;

    /// Catches a word that is read as the wrong decision.
    #[test]
    fn only_words_for_yes_and_no_decide() {
        for no in ["off", "OFF", " no ", "0", "false"] {
            assert_eq!(decision(no), Some(false), "{no}");
        }
        for yes in ["on", "1", "yes", "True"] {
            assert_eq!(decision(yes), Some(true), "{yes}");
        }
        for neither in ["", "maybe", "offline"] {
            assert_eq!(decision(neither), None, "{neither}");
        }
    }
}
