//! Shared settings of protocols on boxes of screens: the unit of coordinates, defaults and checks.

use posenc_experiments::schema::Data;
use posenc_experiments::schema::protocol::Fault;
use posenc_math::lff::encoding::{Encoding, Features};
use posenc_math::lff::widget::COORDINATES;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::{positive, within};

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

/// The default of Adam's β₂.
pub fn beta2() -> f64 {
    0.999
}

/// Checks a weight decay.
pub fn check_weight_decay(weight_decay: f64) -> Result<(), Fault> {
    if weight_decay == 0.0 { Ok(()) } else { positive("weight_decay", weight_decay, 1.0) }
}

/// Checks an encoding of boxes.
pub fn check_encoding(encoding: &Encoding, scale: BoxScale, width: usize) -> Result<(), Fault> {
    if encoding.flat {
        return Err(("encoding", "flat: boxes have four coordinates here".into()));
    }
    if encoding.features == Features::Embed && scale == BoxScale::Shares {
        return Err(("scale", "shares is not allowed; tables have a row per hundredth".into()));
    }
    within("encoding", encoding.check(COORDINATES, width))
}

/// Refuses a group without a set of screens, for protocols without synthetic screens.
pub fn check_has_screens(data: Option<&Data>) -> Result<(), Fault> {
    if data.is_none() {
        let message = "needs `data: { set: … }`; see file_sets in data/manifest.yaml";
        return Err(("protocol", message.to_owned()));
    }
    Ok(())
}
