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

use super::report::print_changed_verdicts;
use posenc_harness::data::{self, DataSets};
use posenc_harness::device::Devices;
use posenc_harness::interrupts::Interrupts;
use posenc_harness::lock::{self, Lock};
use posenc_harness::options::{Reproduce, parse_profile, parse_selectors, usable_catalog};
use posenc_harness::plan::{PlannedJob, Plans, Reason, expand, leave_out_absent_picks, lookup};
use posenc_harness::progress::Detail;
use posenc_harness::repository::Repository;
use posenc_harness::run_env::{ResultInputs, RunEnv, keep};
use posenc_harness::span::duration;
use posenc_harness::store::Store;
use posenc_harness::timings::{Timings, makespan};
use posenc_harness::{executor, machine, orphans, share, slurm};
use posenc_protocols::KINDS;

pub fn reproduce(repository: &Repository, options: &Reproduce) -> Result<ExitCode> {
    let began = Instant::now();
    let out = lock::output(repository, options.out.as_deref(), "out")?;
    if options.record && !options.allow_dirty && !options.dry_run {
        repository.refuse_changes()?;
    }
    let profile = parse_profile(&options.profile)?;
    let catalog = keep(match options.record {
        true => Catalog::read(repository.root(), KINDS)?,
        false => usable_catalog(repository, &options.include.include, KINDS)?,
    });
    let selectors = parse_selectors(catalog, &options.selectors)?;
    let data = keep(DataSets::new(data::source(repository, &options.data)?, options.seed));
    let store = keep(Store::new(&out));

    let mut selected = jobs(catalog.experiments.iter(), &selectors, profile);
    let builder = second_build::leave(&mut selected)?;
    let notices = announce::Notices::of(catalog, &selectors, profile, &selected, data)?;
    leave_out_absent_picks(&mut selected, data).iter().for_each(|line| eprintln!("{line}"));
    let devices = keep(match options.slurm {
        Some(_) => slurm::devices(&options.device),
        None => Devices::open(&options.device)?,
    });
    let mut planned =
        expand(selected, data, &repository.published_checksum(), options.seed, devices.training())?;
    if let Some(places) = &options.signals {
        planned.iter_mut().for_each(|job| job.restrict_to(places));
        if planned.iter().all(|job| job.to_run.is_empty()) {
            bail!("--signals {places} selects no signal of the selected groups");
        }
    }
    if options.plan.as_ref().is_some_and(|plan| *plan != share::checksum(&planned)) {
        bail!(
            "the plan differs from that of the machine that submitted this job: experiments, data, device or program changed, \
             or this machine has others; submit again"
        );
    }
    if let Some(share) = options.share {
        let timings = Timings::of_record(&repository.record(), &planned);
        share::keep(&mut planned, &timings, share);
    }

    if options.dry_run {
        notices.print(options.verbose);
        dry_run(repository, &planned, &out, store, options);
        return Ok(ExitCode::from(u8::from(!catalog.broken.is_empty())));
    }
    if let Some(tasks) = options.slurm
        && slurm::submit(repository, &out, &planned, store, options, tasks.into())?
    {
        return Ok(ExitCode::SUCCESS);
    }
    let plans = Plans::new(catalog, data, repository.published_checksum(), options.seed);
    let _joined = options.share.map(|share| lock::join(&out, share)).transpose()?;
    let _lock = options.share.is_none().then(|| Lock::take(&out)).transpose()?;
    if options.share.is_none() {
        store.sweep();
        sweep_checkpoints(store, &plans, options);
    }
    let work = to_run(&planned, store, options);
    let timings = Timings::read(&out, &repository.record(), &work);
    let units: usize = work.iter().map(|w| w.to_run.len()).sum();
    let total: usize = planned.iter().map(|p| p.to_run.len()).sum();
    let workers = options.jobs.map_or_else(machine::cores, usize::from);
    let seconds = estimated_time(&work, &timings, workers);
    let size = announce::Size { units, total, workers, seconds };
    notices.start(&size, options, &work, devices);
    let verdicts = posenc_report::verdicts(&out.join("report"));

    let detail = Detail::asked(options.quiet, options.verbose);
    let signals = Interrupts::listen().context("signal handlers cannot be installed")?;
    // Only now, after the handlers are installed: a file size limit is then a write error and does not end the process.
    guide::write(&out);
    let run = executor::Options {
        workers,
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
        let feed = options.share.is_none().then_some(feed);
        if feed.is_some() {
            scope.spawn(|| std::panic::catch_unwind(report));
        }
        let run = executor::Options { feed, ..run };
        executor::run(work, site, run, timings, detail)
    });
    signals.end_at_once();
    outcome.timings.write(&out);
    let page = out.join("report/README.md");
    let written = match options.share {
        Some(_) => Ok(results::Verdicts::default()),
        None => results::write(&inputs, None),
    };
    summary::tell_items(&outcome);
    if options.share.is_none() && written.is_ok() {
        print_changed_verdicts(&verdicts, &posenc_report::verdicts(&out.join("report")));
    }
    summary::tell_rest(&outcome, workers, options.force);
    // An interrupted run keeps its exit status even if its report cannot be written.
    if let Err(error) = written {
        let Some(signal) = outcome.interrupted else { return Err(error) };
        eprintln!("error: {error:#}");
        return Ok(ExitCode::from(128 + signal as u8));
    }
    if options.share.is_none() {
        println!("{}", page.display());
    }
    match (outcome.interrupted, builder) {
        (Some(signal), _) => Ok(ExitCode::from(128 + signal as u8)),
        (None, Some(builder)) => second_build::start(&builder),
        (None, None) => {
            let is_whole = outcome.failures.is_empty() && catalog.broken.is_empty();
            Ok(ExitCode::from(u8::from(!is_whole)))
        }
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

/// Jobs with units to run: without a record, or all with `--force`.
fn to_run(
    planned: &[PlannedJob<'static>],
    store: &Store,
    options: &Reproduce,
) -> Vec<PlannedJob<'static>> {
    let mut all = Vec::new();
    for p in planned {
        let mut units = Vec::new();
        let (path, seed) = (p.job.path(), p.job.seed_index);
        for (unit, reason) in lookup(p, store, options.force, options.verbose) {
            if let Reason::Damaged(why) = &reason {
                eprintln!("warning: {path} {}: {why}; running it again", unit.signal);
            }
            if options.verbose {
                eprintln!("to run: {path} seed {seed} {}: {reason}", unit.signal);
            }
            units.push(unit);
        }
        all.extend(Some(p.only(units)).filter(|job| !job.to_run.is_empty()));
    }
    all
}

/// Estimated seconds of jobs on `workers` workers, longest job first.
fn estimated_time(jobs: &[PlannedJob<'_>], timings: &Timings, workers: usize) -> f64 {
    let mut seconds: Vec<f64> = jobs.iter().map(|job| timings.seconds(job)).collect();
    seconds.sort_by(|a, b| b.total_cmp(a));
    makespan(&[], seconds.into_iter(), workers)
}

fn dry_run(
    repository: &Repository,
    planned: &[PlannedJob<'_>],
    out: &Path,
    store: &Store,
    options: &Reproduce,
) {
    let reasons: Vec<_> = planned.iter().map(|p| lookup(p, store, options.force, true)).collect();
    let jobs = planned.iter().zip(&reasons);
    let jobs =
        jobs.map(|(p, reasons)| p.only(reasons.iter().map(|(unit, _)| unit.clone()).collect()));
    let jobs: Vec<PlannedJob<'_>> = jobs.collect();
    let timings = Timings::read(out, &repository.record(), &jobs);
    for (p, reasons) in jobs.iter().zip(&reasons) {
        let time = duration(timings.seconds(p) / reasons.len().max(1) as f64);
        for (unit, reason) in reasons {
            let signal = if unit.signal == NO_SIGNAL { "" } else { &unit.signal };
            println!(
                "{} seed {} {signal} [{}]: {reason}, about {time}",
                p.job.path(),
                p.job.seed_index,
                p.job.recorded_profile
            );
        }
    }
    let total: usize = planned.iter().map(|p| p.to_run.len()).sum();
    let units: usize = jobs.iter().map(|p| p.to_run.len()).sum();
    let workers = options.jobs.map_or_else(machine::cores, usize::from);
    println!(
        "{units} of {total} units would run, about {} on {workers} workers",
        duration(estimated_time(&jobs, &timings, workers))
    );
}
