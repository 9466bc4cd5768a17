//! Compares separable evaluation and closed-form weights with the explicit Kronecker product (`trading` Eq. 10–12).
//!
//! The protocol fits a random signal on a grid. The reference is the minimum-norm least-squares solution of the explicit product.
//! Deviations are ‖a − b‖/‖b‖ with the reference b. Digits are correct digits, −log₁₀ of the deviation, at most 16.
//!
//! Records:
//!
//! - `forward_deviation`, `forward_digits`: separable evaluation of random weights, compared with the explicit product.
//! - `weights_deviation`, `weights_digits`: weights by Eq. 12 as printed, compared with the reference.
//! - `weights_digits_orthogonal`: weights by our orthogonal factorization, compared with the reference.
//! - `residual_printed`, `residual_orthogonal`, `residual_least`: relative residuals of Eq. 12, of our factorization and of the reference.
//! - `rank`: numerical rank of the explicit product. `condition_digits`: log₁₀ of its condition number.
//! - `multiply_adds_naive`, `multiply_adds_separable`: operations of the evaluation with and without the explicit product.

mod run;

use posenc_experiments::schema::protocol::{Fault, Kind, Settings, WithoutData};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::range;

pub const KIND: Kind = Kind {
    needs_embedder: true,
    without_data: WithoutData::Theory,
    ..kind!(SeparableSolution, "separable-solution")
};

/// Settings of `separable-solution`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SeparableSolution {
    /// Numbers of points along x and along y, equally spaced on [0, 1).
    pub points: [usize; 2],
}

impl Settings for SeparableSolution {
    fn check(&self) -> Result<(), Fault> {
        self.points.iter().try_for_each(|&n| range("points", n, 1, 256))
    }
}
