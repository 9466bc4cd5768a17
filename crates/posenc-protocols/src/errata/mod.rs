//! Checks errors in a paper numerically.
//!
//! Records per erratum, with its ID as method:
//!
//! - `holds`: 1 if the computation confirms the erratum, otherwise 0.
//! - `printed`, `measured`, `corrected`: each disputed quantity as the paper prints it, as computed, and by the corrected statement. The
//!   quantity is the signal.

mod run;

use posenc_experiments::schema::protocol::{Kind, Settings, WithoutData};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub const KIND: Kind = Kind {
    // 2: names of quantities. 3: fairer readings of several statements.
    revision: 3,
    reads_published: true,
    without_data: WithoutData::Theory,
    ..kind!(Errata, "errata")
};

/// Settings of `errata`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Errata {}

impl Settings for Errata {}
