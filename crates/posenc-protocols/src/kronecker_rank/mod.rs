//! Computes ranks of simple and complex two-dimensional encodings (`trading` Eq. 7–9, Fig. 5).
//!
//! Records `rank_axis`, `rank_axis_squared`, `rank_simple`, `rank_complex`, `rank_simple_image`, the stable ranks `stable_rank_axis`,
//! `stable_rank_axis_squared`, `stable_rank_simple` and `stable_rank_complex`, and `simple_encoding` and `complex_encoding` of one
//! position.

#[cfg(feature = "run")]
mod run;

use posenc_experiments::schema::protocol::{Fault, Kind, Settings, WithoutData};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::range;

/// The kind `kronecker-rank`.
pub const KIND: Kind = Kind {
    needs_embedder: true,
    // 2: stable ranks.
    revision: 2,
    example: include_str!("example.yaml"),
    runner: runner!(KroneckerRank),
    without_data: WithoutData::Theory,
    ..Kind::of::<KroneckerRank>("kronecker-rank")
};

/// Settings of `kronecker-rank`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KroneckerRank {
    /// Points along each axis.
    pub points: usize,
    /// The position whose simple and complex encoding are recorded.
    pub position: [f64; 2],
}

impl Settings for KroneckerRank {
    fn check(&self) -> Result<(), Fault> {
        range("points", self.points, 2, 64)?;
        self.position.iter().try_for_each(|&x| range("position", x, 0.0, 1.0))
    }
}
