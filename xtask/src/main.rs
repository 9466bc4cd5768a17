//! `cargo xtask VERB …`: starts the runner in release mode and runs the repository's chores.
//!
//! It compiles in seconds and has no argument parser of its own: it forwards everything except chores to the binary `posenc`.

mod chores;
mod gpu;
mod machine;
mod process;
mod video;

use std::ffi::OsString;
use std::process::ExitCode;

/// The commands that most people need.
const START: &str = "\
cargo xtask reproduce        run the experiments and render a report (5 to 13 minutes on two cores after the build)
cargo xtask reproduce trading/table1 --dry-run
                             show what would run for one table, and how long it would take
cargo xtask data list        show which data sets are here and where to get the others
cargo xtask book --open      read the report as a site
cargo xtask doctor           show what this machine supports

cargo xtask --help           all commands";

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let verb = arguments.first().map(|a| a.to_string_lossy().into_owned());
    let rest = arguments.get(1..).unwrap_or_default();
    let result = match verb.as_deref() {
        None => {
            println!("{START}");
            return ExitCode::SUCCESS;
        }
        Some("test") => chores::test(rest),
        Some("check") => chores::check(),
        Some("book") => process::start(process::SITE, rest, &[]),
        _ => process::runner(&arguments),
    };
    match result {
        Ok(code) => code,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}
