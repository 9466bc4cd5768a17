//! Computes the similarity of two-dimensional position encodings to that of one cell (`lff` Fig. 2).
//!
//! Records `similarity` over the grid, `similarity_axis`, `similarity_diagonal`, `decay_ratio` and `similarity_expected`.

#[cfg(feature = "run")]
mod run;

use posenc_experiments::schema::NumberList;
use posenc_experiments::schema::protocol::{Fault, Kind, Settings, WithoutData};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::range;

/// The kind `similarity`.
pub const KIND: Kind = Kind {
    example: include_str!("example.yaml"),
    runner: runner!(Similarity),
    without_data: WithoutData::Theory,
    ..Kind::of::<Similarity>("similarity")
};

/// Settings of `similarity`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Similarity {
    /// The position code.
    pub code: PositionCode,
    /// Side of the square grid, in cells.
    pub grid: usize,
    /// The cell that all others are compared with, (row, column).
    pub center: [usize; 2],
    /// Width of the code: per axis for `sine`, |F| for `fourier`.
    pub dimension: usize,
    /// Length scale γ of `fourier`, in cells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gamma: Option<f64>,
    /// Distances from the center, in cells, at which the decay is recorded.
    pub distances: NumberList,
}

/// A 2-D position code of `lff`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PositionCode {
    /// Sine codes of row and column, concatenated (Eq. 1).
    Sine,
    /// Fourier features at initialization (Eq. 2, 3).
    Fourier,
}

impl Settings for Similarity {
    fn check(&self) -> Result<(), Fault> {
        range("grid", self.grid, 2, 256)?;
        range("dimension", self.dimension, 2, 16_384)?;
        if self.center.iter().any(|c| *c >= self.grid) {
            return Err(("center", format!("outside the grid of side {}", self.grid)));
        }
        match self.gamma {
            Some(g) if g <= 0.0 || !g.is_finite() => {
                Err(("gamma", format!("{g} is not allowed; allowed: above 0")))
            }
            _ => Ok(()),
        }
    }
}
