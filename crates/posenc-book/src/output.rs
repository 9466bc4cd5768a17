//! The site on disk.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use posenc_experiments::output::{check_folder, remove};
use posenc_experiments::text::{MAX_RECORD_BYTES, read_text};
use posenc_files::{write_atomically, write_if_changed};

/// File that lists the files of a site, so that the next run recognizes them as its own.
const LIST: &str = ".posenc-book";

/// Refuses a directory that is the repository at `root`, in its reference, or not empty without a site.
pub fn check(directory: &Path, root: &Path) -> Result<()> {
    Ok(check_folder(directory, root, |directory| {
        posenc_files::open(&directory.join(LIST)).is_ok()
    })?)
}

/// Writes files that differ, and removes files of an earlier site that this one does not have. Other files are not
/// touched.
pub fn write(files: &BTreeMap<String, Vec<u8>>, directory: &Path) -> Result<()> {
    posenc_files::protect(directory);
    let list = directory.join(LIST);
    let earlier = read_text(&list, MAX_RECORD_BYTES).unwrap_or_default();
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
        remove(&file, "no longer part of the site")?;
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
        let root = directory.path().join("root");
        check(&out, &root).unwrap();
        check(&directory.path().join("new"), &root).unwrap();
        let foreign = directory.path().join("photos");
        std::fs::create_dir_all(&foreign).unwrap();
        std::fs::write(foreign.join("cat.jpg"), "x").unwrap();
        for (refused, why) in [(&foreign, "cat.jpg"), (&root.join("report/new"), "the reference")] {
            let error = check(refused, &root).unwrap_err().to_string();
            assert!(error.contains(why) && error.contains("; name a"), "{error}");
        }
    }
}
