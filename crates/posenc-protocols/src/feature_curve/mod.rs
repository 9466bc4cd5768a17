//! Compares the stable rank with the preserved length over random parameters of an embedder (`rethinking`, notebook).
//!
//! Records `stable_rank` and `stable_rank_curve` over the preserved length. The stable rank is that of all N = d positions.

#[cfg(feature = "run")]
mod run;

use posenc_experiments::schema::NumberList;
use posenc_experiments::schema::protocol::{Fault, Kind, Settings, WithoutData};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::{preset, range, whole};

/// The kind `feature-curve`.
pub const KIND: Kind = Kind {
    example: include_str!("example.yaml"),
    runner: runner!(FeatureCurve),
    without_data: WithoutData::Theory,
    ..Kind::of::<FeatureCurve>("feature-curve")
};

/// Settings of `feature-curve`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FeatureCurve {
    /// The embedder.
    pub embedder: CurveEmbedder,
    /// Number of random parameters.
    pub draws: usize,
    /// Embedding dimensions d; the stable rank is taken on all N = d points.
    pub dimensions: NumberList,
    /// Exponent k of the threshold 10^-k.
    #[serde(default = "preset::<1, f64>")]
    pub threshold_exponent: f64,
}

/// The two embedders of the feature curve.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CurveEmbedder {
    /// σ log-uniform on [1e-3, 1e-1], periodic.
    Gaussian,
    /// σ = 100^u with u uniform on [0, 1].
    Rff,
}

impl Settings for FeatureCurve {
    fn check(&self) -> Result<(), Fault> {
        range("draws", self.draws, 1, 10_000)?;
        whole("dimensions", &self.dimensions, 2.0, 20_000.0)
    }
}
