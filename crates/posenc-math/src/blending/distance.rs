//! The embedding distance that the blending weights are made from.

use super::BlendingError;
use crate::distance::ANCHOR;
use crate::embedder::{Embedder, EmbedderSpec, ParameterValue};
use crate::spectrum::dot;
use crate::theory;

/// D(Δ), up to a factor, for Δ in units of x.
pub type DistanceFunction<'a> = Box<dyn Fn(f64) -> f64 + Send + Sync + 'a>;

/// Where D comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DistanceSource {
    /// As in the authors' code: `exp(-Δ²/(4σ²))` for the Gaussian, `exp(-2π²σ²Δ²)` for random Fourier
    /// features, the square `¼ max(2h − |Δ|, 0)²` of Prop. 5 for the triangle of half width h, and
    /// [`Sampled`](Self::Sampled) for every other kind.
    #[default]
    Code,
    /// The law for infinitely many features; for the triangle the cubic B-spline, which is its true
    /// autocorrelation.
    Law,
    /// Inner products of the encoding itself, ψ(1/2)·ψ(1/2 + Δ): of the drawn frequencies for random
    /// Fourier features, and of the finitely many centers for shifted embedders.
    Sampled,
}

/// D of an embedder that was built from `spec`.
///
/// # Errors
///
/// [`BlendingError::NoLaw`] where [`DistanceSource::Law`] is asked of a kind that has none.
pub fn distance_function<'a>(
    source: DistanceSource,
    spec: &EmbedderSpec,
    embedder: &'a dyn Embedder,
) -> Result<DistanceFunction<'a>, BlendingError> {
    match (source, spec.kind.as_str()) {
        (DistanceSource::Code, "triangle") => match full_width(spec) {
            Some(width) => Ok(Box::new(move |delta| theory::printed_triangle_law(width, delta))),
            None => Ok(sampled(embedder)),
        },
        // The code's Gaussian and RFF are the laws.
        (DistanceSource::Code, "gaussian" | "rff") | (DistanceSource::Law, _) => {
            if embedder.distance_law(0.0).is_none() {
                return Err(BlendingError::NoLaw(spec.kind.clone()));
            }
            Ok(Box::new(|delta| embedder.distance_law(delta).unwrap_or(f64::NAN)))
        }
        (DistanceSource::Code | DistanceSource::Sampled, _) => Ok(sampled(embedder)),
    }
}

fn full_width(spec: &EmbedderSpec) -> Option<f64> {
    let number = |name: &str| match spec.parameters.get(name) {
        Some(ParameterValue::Number(value)) => Some(*value),
        _ => None,
    };
    number("width").or_else(|| number("half_width").map(|half| 2.0 * half))
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
