//! What a job in flight has reached, on disk: a killed job goes on where it was.
//!
//! A file holds a magic number, the job's key, the seconds spent so far, a body that is the
//! protocol's own, and a checksum over all of that. It is written to a temporary file and renamed.
//! When it is written depends on the clock; what is computed does not.
//!
//! Trainings ask after every step whether a checkpoint is due. There a job that is to end does so: it writes its checkpoint
//! and is unwound.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use posenc_experiments::record::KeyParts;
use posenc_experiments::record::table::write_parts_atomically;
use posenc_files::ReadError;

use super::control::{Control, Stopped};

/// The first bytes of a checkpoint; the number counts changes of the format.
const MAGIC: &[u8; 16] = b"posenc-job-1\0\0\0\0";

const KEY: usize = 64;
const HEADER: usize = MAGIC.len() + KEY + 8;
const CHECKSUM: usize = blake3::OUT_LEN;

/// No job writes more; a larger file is no checkpoint of ours.
const LARGEST_FILE: u64 = 8 << 30;

/// The first checkpoint of a job comes after this time, later ones when the job has run twice as
/// long as at the last, at most [`LONGEST_INTERVAL`] apart: a short job loses at most half.
const FIRST_INTERVAL: Duration = Duration::from_millis(500);
const LONGEST_INTERVAL: Duration = Duration::from_secs(30);

/// Writing may take at most one part in so many of the time.
const WRITING_SHARE: u32 = 20;

/// The checkpoint of one job.
pub struct Checkpoint {
    file: PathBuf,
    key: String,
    started: Instant,
    /// Seconds that killed runs of the job spent before.
    earlier: Cell<f64>,
    next: Cell<Instant>,
    failed: Cell<bool>,
    /// The job, as who watches over it sees it.
    control: Arc<Control>,
    /// Whether a job that is to end has been told to write its checkpoint.
    is_last: Cell<bool>,
    /// Of how many steps the training is, and how many are done.
    steps: Cell<[usize; 2]>,
    /// What share of the job the training in flight is: from, to.
    span: Cell<[f64; 2]>,
    /// Whether a checkpoint is due whenever it is asked: for tests.
    always: bool,
}

/// What was found on disk.
#[derive(Debug, PartialEq)]
pub enum Saved {
    /// No checkpoint.
    Nothing,
    /// One that cannot be used, and why.
    Damaged(String),
    /// The protocol's own bytes.
    Body(Vec<u8>),
}

impl Checkpoint {
    /// The checkpoint below `directory` of the job that runs units of these keys.
    pub fn new<'a>(directory: &Path, units: impl Iterator<Item = &'a KeyParts>) -> Self {
        let mut hasher = blake3::Hasher::new();
        for parts in units {
            hasher.update(parts.key().as_bytes());
        }
        let key = hasher.finalize().to_hex().to_string();
        let started = Instant::now();
        Checkpoint {
            file: directory.join(format!("{key}.bin")),
            key,
            started,
            earlier: Cell::new(0.0),
            next: Cell::new(started + FIRST_INTERVAL),
            failed: Cell::new(false),
            control: Arc::default(),
            is_last: Cell::new(false),
            steps: Cell::new([0, 0]),
            span: Cell::new([0.0, 1.0]),
            always: false,
        }
    }

    /// That of a job that is watched.
    pub fn of_job(mut self, control: &Arc<Control>) -> Self {
        self.control = control.clone();
        self
    }

    /// The checkpoint of one unit of the same job.
    pub fn of_unit(&self, unit: &KeyParts) -> Self {
        let directory = self.file.parent().unwrap_or(Path::new("."));
        Checkpoint::new(directory, std::iter::once(unit)).of_job(&self.control)
    }

    /// One that is due whenever it is asked.
    #[cfg(test)]
    pub fn always(mut self) -> Self {
        self.always = true;
        self
    }

    /// Where it lies.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Seconds spent by killed runs of this job whose work goes on.
    pub fn earlier(&self) -> f64 {
        self.earlier.get()
    }

    /// What a killed run left.
    pub fn read(&self) -> Saved {
        let mut bytes = match posenc_files::read(&self.file, LARGEST_FILE) {
            Ok(bytes) => bytes,
            Err(ReadError::Io(error)) if error.kind() == std::io::ErrorKind::NotFound => {
                return Saved::Nothing;
            }
            Err(error) => return Saved::Damaged(format!("cannot be read: {error}")),
        };
        if bytes.len() < HEADER + CHECKSUM || bytes[..MAGIC.len()] != MAGIC[..] {
            return Saved::Damaged("is no checkpoint of this version".to_owned());
        }
        let end = bytes.len() - CHECKSUM;
        if blake3::hash(&bytes[..end]).as_bytes()[..] != bytes[end..] {
            return Saved::Damaged("its checksum does not fit its content".to_owned());
        }
        if bytes[MAGIC.len()..MAGIC.len() + KEY] != *self.key.as_bytes() {
            return Saved::Damaged("belongs to another job".to_owned());
        }
        let mut seconds = [0; 8];
        seconds.copy_from_slice(&bytes[MAGIC.len() + KEY..HEADER]);
        let seconds = f64::from_le_bytes(seconds);
        self.earlier.set(if seconds.is_finite() { seconds.max(0.0) } else { 0.0 });
        bytes.truncate(end);
        bytes.drain(..HEADER);
        Saved::Body(bytes)
    }

    /// The training has so many steps, of which some are done.
    pub fn begin(&self, steps: usize, done: usize) {
        self.steps.set([steps, done]);
    }

    /// One more step is done.
    pub fn step(&self) {
        let [steps, done] = self.steps.get();
        self.steps.set([steps, done + 1]);
        if steps > 0 {
            self.reached((done + 1) as f64 / steps as f64);
        }
    }

    /// The training in flight is this share of the job.
    pub fn within(&self, from: f64, to: f64) {
        self.span.set([from, to]);
    }

    /// How much of the training in flight is done, from 0 to 1.
    pub fn reached(&self, fraction: f64) {
        let [from, to] = self.span.get();
        self.control.reached(from + (to - from) * fraction);
    }

    /// Whether one is to be written: enough time has passed, or the job is to end. Does not come back if it is to end and has
    /// had its turn to write.
    pub fn is_due(&self) -> bool {
        if self.control.stopped().is_some() {
            if self.failed.get() || self.is_last.replace(true) {
                std::panic::resume_unwind(Box::new(Stopped));
            }
            return true;
        }
        self.always || !self.failed.get() && Instant::now() >= self.next.get()
    }

    /// Writes the pieces of a body. A disk that is full must not end the training: the error is
    /// returned once, for a warning, and no further checkpoint is tried. Does not come back if the job is to end.
    pub fn write(&self, body: &[&[u8]]) -> Option<std::io::Error> {
        let began = Instant::now();
        self.control.saving(true);
        let spent = self.earlier.get() + self.started.elapsed().as_secs_f64();
        let seconds = spent.to_le_bytes();
        let mut parts: Vec<&[u8]> = vec![MAGIC, self.key.as_bytes(), &seconds];
        parts.extend(body);
        let mut hasher = blake3::Hasher::new();
        for part in &parts {
            hasher.update(part);
        }
        let checksum = hasher.finalize();
        parts.push(checksum.as_bytes());
        let result = write_parts_atomically(&self.file, &parts);
        let interval = self.started.elapsed().clamp(FIRST_INTERVAL, LONGEST_INTERVAL);
        let interval = interval.max(began.elapsed().saturating_mul(WRITING_SHARE));
        self.next.set(Instant::now() + interval);
        self.failed.set(result.is_err());
        self.control.saving(false);
        if result.is_ok() && self.control.stopped().is_some() {
            std::panic::resume_unwind(Box::new(Stopped));
        }
        result.err()
    }

    /// Removes it: the job's records are on disk.
    pub fn remove(&self) {
        let _ = posenc_files::remove(&self.file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(identity: &str) -> KeyParts {
        KeyParts {
            identity: identity.to_owned(),
            specification: "s".to_owned(),
            data: "-".to_owned(),
            device: "cpu".to_owned(),
            seed: 0,
            epochs: "1".to_owned(),
        }
    }

    /// Catches a checkpoint that is taken although a byte of it changed, that ends in a panic, or
    /// that another job takes.
    #[test]
    fn damaged_and_foreign_files_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let ours = || Checkpoint::new(directory.path(), [&parts("a"), &parts("b")].into_iter());
        assert_eq!(ours().read(), Saved::Nothing);
        assert!(ours().write(&[b"bo", b"", b"dy"]).is_none());
        assert_eq!(ours().read(), Saved::Body(b"body".to_vec()));
        let whole = std::fs::read(ours().file()).unwrap();
        for position in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[position] ^= 1;
            std::fs::write(ours().file(), &bytes).unwrap();
            assert!(matches!(ours().read(), Saved::Damaged(_)), "byte {position}");
            std::fs::write(ours().file(), &whole[..position]).unwrap();
            assert!(matches!(ours().read(), Saved::Damaged(_)), "{position} bytes");
        }
        let other = Checkpoint::new(directory.path(), [&parts("a")].into_iter());
        assert_ne!(other.file(), ours().file());
        std::fs::write(other.file(), &whole).unwrap();
        assert_eq!(other.read(), Saved::Damaged("belongs to another job".to_owned()));
        std::fs::write(ours().file(), &whole).unwrap();
        ours().remove();
        assert_eq!(ours().read(), Saved::Nothing);
    }

    /// Catches time that a killed run spent and that no record shows.
    #[test]
    fn seconds_add_up_over_killed_runs() {
        let directory = tempfile::tempdir().unwrap();
        let ours = || Checkpoint::new(directory.path(), [&parts("a")].into_iter());
        let first = ours();
        first.earlier.set(100.0);
        assert!(first.write(&[]).is_none());
        let second = ours();
        second.read();
        assert!(second.earlier() >= 100.0 && second.earlier() < 200.0, "{}", second.earlier());
    }

    /// Catches checkpoints that take the time of the training, and a full disk that is tried again
    /// at every epoch. A file in the way of the directory stands for the disk.
    #[test]
    fn a_checkpoint_is_due_later_and_never_after_a_failure() {
        let directory = tempfile::tempdir().unwrap();
        let ours = Checkpoint::new(directory.path(), [&parts("a")].into_iter());
        assert!(!ours.is_due(), "due at once");
        ours.next.set(Instant::now());
        assert!(ours.is_due());
        assert!(ours.write(&[]).is_none());
        assert!(!ours.is_due(), "due again at once");
        std::fs::write(directory.path().join("taken"), "").unwrap();
        let blocked = Checkpoint::new(&directory.path().join("taken"), [&parts("a")].into_iter());
        blocked.next.set(Instant::now());
        assert!(blocked.write(&[]).is_some());
        blocked.next.set(Instant::now());
        assert!(!blocked.is_due());
    }
}
