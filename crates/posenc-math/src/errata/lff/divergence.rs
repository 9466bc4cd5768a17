//! The KL regularizer (Eqs. 9 and 10).

use crate::errata::numeric::normal_matrix;
use crate::errata::{Erratum, Error, Finding, Inputs, Quantity, Severity};
use crate::lff::similarity::FourierFeatures;

pub(super) static ERRATA: &[Erratum] = &[
    Erratum {
        id: "lff-divergence-blind",
        place: "Eq. 9, App. C.2",
        severity: Severity::Mathematical,
        printed: "The KL loss, with the mean $\\mu$ and variance $\\sigma^2$ of $W_r$ and a learned target variance \
                  $\\bar\\sigma^2$, \"maintains the symmetry of positional relationships along all the directions\".",
        correct: "The mean and variance are pooled over all entries, so anisotropy and correlation of the columns do \
                  not enter. With a free target variance the minimum is $\\frac12\\ln(1+\\mu^2/\\sigma^2)$, a \
                  penalty on the mean alone. The claimed effect requires the covariance $\\Sigma$ of the rows: \
                  $\\frac12[\\operatorname{tr}\\Sigma/\\bar\\sigma^2 + \\mu^T\\mu/\\bar\\sigma^2 - M + \
                  M\\ln\\bar\\sigma^2 - \\ln\\det\\Sigma]$.",
        consequence: "The reproduction runs Eq. 9 as printed, per column, and with the full covariance.",
        check: divergence_blind,
    },
    Erratum {
        id: "lff-divergence-symmetry",
        place: "App. C.2",
        severity: Severity::Ambiguous,
        printed: "\"As we can see, the symmetry of the positional relation distribution is better maintained with \
                  the KL loss.\" The paper does not define this symmetry.",
        correct: "$r_x\\cdot r_y$ is even in $x-y$ for every $W_r$, so point symmetry cannot be lost. Isotropy, \
                  \"symmetry along all the directions\", can be lost: a skew along a diagonal is a correlation of \
                  the columns of $W_r$.",
        consequence: "The reproduction measures the ratio of the eigenvalues of the covariance and the correlation \
                      of the columns.",
        check: divergence_symmetry,
    },
];

/// Mean and covariance of the rows of a weight matrix with two columns.
struct Moments {
    mean: [f64; 2],
    covariance: [[f64; 2]; 2],
}

impl Moments {
    fn of(rows: &[[f64; 2]]) -> Self {
        let count = rows.len() as f64;
        let mean = [0, 1].map(|c| rows.iter().map(|r| r[c]).sum::<f64>() / count);
        let entry = |a: usize, b: usize| {
            rows.iter().map(|r| (r[a] - mean[a]) * (r[b] - mean[b])).sum::<f64>() / count
        };
        Self { mean, covariance: [[entry(0, 0), entry(0, 1)], [entry(1, 0), entry(1, 1)]] }
    }

    fn pooled_mean(&self) -> f64 {
        0.5 * (self.mean[0] + self.mean[1])
    }

    fn pooled_variance(&self) -> f64 {
        let square = self.covariance[0][0]
            + self.covariance[1][1]
            + self.mean[0] * self.mean[0]
            + self.mean[1] * self.mean[1];
        0.5 * square - self.pooled_mean().powi(2)
    }

    /// Eq. 9 at the target variance that minimizes it.
    fn equation_9_at_its_minimum(&self) -> f64 {
        let (mean, variance) = (self.pooled_mean(), self.pooled_variance());
        let target = variance + mean * mean;
        // At an exact minimum the value can be a negative zero; adding zero makes it positive.
        equation_9(mean, variance, target) + 0.0
    }

    /// KL divergence from a normal distribution with the moments of the rows to $N(0, \bar\sigma^2 I)$,
    /// at the target variance that minimizes it.
    fn full_covariance(&self) -> f64 {
        let [[a, b], [c, d]] = self.covariance;
        let square = self.mean[0] * self.mean[0] + self.mean[1] * self.mean[1];
        let target = 0.5 * (a + d + square);
        0.5 * ((a + d + square) / target - 2.0 + 2.0 * target.ln() - (a * d - b * c).ln())
    }
}

/// $-\frac12(1 - \ln\bar\sigma^2 + \ln\sigma^2 - (\sigma^2+\mu^2)/\bar\sigma^2)$.
fn equation_9(mean: f64, variance: f64, target: f64) -> f64 {
    -0.5 * (1.0 - target.ln() + variance.ln() - (variance + mean * mean) / target)
}

/// Samples 1024 rows and whitens them: the mean is exactly zero and the covariance the identity.
fn white_rows(inputs: &Inputs<'_>, id: &str) -> Vec<[f64; 2]> {
    let draws = normal_matrix(1024, 2, &mut inputs.rng(id));
    let rows: Vec<[f64; 2]> = (0..1024).map(|i| [draws[(i, 0)], draws[(i, 1)]]).collect();
    let Moments { mean, covariance: [[a, _], [b, c]] } = Moments::of(&rows);
    // Inverse of the Cholesky factor [[p, 0], [q, s]] of the covariance.
    let p = a.sqrt();
    let q = b / p;
    let s = (c - q * q).sqrt();
    rows.iter()
        .map(|row| {
            let first = (row[0] - mean[0]) / p;
            [first, (row[1] - mean[1] - q * first) / s]
        })
        .collect()
}

fn divergence_blind(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let white = white_rows(inputs, "lff-divergence-blind");
    let map =
        |f: &dyn Fn(&[f64; 2]) -> [f64; 2]| Moments::of(&white.iter().map(f).collect::<Vec<_>>());
    let correlated = map(&|w| [w[0], -0.9 * w[0] + 0.19f64.sqrt() * w[1]]);
    let stretched = map(&|w| [1.8f64.sqrt() * w[0], 0.2f64.sqrt() * w[1]]);
    let shifted = map(&|w| [w[0] + 0.5, w[1] + 0.5]);
    let ratio = shifted.pooled_mean().powi(2) / shifted.pooled_variance();
    let quantities = vec![
        Quantity::new("Eq. 9 and full covariance, columns correlated by $-0.9$")
            .printed(correlated.equation_9_at_its_minimum())
            .corrected(correlated.full_covariance()),
        Quantity::new("Eq. 9 and full covariance, axis variances 9 : 1")
            .printed(stretched.equation_9_at_its_minimum())
            .corrected(stretched.full_covariance()),
        Quantity::new("Eq. 9, mean shifted by 0.5")
            .measured(shifted.equation_9_at_its_minimum())
            .corrected(0.5 * ratio.ln_1p()),
    ];
    let blind = |q: &Quantity| q.printed < Some(1e-9) && q.corrected > Some(0.4);
    let holds = blind(&quantities[0]) && blind(&quantities[1]) && quantities[2].is_corrected(1e-9);
    Ok(Finding { quantities, holds })
}

fn divergence_symmetry(inputs: &Inputs<'_>) -> Result<Finding, Error> {
    let white = white_rows(inputs, "lff-divergence-symmetry");
    let skewed: Vec<f64> =
        white.iter().flat_map(|w| [w[0] + 0.7, -0.9 * w[0] + 0.19f64.sqrt() * w[1]]).collect();
    let code = FourierFeatures::from_weights(skewed, 2)?;
    let asymmetry = (code.kernel(&[0.6, -0.2]) - code.kernel(&[-0.6, 0.2])).abs();
    let (diagonal, anti) = (code.kernel(&[0.5, 0.5]), code.kernel(&[0.5, -0.5]));
    let quantities = vec![
        Quantity::new("$|h(\\delta) - h(-\\delta)|$ of a skewed $W_r$")
            .measured(asymmetry)
            .corrected(0.0),
        Quantity::new("similarity along the diagonal").measured(diagonal),
        Quantity::new("similarity along the anti-diagonal, same distance").measured(anti),
    ];
    let holds = quantities[0].is_corrected(1e-12) && (diagonal - anti).abs() > 0.1;
    Ok(Finding { quantities, holds })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errata::numeric::{midpoint, simpson};
    use crate::tolerance::{Tolerance, assert_close};
    use std::f64::consts::TAU;

    /// Catches a sign or normalization error in Eq. 9 or in the full-covariance version.
    #[test]
    fn divergences_of_normal_laws() {
        let density = |x: f64, mean: f64, variance: f64| {
            (-(x - mean).powi(2) / (2.0 * variance)).exp() / (TAU * variance).sqrt()
        };
        let integral = simpson(-8.0, 8.0, 2000, |x| {
            let p = density(x, 0.3, 0.5);
            p * (p / density(x, 0.0, 2.0)).ln()
        });
        assert_close(equation_9(0.3, 0.5, 2.0), integral, Tolerance::relative(1e-9));
        // Independent columns with one target variance: the divergence is the sum of two scalar terms.
        let moments = Moments { mean: [0.0, 0.0], covariance: [[2.0, 0.0], [0.0, 0.5]] };
        let sum = equation_9(0.0, 2.0, 1.25) + equation_9(0.0, 0.5, 1.25);
        assert_close(moments.full_covariance(), sum, Tolerance::relative(1e-12));
        assert_close(
            midpoint(-8.0, 8.0, 4000, |x| density(x, 0.3, 0.5)),
            1.0,
            Tolerance::relative(1e-9),
        );
    }
}
