//! Computes the singular values of an embedding matrix.
//!
//! Records:
//!
//! - `singular_value`: σ_i/σ_1 over the index, counted from 0.
//! - `stable_rank`: Σσ_i²/σ_1².
//! - `rank_above_one_percent`: number of singular values above 0.01 σ_1.
//! - `numerical_rank`: number of singular values above ε·max(N, d)·σ_1, where ε is that of single precision.
//! - `condition_number`: σ_1 divided by the smallest singular value.

use anyhow::{Result, bail};
use posenc_experiments::record::Value;
use posenc_experiments::schema::protocol::{Fault, Kind, Settings, WithoutData};
use posenc_harness::protocol::{Context, Emit, Protocol};
use posenc_math::embedder::line;
use posenc_math::random::uniform_vector;
use posenc_math::spectrum::{
    condition_number, numerical_rank, singular_values as svd, stable_rank_of,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::range;
use crate::memory::embedding_matrix;

pub const KIND: Kind = Kind {
    needs_embedder: true,
    without_data: WithoutData::Theory,
    ..kind!(SingularValues, "singular-values")
};

/// Settings of `singular-values`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SingularValues {
    /// Number of positions N.
    pub points: usize,
    /// How positions are chosen.
    #[serde(default)]
    pub sampling: Sampling,
}

/// How positions are chosen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sampling {
    /// x_i = i/N.
    #[default]
    Regular,
    /// Independent samples from the uniform distribution on [0, 1).
    Random,
}

impl Settings for SingularValues {
    fn check(&self) -> Result<(), Fault> {
        range("points", self.points, 1, 4096)
    }
}

impl Protocol for SingularValues {
    /// Records the singular values relative to the largest, and their ranks.
    fn run(&self, context: &Context<'_>, emit: &mut Emit<'_>) -> Result<()> {
        let embedder = context.embedder()?;
        let n = self.points;
        let positions = match self.sampling {
            Sampling::Regular => line(n),
            Sampling::Random => uniform_vector(&mut context.stream("positions"), n, 0.0, 1.0),
        };
        let sigma = svd(embedding_matrix(&*embedder, &positions)?.as_ref())?;
        let largest = sigma.iter().copied().fold(0.0, f64::max);
        if largest == 0.0 {
            bail!("the embedding is zero at all {n} positions; widen the embedder");
        }
        // The cutoff of single precision, as for the closed form.
        let cutoff = f64::from(f32::EPSILON) * n.max(embedder.dimension()) as f64;
        let mut values = vec![
            Value::new("stable_rank", stable_rank_of(&sigma)?),
            Value::new("rank_above_one_percent", numerical_rank(&sigma, 1e-2) as f64),
            Value::new("numerical_rank", numerical_rank(&sigma, cutoff) as f64),
            Value::new("condition_number", condition_number(&sigma)),
        ];
        for (i, s) in sigma.iter().enumerate() {
            values.push(Value::new("singular_value", s / largest).at(i as f64));
        }
        emit(0, values.into())
    }
}
