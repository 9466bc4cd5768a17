//! No embedding: the coordinate itself (`rethinking` Fig. 8, "none").
//!
//! `ψ(x) = x`: stable rank 1.

use super::{
    Embedder,
    registry::{DefaultValue, Kind, Parameter, Rule, unchecked},
};

pub(super) const KIND: Kind = Kind {
    name: "identity",
    label: "No embedding",
    symbol: "None",
    source: "rethinking Fig. 8",
    latex: r"\psi(x) = x",
    distance: "",
    stable_rank: "1",
    example: &[],
    parameters: &[Parameter::with_default(
        "dimension",
        DefaultValue::Number(1.0),
        Rule::Multiple { step: 1, most: 1 },
        "number of features, 1",
    )],
    takes_extra_numbers: false,
    check: unchecked,
    build: |_, _| Ok(Box::new(Identity)),
};

struct Identity;

impl Embedder for Identity {
    fn dimension(&self) -> usize {
        1
    }

    fn embed_columns(&self, x: f64, _first: usize, out: &mut [f64]) {
        out.fill(x);
    }

    fn stable_rank_bound(&self) -> Option<f64> {
        Some(1.0)
    }
}
