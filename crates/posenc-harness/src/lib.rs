//! The harness plans units, runs them on workers or in jobs of Slurm, stores their records and collects the results.
//!
//! It uses protocols only through the trait [`protocol::Protocol`]. Modules have no cyclic dependencies; a test checks this.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

// Printing macros that escape hidden characters. All text from files and other programs must reach the terminal through them.
#[macro_use(eprintln)]
extern crate posenc_files;

pub mod checkpoint;
pub mod collect;
pub mod control;
pub mod data;
pub mod device;
pub mod executor;
pub mod interrupts;
pub mod lock;
pub mod machine;
pub mod memory;
pub mod options;
pub mod plan;
pub mod progress;
pub mod promote;
pub mod protocol;
pub mod queue;
pub mod repository;
pub mod run_env;
pub mod share;
pub mod slurm;
pub mod span;
pub mod stopwatch;
pub mod store;
pub mod timings;
pub mod unit;
