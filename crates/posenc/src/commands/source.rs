//! Sources of records to compare: a directory, or a revision of this repository.
//!
//! A revision is read from git's objects; neither the working tree nor the index changes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use posenc_experiments::record::{ItemRecord, Provenance, Table, item};
use posenc_experiments::schema::is_key;
use posenc_experiments::text::MAX_RECORD_BYTES;
use posenc_files::{is_there, one_line, write_new};

use posenc_harness::repository::Repository;

/// Path of the reference records in a repository.
const REFERENCE: &str = "report/record";

pub struct Source {
    pub name: String,
    /// Whether its definitions differ from those of the working tree. Always false for a directory, whose definitions are unknown.
    pub is_of_other_definitions: bool,
    directory: PathBuf,
    revision: Option<Revision>,
}

struct Revision {
    root: PathBuf,
    /// Object of the files below [`REFERENCE`], and its size in bytes; `None` if the object is missing.
    files: BTreeMap<String, (String, Option<u64>)>,
    /// Temporary copies of the files that were read.
    _copies: tempfile::TempDir,
}

impl Source {
    /// Opens a directory that contains `<paper>/<item>/units.csv` or `record/<paper>/<item>/units.csv`, else a git revision. Fails if the
    /// source has no records.
    pub fn open(repository: &Repository, name: &str) -> Result<Self> {
        let given = Path::new(name);
        if !given.is_dir() {
            return Source::at_revision(repository.root(), name);
        }
        for directory in [given.to_owned(), given.join("record")] {
            let (name, is_of_other_definitions) = (name.to_owned(), false);
            let source = Source { name, is_of_other_definitions, directory, revision: None };
            if !source.items()?.is_empty() {
                return Ok(source);
            }
        }
        bail!(
            "{name} has no records; a directory of records holds <paper>/<item>/units.csv, such as report/record or out/record"
        )
    }

    fn at_revision(root: &Path, name: &str) -> Result<Self> {
        let allowed = "expected a directory of records, such as out/record, or a git revision, such as HEAD~3";
        ensure!(
            is_revision_name(name),
            "`{name}` is neither a directory nor the name of a revision; {allowed}"
        );
        git(root, &["rev-parse", "--git-dir"]).with_context(|| {
            format!(
                "`{name}` is not a directory, and {} is not a git checkout; {allowed}",
                root.display()
            )
        })?;
        let commit = format!("{name}^{{commit}}");
        let commit =
            git(root, &["rev-parse", "--verify", "--quiet", &commit]).with_context(|| {
                format!("`{name}` is not a directory, and git has no such revision; {allowed}")
            })?;
        // Later git commands get only this hash, never the user's text.
        let commit = String::from_utf8_lossy(&commit).trim().to_owned();
        ensure!(commit.chars().all(|c| c.is_ascii_hexdigit()), "`{commit}` is no git commit");
        let listed = git(root, &["ls-tree", "-r", "-l", "-z", &commit, "--", REFERENCE])?;
        let listed = String::from_utf8_lossy(&listed).into_owned();
        // Mode, type, object and size, then a tab and the path.
        let file = |line: &str| {
            let (entry, path) = line.split_once('\t')?;
            let mut entry = entry.split_whitespace().skip(2);
            let object = entry.next()?.to_owned();
            let path = path.strip_prefix(REFERENCE)?.strip_prefix('/')?;
            Some((path.to_owned(), (object, entry.next()?.parse().ok())))
        };
        let definitions = ["experiments", "data/papers"];
        let quiet = [
            "diff",
            "--quiet",
            "--no-ext-diff",
            "--no-textconv",
            "--ignore-submodules=all",
            &commit,
            "--",
        ];
        let changed = git(root, &[&quiet[..], &definitions].concat()).is_err();
        let others = ["ls-files", "--others", "--exclude-standard", "--"];
        let added = !git(root, &[&others[..], &definitions].concat())?.is_empty();
        let copies = tempfile::tempdir().context("a temporary directory cannot be created")?;
        posenc_files::protect(copies.path());
        let source = Source {
            name: name.to_owned(),
            is_of_other_definitions: changed || added,
            directory: copies.path().to_owned(),
            revision: Some(Revision {
                root: root.to_owned(),
                files: listed.split('\0').filter_map(file).collect(),
                _copies: copies,
            }),
        };
        ensure!(!source.items()?.is_empty(), "revision `{name}` has no records in {REFERENCE}");
        Ok(source)
    }

    /// Paper and item of every record, sorted.
    pub fn items(&self) -> Result<Vec<(String, String)>> {
        let files = match &self.revision {
            Some(revision) => revision.files.keys().cloned().collect(),
            None => tables_of_papers(&self.directory)?,
        };
        let mut items: Vec<_> = files.iter().filter_map(|file| item_of(file)).collect();
        items.sort();
        Ok(items)
    }

    /// The record of an item with its provenance; `None` if the source has no such record. Fails on a damaged file and on a table
    /// that does not match its provenance.
    pub fn read(&self, paper: &str, item: &str) -> Result<Option<(Table, Provenance)>> {
        if let Some(revision) = &self.revision {
            for name in item::FILES {
                revision.copy(&format!("{paper}/{item}/{name}"), &self.directory)?;
            }
        }
        let record = ItemRecord::read_tables(&item::folder(&self.directory, paper, item));
        record.with_context(|| format!("record of {}", self.name))
    }
}

impl Revision {
    /// Copies a file of the record below `directory`, if the revision contains it.
    fn copy(&self, name: &str, directory: &Path) -> Result<()> {
        let file = directory.join(name);
        let Some((object, bytes)) = self.files.get(name).filter(|_| !is_there(&file)) else {
            return Ok(());
        };
        let bytes = bytes.with_context(|| {
            format!("git cannot read {REFERENCE}/{name}: its object is missing")
        })?;
        // A compressed object of a few kilobytes may expand to any size.
        ensure!(
            bytes <= MAX_RECORD_BYTES,
            "{REFERENCE}/{name} has {bytes} bytes; a record has at most {MAX_RECORD_BYTES}"
        );
        write_new(&file, &git(&self.root, &["cat-file", "blob", object])?)
            .with_context(|| format!("{} cannot be written", file.display()))
    }
}

/// `<paper>/<item>/units.csv` for all items of the papers in a directory of records.
fn tables_of_papers(directory: &Path) -> Result<Vec<String>> {
    let entries = |folder: &Path| -> Result<Vec<String>> {
        let entries = posenc_files::entries(folder)
            .with_context(|| format!("{} cannot be listed", folder.display()))?;
        Ok(entries.into_iter().filter_map(|entry| entry.name.into_string().ok()).collect())
    };
    let mut tables = Vec::new();
    if directory.is_dir() {
        for paper in entries(directory)?.into_iter().filter(|name| is_key(name)) {
            let folder = directory.join(&paper);
            if folder.is_dir() {
                let items = entries(&folder)?.into_iter();
                let own = items.map(|item| format!("{paper}/{item}/{}", item::FILES[0]));
                tables.extend(own.filter(|table| is_there(&directory.join(table))));
            }
        }
    }
    Ok(tables)
}

/// Paper and item of `<paper>/<item>/units.csv`. Rejects other names; a git tree may even contain `..`.
fn item_of(path: &str) -> Option<(String, String)> {
    let (paper, file) = path.split_once('/')?;
    let item = file.strip_suffix(item::FILES[0])?.strip_suffix('/')?;
    (is_key(paper) && is_key(item)).then(|| (paper.to_owned(), item.to_owned()))
}

/// Whether git can read a text only as a revision, not as an option, a range or a path inside a revision.
fn is_revision_name(text: &str) -> bool {
    let allowed = |c: char| c.is_alphanumeric() || "._/-~^@{}+#".contains(c);
    let begins = |c: char| c.is_alphanumeric() || c == '@' || c == '_';
    text.chars().all(allowed)
        && text.chars().next().is_some_and(begins)
        && !text.contains("..")
        && text.len() <= 250
}

/// The output of a git command that succeeds.
fn git(root: &Path, arguments: &[&str]) -> Result<Vec<u8>> {
    let output = posenc_files::git(root, arguments).map_err(|e| {
        anyhow!("git cannot be started ({e}); name a directory of records instead of a revision")
    })?;
    let verb = arguments.first().copied().unwrap_or_default();
    ensure!(output.status.success(), "git {verb} failed: {}", one_line(&output.stderr));
    Ok(output.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches an argument that git would read as an option, a range or a file, and valid revisions that are rejected.
    #[test]
    fn only_names_of_revisions_reach_git() {
        for good in ["HEAD", "HEAD~3", "v0.1", "@{1}", "main^2", "feature/x-1", "0063562", "@"] {
            assert!(is_revision_name(good), "{good}");
        }
        for bad in ["", "-p", "--output=x", "^HEAD", "a..b", "HEAD:x", "a b", "a\nb", ":/text", "~"]
        {
            assert!(!is_revision_name(bad), "{bad}");
        }
    }

    /// Catches other files next to the records, such as pictures, and names that lead out of the folder, that are treated as items.
    #[test]
    fn items_have_a_table_of_units_in_a_folder_of_their_paper() {
        assert_eq!(item_of("lff/fig1/units.csv"), Some(("lff".to_owned(), "fig1".to_owned())));
        for other in [
            "lff/fig1/provenance.json",
            "benchmarks.json",
            "lff/units.csv",
            "lff//units.csv",
            "../fig1/units.csv",
            "lff/../fig1/units.csv",
            "lff/../units.csv",
            "/fig1/units.csv",
            "lff/a\\b/units.csv",
            "lff/a b/units.csv",
        ] {
            assert_eq!(item_of(other), None, "{other}");
        }
    }
}
