//! Summary after a run: failures and remaining units.

use posenc_experiments::shell::quoted;

use posenc_harness::executor::RunSummary;
use posenc_harness::interrupts;
use posenc_harness::span::counted;

/// Prints failures and what is left. `waiting` is the number of units that wait for attention models.
pub fn tell(outcome: &RunSummary, waiting: usize, is_forced: bool) {
    if outcome.failures > 0 {
        eprintln!("{} failed; run the same command again to retry them", counted(outcome.failures));
    }
    let (units, time) = outcome.left;
    if units > 0 {
        let why = outcome.interrupted.map(|signal| format!("{}: ", interrupts::name(signal)));
        let why = why.unwrap_or_default();
        // With `--force`, repeated units cannot be distinguished from waiting ones: both have a record.
        let next = if is_forced { "to start over (--force)" } else { "to continue" };
        let wait = match waiting {
            0 => String::new(),
            _ => format!(", and {} for attention models", counted(waiting)),
        };
        eprintln!("{why}{} left ({time}){wait}; {next}: {}", counted(units), command());
    }
}

/// The command of this run, quoted for a shell.
fn command() -> String {
    let arguments = std::env::args_os().skip(1).map(|a| quoted(&a.to_string_lossy()));
    std::iter::once("cargo xtask".to_owned()).chain(arguments).collect::<Vec<_>>().join(" ")
}
