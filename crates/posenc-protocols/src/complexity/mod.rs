//! Compares counted operations and bytes of an encoding with measured time (`trading` Appendix C).
//!
//! The protocol evaluates one linear layer with one output on N^D points, with K = N features per axis.
//!
//! Records over N:
//!
//! - `operations`: counted multiply-add operations.
//! - `bytes` (B): counted memory, with eight bytes per number.
//! - `bytes_printed` (B): memory by the formula that the paper prints; `separable` only.
//! - `time` (s): median time of a forward pass.
//!
//! Records the exponents of power laws in N fitted to these: `operations_exponent`, `bytes_exponent` and `time_exponent`.

mod run;

use posenc_experiments::schema::NumberList;
use posenc_experiments::schema::protocol::{Fault, Kind, Settings, WithoutData};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::{preset, range, whole};

pub const KIND: Kind = Kind {
    measures_time: true,
    without_data: WithoutData::Theory,
    ..kind!(Complexity, "complexity")
};

/// Settings of `complexity`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Complexity {
    /// How the linear layer on the encoding is evaluated.
    pub scheme: Scheme,
    /// Sizes N = K along each axis.
    pub sizes: NumberList,
    /// Number of axes D.
    #[serde(default = "preset::<2, usize>")]
    pub axes: usize,
    /// Number of timed repetitions per size; the median is recorded.
    #[serde(default = "preset::<5, usize>")]
    pub repeats: usize,
}

/// How a linear layer on an encoding is evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scheme {
    /// A linear layer on the concatenated encodings of the axes.
    Simple,
    /// A linear layer on the explicit Kronecker product.
    Naive,
    /// Mode products, one axis after another.
    Separable,
    /// Mode products on a grid, then blending of its nodes to N^D arbitrary points.
    NonSeparable,
}

impl Settings for Complexity {
    fn check(&self) -> Result<(), Fault> {
        range("repeats", self.repeats, 1, 1000)?;
        range("axes", self.axes, 2, 3)?;
        whole("sizes", &self.sizes, 2.0, 4096.0)
    }
}
