//! Correction for the number of tests.

/// Holm's adjusted p-values, in the order of `p`; each is in [0, 1] and at least the raw one.
///
/// Rejecting all hypotheses with an adjusted p of at most α keeps the probability of any false rejection at α, whatever the
/// dependence between the tests.
pub fn adjusted(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut adjusted = vec![0.0; p.len()];
    let mut largest: f64 = 0.0;
    for (rank, index) in order.into_iter().enumerate() {
        largest = largest.max(p[index] * (p.len() - rank) as f64).min(1.0);
        adjusted[index] = largest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::adjusted;

    /// The expected values are those of R's `p.adjust(c(0.01, 0.04, 0.03, 0.005, 0.9), "holm")`.
    #[test]
    fn p_values_are_adjusted_step_down() {
        let found = adjusted(&[0.01, 0.04, 0.03, 0.005, 0.9]);
        for (found, expected) in found.iter().zip([0.04, 0.09, 0.09, 0.025, 0.9]) {
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
        assert_eq!(adjusted(&[0.6, 0.7]), [1.0, 1.0]);
        assert!(adjusted(&[]).is_empty());
    }
}
