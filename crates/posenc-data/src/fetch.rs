//! Downloads of files that the manifest lists: the work of `data fetch`.
//!
//! curl transfers each file to `DIRECTORY/.fetch/PATH.part`, where an interrupted transfer resumes. The files of a set move to their final
//! paths together, after all of them have been verified. Existing files are never replaced.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use posenc_files::{Lock, Prepared, is_full, is_there};

use crate::digest;
use crate::directory::DataDirectory;
use crate::error::DataError;

/// The folder of partial files in the data directory.
const STAGING: &str = ".fetch";
/// Maximum number of times that the transfer of a file resumes or restarts in one run.
const MAX_RETRIES: usize = 5;
/// Maximum length of an address in bytes.
const MAX_URL: usize = 2000;
/// Maximum length in bytes of a message of curl that is read.
const MAX_MESSAGE: u64 = 1 << 14;
/// Exit codes of curl after which a transfer may resume: partial file, time limit, empty reply, failed send or receive,
/// stream error.
const INTERRUPTED: [i32; 6] = [18, 28, 52, 55, 56, 92];

/// How the files of a set can be obtained.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Download {
    /// The files below the data directory.
    pub files: Vec<RemoteFile>,
    /// Manual steps for files without an address.
    pub steps: Option<String>,
}

/// A file that can be downloaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteFile {
    /// Path below the data directory, and below a mirror.
    pub path: PathBuf,
    /// Its size in bytes, or an upper bound; a longer answer is refused.
    pub bytes: u64,
    /// Its SHA-256, or as many leading digits as are published, at least eight.
    pub sha256: String,
    /// Its address, if one is known.
    pub url: Option<String>,
}

impl Download {
    /// Whether every file has an address.
    #[must_use]
    pub fn has_urls(&self) -> bool {
        !self.files.is_empty() && self.files.iter().all(|file| file.url.is_some())
    }

    /// Number and size of the files, such as "20.1 MB in 1 file".
    #[must_use]
    pub fn size(&self) -> String {
        let bytes = self.files.iter().map(|file| file.bytes).sum::<u64>() as f64;
        match self.files.len() {
            0 => "not listed in the manifest".to_owned(),
            1 => format!("{:.1} MB in 1 file", bytes / 1e6),
            n => format!("{:.1} MB in {n} files", bytes / 1e6),
        }
    }

    /// The command that downloads set `id`, or the steps to follow instead.
    #[must_use]
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

/// Checks an address: `http` or `https`, in visible ASCII characters.
///
/// # Errors
/// Any other text; the message says what is allowed.
pub fn check_url(url: &str) -> Result<(), String> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let has_host =
        rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '['));
    match has_host && url.len() <= MAX_URL && url.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(()),
        false => Err(format!(
            "'{}' is not an address; allowed are http:// and https:// with a host, in ASCII without spaces, up to \
             {MAX_URL} bytes",
            url.escape_debug()
        )),
    }
}

/// Downloads files into a data directory.
#[derive(Debug)]
pub struct Fetcher<'a> {
    /// Target directory.
    pub directory: &'a DataDirectory,
    /// Base address that replaces those of the manifest; the path of a file is appended.
    pub mirror: Option<&'a str>,
    /// A transfer fails when no data arrives for this long.
    pub patience: Duration,
}

/// How a transfer ended.
enum Transfer {
    Complete,
    /// The server cannot resume.
    NotResumable,
    /// The transfer may resume; the reason is for a message.
    Interrupted(String),
}

impl Fetcher<'_> {
    /// The address of a file.
    #[must_use]
    pub fn address(&self, file: &RemoteFile) -> Option<String> {
        match self.mirror {
            Some(mirror) => {
                Some(format!("{}{}", mirror.trim_end_matches('/'), encoded(&file.path)))
            }
            None => file.url.clone(),
        }
    }

    /// The files that do not exist yet.
    ///
    /// # Errors
    /// An existing file has another checksum or cannot be read.
    pub fn missing<'f>(&self, files: &'f [RemoteFile]) -> Result<Vec<&'f RemoteFile>, DataError> {
        let mut missing = Vec::new();
        for file in files {
            let target = self.directory.path().join(&file.path);
            if !is_there(&target) {
                missing.push(file);
                continue;
            }
            let found = digest::of_file(&target)?;
            if !found.starts_with(&file.sha256) {
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

    /// Downloads the missing files, verifies them and moves them to their final paths, all of them or none. Returns the new files.
    /// `progress` receives each file with its bytes so far.
    ///
    /// # Errors
    /// Those of [`Fetcher::missing`]; a file without an address; another process that downloads into the directory; a
    /// transfer or a verification that fails; a file that cannot be written.
    pub fn fetch<'f>(
        &self,
        files: &'f [RemoteFile],
        progress: &mut dyn FnMut(&RemoteFile, u64),
    ) -> Result<Vec<&'f RemoteFile>, DataError> {
        if self.missing(files)?.is_empty() {
            return Ok(Vec::new());
        }
        let staging = self.directory.path().join(STAGING);
        posenc_files::protect(&staging);
        let _lock = Lock::try_take(&staging.join("lock")).map_err(|error| {
            DataError::at(
                &staging,
                format_args!("cannot be locked ({error}); run one `data fetch` at a time in a writable directory"),
            )
        })?;
        // Another process may have fetched them before the lock was taken.
        let missing = self.missing(files)?;
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
        let prepared = prepared.inspect_err(|_| {
            for file in &missing {
                // A folder without files would look like a set.
                remove_empty_parents(self.directory.path(), &file.path);
            }
        })?;
        for (file, prepared) in missing.iter().zip(prepared) {
            let target = self.directory.path().join(&file.path);
            prepared.commit().map_err(|error| DataError::unwritable(&target, error))?;
            // A part that stays is removed or used by the next run.
            let _ = posenc_files::remove(&part_of(&staging, file));
            remove_empty_parents(&staging, &file.path);
        }
        Ok(missing)
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
        loop {
            let resumed = self.download(file, &address, part, progress)?;
            let found = digest::of_file(part)?;
            if found.starts_with(&file.sha256) {
                return Ok(());
            }
            posenc_files::remove(part).map_err(|error| DataError::unwritable(part, error))?;
            // A resumed file may begin with another version, so it is downloaded once more.
            if !resumed {
                return Err(DataError::Invalid(format!(
                    "{address}: the file has SHA-256 {found}, but the manifest has {}; the download was discarded: try \
                     again later, or name another --mirror",
                    file.sha256
                )));
            }
        }
    }

    /// Completes a partial file; true if it began with bytes of an earlier run.
    fn download(
        &self,
        file: &RemoteFile,
        address: &str,
        part: &Path,
        progress: &mut dyn FnMut(&RemoteFile, u64),
    ) -> Result<bool, DataError> {
        let unwritable = |error| DataError::unwritable(part, error);
        let mut out = posenc_files::open_or_create(part).map_err(unwritable)?;
        let mut have = out.seek(SeekFrom::End(0)).map_err(unwritable)?;
        if have > file.bytes {
            have = restart(&mut out).map_err(unwritable)?;
        }
        let mut resumed = have > 0;
        let mut retries = 0;
        while have == 0 || have < file.bytes {
            progress(file, have);
            let before = have;
            let ended = self.transfer(file, address, part, &mut out, &mut have, progress);
            let ended = ended.inspect_err(|_| {
                if have > file.bytes {
                    let _ = posenc_files::remove(part);
                }
            })?;
            match ended {
                Transfer::Complete => break,
                Transfer::NotResumable if before > 0 && retries < MAX_RETRIES => {
                    have = restart(&mut out).map_err(unwritable)?;
                    resumed = false;
                }
                Transfer::Interrupted(_) if have > before && retries < MAX_RETRIES => {}
                Transfer::NotResumable => {
                    return Err(DataError::Invalid(format!(
                        "{address}: the transfer was interrupted, and the server cannot resume it; try again later"
                    )));
                }
                Transfer::Interrupted(reason) => {
                    return Err(DataError::Invalid(format!(
                        "{address}: {reason}, after {have} of {} bytes; run the same command again to resume",
                        file.bytes
                    )));
                }
            }
            retries += 1;
        }
        progress(file, have);
        out.sync_all().map_err(unwritable)?;
        Ok(resumed)
    }

    /// Appends what curl receives to a file.
    fn transfer(
        &self,
        file: &RemoteFile,
        address: &str,
        part: &Path,
        out: &mut File,
        have: &mut u64,
        progress: &mut dyn FnMut(&RemoteFile, u64),
    ) -> Result<Transfer, DataError> {
        let fail = |reason: String| DataError::Invalid(format!("{address}: {reason}"));
        let patience = self.patience.as_secs().max(1).to_string();
        let mut command = Command::new("curl");
        // `--disable` ignores the user's curlrc, which may name other files or print more.
        let fixed = "--disable --silent --show-error --fail --location --globoff --no-buffer --max-redirs 5 \
                     --proto =http,https --proto-redir =http,https --speed-limit 1";
        command.args(fixed.split(' '));
        command.args(["--connect-timeout", &patience, "--speed-time", &patience]);
        command.args(["--write-out", "%{stderr}status %{http_code}", "--url", address]);
        let resumes = *have > 0;
        if resumes {
            command.args(["--continue-at", &have.to_string()]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| match error.kind() {
            ErrorKind::NotFound => fail(
                "downloading needs the program curl, which was not found; install it (apt-get install curl)".to_owned(),
            ),
            _ => fail(format!("curl cannot be started ({error})")),
        })?;
        let copied = match child.stdout.take() {
            Some(mut body) => copy(&mut body, out, have, file, progress),
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
        let status = child.wait().map_err(|error| fail(format!("curl was lost ({error})")))?;
        copied.map_err(|error| match error {
            Stopped::TooLong => fail(format!(
                "the answer is longer than the {} bytes of the manifest; the download was discarded: name another --mirror",
                file.bytes
            )),
            Stopped::Body(error) => fail(format!("curl's output cannot be read ({error})")),
            Stopped::Write(error) if is_full(&error) => DataError::at(
                part,
                format_args!(
                    "cannot be written ({error}); {have} of {} bytes are there: free some space and run the same command \
                     again to resume",
                    file.bytes
                ),
            ),
            Stopped::Write(error) => DataError::unwritable(part, error),
        })?;
        let message = posenc_files::one_line(&message);
        let (message, answer) = message.rsplit_once("status ").unwrap_or((&message, "unknown"));
        match status.code() {
            Some(0) => Ok(Transfer::Complete),
            // The file is already complete. Versions of curl disagree whether this is an error.
            Some(22) if resumes && answer.trim() == "416" => Ok(Transfer::Complete),
            Some(33) => Ok(Transfer::NotResumable),
            Some(28) => Ok(Transfer::Interrupted(format!("no data arrived for {patience} s"))),
            Some(code) if INTERRUPTED.contains(&code) => Ok(Transfer::Interrupted(format!(
                "the transfer was interrupted ({})",
                message.trim()
            ))),
            Some(22) => Err(fail(format!(
                "the server answers with status {}; check the address, or name another --mirror",
                answer.trim()
            ))),
            Some(_) => Err(fail(format!("{}; check the address and the network", message.trim()))),
            None => Err(fail("curl was killed; run the same command again to resume".to_owned())),
        }
    }
}

/// Why copying stopped before the end.
enum Stopped {
    TooLong,
    Body(Error),
    Write(Error),
}

fn copy(
    body: &mut impl Read,
    out: &mut File,
    have: &mut u64,
    file: &RemoteFile,
    progress: &mut dyn FnMut(&RemoteFile, u64),
) -> Result<(), Stopped> {
    let mut piece = vec![0; 1 << 16];
    loop {
        let piece = match body.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(n_read) => piece.get(..n_read).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(Stopped::Body(error)),
        };
        let total = have.saturating_add(piece.len() as u64);
        if total > file.bytes {
            *have = total;
            return Err(Stopped::TooLong);
        }
        out.write_all(piece).map_err(Stopped::Write)?;
        *have = total;
        progress(file, total);
    }
}

/// Truncates a file and returns its new length, 0.
fn restart(out: &mut File) -> std::io::Result<u64> {
    out.set_len(0)?;
    out.seek(SeekFrom::Start(0))
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

    /// Catches an address that makes curl read a file or another option, and a name that changes the address.
    #[test]
    fn addresses_are_http_or_https() {
        for good in [
            "http://localhost:80/a",
            "https://a.org/b?c=%20",
            "http://[::1]:8080",
            "http://127.0.0.1",
        ] {
            assert_eq!(check_url(good), Ok(()), "{good}");
        }
        let long = format!("https://a/{}", "b".repeat(MAX_URL));
        for bad in [
            "",
            "file:///etc/passwd",
            "ftp://a/b",
            "https://",
            "https:///b",
            "http://-o",
            "http://a b",
            "http://a/\n",
            "http://é",
            &long,
        ] {
            assert!(check_url(bad).is_err_and(|message| message.contains("http://")), "{bad}");
        }
        assert_eq!(encoded(Path::new("a b/ü?#%.npz")), "/a%20b/%C3%BC%3F%23%25.npz");
    }
}
