//! Computes the stable rank of an embedding matrix over the number of samples, or over a parameter of the embedder.
//!
//! The rows of the matrix Ψ are ψ(j/N) for j = 0 … N − 1. With `directions`, they are the N² rows of the encoding of the plane at
//! (i/N, j/N), of which only `stable_rank` is recorded. The abscissa of all metrics is N, or the value of the sweep.
//!
//! Records:
//!
//! - `stable_rank`: ‖Ψ‖²_F/σ_1².
//! - `stable_rank_bound`: min(N, b), if the embedder has an upper bound b for d → ∞.
//! - `stable_rank_law`: N·D(0)/max_k Σ_j D(j/N) cos(2πjk/N), if the embedder has a law D(Δ) and D, continued periodically, is positive
//!   semidefinite. Without negative D, the maximum is the sum at k = 0.
//! - `stable_rank_limit`: the stable rank for d → ∞ without periodic continuation; Fourier kinds only.

use anyhow::{Context as _, Result};
use faer::Mat;
use posenc_experiments::record::Value;
use posenc_experiments::schema::NumberList;
use posenc_experiments::schema::protocol::{Fault, Kind, Settings, WithoutData};
use posenc_harness::protocol::{Context, Emit, Protocol};
use posenc_math::embedder::{Embedder, EmbedderSpec};
use posenc_math::spectrum::{line_stable_rank, stable_rank, toeplitz_stable_rank};
use posenc_math::theory::{exact_stable_rank, periodized};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::whole;
use crate::grid_network::Directions;
use crate::memory::check_memory;
use crate::reconstruction::Features;
use crate::sweep::Sweep;

pub const KIND: Kind = Kind {
    // 2: the law is the maximum over k, not the sum at k = 0.
    revision: 2,
    needs_embedder: true,
    without_data: WithoutData::Theory,
    ..kind!(StableRank, "stable-rank")
};

/// Settings of `stable-rank`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StableRank {
    /// Numbers N of equally spaced samples. With `sweep`, each N is a signal.
    pub samples: NumberList,
    /// An embedder parameter that varies instead of N.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<Sweep>,
    /// Directions along which the plane is embedded, as for `network-nd`; the line if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directions: Option<Directions>,
}

impl Settings for StableRank {
    fn check(&self) -> Result<(), Fault> {
        let most = self.directions.map_or(8192.0, |_| 90.0);
        whole("samples", &self.samples, 1.0, most)
    }

    fn check_embedder(&self, spec: &EmbedderSpec) -> Result<(), Fault> {
        self.directions.map_or(Ok(()), |directions| directions.check(spec))?;
        self.sweep.as_ref().map_or(Ok(()), |sweep| sweep.check(spec))
    }

    fn swept(&self) -> usize {
        Sweep::count(self.sweep.as_ref())
    }
}

impl Protocol for StableRank {
    /// Records the measured stable rank, the bound min(N, b), the law of a periodic kernel, and for Fourier kinds the limit d → ∞ on the
    /// open interval.
    fn run(&self, context: &Context<'_>, emit: &mut Emit<'_>) -> Result<()> {
        let mut values = Vec::new();
        match &self.sweep {
            None => {
                for &n in &self.samples.0 {
                    self.measure(context, None, n as usize, n, None, &mut values)
                        .with_context(|| format!("N = {n}"))?;
                }
            }
            Some(sweep) => {
                let several = self.samples.0.len() > 1;
                for &parameter in &sweep.values.0 {
                    let changed = Some((&*sweep.parameter, parameter));
                    for &n in &self.samples.0 {
                        let signal = several.then(|| format!("N = {n}"));
                        self.measure(context, changed, n as usize, parameter, signal, &mut values)
                            .with_context(|| format!("{} = {parameter}", sweep.parameter))?;
                    }
                }
            }
        }
        emit(0, values.into())
    }
}

impl StableRank {
    /// Measures N samples per axis with at most one changed parameter of the embedder.
    fn measure(
        &self,
        context: &Context<'_>,
        changed: Option<(&str, f64)>,
        n: usize,
        x: f64,
        signal: Option<String>,
        values: &mut Vec<Value>,
    ) -> Result<()> {
        let build = |purpose: &str| context.embedder_from(purpose, changed);
        let Some(directions) = self.directions else {
            return measure(&*build("embedder")?, n, x, signal, values);
        };
        let embedders = match directions {
            Directions::Joint => vec![build("embedder axis 0")?, build("embedder axis 1")?],
            _ => vec![build("embedder")?],
        };
        let value = Value::new("stable_rank", plane_stable_rank(embedders, directions, n)?).at(x);
        values.push(Value { signal, ..value });
        Ok(())
    }
}

/// Stable rank of the encoding of N × N positions of the plane.
fn plane_stable_rank(
    embedders: Vec<Box<dyn Embedder>>,
    directions: Directions,
    n: usize,
) -> Result<f64> {
    let features = Features::new(&[n, n], directions, embedders)?;
    let (points, d): (Vec<u32>, _) = ((0..(n * n) as u32).collect(), features.dimension());
    check_memory(&format!("a {} × {d} embedding matrix", n * n), (n * n) as f64 * d as f64)?;
    let input = features.simple(&points, &[(points.len(), 1.0)])?;
    let rows = Mat::from_fn(points.len(), d, |i, k| f64::from(input.at(k, i)));
    Ok(stable_rank(rows.as_ref())?)
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
        let rank = exact_stable_rank(n, periodized(law));
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

#[cfg(test)]
mod tests {
    use posenc_math::embedder::{EmbedderSpec, build};
    use posenc_math::random::stream;

    use super::*;

    /// Catches rows of the plane that are not all positions, and features that are not those of the directions.
    #[test]
    fn stable_ranks_of_the_plane_follow_from_those_of_the_line() {
        let wave = || build(&EmbedderSpec::new("basic"), &mut stream(0, "")).unwrap();
        let rank = |directions| plane_stable_rank(vec![wave()], directions, 8).unwrap();
        // All four features have the same variance and are orthogonal, and so have the four products.
        assert!((rank(Directions::Axes) - 4.0).abs() < 1e-6, "{}", rank(Directions::Axes));
        assert!((rank(Directions::Grid) - 4.0).abs() < 1e-6, "{}", rank(Directions::Grid));
        // Waves of the plane are less alike than waves of a line.
        let spec = EmbedderSpec::new("rff").number("dimension", 64.0).number("sigma", 8.0);
        let axis = |purpose: &str| build(&spec, &mut stream(0, purpose)).unwrap();
        let joint = plane_stable_rank(vec![axis("0"), axis("1")], Directions::Joint, 32).unwrap();
        let line = line_stable_rank(&*axis("0"), 32).unwrap();
        assert!(joint > 1.5 * line && joint < 64.0, "{joint} against {line} on a line");
    }
}
