//! Properties of embedders, which predict test PSNR.

use std::ops::Range;

use anyhow::Result;
use faer::Mat;
use posenc_math::closed_form::{Ridge, RidgeAxis, RidgeFit};
use posenc_math::distance::{measured_distance, preserved_length};
use posenc_math::embedder::Embedder;
use posenc_math::quality::psnr_of;
use posenc_math::statistics::relative_ranks;
use serde::{Deserialize, Serialize};

use super::Predictor;

/// Number of displacements per sample distance at which D is measured.
const PER_SAMPLE: usize = 4;

/// Properties of one embedder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Properties {
    pub stable_rank: f64,
    /// Largest displacement up to which D ≥ 0.1, in sample distances.
    pub preserved: f64,
    /// D at 1, 2, 4, … sample distances.
    law: Vec<f64>,
    /// Logarithm of the mean squared leave-one-out error of each signal.
    leave_one_out: Vec<f64>,
    /// Test PSNR predicted from the distance to linear interpolation, of each signal.
    interpolation: Vec<f64>,
}

impl Properties {
    /// Computes the properties of an embedder for the training samples of all signals. `predicted` has the fits at their 2N positions.
    pub fn new(
        embedder: &dyn Embedder,
        axis: &RidgeAxis,
        training: &[Mat<f64>],
        predicted: &[Mat<f64>],
        ridge: f64,
    ) -> Result<Self> {
        let n = axis.eigenvalues().len();
        let displacement = |i: usize| i as f64 / (PER_SAMPLE * n) as f64;
        let displacements: Vec<f64> = (0..=PER_SAMPLE * n / 2).map(displacement).collect();
        let law = measured_distance(embedder, &displacements)?;
        let at = |delta: f64| {
            let place = delta * (PER_SAMPLE * n) as f64;
            let (i, share) = ((place.floor() as usize).min(law.len() - 2), place.fract());
            law[i] + share * (law[i + 1] - law[i])
        };
        let mut properties = Properties {
            stable_rank: stable_rank(axis),
            preserved: preserved_length(at, 1.0, 0.5) * n as f64,
            law: (0..).map(|k| PER_SAMPLE << k).map_while(|i| law.get(i).copied()).collect(),
            leave_one_out: Vec::new(),
            interpolation: Vec::new(),
        };
        for (signal, predicted) in training.iter().zip(predicted) {
            let fit = RidgeFit::line(axis, std::slice::from_ref(signal))?;
            properties.leave_one_out.push(fit.scores(Ridge::Axes(ridge)).leave_one_out);
            properties.interpolation.push(expected_psnr(predicted, signal));
        }
        Ok(properties)
    }
}

/// ‖Ψ‖²_F / ‖Ψ‖²₂ from the eigenvalues of ΨΨᵀ.
fn stable_rank(axis: &RidgeAxis) -> f64 {
    let eigenvalues = axis.eigenvalues();
    eigenvalues.iter().sum::<f64>() / eigenvalues.iter().copied().fold(0.0, f64::max)
}

/// Predicted test PSNR of a fit. `predicted` is the fit at 2N positions (2N × 1); those with even indices are the positions of the N
/// training samples `training` (N × 1).
fn expected_psnr(predicted: &Mat<f64>, training: &Mat<f64>) -> f64 {
    let n = training.nrows();
    let sample = |i: usize| training[(i, 0)];
    let middle = |i: usize, j: usize| (sample(i) + sample(j)) / 2.0;
    let mean_square = |places: Range<usize>, value: &dyn Fn(usize) -> f64| {
        let count = places.len() as f64;
        places.map(|i| value(i).powi(2)).sum::<f64>() / count
    };
    let distance = mean_square(0..n - 1, &|i| predicted[(2 * i + 1, 0)] - middle(i, i + 1));
    let interpolation = mean_square(1..n - 1, &|i| sample(i) - middle(i - 1, i + 1));
    let mean = training.sum() / n as f64;
    let variance = mean_square(0..n, &|i| sample(i) - mean);
    psnr_of((distance + interpolation / 2.0).min(variance))
}

impl Predictor {
    /// The numbers of the predictor for an embedder and a signal.
    pub fn values(self, of: &Properties, signal: usize) -> Vec<f64> {
        match self {
            Predictor::StableRank => vec![of.stable_rank],
            Predictor::PreservedDistance => vec![of.preserved],
            Predictor::DistanceLaw => of.law.clone(),
            Predictor::LeaveOneOut => vec![of.leave_one_out[signal]],
            Predictor::Interpolation => vec![of.interpolation[signal]],
        }
    }

    /// Whether it depends on the training samples.
    pub fn reads_samples(self) -> bool {
        matches!(self, Predictor::LeaveOneOut | Predictor::Interpolation)
    }
}

/// Ranks of the predictors, from 0 to 1, by signal and embedder.
pub struct Ranked(Vec<Vec<Vec<f64>>>);

impl Ranked {
    /// Ranks the embedders for each of `signals` signals.
    pub fn new(predictors: &[Predictor], properties: &[Properties], signals: usize) -> Self {
        let count = if predictors.iter().any(|p| p.reads_samples()) { signals } else { 1 };
        Ranked((0..count).map(|signal| ranked(predictors, properties, signal)).collect())
    }

    /// Ranks of a single predictor that does not depend on the signal.
    #[cfg(test)]
    pub fn of_numbers(numbers: &[f64]) -> Self {
        Ranked(vec![numbers.iter().map(|&number| vec![number]).collect()])
    }

    /// The ranks of one embedder for one signal.
    pub fn of(&self, embedder: usize, signal: usize) -> &[f64] {
        &self.0[signal.min(self.0.len() - 1)][embedder]
    }
}

fn ranked(predictors: &[Predictor], properties: &[Properties], signal: usize) -> Vec<Vec<f64>> {
    let values: Vec<Vec<f64>> = properties
        .iter()
        .map(|own| predictors.iter().flat_map(|predictor| predictor.values(own, signal)).collect())
        .collect();
    let mut ranks = vec![Vec::new(); properties.len()];
    for k in 0..values.first().map_or(0, Vec::len) {
        let column: Vec<f64> = values.iter().map(|v| v[k]).collect();
        ranks.iter_mut().zip(relative_ranks(&column)).for_each(|(all, rank)| all.push(rank));
    }
    ranks
}

#[cfg(test)]
mod tests {
    use posenc_math::random::{gaussian_vector, stream};

    use super::*;

    fn column(values: &[f64]) -> Mat<f64> {
        Mat::from_fn(values.len(), 1, |i, _| values[i])
    }

    /// Catches a distance or an interpolation error of the wrong samples. For random walks, whose spectrum is 1/f², predicted and measured
    /// errors have the same mean, regardless of the error of the fit between the samples.
    #[test]
    fn the_error_of_random_walks_is_predicted() {
        const N: usize = 4000;
        let mut random = stream(7, "walk");
        let mut walk = vec![0.0];
        for step in gaussian_vector(&mut random, 2 * N - 1) {
            walk.push(walk[walk.len() - 1] + step);
        }
        let training: Vec<f64> = walk.iter().copied().step_by(2).collect();
        for wrong in [0.0, 0.5, 2.0] {
            let sign = |i: usize| if i % 4 == 1 { wrong } else { -wrong };
            let fit = |i: usize| match i % 2 {
                0 => walk[i],
                _ => (walk[i - 1] + walk.get(i + 1).unwrap_or(&walk[i - 1])) / 2.0 + sign(i),
            };
            let predicted: Vec<f64> = (0..2 * N).map(fit).collect();
            let error =
                (0..N).map(|i| (walk[2 * i + 1] - predicted[2 * i + 1]).powi(2)).sum::<f64>();
            let expected = expected_psnr(&column(&predicted), &column(&training));
            assert!((expected - psnr_of(error / N as f64)).abs() < 0.3, "{wrong}: {expected}");
        }
    }

    /// Catches a prediction below the PSNR of the mean of the samples, the minimum of test PSNR.
    #[test]
    fn no_fit_is_predicted_to_be_worse_than_the_mean() {
        let expected = expected_psnr(
            &column(&[0.0, 50.0, 1.0, 50.0, 0.0, 50.0, 1.0, 50.0]),
            &column(&[0.0, 1.0, 0.0, 1.0]),
        );
        assert!((expected - psnr_of(0.25)).abs() < 1e-12);
    }
}
