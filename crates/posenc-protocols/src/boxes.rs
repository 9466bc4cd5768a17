//! What protocols on boxes of screens share: the unit of coordinates, defaults and checks.

use posenc_experiments::schema::Data;
use posenc_experiments::schema::protocol::Fault;
use posenc_math::lff::encoding::{Encoding, Features};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::{check_heads, positive, range};

/// Coordinates of a box.
const COORDINATES: usize = 4;

/// The unit of coordinates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BoxScale {
    /// Of 0 to 99, as in the code that the paper built on.
    #[default]
    Hundredths,
    /// Of 0 to 1.
    Shares,
}

/// Default decay of Adam's second moment.
pub fn beta2() -> f64 {
    0.999
}

/// Default weight decay.
pub fn hundredth() -> f64 {
    0.01
}

/// Checks the sizes of a Transformer.
pub fn check_layers(
    width: usize,
    heads: usize,
    feed_forward: usize,
    layers: usize,
    dropout: f64,
) -> Result<(), Fault> {
    range("width", width, 1, 4096)?;
    check_heads(heads, width)?;
    range("feed_forward", feed_forward, 1, 65_536)?;
    range("layers", layers, 0, 48)?;
    if (0.0..1.0).contains(&dropout) {
        return Ok(());
    }
    Err(("dropout", format!("{dropout} is not allowed; allowed: 0 up to below 1")))
}

/// Checks a weight decay.
pub fn check_weight_decay(weight_decay: f64) -> Result<(), Fault> {
    if weight_decay == 0.0 { Ok(()) } else { positive("weight_decay", weight_decay, 1.0) }
}

/// An encoding of boxes.
pub fn check_encoding(encoding: &Encoding, scale: BoxScale, width: usize) -> Result<(), Fault> {
    if encoding.flat {
        return Err(("encoding", "flat: boxes have four coordinates here".into()));
    }
    if encoding.features == Features::Embed && scale == BoxScale::Shares {
        return Err(("scale", "shares is not allowed; tables have a row per hundredth".into()));
    }
    let checked = encoding.check(COORDINATES, width);
    checked.map_err(|(key, message)| ("encoding", format!("{key}: {message}")))
}

/// Refuses a group without a set of screens: no synthetic data replaces them.
pub fn check_has_screens(data: Option<&Data>) -> Result<(), Fault> {
    if data.is_none() {
        let message = "needs `data: { set: … }`; see file_sets in data/manifest.yaml";
        return Err(("protocol", message.to_owned()));
    }
    Ok(())
}
