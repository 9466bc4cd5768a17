//! The binary `posenc`: runs experiments, keeps records, renders the report.
//!
//! `cargo xtask VERB …` builds it and starts it with the same arguments.

mod arguments;
mod commands;
mod device;
mod machine;
mod protocols;
mod reconstruction;
mod repository;
mod run;

use std::process::ExitCode;

use clap::Parser;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments = arguments::Arguments::parse();
    match commands::dispatch(arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
