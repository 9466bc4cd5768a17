//! Counts operations and bytes of an encoding (`trading` Appendix C).
//!
//! The counts are for one linear layer with one output on N^D points, with K = N features per axis.
//!
//! Records over N:
//!
//! - `operations`: counted multiply-add operations.
//! - `bytes` (B): counted memory, with eight bytes per number.
//!
//! Records the exponents of power laws in N fitted to these: `operations_exponent` and `bytes_exponent`.

use anyhow::Result;
use posenc_experiments::record::Value;
use posenc_experiments::schema::NumberList;
use posenc_experiments::schema::protocol::{Fault, Kind, Settings, WithoutData};
use posenc_harness::protocol::{Context, Emit, Protocol};
use posenc_math::complexity::{Scheme, Sizes, cost};
use posenc_math::statistics::power_law_exponent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::{preset, range, whole};

pub const KIND: Kind =
    Kind { without_data: WithoutData::Theory, ..kind!(Complexity, "complexity") };

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
}

impl Settings for Complexity {
    fn check(&self) -> Result<(), Fault> {
        range("axes", self.axes, 2, 3)?;
        whole("sizes", &self.sizes, 2.0, 4096.0)
    }
}

impl Protocol for Complexity {
    fn run(&self, _context: &Context<'_>, emit: &mut Emit<'_>) -> Result<()> {
        let n_axes = self.axes as u32;
        let mut values = Vec::new();
        let mut series: [Vec<f64>; 2] = Default::default();
        for &size in &self.sizes.0 {
            let n = size as u64;
            let counted = cost(self.scheme, Sizes { n_points: n, n_features: n, n_axes });
            let (operations, bytes) = (counted.multiply_adds as f64, counted.bytes(8) as f64);
            values.push(Value::new("operations", operations).at(size));
            values.push(Value::new("bytes", bytes).at(size).unit("B"));
            series[0].push(operations);
            series[1].push(bytes);
        }
        for (metric, of) in ["operations_exponent", "bytes_exponent"].into_iter().zip(&series) {
            values.push(Value::new(metric, power_law_exponent(&self.sizes.0, of)?));
        }
        emit(0, values.into())
    }
}
