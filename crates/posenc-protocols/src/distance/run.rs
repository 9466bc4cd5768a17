//! Distance between rows of an embedding.

use anyhow::Result;
use posenc_experiments::record::Value;
use posenc_math::distance::{measured_distance, preserved_length};

use super::Distance;
use crate::memory::feature_count;
use posenc_experiments::plan::Job;
use posenc_harness::protocol::{Context, Emit, Estimate, Protocol};

/// `distance`: D(Δ)/D(0) around the center, its law, and the length over which it is preserved.
fn run(context: &Context<'_>, settings: &Distance) -> Result<Vec<Value>> {
    let embedder = context.embedder()?;
    let displacements = &settings.displacements.0;
    let measured = measured_distance(&*embedder, displacements)?;
    let mut values = Vec::new();
    for (&delta, d) in displacements.iter().zip(&measured) {
        values.push(Value::new("distance", *d).at(delta));
        if let Some(law) = embedder.distance_law(delta) {
            values.push(Value::new("distance_law", law).at(delta));
        }
    }
    if let Some(printed) = printed_law(context) {
        for &delta in displacements {
            values.push(Value::new("distance_printed", printed(delta)).at(delta));
        }
    }
    if embedder.distance_law(0.0).is_some() {
        let law = |delta: f64| embedder.distance_law(delta).unwrap_or(0.0);
        let length = preserved_length(law, settings.threshold_exponent, 0.5);
        values.push(Value::new("preserved_length", length));
    }
    Ok(values)
}

/// The law as a paper prints it, where that is another than ours: the triangle (`trading` Eq. 39),
/// normalized to one at zero.
fn printed_law(context: &Context<'_>) -> Option<impl Fn(f64) -> f64 + use<>> {
    let spec = context.job.variant.embedder.as_ref()?;
    if spec.kind != "triangle" {
        return None;
    }
    let number = |name: &str| match spec.parameters.get(name) {
        Some(posenc_math::embedder::ParameterValue::Number(v)) => Some(*v),
        _ => None,
    };
    let width = number("width").or_else(|| number("half_width").map(|h| 2.0 * h))?;
    Some(move |delta: f64| (1.0 - delta.abs() / width).max(0.0).powi(2))
}

impl Protocol for Distance {
    fn estimate_unit(&self, job: &Job<'_>) -> Estimate {
        let seconds = self.displacements.0.len() as f64 * feature_count(job) * 4e-9;
        Estimate::of(seconds)
    }

    fn run(&self, context: &Context<'_>, emit: &mut Emit<'_>) -> Result<()> {
        emit(0, run(context, self)?.into())
    }
}
