//! `reproduce`: runs the units without a record, then renders the report of this machine.

mod announce;
mod guide;
mod live;
pub mod results;
mod second_build;
mod summary;

use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use posenc_experiments::Catalog;
use posenc_experiments::plan::{NO_SIGNAL, jobs};

use posenc_harness::cost_model::{CostModel, estimate_makespan};
use posenc_harness::data::{self, DataSets};
use posenc_harness::interrupts::Interrupts;
use posenc_harness::lock::{self, Lock};
use posenc_harness::options::{Executor, Reproduce, parse_profile, parse_selectors};
use posenc_harness::plan::{PlannedJob, Plans, Reason, expand, leave_out_absent_picks, lookup};
use posenc_harness::progress::{Detail, Progress};
use posenc_harness::queue::Work;
use posenc_harness::repository::Repository;
use posenc_harness::run_env::{ResultInputs, RunEnv, keep};
use posenc_harness::span::duration;
use posenc_harness::store::Store;
use posenc_harness::{machine, orphans, slurm, supervisor};
use posenc_protocols::KINDS;

pub fn reproduce(repository: &Repository, options: &Reproduce) -> Result<ExitCode> {
    let began = Instant::now();
    options.executor.check(options)?;
    let out = lock::output(repository, options.out.as_deref(), "out")?;
    if options.record && !options.allow_dirty && !options.dry_run {
        repository.refuse_changes()?;
    }
    let profile = parse_profile(&options.profile)?;
    let catalog = keep(Catalog::read(repository.root(), KINDS)?);
    let selectors = parse_selectors(catalog, &options.selectors)?;
    let data = keep(DataSets::new(data::source(repository, &options.data)?, options.seed));
    let store = keep(Store::new(&out));

    let mut selected = jobs(catalog.experiments.iter(), &selectors, profile);
    let builder = second_build::leave(&mut selected)?;
    let notices = announce::Notices::of(catalog, &selectors, profile, &selected, data)?;
    leave_out_absent_picks(&mut selected, data).iter().for_each(|line| eprintln!("{line}"));
    let devices = keep(slurm::devices(options)?);
    let mut planned =
        expand(selected, data, &repository.published_checksum(), options.seed, devices.training())?;
    if let Some(places) = &options.signals {
        planned.iter_mut().for_each(|job| job.restrict_to(places));
        if planned.iter().all(|job| job.own().next().is_none()) {
            bail!("--signals {places} selects no signal of the selected groups");
        }
    }

    if options.dry_run {
        notices.print(options.verbose);
        return dry_run(&planned, &out, store, options);
    }
    if options.executor.executor == Executor::Slurm
        && let Some(code) = slurm::run(repository, options, &planned, store)?
    {
        return Ok(code);
    }
    let _lock = Lock::take(&out)?;
    slurm::refuse_beside(&out)?;
    store.sweep();
    let plans = Plans::new(catalog, data, repository.published_checksum(), options.seed);
    sweep_checkpoints(store, &plans, options);
    let mut cost_model = CostModel::read(&out);
    let work = to_run(&planned, store, options, &mut cost_model);
    let units: usize = work.iter().map(|w| w.units.len()).sum();
    let total: usize = planned.iter().map(|p| p.own().count()).sum();
    let workers = options.jobs.map_or_else(machine::cores, usize::from);
    let seconds = estimated_time(work.iter().map(|w| w.seconds(&cost_model)), workers);
    let size = announce::Size { units, total, workers, seconds };
    notices.start(&size, options, &work, devices);
    let verdicts = summary::Verdicts::read(catalog, &work, &out.join("record"));

    let detail = Detail::asked(options.quiet, options.verbose);
    let mut progress = Progress::new(units, workers, detail);
    let signals = Interrupts::listen().context("signal handlers cannot be installed")?;
    // Only now, after the handlers are installed: a file size limit is then a write error and does not end the process.
    guide::write(&out);
    let run = supervisor::Options {
        workers,
        fail_fast: options.fail_fast && !options.keep_going,
        memory: options.memory,
        end: options.budget.and_then(|budget| began.checked_add(budget.0)),
        signals: signals.clone(),
        feed: None,
    };
    let commit = keep(repository.commit());
    let site = RunEnv { store, data, devices, seed: options.seed, commit };
    let inputs = ResultInputs { repository, plans: &plans, store, devices, options, out: &out };
    let outcome = std::thread::scope(|scope| {
        let (feed, reporter) = live::channels();
        // A panic of the reporter must not end the run, which writes a final report in any case.
        let report = AssertUnwindSafe(|| reporter.run(&inputs, units));
        scope.spawn(|| std::panic::catch_unwind(report));
        let run = supervisor::Options { feed: Some(feed), ..run };
        supervisor::run(work, site, &run, cost_model, &mut progress)
    });
    signals.end_at_once();
    outcome.cost_model.write(&out);
    let page = out.join("report/README.md");
    let written = results::write(&inputs, None);
    let changed = written.as_ref().map_or_else(|_| Vec::new(), |after| verdicts.changed(after));
    summary::tell(&outcome, &changed, workers, options.force);
    // An interrupted run keeps its exit status even if its report cannot be written.
    if let Err(error) = written {
        let Some(signal) = outcome.interrupted else { return Err(error) };
        eprintln!("error: {error:#}");
        return Ok(ExitCode::from(128 + signal as u8));
    }
    println!("{}", page.display());
    match (outcome.interrupted, builder) {
        (Some(signal), _) => Ok(ExitCode::from(128 + signal as u8)),
        (None, Some(builder)) => second_build::start(&builder),
        (None, None) => Ok(ExitCode::from(u8::from(!outcome.failures.is_empty()))),
    }
}

fn sweep_checkpoints(store: &Store, plans: &Plans<'_>, options: &Reproduce) {
    // A build without some protocols does not plan their jobs, whose checkpoints would seem unused.
    if !plans.are_whole() {
        return;
    }
    if let Err(error) = orphans::sweep(store, plans, options.force) {
        eprintln!("warning: checkpoints that no run resumes from are kept: {error:#}");
    }
}

/// Units to run: without a record, or all with `--force`. Adds the recorded times of the other units to the cost model.
fn to_run(
    planned: &[PlannedJob<'static>],
    store: &Store,
    options: &Reproduce,
    cost_model: &mut CostModel,
) -> Vec<Work<'static>> {
    let mut all = Vec::new();
    for p in planned {
        let cached = lookup(p, store, options.force, options.verbose);
        let kind = p.job.protocol().name();
        if p.job.protocol().kind().emits_as_batch {
            // Without records there are no measured times.
            let units = cached.seconds.len();
            let seconds = cached.seconds.iter().sum();
            if units > 0 {
                cost_model.add(kind, p.seconds(units), seconds);
            }
        } else {
            let cost = p.seconds(1);
            cached.seconds.iter().for_each(|seconds| cost_model.add(kind, cost, *seconds));
        }
        let mut units = Vec::new();
        for (unit, reason) in cached.pending {
            if let Reason::Damaged(why) = &reason {
                eprintln!("warning: {} {}: {why}; running it again", p.job.path(), unit.signal);
            }
            if options.verbose {
                eprintln!(
                    "to run: {} seed {} {}: {reason}",
                    p.job.path(),
                    p.job.seed_index,
                    unit.signal
                );
            }
            units.push(unit);
        }
        all.extend(Work::of(p, units));
    }
    all
}

/// Estimated makespan of jobs of these durations in seconds on `workers` workers, longest job first.
fn estimated_time(seconds: impl Iterator<Item = f64>, workers: usize) -> f64 {
    let mut seconds: Vec<f64> = seconds.collect();
    seconds.sort_by(|a, b| b.total_cmp(a));
    estimate_makespan(&[], seconds.into_iter(), workers)
}

fn dry_run(
    planned: &[PlannedJob<'_>],
    out: &Path,
    store: &Store,
    options: &Reproduce,
) -> Result<ExitCode> {
    let mut cost_model = CostModel::read(out);
    let (mut units, mut lines, mut waiting) = (0, Vec::new(), Vec::new());
    for p in planned {
        let cached = lookup(p, store, options.force, true);
        let kind = p.job.protocol().name();
        let cost = p.seconds(1);
        if !p.job.protocol().kind().emits_as_batch {
            cached.seconds.iter().for_each(|seconds| cost_model.add(kind, cost, *seconds));
        }
        units += cached.pending.len();
        let cost = p.seconds(cached.pending.len());
        for (unit, reason) in &cached.pending {
            let signal = if unit.signal == NO_SIGNAL { "" } else { &unit.signal };
            let name = format!(
                "{} seed {} {signal} [{}]: {reason}",
                p.job.path(),
                p.job.seed_index,
                p.job.recorded_profile
            );
            lines.push((name, kind, cost / cached.pending.len() as f64));
        }
        waiting.push((kind, cost));
    }
    // Printed after the loop, when the cost model has all measured times.
    for (name, kind, cost) in lines {
        println!("{name}, about {}", duration(cost_model.seconds(kind, cost)));
    }
    let total: usize = planned.iter().map(|p| p.own().count()).sum();
    let workers = options.jobs.map_or_else(machine::cores, usize::from);
    let waiting = waiting.into_iter().map(|(kind, cost)| cost_model.seconds(kind, cost));
    let seconds = estimated_time(waiting, workers);
    println!(
        "{units} of {total} units would run, about {} on {workers} workers",
        duration(seconds)
    );
    if options.executor.executor == Executor::Slurm {
        slurm::print_shares(planned, store, options);
    }
    Ok(ExitCode::SUCCESS)
}
