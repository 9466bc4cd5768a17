//! Sweeps over a parameter of the embedder.

use posenc_experiments::schema::NumberList;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An embedder parameter and the values it takes.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// Name of the embedder's parameter.
    pub parameter: String,
    /// Its values, the abscissa of the records.
    pub values: NumberList,
}

impl Sweep {
    /// Number of values of an optional sweep.
    pub fn count(sweep: Option<&Sweep>) -> usize {
        sweep.map_or(0, |sweep| sweep.values.0.len())
    }
}
