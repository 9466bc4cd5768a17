//! Rows divided by their Euclidean norm (`scaling: unit-row`).

use super::Embedder;

/// `ψ(x) / ‖ψ(x)‖`; a row of zeros stays a row of zeros.
pub(super) struct UnitRow(pub(super) Box<dyn Embedder>);

impl Embedder for UnitRow {
    fn dimension(&self) -> usize {
        self.0.dimension()
    }

    fn embed_columns(&self, x: f64, first: usize, out: &mut [f64]) {
        self.0.embed_columns(x, first, out);
        let norm = self.0.row_norm(x);
        if norm > 0.0 {
            for value in out {
                // A norm that overflows must not turn features into zeros.
                *value = if norm.is_finite() { *value / norm } else { f64::NAN };
            }
        }
    }

    fn distance_law(&self, delta: f64) -> Option<f64> {
        self.0.distance_law(delta)
    }

    fn stable_rank_bound(&self) -> Option<f64> {
        self.0.stable_rank_bound()
    }

    fn is_circulant(&self) -> bool {
        self.0.is_circulant()
    }

    fn gram_kernel(&self, delta: f64) -> Option<f64> {
        Some(self.0.gram_kernel(delta)? / self.0.gram_kernel(0.0)?)
    }
}
