//! Errors in embedder specifications.

use thiserror::Error;

/// Why a specification is invalid, and how to fix it.
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

    /// Error for parameters that are inconsistent with each other; `parameter` is the one to change.
    pub(super) fn conflict(kind: &str, parameter: &str, reason: &str) -> Self {
        Self::new(Some(parameter), format!("embedder '{kind}': {reason}"))
    }

    /// The key at fault, from which a caller can find the line; `None` if the kind itself is at fault.
    pub fn parameter(&self) -> Option<&str> {
        self.parameter.as_deref()
    }
}
