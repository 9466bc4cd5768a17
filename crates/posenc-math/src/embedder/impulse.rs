//! Impulse embedder: one-hot encoding of the cell that contains a coordinate (`rethinking` Sec. 4).
//!
//! `ψ_j(x) = 1` for `j = ⌊x·d⌋` and 0 otherwise. Coordinates in different cells are orthogonal: the
//! stable rank of N such coordinates is N, and a model does not generalize from one cell to another.

use super::{
    Embedder,
    kind::Kind,
    registry::{DIMENSION, SCALING},
};

pub(super) const KIND: Kind = Kind {
    name: "impulse",
    label: "Impulse",
    symbol: "Imp",
    source: "rethinking Sec. 4, Fig. 3",
    latex: r"\psi_j(x) = [\,j = \lfloor x d \rfloor\,]",
    distance: r"[\,\lfloor x d \rfloor = \lfloor (x + \Delta) d \rfloor\,]",
    stable_rank: r"\min(N, d)",
    parameters: &[DIMENSION, SCALING],
    color: Some([0.43, 0.075, 55.0]),
    method_names: &["imp"],
    ..Kind::built_by(|values, _| Ok(Box::new(Impulse { dimension: values.dimension()? })))
};

struct Impulse {
    dimension: usize,
}

/// The cell of `x` among `d`. A coordinate i/d is in cell i even if rounding puts it just below.
pub(super) fn cell(x: f64, d: usize) -> f64 {
    (x * d as f64 + 1e-9).floor()
}

impl Embedder for Impulse {
    fn dimension(&self) -> usize {
        self.dimension
    }

    fn embed_columns(&self, x: f64, first: usize, out: &mut [f64]) {
        out.fill(if x.is_finite() { 0.0 } else { f64::NAN });
        let column = cell(x, self.dimension) - first as f64;
        if column >= 0.0 && column < out.len() as f64 {
            out[column as usize] = 1.0;
        }
    }

    fn distance_law(&self, delta: f64) -> Option<f64> {
        Some(if delta == 0.0 { 1.0 } else { 0.0 })
    }

    fn is_circulant(&self) -> bool {
        true
    }

    /// The embedder has only d different rows.
    fn stable_rank_bound(&self) -> Option<f64> {
        Some(self.dimension as f64)
    }
}
