//! Predicts the test PSNR of embedders before training, by stable rank and distance preservation and by other properties (ours).
//!
//! All embedders of `families` fit all signals: a linear layer predicts the N positions between N training samples. If the fit is worse than the
//! mean of the training samples, the test PSNR is that of the mean.
//!
//! Signals are the middle rows of the images of `data.held_out` and synthetic signals (1/f^α noise, edges, chirps, band-limited noise,
//! bumps). The protocol was developed on those of `data.set`, which are not recorded.
//!
//! Each predictor is replaced by its rank among all embedders, from 0 to 1. The prediction for an embedder is the mean test PSNR, on
//! the same signal, of the `neighbors` embedders of other families with the nearest ranks.
//!
//! The predictor `interpolation` is itself a predicted test PSNR and needs neither other embedders nor other signals. It reads the
//! outputs of the fit at the test positions, but no test values. It predicts the mean squared error as D + E/2, at most the variance of
//! the training samples. D is the mean squared difference between the fit and linear interpolation, midway between training samples. E is
//! the mean squared error of linear interpolation from every second training sample. For a 1/f² spectrum, that error is proportional to the
//! distance between samples, hence E/2.
//!
//! The settings of a variant name its `predictors`; the variants of a group share everything else.
//!
//! Records per signal:
//!
//! - `r2_family`: R² of the predictions. `error_family` (dB): median absolute error.
//! - If `interpolation` is the only predictor: `error_estimate` (dB), the median absolute error of the predicted test PSNR itself over
//!   the fits that are better than the mean, and `constant_fits`, the share of the others.
//! - `pairs_apart`: number of pairs (see below) whose test PSNRs differ by at least 3 dB.
//!
//! Records per family, as signal: `measured_psnr` (dB), the mean test PSNR of each embedder over the signals, over its prediction.
//!
//! Records for predictors that do not read the samples:
//!
//! - `pairs`: number of pairs of embedders of two families whose predictors are equal within 5 %. A preserved distance ends at N/2 sample
//!   distances; two embedders that both reach this end make no pair.
//! - For the ten pairs of families with the largest median difference of test PSNR: `pair_gap` (dB), and for both embedders, with the
//!   suffixes `_first` and `_second`, `pair_psnr` (dB), `pair_rank` (stable rank) and `pair_distance` (preserved distance in sample
//!   distances).

mod predictors;
mod run;
mod signals;

use std::collections::BTreeMap;

use posenc_experiments::schema::protocol::{Fault, Kind, Settings, WithoutData};
use posenc_experiments::schema::{Data, NumberList};
use posenc_math::embedder::{EmbedderSpec, ParameterValue, validate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::{preset, range};

pub const KIND: Kind = Kind {
    takes_held_out: true,
    revision: 3,
    without_data: WithoutData::Generated,
    signals_are_samples: true,
    ..kind!(PsnrPrediction, "psnr-prediction")
};

const MAX_EMBEDDERS: usize = 5000;

/// Settings of `psnr-prediction`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PsnrPrediction {
    /// Number N of training samples. Images are reduced to 2N × 2N first.
    pub samples: usize,
    /// Ridge of the linear layer, as a share of the largest squared singular value of the training matrix. A small ridge yields the
    /// minimum-norm solution.
    #[serde(default = "ridge")]
    pub ridge: f64,
    /// Properties that predict test PSNR. Embedders are compared by the ranks of these numbers.
    pub predictors: Vec<Predictor>,
    /// Number of nearest embedders whose mean is the prediction.
    #[serde(default = "preset::<16, usize>")]
    pub neighbors: usize,
    /// Embedders by family.
    pub families: Vec<EmbedderFamily>,
}

fn ridge() -> f64 {
    1e-10
}

/// A property of an embedder that predicts its test PSNR.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Predictor {
    /// Stable rank of the training matrix.
    StableRank,
    /// Largest displacement up to which D ≥ 0.1.
    PreservedDistance,
    /// D at 1, 2, 4, … sample distances.
    DistanceLaw,
    /// Leave-one-out error of the training samples.
    LeaveOneOut,
    /// Test PSNR predicted from the distance between the fit and linear interpolation of the training samples.
    Interpolation,
}

/// Embedders of one kind, with different widths and dimensions.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EmbedderFamily {
    /// Name in records.
    pub name: String,
    /// `kind` and parameters, without `dimension` and the swept parameter.
    pub embedder: BTreeMap<String, EmbedderParameter>,
    /// Parameter that is swept, usually the width.
    pub parameter: String,
    /// Its values.
    pub values: NumberList,
    /// Embedding dimensions d.
    pub dimensions: Vec<usize>,
}

/// The value of a parameter of an embedder.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum EmbedderParameter {
    /// A number.
    Number(f64),
    /// A word or a formula.
    Text(String),
}

impl EmbedderFamily {
    /// All embedders: for each dimension, those with all values of the swept parameter.
    pub fn embedders(&self) -> impl Iterator<Item = EmbedderSpec> + '_ {
        let spec = |dimension: usize, value: f64| {
            let mut spec = EmbedderSpec::new("");
            for (name, parameter) in &self.embedder {
                match parameter {
                    EmbedderParameter::Text(kind) if name == "kind" => spec.kind.clone_from(kind),
                    EmbedderParameter::Text(text) => spec = spec.text(name, text),
                    EmbedderParameter::Number(number) => spec = spec.number(name, *number),
                }
            }
            spec.with("dimension", ParameterValue::Number(dimension as f64))
                .number(&self.parameter, value)
        };
        self.dimensions
            .iter()
            .flat_map(move |&d| self.values.0.iter().map(move |&value| spec(d, value)))
    }

    fn check(&self) -> Result<(), String> {
        for own in ["dimension", self.parameter.as_str()] {
            if self.embedder.contains_key(own) {
                return Err(format!(
                    "remove `{own}` from `embedder`; `dimensions` and `values` set it"
                ));
            }
        }
        if self.dimensions.is_empty() {
            return Err("`dimensions` is empty".to_owned());
        }
        if let Some(d) = self.dimensions.iter().find(|d| !(2..=16_384).contains(*d)) {
            return Err(format!("dimension {d} is not allowed; allowed: 2 to 16384"));
        }
        self.embedders().try_for_each(|spec| validate(&spec).map_err(|e| e.to_string()))
    }
}

impl PsnrPrediction {
    fn count(&self) -> usize {
        self.families.iter().map(|f| f.dimensions.len() * f.values.0.len()).sum()
    }
}

impl Settings for PsnrPrediction {
    fn check(&self) -> Result<(), Fault> {
        range("samples", self.samples, 8, 1024)?;
        range("ridge", self.ridge, 1e-14, 1.0)?;
        range("neighbors", self.neighbors, 1, 100)?;
        if self.predictors.is_empty() {
            return Err(("predictors", "empty; at least one is needed".to_owned()));
        }
        if self.families.len() < 2 {
            let message =
                "at least two families are needed, since each is predicted from the others";
            return Err(("families", message.to_owned()));
        }
        let embedders = self.count();
        if embedders > MAX_EMBEDDERS {
            let message = format!("{embedders} embedders; allowed: up to {MAX_EMBEDDERS}");
            return Err(("families", message));
        }
        for (index, family) in self.families.iter().enumerate() {
            if self.families[..index].iter().any(|other| other.name == family.name) {
                return Err(("families", format!("two families have the name `{}`", family.name)));
            }
            family.check().map_err(|why| ("families", format!("`{}`: {why}", family.name)))?;
        }
        Ok(())
    }

    fn check_data(&self, data: Option<&Data>) -> Result<(), Fault> {
        if data.is_some_and(|data| data.held_out.is_none()) {
            let message =
                "`psnr-prediction` needs `data.held_out`, the set whose rows are predicted";
            return Err(("data", message.to_owned()));
        }
        Ok(())
    }
}
