//! Computes ranks of simple and complex two-dimensional encodings (`trading` Eq. 7–9, Fig. 5).
//!
//! The embedding matrix of one axis is N × d; both axes share it. Ranks count singular values above 10⁻⁹ σ_1.
//!
//! Records:
//!
//! - `rank_axis`: rank r of the embedding matrix of one axis. `rank_axis_squared`: r².
//! - `rank_simple`, `rank_complex`: ranks of the encodings of all N² points.
//! - `rank_simple_image`: rank of the N × N image that a linear layer with random weights yields on the simple encoding.
//! - `stable_rank_axis`, `stable_rank_axis_squared`, `stable_rank_simple`, `stable_rank_complex`: the corresponding stable ranks.
//! - `simple_encoding`: the 2d features of `position`, over their index.
//! - `complex_encoding`: the d² features of `position`, over the indices of both axes.

mod run;

use posenc_experiments::schema::protocol::{Fault, Kind, Settings, WithoutData};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::range;

pub const KIND: Kind = Kind {
    needs_embedder: true,
    // 2: stable ranks.
    revision: 2,
    without_data: WithoutData::Theory,
    ..kind!(KroneckerRank, "kronecker-rank")
};

/// Settings of `kronecker-rank`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KroneckerRank {
    /// Number N of points along each axis.
    pub points: usize,
    /// The position (x, y) whose simple and complex encodings are recorded.
    pub position: [f64; 2],
}

impl Settings for KroneckerRank {
    fn check(&self) -> Result<(), Fault> {
        range("points", self.points, 2, 64)?;
        self.position.iter().try_for_each(|&x| range("position", x, 0.0, 1.0))
    }
}
