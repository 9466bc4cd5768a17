//! Paths and git state of a repository.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use posenc_experiments::output;
use posenc_experiments::text::MAX_RECORD_BYTES;

/// A checkout of the project, or a directory laid out like one.
#[derive(Debug, Clone)]
pub struct Repository {
    root: PathBuf,
}

impl Repository {
    /// Finds the given repository, or the nearest one at or above the current directory.
    pub fn find(given: Option<&Path>) -> Result<Self> {
        let is_root = |p: &Path| p.join("experiments").is_dir() && p.join("data").is_dir();
        if let Some(root) = given {
            ensure!(
                is_root(root),
                "{} is not a posenc repository: it needs the folders experiments/ and data/",
                root.display()
            );
            return Ok(Repository::at(root));
        }
        let current = std::env::current_dir().context("the current directory cannot be read")?;
        match current.ancestors().find(|p| is_root(p)) {
            Some(root) => Ok(Repository::at(root)),
            None => bail!(
                "no posenc repository at {} or above (folders experiments/ and data/); go there or give --root DIR",
                current.display()
            ),
        }
    }

    fn at(root: &Path) -> Self {
        let repository = Repository { root: root.to_owned() };
        posenc_files::protect(&repository.report());
        repository
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn record(&self) -> PathBuf {
        self.root.join("report/record")
    }

    pub fn report(&self) -> PathBuf {
        self.root.join("report")
    }

    pub fn manifest(&self) -> PathBuf {
        self.root.join("data/manifest.yaml")
    }

    /// Directory with the records of this machine, for reading.
    pub fn out(&self, given: Option<&Path>) -> PathBuf {
        given.map_or_else(|| self.root.join("out"), Path::to_owned)
    }

    /// Refuses an output file in the reference.
    pub fn check_file(&self, file: &Path) -> Result<()> {
        Ok(output::check_file(file, &self.root)?)
    }

    /// blake3 of the published values, which the errata checks compute with.
    pub fn published_checksum(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for paper in posenc_experiments::catalog::PAPER_ORDER {
            let file = self.root.join("data/papers").join(format!("{paper}.csv"));
            // A missing file means a paper without values and counts as empty.
            let bytes = posenc_files::read(&file, MAX_RECORD_BYTES).unwrap_or_default();
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(&bytes);
        }
        hasher.finalize().to_hex().to_string()
    }

    /// The commit, with `-dirty` if files that results depend on differ; empty outside a git checkout.
    pub fn commit(&self) -> String {
        let Some(commit) = self.git(&["rev-parse", "--short=12", "HEAD"]) else {
            return String::new();
        };
        match self.changes() {
            Some(changes) if changes.is_empty() => commit,
            _ => format!("{commit}-dirty"),
        }
    }

    /// Files that differ from the commit and that results may depend on: tracked files outside `report/`, `out/`, `docs/` and
    /// `README.md`, and new files below the folders of code and definitions. `None` outside a git checkout.
    fn changes(&self) -> Option<Vec<String>> {
        // Records, the report and its blocks in other pages are results, not inputs: they do not make a run dirty.
        let tracked = ["status", "--porcelain", "--untracked-files=no", "--ignore-submodules=all"];
        let tracked =
            [&tracked[..], &["--", ".", ":!report", ":!out", ":!README.md", ":!docs"]].concat();
        let new = ["ls-files", "--others", "--exclude-standard", "--"];
        let new = [&new[..], &INPUTS].concat();
        let lines = |text: String, prefix: usize| -> Vec<String> {
            text.lines().filter_map(|line| Some(line.get(prefix..)?.trim().to_owned())).collect()
        };
        // Two letters and a space precede each name.
        let mut all = lines(self.git_lines(&tracked)?, 3);
        all.extend(lines(self.git_lines(&new)?, 0));
        Some(all)
    }

    /// Rejects a tree with changes that results may depend on, because the commit would not identify the code behind a record.
    pub fn refuse_changes(&self) -> Result<()> {
        let Some(changes) = self.changes().filter(|changes| !changes.is_empty()) else {
            return Ok(());
        };
        let shown: Vec<&str> = changes.iter().take(5).map(String::as_str).collect();
        let more = match changes.len() - shown.len() {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        bail!(
            "--record needs a commit that identifies the code and the definitions, but these files have uncommitted changes: \
             {}{more}. Commit or stash them, or add --allow-dirty to record anyway; the report then marks the record.",
            shown.join(", ")
        )
    }

    fn git(&self, arguments: &[&str]) -> Option<String> {
        self.git_lines(arguments).map(|text| text.trim().to_owned())
    }

    fn git_lines(&self, arguments: &[&str]) -> Option<String> {
        let output =
            posenc_files::git(&self.root, arguments).ok().filter(|o| o.status.success())?;
        String::from_utf8(output.stdout).ok()
    }
}

/// Paths below which new files may affect results.
const INPUTS: [&str; 6] =
    ["crates", "xtask", "experiments", "data/papers", "benches", "Cargo.toml"];

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn git(root: &Path, arguments: &[&str]) {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
        let status =
            Command::new("git").arg("-C").arg(root).args(identity).args(arguments).output();
        assert!(status.unwrap().status.success(), "{arguments:?}");
    }

    /// Catches changed inputs that are accepted, and a tree that is rejected because of changed results.
    #[test]
    fn changes_outside_the_results_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        for folder in ["experiments", "data", "report", "out", "docs"] {
            std::fs::create_dir(root.join(folder)).unwrap();
            std::fs::write(root.join(folder).join("a.yaml"), "a").unwrap();
        }
        let repository = Repository::find(Some(root)).unwrap();
        assert_eq!(repository.commit(), "");
        repository.refuse_changes().unwrap();
        git(root, &["init", "-q"]);
        git(root, &["add", "."]);
        git(root, &["commit", "-q", "-m", "a"]);
        repository.refuse_changes().unwrap();
        assert!(!repository.commit().ends_with("-dirty"));
        for folder in ["report", "out", "docs"] {
            std::fs::write(root.join(folder).join("a.yaml"), "b").unwrap();
        }
        std::fs::write(root.join("notes.txt"), "n").unwrap();
        repository.refuse_changes().unwrap();
        for file in ["data/a.yaml", "experiments/new.yaml"] {
            std::fs::write(root.join(file), "b").unwrap();
            let error = repository.refuse_changes().unwrap_err().to_string();
            assert!(error.contains(file) && error.contains("--allow-dirty"), "{error}");
            assert!(repository.commit().ends_with("-dirty"));
            match file {
                "data/a.yaml" => std::fs::write(root.join(file), "a").unwrap(),
                _ => std::fs::remove_file(root.join(file)).unwrap(),
            }
        }
        repository.refuse_changes().unwrap();
    }
}
