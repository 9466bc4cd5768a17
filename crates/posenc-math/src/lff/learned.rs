//! Statistics of random or learned frequencies $W_r$: the shape of the similarity that they define.
//!
//! The similarity $h(\delta) = |F|^{-1}\sum_k \cos(w_k\cdot\delta)$ depends on the rows $w_k$ alone. Near zero, the second moments
//! $S$ of the rows determine it: $2h(\delta) \approx 1 - \tfrac12\,\delta^T S\,\delta$. Its principal axes are therefore those
//! of $S$.

use faer::{Mat, Side};

use super::similarity::FourierFeatures;

/// Moments of the rows of $W_r$.
#[derive(Debug, Clone, PartialEq)]
pub struct FrequencyStatistics {
    pub mean: Vec<f64>,
    /// Covariance of the columns, row by row.
    pub covariance: Vec<f64>,
    /// Length scale of the similarity, $1/\sqrt{\bar\lambda}$ with the mean eigenvalue $\bar\lambda$ of the second moments.
    pub length: f64,
    /// Largest over smallest eigenvalue of the covariance; 1 if the rows are isotropic.
    pub anisotropy: f64,
    /// Root mean square difference between $2h$ and the Gaussian of the same second moments, over the given displacements.
    pub gaussian_residual: f64,
}

impl FrequencyStatistics {
    /// Statistics of `rows`, with the residual over `displacements`; both have `coordinates` numbers per row. `None` without rows,
    /// or if a frequency is not finite.
    pub fn new(rows: &[f64], coordinates: usize, displacements: &[f64]) -> Option<Self> {
        let m = coordinates;
        let features = FourierFeatures::from_weights(rows.to_vec(), m).ok()?;
        if rows.iter().any(|v| !v.is_finite()) {
            return None;
        }
        let n = (rows.len() / m) as f64;
        let mean: Vec<f64> =
            (0..m).map(|c| rows.iter().skip(c).step_by(m).sum::<f64>() / n).collect();
        let moment =
            |a: usize, b: usize| rows.chunks_exact(m).map(|r| r[a] * r[b]).sum::<f64>() / n;
        let moments = Mat::from_fn(m, m, moment);
        let covariance = Mat::from_fn(m, m, |a, b| moments[(a, b)] - mean[a] * mean[b]);
        let eigenvalues = covariance.self_adjoint_eigenvalues(Side::Lower).ok()?;
        let low = eigenvalues.iter().fold(f64::INFINITY, |a, &b| a.min(b)).max(0.0);
        let high = eigenvalues.iter().fold(0.0f64, |a, &b| a.max(b));
        let trace: f64 = (0..m).map(|c| moments[(c, c)]).sum();
        let residual = |delta: &[f64]| {
            let square: f64 = (0..m)
                .map(|a| (0..m).map(|b| delta[a] * moments[(a, b)] * delta[b]).sum::<f64>())
                .sum();
            (2.0 * features.kernel(delta) - (-0.5 * square).exp()).powi(2)
        };
        let count = (displacements.len() / m).max(1) as f64;
        let sum: f64 = displacements.chunks_exact(m).map(residual).sum();
        Some(FrequencyStatistics {
            mean,
            covariance: (0..m * m).map(|i| covariance[(i / m, i % m)]).collect(),
            length: (m as f64 / trace).sqrt(),
            anisotropy: high / low,
            gaussian_residual: (sum / count).sqrt(),
        })
    }

    pub fn correlation(&self, a: usize, b: usize) -> f64 {
        let m = self.mean.len();
        let entry = |a: usize, b: usize| self.covariance[a * m + b];
        entry(a, b) / (entry(a, a) * entry(b, b)).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{gaussian_vector, stream};

    /// Catches a variance mistaken for a standard deviation, and exchanged axes.
    #[test]
    fn shape_of_a_known_distribution() {
        let draws = gaussian_vector(&mut stream(5, "rows"), 40_000);
        // Standard deviations 0.5 and 0.25, correlation −0.6.
        let rows: Vec<f64> = draws
            .chunks_exact(2)
            .flat_map(|z| [0.5 * z[0], 0.25 * (-0.6 * z[0] + 0.8 * z[1])])
            .collect();
        let displacements: Vec<f64> = (-4..=4).flat_map(|i| [f64::from(i), 1.0]).collect();
        let s = FrequencyStatistics::new(&rows, 2, &displacements).unwrap();
        assert!((s.covariance[0] - 0.25).abs() < 0.01 && (s.covariance[3] - 0.0625).abs() < 0.003);
        assert!((s.correlation(0, 1) + 0.6).abs() < 0.02);
        assert!((s.length - (2.0f64 / 0.3125).sqrt()).abs() < 0.03, "{}", s.length);
        // Eigenvalues of [[.25, -.075], [-.075, .0625]].
        assert!((s.anisotropy - 0.276_23 / 0.036_27).abs() < 0.3, "{}", s.anisotropy);
        // The rows are normally distributed, so the residual is the sampling error of 20,000 rows.
        assert!(s.gaussian_residual < 0.02, "{}", s.gaussian_residual);
    }

    #[test]
    fn empty_or_nonfinite_rows_have_no_statistics() {
        assert_eq!(FrequencyStatistics::new(&[], 2, &[]), None);
        assert_eq!(FrequencyStatistics::new(&[1.0, f64::NAN], 2, &[]), None);
    }
}
