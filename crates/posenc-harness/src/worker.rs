//! A thread that takes jobs, runs their units and writes their records.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use posenc_experiments::plan::Job;
use posenc_experiments::record::{UnitRecord, Value, is_full};

use crate::checkpoint::Checkpoint;
use crate::control::{Control, Stopped};
use crate::cost_model::CostModel;
use crate::memory::Bytes;
use crate::progress::Finished;
use crate::queue::{Lane, Next, Queue, Work};
use crate::run_env::RunEnv;
use crate::unit::Unit;
use crate::{machine, protocol};

/// How often a worker checks whether the memory that it waits for is available.
const WAIT: Duration = Duration::from_millis(50);

/// State that workers share. It lives as long as the last worker, possibly longer than the run.
pub struct Shared {
    /// Inputs of units, and the store for their records.
    pub site: RunEnv,
    pub queue: Mutex<Queue<'static>>,
    /// Measured times, for estimates.
    pub cost_model: Mutex<CostModel>,
    pub end: Option<Instant>,
    /// Whether to start no further job after a failure.
    pub fail_fast: bool,
    /// Channel to the supervisor.
    pub messages: Sender<Message>,
    pub next: AtomicU64,
}

/// Message from a worker to the supervisor.
pub enum Message {
    Started {
        id: u64,
        lane: Lane,
        work: Arc<Work<'static>>,
        control: Arc<Control>,
    },
    /// The record of a unit is on disk.
    Unit {
        id: u64,
        index: usize,
        finished: Finished,
    },
    Note(String),
    /// The job's thread has returned.
    Ended {
        id: u64,
        end: End,
    },
    /// A worker has nothing more to do.
    Idle(Lane),
}

pub enum End {
    /// All units have records.
    Whole,
    /// The job was told to stop.
    Stopped,
    Failed(String),
}

/// Locks a mutex even if it is poisoned: the guarded values change in single steps, so they stay valid.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Reports when dropped that its worker is idle, even after a panic.
struct Idle<'a> {
    shared: &'a Shared,
    lane: Lane,
}

impl Drop for Idle<'_> {
    fn drop(&mut self) {
        let _ = self.shared.messages.send(Message::Idle(self.lane));
    }
}

/// Runs jobs until none are left.
pub fn work(shared: &Shared, lane: Lane) {
    let _idle = Idle { shared, lane };
    loop {
        let left = shared.end.map_or(f64::INFINITY, |end| {
            end.saturating_duration_since(Instant::now()).as_secs_f64()
        });
        let next = lock(&shared.queue).next(lane, left, &lock(&shared.cost_model));
        let (work, refused) = match next {
            Next::Run(work) => (Arc::new(work), None),
            Next::Refuse(work, there) => (Arc::new(work), Some(there)),
            Next::Wait => {
                std::thread::sleep(WAIT);
                continue;
            }
            Next::End => return,
        };
        let control = Arc::new(Control::new(work.units.len(), work.emits_as_batch()));
        let id = shared.next.fetch_add(1, Ordering::Relaxed);
        let started = Message::Started { id, lane, work: work.clone(), control: control.clone() };
        let _ = shared.messages.send(started);
        let end = match refused {
            Some(there) => End::Failed(too_large(&work, there)),
            None => run(shared, id, &work, &control),
        };
        if matches!(end, End::Failed(_)) && !control.is_stopped() {
            if shared.fail_fast {
                lock(&shared.queue).close();
            }
            // Units that have not started do not fail with the one in flight.
            put_back(shared, &work, &control.unwritten().1);
        }
        lock(&shared.queue).memory.give_back(work.memory);
        let _ = shared.messages.send(Message::Ended { id, end });
    }
}

/// Reason to refuse a job that needs more memory than available.
fn too_large(work: &Work<'_>, there: Bytes) -> String {
    format!(
        "needs about {} of memory, {there} are available; lower its size (such as `dimension`, `side` or `width`), \
         free memory, run it on a larger machine, or raise the limit with --memory",
        Bytes(work.memory)
    )
}

/// Lets units of a job run later.
pub fn put_back(shared: &Shared, work: &Work<'static>, units: &[usize]) {
    let of: Vec<_> = units.iter().filter_map(|&i| work.units.get(i).cloned()).collect();
    if !of.is_empty() {
        lock(&shared.queue).put_back(work.only(of));
    }
}

/// Indices, in the plan of the job, of the units to train: those that must run. Units that are computed together resume together: if a
/// checkpoint covers all of them, its units are returned, even if some have records.
fn trained(work: &Work<'_>, checkpoint: &Checkpoint) -> Vec<usize> {
    let must_run: BTreeSet<String> = work.units.iter().map(|unit| unit.parts.key()).collect();
    let places = || work.all.iter().enumerate();
    let pending: Vec<usize> =
        places().filter(|(_, unit)| must_run.contains(&unit.parts.key())).map(|(i, _)| i).collect();
    let resumed = checkpoint.trained().filter(|trained| {
        work.emits_as_batch()
            && trained.iter().all(|i| *i < work.all.len())
            && pending.iter().all(|i| trained.binary_search(i).is_ok())
    });
    resumed.unwrap_or(pending)
}

fn run(shared: &Shared, id: u64, work: &Work<'static>, control: &Arc<Control>) -> End {
    let RunEnv { store, data, devices, seed, commit } = shared.site;
    let path = work.job.path();
    let experiment = work.job.experiment;
    let folder = store.checkpoints(&experiment.paper, &experiment.item);
    let checkpoint = Checkpoint::new(&folder, &work.job, &work.all).of_job(control);
    let places = trained(work, &checkpoint);
    let checkpoint = checkpoint.training(&places);
    let units: Vec<Unit> = places.iter().filter_map(|&i| work.all.get(i).cloned()).collect();
    // Maps the key of each unit that must run to its index. The other units keep their records.
    let of_key: BTreeMap<String, usize> =
        work.units.iter().enumerate().map(|(i, unit)| (unit.parts.key(), i)).collect();
    let must_run: Vec<Option<usize>> =
        units.iter().map(|unit| of_key.get(&unit.parts.key()).copied()).collect();
    let note = |text: &str| {
        let _ = shared.messages.send(Message::Note(format!("note: {path}: {text}")));
    };
    let context = protocol::Context {
        job: &work.job,
        units: &units,
        data,
        devices,
        seed,
        checkpoint: &checkpoint,
        note: &note,
    };
    machine::reset_peak_memory();
    let mut last = Instant::now();
    // Each unit is on disk before the next one starts, so a killed run loses at most one.
    let mut emit = |trained: usize, outcome: protocol::UnitResult| -> Result<()> {
        let Some(index) = must_run.get(trained).copied().flatten() else { return Ok(()) };
        control.begin_record();
        let unit = &work.units[index];
        let seconds = outcome.earlier + last.elapsed().as_secs_f64();
        let peak_memory = machine::peak_memory();
        let (values, main) = (outcome.values.len(), main_result(&work.job, &outcome.values));
        let record = UnitRecord {
            parts: unit.parts.clone(),
            device: devices.label(&unit.parts.device).to_owned(),
            data: unit.data.clone(),
            seconds,
            peak_memory,
            remarks: outcome.remarks,
            values: outcome.values,
            pictures: Vec::new(),
            versions: machine::versions(),
            commit: commit.to_owned(),
        };
        let pictures = &outcome.pictures;
        let written = store.write(&experiment.paper, &experiment.item, record, pictures);
        control.end_record(index, written.is_ok());
        written?;
        // The time to write pictures does not count for the next unit.
        last = Instant::now();
        let steps = control.take_steps();
        let finished = Finished { seconds, peak_memory, values, steps, main };
        let _ = shared.messages.send(Message::Unit { id, index, finished });
        Ok(())
    };
    // A panic in a protocol is a bug; it must not end the other units.
    let result = catch_unwind(AssertUnwindSafe(|| {
        protocol::of(work.job.protocol())?.run(&context, &mut emit)
    }));
    let error = match result {
        Err(panic) if panic.is::<Stopped>() => return End::Stopped,
        Err(panic) => {
            let text = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("no message");
            anyhow!("internal error ({text}); please report it")
        }
        Ok(Err(error)) => error,
        Ok(Ok(())) if control.unwritten().0.is_empty() => {
            checkpoint.remove();
            return End::Whole;
        }
        Ok(Ok(())) => anyhow!("internal error (a unit without a result); please report it"),
    };
    // The disk is full, so later records could not be written either.
    let io = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<std::io::Error>().is_some_and(is_full)
    };
    if error.chain().any(io) {
        lock(&shared.queue).close();
    }
    // The reason goes to files and pages, so text that it quotes must be escaped.
    End::Failed(posenc_files::escaped(&format!("{error:#}")).into_owned())
}

/// Name, mean and unit of the first metric in the first table or plot that shows the job's group; else of the first value's metric.
fn main_result(job: &Job<'_>, values: &[Value]) -> Option<(String, f64, String)> {
    let group = &job.group.id;
    let experiment = job.experiment;
    let of_tables = experiment.tables.iter().filter(|table| table.groups.contains(group));
    let of_plots = experiment.plots.iter().flat_map(|plot| &plot.panels);
    let shown = of_tables
        .flat_map(|table| table.columns.first().map(|column| &column.metric))
        .chain(of_plots.filter(|panel| panel.group == *group).map(|panel| &panel.metric))
        .find(|metric| values.iter().any(|value| value.metric == **metric));
    let metric = shown.or_else(|| values.first().map(|value| &value.metric))?;
    let of: Vec<&Value> = values.iter().filter(|value| value.metric == *metric).collect();
    let mean = of.iter().map(|value| value.value).sum::<f64>() / of.len() as f64;
    Some((metric.clone(), mean, of.first().map_or_else(String::new, |v| v.unit.clone())))
}
