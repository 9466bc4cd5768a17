//! The sets of the manifest: where their files are, what they contain, and how they are obtained.

pub mod fetch;
pub(crate) mod fields;
pub mod manifest;
pub mod origin;
pub mod source;
pub mod status;
