//! Networks: shape, initialization, parameters.

use faer::Mat;
use posenc_math::random::{gaussian_vector, uniform_vector};
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::same;
use crate::{Input, NetError};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FirstLayer {
    /// W₁ψ + b₁ on any features except Kronecker features.
    #[default]
    Affine,
    /// W₁ψ without bias on Kronecker features. The features are never formed: every row of W₁ is a tensor that
    /// is multiplied axis by axis (`trading` Sec. 5).
    Kronecker,
}

/// Activation function of the outputs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OutputActivation {
    /// z, no activation.
    #[default]
    Identity,
    /// 1/(1 + e^-z), as in the 2-D notebooks of `rethinking`.
    Sigmoid,
}

/// Distribution of the initial weights and biases.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// Uniform in ±1/√(fan in), and of a complex encoding's weights in ±1/√(fan out), as in the code of `trading`.
    #[default]
    Uniform,
    /// Weights N(0, 2/(fan in + fan out)) (Glorot and Bengio 2010) and biases N(0, 0.01²), as in JAX's stax.
    GlorotNormal,
}

/// Standard deviation of the biases of [`Start::GlorotNormal`].
const BIAS_DEVIATION: f64 = 0.01;

/// Shape of a network: affine layers with ReLU between them.
///
/// z₁ = W₁ψ + b₁, z_{l+1} = W_{l+1} max(z_l, 0) + b_{l+1}, y = σ(z_L). Without hidden layers this is the
/// papers' "one layer linear network". Depth counts hidden layers, as in the papers. There is no b₁ if the
/// first layer is [`FirstLayer::Kronecker`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// Number d of features of the input.
    pub input: usize,
    pub first: FirstLayer,
    /// Widths of the hidden layers, from the input on.
    pub hidden: Vec<usize>,
    pub output: usize,
    pub output_activation: OutputActivation,
}

impl Network {
    /// `depth` hidden layers of one `width`, and `output` outputs without activation.
    pub fn new(input: usize, depth: usize, width: usize, output: usize) -> Result<Self, NetError> {
        let network = Network {
            input,
            first: FirstLayer::Affine,
            hidden: vec![width; depth],
            output,
            output_activation: OutputActivation::Identity,
        };
        network.check()?;
        Ok(network)
    }

    /// A Kronecker layer on `features` features (∏ K_a), at most one hidden layer, and `output`
    /// outputs without activation.
    pub fn kronecker(
        features: usize,
        hidden: Option<usize>,
        output: usize,
    ) -> Result<Self, NetError> {
        let network = Network {
            input: features,
            first: FirstLayer::Kronecker,
            hidden: hidden.into_iter().collect(),
            output,
            output_activation: OutputActivation::Identity,
        };
        network.check()?;
        Ok(network)
    }

    pub fn with_output_activation(mut self, activation: OutputActivation) -> Self {
        self.output_activation = activation;
        self
    }

    /// Refuses sizes of zero, and more than one hidden layer after a Kronecker layer.
    pub fn check(&self) -> Result<(), NetError> {
        if self.input == 0 {
            return Err(NetError::Zero("the embedding dimension"));
        }
        if self.hidden.contains(&0) {
            return Err(NetError::Zero("the width of a hidden layer"));
        }
        if self.output == 0 {
            return Err(NetError::Zero("the number of outputs"));
        }
        if self.first == FirstLayer::Kronecker && self.depth() > 1 {
            let why = format!(
                "at most one hidden layer may follow a Kronecker layer, got {}",
                self.depth()
            );
            return Err(NetError::Combination(why));
        }
        Ok(())
    }

    /// Refuses an input that does not match the kind of the first layer, or whose numbers of features differ from those
    /// of the `trained` one: for Kronecker features on every axis, even if their product is the same.
    pub(crate) fn check_input(&self, trained: &Input, input: &Input) -> Result<(), NetError> {
        let refuse = |why: &str| Err(NetError::Combination(why.to_owned()));
        match (self.first, input) {
            (FirstLayer::Kronecker, Input::Kronecker(_)) => {}
            (FirstLayer::Kronecker, _) => {
                return refuse("a Kronecker layer requires a Kronecker input (Input::kronecker)");
            }
            (FirstLayer::Affine, Input::Kronecker(_)) => {
                return refuse("a Kronecker input requires a Kronecker layer (Network::kronecker)");
            }
            (FirstLayer::Affine, _) => {}
        }
        same("features", input.dimension(), self.input)?;
        if let (Input::Kronecker(own), Input::Kronecker(other)) = (trained, input) {
            same("axes of a Kronecker input", other.axes.len(), own.axes.len())?;
            for (own, other) in own.axes.iter().zip(&other.axes) {
                same("features of an axis", other.nrows(), own.nrows())?;
            }
        }
        Ok(())
    }

    pub fn depth(&self) -> usize {
        self.hidden.len()
    }

    /// (fan in, fan out) of every affine layer.
    pub fn layers(&self) -> Vec<(usize, usize)> {
        let ins = std::iter::once(self.input).chain(self.hidden.iter().copied());
        let outs = self.hidden.iter().copied().chain(std::iter::once(self.output));
        ins.zip(outs).collect()
    }

    /// Number of biases of every layer: its fan out, or 0 for a Kronecker layer.
    pub fn biases(&self) -> Vec<usize> {
        let count = |(layer, (_, fan_out)): (usize, (usize, usize))| match (layer, self.first) {
            (0, FirstLayer::Kronecker) => 0,
            _ => fan_out,
        };
        self.layers().into_iter().enumerate().map(count).collect()
    }

    pub fn parameter_count(&self) -> usize {
        let weights: usize = self.layers().iter().map(|(i, o)| i * o).sum();
        weights + self.biases().iter().sum::<usize>()
    }

    /// Samples weights and biases from [`Start::Uniform`].
    pub fn initialize(&self, rng: &mut ChaCha8Rng) -> Parameters {
        self.initialize_from(Start::Uniform, rng)
    }

    /// Samples weights and biases. The sampling order is fixed: layer by layer, first the weights output by output, then the biases.
    pub fn initialize_from(&self, start: Start, rng: &mut ChaCha8Rng) -> Parameters {
        let normal = |rng: &mut ChaCha8Rng, count, deviation: f64| -> Vec<f64> {
            gaussian_vector(rng, count).into_iter().map(|z| deviation * z).collect()
        };
        let shapes = self.layers().into_iter().zip(self.biases()).enumerate();
        let layers = shapes
            .map(|(layer, ((fan_in, fan_out), biases))| {
                let spread = match (layer, self.first) {
                    (0, FirstLayer::Kronecker) => fan_out,
                    _ => fan_in,
                };
                let limit = 1.0 / (spread as f64).sqrt();
                let deviation = (2.0 / (fan_in + fan_out) as f64).sqrt();
                let mut weights = Mat::zeros(fan_out, fan_in);
                // One output at a time, because a Kronecker layer has many weights.
                for o in 0..fan_out {
                    let draws = match start {
                        Start::Uniform => uniform_vector(rng, fan_in, -limit, limit),
                        Start::GlorotNormal => normal(rng, fan_in, deviation),
                    };
                    for (i, draw) in draws.into_iter().enumerate() {
                        weights[(o, i)] = draw as f32;
                    }
                }
                let bias = match start {
                    Start::Uniform => uniform_vector(rng, biases, -limit, limit),
                    Start::GlorotNormal => normal(rng, biases, BIAS_DEVIATION),
                };
                Layer { weights, bias: bias.into_iter().map(|b| b as f32).collect() }
            })
            .collect();
        Parameters { layers }
    }
}

/// One affine layer, in single precision unless stated otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer<T = f32> {
    /// W, fan out × fan in.
    pub weights: Mat<T>,
    /// b, one per output of the layer; empty for a Kronecker layer.
    pub bias: Vec<T>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Parameters<T = f32> {
    /// From the input to the output.
    pub layers: Vec<Layer<T>>,
}

impl<T> Parameters<T> {
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

#[cfg(test)]
mod tests {
    use posenc_math::random::stream;

    use super::*;

    /// Catches deviations with the fan in alone, and biases with the deviation of the weights.
    #[test]
    fn glorot_normal_weights_depend_on_both_fans() {
        let network = Network::new(300, 1, 100, 100).unwrap();
        let start = network.initialize_from(Start::GlorotNormal, &mut stream(0, "start"));
        let deviation = |values: Vec<f32>| {
            let squares: f64 = values.iter().map(|&v| f64::from(v).powi(2)).sum();
            (squares / values.len() as f64).sqrt()
        };
        for (layer, expected) in start.layers.iter().zip([0.005f64, 0.01]) {
            let weights = &layer.weights;
            let all = (0..weights.ncols()).flat_map(|i| weights.col_as_slice(i).to_vec()).collect();
            assert!((deviation(all) / expected.sqrt() - 1.0).abs() < 0.05);
            assert!((deviation(layer.bias.clone()) / 0.01 - 1.0).abs() < 0.3);
        }
        assert_ne!(start, network.initialize(&mut stream(0, "start")));
    }
}
