//! Stable rank and singular values of embedding matrices.

use anyhow::{Context as _, Result, bail};
use posenc_experiments::record::Value;
use posenc_experiments::schema::protocol::{self, Sampling};
use posenc_math::embedder::Embedder;
use posenc_math::random::uniform_vector;
use posenc_math::spectrum::{
    condition_number, line_stable_rank, numerical_rank, singular_values as svd, stable_rank_of,
    toeplitz_stable_rank,
};
use posenc_math::theory::{exact_stable_rank, periodized};

use super::{Context, embedding_matrix};

/// `stable-rank`: measured, with the bound min(N, b), the law N·D(0)/Σ D(j/N) of a periodic
/// kernel, and for kinds with random frequencies the limit d → ∞ on the open interval.
pub fn stable_rank(context: &Context<'_>, settings: &protocol::StableRank) -> Result<Vec<Value>> {
    let mut values = Vec::new();
    match &settings.sweep {
        None => {
            let embedder = context.embedder()?;
            for &n in &settings.samples.0 {
                measure(&*embedder, n as usize, n, None, &mut values)
                    .with_context(|| format!("N = {n}"))?;
            }
        }
        Some(sweep) => {
            let several = settings.samples.0.len() > 1;
            for &parameter in &sweep.values.0 {
                let embedder = context
                    .embedder_with(&sweep.parameter, parameter)
                    .with_context(|| format!("sweep at {} = {parameter}", sweep.parameter))?;
                for &n in &settings.samples.0 {
                    let signal = several.then(|| format!("N = {n}"));
                    measure(&*embedder, n as usize, parameter, signal, &mut values)
                        .with_context(|| format!("{} = {parameter}", sweep.parameter))?;
                }
            }
        }
    }
    Ok(values)
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
        push("stable_rank_law", exact_stable_rank(n, periodized(law, 3)));
        if embedder.gram_kernel(0.0).is_some() {
            let row: Vec<f64> = (0..n).map(|j| law(j as f64 / n as f64)).collect();
            push("stable_rank_limit", toeplitz_stable_rank(&row)?);
        }
    }
    Ok(())
}

/// `singular-values`: normalized to the largest, with the ranks they give.
pub fn singular_values(
    context: &Context<'_>,
    settings: &protocol::SingularValues,
) -> Result<Vec<Value>> {
    let embedder = context.embedder()?;
    let n = settings.points;
    let positions = match settings.sampling {
        Sampling::Regular => (0..n).map(|i| i as f64 / n as f64).collect(),
        Sampling::Random => uniform_vector(&mut context.stream("positions"), n, 0.0, 1.0),
    };
    let sigma = svd(embedding_matrix(&*embedder, &positions)?.as_ref())?;
    let largest = sigma.iter().copied().fold(0.0, f64::max);
    if largest == 0.0 {
        bail!("the embedding is zero at all {n} positions; widen the embedder");
    }
    // Single precision's cut-off, as for the closed form.
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
    Ok(values)
}
