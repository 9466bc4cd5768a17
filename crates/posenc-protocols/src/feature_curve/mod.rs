//! Compares the stable rank with the preserved length over random parameters of an embedder (`rethinking`, notebook).
//!
//! For each random parameter, the protocol builds an embedder of dimension d and embeds the N = d positions i/d. The abscissa of both
//! metrics is the preserved length l, the displacement up to which D(Δ)/D(0) is at least 10^−k. Each dimension is a signal, such as
//! `d = 1000`.
//!
//! Records:
//!
//! - `stable_rank`: stable rank of the N rows.
//! - `stable_rank_curve`: √(k ln 10/π)/l, the stable rank of a Gaussian embedder with this preserved length.

mod run;

use posenc_experiments::schema::NumberList;
use posenc_experiments::schema::protocol::{Fault, Kind, Settings, WithoutData};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::{positive, preset, range, whole};
use crate::distance::MAX_EXPONENT;

pub const KIND: Kind =
    Kind { without_data: WithoutData::Theory, ..kind!(FeatureCurve, "feature-curve") };

/// Settings of `feature-curve`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FeatureCurve {
    /// The embedder and the distribution of its parameter.
    pub embedder: CurveEmbedder,
    /// Number of random parameters.
    pub draws: usize,
    /// Embedding dimensions d; the stable rank is that of N = d positions.
    pub dimensions: NumberList,
    /// Exponent k of the threshold 10^-k of the preserved length.
    #[serde(default = "preset::<1, f64>")]
    pub threshold_exponent: f64,
}

/// The two embedders of the feature curve.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CurveEmbedder {
    /// Gaussian with periodic boundary; σ is log-uniform on [1e-3, 1e-1].
    Gaussian,
    /// Random Fourier features; σ = 100^u with u uniform on [0, 1].
    Rff,
}

impl Settings for FeatureCurve {
    fn check(&self) -> Result<(), Fault> {
        positive("threshold_exponent", self.threshold_exponent, MAX_EXPONENT)?;
        range("draws", self.draws, 1, 10_000)?;
        whole("dimensions", &self.dimensions, 2.0, 20_000.0)
    }
}
