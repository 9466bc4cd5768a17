//! New files and lines in files that there are, written all together or not at all.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use posenc_experiments::record::table::write_atomically;
use posenc_experiments::text::{MAX_RECORD_BYTES, read_text};

/// What a verb is about to write, by path below the repository's root.
#[derive(Default)]
pub struct Changes {
    created: Vec<(PathBuf, String)>,
    inserted: Vec<Insertion>,
}

/// A line in a file that there is, above a marked place.
struct Insertion {
    file: PathBuf,
    anchor: &'static str,
    line: String,
    before: String,
    after: String,
}

impl Changes {
    /// Plans a new file.
    pub fn create(&mut self, root: &Path, file: PathBuf, text: String) -> Result<()> {
        if posenc_files::is_there(&root.join(&file)) {
            bail!("{} exists already; nothing is overwritten", file.display());
        }
        self.created.push((file, text));
        Ok(())
    }

    /// Plans a line above `anchor`, a comment that stands once in the file.
    pub fn insert(
        &mut self,
        root: &Path,
        file: &str,
        anchor: &'static str,
        line: String,
    ) -> Result<()> {
        let by_hand = || format!("add this line yourself: {}", line.trim());
        let path = root.join(file);
        let before = read_text(&path, MAX_RECORD_BYTES)
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

    /// Writes everything; after an error, and where `check` refuses the result, nothing of it is left.
    pub fn write(&self, root: &Path, check: impl FnOnce() -> Result<()>) -> Result<()> {
        let mut undo = Undo { root, created: Vec::new(), changed: Vec::new() };
        let result = self.apply(root, &mut undo).and_then(|()| check());
        match result {
            Ok(()) => Ok(()),
            Err(error) => match undo.run() {
                Ok(()) => Err(error.context("nothing was written")),
                Err(left) => {
                    Err(anyhow!("{error:#}; removing the new files also failed: {left:#}"))
                }
            },
        }
    }

    fn apply<'a>(&'a self, root: &Path, undo: &mut Undo<'a>) -> Result<()> {
        for (file, text) in &self.created {
            let path = root.join(file);
            // Never over a file that came in the meantime.
            let mut handle = posenc_files::create_new(&path)
                .with_context(|| format!("{} cannot be written", file.display()))?;
            undo.created.push(file);
            handle
                .write_all(text.as_bytes())
                .with_context(|| format!("{} cannot be written", file.display()))?;
        }
        for insertion in &self.inserted {
            let path = root.join(&insertion.file);
            write_atomically(&path, insertion.after.as_bytes())
                .with_context(|| format!("{} cannot be written", insertion.file.display()))?;
            undo.changed.push(insertion);
        }
        Ok(())
    }

    /// What is written, a line each.
    pub fn summary(&self) -> String {
        let mut text = String::new();
        for (file, _) in &self.created {
            let _ = writeln!(text, "  new      {}", file.display());
        }
        for insertion in &self.inserted {
            let _ = writeln!(
                text,
                "  changed  {}: {}",
                insertion.file.display(),
                insertion.line.trim()
            );
        }
        text
    }

    /// What would be written, in full.
    pub fn preview(&self) -> String {
        let mut text = String::new();
        for (file, content) in &self.created {
            let _ = writeln!(text, "--- new file: {}\n{content}", file.display());
        }
        for i in &self.inserted {
            let _ = writeln!(
                text,
                "--- new line in {}, above `{}`\n{}",
                i.file.display(),
                i.anchor,
                i.line
            );
        }
        text
    }
}

/// What is taken back after an error.
struct Undo<'a> {
    root: &'a Path,
    created: Vec<&'a PathBuf>,
    changed: Vec<&'a Insertion>,
}

impl Undo<'_> {
    fn run(&self) -> Result<()> {
        let mut errors = Vec::new();
        for file in &self.created {
            if let Err(e) = posenc_files::remove(&self.root.join(file)) {
                errors.push(format!("{}: {e}", file.display()));
            }
        }
        for insertion in &self.changed {
            let path = self.root.join(&insertion.file);
            if let Err(e) = write_atomically(&path, insertion.before.as_bytes()) {
                errors.push(format!("{}: {e}", insertion.file.display()));
            }
        }
        if errors.is_empty() { Ok(()) } else { bail!("{}", errors.join("; ")) }
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

    /// Catches a line that goes elsewhere than above its anchor.
    #[test]
    fn lines_go_above_the_anchor() {
        let folder = folder();
        let mut changes = Changes::default();
        changes.insert(folder.path(), "list", "// end", "mod b;".into()).unwrap();
        changes.write(folder.path(), || Ok(())).unwrap();
        assert_eq!(list(folder.path()), "mod a;\nmod c;\nmod b;\n// end\n");
    }

    /// Catches files that stay behind when a later one cannot be written, or the result is refused.
    #[test]
    fn nothing_is_left_of_what_fails() {
        let folder = folder();
        let root = folder.path();
        let mut changes = Changes::default();
        changes.create(root, "new".into(), "text".into()).unwrap();
        changes.insert(root, "list", "// end", "mod b;".into()).unwrap();
        let error = changes.write(root, || bail!("refused")).unwrap_err();
        assert!(format!("{error:#}").contains("nothing was written: refused"), "{error:#}");
        assert!(!root.join("new").exists());
        assert_eq!(list(root), LIST);

        // Another one came first.
        changes.create(root, "other".into(), "text".into()).unwrap();
        std::fs::write(root.join("other"), "mine").unwrap();
        assert!(changes.write(root, || Ok(())).is_err());
        assert!(!root.join("new").exists());
        assert_eq!(std::fs::read_to_string(root.join("other")).unwrap(), "mine");
        assert_eq!(list(root), LIST);
    }

    /// Catches a line that is put anywhere when its place is not marked, and errors that do not say what to do.
    #[test]
    fn a_place_that_is_not_marked_is_refused() {
        let folder = folder();
        let mut changes = Changes::default();
        for (file, anchor, line, parts) in [
            (
                "list",
                "// absent",
                "mod b;",
                &["list", "`// absent` 0 times", "add this line yourself: mod b;"][..],
            ),
            ("absent", "// end", "mod b;", &["absent", "add this line yourself"]),
            ("list", "// end", "mod a;", &["has the line `mod a;` already"]),
        ] {
            let error = changes.insert(folder.path(), file, anchor, line.into()).unwrap_err();
            let error = format!("{error:#}");
            assert!(parts.iter().all(|p| error.contains(p)), "{error}");
        }
    }
}
