//! Units of attention models in the first build, which lacks these models and takes half the time. `cargo xtask` then makes a second
//! build, which runs them.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};
use posenc_experiments::plan::Job;
use posenc_harness::protocol::is_built;

/// Environment variable with the path of `xtask`, which makes the second build.
const BUILDER: &str = "POSENC_XTASK";

/// Removes jobs that this build cannot run. If there are any, returns the program that makes the second build.
pub fn leave(jobs: &mut Vec<Job<'_>>) -> Result<Option<PathBuf>> {
    let all = jobs.len();
    let mut left = None;
    jobs.retain(|job| {
        let is_built = is_built(job.protocol());
        left = left.or((!is_built).then(|| job.protocol().name()));
        is_built
    });
    let Some(name) = left else { return Ok(None) };
    let builder = std::env::var_os(BUILDER).with_context(|| {
        format!(
            "this build of posenc has no attention models, which protocol `{name}` needs; build it with its default features, \
             or start it as `cargo xtask`"
        )
    })?;
    eprintln!("{} jobs need attention models and wait for the second build", all - jobs.len());
    Ok(Some(builder.into()))
}

/// Replaces this process by the second build with the same arguments.
pub fn start(builder: &Path) -> Result<ExitCode> {
    eprintln!("building attention models for the jobs that wait; this takes minutes");
    let mut command = Command::new(builder);
    command.args(std::env::args_os().skip(1)).env_remove(BUILDER).env("POSENC_BUILD", "whole");
    become_it(command).with_context(|| format!("{} cannot be started", builder.display()))
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
