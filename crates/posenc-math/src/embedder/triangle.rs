//! Triangle embedder: falls linearly to 0 at a half width from a center (`trading` Prop. 5, Eq. 53).
//!
//! `ψ(u) = max(0, 1 - |u|/h)`. Eq. 53 and the code of `trading` use the half width `h`, Prop. 5 uses the
//! full width `w = 2h`. A specification has one of them, as `half_width` or as `width`. The stable rank
//! is `min(N, 4/(3w))`. `D` is the cubic B-spline of [`theory::triangle_law`], not the square that the
//! proposition prints.

use super::{
    EmbedderError,
    kind::{CodeDistance, Family, FitDefaults, FitParameter, FitUnit, Kind, Numbers},
    registry::{BOUNDARY, DIMENSION, DefaultValue, Parameter, Rule, SCALING, Values},
    shifted::{Profile, Shifted},
};
use crate::theory;

pub(super) const KIND: Kind = Kind {
    name: "triangle",
    label: "Triangle",
    symbol: "Tri",
    source: "trading Prop. 5, Eq. 53",
    latex: r"\psi_j(x) = \max(0,\ 1 - |t_j - x| / h)",
    distance: r"\begin{cases} 1 - \frac{3}{2}\tau^2 + \frac{3}{4}\tau^3 & \tau \le 1 \\ \frac{1}{4}(2 - \tau)^3 & 1 \le \tau \le 2 \\ 0 & \tau \ge 2 \end{cases},\ \tau = |\Delta| / h",
    stable_rank: r"\min(N,\ 2/(3h))",
    example: &[("half_width", DefaultValue::Number(0.07))],
    parameters: &[
        DIMENSION,
        Parameter::optional(
            "half_width",
            Rule::Positive { most: 0.5 },
            "half width h, in units of x; alternative to width",
        ),
        Parameter::optional(
            "width",
            Rule::Positive { most: 1.0 },
            "full width w = 2h, in units of x; alternative to half_width",
        ),
        BOUNDARY,
        SCALING,
    ],
    check: |values| half_width(values).map(|_| ()),
    family: Family::Shifted,
    color: Some([0.58, 0.155, 146.0]),
    method_names: &["tri"],
    // `trading` Prop. 5.
    code_distance: CodeDistance::Other(|number| {
        let width = full_width(number)?;
        Some(Box::new(move |delta| theory::printed_triangle_law(width, delta)))
    }),
    // `trading` Eq. 39.
    printed_law: Some(|number| {
        let width = full_width(number)?;
        Some(Box::new(move |delta| (1.0 - delta.abs() / width).max(0.0).powi(2)))
    }),
    fit: FitDefaults {
        features: 128,
        parameter: Some(FitParameter {
            name: "half_width",
            unit: FitUnit::Steps,
            values: [1.0, 2.0, 3.5, 1.9],
        }),
        diagonals: true,
    },
    ..Kind::built_by(|values, _| {
        Shifted::build(Triangle { half_width: half_width(values)? }, values)
    })
};

/// The full width, whichever of the two parameters is given.
fn full_width(number: Numbers) -> Option<f64> {
    number("width").or_else(|| number("half_width").map(|half| 2.0 * half))
}

fn half_width(values: &Values) -> Result<f64, EmbedderError> {
    let reason = match (values.optional_number("half_width"), values.optional_number("width")) {
        (Some(half_width), None) => return Ok(half_width),
        (None, Some(width)) => return Ok(0.5 * width),
        (Some(_), Some(_)) => {
            "width and half_width are both given; remove one of them (width = 2 half_width)"
        }
        (None, None) => {
            "set either half_width (above 0, at most 0.5) or width (above 0, at most 1)"
        }
    };
    Err(EmbedderError::conflict(KIND.name, "half_width", reason))
}

struct Triangle {
    half_width: f64,
}

impl Profile for Triangle {
    fn evaluate(&self, u: &mut [f64]) {
        for value in u {
            *value = (1.0 - value.abs() / self.half_width).max(0.0);
        }
    }

    fn support(&self) -> f64 {
        self.half_width
    }

    fn law(&self, delta: f64) -> Option<f64> {
        Some(theory::triangle_law(2.0 * self.half_width, delta))
    }

    fn bound(&self) -> Option<f64> {
        Some(theory::triangle_stable_rank(2.0 * self.half_width))
    }
}
