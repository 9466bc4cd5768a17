//! Maps the embedding distance of a two-dimensional encoding (`rethinking` Fig. 11).
//!
//! Records `distance` = D(Δ)/D(0) over Δx and Δy around the center of the unit square, and `distance_axis` and `distance_diagonal` over
//! the length of Δ.

#[cfg(feature = "run")]
mod run;

use posenc_experiments::schema::protocol::{Fault, Kind, Settings, WithoutData};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::{preset, range};
use crate::network_nd::Directions;

/// The kind `distance-map`.
pub const KIND: Kind = Kind {
    needs_embedder: true,
    example: include_str!("example.yaml"),
    runner: runner!(DistanceMap),
    without_data: WithoutData::Theory,
    ..Kind::of::<DistanceMap>("distance-map")
};

/// Settings of `distance-map`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DistanceMap {
    /// Along which directions the plane is embedded.
    #[serde(default)]
    pub directions: Directions,
    /// Displacements along each axis.
    #[serde(default = "preset::<64, usize>")]
    pub points: usize,
    /// Largest displacement along each axis.
    pub extent: f64,
}

impl Settings for DistanceMap {
    fn check(&self) -> Result<(), Fault> {
        range("points", self.points, 3, 512)?;
        range("extent", self.extent, 1e-6, 0.5)
    }
}
