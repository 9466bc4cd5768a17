//! Running a plan on the nodes of a cluster (`--executor slurm`).
//!
//! [`shares`] splits the plan into shares of about equal cost. Each share is a task of a job array that runs this same binary
//! ([`task`]) on a directory that all nodes share. A task reads its share, plans again, rejects a key that differs from the
//! submitter's, and writes records as a run on one machine does. A collecting step after the array ([`gather`]) submits missing
//! units once more, then writes tables and report. The submitting process waits but is not needed ([`watch`]): the complete
//! state of a run is in files ([`files`]).

mod client;
mod files;
mod gather;
mod shares;
mod submit;
mod task;
mod watch;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use posenc_experiments::Kinds;
use posenc_experiments::shell::quoted;

use crate::device::Devices;
use crate::interrupts::Interrupts;
use crate::lock::{self, Lock};
use crate::options::{Executor, Reproduce};
use crate::plan::{PlannedJob, pending};
use crate::repository::Repository;
use crate::run_env::ResultInputs;
use crate::span::duration;
use crate::store::Store;
use crate::timings::Timings;

/// Arguments of a Slurm job.
#[derive(Args)]
pub struct Task {
    /// Directory of the run.
    #[arg(long, value_name = "DIR")]
    run: PathBuf,
    /// Round, from 1.
    #[arg(long, value_name = "R", value_parser = clap::value_parser!(u16).range(1..))]
    round: u16,
    /// Units run at a time.
    #[arg(long, value_name = "N", default_value_t = 1)]
    jobs: u16,
    /// The share that reads the clock, instead of the one whose number Slurm gives.
    #[arg(long, conflicts_with = "collect")]
    clock: bool,
    /// The collecting step.
    #[arg(long)]
    collect: bool,
}

/// Parts of the program outside the harness that the collecting step needs.
pub struct Program {
    /// All protocols.
    pub kinds: Kinds,
    /// Writes tables and report of this machine and, if requested, the reference records.
    pub write_results: fn(&ResultInputs<'_>) -> Result<()>,
}

/// Runs a job of Slurm.
pub fn work(options: &Task, program: &Program) -> Result<ExitCode> {
    let folder = files::Folder::at(&options.run);
    let round = usize::from(options.round);
    if options.collect {
        return gather::gather(&folder, round, program);
    }
    let number = match (options.clock, std::env::var("SLURM_ARRAY_TASK_ID")) {
        (true, _) => None,
        (false, Ok(text)) if text.parse::<usize>().is_ok() => text.parse().ok(),
        _ => bail!("`work` is for Slurm jobs; run `cargo xtask reproduce --executor slurm`"),
    };
    task::run(&folder, &files::name(round, number), options.jobs, program)
}

/// The devices of a run. They are opened only if training runs on this machine.
pub fn devices(options: &Reproduce) -> Result<Devices> {
    match options.executor.executor {
        Executor::Local => Devices::open(&options.device),
        Executor::Slurm => submit::devices(options),
    }
}

/// Rejects a local run in a directory that an active Slurm run owns.
pub fn refuse_beside(out: &Path) -> Result<()> {
    if let Some((folder, run)) = submit::alive(out)? {
        bail!(
            "Slurm run {} is active in {}; wait for it (the same command with --executor slurm), cancel it \
             (scancel --name={}), or use another --out DIR",
            run.id,
            folder.path().display(),
            run.job_name()
        );
    }
    Ok(())
}

/// Runs a plan on Slurm: submits it or attaches to the active run, then waits. `None` if nothing is left to run.
pub fn run(
    repository: &Repository,
    options: &Reproduce,
    planned: &[PlannedJob<'_>],
    store: &Store,
) -> Result<Option<ExitCode>> {
    let out = std::path::absolute(lock::output(repository, options.out.as_deref(), "out")?)?;
    let root = std::path::absolute(repository.root())?;
    client::check()?;
    // Held while looking for a run and submitting, not while waiting.
    let lock = Lock::take(&out)?;
    let arguments = submit::arguments(repository, options)?;
    let (folder, run, asked) = match submit::alive(&out)? {
        Some((_, run)) if run.arguments != arguments => bail!(
            "Slurm run {} is active in {} with other arguments (posenc {}); wait for it, cancel it \
             (scancel --name={}), or use another --out DIR",
            run.id,
            out.display(),
            run.arguments.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "),
            run.job_name()
        ),
        Some((folder, run)) => {
            eprintln!("run {} is already running this", run.id);
            (folder, run, listen()?)
        }
        None => {
            store.sweep();
            let work = pending(planned, store, false);
            if work.is_empty() {
                return Ok(None);
            }
            // Handlers are installed first, so that an interrupt does not leave a partial submission.
            let asked = listen()?;
            let units = work.iter().map(|w| w.to_run.len()).sum();
            let (folder, run) = submit::begin(&out, &root, arguments, options, units)?;
            let submitted = submit::round(&folder, &run, &root, work, 1)
                .inspect_err(|_| submit::release(&out, &run.id))?;
            let tasks = files::Folder::names(1, &submitted).len();
            eprintln!(
                "run {}: {units} units in {tasks} tasks, {}",
                run.id,
                folder.path().display()
            );
            (folder, run, asked)
        }
    };
    drop(lock);
    if options.executor.detach {
        let name = run.job_name();
        eprintln!("queue:  squeue --name={name}");
        eprintln!("logs:   {}", logs(folder.path()));
        eprintln!("wait:   the same command without --detach");
        eprintln!("cancel: scancel --name={name}");
        return Ok(Some(ExitCode::SUCCESS));
    }
    eprintln!("Ctrl-C cancels the run; with --detach it continues on its own");
    let work = pending(planned, store, false);
    watch::watch(&folder, &run, &out, store, &work, &asked).map(Some)
}

/// The logs of all tasks, as a shell word with a wildcard.
fn logs(folder: &Path) -> String {
    format!("{}/task-*.log", quoted(&folder.display().to_string()))
}

fn listen() -> Result<Interrupts> {
    Interrupts::listen().context("signal handlers cannot be installed")
}

/// Prints how a plan would be split, for `--dry-run`.
pub fn print_shares(
    planned: &[PlannedJob<'_>],
    store: &Store,
    timings: &Timings,
    options: &Reproduce,
) {
    let size = options.executor.slurm.array_size.map(usize::from);
    let split = shares::split(pending(planned, store, false), timings, size);
    let clock = (!split.clock.is_empty()).then_some(("clock".to_owned(), &split.clock));
    let tasks = split.tasks.iter().enumerate().map(|(n, share)| (n.to_string(), share));
    for (name, share) in tasks.chain(clock) {
        let units: usize = share.iter().map(|w| w.to_run.len()).sum();
        let seconds: f64 = share.iter().map(|w| timings.seconds(w)).sum();
        println!(
            "task {name}: {} jobs, {units} units, about {} on one core",
            share.len(),
            duration(seconds)
        );
    }
}
