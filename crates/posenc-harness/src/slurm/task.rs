//! A task on a node, which runs a share of the units.

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use posenc_experiments::Catalog;
use posenc_experiments::plan::jobs;

use super::files::{self, Attempt, Folder, Share, TaskReport};
use super::{Program, shares};
use crate::data::{self, DataSets};
use crate::device::Devices;
use crate::executor;
use crate::interrupts::Interrupts;
use crate::options::{parse_profile, parse_selectors};
use crate::plan::{expand, pending};
use crate::progress::Detail;
use crate::repository::Repository;
use crate::run_env::{RunEnv, keep};
use crate::store::Store;
use crate::timings::Timings;

/// Runs a share. Exits with 1 if a job failed, 2 if nothing could run; the task's report describes the result.
pub fn run(folder: &Folder, name: &str, cores: u16, program: &Program) -> Result<ExitCode> {
    // A restarted task adds to its earlier report.
    let before: Option<TaskReport> = files::read_if_there(&folder.task(name)).unwrap_or_default();
    let mut report = TaskReport {
        attempts: before.map_or_else(Vec::new, |before| before.attempts),
        ..TaskReport::default()
    };
    let result = run_share(folder, name, cores, program, &mut report);
    report.ended = true;
    report.error = result.as_ref().err().map(|error| format!("{error:#}"));
    files::write(&folder.task(name), &report)?;
    result?;
    Ok(ExitCode::from(u8::from(!report.failed.is_empty())))
}

fn run_share(
    folder: &Folder,
    name: &str,
    cores: u16,
    program: &Program,
    report: &mut TaskReport,
) -> Result<()> {
    let node = node();
    let share: Share = files::read(&folder.share(name))?;
    let (root, options) = folder.run()?.options()?;
    let repository = Repository::find(Some(&root))?;
    let catalog = keep(Catalog::read(repository.root(), program.kinds)?);
    let selectors = parse_selectors(catalog, &options.selectors)?;
    let data = keep(DataSets::new(data::source(&repository, &options.data)?, options.seed));
    let profile = parse_profile(&options.profile)?;
    let selected = shares::only(jobs(catalog.experiments.iter(), &selectors, profile), &share);
    let devices = Devices::open(&options.device).with_context(|| format!("node {node}"))?;
    let devices = keep(devices);
    let published = repository.published_checksum();
    let planned = expand(selected, data, &published, options.seed, devices.training())?;
    let planned = shares::found(&share, planned, &node)?;
    let out = repository.out(options.out.as_deref());
    let store = keep(Store::new(&out));
    let work = pending(&planned, store, false);
    let all: usize = planned.iter().map(|p| p.to_run.len()).sum();
    let to_run = work.iter().map(|w| w.to_run.len()).sum();
    eprintln!("share {name} on {node}: {to_run} of {all} units to run, {} on record", all - to_run);
    report.attempts.push(Attempt { node, on_record: all - to_run, to_run });
    files::write(&folder.task(name), report)?;
    let workers = usize::from(options.jobs.unwrap_or(cores));
    // Slurm sends SIGTERM before it ends a task: jobs in flight then write checkpoints.
    let signals = Interrupts::listen().context("signal handlers cannot be installed")?;
    let run = executor::Options {
        workers,
        memory: options.memory,
        signals: signals.clone(),
        ..executor::Options::default()
    };
    let commit = keep(repository.commit());
    let site = RunEnv { store, data, devices, seed: options.seed, commit };
    let timings = Timings::read(&out, &repository.record(), &work);
    let outcome = executor::run(work, site, run, timings, Detail::Usual);
    signals.end_at_once();
    report.failed.extend(outcome.failures.into_iter().map(|f| (f.key, f.message)));
    Ok(())
}

/// The node's name according to Slurm, else the host name.
fn node() -> String {
    std::env::var("SLURMD_NODENAME").unwrap_or_else(|_| posenc_files::host())
}
