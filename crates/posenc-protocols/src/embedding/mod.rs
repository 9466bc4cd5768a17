//! Samples rows of an embedding matrix, ψ(t, x) as a function of t for some positions x.
//!
//! Records:
//!
//! - `embedding`: the d features of each row, over the shift t = j/d. Each position is a signal, such as `x = 0.35`.
//! - `distinct_values`: number of distinct features of each row, after rounding to nine decimal places.
//! - `rank`: numerical rank of the rows at `rank_points` equally spaced positions (singular values above 10⁻⁹ σ_1).
//! - `norm_spread`: (maximum − minimum)/mean of ‖ψ(x)‖² for x from 0.4 to 0.6.

use anyhow::{Result, ensure};
use posenc_experiments::record::Value;
use posenc_experiments::schema::NumberList;
use posenc_experiments::schema::protocol::{Fault, Kind, Settings, WithoutData};
use posenc_harness::protocol::{Context, Emit, Protocol};
use posenc_math::embedder::line;
use posenc_math::spectrum::{numerical_rank, singular_values};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::{preset, range};
use crate::memory::embedding_matrix;

pub const KIND: Kind = Kind {
    needs_embedder: true,
    without_data: WithoutData::Theory,
    ..kind!(Embedding, "embedding")
};

/// Settings of `embedding`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Embedding {
    /// Positions x of the recorded rows. Embedders are defined on [0, 1]; other positions show what they output outside.
    pub positions: NumberList,
    /// Number of equally spaced positions whose rows determine the numerical rank.
    #[serde(default = "preset::<64, usize>")]
    pub rank_points: usize,
}

impl Settings for Embedding {
    fn check(&self) -> Result<(), Fault> {
        range("rank_points", self.rank_points, 2, 4096)?;
        self.positions.0.iter().try_for_each(|&x| range("positions", x, -1.0, 2.0))
    }
}

/// Singular values below this share of the largest are rounding errors.
const RANK_TOLERANCE: f64 = 1e-9;

/// Maximum number of values in a row; a plot cannot show more.
const MAX_ROW: usize = 100_000;

const MAX_RECORD: usize = 1_000_000;

impl Protocol for Embedding {
    /// Records ψ(t_j, x) for a few x, and properties of many rows.
    fn run(&self, context: &Context<'_>, emit: &mut Emit<'_>) -> Result<()> {
        let embedder = context.embedder()?;
        let d = embedder.dimension();
        ensure!(d <= MAX_ROW, "dimension {d}; allowed: at most {MAX_ROW}, since rows are plotted");
        let n_values = d * self.positions.0.len();
        ensure!(
            n_values <= MAX_RECORD,
            "rows of {d} values at {} positions have {n_values}; allowed: {MAX_RECORD}. Lower `dimension` or take fewer `positions`",
            self.positions.0.len()
        );
        let mut values = Vec::new();
        let mut row = vec![0.0; d];
        for &x in &self.positions.0 {
            embedder.embed(x, &mut row);
            for (j, &v) in row.iter().enumerate() {
                let value = Value::new("embedding", v).at(j as f64 / d as f64);
                values.push(value.signal(format!("x = {x}")));
            }
            // Values that differ only by rounding errors count as equal.
            let mut rounded: Vec<i64> = row.iter().map(|v| (v * 1e9).round() as i64).collect();
            rounded.sort_unstable();
            rounded.dedup();
            let distinct = Value::new("distinct_values", rounded.len() as f64);
            values.push(distinct.signal(format!("x = {x}")));
        }
        let n = self.rank_points;
        let sigma = singular_values(embedding_matrix(&*embedder, &line(n))?.as_ref())?;
        values.push(Value::new("rank", numerical_rank(&sigma, RANK_TOLERANCE) as f64));
        // Only the middle of the interval, where open ends have no effect.
        let squares: Vec<f64> =
            (0..=n).map(|i| embedder.row_norm(0.4 + 0.2 * i as f64 / n as f64).powi(2)).collect();
        let least = squares.iter().copied().fold(f64::INFINITY, f64::min);
        let most = squares.iter().copied().fold(0.0, f64::max);
        let mean = squares.iter().sum::<f64>() / squares.len() as f64;
        // Rows of zeros have no spread.
        if mean > 0.0 {
            values.push(Value::new("norm_spread", (most - least) / mean));
        }
        emit(0, values.into())
    }
}
