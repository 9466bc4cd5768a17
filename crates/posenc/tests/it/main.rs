//! The binary `posenc` end to end: real files, real records. One binary, since each test binary links all dependencies;
//! `extending.rs` has its own, since it compiles on all cores.

mod auto;
mod checkpoints;
mod collect;
mod common;
mod compare;
mod data;
mod device;
mod failures;
mod fetch;
mod fit;
mod hostile_files;
mod images;
mod inputs;
mod interruptions;
mod kills;
mod memory;
mod modules;
mod new;
mod pictures;
mod protocols;
mod readme;
mod reference;
mod report;
mod reproduce;
mod slurm;
mod terminal;
