//! Computes the embedding distance D over the displacement.
//!
//! Records `distance` = D(Δ)/D(0), `distance_law`, `distance_printed` (if a paper prints another law), and `preserved_length`, the
//! displacement at which D(Δ)/D(0) falls to 10^−k.

#[cfg(feature = "run")]
mod run;

use posenc_experiments::schema::NumberList;
use posenc_experiments::schema::protocol::{Fault, Kind, Settings, WithoutData};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::{preset, range};

/// The kind `distance`.
pub const KIND: Kind = Kind {
    needs_embedder: true,
    example: include_str!("example.yaml"),
    runner: runner!(Distance),
    without_data: WithoutData::Theory,
    ..Kind::of::<Distance>("distance")
};

/// Settings of `distance`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Distance {
    /// Displacements Δ from the center x = 1/2.
    pub displacements: NumberList,
    /// Exponent k of the threshold 10^-k for the preserved length.
    #[serde(default = "preset::<1, f64>")]
    pub threshold_exponent: f64,
}

impl Settings for Distance {
    fn check(&self) -> Result<(), Fault> {
        self.displacements.0.iter().try_for_each(|&x| range("displacements", x, -1.0, 1.0))
    }
}
