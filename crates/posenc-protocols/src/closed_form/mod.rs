//! Solves for the weights of a linear model on the complex encoding of an image or a clip (`trading` Eq. 12).
//!
//! Records per image or clip `test_psnr`, `train_psnr`, `params`, `memory` and `time`; on a grid also `rank`, `condition_number` and
//! `time_shared`, at random positions `iterations`.
//!
//! With `solver: ridge` on a grid, a parameter that is `auto` and a cutoff that is not given are chosen from the training samples of each
//! signal, by agreement with interpolation, a hold-out and leave-one-out errors; they are recorded under the parameter's name and as
//! `cutoff`, and the seconds as `selection_time`. With `fraction`, a parameter that is `auto` and the iterations, if none are given, are
//! chosen by the error at training positions that are held out. Elsewhere `auto` depends on the number of samples only.

#[cfg(feature = "run")]
mod run;

use posenc_experiments::schema::Data;
use posenc_experiments::schema::protocol::{Fault, Kind, Settings, WithoutData};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::{absent, below_one, check_fraction, check_has_data, is_false, preset, range};
use crate::network_nd::Blending;

/// The kind `closed-form`.
pub const KIND: Kind = Kind {
    needs_embedder: true,
    takes_auto: true,
    example: include_str!("example.yaml"),
    runner: runner!(ClosedForm),
    without_data: WithoutData::Defined,
    signals_are_samples: true,
    ..Kind::of::<ClosedForm>("closed-form")
};

/// Settings of `closed-form`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClosedForm {
    /// Every `step`-th pixel along each axis trains; the rest tests.
    #[serde(default = "preset::<2, usize>")]
    pub step: usize,
    /// Arithmetic of factorization and products.
    #[serde(default)]
    pub precision: Precision,
    /// Singular values below `cutoff` times the largest count as zero, or lose weight with `solver: ridge`. Default: single
    /// precision's ε times the larger side, as in the authors' library, for both precisions; 0.01 for `ridge`, or with an `auto` width chosen from the samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cutoff: Option<f64>,
    /// How least squares with a matrix of deficient rank are solved.
    #[serde(default, skip_serializing_if = "Solver::is_default")]
    pub solver: Solver,
    /// Side to which signals are reduced first, by box averages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side: Option<usize>,
    /// A random share of all positions trains instead of a grid, and the least squares are solved
    /// iteratively (ours; the papers have no closed form there).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fraction: Option<f64>,
    /// With `fraction`: how the grid is blended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blending: Option<Blending>,
    /// With `fraction`: when the iteration ends. Default: 1e-6.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
    /// With `fraction`: largest number of iterations; fewer regularize. Default: 100, or with an `auto` width chosen from the samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iterations: Option<usize>,
    /// With `fraction`: factor λ of the term λ‖W‖². Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ridge: Option<f64>,
    /// Whether pictures of the reconstruction are stored.
    #[serde(default, skip_serializing_if = "is_false")]
    pub pictures: bool,
}

/// Floating-point arithmetic.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// 24-bit significand, as PyTorch's default.
    Single,
    /// 53-bit significand.
    #[default]
    Double,
}

/// How least squares with a matrix of deficient rank are solved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Solver {
    /// Minimum norm from the singular values above the cutoff.
    #[default]
    TruncatedSvd,
    /// Column-pivoted QR with the rank rule of LAPACK's xGELSY, as PyTorch documents its CPU default.
    PivotedQr,
    /// As `pivoted-qr`, without pivoting: what PyTorch's CPU default came to until 2026, because it passed uninitialized
    /// memory as the list of columns to keep in front.
    FixedOrderQr,
    /// Ridge regression along each axis: 1/σ becomes σ/(σ² + (cutoff · σ_1)²). Ours.
    Ridge,
}

impl Solver {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Settings for ClosedForm {
    fn check(&self) -> Result<(), Fault> {
        range("step", self.step, 2, 64)?;
        self.side.map_or(Ok(()), |side| range("side", side, 4, 4096))?;
        below_one("cutoff", self.cutoff.unwrap_or(0.0))?;
        if let Some(fraction) = self.fraction {
            check_fraction(fraction)?;
            absent(
                &[("cutoff", self.cutoff.is_some())],
                "belongs to a grid; an iteration ends by `tolerance` or `iterations`",
            )?;
            absent(
                &[("solver", !self.solver.is_default())],
                "belongs to a grid; leave it out with `fraction`",
            )?;
            below_one("tolerance", self.tolerance.unwrap_or(0.0))?;
            range("iterations", self.iterations.unwrap_or(1), 1, 1_000_000)?;
            return range("ridge", self.ridge.unwrap_or(0.0), 0.0, 1e12);
        }
        let of_random_positions = [
            ("blending", self.blending.is_some()),
            ("tolerance", self.tolerance.is_some()),
            ("iterations", self.iterations.is_some()),
            ("ridge", self.ridge.is_some()),
        ];
        absent(&of_random_positions, "belongs to random positions; set `fraction`")
    }

    fn check_data(&self, data: Option<&Data>) -> Result<(), Fault> {
        check_has_data(KIND.name, data)
    }

    fn has_model_of(&self, other: &dyn Settings) -> Option<bool> {
        other.downcast_ref::<Self>().map(|_| true)
    }
}
