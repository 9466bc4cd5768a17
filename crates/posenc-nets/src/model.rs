//! Networks: shape, initialization, parameters.

use faer::Mat;
use posenc_math::random::uniform_vector;
use rand_chacha::ChaCha8Rng;

use crate::NetError;

/// What stands after the last affine layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OutputActivation {
    /// Nothing: y = z.
    #[default]
    Identity,
    /// y = 1/(1 + e^-z), as in the 2-D notebooks of `rethinking` (Fig. 10).
    Sigmoid,
}

/// Shape of a network: affine layers with ReLU between them.
///
/// z₁ = W₁ψ + b₁, z_{l+1} = W_{l+1} max(z_l, 0) + b_{l+1}, y = σ(z_L). Without hidden layers this is the
/// papers' "one layer linear network". Depth counts hidden layers, as in the papers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// Number d of features of the input.
    pub input: usize,
    /// Widths of the hidden layers, from the input on.
    pub hidden: Vec<usize>,
    /// Number of outputs.
    pub output: usize,
    /// What stands after the last layer.
    pub output_activation: OutputActivation,
}

impl Network {
    /// `depth` hidden layers of one `width`, and `output` outputs without activation.
    pub fn new(input: usize, depth: usize, width: usize, output: usize) -> Result<Self, NetError> {
        let network = Network {
            input,
            hidden: vec![width; depth],
            output,
            output_activation: OutputActivation::Identity,
        };
        network.check()?;
        Ok(network)
    }

    /// The same with another output activation.
    pub fn with_output_activation(mut self, activation: OutputActivation) -> Self {
        self.output_activation = activation;
        self
    }

    /// Refuses sizes of zero.
    pub fn check(&self) -> Result<(), NetError> {
        if self.input == 0 {
            return Err(NetError::Zero { what: "the embedding dimension" });
        }
        if self.hidden.contains(&0) {
            return Err(NetError::Zero { what: "the width of a hidden layer" });
        }
        if self.output == 0 {
            return Err(NetError::Zero { what: "the number of outputs" });
        }
        Ok(())
    }

    /// Number of hidden layers.
    pub fn depth(&self) -> usize {
        self.hidden.len()
    }

    /// (fan in, fan out) of every affine layer.
    pub fn layers(&self) -> Vec<(usize, usize)> {
        let ins = std::iter::once(self.input).chain(self.hidden.iter().copied());
        let outs = self.hidden.iter().copied().chain(std::iter::once(self.output));
        ins.zip(outs).collect()
    }

    /// Number of weights and biases.
    pub fn parameter_count(&self) -> usize {
        self.layers().iter().map(|(i, o)| (i + 1) * o).sum()
    }

    /// Weights and biases uniform on ±1/√(fan in), the default of the authors' library.
    ///
    /// The order of the draws is fixed: layer by layer, the weights of one output after the other,
    /// then the biases.
    pub fn initialize(&self, rng: &mut ChaCha8Rng) -> Parameters {
        let layers = self
            .layers()
            .into_iter()
            .map(|(fan_in, fan_out)| {
                let limit = 1.0 / (fan_in as f64).sqrt();
                let draws = uniform_vector(rng, fan_out * fan_in, -limit, limit);
                let weights = Mat::from_fn(fan_out, fan_in, |o, i| draws[o * fan_in + i] as f32);
                let bias = uniform_vector(rng, fan_out, -limit, limit);
                Layer { weights, bias: bias.into_iter().map(|b| b as f32).collect() }
            })
            .collect();
        Parameters { layers }
    }
}

/// One affine layer.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// W, fan out × fan in.
    pub weights: Mat<f32>,
    /// b, one per output of the layer.
    pub bias: Vec<f32>,
}

/// All weights and biases of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters {
    /// From the input to the output.
    pub layers: Vec<Layer>,
}

impl Parameters {
    /// Whether these are the parameters of such a network.
    pub fn check(&self, network: &Network) -> Result<(), NetError> {
        let shapes = network.layers();
        let same = |what: &str, found, expected| {
            if found == expected {
                Ok(())
            } else {
                Err(NetError::Shape { what: what.to_owned(), found, expected })
            }
        };
        same("layers", self.layers.len(), shapes.len())?;
        for (layer, (fan_in, fan_out)) in self.layers.iter().zip(shapes) {
            same("columns of a weight matrix", layer.weights.ncols(), fan_in)?;
            same("rows of a weight matrix", layer.weights.nrows(), fan_out)?;
            same("biases of a layer", layer.bias.len(), fan_out)?;
        }
        Ok(())
    }
}
