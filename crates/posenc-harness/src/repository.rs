//! Where things lie in a repository.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use posenc_experiments::text::MAX_RECORD_BYTES;

/// A checkout of the project, or a directory laid out like one.
#[derive(Debug, Clone)]
pub struct Repository {
    root: PathBuf,
}

impl Repository {
    /// The given directory, or the nearest one from the current directory upwards.
    pub fn find(given: Option<&Path>) -> Result<Self> {
        let is_root = |p: &Path| p.join("experiments").is_dir() && p.join("data").is_dir();
        if let Some(root) = given {
            if !is_root(root) {
                bail!(
                    "{} is no repository of posenc: it needs the folders experiments/ and data/",
                    root.display()
                );
            }
            return Ok(Repository::at(root));
        }
        let current = std::env::current_dir().context("the current directory cannot be read")?;
        match current.ancestors().find(|p| is_root(p)) {
            Some(root) => Ok(Repository::at(root)),
            None => bail!(
                "no repository of posenc at {} or above (folders experiments/ and data/); go there or give --root DIR",
                current.display()
            ),
        }
    }

    fn at(root: &Path) -> Self {
        let repository = Repository { root: root.to_owned() };
        posenc_files::protect(&repository.report());
        repository
    }

    /// The directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Reference records.
    pub fn record(&self) -> PathBuf {
        self.root.join("report/record")
    }

    /// Rendered reference report.
    pub fn report(&self) -> PathBuf {
        self.root.join("report")
    }

    /// The manifest of data sets.
    pub fn manifest(&self) -> PathBuf {
        self.root.join("data/manifest.yaml")
    }

    /// Where a run on this machine writes.
    pub fn out(&self, given: Option<&Path>) -> PathBuf {
        given.map_or_else(|| self.root.join("out"), Path::to_owned)
    }

    /// blake3 of the published values, which the errata checks compute with.
    pub fn published_checksum(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for paper in posenc_experiments::catalog::PAPER_ORDER {
            let file = self.root.join("data/papers").join(format!("{paper}.csv"));
            // A missing file is a paper without values; its absence is part of the sum.
            let bytes = posenc_files::read(&file, MAX_RECORD_BYTES).unwrap_or_default();
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(&bytes);
        }
        hasher.finalize().to_hex().to_string()
    }

    /// The commit, with `-dirty` where tracked files differ; empty outside a git checkout.
    pub fn commit(&self) -> String {
        let git = |arguments: &[&str]| {
            Command::new("git")
                .arg("-C")
                .arg(&self.root)
                .args(arguments)
                .output()
                .ok()
                .filter(|o| o.status.success())
                .and_then(|o| String::from_utf8(o.stdout).ok())
                .map(|s| s.trim().to_owned())
        };
        let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) else {
            return String::new();
        };
        // Records and the report are results, not inputs: they do not make a run dirty.
        let status = git(&["status", "--porcelain", "--untracked-files=no", "--", ".", ":!report"]);
        match status {
            Some(changes) if changes.is_empty() => commit,
            _ => format!("{commit}-dirty"),
        }
    }
}
