//! Kernels whose ridge regression approximates a trained model.

use anyhow::Result;
use faer::Mat;
use posenc_math::closed_form::RidgeAxis;
use posenc_math::tangent_kernel::tangent_kernel;

/// Smallest gradient by which Adam's steps are divided, as a share of the largest one. Of the values 0, 1e-4, 1e-3, 1e-2 and 0.1, this one
/// has the best predictions on the known signals of `rank-and-distance`.
const SMALLEST_GRADIENT: f64 = 1e-4;

/// The kernel of a trained model, which predicts 2N positions from N samples.
pub enum ModelKernel {
    /// The neural tangent kernel of a network.
    Network(RidgeAxis),
    /// The kernel of a linear layer that is trained with Adam.
    Adam(AdamKernel),
}

impl ModelKernel {
    /// The kernel for a 2N × K matrix of features, scaled as for training. Rows with even indices are those of the training samples.
    pub fn new(features: &Mat<f64>, depth: usize) -> Result<Self> {
        if depth == 0 {
            return Ok(ModelKernel::Adam(AdamKernel::new(features)));
        }
        let n = features.nrows() / 2;
        let kernel = tangent_kernel((features * features.transpose()).as_ref(), depth);
        let training = Mat::from_fn(n, n, |i, j| kernel[(2 * i, 2 * j)]);
        let positions = Mat::from_fn(2 * n, n, |i, j| kernel[(i, 2 * j)]);
        let axis = RidgeAxis::of_kernel(training.as_ref())?.predicting(positions.as_ref())?;
        Ok(ModelKernel::Network(axis))
    }
}

/// Features of a linear layer, with a column of ones for the bias.
pub struct AdamKernel {
    /// N × (K + 1).
    training: Mat<f64>,
    /// 2N × (K + 1).
    positions: Mat<f64>,
}

impl AdamKernel {
    fn new(features: &Mat<f64>) -> Self {
        let (n, k) = (features.nrows() / 2, features.ncols());
        let with_bias = |rows: usize, step: usize| {
            Mat::from_fn(rows, k + 1, |i, j| if j < k { features[(step * i, j)] } else { 1.0 })
        };
        AdamKernel { training: with_bias(n, 2), positions: with_bias(2 * n, 1) }
    }

    /// Ridge regression for the training samples of a signal, N × 1. The kernel depends on their gradient.
    ///
    /// Adam divides the step of each weight by the size of its gradient. Gradient descent is equivalent if each feature is divided by the
    /// square root of this size. The gradient is computed at zero weights, since training starts with small weights.
    pub fn axis(&self, samples: &Mat<f64>) -> Result<RidgeAxis> {
        let AdamKernel { training, positions } = self;
        let gradient = training.transpose() * samples;
        let sizes: Vec<f64> = (0..gradient.nrows()).map(|j| gradient[(j, 0)].abs()).collect();
        let largest = sizes.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let roots: Vec<f64> =
            sizes.iter().map(|size| (size / largest + SMALLEST_GRADIENT).sqrt()).collect();
        let divided = |features: &Mat<f64>| {
            Mat::from_fn(features.nrows(), features.ncols(), |i, j| features[(i, j)] / roots[j])
        };
        Ok(RidgeAxis::new(divided(training).as_ref(), divided(positions).as_ref())?)
    }
}

#[cfg(test)]
mod tests {
    use posenc_math::closed_form::{Ridge, RidgeFit};
    use posenc_math::random::{gaussian_vector, stream};

    use super::*;

    /// Catches features that are not divided by their gradients, by comparison with Adam on the same layer.
    #[test]
    fn adam_reaches_the_fit_of_its_kernel() {
        const N: usize = 6;
        const K: usize = 40;
        let draws = gaussian_vector(&mut stream(3, "features"), 2 * N * K);
        // Features differ in size, so that the division matters.
        let features =
            Mat::from_fn(2 * N, K, |i, j| draws[i * K + j] * if j % 2 == 0 { 0.1 } else { 0.01 });
        let samples = Mat::from_fn(N, 1, |i, _| 0.5 + 0.3 * (i as f64).sin());
        let kernel = AdamKernel::new(&features);
        let axis = kernel.axis(&samples).unwrap();
        let fit = RidgeFit::line(&axis, std::slice::from_ref(&samples)).unwrap();
        let predicted = &fit.predict(Ridge::Axes(1e-6))[0];

        let AdamKernel { training, positions } = &kernel;
        let (mut weights, mut first, mut second) =
            (Mat::<f64>::zeros(K + 1, 1), vec![0.0; K + 1], vec![0.0; K + 1]);
        for t in 1..=20_000 {
            let gradient = training.transpose() * (training * &weights - &samples);
            for j in 0..=K {
                let g = gradient[(j, 0)];
                first[j] = 0.9 * first[j] + 0.1 * g;
                second[j] = 0.999 * second[j] + 0.001 * g * g;
                let (m, v) =
                    (first[j] / (1.0 - 0.9f64.powi(t)), second[j] / (1.0 - 0.999f64.powi(t)));
                weights[(j, 0)] -= 1e-4 * m / (v.sqrt() + 1e-8);
            }
        }
        let trained = positions * &weights;
        let plain = RidgeAxis::new(training.as_ref(), positions.as_ref()).unwrap();
        let plain = RidgeFit::line(&plain, std::slice::from_ref(&samples)).unwrap();
        let plain = &plain.predict(Ridge::Axes(1e-6))[0];
        let distance = |fit: &Mat<f64>| (fit - &trained).norm_l2();
        assert!(distance(predicted) < 0.7 * distance(plain));
    }
}
