//! Proposition 1: when an affine model memorizes a random target.

use anyhow::Result;
use faer::Mat;
use posenc_experiments::record::Value;
use posenc_math::random::gaussian_vector;
use posenc_math::spectrum::{numerical_rank, singular_values};
use posenc_math::theory::memorization_residual;

use super::Memorization;
use posenc_harness::protocol::{Context, Emit, Protocol};

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
