//! First layer of a SIREN before training: sines of random frequencies and phases (Sitzmann et al. 2020, Sec. 3.2).
//!
//! `ψ_j(x) = sin(ω₀ (w_j (2x - 1) + c_j))` with `w_j` and `c_j` independent and uniform on [-1, 1), the initialization of the authors'
//! code for one input in [-1, 1]. For d → ∞ and phases ω₀ c_j over several periods, `D(Δ) = sin(2ω₀Δ)/(2ω₀Δ)`.

use std::f64::consts::{FRAC_PI_2, TAU};

use super::{
    Embedder,
    kind::{FitDefaults, FitParameter, FitUnit, Kind},
    registry::{DIMENSION, DefaultValue, Parameter, Rule, SCALING},
};
use crate::random::uniform_vector;
use crate::theory::uniform_frequencies_law;
use crate::trigonometry::sin_turns;

pub(super) const KIND: Kind = Kind {
    name: "siren",
    label: "First layer of SIREN",
    symbol: "SIREN",
    source: "Sitzmann et al. 2020, Sec. 3.2",
    latex: r"\psi_j(x) = \sin \omega_0 (w_j (2x - 1) + c_j),\ w_j, c_j \sim \mathcal{U}(-1, 1)",
    distance: r"\frac{\sin 2\omega_0\Delta}{2\omega_0\Delta}",
    stable_rank: r"\min(N,\ 2\omega_0/\pi)",
    example: &[("omega", DefaultValue::Number(30.0))],
    parameters: &[
        DIMENSION,
        Parameter::required(
            "omega",
            Rule::Positive { most: 1e9 },
            "frequency factor ω₀ of the layer, in radians per half unit of x",
        ),
        SCALING,
    ],
    color: Some([0.72, 0.18, 325.0]),
    method_names: &["siren"],
    is_random: true,
    fit: FitDefaults {
        features: 256,
        parameter: Some(FitParameter {
            name: "omega",
            unit: FitUnit::PeriodsPerStep,
            values: [0.31, 0.7, 0.44, 0.8],
        }),
        diagonals: false,
    },
    ..Kind::built_by(|values, rng| {
        let (omega, count) = (values.number("omega")?, values.dimension()?);
        let mut scaled = || -> Vec<f64> {
            uniform_vector(rng, count, -1.0, 1.0).iter().map(|value| omega * value / TAU).collect()
        };
        let (weights, phases) = (scaled(), scaled());
        Ok(Box::new(Siren { omega, weights, phases }))
    })
};

/// Weights and phases in turns.
struct Siren {
    omega: f64,
    weights: Vec<f64>,
    phases: Vec<f64>,
}

impl Embedder for Siren {
    fn dimension(&self) -> usize {
        self.weights.len()
    }

    fn embed_columns(&self, x: f64, first: usize, out: &mut [f64]) {
        let place = 2.0 * x - 1.0;
        let layer = self.weights[first..].iter().zip(&self.phases[first..]);
        for (value, (weight, phase)) in out.iter_mut().zip(layer) {
            *value = sin_turns(weight * place + phase);
        }
    }

    fn distance_law(&self, delta: f64) -> Option<f64> {
        Some(uniform_frequencies_law(self.omega / (TAU * 3f64.sqrt()) * 2.0, delta))
    }

    fn stable_rank_bound(&self) -> Option<f64> {
        Some((self.omega / FRAC_PI_2).max(1.0))
    }
}
