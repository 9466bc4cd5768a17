//! Compares separable evaluation and closed-form weights with the explicit Kronecker product (`trading` Eq. 10–12).
//!
//! Records `forward_deviation` and `weights_deviation` (Eq. 12 as printed) from the explicit product and its minimum-norm solution; the
//! correct digits −log₁₀ of these and of our factorization, at most 16: `forward_digits`, `weights_digits`, `weights_digits_orthogonal`;
//! `residual_printed`, `residual_orthogonal`, `residual_least`, `rank`, `condition_digits` = log₁₀ of the condition number,
//! `multiply_adds_naive` and `multiply_adds_separable`.

#[cfg(feature = "run")]
mod run;

use posenc_experiments::schema::protocol::{Fault, Kind, Settings, WithoutData};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::range;

/// The kind `separable-solution`.
pub const KIND: Kind = Kind {
    needs_embedder: true,
    example: include_str!("example.yaml"),
    runner: runner!(SeparableSolution),
    without_data: WithoutData::Theory,
    ..Kind::of::<SeparableSolution>("separable-solution")
};

/// Settings of `separable-solution`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SeparableSolution {
    /// Points along x and along y, equally spaced on [0, 1).
    pub points: [usize; 2],
}

impl Settings for SeparableSolution {
    fn check(&self) -> Result<(), Fault> {
        self.points.iter().try_for_each(|&n| range("points", n, 1, 256))
    }
}
