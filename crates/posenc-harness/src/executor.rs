//! Runs jobs on threads. The calling thread shows progress and waits.
//!
//! After an interrupt, a job that does not stop is not waited for: it ends with the process. Data that threads read must therefore live
//! as long as the process; see [`keep`](crate::run_env::keep).

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use posenc_experiments::record::UnitRecord;
use posenc_experiments::selector::Selectors;
use posenc_files::is_full;

use crate::checkpoint::Checkpoint;
use crate::control::{Control, Stopped};
use crate::interrupts::{Interrupts, name};
use crate::memory::{self, Bytes};
use crate::plan::PlannedJob;
use crate::progress::{Finished, InFlight, Progress, Tally, named};
use crate::queue::{Lane, Next, Queue};
use crate::run_env::RunEnv;
use crate::timings::{Estimate, Timings};
use crate::unit::Unit;
use crate::{machine, protocol};

/// How often the run checks for signals, and workers for memory.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Time that jobs have to end after an interrupt.
const GRACE: Duration = Duration::from_secs(5);

#[derive(Default)]
pub struct Options {
    /// Units at a time; 0 means 1.
    pub workers: usize,
    /// Selectors whose jobs start in the order given; in any order if empty.
    pub selectors: Selectors,
    /// End of the budget. No job starts that would end later, and trainings that run longer stop.
    pub end: Option<Instant>,
    /// Memory limit of all jobs together. Default: the available memory of the machine.
    pub memory: Option<Bytes>,
    /// Connection to a thread that follows the run.
    pub feed: Option<Feed>,
    pub signals: Interrupts,
    pub is_verbose: bool,
}

/// An item whose units have all run or failed.
pub struct FinishedItem {
    /// `paper/item`.
    pub item: String,
    /// Units of the run that have neither run nor failed.
    pub left: usize,
    /// Estimated time of these units.
    pub time: Estimate,
}

/// Connection to another thread that follows the progress of a run.
pub struct Feed {
    /// Sends items when they are finished.
    pub finished: Sender<FinishedItem>,
    pub lines: Receiver<String>,
}

#[derive(Default)]
pub struct RunSummary {
    /// Number of failures, each of which was printed.
    pub failures: usize,
    /// Number of units that did not run, and their estimated time on the workers.
    pub left: (usize, Estimate),
    /// The interrupt that ended the run.
    pub interrupted: Option<usize>,
    /// With the times of this run.
    pub timings: Timings,
}

/// Runs all jobs. The records do not depend on the number of workers.
pub fn run(
    jobs: Vec<PlannedJob<'static>>,
    site: RunEnv,
    options: Options,
    timings: Timings,
) -> RunSummary {
    let workers = options.workers.max(1);
    let mut items: BTreeMap<String, Tally> = BTreeMap::new();
    for job in &jobs {
        items.entry(job.job.experiment.id()).or_default().total += job.to_run.len();
    }
    let units = items.values().map(|tally| tally.total).sum();
    let limit = options.memory.or_else(memory::available);
    memory::set_limit(limit);
    let state = State {
        queue: Queue::new(
            jobs,
            &timings,
            workers,
            limit,
            &options.selectors,
            options.end.is_some(),
        ),
        running: BTreeMap::new(),
        started: 0,
        alive: BTreeMap::new(),
        progress: Progress::new(units, workers, options.is_verbose),
        items,
        summary: RunSummary { timings, ..RunSummary::default() },
        finished: options.feed.as_ref().map(|feed| feed.finished.clone()),
    };
    let (state, changed) = (Mutex::new(state), Condvar::new());
    let run = Arc::new(Run { site, end: options.end, signals: options.signals, state, changed });
    let lines = options.feed.map(|feed| feed.lines);
    for lane in [Lane::Cpu, Lane::Device] {
        let waiting = run.state().queue.count(lane);
        let threads = if lane == Lane::Cpu { workers } else { 1 };
        (0..threads.min(waiting)).for_each(|_| start_worker(&run, lane));
    }
    wait(&run, lines.as_ref());
    let mut state = run.state();
    let state = &mut *state;
    let time_left = state.time_left();
    lines.iter().flat_map(|lines| lines.try_iter()).for_each(|line| state.progress.say(&line));
    let mut summary = std::mem::take(&mut state.summary);
    summary.left = (state.items.values().map(Tally::left).sum(), time_left);
    state.finished = None;
    state.progress.finish();
    summary
}

/// What all threads share. It lives as long as the last of them, possibly longer than the run.
struct Run {
    site: RunEnv,
    end: Option<Instant>,
    signals: Interrupts,
    state: Mutex<State>,
    /// Notified when a job or a worker has ended.
    changed: Condvar,
}

struct State {
    queue: Queue<'static>,
    /// Jobs in flight, in the order of their start.
    running: BTreeMap<usize, Running>,
    /// Number of jobs that have started.
    started: usize,
    /// Number of active workers per lane.
    alive: BTreeMap<Lane, usize>,
    progress: Progress,
    /// Units by `paper/item`.
    items: BTreeMap<String, Tally>,
    summary: RunSummary,
    finished: Option<Sender<FinishedItem>>,
}

struct Running {
    job: Arc<PlannedJob<'static>>,
    control: Arc<Control>,
    started: Instant,
    /// Start of the current unit, and the number of units before it.
    since: Instant,
    done: usize,
    expected: Estimate,
    /// Bytes that are reserved for it.
    bytes: u64,
    /// Whether no other job has run at the same time.
    is_alone: bool,
    /// Time and value of the first reported fraction.
    first: Option<(Instant, f64)>,
}

impl Running {
    /// Estimated time until the job ends, from its completed fraction if known.
    fn left(&self) -> Estimate {
        let known = |seconds| Estimate { seconds, unknown: 0 };
        if let (Some((since, first)), Some(now)) = (self.first, self.control.fraction())
            && now - first > 0.01
        {
            return known(since.elapsed().as_secs_f64() * (1.0 - now) / (now - first));
        }
        if self.expected.unknown > 0 {
            return Estimate { unknown: self.job.to_run.len() - self.done, ..self.expected };
        }
        let elapsed = self.started.elapsed().as_secs_f64();
        // A job that exceeds its estimate will exceed it further.
        known((self.expected.seconds - elapsed).max(0.1 * elapsed))
    }

    fn shown(&self) -> InFlight {
        let units = &self.job.to_run;
        let signal = match units.get(self.done) {
            Some(unit) if units.len() == 1 || !self.job.emits_as_batch() => unit.signal.clone(),
            _ => format!("({} signals)", units.len() - self.done),
        };
        InFlight {
            name: named(&self.job.job.path(), &signal),
            elapsed: self.started.elapsed().as_secs_f64(),
            fraction: self.control.fraction(),
        }
    }
}

impl State {
    fn time_left(&self) -> Estimate {
        let running: Vec<(Lane, Estimate)> =
            self.running.values().map(|one| (Lane::of(&one.job), one.left())).collect();
        self.queue.time_left(&running)
    }

    /// Notes that a job starts, and returns its number.
    fn start(
        &mut self,
        job: &Arc<PlannedJob<'static>>,
        control: &Arc<Control>,
        bytes: u64,
    ) -> usize {
        let is_alone = self.running.is_empty();
        self.running.values_mut().for_each(|other| other.is_alone = false);
        let expected = self.summary.timings.estimate(job);
        self.progress.detail(|| {
            let (path, seed, units) = (job.job.path(), job.job.seed_index, job.to_run.len());
            format!("begins {path} seed {seed}: {units} units, {expected}")
        });
        let (job, control, now) = (job.clone(), control.clone(), Instant::now());
        let (started, since, done, first) = (now, now, 0, None);
        let one = Running { job, control, started, since, done, expected, bytes, is_alone, first };
        self.started += 1;
        self.running.insert(self.started, one);
        self.started
    }

    /// Notes that the record of a unit is on disk.
    fn unit_finished(&mut self, id: usize, unit: &Unit, finished: &Finished) {
        let Some(one) = self.running.get_mut(&id) else { return };
        one.since = Instant::now();
        one.done += 1;
        let job = one.job.clone();
        let expected = one.expected.seconds / job.to_run.len().max(1) as f64;
        let name = named(&job.job.path(), &unit.signal);
        self.progress.finished(&name, &unit.parts.key(), expected, finished);
        self.count(&job, finished.seconds, false);
    }

    /// Counts a unit that has run or failed.
    fn count(&mut self, job: &PlannedJob<'_>, seconds: f64, has_failed: bool) {
        let item = job.job.experiment.id();
        let items = &mut self.items;
        let Some(tally) = items.get_mut(&item) else { return };
        tally.done += usize::from(!has_failed);
        tally.failed += usize::from(has_failed);
        tally.seconds += seconds;
        if tally.left() > 0 {
            return;
        }
        let tally = *tally;
        let finished = items.values().filter(|tally| tally.left() == 0).count();
        self.progress.item_finished(&item, &tally, finished, items.len());
        let left = items.values().map(Tally::left).sum();
        if let Some(feed) = &self.finished {
            // The receiver may have ended.
            let _ = feed.send(FinishedItem { item, left, time: self.time_left() });
        }
    }

    /// Notes that a job's thread has returned: `left` are its units without a record, and `failure` says why if it was not told to stop.
    fn ended(&mut self, id: usize, seconds: f64, mut left: Vec<Unit>, failure: Option<String>) {
        let Some(one) = self.running.remove(&id) else { return };
        self.queue.ended(one.bytes);
        let job = one.job;
        if one.done > 0 && (left.is_empty() || !job.emits_as_batch()) {
            self.summary.timings.add(&job, one.done, seconds);
            if one.is_alone
                && let Some(bytes) = machine::peak_memory()
            {
                self.summary.timings.add_memory(&job.job, bytes);
            }
            self.queue.estimate_again(&job, &self.summary.timings);
        }
        if let Some(reason) = &failure
            && !one.control.is_stopped()
        {
            // Units that have not started do not fail with the one in flight.
            let others =
                if job.emits_as_batch() { Vec::new() } else { left.split_off(left.len().min(1)) };
            for unit in std::mem::replace(&mut left, others) {
                self.progress.failed(&named(&job.job.path(), &unit.signal), reason);
                self.summary.failures += 1;
                self.count(&job, one.since.elapsed().as_secs_f64(), true);
            }
        }
        if !left.is_empty() {
            self.queue.put_back(job.only(left), &self.summary.timings);
        }
    }
}

fn start_worker(run: &Arc<Run>, lane: Lane) {
    let own = run.clone();
    let mut state = run.state();
    let started = std::thread::Builder::new().spawn(move || work(&own, lane));
    let alive = state.alive.entry(lane).or_default();
    match started {
        Ok(_) => *alive += 1,
        Err(error) if *alive > 0 => {
            state.progress.say(&format!("warning: cannot start another thread: {error}"));
        }
        // No worker runs the waiting jobs. A run that does nothing must not succeed.
        Err(error) => {
            state.summary.failures += 1;
            let why = format!("cannot start a thread ({error}); see `ulimit -u`");
            state.progress.say(&format!("failed: all waiting units: {why}"));
        }
    }
}

/// Waits until no worker is active, or until the grace period after an interrupt is over.
fn wait(run: &Run, lines: Option<&Receiver<String>>) {
    let mut interrupted: Option<Instant> = None;
    let mut state = run.state();
    while state.alive.values().any(|workers| *workers > 0) {
        let waited = run.changed.wait_timeout(state, LOOK_EVERY);
        state = waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
        let own = &mut *state;
        for line in lines.iter().flat_map(|lines| lines.try_iter()) {
            own.progress.say(&line);
        }
        for one in own.running.values_mut().filter(|one| one.first.is_none()) {
            one.first = one.control.fraction().map(|fraction| (Instant::now(), fraction));
        }
        if own.progress.is_due() {
            let in_flight: Vec<InFlight> = own.running.values().map(Running::shown).collect();
            let left = own.time_left();
            own.progress.draw(&in_flight, left);
        }
        if let (Some(signal), None) = (run.signals.asked(), interrupted) {
            interrupted = Some(Instant::now());
            own.summary.interrupted = Some(signal);
            own.queue.close();
            own.progress.say(&format!(
                "{}: starting no further units; units in flight save their progress; a second interrupt exits at once",
                name(signal)
            ));
        }
        if interrupted.is_some_and(|since| since.elapsed() > GRACE) {
            return;
        }
    }
}

impl Run {
    /// Locks the state even if it is poisoned: it changes in steps that leave it valid.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The next job of a lane; waits until its memory is available.
    fn next(&self, lane: Lane) -> Option<(PlannedJob<'static>, u64)> {
        let mut state = self.state();
        loop {
            let left = |end: Instant| end.saturating_duration_since(Instant::now()).as_secs_f64();
            match state.queue.next(lane, self.end.map(left)) {
                Next::Run(job, bytes) => return Some((job, bytes)),
                Next::End => return None,
                Next::Wait => {
                    let waited = self.changed.wait_timeout(state, LOOK_EVERY);
                    state = waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
                }
            }
        }
    }
}

/// Marks its worker as idle when dropped, even after a panic.
struct Idle<'a>(&'a Run, Lane);

impl Drop for Idle<'_> {
    fn drop(&mut self) {
        if let Some(alive) = self.0.state().alive.get_mut(&self.1) {
            *alive -= 1;
        }
        self.0.changed.notify_all();
    }
}

/// Runs jobs until none are left.
fn work(run: &Run, lane: Lane) {
    let _idle = Idle(run, lane);
    while let Some((job, bytes)) = run.next(lane) {
        let job = Arc::new(job);
        let control = Arc::new(Control::new(run.signals.clone(), run.end));
        let id = run.state().start(&job, &control, bytes);
        let (mut left, mut seconds) = (job.to_run.clone(), 0.0);
        // A panic in a protocol is a bug; it must not end the other units.
        let result = catch_unwind(AssertUnwindSafe(|| {
            run_units(run, id, &job, &control, &mut left, &mut seconds)
        }));
        // The reason goes to files and pages, so text that it quotes must be escaped.
        let failure = match result {
            Ok(Ok(())) => None,
            Ok(Err(error)) => {
                // The disk is full, so later records could not be written either.
                let is_full = |cause: &(dyn std::error::Error + 'static)| {
                    cause.downcast_ref::<std::io::Error>().is_some_and(is_full)
                };
                if error.chain().any(is_full) {
                    run.state().queue.close();
                }
                Some(posenc_files::escaped(&format!("{error:#}")).into_owned())
            }
            Err(panic) if panic.is::<Stopped>() => None,
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
                let text = posenc_files::escaped(text.unwrap_or("no message"));
                Some(format!("internal error ({text}); please report it"))
            }
        };
        run.state().ended(id, seconds, left, failure);
        run.changed.notify_all();
    }
}

/// Indices, in the plan of the job, of the units to train: those that must run. Units that are computed together resume together: if a
/// checkpoint covers all of them, its units are returned, even if some have records.
fn trained(job: &PlannedJob<'_>, checkpoint: &Checkpoint) -> Vec<usize> {
    let must_run = |unit: &Unit| job.to_run.iter().any(|own| own.parts == unit.parts);
    let pending = (0..job.units.len()).filter(|&place| must_run(&job.units[place]));
    let pending: Vec<usize> = pending.collect();
    let resumed = checkpoint.trained().filter(|trained| {
        job.emits_as_batch()
            && trained.iter().all(|i| *i < job.units.len())
            && pending.iter().all(|i| trained.binary_search(i).is_ok())
    });
    resumed.unwrap_or(pending)
}

/// Runs the units of a job and writes their records. Removes each written unit from `left`, and adds its time to `all_seconds`.
fn run_units(
    run: &Run,
    id: usize,
    job: &PlannedJob<'static>,
    control: &Arc<Control>,
    left: &mut Vec<Unit>,
    all_seconds: &mut f64,
) -> Result<()> {
    let RunEnv { store, data, devices, seed, commit } = run.site;
    let experiment = job.job.experiment;
    let folder = store.checkpoints(&experiment.paper, &experiment.item);
    let checkpoint = Checkpoint::new(&folder, &job.units).of_job(control);
    let places = trained(job, &checkpoint);
    let checkpoint = checkpoint.training(&places);
    let units: Vec<Unit> = places.iter().filter_map(|&i| job.units.get(i).cloned()).collect();
    let note = |text: &str| {
        run.state().progress.say(&format!("note: {}: {text}", job.job.path()));
    };
    let context = protocol::Context {
        job: &job.job,
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
        let of_unit = |unit: &Unit| left.iter().position(|own| own.parts == unit.parts);
        // Others keep their records.
        let Some(place) = units.get(trained).and_then(of_unit) else { return Ok(()) };
        let unit = left[place].clone();
        let seconds = outcome.earlier + last.elapsed().as_secs_f64();
        let peak_memory = machine::peak_memory();
        let values = outcome.values.len();
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
        store.write(&experiment.paper, &experiment.item, record, &outcome.pictures)?;
        left.remove(place);
        *all_seconds += seconds;
        let steps = control.take_steps();
        let finished = Finished { seconds, peak_memory, values, steps };
        run.state().unit_finished(id, &unit, &finished);
        // The time to write pictures does not count for the next unit.
        last = Instant::now();
        Ok(())
    };
    protocol::of(job.job.protocol())?.run(&context, &mut emit)?;
    if !left.is_empty() {
        return Err(anyhow!("internal error (a unit without a result); please report it"));
    }
    checkpoint.remove();
    Ok(())
}
