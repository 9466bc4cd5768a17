//! Checks the position encoding of attention models against Algorithm 1 of `lff`, with random parameters.
//!
//! Records:
//!
//! - `positions`, `output_rows`, `output_columns`, `encoding_width`: number of positions, shape of the output and configured width.
//! - `params`: number of parameters of the module. `params_at_side`: the same, over `count_sides`.
//!
//! For Fourier features also:
//!
//! - `algorithm_error`: largest difference between the module (single precision) and Algorithm 1 in double precision, divided by the
//!   largest absolute value of the encoding. All parameters except the frequencies are sampled from N(0, 1), including biases, so that
//!   every term matters.
//! - `params_of_algorithm`: number of parameters by Algorithm 1.
//! - `frequency_variance`: mean squared frequency times γ²; 1 is expected.
//! - `self_similarity`: mean inner product of the features of a position with themselves.
//! - `inner_product_error`: largest error of inner products of features, compared with |F|⁻¹ Σ cos((x − y)·w_k).
//! - `feature_shift_change`, `encoding_shift_change`: mean change of inner products when both positions move by the same vector, divided by
//!   the mean squared norm; of the features and of the whole encoding.
//! - With several groups, `group_swap_error`: relative difference between the encoding of reversed coordinate groups and the reversed
//!   encoding.

#[cfg(feature = "attention")]
mod run;

use posenc_experiments::schema::NumberList;
use posenc_experiments::schema::protocol::{Fault, Kind, Settings, WithoutData};
use posenc_math::lff::encoding::{Encoding, Features};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::{range, whole, within};

pub const KIND: Kind = Kind {
    without_data: WithoutData::Theory,
    ..kind!(attention: PositionEncoding, "position-encoding")
};

/// Settings of `position-encoding`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PositionEncoding {
    /// The position encoding.
    pub encoding: Encoding,
    /// Number of coordinates of a position, $G \cdot M$.
    pub coordinates: usize,
    /// Number of values of a coordinate, which range from 0 to `side` − 1.
    pub side: usize,
    /// Width $D$ of the encoding.
    pub width: usize,
    /// Number $N$ of random positions.
    pub positions: usize,
    /// Numbers of values of a coordinate at which parameters are counted.
    pub count_sides: NumberList,
}

impl Settings for PositionEncoding {
    fn check(&self) -> Result<(), Fault> {
        range("coordinates", self.coordinates, 1, 8)?;
        range("side", self.side, 2, 4096)?;
        range("width", self.width, 1, 4096)?;
        range("positions", self.positions, 2, 4096)?;
        whole("count_sides", &self.count_sides, 2.0, 256.0)?;
        if self.encoding.features == Features::None {
            return Err(("encoding", "features: none has no parameters to check".into()));
        }
        if self.encoding.features == Features::Fourier && self.encoding.layer.is_some() {
            return Err(("encoding", "layer: Algorithm 1 has none; remove it".into()));
        }
        within("encoding", self.encoding.check(self.coordinates, self.width))?;
        let sides = self.count_sides.0.iter().copied().chain([self.side as f64]);
        let axes = if self.encoding.flat { self.coordinates } else { 1 };
        let rows = sides.fold(0.0, f64::max).powi(axes as i32);
        if self.encoding.features == Features::Embed && rows * self.width as f64 > 1e8 {
            let message = "tables of these sides have more than 10⁸ parameters; lower `side` or `count_sides`";
            return Err(("count_sides", message.into()));
        }
        Ok(())
    }
}
