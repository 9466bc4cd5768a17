//! Computes the weights that blend the encodings of two nodes of a virtual grid (`trading` Eq. 15).
//!
//! Records over the position ratio β:
//!
//! - `alpha_0`, `alpha_1`: weights of the left and the right node. `weight_sum`: their sum.
//! - `alpha_0_least_squares`: the left weight of the least-squares problem (Eq. 14), solved without any distance.
//! - `linear`: 1 − β, the left weight of linear interpolation. `excess`: α₀ − (1 − β).
//! - `encoding_error`: ‖ψ(x) − α₀ψ(x₀) − α₁ψ(x₁)‖/‖ψ(x)‖, the relative error of the blended encoding.
//!
//! Also records `departure_from_linear`, the largest absolute `excess`.

mod run;

use posenc_experiments::schema::protocol::{Fault, Kind, Settings, WithoutData};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use posenc_experiments::schema::NumberList;

pub const KIND: Kind = Kind {
    needs_embedder: true,
    without_data: WithoutData::Theory,
    ..kind!(BlendingWeights, "blending-weights")
};

/// Settings of `blending-weights`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BlendingWeights {
    /// Position ratios β, from 0 at the left node to 1 at the right one.
    pub ratios: NumberList,
    /// Distance between the nodes, in units of x.
    pub spacing: f64,
    /// Whether the least-squares weights are normalized.
    #[serde(default)]
    pub weights: Weights,
    /// Inner products from which the weights are computed.
    #[serde(default)]
    pub distance: InnerProducts,
}

/// Whether the least-squares weights are normalized.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Weights {
    /// Not normalized, as printed (`trading` Eq. 15).
    #[default]
    Printed,
    /// Divided by their sum, as in the authors' code.
    Normalized,
}

/// Inner products from which blending weights are computed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InnerProducts {
    /// As in the authors' code: the laws of Gaussian and RFF, the printed square for the triangle, and the inner products of the encoding
    /// for all other kinds.
    #[default]
    Code,
    /// The law for infinitely many features.
    Law,
    /// The inner products of the encoding itself.
    Sampled,
}

impl Settings for BlendingWeights {
    fn check(&self) -> Result<(), Fault> {
        if let Some(ratio) = self.ratios.0.iter().find(|v| !(0.0..=1.0).contains(*v)) {
            return Err(("ratios", format!("{ratio} is not allowed; allowed: 0 to 1")));
        }
        // The left node is at the center of the unit interval, so the right one is at most 0.5 away.
        if !(self.spacing > 0.0 && self.spacing <= 0.5) {
            let message = format!("{} is not allowed; allowed: above 0, at most 0.5", self.spacing);
            return Err(("spacing", message));
        }
        Ok(())
    }
}
