//! Embedding distance over the displacement.

use anyhow::Result;
use posenc_experiments::record::Value;
use posenc_math::distance::{measured_distance, preserved_length};
use posenc_math::embedder::find;

use super::Distance;
use posenc_harness::protocol::{Context, Emit, Protocol};

impl Protocol for Distance {
    /// Records D(Δ)/D(0) around the center, its law, and the preserved length.
    fn run(&self, context: &Context<'_>, emit: &mut Emit<'_>) -> Result<()> {
        let embedder = context.embedder()?;
        let displacements = &self.displacements.0;
        let measured = measured_distance(&*embedder, displacements)?;
        let mut values = Vec::new();
        for (&delta, d) in displacements.iter().zip(&measured) {
            values.push(Value::new("distance", *d).at(delta));
            if let Some(law) = embedder.distance_law(delta) {
                values.push(Value::new("distance_law", law).at(delta));
            }
        }
        let spec = context.job.variant.embedder.as_ref();
        let printed =
            spec.and_then(|spec| find(&spec.kind)?.printed_law?(&|name| spec.number_of(name)));
        if let Some(printed) = printed {
            for &delta in displacements {
                values.push(Value::new("distance_printed", printed(delta)).at(delta));
            }
        }
        if embedder.distance_law(0.0).is_some() {
            let law = |delta: f64| embedder.distance_law(delta).unwrap_or(0.0);
            let length = preserved_length(law, self.threshold_exponent, 0.5);
            values.push(Value::new("preserved_length", length));
        }
        emit(0, values.into())
    }
}
