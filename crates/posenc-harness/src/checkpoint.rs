//! Checkpoints: the state of a running job on disk, from which a killed job resumes.
//!
//! A file contains a magic number, the length of the [`Head`] and the head as JSON, bytes of the protocol, and a checksum of everything before
//! it. It is written to a temporary file and renamed. The time of writing depends on the clock; the results do not.
//!
//! The key covers all units that the plan has for the job, with or without records. A run that is killed between the records of one
//! training therefore finds the checkpoint again.
//!
//! Trainings call [`Checkpoint::is_due`] after every step. If the job must stop, it writes its checkpoint there and unwinds.

use std::cell::Cell;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use posenc_experiments::record::KeyParts;
use posenc_files::limits::MAX_VECTOR_BYTES;
use posenc_files::write_parts_atomically;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

use crate::control::{Control, Stopped};
use crate::device::CPU;
use crate::stopwatch::Stopwatch;
use crate::unit::Unit;

/// The first bytes of a checkpoint; the number counts changes of the format.
const MAGIC: &[u8; 16] = b"posenc-job-3\0\0\0\0";

const CHECKSUM: usize = blake3::OUT_LEN;

/// Time to the first checkpoint of a job. Each later one is due when the running time has doubled, at most [`LONGEST_INTERVAL`] after the
/// last. A short job thus loses at most half of its work.
const FIRST_INTERVAL: Duration = Duration::from_millis(500);
const LONGEST_INTERVAL: Duration = Duration::from_secs(30);

/// Writing checkpoints takes at most 1 / `WRITING_SHARE` of the running time.
const WRITING_SHARE: u32 = 20;

/// What a checkpoint covers, and the state of the protocol.
#[derive(Serialize, Deserialize)]
struct Head<T> {
    /// Key of the job.
    key: String,
    /// Seconds spent so far.
    seconds: f64,
    /// Indices of the units that are trained together, among those that the plan has for the job, ascending.
    trained: Vec<usize>,
    state: T,
}

impl<T: DeserializeOwned> Head<T> {
    /// Reads the head at the start of a checkpoint, and leaves what follows.
    fn read(file: &mut impl Read) -> Option<Self> {
        let (mut magic, mut length) = ([0; MAGIC.len()], [0; 8]);
        file.read_exact(&mut magic).ok()?;
        // A checkpoint of an earlier version has no length here.
        if magic != *MAGIC {
            return None;
        }
        file.read_exact(&mut length).ok()?;
        let (mut json, length) = (Vec::new(), u64::from_le_bytes(length));
        file.take(length.min(MAX_VECTOR_BYTES)).read_to_end(&mut json).ok()?;
        let head = serde_json::from_slice(&json).ok();
        head.filter(|_| json.len() as u64 == length)
    }
}

/// The key of a job with these units. Its checkpoint file has this name.
fn key(units: &[&KeyParts]) -> String {
    let mut hasher = blake3::Hasher::new();
    for parts in units {
        hasher.update(parts.key().as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}

pub struct Checkpoint {
    file: PathBuf,
    key: String,
    /// Indices of the units that are trained together.
    trained: Vec<usize>,
    started: Instant,
    /// Time that this process has spent.
    spent: Stopwatch,
    /// Seconds that earlier, killed runs of the job spent.
    earlier: Cell<f64>,
    next: Cell<Instant>,
    failed: Cell<bool>,
    /// State of the job, shared with the run.
    control: Arc<Control>,
    /// Whether a job that must stop has already been told to write its last checkpoint.
    is_last: Cell<bool>,
    /// Part of the job, from 0 to 1, that this checkpoint covers, and that the current training covers: start, end.
    part: [f64; 2],
    span: Cell<[f64; 2]>,
}

/// Checkpoint state found on disk.
#[derive(Debug, PartialEq)]
pub enum Saved<T> {
    Nothing,
    /// An unusable checkpoint, with the reason.
    Damaged(String),
    /// State and bytes of a valid checkpoint.
    State(T, Vec<u8>),
}

impl Checkpoint {
    /// The checkpoint, in `directory`, of a job that trains all units of its plan.
    pub fn new(directory: &Path, units: &[Unit]) -> Self {
        Checkpoint::with(directory, &units.iter().map(|unit| &unit.parts).collect::<Vec<_>>())
    }

    fn with(directory: &Path, units: &[&KeyParts]) -> Self {
        let started = Instant::now();
        let key = key(units);
        Checkpoint {
            file: directory.join(format!("{key}.bin")),
            key,
            trained: (0..units.len()).collect(),
            started,
            spent: Stopwatch::start(units.first().map_or(CPU, |unit| &unit.device)),
            earlier: Cell::new(0.0),
            next: Cell::new(started + FIRST_INTERVAL),
            failed: Cell::new(false),
            control: Arc::default(),
            is_last: Cell::new(false),
            part: [0.0, 1.0],
            span: Cell::new([0.0, 1.0]),
        }
    }

    /// Restricts training to the units at these indices; the others have records.
    pub fn training(mut self, places: &[usize]) -> Self {
        self.trained = places.to_vec();
        self
    }

    /// Indices of the units that a killed run trained together, if it left a checkpoint.
    pub fn trained(&self) -> Option<Vec<usize>> {
        let mut file = posenc_files::open(&self.file).ok()?;
        Head::<IgnoredAny>::read(&mut file).map(|head| head.trained)
    }

    /// Attaches the control through which the run watches the job.
    pub fn of_job(mut self, control: &Arc<Control>) -> Self {
        self.control = control.clone();
        self
    }

    /// The checkpoint of one of the `units` of the same job, which are trained one after the other.
    pub fn of_unit(&self, units: &[Unit], index: usize) -> Self {
        let directory = self.file.parent().unwrap_or(Path::new("."));
        let part = [index, index + 1].map(|done| done as f64 / units.len() as f64);
        let one = Checkpoint::with(directory, &[&units[index].parts]).of_job(&self.control);
        Checkpoint { part, span: Cell::new(part), ..one }
    }

    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Seconds that earlier, killed runs of this job spent, as found by [`Checkpoint::read`].
    pub fn earlier(&self) -> f64 {
        self.earlier.get()
    }

    /// Reads the checkpoint that a killed run left.
    pub fn read<T: DeserializeOwned>(&self) -> Saved<T> {
        let damaged = |why: &str| Saved::Damaged(why.to_owned());
        let mut bytes = match posenc_files::read(&self.file, MAX_VECTOR_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Saved::Nothing;
            }
            Err(error) => return Saved::Damaged(format!("cannot be read: {error}")),
        };
        let split = bytes.split_last_chunk::<CHECKSUM>().filter(|_| bytes.starts_with(MAGIC));
        let Some((mut content, checksum)) = split else {
            return damaged("is not a checkpoint of this version");
        };
        if blake3::hash(content) != *checksum {
            return damaged("its checksum does not match its content");
        }
        let Some(head) = Head::<T>::read(&mut content) else {
            return damaged("does not fit the protocol");
        };
        if head.key != self.key {
            return damaged("belongs to another job");
        }
        if head.trained != self.trained {
            return damaged("belongs to other units of the job");
        }
        self.earlier.set(if head.seconds.is_finite() { head.seconds.max(0.0) } else { 0.0 });
        // In place, since the numbers of a large model may fill half of the memory.
        let (end, length) = (bytes.len() - CHECKSUM, content.len());
        bytes.truncate(end);
        bytes.drain(..end - length);
        Saved::State(head.state, bytes)
    }

    /// Counts a training step of this process, for events.
    pub fn count_step(&self) {
        self.control.count_step();
    }

    /// Declares which part of the job or unit, from 0 to 1, the current training covers.
    pub fn within(&self, from: f64, to: f64) {
        let [start, end] = self.part;
        self.span.set([from, to].map(|place| start + (end - start) * place));
    }

    /// Reports the progress of the current training, from 0 to 1.
    pub fn reached(&self, fraction: f64) {
        let [from, to] = self.span.get();
        self.control.reached(from + (to - from) * fraction);
    }

    /// Whether to write a checkpoint now, because enough time has passed or the job must stop. Unwinds with [`Stopped`] if the job must
    /// stop and already had a chance to write.
    pub fn is_due(&self) -> bool {
        if self.control.is_stopped() {
            if self.failed.get() || self.is_last.replace(true) {
                std::panic::resume_unwind(Box::new(Stopped));
            }
            return true;
        }
        !self.failed.get() && Instant::now() >= self.next.get()
    }

    /// Whether a write failed. No further checkpoint is then attempted.
    pub fn has_failed(&self) -> bool {
        self.failed.get()
    }

    /// Writes a state, and bytes that are given in pieces. A full disk must not end the training: the error is returned once, for a warning,
    /// and no further checkpoint is attempted. Unwinds with [`Stopped`] after a successful write if the job must stop.
    pub fn write(&self, state: &impl Serialize, bytes: &[&[u8]]) -> Option<std::io::Error> {
        let began = Instant::now();
        let (key, trained) = (self.key.clone(), self.trained.clone());
        let seconds = self.earlier.get() + self.spent.seconds();
        // States are numbers and texts, so serialization cannot fail.
        let head = Head { key, seconds, trained, state };
        let head = serde_json::to_vec(&head).unwrap_or_default();
        let length = (head.len() as u64).to_le_bytes();
        let mut parts: Vec<&[u8]> = vec![MAGIC, &length, &head];
        parts.extend(bytes);
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
        if result.is_ok() && self.control.is_stopped() {
            std::panic::resume_unwind(Box::new(Stopped));
        }
        result.err()
    }

    /// Removes the file, once the job's records are on disk.
    pub fn remove(&self) {
        let _ = posenc_files::remove(&self.file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(signal: &str) -> KeyParts {
        KeyParts { identity: signal.to_owned(), ..KeyParts::default() }
    }

    /// The checkpoint of a job with one unit per signal.
    fn of(directory: &Path, signals: &[&str]) -> Checkpoint {
        let all: Vec<KeyParts> = signals.iter().map(|signal| parts(signal)).collect();
        Checkpoint::with(directory, &all.iter().collect::<Vec<_>>())
    }

    /// Catches a damaged checkpoint that is accepted or causes a panic, and a checkpoint that another job accepts.
    #[test]
    fn damaged_and_foreign_files_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let ours = || of(directory.path(), &["a", "b"]);
        let read = || ours().read::<[f64; 2]>();
        assert_eq!(read(), Saved::Nothing);
        let state = [0.1 + 0.2, 1.0 / 3.0];
        assert!(ours().write(&state, &[b"bo", b"", b"dy"]).is_none());
        assert_eq!(read(), Saved::State(state, b"body".to_vec()));
        assert_eq!(ours().trained(), Some(vec![0, 1]));
        assert!(matches!(ours().read::<[f64; 3]>(), Saved::Damaged(_)));
        let whole = std::fs::read(ours().file()).unwrap();
        for position in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[position] ^= 1;
            std::fs::write(ours().file(), &bytes).unwrap();
            assert!(matches!(read(), Saved::Damaged(_)), "byte {position}");
            std::fs::write(ours().file(), &whole[..position]).unwrap();
            assert!(matches!(read(), Saved::Damaged(_)), "{position} bytes");
        }
        let other = of(directory.path(), &["a"]);
        assert_ne!(other.file(), ours().file());
        std::fs::write(other.file(), &whole).unwrap();
        assert_eq!(other.read::<[f64; 2]>(), Saved::Damaged("belongs to another job".to_owned()));
        std::fs::write(ours().file(), &whole).unwrap();
        ours().remove();
        assert_eq!(read(), Saved::Nothing);
    }

    /// Catches the progress of a unit that counts as that of its job, which made the estimate of the second unit hours.
    #[test]
    fn units_are_parts_of_their_job() {
        let directory = tempfile::tempdir().unwrap();
        let all = ["a", "b"].map(crate::queue::testing::unit);
        let job = Checkpoint::new(directory.path(), &all);
        let second = job.of_unit(&all, 1);
        second.reached(0.5);
        assert_eq!(job.control.fraction(), Some(0.75));
        second.within(0.5, 1.0);
        second.reached(0.5);
        assert_eq!(job.control.fraction(), Some(0.875));
    }

    /// Catches time of a killed run that is missing from the total.
    #[test]
    fn seconds_add_up_over_killed_runs() {
        let directory = tempfile::tempdir().unwrap();
        let ours = || of(directory.path(), &["a"]);
        let first = ours();
        first.earlier.set(100.0);
        assert!(first.write(&(), &[]).is_none());
        let second = ours();
        second.read::<()>();
        assert!(second.earlier() >= 100.0 && second.earlier() < 200.0, "{}", second.earlier());
    }

    /// Catches checkpoints that are written too often, and a full disk that is retried at every step. A file at the path of the directory
    /// simulates the full disk.
    #[test]
    fn a_checkpoint_is_due_later_and_never_after_a_failure() {
        let directory = tempfile::tempdir().unwrap();
        let ours = of(directory.path(), &["a"]);
        assert!(!ours.is_due(), "due at once");
        ours.next.set(Instant::now());
        assert!(ours.is_due());
        assert!(ours.write(&(), &[]).is_none());
        assert!(!ours.is_due(), "due again at once");
        std::fs::write(directory.path().join("taken"), "").unwrap();
        let blocked = of(&directory.path().join("taken"), &["a"]);
        blocked.next.set(Instant::now());
        assert!(blocked.write(&(), &[]).is_some());
        blocked.next.set(Instant::now());
        assert!(!blocked.is_due());
    }
}
