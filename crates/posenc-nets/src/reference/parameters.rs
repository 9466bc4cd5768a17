//! Weights and biases in double precision.

use faer::Mat;

use crate::{NetError, Network};

/// One affine layer in double precision.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// W, fan out × fan in.
    pub weights: Mat<f64>,
    /// b, one per output of the layer; empty for a Kronecker layer.
    pub bias: Vec<f64>,
}

/// All weights and biases of one run in double precision; also a gradient or a moment, which have
/// the same shape.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters {
    /// From the input to the output.
    pub layers: Vec<Layer>,
}

impl Parameters {
    /// Zeros in the shape of a network.
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

    /// The same numbers; nothing is rounded.
    pub fn from_single(parameters: &crate::Parameters) -> Self {
        let layers = parameters
            .layers
            .iter()
            .map(|layer| Layer {
                weights: widened(&layer.weights),
                bias: layer.bias.iter().map(|&b| f64::from(b)).collect(),
            })
            .collect();
        Parameters { layers }
    }

    /// Rounded to single precision.
    pub fn to_single(&self) -> crate::Parameters {
        let layers = self
            .layers
            .iter()
            .map(|layer| {
                let w = &layer.weights;
                crate::Layer {
                    weights: Mat::from_fn(w.nrows(), w.ncols(), |o, i| w[(o, i)] as f32),
                    bias: layer.bias.iter().map(|&b| b as f32).collect(),
                }
            })
            .collect();
        crate::Parameters { layers }
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

    /// Parameters of a network from what [`numbers`](Self::numbers) gave; missing numbers are 0.
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

    /// Whether these are the parameters of such a network.
    ///
    /// # Errors
    ///
    /// The first size that differs.
    pub fn check(&self, network: &Network) -> Result<(), NetError> {
        let shapes = network.layers();
        same("layers", self.layers.len(), shapes.len())?;
        let shapes = shapes.into_iter().zip(network.biases());
        for (layer, ((fan_in, fan_out), biases)) in self.layers.iter().zip(shapes) {
            same("columns of a weight matrix", layer.weights.ncols(), fan_in)?;
            same("rows of a weight matrix", layer.weights.nrows(), fan_out)?;
            same("biases of a layer", layer.bias.len(), biases)?;
        }
        Ok(())
    }
}

/// Every entry in double precision.
pub(super) fn widened(matrix: &Mat<f32>) -> Mat<f64> {
    Mat::from_fn(matrix.nrows(), matrix.ncols(), |i, j| f64::from(matrix[(i, j)]))
}

/// Refuses two sizes that differ.
pub(super) fn same(what: &str, found: usize, expected: usize) -> Result<(), NetError> {
    if found == expected {
        Ok(())
    } else {
        Err(NetError::Shape { what: what.to_owned(), found, expected })
    }
}
