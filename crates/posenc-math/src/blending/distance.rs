//! The embedding distance from which blending weights are computed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::distance::ANCHOR;
use crate::embedder::{CodeDistance, Embedder, EmbedderSpec, find};
use crate::spectrum::dot;

/// D(Δ), up to a factor, for Δ in units of x.
pub type DistanceFunction<'a> = Box<dyn Fn(f64) -> f64 + Send + Sync + 'a>;

/// Inner products from which blending weights are computed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InnerProducts {
    /// As in the authors' code: the laws of Gaussian and RFF, the printed square for the triangle, and the inner products of the encoding
    /// for all other kinds.
    #[default]
    Code,
    /// The law for infinitely many features.
    Law,
    /// The inner products of the encoding itself.
    Sampled,
}

/// The embedding distance D of an embedder that was built from `spec`.
///
/// [`InnerProducts::Code`] is `exp(-Δ²/(4σ²))` for the Gaussian, `exp(-2π²σ²Δ²)` for random Fourier features, and the square
/// `¼ max(2h − |Δ|, 0)²` of Prop. 5 for the triangle of half width h. [`InnerProducts::Law`] of the triangle is the cubic B-spline, its true
/// autocorrelation.
///
/// # Errors
///
/// [`InnerProducts::Law`] for a kind without a known law.
pub fn distance_function<'a>(
    source: InnerProducts,
    spec: &EmbedderSpec,
    embedder: &'a dyn Embedder,
) -> Result<DistanceFunction<'a>, Error> {
    let by_code = match source {
        InnerProducts::Sampled => return Ok(sampled(embedder)),
        InnerProducts::Law => CodeDistance::Law,
        InnerProducts::Code => find(&spec.kind).map_or(CodeDistance::Sampled, |k| k.code_distance),
    };
    match by_code {
        CodeDistance::Sampled => Ok(sampled(embedder)),
        CodeDistance::Law if embedder.distance_law(0.0).is_none() => Err(Error(format!(
            "no law of the embedding distance is known for '{}'; use inner products of the encoding itself",
            spec.kind
        ))),
        CodeDistance::Law => Ok(Box::new(|delta| embedder.distance_law(delta).unwrap_or(f64::NAN))),
        CodeDistance::Other(law) => match law(&|name| spec.number_of(name)) {
            Some(law) => Ok(law),
            None => Ok(sampled(embedder)),
        },
    }
}

fn sampled(embedder: &dyn Embedder) -> DistanceFunction<'_> {
    if embedder.gram_kernel(0.0).is_some() {
        return Box::new(|delta| embedder.gram_kernel(delta).unwrap_or(f64::NAN));
    }
    let row = |x: f64| {
        let mut row = vec![0.0; embedder.dimension()];
        embedder.embed(x, &mut row);
        row
    };
    let anchor = row(ANCHOR);
    Box::new(move |delta| dot(&anchor, &row(ANCHOR + delta)))
}
