//! `reproduce`: runs the units without a record, then renders the report of this machine.

mod announce;
mod dry_run;
mod live;
pub mod results;
mod second_build;
mod summary;

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use posenc_experiments::plan::jobs;
use posenc_experiments::{Catalog, Experiment};

use super::report::print_changed_verdicts;
use posenc_harness::data::{self, DataSets};
use posenc_harness::device::Devices;
use posenc_harness::interrupts::Interrupts;
use posenc_harness::lock;
use posenc_harness::options::{Reproduce, parse_selectors, usable_catalog};
use posenc_harness::plan::{PlannedJob, Plans, expand, leave_out_absent_picks, lookup};
use posenc_harness::repository::Repository;
use posenc_harness::run_env::{ResultInputs, RunEnv, keep};
use posenc_harness::store::{Reason, Store};
use posenc_harness::timings::Timings;
use posenc_harness::{executor, machine, share, slurm};
use posenc_protocols::KINDS;

use live::Reporter;
use second_build::{SecondBuild, is_second};

pub fn reproduce(repository: &Repository, options: &Reproduce) -> Result<ExitCode> {
    let began = Instant::now();
    let out = lock::output(repository, options.out.as_deref())?;
    if options.record && !options.allow_dirty && !options.dry_run {
        repository.refuse_changes()?;
    }
    let profile = options.profile;
    let catalog = keep(match options.record {
        true => Catalog::read(repository.root(), KINDS)?,
        false => usable_catalog(repository, &options.include.include, KINDS)?,
    });
    let selectors = parse_selectors(catalog, &options.selectors)?;
    let data = keep(DataSets::new(data::source(repository, &options.data)?, options.seed));
    let store = keep(Store::new(&out));

    let mut selected = jobs(catalog.experiments.iter(), &selectors, profile);
    let mut second = SecondBuild::find(&selected)?;
    let notices = announce::Notices::of(catalog, &selectors, profile, &selected, data)?;
    let all = catalog.experiments.iter().filter(|e| selectors.matches_experiment(e));
    let items: BTreeSet<String> = all.map(Experiment::id).collect();
    let page = results::page(catalog, &out, &items);
    for line in leave_out_absent_picks(&mut selected, data) {
        if !is_second() {
            eprintln!("{line}");
        }
    }
    let devices = keep(match options.slurm {
        Some(_) => slurm::devices(&options.device),
        None => Devices::open(&options.device)?,
    });
    let mut planned =
        expand(selected, data, &repository.published_checksum(), options.seed, devices.training())?;
    if let Some(places) = &options.signals {
        planned.iter_mut().for_each(|job| job.restrict_to(places));
        if planned.iter().all(|job| job.to_run.is_empty()) {
            bail!("--signals selects no signal of the selected groups");
        }
    }
    if let Some(second) = &mut second {
        planned = second.take(planned, store, options.again());
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
        let lines = notices.print(options.verbose);
        dry_run::print(&planned, store, options, [&repository.record(), &out], lines);
        return Ok(ExitCode::from(u8::from(!catalog.broken.is_empty())));
    }
    if let Some(tasks) = options.slurm
        && slurm::submit(repository, &out, &planned, store, options, tasks.into())?
    {
        return Ok(ExitCode::SUCCESS);
    }
    let plans = Plans::new(catalog, data, repository.published_checksum(), options.seed);
    let _lock = lock::take(&out, options.share)?;
    if options.share.is_none() {
        store.sweep();
    }
    let work = to_run(&planned, store, options);
    let timings = Timings::read(&out, &repository.record(), &work);
    let units: usize = work.iter().map(|w| w.to_run.len()).sum();
    let (waiting, unbuilt) = second.as_ref().map_or((0, 0), |own| (own.units(), own.total));
    let total = planned.iter().map(|p| p.to_run.len()).sum::<usize>() + unbuilt;
    let workers = options.jobs.map_or_else(machine::cores, usize::from);
    let time = timings.makespan(&work, workers);
    let size = announce::Size { units, waiting, total, workers, time };
    notices.start(&size, options, &work, devices);
    let verdicts = posenc_report::verdicts(&out.join("report"), true);

    let signals = Interrupts::listen().context("signal handlers cannot be installed")?;
    let run = executor::Options {
        workers,
        selectors: selectors.clone(),
        memory: options.memory,
        end: options.budget.and_then(|budget| began.checked_add(budget.0)),
        signals: signals.clone(),
        feed: None,
        is_verbose: options.verbose,
    };
    let commit = keep(repository.commit());
    let site = RunEnv { store, data, devices, seed: options.seed, commit };
    let inputs = ResultInputs { repository, plans: &plans, store, devices, options, out: &out };
    let of_second = second.as_ref().map(|own| own.waiting.clone()).unwrap_or_default();
    let (outcome, untold) = std::thread::scope(|scope| {
        let (feed, reporter) = Reporter::new(inputs, units, of_second.clone(), page.clone());
        // A panic of the reporter must not end the run, which writes a final report in any case.
        let report = AssertUnwindSafe(move || reporter.run());
        let feed = options.share.is_none().then_some(feed);
        let reporting =
            feed.is_some().then(|| scope.spawn(move || std::panic::catch_unwind(report)));
        let run = executor::Options { feed, ..run };
        let outcome = executor::run(work, site, run, timings);
        let untold = reporting.and_then(|thread| thread.join().ok()).and_then(Result::ok);
        (outcome, untold.unwrap_or_default())
    });
    signals.end_at_once();
    outcome.timings.write(&out);
    let written = match options.share {
        Some(_) => Ok(results::Verdicts::default()),
        None => {
            // A run of some items keeps the tables of the others.
            let only = Some(&items).filter(|_| !selectors.is_everything());
            results::write(&inputs, None, only)
        }
    };
    if let (None, Ok(own)) = (options.share, &written) {
        for finished in &untold {
            eprintln!("{}", live::line(catalog, &finished.item, own, &of_second));
        }
        print_changed_verdicts(&verdicts, &posenc_report::verdicts(&out.join("report"), true));
    }
    summary::tell(&outcome, waiting, options.force);
    // An interrupted run keeps its exit status even if its report cannot be written.
    if let Err(error) = written {
        let Some(signal) = outcome.interrupted else { return Err(error) };
        eprintln!("error: {error:#}");
        return Ok(ExitCode::from(128 + signal as u8));
    }
    if let (None, Some(second)) = (outcome.interrupted, second) {
        return second.start();
    }
    if options.share.is_none() {
        println!("{}", page.display());
    }
    Ok(match outcome.interrupted {
        Some(signal) => ExitCode::from(128 + signal as u8),
        None => ExitCode::from(u8::from(outcome.failures > 0 || !catalog.broken.is_empty())),
    })
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
        for (unit, reason) in lookup(p, store, options.again(), options.verbose) {
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
