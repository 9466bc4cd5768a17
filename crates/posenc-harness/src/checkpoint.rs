//! Checkpoints: the state of a running job on disk, from which a killed job resumes.
//!
//! A file contains a magic number, the job's key, the seconds spent so far, the length of the [`Owner`] and the owner as JSON, a body in
//! the protocol's own format, and a checksum of everything before it. It is written to a temporary file and renamed. The time of writing
//! depends on the clock; the results do not.
//!
//! The key covers all units that the plan has for the job, with or without records. A run that is killed between the records of one
//! training therefore finds the checkpoint again.
//!
//! Trainings call [`Checkpoint::is_due`] after every step. If the job must stop, it writes its checkpoint there and unwinds.

use std::cell::Cell;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use posenc_experiments::record::KeyParts;
use posenc_experiments::record::table::write_parts_atomically;
use posenc_files::limits::MAX_VECTOR_BYTES;
use serde::{Deserialize, Serialize};

use crate::control::{Control, Stopped};
use crate::device::CPU;
use crate::stopwatch::Stopwatch;
use crate::unit::Unit;

/// The first bytes of a checkpoint; the number counts changes of the format.
const MAGIC: &[u8; 16] = b"posenc-job-2\0\0\0\0";

const KEY: usize = 64;
const HEADER: usize = MAGIC.len() + KEY + 8;
const CHECKSUM: usize = blake3::OUT_LEN;

/// Maximum size of an owner in bytes, enough for millions of units.
const LONGEST_OWNER: usize = 64 << 20;

/// Time to the first checkpoint of a job. Each later one is due when the running time has doubled, at most [`LONGEST_INTERVAL`] after the
/// last. A short job thus loses at most half of its work.
const FIRST_INTERVAL: Duration = Duration::from_millis(500);
const LONGEST_INTERVAL: Duration = Duration::from_secs(30);

/// Writing checkpoints takes at most 1 / `WRITING_SHARE` of the running time.
const WRITING_SHARE: u32 = 20;

/// What a checkpoint covers of the job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Owner {
    /// Indices of the units that are trained together, among those that the plan has for the job, ascending.
    trained: Vec<usize>,
}

impl Owner {
    /// Reads the owner from a checkpoint file, without the rest of the file.
    fn read(file: &Path) -> Option<Self> {
        let mut file = posenc_files::open(file).ok()?;
        let mut head = [0; HEADER + 8];
        file.read_exact(&mut head).ok()?;
        let length = head.strip_prefix(MAGIC)?.last_chunk()?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        let mut json = Vec::new();
        file.take(length.min(LONGEST_OWNER) as u64).read_to_end(&mut json).ok()?;
        serde_json::from_slice(&json).ok().filter(|_| json.len() == length)
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
    owner: Owner,
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
    steps: Cell<[usize; 2]>,
    /// Part of the job, from 0 to 1, that this checkpoint covers, and that the current training covers: start, end.
    part: [f64; 2],
    span: Cell<[f64; 2]>,
}

/// Checkpoint state found on disk.
#[derive(Debug, PartialEq)]
pub enum Saved {
    Nothing,
    /// An unusable checkpoint, with the reason.
    Damaged(String),
    /// Body of a valid checkpoint, in the protocol's own format.
    Body(Vec<u8>),
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
            owner: Owner { trained: (0..units.len()).collect() },
            started,
            spent: Stopwatch::start(units.first().map_or(CPU, |unit| &unit.device)),
            earlier: Cell::new(0.0),
            next: Cell::new(started + FIRST_INTERVAL),
            failed: Cell::new(false),
            control: Arc::default(),
            is_last: Cell::new(false),
            steps: Cell::new([0, 0]),
            part: [0.0, 1.0],
            span: Cell::new([0.0, 1.0]),
        }
    }

    /// Restricts training to the units at these indices; the others have records.
    pub fn training(mut self, places: &[usize]) -> Self {
        self.owner.trained = places.to_vec();
        self
    }

    /// Indices of the units that a killed run trained together, if it left a checkpoint.
    pub fn trained(&self) -> Option<Vec<usize>> {
        Owner::read(&self.file).map(|owner| owner.trained)
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
    pub fn read(&self) -> Saved {
        let mut bytes = match posenc_files::read(&self.file, MAX_VECTOR_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Saved::Nothing;
            }
            Err(error) => return Saved::Damaged(format!("cannot be read: {error}")),
        };
        if bytes.len() < HEADER + CHECKSUM || !bytes.starts_with(MAGIC) {
            return Saved::Damaged("is not a checkpoint of this version".to_owned());
        }
        let end = bytes.len() - CHECKSUM;
        if blake3::hash(&bytes[..end]).as_bytes()[..] != bytes[end..] {
            return Saved::Damaged("its checksum does not match its content".to_owned());
        }
        if bytes[MAGIC.len()..MAGIC.len() + KEY] != *self.key.as_bytes() {
            return Saved::Damaged("belongs to another job".to_owned());
        }
        bytes.truncate(end);
        let length = bytes[HEADER..].first_chunk().map(|l| u64::from_le_bytes(*l));
        let length = length.and_then(|l| usize::try_from(l).ok()).unwrap_or(usize::MAX);
        let json = bytes[HEADER..].get(8..).and_then(|rest| rest.get(..length));
        let owner = json.and_then(|json| serde_json::from_slice::<Owner>(json).ok());
        let begin = HEADER + 8 + json.map_or(0, <[u8]>::len);
        if owner.as_ref() != Some(&self.owner) {
            return Saved::Damaged("belongs to other units of the job".to_owned());
        }
        let mut seconds = [0; 8];
        seconds.copy_from_slice(&bytes[MAGIC.len() + KEY..HEADER]);
        let seconds = f64::from_le_bytes(seconds);
        self.earlier.set(if seconds.is_finite() { seconds.max(0.0) } else { 0.0 });
        bytes.drain(..begin);
        Saved::Body(bytes)
    }

    /// Reports that a training has `steps` steps and that `done` of them are done.
    pub fn begin(&self, steps: usize, done: usize) {
        self.steps.set([steps, done]);
    }

    /// Counts one more training step and, after [`Checkpoint::begin`], reports progress.
    pub fn step(&self) {
        self.count_step();
        let [steps, done] = self.steps.get();
        self.steps.set([steps, done + 1]);
        if steps > 0 {
            self.reached((done + 1) as f64 / steps as f64);
        }
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

    /// Writes a body that is given in pieces. A full disk must not end the training: the error is returned once, for a warning, and no
    /// further checkpoint is attempted. Unwinds with [`Stopped`] after a successful write if the job must stop.
    pub fn write(&self, body: &[&[u8]]) -> Option<std::io::Error> {
        let began = Instant::now();
        let spent = self.earlier.get() + self.spent.seconds();
        let seconds = spent.to_le_bytes();
        // An owner contains only numbers, so serialization cannot fail.
        let owner = serde_json::to_vec(&self.owner).unwrap_or_default();
        let length = (owner.len() as u64).to_le_bytes();
        let mut parts: Vec<&[u8]> = vec![MAGIC, self.key.as_bytes(), &seconds, &length, &owner];
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
        let other = of(directory.path(), &["a"]);
        assert_ne!(other.file(), ours().file());
        std::fs::write(other.file(), &whole).unwrap();
        assert_eq!(other.read(), Saved::Damaged("belongs to another job".to_owned()));
        std::fs::write(ours().file(), &whole).unwrap();
        ours().remove();
        assert_eq!(ours().read(), Saved::Nothing);
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
        assert!(first.write(&[]).is_none());
        let second = ours();
        second.read();
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
        assert!(ours.write(&[]).is_none());
        assert!(!ours.is_due(), "due again at once");
        std::fs::write(directory.path().join("taken"), "").unwrap();
        let blocked = of(&directory.path().join("taken"), &["a"]);
        blocked.next.set(Instant::now());
        assert!(blocked.write(&[]).is_some());
        blocked.next.set(Instant::now());
        assert!(!blocked.is_due());
    }
}
