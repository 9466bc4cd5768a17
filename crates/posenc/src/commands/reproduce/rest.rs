//! Units of attention models in a build without these models. The full build is made while the other units run, and runs them
//! afterwards.
//!
//! `cargo xtask` starts such a build only if no full build exists. An environment variable then names the program that makes it.

use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context as _, Result, bail};
use posenc_experiments::plan::Job;
use posenc_harness::protocol::is_built;

/// Environment variable with the path of `xtask`, which makes the full build.
const BUILDER: &str = "POSENC_XTASK";

/// Whether the full build has jobs to run, and the program that makes it.
pub struct Rest {
    builder: Option<PathBuf>,
}

impl Rest {
    /// Removes jobs that this build cannot run. If there are any, starts the full build in the background; fails if `BUILDER` is
    /// not set.
    pub fn take_out(jobs: &mut Vec<Job<'_>>) -> Result<Self> {
        let all = jobs.len();
        let protocol = jobs.iter().map(|job| job.protocol()).find(|own| !is_built(own));
        let Some(name) = protocol.map(|protocol| protocol.name()) else {
            return Ok(Rest { builder: None });
        };
        jobs.retain(|job| is_built(job.protocol()));
        let Some(builder) = std::env::var_os(BUILDER).map(PathBuf::from) else {
            bail!(
                "this build of posenc has no attention models, which protocol `{name}` needs; build it with its default \
                 features, or start it as `cargo xtask`"
            );
        };
        let left = all - jobs.len();
        let mut command = Command::new(&builder);
        command.arg("build-rest").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // Its own process group: Ctrl-C ends the run but not the build.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command.spawn().with_context(|| format!("{} cannot be started", builder.display()))?;
        eprintln!(
            "building attention models in the background; {left} jobs that need them run last"
        );
        Ok(Rest { builder: Some(builder) })
    }

    /// Replaces this process by the full build, which runs the removed jobs. Returns `code` if there are none.
    pub fn go_on(self, code: ExitCode) -> Result<ExitCode> {
        let Some(builder) = self.builder else { return Ok(code) };
        let mut command = Command::new(&builder);
        command.args(std::env::args_os().skip(1)).env_remove(BUILDER);
        // Requests the full build, which waits for the background build if it still runs.
        command.env("POSENC_BUILD", "whole");
        start(command).with_context(|| format!("{} cannot be started", builder.display()))
    }
}

#[cfg(unix)]
fn start(mut command: Command) -> std::io::Result<ExitCode> {
    Err(std::os::unix::process::CommandExt::exec(&mut command))
}

#[cfg(not(unix))]
fn start(mut command: Command) -> std::io::Result<ExitCode> {
    let code = command.status()?.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(1)))
}
