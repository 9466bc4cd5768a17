//! `reproduce`: run what has no record yet, then render the report of this machine.

mod announce;
mod fresh;
pub mod results;
mod summary;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use posenc_experiments::plan::{NO_SIGNAL, jobs};
use posenc_experiments::schema::Protocol;
use posenc_experiments::selector::Selectors;
use posenc_experiments::{Catalog, Profile};

use crate::arguments::Reproduce;
use crate::executor::{self, Executor};
use crate::repository::Repository;
use crate::run::data::{self, DataSets};
use crate::run::events::{Event, Events, millis};
use crate::run::lock::Lock;
use crate::run::orphans;
use crate::run::pace::{Pace, makespan};
use crate::run::plan::{PlannedJob, Reason, expand, leave_out_absent_picks, look};
use crate::run::progress::{Detail, Progress};
use crate::run::signals::{self, Signals};
use crate::run::span::duration;
use crate::run::store::Store;
use crate::run::work::{self, Site, Work, keep};
use crate::run::worker::is_together;
use crate::{machine, protocols};

/// Runs the verb.
pub fn reproduce(repository: &Repository, options: &Reproduce) -> Result<ExitCode> {
    let began = Instant::now();
    options.executor.check(options)?;
    if let Some(record) = &options.from {
        return super::repeat::repeat(repository, options, record);
    }
    let profile = parse_profile(&options.profile)?;
    let catalog = keep(Catalog::read(repository.root())?);
    let selectors = parse_selectors(catalog, &options.selectors)?;
    let data = keep(DataSets::new(data::source(repository, &options.data)?, options.seed));
    let out = repository.out(options.out.as_deref());
    let store = keep(Store::new(&out));

    let mut selected = jobs(catalog.experiments.iter(), &selectors, profile);
    announce::refusals(catalog, &selectors, profile);
    announce::data_sets(&selected, data)?;
    leave_out_absent_picks(&mut selected, data).iter().for_each(|line| eprintln!("{line}"));
    let devices = keep(executor::devices(options)?);
    let class = |protocol: &Protocol| devices.class(protocol);
    let planned = expand(selected, data, &repository.published_checksum(), options.seed, &class)?;

    if options.dry_run {
        return dry_run(&planned, &out, store, options);
    }
    if options.executor.executor == Executor::Slurm
        && let Some(code) = executor::run(repository, options, &planned, store)?
    {
        return Ok(code);
    }
    let _lock = Lock::take(&out)?;
    executor::refuse_beside(&out)?;
    store.sweep();
    sweep_checkpoints(store, repository, catalog, data, options);
    let mut pace = Pace::read(&out);
    let work = to_run(&planned, store, options, &mut pace);
    let units: usize = work.iter().map(|w| w.units.len()).sum();
    let total: usize = planned.iter().map(|p| p.units.len()).sum();
    if options.failed {
        eprintln!("profile {profile}: {units} units of {total} to run, which failed last time");
    } else {
        eprintln!(
            "profile {profile}: {units} of {total} units to run, {} on record",
            total - units
        );
    }
    let workers = options.jobs.map_or_else(machine::cores, usize::from);
    announce::devices(&work, devices);
    let verdicts = summary::Verdicts::read(catalog, &work, &out.join("record"));

    let detail = Detail::asked(options.quiet, options.verbose);
    let events = options.events.as_deref().map_or_else(|| Ok(Events::none()), Events::open)?;
    let mut progress = Progress::new(units, workers, detail, events);
    progress.event(&Event::RunStarted {
        version: env!("CARGO_PKG_VERSION"),
        profile: profile.name(),
        seed: options.seed,
        units,
        workers,
        estimated_seconds: millis(foretold(&work, &pace, workers)),
    });
    let signals = Signals::listen().context("signals cannot be listened to")?;
    let run = work::Options {
        workers,
        fail_fast: options.fail_fast && !options.keep_going,
        timeout: options.timeout,
        memory: options.memory,
        end: options.budget.and_then(|budget| began.checked_add(budget.0)),
        signals: signals.clone(),
    };
    let site = Site { store, data, devices, seed: options.seed };
    let outcome = work::run(work, site, &run, pace, &mut progress);
    signals.end_at_once();
    outcome.pace.write(&out);
    let page = out.join("report/README.md");
    let report = fresh::Fresh { repository, catalog, data, devices, options, out: &out };
    let written = if options.record || units > 0 || !report.is_fresh() {
        results::write(repository, catalog, store, data, devices, options, &out)
            .map(|()| report.keep())
    } else {
        Ok(())
    };
    let changed = verdicts.changed();
    progress.event(&Event::RunFinished {
        units: outcome.items.values().map(|tally| tally.done).sum(),
        failed: outcome.failures.len(),
        left: outcome.left.0,
        seconds: millis(progress.elapsed()),
        interrupted: outcome.interrupted.map(signals::name),
        verdicts: &changed,
        report: page.display().to_string(),
    });
    summary::tell(&outcome, &changed, workers, options.force);
    // What the run itself has to say is not lost with its report.
    if let Err(error) = written {
        let Some(signal) = outcome.interrupted else { return Err(error) };
        eprintln!("error: {error:#}");
        return Ok(ExitCode::from(128 + signal as u8));
    }
    // Events have the standard output for themselves.
    match options.events.as_deref() == Some(Path::new("-")) {
        true => eprintln!("{}", page.display()),
        false => println!("{}", page.display()),
    }
    Ok(match outcome.interrupted {
        Some(signal) => ExitCode::from(128 + signal as u8),
        None => ExitCode::from(u8::from(!outcome.failures.is_empty())),
    })
}

/// Removes checkpoints that no run resumes from.
fn sweep_checkpoints(
    store: &Store,
    repository: &Repository,
    catalog: &Catalog,
    data: &DataSets,
    options: &Reproduce,
) {
    let published = repository.published_checksum();
    let (seed, is_forced) = (options.seed, options.force);
    let plans = orphans::Plans { catalog, data, seed, published: &published, is_forced };
    match orphans::sweep(store, plans) {
        Ok(0) => {}
        Ok(removed) => {
            eprintln!("removed checkpoints that no run resumes from: {removed}");
        }
        Err(error) => eprintln!("warning: checkpoints of older versions are kept: {error:#}"),
    }
}

/// What has no record, or was asked for, with what records say of how long such work takes.
fn to_run(
    planned: &[PlannedJob<'static>],
    store: &Store,
    options: &Reproduce,
    pace: &mut Pace,
) -> Vec<Work<'static>> {
    let failed = options.failed.then(|| failed(planned, store));
    let mut all = Vec::new();
    for p in planned {
        let looked = look(p, store, options.force, options.verbose);
        let kind = p.job.protocol().name();
        if is_together(&p.job) {
            // Without a record there is nothing that was measured.
            let units = looked.seconds.len();
            let seconds = looked.seconds.iter().sum();
            if units > 0 {
                pace.add(kind, protocols::cost(&p.job, p.shape, units), seconds);
            }
        } else {
            let cost = protocols::cost(&p.job, p.shape, 1);
            looked.seconds.iter().for_each(|seconds| pace.add(kind, cost, *seconds));
        }
        let mut units = Vec::new();
        for (unit, reason) in looked.pending {
            if failed.as_ref().is_some_and(|failed| !failed.contains(&unit.parts.key())) {
                continue;
            }
            if let Reason::Damaged(why) = &reason {
                eprintln!("warning: {} {}: {why}; it is run again", p.job.path(), unit.signal);
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

/// Keys of the units of a plan's items whose failures are kept.
fn failed(planned: &[PlannedJob<'_>], store: &Store) -> BTreeSet<String> {
    let items: BTreeSet<(&str, &str)> = planned
        .iter()
        .map(|p| (p.job.experiment.paper.as_str(), p.job.experiment.item.as_str()))
        .collect();
    let mut keys = BTreeSet::new();
    for (paper, item) in items {
        let (failures, damaged) = store.failures(paper, item);
        damaged.iter().for_each(|line| eprintln!("note: {line}"));
        keys.extend(failures.iter().map(|failure| failure.parts.key()));
    }
    keys
}

/// How long the work takes on so many workers, as far as is known.
fn foretold(work: &[Work<'_>], pace: &Pace, workers: usize) -> f64 {
    let mut seconds: Vec<f64> = work.iter().map(|w| pace.seconds(w.kind(), w.cost)).collect();
    seconds.sort_by(|a, b| b.total_cmp(a));
    makespan(&[], seconds.into_iter(), workers)
}

/// The profile of that name.
pub fn parse_profile(name: &str) -> Result<Profile> {
    let Some(profile) = Profile::parse(name) else {
        bail!("--profile {name}: allowed are {}", Profile::ALL.map(Profile::name).join(", "));
    };
    Ok(profile)
}

/// Parses selectors and refuses those that select nothing: a typo must not look like success.
pub fn parse_selectors(catalog: &Catalog, texts: &[String]) -> Result<Selectors> {
    let selectors = Selectors::parse(texts).map_err(anyhow::Error::msg)?;
    let mut all = Vec::new();
    for e in &catalog.experiments {
        for g in &e.groups {
            for v in &g.variants {
                all.push((e.paper.as_str(), e.item.as_str(), g.id.as_str(), v.id.as_str()));
            }
        }
    }
    let unmatched = selectors.unmatched(&all);
    if let Some(first) = unmatched.first() {
        let ids: Vec<String> = catalog.experiments.iter().map(|e| e.id()).collect();
        let hint = posenc_experiments::yaml::nearest(first, ids.iter().map(String::as_str))
            .map(|n| format!(" Did you mean {n}?"))
            .unwrap_or_default();
        bail!("selector `{first}` selects nothing.{hint} `cargo xtask list` shows all.");
    }
    Ok(selectors)
}

/// Prints the plan.
fn dry_run(
    planned: &[PlannedJob<'_>],
    out: &Path,
    store: &Store,
    options: &Reproduce,
) -> Result<ExitCode> {
    let failed = options.failed.then(|| failed(planned, store));
    let mut pace = Pace::read(out);
    let (mut units, mut lines, mut waiting) = (0, Vec::new(), Vec::new());
    for p in planned {
        let mut looked = look(p, store, options.force, true);
        if let Some(failed) = &failed {
            looked.pending.retain(|(unit, _)| failed.contains(&unit.parts.key()));
        }
        let kind = p.job.protocol().name();
        let cost = protocols::cost(&p.job, p.shape, 1);
        if !is_together(&p.job) {
            looked.seconds.iter().for_each(|seconds| pace.add(kind, cost, *seconds));
        }
        units += looked.pending.len();
        let cost = protocols::cost(&p.job, p.shape, looked.pending.len());
        for (unit, reason) in &looked.pending {
            let signal = if unit.signal == NO_SIGNAL { "" } else { &unit.signal };
            let name = format!(
                "{} seed {} {signal} [{}]: {reason}",
                p.job.path(),
                p.job.seed_index,
                p.job.recorded_profile
            );
            lines.push((name, kind, cost / looked.pending.len() as f64));
        }
        waiting.push((kind, cost));
    }
    // Only now is known how long such units took.
    let mut text = String::new();
    for (name, kind, cost) in lines {
        text += &format!("{name}, about {}\n", duration(pace.seconds(kind, cost)));
    }
    let total: usize = planned.iter().map(|p| p.units.len()).sum();
    let workers = options.jobs.map_or_else(machine::cores, usize::from);
    let mut seconds: Vec<f64> = waiting.into_iter().map(|(k, c)| pace.seconds(k, c)).collect();
    seconds.sort_by(|a, b| b.total_cmp(a));
    let seconds = makespan(&[], seconds.into_iter(), workers);
    println!(
        "{text}{units} of {total} units would run, about {} on {workers} workers",
        duration(seconds)
    );
    if options.executor.executor == Executor::Slurm {
        executor::print_shares(planned, store, options);
    }
    Ok(ExitCode::SUCCESS)
}
