//! The embedding distance from which blending weights are computed.

use crate::Error;
use crate::distance::ANCHOR;
use crate::embedder::{CodeDistance, Embedder, EmbedderSpec, find};
use crate::spectrum::dot;

/// D(Δ), up to a factor, for Δ in units of x.
pub type DistanceFunction<'a> = Box<dyn Fn(f64) -> f64 + Send + Sync + 'a>;

/// Where D comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DistanceSource {
    /// As in the authors' code, the [`CodeDistance`] of the kind: `exp(-Δ²/(4σ²))` for the Gaussian,
    /// `exp(-2π²σ²Δ²)` for random Fourier features, the square `¼ max(2h − |Δ|, 0)²` of Prop. 5 for the
    /// triangle of half width h, and [`Sampled`](Self::Sampled) for every other kind.
    #[default]
    Code,
    /// The law for infinitely many features; for the triangle the cubic B-spline, which is its true
    /// autocorrelation.
    Law,
    /// Inner products of the encoding itself, ψ(1/2)·ψ(1/2 + Δ): with the sampled frequencies of random Fourier features, and
    /// with the finitely many centers of shifted embedders.
    Sampled,
}

/// The embedding distance D of an embedder that was built from `spec`.
///
/// # Errors
///
/// [`DistanceSource::Law`] for a kind without a known law.
pub fn distance_function<'a>(
    source: DistanceSource,
    spec: &EmbedderSpec,
    embedder: &'a dyn Embedder,
) -> Result<DistanceFunction<'a>, Error> {
    let by_code = match source {
        DistanceSource::Sampled => return Ok(sampled(embedder)),
        DistanceSource::Law => CodeDistance::Law,
        DistanceSource::Code => find(&spec.kind).map_or(CodeDistance::Sampled, |k| k.code_distance),
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
