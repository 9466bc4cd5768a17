//! The process that waits for a run on a cluster: its output, and its response to interrupts.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::client::{self, Queued};
use super::files::{ClusterRun, Ending, Folder};
use super::gather::CANCELLED;
use super::submit::release;
use crate::interrupts::Interrupts;
use crate::plan::PlannedJob;
use crate::span::{counted, duration};
use crate::store::Store;

/// How often the process checks for interrupts.
const STEP: Duration = Duration::from_millis(200);
/// How often the queue is polled, at first and later. All users of the cluster share it.
const POLL: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(10)];
/// Time after which the queue is polled less often.
const EARLY: Duration = Duration::from_secs(60);
/// How long the queue may contain no job of a run before the run is given up. Shared file systems show new files late.
const GRACE: Duration = Duration::from_secs(45);
/// Number of consecutive failed polls after which the process stops waiting.
const MOST_FAILURES: usize = 6;

/// Units without a record when waiting began.
struct Missing {
    files: Vec<(PathBuf, f64)>,
    all_cost: f64,
}

impl Missing {
    fn of(work: &[PlannedJob<'_>], store: &Store) -> Self {
        let mut files = Vec::new();
        for w in work {
            let experiment = w.job.experiment;
            let file = |parts| store.file(&experiment.paper, &experiment.item, parts);
            files.extend(w.to_run.iter().map(|u| (file(&u.parts), 1.0)));
        }
        Missing { all_cost: files.iter().map(|(_, cost)| cost).sum(), files }
    }

    /// Fraction of the cost that now has records.
    fn done(&mut self) -> f64 {
        self.files.retain(|(file, _)| !file.exists());
        let left: f64 = self.files.iter().map(|(_, cost)| cost).sum();
        1.0 - left / self.all_cost.max(1e-9)
    }
}

/// Waits for a run to end and reports its result. An interrupt cancels the run.
pub fn watch(
    folder: &Folder,
    run: &ClusterRun,
    out: &Path,
    store: &Store,
    work: &[PlannedJob<'_>],
    asked: &Interrupts,
) -> Result<ExitCode> {
    let mut missing = Missing::of(work, store);
    let started = Instant::now();
    let mut last_line = String::new();
    let (mut failures, mut empty_since) = (0, None);
    loop {
        if let Some(ending) = folder.ending()? {
            return report_ending(run, &ending);
        }
        let share = missing.done();
        match client::queue(&run.job_name()) {
            Ok(queue) => {
                failures = 0;
                if queue.is_empty() {
                    let since = *empty_since.get_or_insert_with(Instant::now);
                    if since.elapsed() > GRACE {
                        release(out, &run.id);
                        bail!(
                            "run {} is no longer in Slurm's queue, and its collecting step reported nothing; see {}. Run \
                             the same command again for the missing units",
                            run.id,
                            folder.file("collect-1.log").display()
                        );
                    }
                } else {
                    empty_since = None;
                    let recorded = run.units.saturating_sub(missing.files.len());
                    let mut line =
                        format!("{recorded} of {} units on record; {}", run.units, says(&queue));
                    if line != last_line {
                        last_line.clone_from(&line);
                        if share > 0.02 && share < 1.0 {
                            let left = started.elapsed().as_secs_f64() * (1.0 - share) / share;
                            line += &format!("; about {} left", duration(left));
                        }
                        eprintln!("{line}");
                    }
                }
            }
            Err(error) => {
                failures += 1;
                if failures == MOST_FAILURES {
                    bail!(
                        "{error:#}. Run {} continues; run the same command again to wait for it",
                        run.id
                    );
                }
            }
        }
        let pause = POLL[usize::from(started.elapsed() > EARLY)];
        let asleep = Instant::now();
        while asleep.elapsed() < pause {
            if let Some(signal) = asked.asked() {
                cancel(folder, run, out, &mut missing)?;
                // The exit code that a shell reports.
                return Ok(ExitCode::from(128 + signal as u8));
            }
            std::thread::sleep(STEP);
        }
    }
}

fn says(queue: &[Queued]) -> String {
    let of = |state: &str| queue.iter().filter(|q| q.state == state).count();
    let mut nodes: Vec<&str> =
        queue.iter().filter(|q| q.state == "RUNNING").map(|q| q.node.as_str()).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let mut parts = vec![match nodes.len() {
        0 => "no job runs".to_owned(),
        1..=4 => format!("{} jobs run on {}", of("RUNNING"), nodes.join(", ")),
        count => format!("{} jobs run on {count} nodes", of("RUNNING")),
    }];
    let waiting: Vec<&Queued> = queue.iter().filter(|q| q.state == "PENDING").collect();
    if !waiting.is_empty() {
        let mut reasons: Vec<&str> = waiting.iter().map(|q| q.reason.as_str()).collect();
        reasons.sort_unstable();
        reasons.dedup();
        parts.push(format!("{} wait ({})", waiting.len(), reasons.join(", ")));
    }
    let others = queue.len() - of("RUNNING") - waiting.len();
    if others > 0 {
        parts.push(format!("{others} starting or ending"));
    }
    parts.join(", ")
}

pub fn report_ending(run: &ClusterRun, ending: &Ending) -> Result<ExitCode> {
    if let Some(error) = &ending.error {
        bail!("the collecting step of run {} failed: {error}", run.id);
    }
    for unit in &ending.failed {
        eprintln!("failed: {}: {} ({})", unit.unit, unit.reason, unit.log.display());
    }
    let mut line = format!("{} of {} units on record", ending.recorded, run.units);
    if ending.restarts > 0 {
        line += &format!("; Slurm restarted tasks {} times", ending.restarts);
    }
    if ending.rounds > 1 {
        line += &format!("; {} arrays", ending.rounds);
    }
    eprintln!("{line}");
    if !ending.failed.is_empty() {
        eprintln!(
            "{} failed; run the same command again to retry only them",
            counted(ending.failed.len())
        );
    }
    if let Some(page) = &ending.page {
        println!("{}", page.display());
    }
    Ok(ExitCode::from(u8::from(!ending.failed.is_empty())))
}

/// Cancels all jobs of a run, waits until none is left, and reports the number of recorded units.
fn cancel(folder: &Folder, run: &ClusterRun, out: &Path, missing: &mut Missing) -> Result<()> {
    eprintln!("cancelling run {} …", run.id);
    // Keeps a running collecting step from submitting another round.
    posenc_files::write_atomically(&folder.file(CANCELLED), b"")?;
    let started = Instant::now();
    loop {
        client::cancel(&run.job_name())?;
        std::thread::sleep(STEP);
        if client::queue(&run.job_name())?.is_empty() {
            break;
        }
        if started.elapsed() > GRACE {
            bail!("Slurm still has jobs of run {}; `scancel --name={}`", run.id, run.job_name());
        }
    }
    release(out, &run.id);
    let _ = posenc_files::remove(&folder.file("posenc"));
    missing.done();
    eprintln!(
        "cancelled: {} of {} units are on record; run the same command again for the rest",
        run.units.saturating_sub(missing.files.len()),
        run.units
    );
    Ok(())
}
