//! Rows divided by their Euclidean norm (`scaling: unit-row`).

use super::Embedder;

/// `ψ(x) / ‖ψ(x)‖`; a row of zeros stays a row of zeros.
pub(super) struct UnitRow {
    inner: Box<dyn Embedder>,
}

impl UnitRow {
    pub(super) fn new(inner: Box<dyn Embedder>) -> Self {
        Self { inner }
    }
}

impl Embedder for UnitRow {
    fn dimension(&self) -> usize {
        self.inner.dimension()
    }

    fn embed_columns(&self, x: f64, first: usize, out: &mut [f64]) {
        self.inner.embed_columns(x, first, out);
        let norm = self.inner.row_norm(x);
        if norm > 0.0 {
            for value in out {
                *value /= norm;
            }
        }
    }

    fn distance_law(&self, delta: f64) -> Option<f64> {
        self.inner.distance_law(delta)
    }

    fn stable_rank_bound(&self) -> Option<f64> {
        self.inner.stable_rank_bound()
    }

    fn is_circulant(&self) -> bool {
        self.inner.is_circulant()
    }

    fn gram_kernel(&self, delta: f64) -> Option<f64> {
        Some(self.inner.gram_kernel(delta)? / self.inner.gram_kernel(0.0)?)
    }
}
