//! Logarithmically spaced frequencies (`trading` Eq. 51, as implemented in its code).
//!
//! `d/2` frequencies `2^u + offset` with `u` equally spaced from 0 to σ, both included; sines and then cosines.

use super::{
    fourier::{Fourier, Law, equally_spaced},
    kind::{Family, Kind},
    linf::{MAX_EXPONENT, octaves},
    registry::{DefaultValue, EVEN_DIMENSION, Parameter, Rule, SCALING},
};

pub(super) const KIND: Kind = Kind {
    name: "logf",
    label: "Logarithmic frequencies",
    symbol: "LogF",
    source: "trading Eq. 51",
    latex: r"\psi(x) = (\sin 2\pi b_j x, \cos 2\pi b_j x),\ b_j = 2^{\sigma j / (d/2 - 1)}",
    distance: r"\frac{2}{d} \sum_j \cos 2\pi b_j \Delta",
    example: &[("sigma", DefaultValue::Number(4.0))],
    parameters: &[
        EVEN_DIMENSION,
        MAX_EXPONENT,
        Parameter::optional(
            "offset",
            Rule::Between { least: -1.0, most: 1e6 },
            "constant added to all frequencies; with -1 the first is 0",
        ),
        SCALING,
    ],
    family: Family::Fourier,
    color: Some([0.76, 0.15, 85.0]),
    method_names: &["logf"],
    fit: octaves([6.5, 6.5, 5.5, 6.2]),
    ..Kind::built_by(|values, _| {
        let mut frequencies = equally_spaced(values.dimension()? / 2, values.number("sigma")?);
        let offset = values.optional_number("offset").unwrap_or(0.0);
        for frequency in &mut frequencies {
            *frequency = frequency.exp2() + offset;
        }
        Ok(Box::new(Fourier { frequencies, law: Law::OwnFrequencies, bound: None }))
    })
};
