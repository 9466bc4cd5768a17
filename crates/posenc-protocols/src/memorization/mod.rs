//! Tests whether an affine model on a random matrix X memorizes a random target (Proposition 1).
//!
//! X is N × d, the product of two Gaussian matrices, and has the given rank.
//!
//! Records:
//!
//! - `rank`: numerical rank of X (singular values above 10⁻¹⁰ σ_1).
//! - `augmented_rank`: numerical rank of [X, 1], X with a column of ones.
//! - `relative_residual`: ‖Xw + b − y‖/‖y‖ of the least-squares fit to the target y; 0 if the model memorizes it.

use anyhow::Result;
use faer::Mat;
use posenc_experiments::record::Value;
use posenc_experiments::schema::protocol::{Fault, Kind, Settings, WithoutData};
use posenc_harness::protocol::{Context, Emit, Protocol};
use posenc_math::random::gaussian_vector;
use posenc_math::spectrum::{numerical_rank, singular_values};
use posenc_math::theory::memorization_residual;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::range;

pub const KIND: Kind =
    Kind { without_data: WithoutData::Theory, ..kind!(Memorization, "memorization") };

/// Settings of `memorization`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Memorization {
    /// Number of samples N.
    pub samples: usize,
    /// Embedding dimension d.
    pub dimension: usize,
    /// Rank of the random N×d matrix X.
    pub rank: usize,
    /// Whether the mean of each column of X is subtracted first.
    #[serde(default)]
    pub centered: bool,
    /// Whether the target is sampled in the range of [X, 1], instead of from N(0, 1).
    #[serde(default)]
    pub target_in_range: bool,
}

impl Settings for Memorization {
    fn check(&self) -> Result<(), Fault> {
        range("samples", self.samples, 1, 2048)?;
        range("dimension", self.dimension, 1, 4096)?;
        range("rank", self.rank, 1, self.samples.min(self.dimension))
    }
}

const RANK_TOLERANCE: f64 = 1e-10;

impl Protocol for Memorization {
    /// X = A·B with Gaussian factors A (N × r) and B (r × d) has rank r.
    fn run(&self, context: &Context<'_>, emit: &mut Emit<'_>) -> Result<()> {
        let mut rng = context.stream("matrix and target");
        let (n, d, r) = (self.samples, self.dimension, self.rank);
        let mut gaussian = |rows: usize, columns: usize| {
            let numbers = gaussian_vector(&mut rng, rows * columns);
            Mat::from_fn(rows, columns, |i, j| numbers[i * columns + j])
        };
        let left = gaussian(n, r);
        let right = gaussian(r, d);
        let target = gaussian(n, 1);
        let mut x = &left * &right;
        if self.centered {
            for j in 0..d {
                let mean = (0..n).map(|i| x[(i, j)]).sum::<f64>() / n as f64;
                for i in 0..n {
                    x[(i, j)] -= mean;
                }
            }
        }
        let y: Vec<f64> = if self.target_in_range {
            // X w + b with sampled weights.
            let weights = gaussian(d, 1);
            let fitted = &x * &weights;
            (0..n).map(|i| fitted[(i, 0)] + 1.0).collect()
        } else {
            (0..n).map(|i| target[(i, 0)]).collect()
        };
        let norm = y.iter().map(|v| v * v).sum::<f64>().sqrt();
        let residual = memorization_residual(x.as_ref(), &y, RANK_TOLERANCE)?;
        let augmented = Mat::from_fn(n, d + 1, |i, j| if j < d { x[(i, j)] } else { 1.0 });
        let rank = |m: &Mat<f64>| -> Result<f64> {
            Ok(numerical_rank(&singular_values(m.as_ref())?, RANK_TOLERANCE) as f64)
        };
        emit(
            0,
            vec![
                Value::new("rank", rank(&x)?),
                Value::new("augmented_rank", rank(&augmented)?),
                Value::new("relative_residual", residual / norm),
            ]
            .into(),
        )
    }
}
