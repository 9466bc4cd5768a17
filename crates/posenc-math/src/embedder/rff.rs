//! Random Fourier features (`rethinking` Prop. 3, `trading` Eq. 52 as its code has it).
//!
//! `d/2` frequencies `b_j ~ σ N(0, 1)`, drawn in order from the generator; sines and then cosines.
//! For d → ∞ `D(Δ) = exp(-2π²σ²Δ²)` and the stable rank is `min(N, √(2π) σ)`; at finite d it is well
//! below.

use super::{
    fourier::{Fourier, Law},
    kind::{CodeDistance, Family, FitDefaults, FitParameter, FitUnit, Kind},
    registry::{DefaultValue, EVEN_DIMENSION, Parameter, Rule, SCALING},
};
use crate::{random::gaussian_vector, theory};

pub(super) const KIND: Kind = Kind {
    name: "rff",
    label: "Random Fourier features",
    symbol: "RFF",
    source: "rethinking Prop. 3, trading Eq. 52",
    latex: r"\psi(x) = (\sin 2\pi b_j x, \cos 2\pi b_j x),\ b_j \sim \sigma\,\mathcal{N}(0, 1)",
    distance: r"\exp(-2\pi^2\sigma^2\Delta^2)",
    stable_rank: r"\min(N,\ \sqrt{2\pi}\,\sigma)",
    example: &[("sigma", DefaultValue::Number(4.0))],
    parameters: &[
        EVEN_DIMENSION,
        Parameter::required(
            "sigma",
            Rule::Positive { most: 1e9 },
            "standard deviation σ of the frequencies, in periods per unit of x",
        ),
        SCALING,
    ],
    family: Family::Fourier,
    color: Some([0.66, 0.175, 50.0]),
    method_names: &["rff", "learnable-fourier", "fourier", "random fourier"],
    is_joint: true,
    code_distance: CodeDistance::Law,
    fit: FitDefaults {
        features: 512,
        parameter: Some(FitParameter {
            name: "sigma",
            unit: FitUnit::PeriodsPerStep,
            values: [42.0 / 256.0, 42.0 / 256.0, 14.0 / 256.0],
        }),
        diagonals: false,
    },
    ..Kind::built_by(|values, rng| {
        let sigma = values.number("sigma")?;
        let mut frequencies = gaussian_vector(rng, values.dimension()? / 2);
        for frequency in &mut frequencies {
            *frequency *= sigma;
        }
        let bound = theory::rff_stable_rank(sigma).max(1.0);
        Ok(Box::new(Fourier::new(frequencies, Law::GaussianFrequencies { sigma }, Some(bound))))
    })
};
