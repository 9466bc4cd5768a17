//! Sine embedder: shifted copies of one sine, with an optional constant (`rethinking` Sec. 4).
//!
//! `ψ(u) = sin(2πfu) + a`. Whole frequencies give `D(Δ) = (a² + ½cos 2πfΔ)/(a² + ½)` and the stable
//! rank `(a² + ½)/max(a², ¼)`: 2 for the pure sine, 2.0204 for a = 0.7 as in the code of Fig. 3.

use super::{
    kind::{Family, Kind},
    registry::{BOUNDARY, DIMENSION, DefaultValue, Parameter, Rule, SCALING},
    shifted::{Profile, Shifted},
};
use crate::trigonometry::{cos_turns, sin_turns};

/// `frequency` of a periodic profile.
pub(super) const FREQUENCY: Parameter = Parameter::with_default(
    "frequency",
    DefaultValue::Number(1.0),
    Rule::Positive { most: 1e6 },
    "frequency f in periods per unit of x",
);

pub(super) const KIND: Kind = Kind {
    name: "sine",
    label: "Sine",
    symbol: "Sine",
    source: "rethinking Sec. 4, Fig. 3",
    latex: r"\psi_j(x) = \sin(2\pi f (t_j - x)) + a",
    distance: r"\frac{a^2 + \frac{1}{2} \cos 2\pi f \Delta}{a^2 + \frac{1}{2}}",
    stable_rank: r"\frac{a^2 + 1/2}{\max(a^2, 1/4)}",
    parameters: &[
        DIMENSION,
        FREQUENCY,
        Parameter::with_default(
            "offset",
            DefaultValue::Number(0.0),
            Rule::Between { least: -1e6, most: 1e6 },
            "constant a added to the sine",
        ),
        BOUNDARY,
        SCALING,
    ],
    family: Family::Shifted,
    color: Some([0.47, 0.18, 300.0]),
    method_names: &["sin"],
    ..Kind::built_by(|values, _| {
        let (frequency, offset) = (values.number("frequency")?, values.number("offset")?);
        Shifted::build(Sine { frequency, offset }, values)
    })
};

struct Sine {
    frequency: f64,
    offset: f64,
}

impl Sine {
    /// Whether the laws apply: they are averages over whole periods.
    fn has_whole_periods(&self) -> bool {
        self.frequency.fract() == 0.0
    }
}

impl Profile for Sine {
    fn evaluate(&self, u: &mut [f64]) {
        for value in u {
            *value = sin_turns(self.frequency * *value) + self.offset;
        }
    }

    fn law(&self, delta: f64) -> Option<f64> {
        let constant = self.offset * self.offset;
        let harmonic = 0.5 * cos_turns(self.frequency * delta);
        self.has_whole_periods().then_some((constant + harmonic) / (constant + 0.5))
    }

    fn decays(&self) -> bool {
        false
    }

    fn bound(&self) -> Option<f64> {
        let constant = self.offset * self.offset;
        self.has_whole_periods().then_some((constant + 0.5) / constant.max(0.25))
    }
}
