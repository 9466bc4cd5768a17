//! Ridge regression along the axes of a grid, and scores of its settings on the training samples.
//!
//! Let G = ΨΨᵀ = UΛUᵀ (N × N) for the training positions of an axis, and S the samples of a line or a square grid. In the coordinates
//! C = Uᵀ S U of the eigenvectors, fitting divides by w, which is λ_i λ_j plus a ridge (see [`Ridge`]). The values at other
//! positions Ψ' are `Ψ'ΨᵀU (C/w) UᵀΨΨ'ᵀ`, the mean of a Gaussian process whose covariance has the eigenvalues w. [`RidgeScores`]
//! has three scores of a ridge:
//!
//! - *negative log-likelihood*, per sample and for the best variance: `ln mean(C²/w) + mean(ln w)`. It compares the spectrum of the
//!   samples with that of the kernel (the divergence of Itakura and Saito).
//! - *leave-one-out error*: a sample is predicted from the others with error `[K⁻¹S]_i / [K⁻¹]_ii`, where K is the covariance.
//! - *generalized cross-validation*: the leave-one-out error with the mean of the diagonal of K⁻¹ in place of its entries.

mod lines;

pub use lines::{Evidence, LineFit, Lines, SHORTEST_LINE};

use faer::{Mat, MatRef, Side};

use super::{check_entries, no_convergence};
use crate::{Error, kronecker::multiply};

/// Eigendecomposition of one axis, shared by all signals.
#[derive(Clone, Debug)]
pub struct RidgeAxis {
    eigenvalues: Vec<f64>,
    /// Eigenvectors U, N × N.
    vectors: Mat<f64>,
    /// Ψ'ΨᵀU, P × N.
    positions: Mat<f64>,
}

impl RidgeAxis {
    /// Builds the axis from the features of the N training positions (N × K) and of the P positions to predict (P × K).
    pub fn new(training: MatRef<'_, f64>, positions: MatRef<'_, f64>) -> Result<Self, Error> {
        check_entries(|| "the embedding matrix".into(), training)?;
        check_entries(|| "the embedding matrix of all positions".into(), positions)?;
        let gram = times(training, training.transpose());
        check_entries(|| "the Gram matrix".into(), gram.as_ref())?;
        let eigen =
            gram.self_adjoint_eigen(Side::Lower).map_err(|_| no_convergence(gram.shape()))?;
        // Rounding makes some eigenvalues negative.
        let eigenvalues = eigen.S().column_vector().iter().map(|&value| value.max(0.0)).collect();
        let vectors = eigen.U().to_owned();
        let features = times(training.transpose(), vectors.as_ref());
        let positions = times(positions, features.as_ref());
        Ok(Self { eigenvalues, vectors, positions })
    }

    /// The same axis with a selection of its positions to predict, given by index.
    #[must_use]
    pub fn at(&self, positions: impl Iterator<Item = usize>) -> Self {
        let rows: Vec<usize> = positions.collect();
        let all = &self.positions;
        let positions = Mat::from_fn(rows.len(), all.ncols(), |i, j| all[(rows[i], j)]);
        Self { eigenvalues: self.eigenvalues.clone(), vectors: self.vectors.clone(), positions }
    }

    /// Eigenvalues of ΨΨᵀ, in ascending order and not negative.
    pub fn eigenvalues(&self) -> &[f64] {
        &self.eigenvalues
    }
}

/// Regularization of the fit, given as ρ/λ_max. On a line both variants are equal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ridge {
    /// Ridge along each axis, as with [`Solver::Ridge`](super::Solver::Ridge): w = (λ_i + ρ)(λ_j + ρ).
    Axes(f64),
    /// Noise of the samples, independent from sample to sample: w = λ_i λ_j + ρ λ_max.
    Samples(f64),
}

/// Scores of a ridge on the samples. Smaller is better; only differences between settings are meaningful.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RidgeScores {
    /// Negative log-likelihood per sample.
    pub likelihood: f64,
    /// Generalized cross-validation: logarithm of the error.
    pub cross_validation: f64,
    /// Logarithm of the mean squared leave-one-out error.
    pub leave_one_out: f64,
}

/// Samples of one signal on a line or on a square grid, in the coordinates of the eigenvectors.
#[derive(Clone, Debug)]
pub struct RidgeFit<'a> {
    axis: &'a RidgeAxis,
    /// Whether columns are a second axis; otherwise each channel is a single column.
    is_image: bool,
    coefficients: Vec<Mat<f64>>,
}

impl<'a> RidgeFit<'a> {
    /// Samples on a line: N × 1 for each channel.
    pub fn line(axis: &'a RidgeAxis, channels: &[Mat<f64>]) -> Result<Self, Error> {
        Self::new(axis, channels, false)
    }

    /// Samples on a square grid: N × N for each channel.
    pub fn image(axis: &'a RidgeAxis, channels: &[Mat<f64>]) -> Result<Self, Error> {
        Self::new(axis, channels, true)
    }

    fn new(axis: &'a RidgeAxis, channels: &[Mat<f64>], is_image: bool) -> Result<Self, Error> {
        let n = axis.eigenvalues.len();
        let columns = if is_image { n } else { 1 };
        let u = &axis.vectors;
        let project = |channel: &Mat<f64>| {
            if channel.shape() != (n, columns) {
                let (rows, others) = channel.shape();
                return Err(Error(format!(
                    "samples of a channel: expected {n}×{columns}, got {rows}×{others}"
                )));
            }
            check_entries(|| "a channel".into(), channel.as_ref())?;
            let rows = times(u.transpose(), channel.as_ref());
            Ok(if is_image { times(rows.as_ref(), u.as_ref()) } else { rows })
        };
        let coefficients = channels.iter().map(project).collect::<Result<_, _>>()?;
        Ok(Self { axis, is_image, coefficients })
    }

    /// 1/w, N × 1 or N × N.
    fn weights(&self, ridge: Ridge) -> Mat<f64> {
        let values = &self.axis.eigenvalues;
        let largest = values.iter().copied().fold(0.0, f64::max);
        let n = values.len();
        match (ridge, self.is_image) {
            (Ridge::Axes(share) | Ridge::Samples(share), false) => {
                Mat::from_fn(n, 1, |i, _| 1.0 / (values[i] + share * largest))
            }
            (Ridge::Axes(share), true) => Mat::from_fn(n, n, |i, j| {
                1.0 / ((values[i] + share * largest) * (values[j] + share * largest))
            }),
            (Ridge::Samples(share), true) => {
                Mat::from_fn(n, n, |i, j| 1.0 / (values[i] * values[j] + share * largest * largest))
            }
        }
    }

    /// Coefficients of each channel times the weights.
    fn solved(&self, weights: &Mat<f64>) -> impl Iterator<Item = Mat<f64>> {
        self.coefficients
            .iter()
            .map(|c| Mat::from_fn(c.nrows(), c.ncols(), |i, j| c[(i, j)] * weights[(i, j)]))
    }

    pub fn scores(&self, ridge: Ridge) -> RidgeScores {
        let weights = self.weights(ridge);
        let u = &self.axis.vectors;
        let squares = Mat::from_fn(u.nrows(), u.ncols(), |i, j| u[(i, j)] * u[(i, j)]);
        // Diagonal of the inverse of the covariance.
        let diagonal = self.back(&squares, &weights);
        let (mut energy, mut square, mut left_out, mut count) = (0.0, 0.0, 0.0, 0.0);
        for (coefficients, solved) in self.coefficients.iter().zip(self.solved(&weights)) {
            let residuals = self.back(u, &solved);
            for j in 0..solved.ncols() {
                for i in 0..solved.nrows() {
                    energy += coefficients[(i, j)] * solved[(i, j)];
                    square += solved[(i, j)] * solved[(i, j)];
                    left_out += (residuals[(i, j)] / diagonal[(i, j)]).powi(2);
                    count += 1.0;
                }
            }
        }
        let (mut trace, mut logarithm) = (0.0, 0.0);
        for &weight in weights.col_iter().flat_map(|column| column.iter()) {
            trace += weight;
            logarithm += weight.ln();
        }
        let size = (weights.nrows() * weights.ncols()) as f64;
        RidgeScores {
            likelihood: (energy / count).ln() - logarithm / size,
            cross_validation: (square / count).ln() - 2.0 * (trace / size).ln(),
            leave_one_out: (left_out / count).ln(),
        }
    }

    /// Values at the positions to predict, P × 1 or P × P for each channel.
    pub fn predict(&self, ridge: Ridge) -> Vec<Mat<f64>> {
        let weights = self.weights(ridge);
        self.solved(&weights).map(|solved| self.back(&self.axis.positions, &solved)).collect()
    }

    /// Maps coefficients to positions with `map` along each axis.
    fn back(&self, map: &Mat<f64>, coefficients: &Mat<f64>) -> Mat<f64> {
        let rows = times(map.as_ref(), coefficients.as_ref());
        if self.is_image { times(rows.as_ref(), map.transpose()) } else { rows }
    }
}

fn times(left: MatRef<'_, f64>, right: MatRef<'_, f64>) -> Mat<f64> {
    let mut out = Mat::zeros(left.nrows(), right.ncols());
    multiply(out.as_mut(), left, right);
    out
}
