//! Forward and backward passes through one network. Sizes must match.

use faer::{Mat, MatRef};

use super::{Layer, Parameters};
use crate::{Network, OutputActivation};

/// Results of the forward pass that the backward pass needs.
pub(super) struct Forward {
    /// A₀ … A_{L-1}: the input (d × N), then the hidden layers after ReLU (width × N).
    pub activations: Vec<Mat<f64>>,
    /// Y, O × N.
    pub outputs: Mat<f64>,
}

/// Forward pass: computes all A_l and Y from an input of d × N.
pub(super) fn forward(
    network: &Network,
    parameters: &Parameters,
    input: MatRef<'_, f64>,
) -> Forward {
    let mut activations = Vec::with_capacity(parameters.layers.len());
    // A of the previous layer, fan in × N.
    let mut a = input.to_owned();
    for (l, layer) in parameters.layers.iter().enumerate() {
        let is_last = l + 1 == parameters.layers.len();
        // Z = W A + b 1ᵀ, fan out × N. A Kronecker layer has no b.
        let z = &layer.weights * &a;
        let after = |z: f64| match (is_last, network.output_activation) {
            (false, _) => relu(z),
            (true, OutputActivation::Identity) => z,
            (true, OutputActivation::Sigmoid) => sigmoid(z),
        };
        let bias = |o: usize| layer.bias.get(o).copied().unwrap_or(0.0);
        let next = Mat::from_fn(z.nrows(), z.ncols(), |o, i| after(z[(o, i)] + bias(o)));
        activations.push(std::mem::replace(&mut a, next));
    }
    Forward { activations, outputs: a }
}

/// max(z, 0). NaN stays NaN, so that a diverged run is detected.
fn relu(z: f64) -> f64 {
    if z < 0.0 { 0.0 } else { z }
}

/// 1/(1 + e^-z); exactly 0 or 1 if the exponential overflows or underflows.
fn sigmoid(z: f64) -> f64 {
    1.0 / (1.0 + (-z).exp())
}

/// Σ (Y − Tᵀ)² / (N·O), with Y of O × N and T of N × O.
fn mean_squared_error(outputs: &Mat<f64>, targets: MatRef<'_, f64>) -> f64 {
    let (o, n) = (outputs.nrows(), outputs.ncols());
    let square = |o: usize, i: usize| (outputs[(o, i)] - targets[(i, o)]).powi(2);
    (0..n).map(|i| (0..o).map(|o| square(o, i)).sum::<f64>()).sum::<f64>() / (n * o) as f64
}

/// The outputs Yᵀ, N × O, of an input of d × N.
pub fn outputs(network: &Network, parameters: &Parameters, input: MatRef<'_, f64>) -> Mat<f64> {
    forward(network, parameters, input).outputs.transpose().to_owned()
}

/// The mean squared error E; input of d × N, targets of N × O.
pub fn loss(
    network: &Network,
    parameters: &Parameters,
    input: MatRef<'_, f64>,
    targets: MatRef<'_, f64>,
) -> f64 {
    mean_squared_error(&forward(network, parameters, input).outputs, targets)
}

/// The mean squared error E and ∂E/∂θ of every weight and bias; input of d × N, targets of N × O.
pub fn loss_and_gradient(
    network: &Network,
    parameters: &Parameters,
    input: MatRef<'_, f64>,
    targets: MatRef<'_, f64>,
) -> (f64, Parameters) {
    let Forward { activations, outputs } = forward(network, parameters, input);
    let error = mean_squared_error(&outputs, targets);

    // D = ∂E/∂Z of the current layer, fan out × N, starting with the last layer.
    let scale = 2.0 / (outputs.nrows() * outputs.ncols()) as f64;
    let mut d = Mat::from_fn(outputs.nrows(), outputs.ncols(), |o, i| {
        let y = outputs[(o, i)];
        let slope = match network.output_activation {
            OutputActivation::Identity => 1.0,
            OutputActivation::Sigmoid => y * (1.0 - y),
        };
        scale * (y - targets[(i, o)]) * slope
    });
    let mut layers = Vec::with_capacity(parameters.layers.len());
    for (l, layer) in parameters.layers.iter().enumerate().rev() {
        // D Aᵀ, fan out × fan in, and the sums of the rows of D.
        let weights = &d * activations[l].transpose();
        let bias = (0..layer.bias.len()).map(|o| (0..d.ncols()).map(|i| d[(o, i)]).sum()).collect();
        layers.push(Layer { weights, bias });
        if l > 0 {
            // Wᵀ D where the ReLU is active, fan in × N.
            let back = layer.weights.transpose() * &d;
            let a = &activations[l];
            let passed = |o, i| if a[(o, i)] > 0.0 { back[(o, i)] } else { 0.0 };
            d = Mat::from_fn(back.nrows(), back.ncols(), passed);
        }
    }
    layers.reverse();
    (error, Parameters { layers })
}
