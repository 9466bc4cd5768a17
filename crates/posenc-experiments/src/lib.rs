//! The YAML schema, plans and units, records, claims and verdicts.
//!
//! This crate defines experiments and evaluates their records; it runs nothing.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

// The printing macro that escapes hidden characters.
#[macro_use(eprintln)]
extern crate posenc_files;

pub mod catalog;
pub mod coverage;
pub mod derive;
mod error;
pub mod lint;
pub mod output;
pub mod plan;
mod profile;
pub mod published;
pub mod record;
pub mod schema;
pub mod selector;
pub mod shell;
pub mod text;
pub mod verdict;
pub mod yaml;

pub use catalog::Catalog;
pub use profile::Profile;
pub use published::{Published, PublishedValue};
pub use schema::{Experiment, Group, Kinds, Protocol, Resolved, Variant};
