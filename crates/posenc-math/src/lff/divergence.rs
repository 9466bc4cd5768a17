//! Forms of the divergence between learned frequencies and an isotropic normal distribution (LFF Eq. 9).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The moments of $W_r$ that the divergence uses.
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
    /// Form of the divergence.
    pub form: Form,
    /// Weight of the term, $\alpha$ of Eq. 10.
    pub weight: f64,
}
