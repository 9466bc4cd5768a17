//! Compares ways to choose the width of an embedder (σ, or another parameter that may be `auto`) from N training samples per axis (ours).
//!
//! Every second position of a row or an image trains, and ridge regression predicts the others. The *rule* is the width that `auto` has
//! for natural images with N samples. Candidates are widths around the rule, each with four ridges. The ridge applies along each axis. For
//! `likelihood`, `gcv` and `loo`, it applies to the samples, because their theory assumes independent noise. Criteria use only the training
//! samples, except for `half_test`:
//!
//! | criterion | chooses |
//! |---|---|
//! | `rule` | the width of the rule and the ridge 10⁻⁴ σ_1², independent of the samples |
//! | `paper` | the width of *Trading*'s Table 1 in sample distances, and a ridge at the level of its rank cutoff |
//! | `likelihood` | the largest marginal likelihood of the equivalent Gaussian process, which compares spectra |
//! | `gcv` | the smallest error of generalized cross-validation |
//! | `loo` | the smallest leave-one-out error |
//! | `hold_out` | the smallest error at every second training sample, predicted from the others with doubled width and half the features |
//! | `auto` | as `auto` with `solver: ridge`: the best agreement with interpolation, hold-out and leave-one-out errors, on lines |
//! | `half_test` | the smallest error at half of the *test* samples; a reference for the criteria |
//!
//! Records per row or image:
//!
//! - `best_psnr` (dB): test PSNR of the best width with the ridge of the rule.
//! - `best_octaves`: log₂ of the best width relative to the rule.
//! - `test_psnr` (dB): test PSNR of the rule.
//! - `regret_CRITERION` (dB): `best_psnr` minus the test PSNR of the criterion's choice. It is negative if a choice with another ridge is
//!   better.
//!
//! With `fraction`, random positions train instead, and LSMR solves for the weights. `best_psnr` is then the test PSNR of the best width
//! and number of iterations (`best_iterations`, at most 100), and `test_psnr` that of the rule after 100 iterations. The criterion `auto`
//! chooses both by the product of the error at held-out training positions and the distance to kriging. Only `regret_auto` and
//! `regret_rule` are recorded.

mod random;
mod run;

use posenc_experiments::schema::Data;
use posenc_experiments::schema::protocol::{Fault, Kind, Settings, WithoutData};
use posenc_math::embedder::EmbedderSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::{check_fraction, check_has_data, preset, range, ratio};
use posenc_data::Signal;

pub const KIND: Kind = Kind {
    needs_embedder: true,
    takes_auto: true,
    emits_as_batch: true,
    without_data: WithoutData::Defined,
    signals_are_samples: true,
    ..kind!(WidthSelection, "width-selection")
};

/// Settings of `width-selection`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WidthSelection {
    /// Number N of training samples per axis. Images are reduced to 2N × 2N first.
    pub samples: usize,
    /// 1: rows of the luminance; 2: the images.
    pub axes: usize,
    /// With one axis: rows per image, evenly spaced.
    #[serde(default = "preset::<4, usize>")]
    pub rows: usize,
    /// A random share of the 2N × 2N positions of an image trains, above 0 and below 1, instead of a grid. Needs `axes: 2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fraction: Option<f64>,
    /// Widths range from this number of octaves below the rule to the same number above.
    #[serde(default = "ratio::<250, 100>")]
    pub octaves: f64,
    /// Number of widths per octave.
    #[serde(default = "preset::<8, usize>")]
    pub per_octave: usize,
}

impl WidthSelection {
    /// Candidate widths, in octaves from the rule.
    fn all_octaves(&self) -> impl Iterator<Item = f64> {
        let steps = (self.octaves * self.per_octave as f64).floor() as i32;
        let per_octave = self.per_octave as f64;
        (-steps..=steps).map(move |step| f64::from(step) / per_octave)
    }
}

/// Rows of the luminance of an image, evenly spaced.
fn rows(image: &Signal, name: &str, count: usize) -> Vec<Signal> {
    let (side, channels) = (image.sides[0], image.channels);
    let row = |k: usize| {
        let row = (2 * k + 1) * side / (2 * count);
        // The mean of the channels.
        let value = |i: usize| {
            let sum: f64 = (0..channels).map(|c| image.at(row * side + i, c)).sum();
            sum / channels as f64
        };
        Signal {
            name: format!("{name} row {row}"),
            sides: vec![side],
            channels: 1,
            values: (0..side).map(value).collect(),
        }
    };
    (0..count).map(row).collect()
}

impl Settings for WidthSelection {
    fn check(&self) -> Result<(), Fault> {
        range("samples", self.samples, 8, 1024)?;
        if !self.samples.is_multiple_of(4) {
            let message = format!("{} is not allowed; allowed: multiples of 4", self.samples);
            return Err(("samples", message));
        }
        range("axes", self.axes, 1, 2)?;
        range("rows", self.rows, 1, 2 * self.samples)?;
        if let Some(fraction) = self.fraction {
            check_fraction(fraction)?;
            if self.axes != 2 {
                return Err(("fraction", "random positions need images; set `axes: 2`".to_owned()));
            }
        }
        range("octaves", self.octaves, 0.0, 6.0)?;
        range("per_octave", self.per_octave, 1, 32)
    }

    fn check_embedder(&self, spec: &EmbedderSpec) -> Result<(), Fault> {
        if spec.auto().is_none() {
            let message = "`width-selection` chooses a parameter of the embedder; set one to `auto`, such as `sigma: auto`";
            return Err(("kind", message.to_owned()));
        }
        if spec.dimension().is_none_or(|d| d < 4.0 || d % 4.0 != 0.0) {
            let message =
                "`hold_out` uses half of the features; allowed for `dimension`: multiples of 4";
            return Err(("kind", message.to_owned()));
        }
        Ok(())
    }

    fn check_data(&self, data: Option<&Data>) -> Result<(), Fault> {
        check_has_data(KIND.name, data)
    }
}
