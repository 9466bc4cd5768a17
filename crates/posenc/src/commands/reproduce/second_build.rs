//! Units of attention models in the first build, which lacks these models and takes half the time. `cargo xtask` then makes a second
//! build, which runs them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};
use posenc_experiments::plan::Job;
use posenc_harness::options::Again;
use posenc_harness::plan::{PlannedJob, lookup};
use posenc_harness::protocol::is_built;
use posenc_harness::span::counted;
use posenc_harness::store::Store;

/// Environment variable with the path of `xtask`, which makes the second build.
const BUILDER: &str = "POSENC_XTASK";
/// Environment variable that tells `xtask`, and then the second build, that it is the second.
const BUILD: (&str, &str) = ("POSENC_BUILD", "second");

/// Whether this process continues the run of the first build, which has printed what both have in common.
pub fn is_second() -> bool {
    std::env::var_os(BUILD.0).is_some_and(|build| build == BUILD.1)
}

/// The second build, with the units that wait for it.
pub struct SecondBuild {
    program: PathBuf,
    /// Number of waiting units, by `paper/item`.
    pub waiting: BTreeMap<String, usize>,
    /// Number of units that this build cannot run, with those on record.
    pub total: usize,
}

impl SecondBuild {
    /// The program that makes the second build; `None` if this build can run all jobs.
    pub fn find(jobs: &[Job<'_>]) -> Result<Option<Self>> {
        let Some(job) = jobs.iter().find(|job| !is_built(job.protocol())) else { return Ok(None) };
        let program = std::env::var_os(BUILDER).with_context(|| {
            format!(
                "this build of posenc has no attention models, which protocol `{}` needs; build it with its default features, \
                 or start it as `cargo xtask`",
                job.protocol().name()
            )
        })?;
        Ok(Some(SecondBuild { program: program.into(), waiting: BTreeMap::new(), total: 0 }))
    }

    /// Takes the jobs that this build cannot run out of a plan, and counts their units.
    pub fn take<'a>(
        &mut self,
        planned: Vec<PlannedJob<'a>>,
        store: &Store,
        again: Again,
    ) -> Vec<PlannedJob<'a>> {
        let (built, other): (Vec<_>, Vec<_>) =
            planned.into_iter().partition(|planned| is_built(planned.job.protocol()));
        for planned in other {
            self.total += planned.to_run.len();
            let waiting = lookup(&planned, store, again, false).len();
            *self.waiting.entry(planned.job.experiment.id()).or_default() += waiting;
        }
        built
    }

    pub fn units(&self) -> usize {
        self.waiting.values().sum()
    }

    /// Replaces this process by the second build with the same arguments.
    pub fn start(&self) -> Result<ExitCode> {
        eprintln!("building attention models for {}; this takes minutes", counted(self.units()));
        let mut command = Command::new(&self.program);
        command.args(std::env::args_os().skip(1)).env_remove(BUILDER).env(BUILD.0, BUILD.1);
        become_it(command).with_context(|| format!("{} cannot be started", self.program.display()))
    }
}

#[cfg(unix)]
fn become_it(mut command: Command) -> std::io::Result<ExitCode> {
    Err(std::os::unix::process::CommandExt::exec(&mut command))
}

#[cfg(not(unix))]
fn become_it(mut command: Command) -> std::io::Result<ExitCode> {
    let code = command.status()?.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(1)))
}
