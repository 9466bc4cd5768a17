//! Weights and biases in double precision.

use faer::Mat;

use crate::Network;

/// One affine layer in double precision.
pub type Layer = crate::Layer<f64>;

/// All weights and biases of one run in double precision, or a gradient or moment of the same shape.
pub type Parameters = crate::Parameters<f64>;

impl Parameters {
    /// Zeros in the shape of `network`.
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

    /// All numbers: layer by layer, the weights column by column, then the biases.
    pub fn numbers(&self) -> Vec<f64> {
        let mut numbers = Vec::new();
        for Layer { weights, bias } in &self.layers {
            for i in 0..weights.ncols() {
                numbers.extend((0..weights.nrows()).map(|o| weights[(o, i)]));
            }
            numbers.extend(bias);
        }
        numbers
    }

    /// Inverse of [`numbers`](Self::numbers) for `network`; missing numbers are 0.
    pub fn from_numbers(network: &Network, numbers: &[f64]) -> Self {
        let mut parameters = Parameters::zeros(network);
        let mut numbers = numbers.iter().copied();
        for Layer { weights, bias } in &mut parameters.layers {
            for i in 0..weights.ncols() {
                for o in 0..weights.nrows() {
                    weights[(o, i)] = numbers.next().unwrap_or(0.0);
                }
            }
            for b in bias {
                *b = numbers.next().unwrap_or(0.0);
            }
        }
        parameters
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

/// Converts every entry to double precision.
pub(super) fn widened(matrix: &Mat<f32>) -> Mat<f64> {
    Mat::from_fn(matrix.nrows(), matrix.ncols(), |i, j| f64::from(matrix[(i, j)]))
}
