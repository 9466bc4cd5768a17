//! Weights and biases in double precision.

use faer::Mat;

use crate::Network;

pub type Layer = crate::Layer<f64>;

/// All weights and biases of one run in double precision, or a gradient or moment of the same shape.
pub type Parameters = crate::Parameters<f64>;

impl Parameters {
    pub fn zeros(network: &Network) -> Self {
        let layers = network
            .layers()
            .into_iter()
            .zip(network.biases())
            .map(|((fan_in, fan_out), biases)| Layer {
                weights: Mat::zeros(fan_out, fan_in),
                bias: vec![0.0; biases],
            })
            .collect();
        Parameters { layers }
    }

    /// Converts from single precision without rounding.
    pub fn from_single(parameters: &crate::Parameters) -> Self {
        converted(parameters, f64::from)
    }

    pub fn to_single(&self) -> crate::Parameters {
        converted(self, |number| number as f32)
    }
}

fn converted<T: Copy, U>(
    parameters: &crate::Parameters<T>,
    to: impl Fn(T) -> U,
) -> crate::Parameters<U> {
    let layer = |crate::Layer { weights, bias }: &crate::Layer<T>| crate::Layer {
        weights: Mat::from_fn(weights.nrows(), weights.ncols(), |o, i| to(weights[(o, i)])),
        bias: bias.iter().map(|&number| to(number)).collect(),
    };
    crate::Parameters { layers: parameters.layers.iter().map(layer).collect() }
}

pub(super) fn widened(matrix: &Mat<f32>) -> Mat<f64> {
    Mat::from_fn(matrix.nrows(), matrix.ncols(), |i, j| f64::from(matrix[(i, j)]))
}
