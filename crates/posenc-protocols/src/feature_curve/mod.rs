//! Compares the stable rank with the preserved length over random parameters of an embedder (`rethinking`, notebook).
//!
//! For each random parameter, the protocol builds an embedder of dimension d and embeds the N = d positions i/d. The abscissa of both
//! metrics is the preserved length l, the displacement up to which D(Δ)/D(0) is at least 10^−k. Each dimension is a signal, such as
//! `d = 1000`.
//!
//! Records:
//!
//! - `stable_rank`: stable rank of the N rows.
//! - `stable_rank_curve`: √(k ln 10/π)/l, the stable rank of a Gaussian embedder with this preserved length.

use anyhow::{Context as _, Result};
use posenc_experiments::record::Value;
use posenc_experiments::schema::NumberList;
use posenc_experiments::schema::protocol::{Fault, Kind, Settings, WithoutData};
use posenc_harness::protocol::{Context, Emit, Protocol};
use posenc_math::distance::{cyclic_distance, sampled_preserved_length};
use posenc_math::embedder::{EmbedderSpec, build, names};
use posenc_math::random::uniform_vector;
use posenc_math::spectrum::{circulant_stable_rank, toeplitz_stable_rank};
use posenc_math::theory::stable_rank_for_interval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::{positive, preset, range, whole};
use crate::distance::MAX_EXPONENT;
use crate::memory::row;
use crate::streams::shared_stream;

pub const KIND: Kind =
    Kind { without_data: WithoutData::Theory, ..kind!(FeatureCurve, "feature-curve") };

/// Settings of `feature-curve`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FeatureCurve {
    /// The embedder and the distribution of its parameter.
    pub embedder: CurveEmbedder,
    /// Number of random parameters.
    pub draws: usize,
    /// Embedding dimensions d; the stable rank is that of N = d positions.
    pub dimensions: NumberList,
    /// Exponent k of the threshold 10^-k of the preserved length.
    #[serde(default = "preset::<1, f64>")]
    pub threshold_exponent: f64,
}

/// The two embedders of the feature curve.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CurveEmbedder {
    /// Gaussian with periodic boundary; σ is log-uniform on [1e-3, 1e-1].
    Gaussian,
    /// Random Fourier features; σ = 100^u with u uniform on [0, 1].
    Rff,
}

impl Settings for FeatureCurve {
    fn check(&self) -> Result<(), Fault> {
        positive("threshold_exponent", self.threshold_exponent, MAX_EXPONENT)?;
        range("draws", self.draws, 1, 10_000)?;
        whole("dimensions", &self.dimensions, 2.0, 20_000.0)
    }
}

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
