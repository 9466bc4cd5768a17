//! Maps the embedding distance of a two-dimensional encoding (`rethinking` Fig. 11).
//!
//! D(Δ) is the inner product of the encodings of the center of the unit square and of the position displaced by Δ = (Δx, Δy).
//!
//! Records:
//!
//! - `distance`: D(Δ)/D(0) over Δx and Δy.
//! - `distance_axis`: D(Δ)/D(0) over |Δ|, for Δ along the x axis.
//! - `distance_diagonal`: D(Δ)/D(0) over |Δ|, for Δ along the diagonal.

mod run;

use posenc_experiments::schema::protocol::{Fault, Kind, Settings, WithoutData};
use posenc_math::embedder::EmbedderSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::{preset, range};
use crate::network_nd::Directions;

pub const KIND: Kind = Kind {
    needs_embedder: true,
    without_data: WithoutData::Theory,
    ..kind!(DistanceMap, "distance-map")
};

/// Settings of `distance-map`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DistanceMap {
    /// Directions along which the plane is embedded, as for `network-nd`.
    #[serde(default)]
    pub directions: Directions,
    /// Number of displacements along each axis.
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

    fn check_embedder(&self, spec: &EmbedderSpec) -> Result<(), Fault> {
        self.directions.check(spec)
    }
}
