//! The Kullback–Leibler divergence of the distribution of learned frequencies from $N(0, \bar\sigma^2 I)$ (LFF Eq. 9), in three forms.
//!
//! $\bar\sigma^2$ is itself trained and starts at $\gamma^{-2}$. The parameter is its logarithm, so that it stays positive.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use posenc_math::lff::divergence::{Divergence, Form};
use posenc_math::lff::encoding::Encoding;

use crate::draw::parameter;
use crate::position_encoding::PositionEncoding;

/// The trained variance that frequencies are compared with.
#[derive(Module, Debug)]
pub struct TargetVariance {
    /// $\ln\bar\sigma^2$.
    log_variance: Param<Tensor<1>>,
    #[module(skip)]
    term: Divergence,
}

impl TargetVariance {
    /// Starts at $\bar\sigma^2 = \gamma^{-2}$; `None` without a term.
    pub fn of(term: Option<Divergence>, encoding: &Encoding, device: &Device) -> Option<Self> {
        let gamma = encoding.gamma.unwrap_or(1.0);
        let log_variance = parameter(vec![(-2.0 * gamma.ln()) as f32], [1], device);
        term.map(|term| TargetVariance { log_variance, term })
    }

    /// The penalty of a training step: the divergence times its weight; `None` unless frequencies are trained.
    pub(crate) fn penalty(&self, position: &PositionEncoding) -> Option<Tensor<1>> {
        let frequencies = position.trained_frequencies()?;
        Some(self.divergence(frequencies).mul_scalar(self.term.weight))
    }

    /// The divergence of frequencies `[M, |F|/2]`, in nats.
    fn divergence(&self, frequencies: Tensor<2>) -> Tensor<1> {
        let log_target = self.log_variance.val();
        let m = frequencies.dims()[0];
        let rows =
            |axis: usize| frequencies.clone().slice([axis..axis + 1, 0..frequencies.dims()[1]]);
        match self.term.form {
            Form::Pooled => {
                let mean = frequencies.clone().mean();
                let variance = square(frequencies.clone() - mean.clone().unsqueeze::<2>()).mean();
                scalar_form(mean, variance, log_target)
            }
            Form::Columns => {
                let one = |axis: usize| {
                    let mean = rows(axis).mean();
                    let variance = square(rows(axis) - mean.clone().unsqueeze::<2>()).mean();
                    scalar_form(mean, variance, log_target.clone())
                };
                (1..m).fold(one(0), |sum, axis| sum + one(axis))
            }
            Form::Covariance => {
                let means: Vec<Tensor<1>> = (0..m).map(|axis| rows(axis).mean()).collect();
                let centered: Vec<Tensor<2>> =
                    (0..m).map(|axis| rows(axis) - means[axis].clone().unsqueeze::<2>()).collect();
                let entry = |a: usize, b: usize| (centered[a].clone() * centered[b].clone()).mean();
                let covariance: Vec<Vec<Tensor<1>>> =
                    (0..m).map(|a| (0..m).map(|b| entry(a, b)).collect()).collect();
                let squares = (0..m)
                    .map(|a| covariance[a][a].clone() + square(means[a].clone()))
                    .reduce(|a, b| a + b)
                    .unwrap_or_else(|| log_target.zeros_like());
                let volume = log_determinant(covariance).unwrap_or_else(|| log_target.zeros_like());
                let size = squares / log_target.clone().exp() - m as f64;
                (size + log_target.mul_scalar(m as f64) - volume).mul_scalar(0.5)
            }
        }
    }
}

fn square<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    x.clone() * x
}

/// ½((σ² + μ²)/σ̄² − 1 + ln σ̄² − ln σ²).
fn scalar_form(mean: Tensor<1>, variance: Tensor<1>, log_target: Tensor<1>) -> Tensor<1> {
    let size = (variance.clone() + square(mean)) / log_target.clone().exp();
    (size - 1.0 + log_target - variance.log()).mul_scalar(0.5)
}

/// Log-determinant of a positive definite matrix, by Gaussian elimination; `None` if it is empty.
fn log_determinant(mut matrix: Vec<Vec<Tensor<1>>>) -> Option<Tensor<1>> {
    let mut sum: Option<Tensor<1>> = None;
    for pivot in 0..matrix.len() {
        let p = matrix[pivot][pivot].clone();
        for row in pivot + 1..matrix.len() {
            let factor = matrix[row][pivot].clone() / p.clone();
            for column in pivot..matrix.len() {
                let change = factor.clone() * matrix[pivot][column].clone();
                matrix[row][column] = matrix[row][column].clone() - change;
            }
        }
        sum = Some(match sum {
            Some(sum) => sum + p.log(),
            None => p.log(),
        });
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::constant;
    use crate::parameters::numbers;

    fn value(rows: &[[f64; 2]], form: Form, target: f64) -> f64 {
        let device = crate::cpu();
        let transposed: Vec<f32> =
            [0, 1].iter().flat_map(|&axis| rows.iter().map(move |r| r[axis] as f32)).collect();
        let tensor = constant(transposed, [2, rows.len()], &device);
        let encoding = Encoding { gamma: Some(target.powf(-0.5)), ..Encoding::none() };
        let term = Divergence { form, weight: 1.0 };
        let target = TargetVariance::of(Some(term), &encoding, &device).unwrap();
        f64::from(numbers(target.divergence(tensor))[0])
    }

    /// Catches a wrong sign or factor, and a form that reacts to a statistic that it should ignore. Correlation and unequal variances
    /// leave the printed form at zero, but cost the covariance form 0.830 and 0.511 nats.
    #[test]
    fn each_form_reacts_only_to_its_own_statistics() {
        // Mean zero and covariance one.
        let rows = [[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]];
        for form in [Form::Pooled, Form::Columns, Form::Covariance] {
            assert!(value(&rows, form, 1.0).abs() < 1e-5, "{form:?}");
        }
        let skewed: Vec<_> =
            rows.iter().map(|r| [r[0], -0.9 * r[0] + 0.19f64.sqrt() * r[1]]).collect();
        assert!(value(&skewed, Form::Pooled, 1.0).abs() < 1e-5);
        assert!(value(&skewed, Form::Columns, 1.0).abs() < 1e-5);
        let exact = -0.5 * (1.0 - 0.81f64).ln();
        assert!((value(&skewed, Form::Covariance, 1.0) - exact).abs() < 1e-4);
        let long: Vec<_> =
            rows.iter().map(|r| [1.8f64.sqrt() * r[0], 0.2f64.sqrt() * r[1]]).collect();
        assert!(value(&long, Form::Pooled, 1.0).abs() < 1e-5);
        let exact = -0.5 * (1.8f64 * 0.2).ln();
        assert!((value(&long, Form::Columns, 1.0) - exact).abs() < 1e-4);
        assert!((value(&long, Form::Covariance, 1.0) - exact).abs() < 1e-4);
        // A mean of ½ at the best target: ½ ln(1 + μ²/σ²).
        let moved: Vec<_> = rows.iter().map(|r| [r[0] + 0.5, r[1] + 0.5]).collect();
        assert!((value(&moved, Form::Pooled, 1.25) - 0.5 * 1.25f64.ln()).abs() < 1e-4);
    }
}
