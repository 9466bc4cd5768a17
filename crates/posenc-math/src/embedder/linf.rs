//! Linearly spaced frequencies (`trading` Eq. 50, as implemented in its code).
//!
//! `d/2` frequencies equally spaced from 1 to `2^σ`, both included; sines and then cosines.

use super::{
    fourier::{Fourier, Law, equally_spaced},
    kind::{Family, FitDefaults, FitParameter, FitUnit, Kind},
    registry::{DefaultValue, EVEN_DIMENSION, Parameter, Rule, SCALING},
};

/// `sigma` of the kinds whose largest frequency is `2^sigma`.
pub(super) const MAX_EXPONENT: Parameter = Parameter::required(
    "sigma",
    Rule::Between { least: 0.0, most: 30.0 },
    "exponent σ of the largest frequency 2^σ, in periods per unit of x",
);

/// Defaults of `fit` for a kind whose largest frequency is `2^sigma`.
pub(super) const fn octaves(values: [f64; 4]) -> FitDefaults {
    let parameter = FitParameter { name: "sigma", unit: FitUnit::Octaves, values };
    FitDefaults { features: 256, parameter: Some(parameter), diagonals: false }
}

pub(super) const KIND: Kind = Kind {
    name: "linf",
    label: "Linear frequencies",
    symbol: "LinF",
    source: "trading Eq. 50",
    latex: r"\psi(x) = (\sin 2\pi b_j x, \cos 2\pi b_j x),\ b_j = 1 + (2^\sigma - 1)\,\frac{j}{d/2 - 1}",
    distance: r"\frac{2}{d} \sum_j \cos 2\pi b_j \Delta",
    example: &[("sigma", DefaultValue::Number(4.0))],
    parameters: &[EVEN_DIMENSION, MAX_EXPONENT, SCALING],
    family: Family::Fourier,
    color: Some([0.54, 0.205, 25.0]),
    method_names: &["linf"],
    fit: octaves([6.0, 4.5, 5.0, 6.2]),
    ..Kind::built_by(|values, _| {
        let span = values.number("sigma")?.exp2() - 1.0;
        let mut frequencies = equally_spaced(values.dimension()? / 2, span);
        for frequency in &mut frequencies {
            *frequency += 1.0;
        }
        Ok(Box::new(Fourier { frequencies, law: Law::OwnFrequencies, bound: None }))
    })
};
