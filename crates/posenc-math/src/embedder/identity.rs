//! No embedding: the coordinate itself (`rethinking` Fig. 8, "none").
//!
//! `ψ(x) = x`: stable rank 1.

use super::{
    Embedder,
    kind::Kind,
    registry::{DefaultValue, Parameter, Rule},
};

pub(super) const KIND: Kind = Kind {
    name: "identity",
    label: "No embedding",
    symbol: "None",
    source: "rethinking Fig. 8",
    latex: r"\psi(x) = x",
    stable_rank: "1",
    parameters: &[Parameter::with_default(
        "dimension",
        DefaultValue::Number(1.0),
        Rule::Multiple { step: 1, most: 1 },
        "number of features, 1",
    )],
    color: Some([0.54, 0.055, 235.0]),
    method_names: &["identity", "none", "raw"],
    ..Kind::built_by(|_, _| Ok(Box::new(Identity)))
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
