//! Stable rank of activations.
use faer::MatRef;

/// Stable rank ‖H‖²_F/σ₁².
pub fn stable_rank(_activations: MatRef<'_, f32>) -> f64 {
    0.0
}
