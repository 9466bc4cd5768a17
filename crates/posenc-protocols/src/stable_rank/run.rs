//! Stable ranks of embedding matrices.

use anyhow::{Context as _, Result};
use posenc_experiments::record::Value;
use posenc_math::embedder::Embedder;
use posenc_math::spectrum::{line_stable_rank, toeplitz_stable_rank};
use posenc_math::theory::{exact_stable_rank, periodized};

use super::StableRank;
use posenc_harness::protocol::{Context, Emit, Protocol};

impl Protocol for StableRank {
    /// Records the measured stable rank, the bound min(N, b), the law of a periodic kernel, and for Fourier kinds the limit d → ∞ on the
    /// open interval.
    fn run(&self, context: &Context<'_>, emit: &mut Emit<'_>) -> Result<()> {
        let mut values = Vec::new();
        match &self.sweep {
            None => {
                let embedder = context.embedder()?;
                for &n in &self.samples.0 {
                    measure(&*embedder, n as usize, n, None, &mut values)
                        .with_context(|| format!("N = {n}"))?;
                }
            }
            Some(sweep) => {
                let several = self.samples.0.len() > 1;
                for &parameter in &sweep.values.0 {
                    let embedder = context
                        .embedder_from("embedder", Some((&sweep.parameter, parameter)))
                        .with_context(|| format!("sweep at {} = {parameter}", sweep.parameter))?;
                    for &n in &self.samples.0 {
                        let signal = several.then(|| format!("N = {n}"));
                        measure(&*embedder, n as usize, parameter, signal, &mut values)
                            .with_context(|| format!("{} = {parameter}", sweep.parameter))?;
                    }
                }
            }
        }
        emit(0, values.into())
    }
}

fn measure(
    embedder: &dyn Embedder,
    n: usize,
    x: f64,
    signal: Option<String>,
    values: &mut Vec<Value>,
) -> Result<()> {
    let mut push = |metric: &str, value: f64| {
        let mut value = Value::new(metric, value).at(x);
        value.signal = signal.clone();
        values.push(value);
    };
    push("stable_rank", line_stable_rank(embedder, n)?);
    if let Some(bound) = embedder.stable_rank_bound() {
        push("stable_rank_bound", bound.min(n as f64));
    }
    if embedder.distance_law(0.0).is_some() {
        let law = |delta: f64| embedder.distance_law(delta).unwrap_or(0.0);
        let rank = exact_stable_rank(n, periodized(law, 3));
        if rank.is_finite() {
            push("stable_rank_law", rank);
        }
        if embedder.gram_kernel(0.0).is_some() {
            let row: Vec<f64> = (0..n).map(|j| law(j as f64 / n as f64)).collect();
            push("stable_rank_limit", toeplitz_stable_rank(&row)?);
        }
    }
    Ok(())
}
