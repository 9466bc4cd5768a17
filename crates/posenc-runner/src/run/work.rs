//! Workers: each takes the next job, runs its units, writes their records.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Result, anyhow};
use posenc_experiments::plan::Job;
use posenc_experiments::record::UnitRecord;

use super::checkpoint::Checkpoint;
use super::data::DataSets;
use super::plan::Unit;
use super::progress::Progress;
use super::store::Store;
use crate::device::{self, Devices};
use crate::{machine, protocols};

/// Units of one job that must run.
pub struct Work<'a> {
    /// The job.
    pub job: Job<'a>,
    /// The units.
    pub units: Vec<Unit>,
    /// Estimated seconds on one core.
    pub cost: f64,
}

/// A unit that failed.
#[derive(Debug, Clone)]
pub struct Failure {
    /// `paper/item/group/method`.
    pub path: String,
    /// Why.
    pub message: String,
}

/// Runs everything; the order of the records on disk does not depend on the number of workers.
///
/// Jobs that read the clock run last and alone, so that nothing else is on the machine.
pub fn run(
    mut work: Vec<Work<'_>>,
    store: &Store,
    data: &DataSets,
    devices: &Devices,
    seed: u64,
    workers: usize,
    fail_fast: bool,
) -> Vec<Failure> {
    let units = work.iter().map(|w| w.units.len()).sum();
    let cost = work.iter().map(|w| w.cost).sum();
    let progress = Progress::new(units, cost);
    let failures = Mutex::new(Vec::new());
    let stop = AtomicBool::new(false);
    // The longest first: the last worker then does not end long after the others.
    work.sort_by(|a, b| b.cost.total_cmp(&a.cost));
    let (alone, together): (Vec<_>, Vec<_>) =
        work.into_iter().partition(|w| w.job.protocol().measures_time());
    let one = |work: &Work<'_>| {
        if let Err(failure) = run_job(work, store, data, devices, seed, &progress) {
            let mut failures = failures.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            failures.push(failure);
            if fail_fast {
                stop.store(true, Ordering::Relaxed);
            }
        }
    };
    // A device works on one job at a time, beside the jobs of the CPU.
    let (on_device, on_cpu): (Vec<_>, Vec<_>) =
        together.into_iter().partition(|w| w.units.iter().any(|u| u.parts.device != device::CPU));
    let queues = [(on_cpu, workers), (on_device, 1)].map(|q| (q.0, q.1, AtomicUsize::new(0)));
    std::thread::scope(|scope| {
        for (queue, workers, next) in &queues {
            for _ in 0..(*workers).clamp(1, queue.len().max(1)) {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        match queue.get(next.fetch_add(1, Ordering::Relaxed)) {
                            Some(work) => one(work),
                            None => break,
                        }
                    }
                });
            }
        }
    });
    for work in &alone {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        one(work);
    }
    progress.finish();
    failures.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn run_job(
    work: &Work<'_>,
    store: &Store,
    data: &DataSets,
    devices: &Devices,
    seed: u64,
    progress: &Progress,
) -> Result<(), Failure> {
    let path = work.job.path();
    let experiment = work.job.experiment;
    let cost = work.cost / work.units.len().max(1) as f64;
    let checkpoint =
        Checkpoint::new(store.checkpoints(), work.units.iter().map(|unit| &unit.parts));
    let note = |text: &str| progress.note(&format!("note: {path}: {text}"));
    let context = protocols::Context {
        job: &work.job,
        units: &work.units,
        data,
        devices,
        seed,
        checkpoint: &checkpoint,
        note: &note,
    };
    machine::reset_peak_memory();
    let mut written = vec![false; work.units.len()];
    let mut last = Instant::now();
    // Each unit is on disk before the next one starts: a killed run loses one.
    let mut emit = |index: usize, outcome: protocols::Outcome| -> Result<()> {
        let unit = &work.units[index];
        let seconds = outcome.earlier + last.elapsed().as_secs_f64();
        let record = UnitRecord {
            parts: unit.parts.clone(),
            device: devices.label(&unit.parts.device).to_owned(),
            data: unit.data.clone(),
            seconds,
            peak_memory: machine::peak_memory(),
            remarks: outcome.remarks,
            values: outcome.values,
            pictures: Vec::new(),
            captions: None,
            versions: machine::versions(),
        };
        let (pictures, captions) = (&outcome.pictures, outcome.captions.as_ref());
        store.write(&experiment.paper, &experiment.item, record, pictures, captions)?;
        // What it takes to write pictures is no part of the next unit.
        last = Instant::now();
        written[index] = true;
        progress.unit(&path, &unit.signal, seconds, cost, None);
        Ok(())
    };
    // A panic in a protocol is our bug; it must not take the other units with it.
    let result = catch_unwind(AssertUnwindSafe(|| protocols::run(&context, &mut emit)))
        .unwrap_or_else(|panic| {
            let text = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("no message");
            Err(anyhow!("internal error ({text}); please report it"))
        });
    let message = match result {
        Err(error) => format!("{error:#}"),
        Ok(()) if written.iter().all(|w| *w) => {
            checkpoint.remove();
            return Ok(());
        }
        Ok(()) => "internal error (a unit without a result); please report it".to_owned(),
    };
    for (unit, _) in work.units.iter().zip(&written).filter(|(_, w)| !**w) {
        progress.unit(&path, &unit.signal, 0.0, cost, Some(&message));
    }
    Err(Failure { path, message })
}
