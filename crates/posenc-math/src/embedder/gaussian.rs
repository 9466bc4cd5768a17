//! Gaussian embedder (`rethinking` Prop. 2, `trading` Eq. 54 with its missing square).
//!
//! `ψ(u) = exp(-u²/(2σ²))`. `D(Δ) = exp(-Δ²/(4σ²))`, stable rank `min(N, 1/(2√π σ))`.

use super::{
    kind::{CodeDistance, Family, FitDefaults, FitParameter, FitUnit, Kind},
    registry::{BOUNDARY, DIMENSION, DefaultValue, Parameter, Rule, SCALING},
    shifted::{Profile, Shifted},
};
use crate::theory;

pub(super) const KIND: Kind = Kind {
    name: "gaussian",
    label: "Gaussian",
    symbol: "Gau",
    source: "rethinking Prop. 2, trading Eq. 54",
    latex: r"\psi_j(x) = \exp\left(-\frac{(t_j - x)^2}{2\sigma^2}\right)",
    distance: r"\exp\left(-\frac{\Delta^2}{4\sigma^2}\right)",
    stable_rank: r"\min(N,\ 1/(2\sqrt{\pi}\,\sigma))",
    example: &[("sigma", DefaultValue::Number(0.03))],
    parameters: &[
        DIMENSION,
        Parameter::required(
            "sigma",
            Rule::Positive { most: 1e3 },
            "standard deviation σ, in units of x",
        ),
        BOUNDARY,
        SCALING,
    ],
    family: Family::Shifted,
    color: Some([0.53, 0.155, 255.0]),
    method_names: &["gau"],
    code_distance: CodeDistance::Law,
    fit: FitDefaults {
        features: 128,
        parameter: Some(FitParameter {
            name: "sigma",
            unit: FitUnit::Steps,
            values: [0.64, 1.02, 1.54, 1.3],
        }),
        diagonals: true,
    },
    ..Kind::built_by(|values, _| {
        Shifted::build(Gaussian { sigma: values.number("sigma")? }, values)
    })
};

struct Gaussian {
    sigma: f64,
}

impl Profile for Gaussian {
    fn evaluate(&self, u: &mut [f64]) {
        let twice_variance = 2.0 * self.sigma * self.sigma;
        for value in u {
            *value = (-(*value * *value) / twice_variance).exp();
        }
    }

    /// exp(-x) is 0 in double precision for x above 745.14, which is 38.61 standard deviations.
    fn support(&self) -> f64 {
        38.7 * self.sigma
    }

    fn law(&self, delta: f64) -> Option<f64> {
        Some(theory::gaussian_law(self.sigma, delta))
    }

    fn bound(&self) -> Option<f64> {
        Some(theory::gaussian_stable_rank(self.sigma).max(1.0))
    }
}
