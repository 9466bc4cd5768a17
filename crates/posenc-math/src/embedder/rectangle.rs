//! Rectangle embedder: 1 within half a width of a center (`trading` Prop. 4).
//!
//! `ψ(u) = 1` for `-w/2 <= u < w/2`, with `w` the full width. `D(Δ) = max(0, 1 - |Δ|/w)`, stable
//! rank `min(N, 1/w)`. The interval is half-open so that `w·d` consecutive centers lie in it.

use super::{
    kind::{Family, Kind},
    registry::{BOUNDARY, DIMENSION, DefaultValue, Parameter, Rule, SCALING},
    shifted::{Profile, Shifted},
};
use crate::theory;

pub(super) const KIND: Kind = Kind {
    name: "rectangle",
    label: "Rectangle",
    symbol: "Rect",
    source: "trading Prop. 4, Fig. 3",
    latex: r"\psi_j(x) = [\,|t_j - x| \le w/2\,]",
    distance: r"\max(0,\ 1 - |\Delta| / w)",
    stable_rank: r"\min(N,\ 1/w)",
    example: &[("width", DefaultValue::Number(0.1))],
    parameters: &[
        DIMENSION,
        Parameter::required("width", Rule::Positive { most: 1.0 }, "full width w, in units of x"),
        BOUNDARY,
        SCALING,
    ],
    family: Family::Shifted,
    color: Some([0.68, 0.115, 200.0]),
    method_names: &["rect"],
    ..Kind::built_by(|values, _| {
        Shifted::build(Rectangle { width: values.number("width")? }, values)
    })
};

/// Offset that resolves ties at the ends of the interval in one direction, regardless of rounding in u.
pub(super) const TIE: f64 = 1e-12;

struct Rectangle {
    width: f64,
}

impl Profile for Rectangle {
    fn evaluate(&self, u: &mut [f64]) {
        let half = 0.5 * self.width;
        for value in u {
            let shifted = *value + TIE;
            *value = if shifted >= -half && shifted < half { 1.0 } else { 0.0 };
        }
    }

    fn support(&self) -> f64 {
        0.5 * self.width
    }

    fn law(&self, delta: f64) -> Option<f64> {
        Some(theory::rectangle_law(self.width, delta))
    }

    fn bound(&self) -> Option<f64> {
        Some(theory::rectangle_stable_rank(self.width))
    }
}
