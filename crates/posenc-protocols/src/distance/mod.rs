//! Computes the embedding distance D over the displacement.
//!
//! D(Δ) = ψ(1/2)·ψ(1/2 + Δ). The abscissa of all metrics but `preserved_length` is the displacement Δ.
//!
//! Records:
//!
//! - `distance`: D(Δ)/D(0) of the embedder.
//! - `distance_law`: D(Δ)/D(0) for d → ∞, if the embedder has a law.
//! - `distance_printed`: D(Δ)/D(0) as a paper prints it, if that differs from the law.
//! - `preserved_length`: the largest displacement, at most 0.5, up to which the law is at least 10^−k.

use anyhow::Result;
use posenc_experiments::record::Value;
use posenc_experiments::schema::NumberList;
use posenc_experiments::schema::protocol::{Fault, Kind, Settings, WithoutData};
use posenc_harness::protocol::{Context, Emit, Protocol};
use posenc_math::distance::{measured_distance, preserved_length};
use posenc_math::embedder::find;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::{positive, preset, range};

pub const KIND: Kind =
    Kind { needs_embedder: true, without_data: WithoutData::Theory, ..kind!(Distance, "distance") };

/// Largest exponent k: the distances have rounding errors of about 10^-16.
pub(crate) const MAX_EXPONENT: f64 = 16.0;

/// Settings of `distance`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Distance {
    /// Displacements Δ from the center x = 1/2.
    pub displacements: NumberList,
    /// Exponent k of the threshold 10^-k of the preserved length.
    #[serde(default = "preset::<1, f64>")]
    pub threshold_exponent: f64,
}

impl Settings for Distance {
    fn check(&self) -> Result<(), Fault> {
        positive("threshold_exponent", self.threshold_exponent, MAX_EXPONENT)?;
        self.displacements.0.iter().try_for_each(|&x| range("displacements", x, -1.0, 1.0))
    }
}

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
