//! The binary `posenc`: runs experiments, keeps records, renders the report.
//!
//! `cargo xtask VERB …` builds it and starts it with the same arguments.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

// Printing macros that escape control characters. All text of files and of other programs must be printed through them.
#[macro_use(eprintln, println)]
extern crate posenc_files;

mod arguments;
mod commands;

use std::process::ExitCode;

use clap::Parser;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    posenc_files::terminal::escape_panics();
    let arguments = arguments::Arguments::parse();
    match commands::dispatch(arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
