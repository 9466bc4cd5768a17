//! What can be wrong with an embedder specification.

use thiserror::Error;

/// An embedder that cannot be built, and what to write instead.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum EmbedderError {
    /// No kind of that name.
    #[error("unknown embedder kind '{kind}'; {suggestion}known kinds: {known}")]
    UnknownKind {
        /// The name as written.
        kind: String,
        /// "did you mean …? ", or nothing when no name is near.
        suggestion: String,
        /// All names.
        known: String,
    },
    /// The kind has no parameter of that name.
    #[error("embedder '{kind}' has no parameter '{parameter}'; {suggestion}it takes {allowed}")]
    UnknownParameter {
        /// The kind.
        kind: &'static str,
        /// The name as written.
        parameter: String,
        /// "did you mean …? ", or nothing when no name is near.
        suggestion: String,
        /// All parameters of the kind.
        allowed: String,
    },
    /// A required parameter is absent.
    #[error("embedder '{kind}' needs the parameter '{parameter}' ({meaning}): {allowed}")]
    MissingParameter {
        /// The kind.
        kind: &'static str,
        /// The absent parameter.
        parameter: String,
        /// What the parameter stands for.
        meaning: String,
        /// The values it takes.
        allowed: String,
    },
    /// A value of the wrong type or outside its range.
    #[error("embedder '{kind}': {parameter} is {value}, allowed is {allowed}")]
    InvalidValue {
        /// The kind.
        kind: &'static str,
        /// The parameter at fault.
        parameter: String,
        /// Its value as written.
        value: String,
        /// The values it takes.
        allowed: String,
    },
    /// Two parameters, or a parameter and its absence, that do not go together.
    #[error("embedder '{kind}': {reason}")]
    Conflict {
        /// The kind.
        kind: &'static str,
        /// The parameter to change.
        parameter: String,
        /// What collides and what to do.
        reason: String,
    },
    /// A formula that cannot be read or evaluated.
    #[error("embedder 'formula': psi = {formula:?} {reason}")]
    Formula {
        /// The formula as written.
        formula: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl EmbedderError {
    /// The key at fault, for a caller that knows on which line the key stands; `None` when it is the
    /// kind itself.
    pub fn parameter(&self) -> Option<&str> {
        match self {
            Self::UnknownKind { .. } => None,
            Self::UnknownParameter { parameter, .. }
            | Self::MissingParameter { parameter, .. }
            | Self::InvalidValue { parameter, .. }
            | Self::Conflict { parameter, .. } => Some(parameter),
            Self::Formula { .. } => Some("psi"),
        }
    }
}
