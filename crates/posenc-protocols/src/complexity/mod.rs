//! Compares counted operations and bytes of an encoding with measured time (`trading` Appendix C).
//!
//! Records `operations`, `bytes`, `bytes_printed`, `time`, and the exponents fitted to them.

#[cfg(feature = "run")]
mod run;

use posenc_experiments::schema::NumberList;
use posenc_experiments::schema::protocol::{Fault, Kind, Settings, WithoutData};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::{preset, range, whole};

/// The kind `complexity`.
pub const KIND: Kind = Kind {
    measures_time: true,
    example: include_str!("example.yaml"),
    runner: runner!(Complexity),
    without_data: WithoutData::Theory,
    ..Kind::of::<Complexity>("complexity")
};

/// Settings of `complexity`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Complexity {
    /// The way the encoding is evaluated.
    pub scheme: Scheme,
    /// Sizes N = K along each axis.
    pub sizes: NumberList,
    /// Number of axes D.
    #[serde(default = "preset::<2, usize>")]
    pub axes: usize,
    /// Timed repetitions per size; the median is recorded.
    #[serde(default = "preset::<5, usize>")]
    pub repeats: usize,
}

/// How a linear layer on an encoding is evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scheme {
    /// Concatenated encodings of the axes, one linear layer.
    Simple,
    /// The Kronecker product written out point by point.
    Naive,
    /// Mode products, one axis after another.
    Separable,
    /// Mode products on a grid, then blending of its nodes to N^D free points.
    NonSeparable,
}

impl Settings for Complexity {
    fn check(&self) -> Result<(), Fault> {
        range("repeats", self.repeats, 1, 1000)?;
        range("axes", self.axes, 2, 3)?;
        whole("sizes", &self.sizes, 2.0, 4096.0)
    }
}
