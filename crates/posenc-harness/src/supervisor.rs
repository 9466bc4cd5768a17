//! Supervises jobs: workers run them, and the calling thread watches, reports progress and stores failures.
//!
//! After an interrupt, a job that does not stop is not waited for: it does not keep the process from ending. Data that threads read must
//! therefore live as long as the process; see [`keep`](crate::run_env::keep).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use crate::control::Control;
use crate::cost_model::{CostModel, estimate_makespan};
use crate::interrupts::{Interrupts, name};
use crate::memory::{self, Bytes, Memory};
use crate::progress::{Detail, Progress, Tally, named};
pub use crate::queue::Work;
use crate::queue::{Lane, Queue};
use crate::run_env::RunEnv;
use crate::running::{Job, in_flight, time_left, unit_name};
use crate::span::duration;
use crate::worker::{End, Message, Shared, lock, work};

/// How often the supervisor checks for signals.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Time that a job has to end after it was told to stop; longer while it writes.
fn grace(is_writing: bool) -> Duration {
    Duration::from_secs(if is_writing { 60 } else { 3 })
}

/// Options of a run.
#[derive(Default)]
pub struct Options {
    /// Units at a time; 0 means 1.
    pub workers: usize,
    /// Whether to start no further job after a failure.
    pub fail_fast: bool,
    /// End of the budget. No job starts that would end later.
    pub end: Option<Instant>,
    /// Memory limit of all jobs together. Default: the available memory of the machine.
    pub memory: Option<Bytes>,
    /// Connection to a thread that follows the run.
    pub feed: Option<Feed>,
    /// Interrupts that end the run.
    pub signals: Interrupts,
}

/// An item whose units have all run or failed.
pub struct FinishedItem {
    /// `paper/item`.
    pub item: String,
    /// Units of the run that have neither run nor failed.
    pub left: usize,
    /// Estimated seconds for these units.
    pub seconds: f64,
}

/// Connection to another thread that follows the progress of a run.
pub struct Feed {
    /// Sends items when they are finished.
    pub finished: Sender<FinishedItem>,
    /// Receives lines to print.
    pub lines: Receiver<String>,
}

/// A unit that failed.
#[derive(Debug, Clone)]
pub struct Failure {
    /// `paper/item/group/method`, and the signal if there are several.
    pub path: String,
    /// Key of the unit.
    pub key: String,
    /// Reason of the failure.
    pub message: String,
}

/// Summary of a run.
#[derive(Default)]
pub struct RunSummary {
    /// Units that failed.
    pub failures: Vec<Failure>,
    /// Number of units that did not run, and their estimated seconds on the workers.
    pub left: (usize, f64),
    /// The interrupt that ended the run.
    pub interrupted: Option<usize>,
    /// Items with units that ended, by `paper/item`.
    pub items: BTreeMap<String, Tally>,
    /// Cost model with the measurements of this run.
    pub cost_model: CostModel,
}

/// Runs jobs with default options and returns the failures.
pub fn run_plainly(jobs: Vec<Work<'static>>, site: RunEnv, workers: usize) -> Vec<Failure> {
    let units = jobs.iter().map(|work| work.units.len()).sum();
    let mut progress = Progress::new(units, workers, Detail::Usual);
    let options = Options { workers, ..Options::default() };
    run(jobs, site, &options, CostModel::default(), &mut progress).failures
}

/// Runs all jobs. The records do not depend on the number of workers.
///
/// Jobs that measure time run last and alone, so that nothing else uses the machine.
pub fn run(
    jobs: Vec<Work<'static>>,
    site: RunEnv,
    options: &Options,
    cost_model: CostModel,
    progress: &mut Progress,
) -> RunSummary {
    let workers = options.workers.max(1);
    let mut items: BTreeMap<String, Tally> = BTreeMap::new();
    for work in &jobs {
        items.entry(work.job.experiment.id()).or_default().total += work.units.len();
    }
    let budget = options.end.map(|end| end.saturating_duration_since(Instant::now()).as_secs_f64());
    let mut queue = Queue::new(jobs, budget, workers, &cost_model);
    queue.memory = Memory::new(options.memory.or_else(memory::available));
    let (sender, messages) = channel();
    let shared = Arc::new(Shared {
        site,
        queue: queue.into(),
        cost_model: cost_model.into(),
        end: options.end,
        fail_fast: options.fail_fast,
        messages: sender,
        next: AtomicU64::new(0),
    });
    let mut supervisor = Supervisor {
        shared,
        options,
        workers,
        jobs: BTreeMap::new(),
        alive: BTreeMap::new(),
        progress,
        summary: RunSummary { items, ..RunSummary::default() },
        give_up: None,
        stopped: Vec::new(),
    };
    for lanes in [&[Lane::Cpu, Lane::Device][..], &[Lane::Alone]] {
        supervisor.start(lanes);
        supervisor.until_idle(&messages);
    }
    let mut summary = supervisor.summary;
    let stopped = supervisor.stopped.iter().copied();
    let seconds = time_left(&supervisor.shared, &supervisor.jobs, workers)
        + estimate_makespan(&[], stopped, workers);
    summary.left = (summary.items.values().map(Tally::left).sum(), seconds);
    summary.items.retain(|_, tally| tally.done + tally.failed > 0);
    summary.cost_model = lock(&supervisor.shared.cost_model).clone();
    progress.finish();
    summary
}

struct Supervisor<'r> {
    shared: Arc<Shared>,
    options: &'r Options,
    workers: usize,
    jobs: BTreeMap<u64, Job>,
    /// Number of active workers per lane.
    alive: BTreeMap<Lane, usize>,
    progress: &'r mut Progress,
    summary: RunSummary,
    /// Time of the interrupt, after which the run waits only for the grace period.
    give_up: Option<Instant>,
    /// Remaining seconds of each job that the interrupt stopped.
    stopped: Vec<f64>,
}

impl Supervisor<'_> {
    fn start(&mut self, lanes: &[Lane]) {
        for &lane in lanes {
            let waiting = lock(&self.shared.queue).waiting(lane).count();
            let workers = if lane == Lane::Cpu { self.workers } else { 1 };
            (0..workers.min(waiting)).for_each(|_| self.spawn_worker(lane));
        }
    }

    fn spawn_worker(&mut self, lane: Lane) {
        let shared = self.shared.clone();
        match std::thread::Builder::new().spawn(move || work(&shared, lane)) {
            Ok(_) => *self.alive.entry(lane).or_default() += 1,
            Err(error) if self.alive.get(&lane).is_some_and(|n| *n > 0) => {
                self.progress.warn(&format!("warning: cannot start another thread: {error}"));
            }
            Err(error) => {
                // No worker would run the waiting jobs. A run that does nothing must not succeed.
                let message = format!("cannot start a thread ({error}); see `ulimit -u`");
                let is_told = self.summary.failures.iter().any(|f| f.message == message);
                if !is_told {
                    let path = "all waiting units".to_owned();
                    self.summary.failures.push(Failure { path, key: String::new(), message });
                }
            }
        }
    }

    fn until_idle(&mut self, messages: &Receiver<Message>) {
        while self.alive.values().any(|n| *n > 0) {
            match messages.recv_timeout(LOOK_EVERY) {
                Ok(message) => {
                    self.take(message);
                    while let Ok(message) = messages.try_recv() {
                        self.take(message);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.look_at_clock();
            for line in self.options.feed.iter().flat_map(|feed| feed.lines.try_iter()) {
                self.progress.note(&line);
            }
            let is_writing = || self.jobs.values().any(|job| job.control.is_writing());
            if self.give_up.is_some_and(|since| since.elapsed() > grace(is_writing())) {
                return;
            }
            let (shared, jobs, workers) = (&self.shared, &self.jobs, self.workers);
            self.progress.tick(|| (in_flight(jobs), time_left(shared, jobs, workers)));
        }
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Started { id, lane, work, control } => {
                if self.summary.interrupted.is_some() {
                    control.stop();
                }
                self.progress.detail(|| {
                    let expected = work.seconds(&lock(&self.shared.cost_model));
                    let (path, units) = (work.job.path(), work.units.len());
                    format!(
                        "begins {path} seed {}: {units} units, about {}",
                        work.job.seed_index,
                        duration(expected)
                    )
                });
                let started = Instant::now();
                let job = Job { lane, work, control, started, seconds: 0.0, first: None };
                self.jobs.insert(id, job);
            }
            Message::Unit { id, index, finished } => {
                let Some(job) = self.jobs.get_mut(&id) else { return };
                let Some(unit) = job.work.units.get(index) else { return };
                let seconds = finished.seconds;
                job.seconds += seconds;
                let estimated = job.work.cost / job.work.units.len() as f64;
                let mut cost_model = lock(&self.shared.cost_model);
                let expected = cost_model.seconds(job.work.kind(), estimated);
                if !job.work.emits_as_batch() {
                    cost_model.add(job.work.kind(), estimated, seconds);
                }
                drop(cost_model);
                self.progress.finished(&unit_name(&job.work, unit), expected, &finished);
                let item = job.work.job.experiment.id();
                self.count(&item, seconds, false);
            }
            Message::Note(line) => self.progress.note(&line),
            Message::Ended { id, end } => {
                let Some(job) = self.jobs.remove(&id) else { return };
                match end {
                    End::Whole if job.work.emits_as_batch() => {
                        let mut cost_model = lock(&self.shared.cost_model);
                        cost_model.add(job.work.kind(), job.work.cost, job.seconds);
                    }
                    End::Failed(message) if !job.control.is_stopped() => {
                        self.fail(&job.work, &job.control, &message);
                    }
                    End::Stopped => {
                        let left = job.left(&lock(&self.shared.cost_model));
                        self.stopped.push(left);
                    }
                    _ => {}
                }
            }
            Message::Idle(lane) => self.count_idle(lane),
        }
    }

    /// Counts a worker as idle.
    fn count_idle(&mut self, lane: Lane) {
        if let Some(alive) = self.alive.get_mut(&lane) {
            *alive = alive.saturating_sub(1);
        }
    }

    /// Counts a unit that has run or failed.
    fn count(&mut self, item: &str, seconds: f64, has_failed: bool) {
        let items = &mut self.summary.items;
        let Some(tally) = items.get_mut(item) else { return };
        tally.done += usize::from(!has_failed);
        tally.failed += usize::from(has_failed);
        tally.seconds += seconds;
        if tally.left() > 0 {
            return;
        }
        let tally = *tally;
        let finished = items.values().filter(|tally| tally.left() == 0).count();
        self.progress.item_finished(item, &tally, finished, items.len());
        if let Some(feed) = &self.options.feed {
            let left = items.values().map(Tally::left).sum();
            let seconds = time_left(&self.shared, &self.jobs, self.workers);
            // The receiver may have ended.
            let _ = feed.finished.send(FinishedItem { item: item.to_owned(), left, seconds });
        }
    }

    /// Marks the units in flight of a job as failed.
    fn fail(&mut self, work: &Work<'static>, control: &Control, reason: &str) {
        let seconds = control.elapsed().as_secs_f64();
        let experiment = work.job.experiment;
        for unit in control.unwritten().0.into_iter().filter_map(|i| work.units.get(i)) {
            let failure = work.failure(unit, reason, (seconds * 1000.0).round() / 1000.0);
            let store = self.shared.site.store;
            let kept = store.write_failure(&experiment.paper, &experiment.item, &failure);
            self.progress.failed(&unit_name(work, unit), reason);
            if let Err(error) = kept {
                self.progress.warn(&format!("warning: the failure cannot be stored: {error:#}"));
            }
            self.summary.failures.push(Failure {
                path: named(&work.job.path(), &unit.signal),
                key: unit.parts.key(),
                message: reason.to_owned(),
            });
            self.count(&experiment.id(), seconds, true);
        }
        if self.options.fail_fast {
            lock(&self.shared.queue).close();
        }
    }

    /// Notes how far jobs are, and handles interrupts.
    fn look_at_clock(&mut self) {
        let now = Instant::now();
        for job in self.jobs.values_mut() {
            if job.first.is_none() {
                job.first = job.control.fraction().map(|fraction| (now, fraction));
            }
        }
        if let (Some(signal), None) = (self.options.signals.asked(), self.summary.interrupted) {
            self.summary.interrupted = Some(signal);
            self.give_up = Some(now);
            lock(&self.shared.queue).close();
            self.jobs.values().for_each(|job| job.control.stop());
            self.progress.warn(&format!(
                "{}: starting no further units; units in flight save their progress; a second interrupt exits at once",
                name(signal)
            ));
        }
    }
}
