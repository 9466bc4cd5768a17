//! Tests whether an affine model on a random matrix X memorizes a random target (Proposition 1).
//!
//! X is N × d, the product of two Gaussian matrices, and has the given rank.
//!
//! Records:
//!
//! - `rank`: numerical rank of X (singular values above 10⁻¹⁰ σ_1).
//! - `augmented_rank`: numerical rank of [X, 1], X with a column of ones.
//! - `relative_residual`: ‖Xw + b − y‖/‖y‖ of the least-squares fit to the target y; 0 if the model memorizes it.

mod run;

use posenc_experiments::schema::protocol::{Fault, Kind, Settings, WithoutData};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::range;

pub const KIND: Kind =
    Kind { without_data: WithoutData::Theory, ..kind!(Memorization, "memorization") };

/// Settings of `memorization`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Memorization {
    /// Number of samples N.
    pub samples: usize,
    /// Embedding dimension d.
    pub dimension: usize,
    /// Rank of the random N×d matrix X.
    pub rank: usize,
    /// Whether the mean of each column of X is subtracted first.
    #[serde(default)]
    pub centered: bool,
    /// Whether the target is sampled in the range of [X, 1], instead of from N(0, 1).
    #[serde(default)]
    pub target_in_range: bool,
}

impl Settings for Memorization {
    fn check(&self) -> Result<(), Fault> {
        range("samples", self.samples, 1, 2048)?;
        range("dimension", self.dimension, 1, 4096)?;
        range("rank", self.rank, 1, self.samples.min(self.dimension))
    }
}
