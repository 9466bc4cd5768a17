//! Sweeps over a parameter of the embedder.

use posenc_experiments::schema::NumberList;
use posenc_experiments::schema::protocol::Fault;
use posenc_math::embedder::{self, EmbedderSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A parameter of the embedder and its values.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// Name of the parameter.
    pub parameter: String,
    /// Values of the parameter, the abscissa of the recorded values.
    pub values: NumberList,
}

impl Sweep {
    pub fn count(sweep: Option<&Sweep>) -> usize {
        sweep.map_or(0, |sweep| sweep.values.0.len())
    }

    /// Checks that the embedder has the parameter and accepts all its values.
    pub fn check(&self, spec: &EmbedderSpec) -> Result<(), Fault> {
        for &value in &self.values.0 {
            let changed = spec.clone().number(&self.parameter, value);
            if let Err(error) = embedder::validate(&changed) {
                // A wrong name already fails at the first value.
                let known = embedder::find(&spec.kind).is_some_and(|kind| {
                    kind.takes_extra_numbers || kind.parameter(&self.parameter).is_some()
                });
                let key = if known { "sweep.values" } else { "sweep.parameter" };
                return Err((key, error.to_string()));
            }
        }
        Ok(())
    }
}
