//! The harness: it plans units, runs them on workers or on a cluster, keeps their records and collects them.
//!
//! It knows protocols only as [`protocol::Protocol`]. Modules depend on each other without cycles (a test checks it).

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

// Printing macros that escape: text of files and of other programs reaches the terminal through these alone.
#[macro_use(eprintln, println)]
extern crate posenc_text;

pub mod checkpoint;
pub mod collect;
pub mod control;
pub mod cost_model;
pub mod data;
pub mod device;
pub mod events;
pub mod failed;
pub mod interrupts;
pub mod lock;
pub mod machine;
pub mod memory;
pub mod options;
pub mod orphans;
pub mod plan;
pub mod progress;
pub mod promote;
pub mod protocol;
pub mod queue;
pub mod repository;
pub mod run_env;
mod running;
pub mod shape;
pub mod slurm;
pub mod span;
pub mod stopwatch;
pub mod store;
pub mod supervisor;
pub mod unit;
mod worker;
