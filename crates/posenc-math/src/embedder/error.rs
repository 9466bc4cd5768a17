//! What can be wrong with an embedder specification.

use thiserror::Error;

/// An embedder that cannot be built, and what to write instead.
#[derive(Clone, Debug, Error, PartialEq)]
#[error("{message}")]
pub struct EmbedderError {
    parameter: Option<String>,
    message: String,
}

impl EmbedderError {
    pub(super) fn new(parameter: Option<&str>, message: String) -> Self {
        Self { parameter: parameter.map(str::to_owned), message }
    }

    /// Two parameters, or a parameter and its absence, that do not go together; `parameter` is the one to change.
    pub(super) fn conflict(kind: &str, parameter: &str, reason: &str) -> Self {
        Self::new(Some(parameter), format!("embedder '{kind}': {reason}"))
    }

    /// The key at fault, for a caller that knows on which line the key stands; `None` when it is the
    /// kind itself.
    pub fn parameter(&self) -> Option<&str> {
        self.parameter.as_deref()
    }
}
