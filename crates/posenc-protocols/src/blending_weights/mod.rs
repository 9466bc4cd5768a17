//! Computes the weights that blend the encodings of two nodes of a virtual grid (`trading` Eq. 15).
//!
//! Records over β `alpha_0`, `alpha_1`, `weight_sum`, `linear` = 1 − β, `excess` = α₀ − (1 − β) and `encoding_error` of the blended row
//! relative to the true one; and `departure_from_linear`, the largest absolute excess.

#[cfg(feature = "run")]
mod run;

use posenc_experiments::schema::protocol::{Fault, Kind, Settings, WithoutData};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use posenc_experiments::schema::NumberList;

/// The kind `blending-weights`.
pub const KIND: Kind = Kind {
    needs_embedder: true,
    example: include_str!("example.yaml"),
    runner: runner!(BlendingWeights),
    without_data: WithoutData::Theory,
    ..Kind::of::<BlendingWeights>("blending-weights")
};

/// Settings of `blending-weights`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BlendingWeights {
    /// Position ratios β, from 0 at the left node to 1 at the right one.
    pub ratios: NumberList,
    /// Distance between the nodes, in units of x.
    pub spacing: f64,
    /// What is done to the least-squares weights.
    #[serde(default)]
    pub weights: Weights,
    /// Inner products that the weights are made from.
    #[serde(default)]
    pub distance: InnerProducts,
}

/// What is done to the least-squares weights.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Weights {
    /// Nothing (`trading` Eq. 15).
    #[default]
    Printed,
    /// They are divided by their sum, as in the authors' code.
    Normalized,
}

/// Inner products that the weights are made from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InnerProducts {
    /// As in the authors' code: laws for Gaussian and RFF, the printed square for the triangle, those
    /// of the encoding for all others.
    #[default]
    Code,
    /// The law for infinitely many features.
    Law,
    /// Those of the encoding itself.
    Sampled,
}

impl Settings for BlendingWeights {
    fn check(&self) -> Result<(), Fault> {
        if let Some(ratio) = self.ratios.0.iter().find(|v| !(0.0..=1.0).contains(*v)) {
            return Err(("ratios", format!("{ratio} is not allowed; allowed: 0 to 1")));
        }
        // Rows are embedded from the middle of the line, which leaves half of it to the right.
        if !(self.spacing > 0.0 && self.spacing <= 0.5) {
            let message = format!("{} is not allowed; allowed: above 0, at most 0.5", self.spacing);
            return Err(("spacing", message));
        }
        Ok(())
    }
}
