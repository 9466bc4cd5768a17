//! Units of attention models in a build without them: they are built while the others run, and run afterwards.
//!
//! `cargo xtask` starts such a build only where no other exists, and says by an environment variable how to get one.

use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context as _, Result, bail};
use posenc_experiments::plan::Job;
use posenc_harness::protocol::is_built;

/// The program that builds the rest: `xtask`.
const BUILDER: &str = "POSENC_XTASK";

/// What another build has to run.
pub struct Rest {
    builder: Option<PathBuf>,
}

impl Rest {
    /// Takes out jobs that this build cannot run. If there are any, the build that can is started in the background; without a
    /// way to get that build they are an error.
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
        // Ctrl-C ends the run; what is built by then is not lost.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command.spawn().with_context(|| format!("{} cannot be started", builder.display()))?;
        eprintln!(
            "attention models are built in the background; {left} jobs that need them run after the others"
        );
        Ok(Rest { builder: Some(builder) })
    }

    /// Runs what was taken out, by another build that replaces this process. Without any, returns `code`.
    pub fn go_on(self, code: ExitCode) -> Result<ExitCode> {
        let Some(builder) = self.builder else { return Ok(code) };
        let mut command = Command::new(&builder);
        command.args(std::env::args_os().skip(1)).env_remove(BUILDER);
        // Waits for the build in the background, if it still runs.
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
