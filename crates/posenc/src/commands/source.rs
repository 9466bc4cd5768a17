//! Sources of records to compare: a directory, or a revision of this repository.
//!
//! A revision is read from git's objects; neither the working tree nor the index changes.

use std::path::{Path, PathBuf};
use std::process::Output;

use anyhow::{Context as _, Result, bail, ensure};
use posenc_experiments::record::{ItemRecord, Provenance, Table, item};
use posenc_experiments::schema::is_key;
use posenc_experiments::text::MAX_RECORD_BYTES;
use posenc_files::{is_there, write_new};

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
    commit: String,
    /// Files below [`REFERENCE`].
    files: Vec<String>,
    /// Temporary copies of the files that were read.
    _copies: tempfile::TempDir,
}

impl Source {
    /// Opens a directory that contains `<paper>/<item>.csv` or `record/<paper>/<item>.csv`, else a git revision. Fails if the
    /// source has no records.
    pub fn open(repository: &Repository, name: &str) -> Result<Self> {
        let given = Path::new(name);
        if !given.is_dir() {
            return Source::at_revision(repository, name);
        }
        let places = [given.to_owned(), given.join("record")];
        for directory in places.into_iter().filter(|place| place.is_dir()) {
            let source = Source {
                name: name.to_owned(),
                is_of_other_definitions: false,
                directory,
                revision: None,
            };
            if !source.items()?.is_empty() {
                return Ok(source);
            }
        }
        bail!(
            "{name} has no records; a directory of records holds <paper>/<item>/units.csv, such as report/record or out/record"
        )
    }

    fn at_revision(repository: &Repository, name: &str) -> Result<Self> {
        let allowed = "expected a directory of records, such as out/record, or a git revision, such as HEAD~3";
        ensure!(
            is_revision_name(name),
            "`{name}` is neither a directory nor the name of a revision; {allowed}"
        );
        let root = repository.root();
        let inside = git(root, &["rev-parse", "--git-dir"])?;
        ensure!(
            inside.status.success(),
            "`{name}` is not a directory, and {} is not a git checkout ({}); {allowed}",
            root.display(),
            complaint(&inside)
        );
        let found =
            git(root, &["rev-parse", "--verify", "--quiet", &format!("{name}^{{commit}}")])?;
        let commit = String::from_utf8_lossy(&found.stdout).trim().to_owned();
        // Later git commands get only this hash, never the user's text.
        let is_commit = commit.len() >= 40 && commit.chars().all(|c| c.is_ascii_hexdigit());
        ensure!(
            found.status.success() && is_commit,
            "`{name}` is not a directory, and git has no such revision; {allowed}"
        );
        let listed = git(root, &["ls-tree", "-r", "-z", "--name-only", &commit, "--", REFERENCE])?;
        ensure!(listed.status.success(), "git cannot list `{name}`: {}", complaint(&listed));
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        let files: Vec<String> =
            listed.split('\0').filter(|file| !file.is_empty()).map(str::to_owned).collect();
        let definitions = ["experiments", "data/papers"];
        let quiet =
            ["diff", "--quiet", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all"];
        let quiet = [&quiet[..], &[&commit, "--"]].concat();
        let changed = git(root, &[&quiet[..], &definitions].concat())?;
        let others = ["ls-files", "--others", "--exclude-standard", "--"];
        let added = git(root, &[&others[..], &definitions].concat())?;
        let copies = tempfile::tempdir().context("a temporary directory cannot be created")?;
        posenc_files::protect(copies.path());
        let source = Source {
            name: name.to_owned(),
            is_of_other_definitions: !changed.status.success() || !added.stdout.is_empty(),
            directory: copies.path().to_owned(),
            revision: Some(Revision { root: root.to_owned(), commit, files, _copies: copies }),
        };
        ensure!(!source.items()?.is_empty(), "revision `{name}` has no records in {REFERENCE}");
        Ok(source)
    }

    /// Paper and item of every record, sorted.
    pub fn items(&self) -> Result<Vec<(String, String)>> {
        let mut items = Vec::new();
        if let Some(revision) = &self.revision {
            let below =
                |file: &String| file.strip_prefix(REFERENCE)?.strip_prefix('/').map(str::to_owned);
            for file in revision.files.iter().filter_map(below) {
                items.extend(item_of(&file));
            }
        } else {
            for paper in entries(&self.directory)?.into_iter().filter(|name| is_key(name)) {
                let folder = self.directory.join(&paper);
                if !folder.is_dir() {
                    continue;
                }
                for name in entries(&folder)? {
                    let table = format!("{paper}/{name}/{}", item::FILES[0]);
                    items
                        .extend(item_of(&table).filter(|_| is_there(&self.directory.join(&table))));
                }
            }
        }
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
        let path = format!("{REFERENCE}/{name}");
        let file = directory.join(name);
        if is_there(&file) || !self.files.contains(&path) {
            return Ok(());
        }
        let object = format!("{}:./{path}", self.commit);
        let read = |arguments: [&str; 3]| {
            let output = git(&self.root, &arguments)?;
            ensure!(output.status.success(), "git cannot read {path}: {}", complaint(&output));
            Ok(output.stdout)
        };
        // A compressed object of a few kilobytes may expand to any size.
        let size = String::from_utf8_lossy(&read(["cat-file", "-s", &object])?).trim().to_owned();
        ensure!(
            size.parse::<u64>().is_ok_and(|bytes| bytes <= MAX_RECORD_BYTES),
            "{path} of {} has {size} bytes; a record has at most {MAX_RECORD_BYTES}",
            self.commit
        );
        write_new(&file, &read(["cat-file", "blob", &object])?)
            .with_context(|| format!("{} cannot be written", file.display()))
    }
}

/// Paper and item of `<paper>/<item>/units.csv`. Rejects other names; a git tree may even contain `..`.
fn item_of(path: &str) -> Option<(String, String)> {
    let (paper, file) = path.split_once('/')?;
    let item = file.strip_suffix(item::FILES[0])?.strip_suffix('/')?;
    (is_key(paper) && is_key(item)).then(|| (paper.to_owned(), item.to_owned()))
}

fn entries(directory: &Path) -> Result<Vec<String>> {
    let entries = posenc_files::entries(directory)
        .with_context(|| format!("{} cannot be listed", directory.display()))?;
    Ok(entries.into_iter().filter_map(|entry| entry.name.into_string().ok()).collect())
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

fn git(root: &Path, arguments: &[&str]) -> Result<Output> {
    posenc_files::git(root, arguments).map_err(|e| {
        anyhow::anyhow!(
            "git cannot be started ({e}); name a directory of records instead of a revision"
        )
    })
}

fn complaint(output: &Output) -> String {
    let text = posenc_files::one_line(&output.stderr);
    if text.is_empty() { "no message".to_owned() } else { text }
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
    fn items_are_csv_files_of_papers() {
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
