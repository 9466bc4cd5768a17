//! The YAML schema: wire types that reject unknown keys, and the domain types built from them.
//!
//! `FORMAT.md` in the repository documents every key with its default; a test keeps it complete.

pub mod answer;
pub mod claim;
mod data;
pub mod display;
mod embedder;
pub mod experiment;
mod group;
pub(crate) mod json;
mod json_schema;
mod keys;
pub mod limits;
pub mod metrics;
mod numbers;
pub mod paper;
pub mod protocol;
mod wire;

pub use data::{Data, SignalCount};
pub use experiment::Experiment;
pub use group::{Group, Resolved, Variant};
pub use json_schema::{MODELINE, json_schema};
pub use keys::is_key;
pub use numbers::NumberList;
pub use protocol::{Kinds, Protocol};
pub use wire::{Definition, ItemKind, Speed};

pub use crate::profile::Profile;
