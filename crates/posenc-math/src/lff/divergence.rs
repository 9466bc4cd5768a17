//! Forms of the divergence between learned frequencies and an isotropic normal law (LFF Eq. 9).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What counts as the law of $W_r$.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// As printed: one mean and one variance for all entries.
    Pooled,
    /// A mean and a variance for each column, summed over columns.
    Columns,
    /// The mean and the full covariance of the rows.
    Covariance,
}

/// The term that Eq. 10 adds to the loss.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Divergence {
    /// Its form.
    pub form: Form,
    /// $\alpha$ of Eq. 10.
    pub weight: f64,
}
