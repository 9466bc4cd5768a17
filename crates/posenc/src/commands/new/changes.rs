//! New files and new lines in existing files, written all together or not at all.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use posenc_experiments::record::table::write_atomically;
use posenc_experiments::text::{MAX_RECORD_BYTES, read_text};

/// Planned changes, with paths relative to the repository's root.
pub struct Changes<'a> {
    root: &'a Path,
    created: Vec<(PathBuf, String)>,
    inserted: Vec<Insertion>,
}

/// A new line in an existing file, above an anchor comment.
struct Insertion {
    file: PathBuf,
    anchor: &'static str,
    line: String,
    before: String,
    after: String,
}

impl<'a> Changes<'a> {
    /// No changes yet, for the repository at `root`.
    pub fn new(root: &'a Path) -> Self {
        Changes { root, created: Vec::new(), inserted: Vec::new() }
    }

    pub fn create(&mut self, file: PathBuf, text: String) -> Result<()> {
        if posenc_files::is_there(&self.root.join(&file)) {
            bail!("{} exists already; nothing is overwritten", file.display());
        }
        self.created.push((file, text));
        Ok(())
    }

    /// Plans a line above `anchor`, a comment that must occur exactly once in the file.
    pub fn insert(&mut self, file: &str, anchor: &'static str, line: String) -> Result<()> {
        let by_hand = || format!("add this line yourself: {}", line.trim());
        let before = read_text(&self.root.join(file), MAX_RECORD_BYTES)
            .with_context(|| format!("{file} cannot be read; {}", by_hand()))?;
        let lines: Vec<&str> = before.split_inclusive('\n').collect();
        let places: Vec<usize> = (0..lines.len()).filter(|&i| lines[i].trim() == anchor).collect();
        let &[place] = places.as_slice() else {
            bail!(
                "{file} has the comment `{anchor}` {} times instead of once; put it back at the end \
                 of the list, or {}",
                places.len(),
                by_hand()
            );
        };
        if lines.iter().any(|l| l.trim() == line.trim()) {
            bail!("{file} has the line `{}` already", line.trim());
        }
        let indent: String = lines[place].chars().take_while(|c| *c == ' ').collect();
        let line = format!("{indent}{}\n", line.trim());
        let after = [&lines[..place], &[line.as_str()], &lines[place..]].concat().concat();
        self.inserted.push(Insertion { file: file.into(), anchor, line, before, after });
        Ok(())
    }

    /// Writes everything. After an error, or if `check` rejects the result, undoes all changes.
    pub fn write(&self, check: impl FnOnce() -> Result<()>) -> Result<()> {
        let (mut created, mut changed) = (0, 0);
        let written = self.apply(&mut created, &mut changed).and_then(|()| check());
        written.map_err(|error| match self.undo(created, changed) {
            Ok(()) => error.context("nothing was written"),
            Err(left) => anyhow!("{error:#}; removing the new files also failed: {left:#}"),
        })
    }

    /// Writes everything and counts the files that were created and changed.
    fn apply(&self, created: &mut usize, changed: &mut usize) -> Result<()> {
        let unwritable = |file: &Path| format!("{} cannot be written", file.display());
        for (file, text) in &self.created {
            // Fails if the file was created in the meantime.
            let mut handle = posenc_files::create_new(&self.root.join(file))
                .with_context(|| unwritable(file))?;
            *created += 1;
            handle.write_all(text.as_bytes()).with_context(|| unwritable(file))?;
        }
        for Insertion { file, after, .. } in &self.inserted {
            write_atomically(&self.root.join(file), after.as_bytes())
                .with_context(|| unwritable(file))?;
            *changed += 1;
        }
        Ok(())
    }

    /// Removes the first `created` new files and restores the first `changed` files.
    fn undo(&self, created: usize, changed: usize) -> Result<()> {
        let mut errors = Vec::new();
        for (file, _) in self.created.iter().take(created) {
            if let Err(e) = posenc_files::remove(&self.root.join(file)) {
                errors.push(format!("{}: {e}", file.display()));
            }
        }
        for Insertion { file, before, .. } in self.inserted.iter().take(changed) {
            if let Err(e) = write_atomically(&self.root.join(file), before.as_bytes()) {
                errors.push(format!("{}: {e}", file.display()));
            }
        }
        if errors.is_empty() { Ok(()) } else { bail!("{}", errors.join("; ")) }
    }

    /// Lists the changes, one per line.
    pub fn summary(&self) -> String {
        let mut text = String::new();
        for (file, _) in &self.created {
            let _ = writeln!(text, "  new      {}", file.display());
        }
        for Insertion { file, line, .. } in &self.inserted {
            let _ = writeln!(text, "  changed  {}: {}", file.display(), line.trim());
        }
        text
    }

    /// Shows the full text of the changes.
    pub fn preview(&self) -> String {
        let mut text = String::new();
        for (file, content) in &self.created {
            let _ = writeln!(text, "--- new file: {}\n{content}", file.display());
        }
        for Insertion { file, anchor, line, .. } in &self.inserted {
            let file = file.display();
            let _ = writeln!(text, "--- new line in {file}, above `{anchor}`\n{line}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "mod a;\nmod c;\n// end\n";

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("list"), LIST).unwrap();
        folder
    }

    fn list(root: &Path) -> String {
        std::fs::read_to_string(root.join("list")).unwrap()
    }

    /// Catches a line that is not inserted directly above its anchor.
    #[test]
    fn lines_go_above_the_anchor() {
        let folder = folder();
        let mut changes = Changes::new(folder.path());
        changes.insert("list", "// end", "mod b;".into()).unwrap();
        changes.write(|| Ok(())).unwrap();
        assert_eq!(list(folder.path()), "mod a;\nmod c;\nmod b;\n// end\n");
    }

    /// Catches files that remain when a later file cannot be written or the result is rejected.
    #[test]
    fn a_failed_write_leaves_nothing() {
        let folder = folder();
        let root = folder.path();
        let mut changes = Changes::new(root);
        changes.create("new".into(), "text".into()).unwrap();
        changes.insert("list", "// end", "mod b;".into()).unwrap();
        let error = changes.write(|| bail!("refused")).unwrap_err();
        assert!(format!("{error:#}").contains("nothing was written: refused"), "{error:#}");
        assert!(!root.join("new").exists());
        assert_eq!(list(root), LIST);

        // Another process creates the file first.
        changes.create("other".into(), "text".into()).unwrap();
        std::fs::write(root.join("other"), "mine").unwrap();
        assert!(changes.write(|| Ok(())).is_err());
        assert!(!root.join("new").exists());
        assert_eq!(std::fs::read_to_string(root.join("other")).unwrap(), "mine");
        assert_eq!(list(root), LIST);
    }

    /// Catches a line that is inserted although its anchor is missing or the line exists, and errors without a remedy.
    #[test]
    fn a_missing_anchor_is_refused() {
        let folder = folder();
        let mut changes = Changes::new(folder.path());
        let yourself = "add this line yourself: mod b;";
        for (file, anchor, line, parts) in [
            ("list", "// absent", "mod b;", ["list has", "`// absent` 0 times", yourself]),
            ("absent", "// end", "mod b;", ["absent", "cannot be read", yourself]),
            ("list", "// end", "mod a;", ["list has", "has the line `mod a;` already", "mod a;"]),
        ] {
            let error = changes.insert(file, anchor, line.into()).unwrap_err();
            let error = format!("{error:#}");
            assert!(parts.iter().all(|p| error.contains(p)), "{error}");
        }
    }
}
