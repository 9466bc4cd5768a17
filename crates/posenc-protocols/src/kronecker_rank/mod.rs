//! Rank of simple and complex two-dimensional encodings (`trading` Eq. 7–9).

#[cfg(feature = "run")]
mod run;

use posenc_experiments::schema::protocol::{Fault, Kind, Settings};
use serde::{Deserialize, Serialize};

use crate::checks::range;

/// The kind `kronecker-rank`.
pub const KIND: Kind = Kind {
    needs_embedder: true,
    // 2: stable ranks.
    revision: 2,
    example: include_str!("example.yaml"),
    runner: runner!(KroneckerRank),
    ..Kind::of::<KroneckerRank>("kronecker-rank")
};

/// Settings of `kronecker-rank`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
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
