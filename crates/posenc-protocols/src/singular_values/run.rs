//! Singular values of embedding matrices.

use anyhow::{Result, bail};
use posenc_experiments::record::Value;
use posenc_math::embedder::line;
use posenc_math::random::uniform_vector;
use posenc_math::spectrum::{
    condition_number, numerical_rank, singular_values as svd, stable_rank_of,
};

use super::{Sampling, SingularValues};
use crate::memory::embedding_matrix;
use posenc_harness::protocol::{Context, Emit, Protocol};

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
