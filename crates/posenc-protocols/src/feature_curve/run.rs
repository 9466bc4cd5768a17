//! The feature curve of the notebook: stable rank over preserved length, for random widths.

use anyhow::{Context as _, Result};
use posenc_experiments::record::Value;
use posenc_math::distance::{cyclic_distance, sampled_preserved_length};
use posenc_math::embedder::{EmbedderSpec, build, names};
use posenc_math::random::uniform_vector;
use posenc_math::spectrum::{circulant_stable_rank, toeplitz_stable_rank};
use posenc_math::theory::stable_rank_for_interval;

use super::{CurveEmbedder, FeatureCurve};
use crate::memory::row;
use crate::streams::shared_stream;
use posenc_harness::protocol::{Context, Emit, Protocol};

impl Protocol for FeatureCurve {
    fn run(&self, context: &Context<'_>, emit: &mut Emit<'_>) -> Result<()> {
        // Both embedders use the same uniform numbers, as in the notebook.
        let uniform = uniform_vector(&mut shared_stream(context, "widths"), self.draws, 0.0, 1.0);
        let mut frequencies = context.stream("embedder");
        let mut values = Vec::new();
        for &d in &self.dimensions.0 {
            for &u in &uniform {
                let spec = match self.embedder {
                    CurveEmbedder::Gaussian => EmbedderSpec::new(names::GAUSSIAN)
                        .number("sigma", 10f64.powf(-3.0 + 2.0 * u))
                        .text("boundary", "periodic"),
                    CurveEmbedder::Rff => {
                        EmbedderSpec::new(names::RFF).number("sigma", 100f64.powf(u))
                    }
                };
                let embedder = build(&spec.number("dimension", d), &mut frequencies)?;
                let n = d as usize;
                // D at the n multiples of 1/n, and the stable rank of the rows at these positions.
                let (distances, rank) = match self.embedder {
                    // The rows of a periodic embedder are shifts of one row, so the matrix is circulant.
                    CurveEmbedder::Gaussian => {
                        let row = row(&*embedder, 0.0);
                        (cyclic_distance(&row)?, circulant_stable_rank(&row)?)
                    }
                    // The Gram matrix is Toeplitz; its first row is D without normalization.
                    CurveEmbedder::Rff => {
                        let kernel = |j: usize| embedder.gram_kernel(j as f64 / n as f64);
                        let row = (0..n)
                            .map(kernel)
                            .collect::<Option<Vec<f64>>>()
                            .context("random Fourier features have a Gram kernel")?;
                        // Displacements from -1/2 to 1/2, as in the notebook: D is even.
                        let distances = (0..n)
                            .map(|i| row[(i as isize - n as isize / 2).unsigned_abs()] / row[0]);
                        (distances.collect(), toeplitz_stable_rank(&row)?)
                    }
                };
                let length = sampled_preserved_length(&distances, self.threshold_exponent);
                let signal = format!("d = {d}");
                values.push(Value::new("stable_rank", rank).at(length).signal(signal.clone()));
                let curve = stable_rank_for_interval(length, self.threshold_exponent);
                values.push(Value::new("stable_rank_curve", curve).at(length).signal(signal));
            }
        }
        emit(0, values.into())
    }
}
