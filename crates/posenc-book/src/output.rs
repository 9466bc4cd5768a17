//! The site on disk.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use posenc_experiments::text::{MAX_RECORD_BYTES, read_text};
use posenc_files::{entries, is_there, write_atomically, write_if_changed};

/// File that lists the files of a site, so that the next run recognizes them as its own.
const LIST: &str = ".posenc-book";

/// Writes files that differ, and removes files of an earlier site that this one does not have. Other files are not
/// touched.
pub fn write(files: &BTreeMap<String, Vec<u8>>, directory: &Path) -> Result<()> {
    posenc_files::protect(directory);
    let list = directory.join(LIST);
    let earlier = read_text(&list, MAX_RECORD_BYTES).unwrap_or_default();
    if earlier.is_empty() && !is_empty(directory)? {
        bail!(
            "{} is not empty and contains no site of `cargo xtask book`; choose another directory with --out",
            directory.display()
        );
    }
    // Write the list first: if this run is interrupted, the next one finds all files in it.
    let mut names: Vec<&str> = earlier.lines().chain(files.keys().map(String::as_str)).collect();
    names.sort_unstable();
    names.dedup();
    write_list(&list, &names)?;
    for (name, bytes) in files {
        let file = directory.join(name);
        write_if_changed(&file, bytes)
            .with_context(|| format!("{} cannot be written", file.display()))?;
    }
    for name in earlier.lines().filter(|name| !files.contains_key(*name) && is_below(name)) {
        let file = directory.join(name);
        // The file may be gone already, and its folder may contain other files.
        let _ = posenc_files::remove(&file);
        if let Some(folder) = file.parent().filter(|f| *f != directory) {
            posenc_files::remove_empty_folder(folder);
        }
    }
    write_list(&list, &files.keys().map(String::as_str).collect::<Vec<_>>())
}

fn write_list(file: &Path, names: &[&str]) -> Result<()> {
    write_atomically(file, format!("{}\n", names.join("\n")).as_bytes())
        .with_context(|| format!("{} cannot be written", file.display()))
}

fn is_empty(directory: &Path) -> Result<bool> {
    if !is_there(directory) {
        return Ok(true);
    }
    let entries =
        entries(directory).with_context(|| format!("{} cannot be listed", directory.display()))?;
    Ok(entries.is_empty())
}

/// Whether a name of the list stays within the directory.
fn is_below(name: &str) -> bool {
    !name.starts_with('/') && !name.split('/').any(|part| part == ".." || part.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(names: &[&str]) -> BTreeMap<String, Vec<u8>> {
        names.iter().map(|n| ((*n).to_owned(), n.as_bytes().to_vec())).collect()
    }

    /// Catches a site that overwrites or removes others' files, or leaves its own old files.
    #[test]
    fn only_files_of_a_site_are_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let out = directory.path().join("book");
        write(&files(&["index.html", "a/b.html"]), &out).unwrap();
        std::fs::write(out.join("notes.txt"), "mine").unwrap();
        write(&files(&["index.html", "c.html"]), &out).unwrap();
        assert!(out.join("notes.txt").exists() && out.join("c.html").exists());
        assert!(!out.join("a").exists());
        let foreign = directory.path().join("photos");
        std::fs::create_dir(&foreign).unwrap();
        std::fs::write(foreign.join("cat.jpg"), "x").unwrap();
        let error = write(&files(&["index.html"]), &foreign).unwrap_err().to_string();
        assert!(error.contains("photos is not empty") && error.contains("--out"), "{error}");
        assert!(!foreign.join("index.html").exists());
    }
}
