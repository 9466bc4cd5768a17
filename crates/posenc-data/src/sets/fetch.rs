//! Downloads of files that the manifest lists: the work of `data fetch`.
//!
//! curl transfers each file to `DIRECTORY/.fetch/PATH.part`, where an interrupted transfer resumes. The files of a set get their
//! final names after all of them have been verified, one right after the other. Existing files are never replaced.

use std::fmt::Display;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use posenc_files::{Lock, Prepared, is_there};
use serde::Deserialize;

use crate::digest;
use crate::directory::DataDirectory;
use crate::error::DataError;
use crate::sets::fields;

/// The folder of partial files in the data directory.
const STAGING: &str = ".fetch";
/// Maximum number of times that the transfer of a file resumes or restarts in one run.
const MAX_RETRIES: usize = 5;
/// Maximum length in bytes of a message of curl that is read.
const MAX_MESSAGE: u64 = 1 << 14;
/// Exit codes of curl after which a transfer may resume: partial file, time limit, empty reply, failed send or receive,
/// stream error.
const INTERRUPTED: [i32; 6] = [18, 28, 52, 55, 56, 92];

/// How the files of a set can be obtained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Download {
    pub files: Vec<RemoteFile>,
    /// Manual steps for files without an address.
    pub steps: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemoteFile {
    /// Path below the data directory, and below a mirror.
    #[serde(deserialize_with = "fields::path")]
    pub path: PathBuf,
    /// Its size in bytes, or an upper bound; a longer answer is refused.
    #[serde(deserialize_with = "fields::bytes")]
    pub bytes: u64,
    #[serde(deserialize_with = "fields::checksum")]
    pub sha256: String,
    #[serde(default, deserialize_with = "fields::url")]
    pub url: Option<String>,
}

impl Download {
    pub(crate) fn new(files: &[RemoteFile], steps: Option<&str>) -> Self {
        Download { files: files.to_vec(), steps: steps.map(str::to_owned) }
    }

    pub fn has_urls(&self) -> bool {
        !self.files.is_empty() && self.files.iter().all(|file| file.url.is_some())
    }

    /// Number and size of the files, such as "20.1 MB in 1 file".
    pub fn size(&self) -> String {
        let bytes = self.files.iter().map(|file| file.bytes).sum::<u64>() as f64;
        match self.files.len() {
            0 => "not listed in the manifest".to_owned(),
            1 => format!("{:.1} MB in 1 file", bytes / 1e6),
            n => format!("{:.1} MB in {n} files", bytes / 1e6),
        }
    }

    /// The command that downloads set `id`, or the steps to follow instead.
    pub fn instructions(&self, id: &str) -> String {
        let command = format!("cargo xtask data fetch {id}");
        if self.has_urls() {
            return command;
        }
        let steps = self.steps.as_deref().unwrap_or("the manifest has no address; see origin");
        match self.files.is_empty() {
            true => format!("manually: {steps}"),
            false => format!("manually: {steps}; or from a mirror: {command} --mirror URL"),
        }
    }
}

#[derive(Debug)]
pub struct Fetcher<'a> {
    pub directory: &'a DataDirectory,
    /// Base address that replaces those of the manifest; the path of a file is appended.
    pub mirror: Option<&'a str>,
    /// A transfer fails when no data arrives for this long.
    pub patience: Duration,
}

enum Transfer {
    Complete,
    NotResumable,
    /// The transfer may resume; the reason is for a message.
    Interrupted(String),
}

impl Fetcher<'_> {
    pub fn address(&self, file: &RemoteFile) -> Option<String> {
        match self.mirror {
            Some(mirror) => {
                Some(format!("{}{}", mirror.trim_end_matches('/'), encoded(&file.path)))
            }
            None => file.url.clone(),
        }
    }

    /// The files that do not exist yet; the others are compared with the manifest.
    pub fn missing<'f>(
        &self,
        files: impl IntoIterator<Item = &'f RemoteFile>,
    ) -> Result<Vec<&'f RemoteFile>, DataError> {
        let mut missing = Vec::new();
        for file in files {
            let target = self.directory.path().join(&file.path);
            if !is_there(&target) {
                missing.push(file);
                continue;
            }
            let found = digest::of_file(&target)?;
            if found != file.sha256 {
                return Err(DataError::at(
                    &target,
                    format_args!(
                        "exists and has SHA-256 {found}, but the manifest has {}; existing files are never replaced: \
                         move this file away and fetch again",
                        file.sha256
                    ),
                ));
            }
        }
        Ok(missing)
    }

    /// Downloads the files that [`Fetcher::missing`] found, verifies them, and then gives them their final names. An error before that
    /// leaves none of them in place; one while they are renamed, such as a full disk, may leave some. `progress` receives each file with
    /// its bytes so far.
    pub fn fetch(
        &self,
        missing: &[&RemoteFile],
        progress: &mut dyn FnMut(&RemoteFile, u64),
    ) -> Result<(), DataError> {
        let staging = self.directory.path().join(STAGING);
        posenc_files::protect(&staging);
        let _lock = Lock::try_take(&staging.join("lock")).map_err(|error| {
            DataError::at(
                &staging,
                format_args!("cannot be locked ({error}); run one `data fetch` at a time in a writable directory"),
            )
        })?;
        // Another process may have fetched some of them before the lock was taken.
        let missing = self.missing(missing.iter().copied())?;
        for file in &missing {
            let part = part_of(&staging, file);
            self.download_verified(file, &part, progress).inspect_err(|_| {
                if std::fs::symlink_metadata(&part)
                    .is_ok_and(|part| part.is_file() && part.len() == 0)
                {
                    let _ = posenc_files::remove(&part);
                }
                remove_empty_parents(&staging, &file.path);
            })?;
        }
        let prepared: Result<Vec<Prepared>, DataError> =
            missing.iter().map(|file| self.prepare(&part_of(&staging, file), file)).collect();
        let placed = prepared.and_then(|prepared| {
            let failed = |error| DataError::unwritable(self.directory.path(), error);
            Prepared::commit_all(prepared).map_err(failed)
        });
        for file in &missing {
            if placed.is_ok() {
                // A part that stays is removed or used by the next run.
                let _ = posenc_files::remove(&part_of(&staging, file));
                remove_empty_parents(&staging, &file.path);
            } else {
                // A folder without files would look like a set.
                remove_empty_parents(self.directory.path(), &file.path);
            }
        }
        placed
    }

    /// Copies a verified file next to its final path, which may be on another file system.
    fn prepare(&self, part: &Path, file: &RemoteFile) -> Result<Prepared, DataError> {
        let target = self.directory.path().join(&file.path);
        let copied = posenc_files::open(part).and_then(|mut part| {
            posenc_files::prepare_with(&target, |out| std::io::copy(&mut part, out).map(drop))
        });
        copied.map_err(|error| DataError::unwritable(&target, error))
    }

    /// Completes a partial file and verifies its checksum. A file that fails is removed.
    fn download_verified(
        &self,
        file: &RemoteFile,
        part: &Path,
        progress: &mut dyn FnMut(&RemoteFile, u64),
    ) -> Result<(), DataError> {
        let Some(address) = self.address(file) else {
            return Err(DataError::Invalid(format!(
                "{}: the manifest has no address for this file; name a mirror with --mirror URL, or follow the steps that \
                 `cargo xtask data list` shows",
                file.path.display()
            )));
        };
        let patience = self.patience.as_secs().max(1);
        loop {
            let mut started = Part::open(file, &address, part, progress)?;
            let resumed = started.complete(patience)?;
            let found = digest::of_file(part)?;
            if found == file.sha256 {
                return Ok(());
            }
            posenc_files::remove(part).map_err(|error| started.unwritable(error))?;
            // A resumed file may begin with another version, so it is downloaded once more.
            if !resumed {
                return Err(started.failed(format_args!(
                    "the file has SHA-256 {found}, but the manifest has {}; the download was discarded: try again \
                     later, or name another --mirror",
                    file.sha256
                )));
            }
        }
    }
}

struct Part<'a> {
    file: &'a RemoteFile,
    address: &'a str,
    path: &'a Path,
    out: File,
    /// Number of bytes that are there.
    have: u64,
    progress: &'a mut dyn FnMut(&RemoteFile, u64),
}

impl<'a> Part<'a> {
    fn open(
        file: &'a RemoteFile,
        address: &'a str,
        path: &'a Path,
        progress: &'a mut dyn FnMut(&RemoteFile, u64),
    ) -> Result<Self, DataError> {
        let unwritable = |error| DataError::unwritable(path, error);
        let mut out = posenc_files::open_or_create(path).map_err(unwritable)?;
        let have = out.seek(SeekFrom::End(0)).map_err(unwritable)?;
        Ok(Part { file, address, path, out, have, progress })
    }

    fn failed(&self, reason: impl Display) -> DataError {
        DataError::Invalid(format!("{}: {reason}", self.address))
    }

    fn unwritable(&self, error: std::io::Error) -> DataError {
        DataError::unwritable(self.path, error)
    }

    fn restart(&mut self) -> Result<(), DataError> {
        self.have = 0;
        let emptied = self.out.set_len(0).and_then(|()| self.out.rewind());
        emptied.map_err(|error| self.unwritable(error))
    }

    /// Downloads the rest; true if the file began with bytes of an earlier run.
    fn complete(&mut self, patience: u64) -> Result<bool, DataError> {
        let bytes = self.file.bytes;
        if self.have > bytes {
            self.restart()?;
        }
        let mut resumed = self.have > 0;
        let mut retries = 0;
        while self.have == 0 || self.have < bytes {
            (self.progress)(self.file, self.have);
            let before = self.have;
            match self.transfer(patience)? {
                Transfer::Complete => break,
                Transfer::NotResumable if before > 0 && retries < MAX_RETRIES => {
                    self.restart()?;
                    resumed = false;
                }
                Transfer::Interrupted(_) if self.have > before && retries < MAX_RETRIES => {}
                Transfer::NotResumable => {
                    let message = "the transfer was interrupted, and the server cannot resume it; try again later";
                    return Err(self.failed(message));
                }
                Transfer::Interrupted(reason) => {
                    return Err(self.failed(format_args!(
                        "{reason}, after {} of {bytes} bytes; run the same command again to resume",
                        self.have
                    )));
                }
            }
            retries += 1;
        }
        (self.progress)(self.file, self.have);
        self.out.sync_all().map_err(|error| self.unwritable(error))?;
        Ok(resumed)
    }

    fn transfer(&mut self, patience: u64) -> Result<Transfer, DataError> {
        let patience = patience.to_string();
        let mut command = Command::new("curl");
        // `--disable` ignores the user's curlrc, which may name other files or print more.
        let fixed = "--disable --silent --show-error --fail --location --globoff --no-buffer --max-redirs 5 \
                     --proto =http,https --proto-redir =http,https --speed-limit 1";
        command.args(fixed.split(' '));
        command.args(["--connect-timeout", &patience, "--speed-time", &patience]);
        command.args(["--write-out", "%{stderr}status %{http_code}", "--url", self.address]);
        let resumes = self.have > 0;
        if resumes {
            command.args(["--continue-at", &self.have.to_string()]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| match error.kind() {
            ErrorKind::NotFound => self.failed(
                "downloading needs the program curl, which was not found; install it (apt-get install curl)",
            ),
            _ => self.failed(format_args!("curl cannot be started ({error})")),
        })?;
        let copied = match child.stdout.take() {
            Some(body) => self.append(body),
            None => Ok(()),
        };
        if copied.is_err() {
            let _ = child.kill();
        }
        let mut message = Vec::new();
        if let Some(pipe) = child.stderr.take() {
            // A read error only shortens the message.
            let _ = pipe.take(MAX_MESSAGE).read_to_end(&mut message);
        }
        let status =
            child.wait().map_err(|error| self.failed(format_args!("curl was lost ({error})")))?;
        copied?;
        let message = posenc_files::one_line(&message);
        let (message, answer) = message.rsplit_once("status ").unwrap_or((&message, "unknown"));
        let (message, answer) = (message.trim(), answer.trim());
        match status.code() {
            Some(0) => Ok(Transfer::Complete),
            // The file is already complete. Versions of curl disagree whether this is an error.
            Some(22) if resumes && answer == "416" => Ok(Transfer::Complete),
            Some(33) => Ok(Transfer::NotResumable),
            Some(28) => Ok(Transfer::Interrupted(format!("no data arrived for {patience} s"))),
            Some(code) if INTERRUPTED.contains(&code) => {
                Ok(Transfer::Interrupted(format!("the transfer was interrupted ({message})")))
            }
            Some(22) => Err(self.failed(format_args!(
                "the server answers with status {answer}; check the address, or name another --mirror"
            ))),
            Some(_) => {
                Err(self.failed(format_args!("{message}; check the address and the network")))
            }
            None => Err(self.failed("curl was killed; run the same command again to resume")),
        }
    }

    fn append(&mut self, mut body: impl Read) -> Result<(), DataError> {
        let bytes = self.file.bytes;
        let mut piece = vec![0; 1 << 16];
        loop {
            let piece = match body.read(&mut piece) {
                Ok(0) => return Ok(()),
                Ok(n_read) => piece.get(..n_read).unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => {
                    return Err(self.failed(format_args!("curl's output cannot be read ({error})")));
                }
            };
            if self.have.saturating_add(piece.len() as u64) > bytes {
                let _ = posenc_files::remove(self.path);
                return Err(self.failed(format_args!(
                    "the answer is longer than the {bytes} bytes of the manifest; the download was discarded: name \
                     another --mirror"
                )));
            }
            self.out.write_all(piece).map_err(|error| {
                DataError::at(
                    self.path,
                    format_args!(
                        "cannot be written ({error}); {} of {bytes} bytes are there: if the disk is full, free some \
                         space; then run the same command again to resume",
                        self.have
                    ),
                )
            })?;
            self.have += piece.len() as u64;
            (self.progress)(self.file, self.have);
        }
    }
}

fn part_of(staging: &Path, file: &RemoteFile) -> PathBuf {
    let mut path = staging.join(&file.path).into_os_string();
    path.push(".part");
    path.into()
}

/// Removes the empty folders of a relative path.
fn remove_empty_parents(root: &Path, path: &Path) {
    for folder in path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty()) {
        posenc_files::remove_empty_folder(&root.join(folder));
    }
}

/// A relative path, percent-encoded, with a slash before each part.
fn encoded(path: &Path) -> String {
    let mut text = String::new();
    for part in path.components() {
        let Component::Normal(part) = part else { continue };
        text.push('/');
        for &byte in part.as_encoded_bytes() {
            match byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                true => text.push(char::from(byte)),
                false => text.push_str(&format!("%{byte:02X}")),
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_change_the_address() {
        assert_eq!(encoded(Path::new("a b/ü?#%.npz")), "/a%20b/%C3%BC%3F%23%25.npz");
    }
}
