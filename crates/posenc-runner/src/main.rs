//! The binary `posenc`: runs experiments, keeps records, renders the report.
//!
//! `cargo xtask VERB …` builds it and starts it with the same arguments.

mod arguments;
mod commands;
mod device;
mod executor;
mod machine;
mod protocols;
mod reconstruction;
mod repository;
mod run;

use std::process::ExitCode;

use clap::Parser;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Ends quietly where a reader closes the pipe, as `posenc doctor | head` does; other panics are told as ever.
fn end_with_the_reader() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let is_closed =
            |text: &str| text.starts_with("failed printing to std") && text.contains("Broken pipe");
        if panic.payload_as_str().is_some_and(is_closed) {
            // What a shell expects of a program that SIGPIPE ended.
            std::process::exit(141);
        }
        usual(panic);
    }));
}

fn main() -> ExitCode {
    end_with_the_reader();
    let arguments = arguments::Arguments::parse();
    match commands::dispatch(arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
