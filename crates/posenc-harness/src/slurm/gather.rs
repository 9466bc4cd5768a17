//! The collecting step: resubmits missing units or reports them with their reasons, then writes tables and report.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use posenc_experiments::Catalog;
use posenc_experiments::plan::{Job, NO_SIGNAL, jobs};

use super::files::{
    self, ClusterRun, Ending, FORMAT, FailedUnit, Folder, Round, Share, TaskReport,
};
use super::{Program, client, shares, submit};
use crate::data::{self, DataSets};
use crate::options::{Reproduce, parse_profile, parse_selectors};
use crate::plan::{PlannedJob, Plans, expand, pending};
use crate::repository::Repository;
use crate::run_env::{ResultInputs, keep};
use crate::store::Store;
use crate::unit::Unit;

/// Maximum number of rounds: the first, and resubmissions of units whose tasks died. Slurm itself requeues tasks whose node fails.
/// Resubmissions cover the other causes: time limits, memory limits, forbidden requeues.
const MOST_ROUNDS: usize = 3;

/// Name of the file that marks a run as cancelled, so that missing units are not resubmitted.
pub const CANCELLED: &str = "cancelled";

/// Outcome of a job with units that have no record.
#[derive(Clone)]
enum Fate {
    /// Running the job again would end the same way, or is not wanted.
    Settled(String),
    Lost(String),
}

struct Submitted {
    round: usize,
    name: String,
    share: Share,
    report: TaskReport,
}

pub fn gather(folder: &Folder, round: usize, program: &Program) -> Result<ExitCode> {
    let run = folder.run()?;
    let (root, options) = run.options()?;
    if folder.state()?.rounds.len() > round || folder.ending()?.is_some() {
        // Slurm restarted this step after it had finished.
        return Ok(ExitCode::SUCCESS);
    }
    let repository = Repository::find(Some(&root))?;
    let out = repository.out(options.out.as_deref());
    posenc_files::protect(&out);
    let ending = match step(folder, &run, &repository, &options, round, program) {
        Ok(None) => return Ok(ExitCode::SUCCESS),
        Ok(Some(ending)) => ending,
        Err(error) => {
            eprintln!("error: {error:#}");
            Ending { error: Some(format!("{error:#}")), rounds: round, ..Ending::default() }
        }
    };
    let is_well = ending.error.is_none() && ending.failed.is_empty();
    files::write(&folder.file("result.json"), &ending)?;
    submit::release(&out, &run.id);
    let _ = posenc_files::remove(&folder.file("posenc"));
    Ok(ExitCode::from(u8::from(!is_well)))
}

/// `None` if another round was submitted.
fn step(
    folder: &Folder,
    run: &ClusterRun,
    repository: &Repository,
    options: &Reproduce,
    round: usize,
    program: &Program,
) -> Result<Option<Ending>> {
    let catalog = keep(Catalog::read(repository.root(), program.kinds)?);
    let selectors = parse_selectors(catalog, &options.selectors)?;
    let data = DataSets::new(data::source(repository, &options.data)?, options.seed);
    let profile = parse_profile(&options.profile)?;
    let devices = submit::devices(options)?;
    let out = repository.out(options.out.as_deref());
    let store = Store::new(&out);
    let rounds = rounds(folder, round)?;
    let submitted = all_shares(folder, &rounds)?;

    // Units of later rounds are among those of the first.
    let first = submitted.iter().filter(|s| s.round == 1);
    let all = Share {
        format: FORMAT,
        seconds: 0.0,
        jobs: first.flat_map(|s| s.share.jobs.iter().cloned()).collect(),
    };
    let selected = shares::only(jobs(catalog.experiments.iter(), &selectors, profile), &all);
    let published = repository.published_checksum();
    let planned = expand(selected, &data, &published, options.seed, devices.training())?;
    let planned = shares::found(&all, planned, "the node of the collecting step")?;
    let restarts = submitted.iter().map(|s| s.report.attempts.len().saturating_sub(1)).sum();
    let mut ending = Ending { rounds: round, restarts, ..Ending::default() };
    let mut again = Vec::new();
    let mut fates: BTreeMap<&str, Fate> = BTreeMap::new();
    for work in pending(&planned, &store, false) {
        let path = work.job.path();
        let is_its = |s: &&Submitted| {
            let jobs = &s.share.jobs;
            jobs.iter().any(|j| j.repetition == work.job.seed_index && j.path == path)
        };
        let Some(last) = submitted.iter().rev().find(is_its) else { continue };
        let log = folder.log(&last.name);
        // Units of a job end separately: one may have failed before the task died at the next.
        let own = &last.report.failed;
        let (settled, open): (Vec<Unit>, Vec<Unit>) =
            work.to_run.iter().cloned().partition(|unit| own.contains_key(&unit.parts.key()));
        for unit in &settled {
            let why = own.get(&unit.parts.key()).map_or("", String::as_str);
            ending.failed.push(failed(&work.job, unit, why, &log));
        }
        if open.is_empty() {
            continue;
        }
        let work = work.only(open);
        let fate = match &last.report.error {
            Some(why) => {
                // The node refused the share before it ran any unit.
                keep_failures(&store, &work, why);
                Fate::Settled(why.clone())
            }
            None => fates
                .entry(&last.name)
                .or_insert_with(|| fate(folder, &rounds[last.round - 1], &last.name))
                .clone(),
        };
        let why = match fate {
            Fate::Settled(why) => why,
            Fate::Lost(why) if round < MOST_ROUNDS => {
                eprintln!("lost: {path}: {why}; submitting it again");
                again.push(work);
                continue;
            }
            Fate::Lost(why) => {
                let why = format!("{why}; gave up after {round} submissions");
                keep_failures(&store, &work, &why);
                why
            }
        };
        ending.failed.extend(work.to_run.iter().map(|unit| failed(&work.job, unit, &why, &log)));
    }
    if !again.is_empty() {
        submit::round(folder, run, repository.root(), again, round + 1)?;
        return Ok(None);
    }
    for unit in &ending.failed {
        eprintln!("failed: {}: {} ({})", unit.unit, unit.reason, unit.log.display());
    }
    ending.recorded = run.units.saturating_sub(ending.failed.len());
    let plans = Plans::new(catalog, &data, published, options.seed);
    let (plans, store, devices, out) = (&plans, &store, &devices, &*out);
    (program.write_results)(&ResultInputs { repository, plans, store, devices, options, out })?;
    ending.page = Some(out.join("report/README.md"));
    Ok(Some(ending))
}

/// Reads the rounds. Waits until the submitter has written this round, because Slurm may start the step earlier.
fn rounds(folder: &Folder, round: usize) -> Result<Vec<Round>> {
    for _ in 0..600 {
        let rounds = folder.state()?.rounds;
        if rounds.len() >= round {
            return Ok(rounds);
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    anyhow::bail!("{} does not have round {round}", folder.file("state.json").display())
}

/// All shares with the reports of their tasks, in the order of rounds.
fn all_shares(folder: &Folder, rounds: &[Round]) -> Result<Vec<Submitted>> {
    let mut all = Vec::new();
    for (index, submitted) in rounds.iter().enumerate() {
        for name in Folder::names(index + 1, submitted) {
            let share = files::read(&folder.share(&name))?;
            // An unreadable report counts as missing: the task died before it finished writing.
            let report = files::read_if_there(&folder.task(&name)).ok().flatten();
            let report = report.unwrap_or_default();
            all.push(Submitted { round: index + 1, name, share, report });
        }
    }
    Ok(all)
}

/// Outcome of a task that left units without a record and without a reported failure.
fn fate(folder: &Folder, submitted: &Round, name: &str) -> Fate {
    let number = match name.split_once('-') {
        Some((_, "clock")) => submitted.clock.clone(),
        Some((_, index)) => submitted.array.as_ref().map(|(array, _)| format!("{array}_{index}")),
        None => None,
    };
    let state = number.and_then(|number| client::ended(&number));
    let state = state.unwrap_or_else(|| "Slurm no longer has its state".to_owned());
    if posenc_files::is_there(&folder.file(CANCELLED)) || state.starts_with("CANCELLED") {
        return Fate::Settled(format!("the task was cancelled ({state})"));
    }
    Fate::Lost(format!("the task died ({state})"))
}

/// Stores failures on behalf of a task that died or never started, so that the report shows them.
fn keep_failures(store: &Store, work: &PlannedJob<'_>, reason: &str) {
    let experiment = work.job.experiment;
    for unit in &work.to_run {
        let failure = work.failure(unit, reason, 0.0);
        if let Err(error) = store.write_failure(&experiment.paper, &experiment.item, &failure) {
            eprintln!("warning: the failure cannot be stored: {error:#}");
        }
    }
}

/// A unit without a record, with the reason.
fn failed(job: &Job<'_>, unit: &Unit, reason: &str, log: &Path) -> FailedUnit {
    let signal = if unit.signal == NO_SIGNAL { "" } else { &unit.signal };
    FailedUnit {
        unit: format!("{} seed {} {signal}", job.path(), job.seed_index).trim_end().to_owned(),
        reason: reason.to_owned(),
        log: log.to_owned(),
    }
}
