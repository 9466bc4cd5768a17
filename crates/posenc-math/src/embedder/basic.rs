//! Basic embedder: one sine and one cosine of period 1 (`rethinking` Fig. 8, "sinusoidal").
//!
//! `ψ(x) = (sin 2πx, cos 2πx)`: the unit circle, stable rank 2.

use super::{
    fourier::{Fourier, Law},
    kind::{Family, Kind},
    registry::{DefaultValue, Parameter, Rule, SCALING},
};

pub(super) const KIND: Kind = Kind {
    name: "basic",
    label: "Basic",
    symbol: "Basic",
    source: "rethinking Fig. 8",
    latex: r"\psi(x) = (\sin 2\pi x, \cos 2\pi x)",
    distance: r"\cos 2\pi\Delta",
    stable_rank: "2",
    parameters: &[
        Parameter::with_default(
            "dimension",
            DefaultValue::Number(2.0),
            Rule::Multiple { step: 2, most: 2 },
            "number of features, 2",
        ),
        SCALING,
    ],
    family: Family::Fourier,
    color: Some([0.66, 0.13, 285.0]),
    method_names: &["basic"],
    ..Kind::built_by(|_, _| {
        let (frequencies, law) = (vec![1.0], Law::OwnFrequencies);
        Ok(Box::new(Fourier { frequencies, law, bound: Some(2.0) }))
    })
};
