//! Interpolates images and clips by classical methods and by kriging, without an encoding of positions (ours).
//!
//! A share of the positions is known, as for `network-nd`, and the others are predicted. With the same item, signal and
//! pattern, the known positions are those of `network-nd` and `closed-form`, so differences are paired.
//!
//! | `method` | regular grid (`step`) | random positions (`fraction`) |
//! |---|---|---|
//! | `mean` | the mean of all samples | the same |
//! | `nearest` | the closest sample | the closest sample |
//! | `linear` | along each axis | on Delaunay triangles; images only |
//! | `cubic` | cubic spline along each axis | Clough–Tocher elements; images only |
//! | `thin-plate` | splines through the nearest samples | the same |
//! | `kriging` | ordinary kriging with the nearest samples, covariance exp(−h/ℓ) | the same |
//! | `auto` | the default of `fit`: kriging with settings from cross-validation on the samples | the same |
//!
//! `nearest`, `linear`, `cubic` and `thin-plate` agree with SciPy. Positions outside the convex hull of the samples get the value at the
//! closest point of the hull (grids) or at the closest sample (random positions).
//!
//! Records per image or clip `test_psnr` (dB) and `time` (s). With `auto`, also records the PSNR that cross-validation predicts,
//! `predicted_psnr`, and its 95 % interval, `predicted_low` and `predicted_high` (dB).

pub mod methods;
mod run;
mod threads;

use posenc_experiments::schema::Data;
use posenc_experiments::schema::protocol::{Fault, Kind, Settings, WithoutData};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::{check_has_data, check_positions, range};

pub use threads::Threads;

pub const KIND: Kind = Kind {
    without_data: WithoutData::Defined,
    signals_are_samples: true,
    ..kind!(Interpolation, "interpolation")
};

/// Settings of `interpolation`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Interpolation {
    /// How values between the samples are computed.
    pub method: Method,
    /// Every `step`-th position along each axis is known; not with `fraction`. Default: 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<usize>,
    /// A random share of all positions is known, above 0 and below 1, instead of a grid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fraction: Option<f64>,
    /// Number of positions per axis to which signals are first reduced by box averages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side: Option<usize>,
}

/// How values between the samples are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// The mean of all samples at every position.
    Mean,
    /// The value of the closest sample.
    Nearest,
    /// Linear interpolation along each axis (grids) or on Delaunay triangles (random positions of images).
    Linear,
    /// Cubic splines along each axis (grids) or Clough–Tocher elements (random positions of images).
    Cubic,
    /// Thin-plate splines through the nearest samples.
    ThinPlate,
    /// Ordinary kriging with fixed settings.
    Kriging,
    /// Kriging with settings from cross-validation.
    Auto,
}

impl Method {
    pub const ALL: [Method; 7] = [
        Method::Mean,
        Method::Nearest,
        Method::Linear,
        Method::Cubic,
        Method::ThinPlate,
        Method::Kriging,
        Method::Auto,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Method::Mean => "mean",
            Method::Nearest => "nearest",
            Method::Linear => "linear",
            Method::Cubic => "cubic",
            Method::ThinPlate => "thin-plate spline",
            Method::Kriging => "kriging",
            Method::Auto => "auto",
        }
    }
}

impl Settings for Interpolation {
    fn check(&self) -> Result<(), Fault> {
        check_positions(self.step, self.fraction)?;
        self.side.map_or(Ok(()), |side| range("side", side, 4, 4096))
    }

    fn check_data(&self, data: Option<&Data>) -> Result<(), Fault> {
        check_has_data(KIND.name, data)
    }

    fn has_model_of(&self, other: &dyn Settings) -> Option<bool> {
        other.downcast_ref::<Self>().map(|_| true)
    }
}
