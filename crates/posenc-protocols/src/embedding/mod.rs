//! Samples rows of an embedding matrix, ψ(t, x) as a function of t for some positions x.
//!
//! Records:
//!
//! - `embedding`: the d features of each row, over the shift t = j/d. Each position is a signal, such as `x = 0.35`.
//! - `distinct_values`: number of distinct features of each row, after rounding to nine decimal places.
//! - `rank`: numerical rank of the rows at `rank_points` equally spaced positions (singular values above 10⁻⁹ σ_1).
//! - `norm_spread`: (maximum − minimum)/mean of ‖ψ(x)‖² for x from 0.4 to 0.6.

mod run;

use posenc_experiments::schema::NumberList;
use posenc_experiments::schema::protocol::{Fault, Kind, Settings, WithoutData};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::{preset, range};

pub const KIND: Kind = Kind {
    needs_embedder: true,
    without_data: WithoutData::Theory,
    ..kind!(Embedding, "embedding")
};

/// Settings of `embedding`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Embedding {
    /// Positions x of the recorded rows.
    pub positions: NumberList,
    /// Number of equally spaced positions whose rows determine the numerical rank.
    #[serde(default = "preset::<64, usize>")]
    pub rank_points: usize,
}

impl Settings for Embedding {
    fn check(&self) -> Result<(), Fault> {
        range("rank_points", self.rank_points, 2, 4096)?;
        self.positions.0.iter().try_for_each(|&x| range("positions", x, 0.0, 1.0))
    }
}
