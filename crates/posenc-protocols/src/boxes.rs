//! Shared settings of protocols on boxes of screens: the unit of coordinates, and the check of an encoding.

use posenc_experiments::schema::protocol::Fault;
use posenc_math::lff::encoding::{Encoding, Features};
use posenc_math::lff::widget::COORDINATES;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::within;

/// The unit of coordinates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BoxScale {
    /// Hundredths of the screen, from 0 to 99, as in the code on which the paper builds.
    #[default]
    Hundredths,
    /// Shares of the screen, from 0 to 1; not for `embed`.
    Shares,
}

impl BoxScale {
    /// Hundredths of the screen per unit.
    #[cfg(feature = "attention")]
    pub fn hundredths(self) -> f64 {
        if self == BoxScale::Shares { posenc_data::interfaces::BORDER } else { 1.0 }
    }

    /// Converts the corners of a box, in hundredths.
    #[cfg(feature = "attention")]
    pub fn bounds(self, corners: [f64; 4]) -> [f64; 4] {
        corners.map(|v| v / self.hundredths())
    }
}

pub fn check_encoding(encoding: &Encoding, scale: BoxScale, width: usize) -> Result<(), Fault> {
    if encoding.flat {
        return Err(("encoding", "flat: boxes have four coordinates here".into()));
    }
    if encoding.features == Features::Embed && scale == BoxScale::Shares {
        return Err(("scale", "shares is not allowed; tables have a row per hundredth".into()));
    }
    within("encoding", encoding.check(COORDINATES, width))
}
