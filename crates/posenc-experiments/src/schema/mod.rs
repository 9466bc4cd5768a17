//! The YAML schema: wire types that reject unknown keys, and the domain types built from them.
//!
//! `FORMAT.md` in the repository documents every key with its default; a test keeps it complete.

pub mod answer;
pub mod claim;
pub mod display;
mod embedder;
pub mod experiment;
mod json;
pub mod limits;
pub mod metrics;
mod numbers;
pub mod paper;
pub mod protocol;
mod signals;
mod wire;

pub use experiment::{
    Data, Experiment, Group, ItemKind, Profile, Resolved, Speed, Variant, is_key,
};
pub use json::{MODELINE, experiment as json_schema};
pub use numbers::NumberList;
pub use protocol::{Kinds, Protocol};
pub use signals::SignalCount;
