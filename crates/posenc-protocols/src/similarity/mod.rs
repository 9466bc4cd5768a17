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

use std::f64::consts::FRAC_PI_4;

use anyhow::Result;
use posenc_experiments::record::Value;
use posenc_experiments::schema::NumberList;
use posenc_experiments::schema::protocol::{Fault, Kind, Settings, WithoutData};
use posenc_harness::protocol::{Context, Emit, Protocol};
use posenc_math::lff::similarity::{
    FourierFeatures, PositionCode as Code, SineCode, decay, expected_kernel, similarity_map,
};
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

/// Temperature of sinusoidal encodings (`lff` Eq. 1).
const TEMPERATURE: f64 = 10_000.0;

impl Protocol for Similarity {
    /// Records the map over the grid and the decay along an axis and the diagonal, divided by the similarity of the center to itself.
    fn run(&self, context: &Context<'_>, emit: &mut Emit<'_>) -> Result<()> {
        let gamma = self.gamma.unwrap_or(1.0);
        let code: Box<dyn Code> = match self.code {
            PositionCode::Sine => Box::new(SineCode::new(self.dimension, 2, TEMPERATURE)?),
            PositionCode::Fourier => {
                let mut rng = context.stream("frequencies");
                Box::new(FourierFeatures::draw(self.dimension, 2, gamma, &mut rng)?)
            }
        };
        let center = self.center.map(|c| c as f64);
        let side = self.grid;
        let own = code.similarity(&center, &center);
        let mut values = Vec::new();
        // Six digits suffice for a map; full precision would triple the size of the record.
        let six = |v: f64| (v * 1e6).round() / 1e6;
        for (i, s) in similarity_map(&*code, side, side, center).iter().enumerate() {
            let (row, column) = (i / side, i % side);
            values.push(Value::new("similarity", six(s / own)).at(column as f64).and(row as f64));
        }
        for &distance in &self.distances.0 {
            let axis = decay(&*code, center, 0.0, distance);
            let diagonal = decay(&*code, center, FRAC_PI_4, distance);
            values.push(Value::new("similarity_axis", axis).at(distance));
            values.push(Value::new("similarity_diagonal", diagonal).at(distance));
            values.push(Value::new("decay_ratio", (1.0 - diagonal) / (1.0 - axis)).at(distance));
            if self.code == PositionCode::Fourier {
                let expected = 2.0 * expected_kernel(&[0.0, distance], gamma);
                values.push(Value::new("similarity_expected", expected).at(distance));
            }
        }
        emit(0, values.into())
    }
}
