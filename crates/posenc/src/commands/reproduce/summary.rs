//! Summary after a run: finished units per item, failures and remaining units.

use posenc_experiments::shell::quoted;

use posenc_harness::executor::RunSummary;
use posenc_harness::interrupts;
use posenc_harness::span::{and_failed, counted, duration};

/// Prints the finished units of each item.
pub fn tell_items(outcome: &RunSummary) {
    let width = outcome.items.keys().map(|item| item.chars().count()).max().unwrap_or(0);
    for (item, tally) in &outcome.items {
        let failed = and_failed(tally.failed);
        let (done, seconds) = (tally.done, duration(tally.seconds));
        let s = if done == 1 { "" } else { "s" };
        eprintln!("  {item:width$}  {done:>5} unit{s}{failed}, {seconds} of computing");
    }
}

/// Prints failures and what is left.
pub fn tell_rest(outcome: &RunSummary, workers: usize, is_forced: bool) {
    for failure in &outcome.failures {
        eprintln!("failed: {}: {}", failure.path, failure.message);
    }
    if !outcome.failures.is_empty() {
        eprintln!(
            "{} failed; run the same command again to retry them",
            counted(outcome.failures.len())
        );
    }
    let (units, seconds) = outcome.left;
    if units > 0 {
        let why = outcome.interrupted.map(|signal| format!("{}: ", interrupts::name(signal)));
        let why = why.unwrap_or_default();
        // With `--force`, repeated units cannot be distinguished from waiting ones: both have a record.
        let next = if is_forced { "to start over (--force)" } else { "to continue" };
        eprintln!(
            "{why}{units} units left, about {} on {workers} workers; {next}: {}",
            duration(seconds),
            command()
        );
    }
}

/// The command of this run, quoted for a shell.
fn command() -> String {
    let arguments = std::env::args_os().skip(1).map(|a| quoted(&a.to_string_lossy()));
    std::iter::once("cargo xtask".to_owned()).chain(arguments).collect::<Vec<_>>().join(" ")
}
