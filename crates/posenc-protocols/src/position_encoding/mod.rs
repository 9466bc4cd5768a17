//! Checks the position encoding of attention models against Algorithm 1 of `lff`, with random parameters.
//!
//! Parameters are sampled anew, biases included, so that every term matters. `algorithm_error` is the largest difference between the module
//! (single precision) and the lines of Algorithm 1 in double precision, over the largest number of the encoding.
//!
//! Records `algorithm_error`, `positions`, `output_rows`, `output_columns`, `encoding_width`, `params`, `params_of_algorithm`,
//! `params_at_side` over `count_sides`, and for Fourier features `self_similarity`, `inner_product_error`, `frequency_variance` (times
//! γ²), `feature_shift_change` and `encoding_shift_change` (mean change of inner products when both positions move, over the mean
//! squared norm), and with several groups `group_swap_error`.

#[cfg(feature = "attention")]
mod run;

use posenc_experiments::schema::NumberList;
use posenc_experiments::schema::protocol::{Fault, Kind, Settings, WithoutData};
use posenc_math::lff::encoding::{Encoding, Features};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::{range, whole, within};

/// The kind `position-encoding`.
pub const KIND: Kind = Kind {
    example: include_str!("example.yaml"),
    runner: attention_runner!(PositionEncoding),
    without_data: WithoutData::Theory,
    ..Kind::of::<PositionEncoding>("position-encoding")
};

/// Settings of `position-encoding`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PositionEncoding {
    /// The position encoding.
    pub encoding: Encoding,
    /// Number of coordinates of a position, $G \cdot M$.
    pub coordinates: usize,
    /// Number of values of a coordinate, from 0.
    pub side: usize,
    /// Width $D$ of the encoding.
    pub width: usize,
    /// Number $N$ of random positions.
    pub positions: usize,
    /// Sides at which parameters are counted.
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
        within("encoding", self.encoding.check(self.coordinates, self.width))?;
        let sides = self.count_sides.0.iter().copied().chain([self.side as f64]);
        let rows = sides.fold(0.0, f64::max).powi(if self.encoding.flat {
            self.coordinates as i32
        } else {
            1
        });
        if self.encoding.features == Features::Embed && rows * self.width as f64 > 1e8 {
            let message = "tables of these sides have more than 10⁸ parameters; lower `side` or `count_sides`";
            return Err(("count_sides", message.into()));
        }
        Ok(())
    }
}
