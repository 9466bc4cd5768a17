//! Square wave embedder (`rethinking` Sec. 4, Fig. 3).
//!
//! `ψ(u)` is the upper level in the first half of every period 1/f and the lower one in the second.
//! With levels ±1, as the paper defines it, `D(Δ) = 1 - 4p` and the stable rank is π²/4 = 2.467, where
//! `p` is the distance of `fΔ` to the nearest whole number. With levels 0 and 1, as the published
//! curves were made, `D(Δ) = 1 - 2p` and the stable rank is 2.

use std::f64::consts::PI;

use super::{
    kind::{Family, Kind},
    rectangle::TIE,
    registry::{BOUNDARY, DIMENSION, DefaultValue, Parameter, Rule, SCALING},
    shifted::{Profile, Shifted},
    sine::FREQUENCY,
};

pub(super) const KIND: Kind = Kind {
    name: "square",
    label: "Square",
    symbol: "Square",
    source: "rethinking Sec. 4, Fig. 3",
    latex: r"\psi_j(x) = \mathrm{sgn} \sin(2\pi f (t_j - x))",
    distance: r"1 - 4 p,\ p = \min_n |f \Delta - n|",
    stable_rank: r"\pi^2 / 4",
    parameters: &[
        DIMENSION,
        FREQUENCY,
        Parameter::with_default(
            "levels",
            DefaultValue::Text("plus-minus"),
            Rule::OneOf(&["plus-minus", "zero-one"]),
            "the two values: 1 and -1, or 1 and 0",
        ),
        BOUNDARY,
        SCALING,
    ],
    family: Family::Shifted,
    color: Some([0.66, 0.195, 350.0]),
    method_names: &["square"],
    ..Kind::built_by(|values, _| {
        let frequency = values.number("frequency")?;
        let low = if values.text("levels")? == "zero-one" { 0.0 } else { -1.0 };
        Shifted::build(Square { frequency, low }, values)
    })
};

struct Square {
    frequency: f64,
    low: f64,
}

impl Profile for Square {
    fn evaluate(&self, u: &mut [f64]) {
        for value in u {
            let phase = self.frequency * (*value + TIE);
            *value = if phase - phase.floor() < 0.5 { 1.0 } else { self.low };
        }
    }

    fn law(&self, delta: f64) -> Option<f64> {
        let phase = self.frequency * delta;
        let p = (phase - phase.round()).abs();
        let slope = if self.low == 0.0 { 2.0 } else { 4.0 };
        (self.frequency.fract() == 0.0).then_some(1.0 - slope * p)
    }

    fn decays(&self) -> bool {
        false
    }

    fn bound(&self) -> Option<f64> {
        let bound = if self.low == 0.0 { 2.0 } else { PI * PI / 4.0 };
        (self.frequency.fract() == 0.0).then_some(bound)
    }
}
