//! Computes the similarity of two-dimensional position encodings to that of one cell (`lff` Fig. 2).
//!
//! Similarity is the inner product of two encodings, divided by that of the center with itself.
//!
//! Records:
//!
//! - `similarity`: similarity to the center, over column and row of the grid.
//! - `similarity_axis`, `similarity_diagonal`: similarity over the distance from the center, along an axis and along the diagonal.
//! - `decay_ratio`: (1 − `similarity_diagonal`)/(1 − `similarity_axis`) over the distance; 1 if the similarity is isotropic.
//! - `similarity_expected`: exp(−distance²/2γ²) over the distance, the expected similarity of `fourier`.

mod run;

use posenc_experiments::schema::NumberList;
use posenc_experiments::schema::protocol::{Fault, Kind, Settings, WithoutData};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::{positive, range};

pub const KIND: Kind =
    Kind { without_data: WithoutData::Theory, ..kind!(Similarity, "similarity") };

/// Settings of `similarity`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Similarity {
    /// The position encoding.
    pub code: PositionCode,
    /// Side of the square grid, in cells.
    pub grid: usize,
    /// The cell with which all others are compared, (row, column).
    pub center: [usize; 2],
    /// Width of the encoding: per axis for `sine`, |F| for `fourier`.
    pub dimension: usize,
    /// Length scale γ of `fourier`, in cells; 1 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gamma: Option<f64>,
    /// Distances from the center, in cells, at which the decay is recorded.
    pub distances: NumberList,
}

/// A two-dimensional position encoding of `lff`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PositionCode {
    /// Sinusoidal encodings of row and column, concatenated (Eq. 1).
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
        self.distances.0.iter().try_for_each(|&d| positive("distances", d, 1e6))?;
        match self.gamma {
            Some(g) if g <= 0.0 || !g.is_finite() => {
                Err(("gamma", format!("{g} is not allowed; allowed: above 0")))
            }
            _ => Ok(()),
        }
    }
}
