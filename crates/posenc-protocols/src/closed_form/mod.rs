//! Solves for the weights of a linear model on the complex encoding of an image or a clip (`trading` Eq. 12).
//!
//! Training positions are every `step`-th position along each axis, or with `fraction` a random share of all positions. All other
//! positions test; with `test: centers`, only those halfway between training positions on every axis.
//!
//! Records per image or clip:
//!
//! - `test_psnr` and `train_psnr` (dB).
//! - `params`: number of weights of all channels. `memory` (MB): four bytes per weight.
//! - `time` (s): encoding, factorization and solution for one signal.
//! - On a grid: `rank` and `condition_number` of the training matrix of the first axis, and `time_shared` (s), which divides the time of
//!   the factorization by the number of signals.
//! - With `fraction`: `iterations`, the largest number of LSMR iterations of a channel.
//! - With a parameter chosen from the samples (see below): its value under its name, `cutoff` on a grid, and `selection_time` (s).
//!
//! A parameter of the embedder that is `auto` is chosen in one of three ways:
//!
//! - With `solver: ridge` on a grid, the training samples of each signal determine the parameter and, if it is not given, `cutoff`. The
//!   criteria are agreement with interpolation, a hold-out error and leave-one-out errors.
//! - With `fraction`, the parameter and, if it is not given, `iterations` minimize the product of two errors: that at held-out training
//!   positions, and the distance to kriging.
//! - Otherwise, the parameter depends only on the number of samples.

mod run;

use posenc_experiments::schema::Data;
use posenc_experiments::schema::protocol::{Fault, Kind, Settings, WithoutData};
use posenc_math::closed_form::Solver;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::{absent, below_one, check_fraction, check_has_data, is_default, preset, range};
use crate::network_nd::TestPositions;

pub const KIND: Kind = Kind {
    needs_embedder: true,
    takes_auto: true,
    without_data: WithoutData::Defined,
    signals_are_samples: true,
    ..kind!(ClosedForm, "closed-form")
};

/// Settings of `closed-form`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClosedForm {
    /// Every `step`-th position along each axis trains.
    #[serde(default = "preset::<2, usize>")]
    pub step: usize,
    /// Positions that test: `rest` or, on a grid, `centers`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub test: TestPositions,
    /// Floating-point precision of the factorization and products.
    #[serde(default)]
    pub precision: Precision,
    /// Singular values below `cutoff` times the largest count as zero, or with `solver: ridge` are damped. Default: ε of single
    /// precision times the larger side of the matrix for both precisions, as in the authors' library; with `ridge` 0.01, or chosen from
    /// the training samples if a parameter is `auto`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cutoff: Option<f64>,
    /// Solver of least-squares problems with a rank-deficient matrix.
    #[serde(default, skip_serializing_if = "is_default")]
    pub solver: Solver,
    /// Number of positions per axis to which signals are first reduced by box averages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side: Option<usize>,
    /// A random share of all positions trains instead of a grid, and LSMR solves the least-squares problem iteratively (ours; the papers
    /// have no closed form for this case).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fraction: Option<f64>,
    /// With `fraction`: maximum number of LSMR iterations; fewer regularize more. Default: 100, or chosen from the training samples if a
    /// parameter is `auto`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iterations: Option<usize>,
    /// Whether pictures of the reconstruction are stored.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pictures: bool,
}

/// Floating-point arithmetic.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// 24-bit significand, the default of PyTorch.
    Single,
    /// 53-bit significand.
    #[default]
    Double,
}

impl Settings for ClosedForm {
    fn check(&self) -> Result<(), Fault> {
        range("step", self.step, 2, 64)?;
        self.side.map_or(Ok(()), |side| range("side", side, 4, 4096))?;
        below_one("cutoff", self.cutoff.unwrap_or(0.0))?;
        let has_centers = self.fraction.is_none() && self.step.is_multiple_of(2);
        match self.test {
            TestPositions::Rest => {}
            TestPositions::Centers if has_centers => {}
            TestPositions::Centers => {
                return Err(("test", "`centers` needs an even `step`".into()));
            }
            TestPositions::All => {
                return Err(("test", "`all` is not allowed; allowed: rest, centers".into()));
            }
        }
        if let Some(fraction) = self.fraction {
            check_fraction(fraction)?;
            absent(
                &[("cutoff", self.cutoff.is_some())],
                "only allowed on a grid; an iteration ends by `iterations`",
            )?;
            absent(
                &[("solver", !is_default(&self.solver))],
                "only allowed on a grid; remove it or `fraction`",
            )?;
            return range("iterations", self.iterations.unwrap_or(1), 1, 1_000_000);
        }
        absent(&[("iterations", self.iterations.is_some())], "only allowed with `fraction`")
    }

    fn check_data(&self, data: Option<&Data>) -> Result<(), Fault> {
        check_has_data(KIND.name, data)
    }

    fn has_model_of(&self, other: &dyn Settings) -> Option<bool> {
        other.downcast_ref::<Self>().map(|_| true)
    }
}
