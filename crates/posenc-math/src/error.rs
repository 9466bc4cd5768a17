//! The error of this crate.

/// An invalid argument. The message names the argument, what is wrong with it, and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(pub(crate) String);
