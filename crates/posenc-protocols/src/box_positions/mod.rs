//! Counts how rare the positions of widgets are (`lff` Fig. 5).
//!
//! Counts the widgets of generated screens, or with `data` the labeled boxes of a set of files of the format `labelled-screens`. With
//! `captioned: true`, the set has the format `widget-captions`, and the protocol counts the widgets of the training split.
//!
//! Records:
//!
//! - `left_widgets`, `top_widgets`, `right_widgets`, `bottom_widgets`: number of widgets over the value of the coordinate, from 0 to 99.
//! - `rare_bins` (%): share of these values with fewer than 10 widgets, for each coordinate as signal.
//! - `widgets`, `distinct_positions`: number of widgets and of distinct positions.
//! - `once` (%): share of the distinct positions that occur once.

#[cfg(feature = "attention")]
mod run;

use posenc_experiments::schema::Data;
use posenc_experiments::schema::protocol::{Fault, Kind, Settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::{absent, is_default, range, ratio};

pub const KIND: Kind = kind!(attention: BoxPositions, "box-positions");

/// Settings of `box-positions`, which counts positions of widgets of generated screens, or with `data` of boxes of real screens (Fig. 5).
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BoxPositions {
    /// Number of generated screens. Required without `data`, not allowed with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub screens: Option<usize>,
    /// With `data`: the set has the format `widget-captions` instead of `labelled-screens`, and its training widgets are counted.
    #[serde(default, skip_serializing_if = "is_default")]
    pub captioned: bool,
    /// Factor on the ranges of margins, gaps and sizes of generated screens.
    #[serde(default = "ratio::<110, 100>")]
    pub jitter: f64,
}

impl Settings for BoxPositions {
    fn check(&self) -> Result<(), Fault> {
        range("screens", self.screens.unwrap_or(1), 1, 1_000_000)?;
        let captioned = self.captioned && self.screens.is_some();
        absent(
            &[("captioned", captioned)],
            "only allowed with `data`; generated screens have captions",
        )?;
        range("jitter", self.jitter, 0.0, 2.0)
    }

    fn check_data(&self, data: Option<&Data>) -> Result<(), Fault> {
        let is_wrong = self.screens.is_some() == data.is_some();
        absent(&[("protocol.screens", is_wrong)], "required without `data`, not allowed with it")
    }
}
