//! Calls of Slurm's commands.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use posenc_experiments::shell::quoted;

use super::files::{self, ClusterRun, Folder};

/// A job, or a task of an array, in the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queued {
    /// `RUNNING`, `PENDING`, …
    pub state: String,
    pub reason: String,
    pub node: String,
}

pub enum Job<'a> {
    /// An array of this many tasks.
    Array(usize),
    /// The jobs that measure time, on a node of their own.
    Clock,
    /// The collecting step, after the jobs with these numbers, however they end.
    Collect(&'a [&'a str]),
}

/// A Slurm command without the environment variables of an enclosing job, which must not pass on its own number of cores.
fn command(name: &str) -> Command {
    let mut command = Command::new(name);
    let kept = ["SLURM_CONF", "SLURM_CLUSTERS", "SLURM_JWT"];
    for (variable, _) in std::env::vars_os() {
        let text = variable.to_string_lossy();
        if text.starts_with("SLURM") && !kept.contains(&&*text) {
            command.env_remove(&variable);
        }
    }
    command
}

/// Runs a Slurm command and returns its output.
fn call(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = match command.output() {
        Ok(output) => output,
        Err(error) if error.kind() == ErrorKind::NotFound => bail!(
            "Slurm's {name} was not found; run this on a node with Slurm's commands (a login node), or \
             remove --executor slurm"
        ),
        Err(error) => return Err(error).with_context(|| format!("{name} cannot be started")),
    };
    let message = posenc_files::one_line(&output.stderr);
    ensure!(
        output.status.success(),
        "{name} failed: {}",
        if message.is_empty() { output.status.to_string() } else { message }
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Checks that Slurm is available.
pub fn check() -> Result<()> {
    call(command("sbatch").arg("--version")).map(drop)
}

/// Submits a part of a round and returns its job number.
pub fn submit(
    run: &ClusterRun,
    folder: &Folder,
    root: &Path,
    round: usize,
    job: &Job<'_>,
) -> Result<String> {
    let script = folder.file("task.sh");
    let mut sbatch = command("sbatch");
    // User options come first: sbatch uses the last of two equal options, and the ones below are required.
    sbatch.args(&run.slurm.sbatch_args);
    let mut option = |name: &str, value: &str| {
        sbatch.arg(format!("--{name}={value}"));
    };
    option("job-name", &run.job_name());
    option("open-mode", "append");
    option("chdir", text(root)?);
    if let Some(partition) = &run.slurm.partition {
        option("partition", partition);
    }
    if let Some(time) = &run.slurm.time {
        option("time", time);
    }
    let (log, kind) = match job {
        Job::Array(tasks) => {
            option("array", &format!("0-{}", tasks.saturating_sub(1)));
            (pattern(folder, &format!("task-{round}-"))? + "%a.log", None)
        }
        Job::Clock => {
            let log = pattern(folder, &format!("task-{}.log", files::name(round, None)))?;
            (log, Some("--clock"))
        }
        Job::Collect(after) => {
            option("dependency", &format!("afterany:{}", after.join(":")));
            (pattern(folder, &format!("collect-{round}.log"))?, Some("--collect"))
        }
    };
    option("output", &log);
    if let (Some(gres), false) = (&run.slurm.gres, matches!(job, Job::Collect(_))) {
        option("gres", gres);
    }
    if matches!(job, Job::Clock) {
        sbatch.arg("--exclusive");
    }
    // Slurm requeues a task whose node fails. The task resumes from its records and checkpoints.
    sbatch.args(["--requeue", "--parsable"]).arg(&script);
    sbatch.arg("--run").arg(folder.path()).args(["--round", &round.to_string()]).args(kind);
    let answer = call(&mut sbatch).with_context(|| {
        format!(
            "Slurm rejected the job ({}); `sinfo` lists partitions, limits and resources",
            script.display()
        )
    })?;
    // <number>, or <number>;<cluster>.
    let number = answer.trim().split(';').next().unwrap_or_default();
    let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    ensure!(is_number, "sbatch printed `{}` instead of a job number", answer.trim());
    Ok(number.to_owned())
}

/// A path as a Slurm filename pattern, in which `%` and `\` are special.
fn pattern(folder: &Folder, name: &str) -> Result<String> {
    let path = folder.file(name);
    let path = text(&path)?;
    ensure!(
        !path.contains('\\'),
        "{path} contains `\\`, which is special in Slurm's filename patterns; use another directory"
    );
    Ok(path.replace('%', "%%"))
}

pub fn text(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("{} is not UTF-8", path.display()))
}

/// Jobs of a run that are pending or running.
pub fn queue(job_name: &str) -> Result<Vec<Queued>> {
    let mut squeue = command("squeue");
    squeue.args(["--noheader", "--array", "--format=%T|%r|%N"]).arg(format!("--name={job_name}"));
    Ok(call(&mut squeue)?.lines().filter_map(queued).collect())
}

fn queued(line: &str) -> Option<Queued> {
    let mut fields = line.trim().split('|');
    let mut next = || fields.next().map(str::to_owned);
    Some(Queued { state: next()?, reason: next()?, node: next()? })
}

pub fn cancel(job_name: &str) -> Result<()> {
    call(command("scancel").arg(format!("--name={job_name}"))).map(drop)
}

/// Cancels one job, or array, by its number.
pub fn cancel_job(number: &str) -> Result<()> {
    call(command("scancel").arg(number)).map(drop)
}

/// How a job ended, in Slurm's terms, such as `OUT_OF_MEMORY` or `FAILED (exit code 127:0)`; `None` if neither scontrol nor sacct reports
/// it.
pub fn ended(job: &str) -> Option<String> {
    let told = call(command("scontrol").args(["show", "job", "--oneliner", job])).ok();
    if let Some(state) = told.as_deref().and_then(of_scontrol) {
        return Some(state);
    }
    let mut sacct = command("sacct");
    sacct.args(["--noheader", "--parsable2", "--allocations", "--format=State,ExitCode"]);
    let output = call(sacct.arg(format!("--jobs={job}"))).ok()?;
    let (state, code) = output.lines().last()?.split_once('|')?;
    Some(words(state, code))
}

fn of_scontrol(output: &str) -> Option<String> {
    let field = |name: &str| {
        let part = output.split_whitespace().find_map(|part| part.strip_prefix(name))?;
        Some(part.to_owned())
    };
    Some(words(&field("JobState=")?, &field("ExitCode=").unwrap_or_default()))
}

fn words(state: &str, exit_code: &str) -> String {
    match exit_code {
        "" | "0:0" => state.to_owned(),
        code => format!("{state} (exit code {code})"),
    }
}

/// The script of all jobs of a run: tasks, and the collecting step.
pub fn script(run: &ClusterRun, binary: &Path, root: &Path) -> Result<String> {
    Ok(format!(
        "#!/bin/sh\n\
         # Run {id}: a task of the array, or the collecting step; written by `cargo xtask reproduce --executor slurm`.\n\
         # Files define the run; the environment of a node must not change it.\n\
         unset POSENC_DATA POSENC_DEVICE POSENC_ROOT\n\
         cores=\"${{SLURM_CPUS_PER_TASK:-${{SLURM_CPUS_ON_NODE:-1}}}}\"\n\
         export RAYON_NUM_THREADS=\"${{RAYON_NUM_THREADS:-$cores}}\"\n\
         exec {binary} --root {root} work --jobs \"$cores\" \"$@\"\n",
        id = run.id,
        binary = quoted(text(binary)?),
        root = quoted(text(root)?),
    ))
}

/// Copies this program for the tasks, because a build during the run would replace the original.
pub fn copy_binary(folder: &Folder) -> Result<PathBuf> {
    let own = std::env::current_exe().context("the path of this program is unknown")?;
    let copy = folder.file("posenc");
    posenc_files::open(&own)
        .and_then(|mut own| std::io::copy(&mut own, &mut posenc_files::create_program(&copy)?))
        .with_context(|| format!("{} cannot be copied to {}", own.display(), copy.display()))?;
    Ok(copy)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a state that is lost or misread, such as an out-of-memory task that counts as successful.
    #[test]
    fn states_are_read() {
        let told = "JobId=4 ArrayJobId=1 ArrayTaskId=1 JobName=x\n JobState=OUT_OF_MEMORY Reason=None \
                    Restarts=1 ExitCode=0:125 DerivedExitCode=0:0";
        assert_eq!(of_scontrol(told).as_deref(), Some("OUT_OF_MEMORY (exit code 0:125)"));
        assert_eq!(of_scontrol("JobState=TIMEOUT ExitCode=0:0").as_deref(), Some("TIMEOUT"));
        assert_eq!(of_scontrol("slurm_load_jobs error"), None);
        let line = queued("PENDING|Resources|").unwrap();
        assert_eq!((&*line.state, &*line.reason, &*line.node), ("PENDING", "Resources", ""));
        assert_eq!(queued(""), None);
    }
}
