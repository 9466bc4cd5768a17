//! New files and new lines in existing files, written all together or not at all.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use posenc_experiments::text::{MAX_RECORD_BYTES, read_text};
use posenc_files::{is_there, write_atomically};

/// Planned changes, with paths relative to the repository's root or absolute.
pub struct Changes<'a> {
    root: &'a Path,
    all: Vec<Change>,
}

struct Change {
    file: PathBuf,
    /// The present text; `None` if the file does not exist.
    before: Option<String>,
    after: String,
    /// The line that is new in an existing file.
    line: String,
}

impl<'a> Changes<'a> {
    pub fn new(root: &'a Path) -> Self {
        Changes { root, all: Vec::new() }
    }

    pub fn create(&mut self, file: PathBuf, after: String) -> Result<()> {
        if is_there(&self.root.join(&file)) {
            bail!("{} exists already; nothing is overwritten", file.display());
        }
        self.all.push(Change { file, before: None, after, line: String::new() });
        Ok(())
    }

    /// Plans a line above `anchor`, a comment that must occur exactly once in the file.
    pub fn insert(&mut self, file: &Path, anchor: &str, line: &str) -> Result<()> {
        let name = file.display();
        let before = read_text(&self.root.join(file), MAX_RECORD_BYTES)
            .with_context(|| format!("{name} cannot be read; add this line yourself: {line}"))?;
        let lines: Vec<&str> = before.split_inclusive('\n').collect();
        let places: Vec<usize> = (0..lines.len()).filter(|&i| lines[i].trim() == anchor).collect();
        let &[place] = places.as_slice() else {
            bail!(
                "{name} has the comment `{anchor}` {} times instead of once; put it back at the end of the list, or add this \
                 line yourself: {line}",
                places.len()
            );
        };
        if lines.iter().any(|own| own.trim() == line) {
            bail!("{name} has the line `{line}` already");
        }
        let indent: String = lines[place].chars().take_while(|c| *c == ' ').collect();
        let after =
            lines[..place].concat() + &format!("{indent}{line}\n") + &lines[place..].concat();
        self.all.push(Change {
            file: file.into(),
            before: Some(before),
            after,
            line: line.to_owned(),
        });
        Ok(())
    }

    /// Writes everything. After an error, or if `check` rejects the result, undoes all changes.
    pub fn write(&self, check: impl FnOnce() -> Result<()>) -> Result<()> {
        let (mut written, mut folders) = (Vec::new(), Vec::new());
        let result = self.all.iter().try_for_each(|change| {
            let file = self.root.join(&change.file);
            if change.before.is_none() && is_there(&file) {
                bail!("{} was created in the meantime", file.display());
            }
            let missing = file.ancestors().skip(1).take_while(|folder| !is_there(folder));
            folders.extend(missing.map(Path::to_owned));
            written.push(change);
            write_atomically(&file, change.after.as_bytes())
                .with_context(|| format!("{} cannot be written", file.display()))
        });
        let Err(error) = result.and_then(|()| check()) else { return Ok(()) };
        let mut left = Vec::new();
        for change in written {
            let file = self.root.join(&change.file);
            let undone = match &change.before {
                Some(before) => {
                    write_atomically(&file, before.as_bytes()).map_err(|e| e.to_string())
                }
                None => posenc_files::remove(&file).map(drop).map_err(|e| e.to_string()),
            };
            left.extend(undone.err().map(|e| format!("{}: {e}", change.file.display())));
        }
        // New folders, the innermost first. One in which others have made files stays.
        folders.iter().for_each(|folder| drop(std::fs::remove_dir(folder)));
        Err(match left.as_slice() {
            [] => error.context("nothing was written"),
            left => anyhow!("{error:#}; undoing the changes also failed: {}", left.join("; ")),
        })
    }

    pub fn summary(&self) -> String {
        let line = |change: &Change| match change.before {
            None => format!("  new      {}\n", change.file.display()),
            Some(_) => format!("  changed  {}: {}\n", change.file.display(), change.line),
        };
        self.all.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "mod a;\n  mod c;\n  // end\n";

    /// Catches a line that is not inserted directly above its anchor, and files that remain when a later file cannot be written or
    /// the result is rejected.
    #[test]
    fn everything_is_written_or_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let list = || std::fs::read_to_string(root.join("list")).unwrap();
        std::fs::write(root.join("list"), LIST).unwrap();
        let mut changes = Changes::new(root);
        changes.create("new".into(), "text".into()).unwrap();
        changes.insert(Path::new("list"), "// end", "mod b;").unwrap();
        let error = changes.write(|| bail!("refused")).unwrap_err();
        assert!(format!("{error:#}").contains("nothing was written: refused"), "{error:#}");
        assert!(!root.join("new").exists());
        assert_eq!(list(), LIST);

        // Another process creates the file first.
        changes.create("other".into(), "text".into()).unwrap();
        std::fs::write(root.join("other"), "mine").unwrap();
        assert!(changes.write(|| Ok(())).is_err());
        assert!(!root.join("new").exists());
        assert_eq!(std::fs::read_to_string(root.join("other")).unwrap(), "mine");
        assert_eq!(list(), LIST);

        std::fs::remove_file(root.join("other")).unwrap();
        changes.write(|| Ok(())).unwrap();
        assert_eq!(list(), "mod a;\n  mod c;\n  mod b;\n  // end\n");
        // The line exists already, and a list without the anchor is refused with a remedy (`it/new.rs`).
        assert!(Changes::new(root).insert(Path::new("list"), "// end", "mod b;").is_err());
    }
}
