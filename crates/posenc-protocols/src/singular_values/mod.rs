//! Computes the singular values of an embedding matrix.
//!
//! Records:
//!
//! - `singular_value`: σ_i/σ_1 over the index, counted from 0.
//! - `stable_rank`: Σσ_i²/σ_1².
//! - `rank_above_one_percent`: number of singular values above 0.01 σ_1.
//! - `numerical_rank`: number of singular values above ε·max(N, d)·σ_1, where ε is that of single precision.
//! - `condition_number`: σ_1 divided by the smallest singular value.

mod run;

use posenc_experiments::schema::protocol::{Fault, Kind, Settings, WithoutData};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::range;

pub const KIND: Kind = Kind {
    needs_embedder: true,
    without_data: WithoutData::Theory,
    ..kind!(SingularValues, "singular-values")
};

/// Settings of `singular-values`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SingularValues {
    /// Number of positions N.
    pub points: usize,
    /// How positions are chosen.
    #[serde(default)]
    pub sampling: Sampling,
}

/// How positions are chosen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sampling {
    /// x_i = i/N.
    #[default]
    Regular,
    /// Independent samples from the uniform distribution on [0, 1).
    Random,
}

impl Settings for SingularValues {
    fn check(&self) -> Result<(), Fault> {
        range("points", self.points, 1, 4096)
    }
}
