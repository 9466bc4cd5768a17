//! Compares the reference with burn: automatic differentiation, and Adam on burn tensors.

use crate::common;

use burn::Tensor;
use burn::tensor::{DType, Device, Gradients, TensorData, activation};
use common::{Comparison, wide_matrix};
use faer::Mat;
use posenc_nets::reference::{self, ReferenceSession, loss_and_gradient};
use posenc_nets::{Adam, Input, Network, OutputActivation, Session, Task};

/// A weight matrix or a bias, with its moments after the first step.
struct Leaf<const D: usize> {
    value: Tensor<D>,
    moments: Option<(Tensor<D>, Tensor<D>)>,
}

impl<const D: usize> Leaf<D> {
    fn new(data: TensorData) -> Self {
        let device = Device::flex().autodiff();
        let value = Tensor::from_data(data, (&device, DType::F64)).require_grad();
        Leaf { value, moments: None }
    }

    /// One Adam step on tensors, with the formulas of PyTorch's documentation.
    fn step(&mut self, adam: &Adam, t: i32, gradients: &Gradients) {
        let Adam { learning_rate, beta1, beta2, epsilon, weight_decay } = *adam;
        let theta = self.value.clone().inner();
        let g = self.value.grad(gradients).unwrap() + theta.clone().mul_scalar(weight_decay);
        let (m, v) = self.moments.take().unwrap_or((theta.zeros_like(), theta.zeros_like()));
        let m = m.mul_scalar(beta1) + g.clone().mul_scalar(1.0 - beta1);
        let v = v.mul_scalar(beta2) + g.square().mul_scalar(1.0 - beta2);
        let root = v.clone().div_scalar(1.0 - beta2.powi(t)).sqrt().add_scalar(epsilon);
        let mean = m.clone().div_scalar(1.0 - beta1.powi(t));
        let next = theta - mean.mul_scalar(learning_rate) / root;
        // A new leaf, where the next graph begins.
        *self = Leaf::new(next.into_data());
        self.moments = Some((m, v));
    }
}

fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    tensor.into_data().try_into_vec_as::<f64>().unwrap()
}

/// A layer in the reference's types.
fn layer(weights: Tensor<2>, bias: Tensor<1>) -> reference::Layer {
    let [rows, columns] = weights.dims();
    let w = numbers(weights);
    let weights = Mat::from_fn(rows, columns, |i, j| w[i * columns + j]);
    reference::Layer { weights, bias: numbers(bias) }
}

/// Row-major data, as in burn's tensors.
fn data(matrix: &Mat<f64>) -> TensorData {
    let (rows, columns) = matrix.shape();
    let numbers = (0..rows).flat_map(|i| (0..columns).map(move |j| matrix[(i, j)])).collect();
    TensorData::new::<f64, _>(numbers, [rows, columns])
}

/// One run on burn's tensors.
struct Run {
    activation: OutputActivation,
    input: Tensor<2>,
    targets: Tensor<2>,
    layers: Vec<(Leaf<2>, Leaf<1>)>,
    steps: i32,
}

impl Run {
    /// The first run of a task.
    fn new(task: &Task) -> Self {
        let device = Device::flex().autodiff();
        let constant = |matrix: &Mat<f64>| Tensor::from_data(data(matrix), (&device, DType::F64));
        let targets = wide_matrix(&task.train.targets).transpose().to_owned();
        let layers = &common::widened(&task.initial)[0].layers;
        let leaves = layers.iter().map(|layer| {
            let bias = TensorData::new(layer.bias.clone(), [layer.bias.len()]);
            (Leaf::new(data(&layer.weights)), Leaf::new(bias))
        });
        Run {
            activation: task.network.output_activation,
            input: constant(&wide_matrix(&task.train.input.to_dense())),
            targets: constant(&targets),
            layers: leaves.collect(),
            steps: 0,
        }
    }

    /// The mean squared error with its graph.
    fn error(&self) -> Tensor<1> {
        let mut a = self.input.clone();
        for (l, (weights, bias)) in self.layers.iter().enumerate() {
            let z = weights.value.clone().matmul(a) + bias.value.clone().unsqueeze_dim::<2>(1);
            a = if l + 1 < self.layers.len() {
                activation::relu(z)
            } else {
                match self.activation {
                    OutputActivation::Identity => z,
                    OutputActivation::Sigmoid => activation::sigmoid(z),
                }
            };
        }
        (a - self.targets.clone()).square().mean()
    }

    /// The error and its gradient, in the reference's types.
    fn error_and_gradient(&self) -> (f64, reference::Parameters) {
        let error = self.error();
        let gradients = error.backward();
        let layers = self.layers.iter().map(|(weights, bias)| {
            let (weights, bias) = (weights.value.grad(&gradients), bias.value.grad(&gradients));
            layer(weights.unwrap(), bias.unwrap())
        });
        let layers = layers.collect();
        (numbers(error.inner())[0], reference::Parameters { layers })
    }

    /// Takes one step; returns the error before it.
    fn step(&mut self, adam: &Adam) -> f64 {
        self.steps += 1;
        let error = self.error();
        let gradients = error.backward();
        for (weights, bias) in &mut self.layers {
            weights.step(adam, self.steps, &gradients);
            bias.step(adam, self.steps, &gradients);
        }
        numbers(error.inner())[0]
    }

    fn parameters(&self) -> reference::Parameters {
        let layers = self.layers.iter().map(|(weights, bias)| {
            layer(weights.value.clone().inner(), bias.value.clone().inner())
        });
        reference::Parameters { layers: layers.collect() }
    }
}

/// Named networks of several depths and output activations.
fn networks() -> impl Iterator<Item = (String, Network)> {
    [0, 1, 2, 4].into_iter().flat_map(|depth| {
        [false, true].map(|sigmoid| {
            let name = format!("depth {depth}{}", if sigmoid { ", sigmoid" } else { "" });
            (name, common::network(12, depth, 10, 3, sigmoid))
        })
    })
}

fn task(network: &Network, adam: Adam) -> Task {
    let input = Input::dense(common::waves(network.input, 37)).unwrap();
    common::task(network.clone(), input, adam, 1)
}

/// The papers' settings, and settings with a large ε and weight decay. With values of 1e-8, their place in the formula
/// would have no visible effect.
fn settings() -> [(&'static str, Adam); 2] {
    let coarse =
        Adam { epsilon: 0.02, weight_decay: 0.05, beta1: 0.8, beta2: 0.95, ..Adam::new(2e-3) };
    [("papers' Adam", Adam::new(2e-3)), ("coarse Adam", coarse)]
}

/// Catches a wrong gradient in either library. Both compute in double precision.
#[test]
fn gradients_match_automatic_differentiation() {
    for (name, network) in networks() {
        let task = task(&network, Adam::new(1e-3));
        let run = Run::new(&task);
        let (error, gradient) = loss_and_gradient(
            &network,
            &common::widened(&task.initial)[0],
            wide_matrix(&task.train.input.to_dense()).as_ref(),
            wide_matrix(&task.train.targets).as_ref(),
        )
        .unwrap();
        let (burn_error, burn_gradient) = run.error_and_gradient();
        let zero = reference::Parameters::zeros(&network);
        let layers: Vec<f64> = (0..zero.layers.len())
            .map(|l| {
                let theirs = &burn_gradient.layers[l];
                common::distance(&gradient.layers[l], theirs)
                    / common::distance(theirs, &zero.layers[l])
            })
            .collect();
        let deviation = (error - burn_error).abs() / burn_error;
        let shown: Vec<_> = layers.iter().map(|l| format!("{l:.1e}")).collect();
        println!("{name}: error {deviation:.1e}, gradients by layer {}", shown.join(", "));
        assert!(deviation < 1e-13, "{name}: {error} and {burn_error}");
        assert!(layers.iter().all(|l| *l < 1e-12), "{name}: {layers:?}");
    }
}

/// Catches a Kronecker layer whose weights are not numbered as in Ψ₀ᵀ W Ψ₁. Burn differentiates this product of small
/// tensors. The reference uses the dense matrix of features, which is rounded to single precision, so the two gradients
/// agree to single precision only.
#[test]
fn kronecker_gradients_match_automatic_differentiation() {
    let (rows, columns) = (common::waves(6, 9), common::bumps(5, 8, 0.3, common::gaussian));
    let input = Input::kronecker(vec![rows.clone(), columns.clone()]).unwrap();
    let network = common::kronecker_network(&input, None, 2, false);
    let task = common::task(network.clone(), input, Adam::new(1e-3), 1);
    let start = &common::widened(&task.initial)[0];
    let targets = wide_matrix(&task.train.targets);
    let features = wide_matrix(&task.train.input.to_dense());
    let (error, gradient) =
        loss_and_gradient(&network, start, features.as_ref(), targets.as_ref()).unwrap();

    let device = Device::flex().autodiff();
    let constant = |matrix: &Mat<f64>| Tensor::<2>::from_data(data(matrix), (&device, DType::F64));
    let (rows, columns) = (constant(&wide_matrix(&rows)), constant(&wide_matrix(&columns)));
    let mut sum = 0.0;
    for o in 0..2 {
        let weights = Mat::from_fn(6, 5, |k0, k1| start.layers[0].weights[(o, k0 * 5 + k1)]);
        let weights = Leaf::<2>::new(data(&weights));
        let image = constant(&Mat::from_fn(9, 8, |i, j| targets[(i * 8 + j, o)]));
        let outputs =
            rows.clone().transpose().matmul(weights.value.clone()).matmul(columns.clone());
        // The error is the mean over two outputs.
        let share = (outputs - image).square().mean().div_scalar(2.0);
        let gradients = share.backward();
        sum += numbers(share.inner())[0];
        for (k, theirs) in numbers(weights.value.grad(&gradients).unwrap()).iter().enumerate() {
            let ours = gradient.layers[0].weights[(o, k)];
            assert!((ours - theirs).abs() < 1e-8, "output {o}, weight {k}: {ours} and {theirs}");
        }
    }
    assert!((sum - error).abs() < 1e-8, "{sum} and {error}");
}

/// Catches deviations from PyTorch's Adam: ε inside the root or before the bias correction, decoupled weight decay, and
/// a step count that is off by one.
#[test]
fn steps_match_adam_on_tensors() {
    for (settings, adam) in settings() {
        for (name, network) in networks() {
            let task = task(&network, adam);
            let comparison = follow(&task, 30);
            comparison.print(&format!("{settings}, {name}"));
            assert!(comparison.deviation.error.0 < 1e-12, "{settings}, {name}");
            assert!(comparison.deviation.parameters() < 1e-11, "{settings}, {name}");
        }
    }
}

/// Trains with the reference and with burn in double precision.
fn follow(task: &Task, steps: usize) -> Comparison {
    let mut ours = ReferenceSession::new(task).unwrap();
    let mut theirs = Run::new(task);
    let mut comparison = Comparison::new(task);
    for step in 1..=steps {
        let before = [ours.parameters_of(0).unwrap().clone()];
        let errors = [ours.step().unwrap(), vec![theirs.step(&task.optimizer)]];
        let after = [[ours.parameters_of(0).unwrap().clone()], [theirs.parameters()]];
        comparison.record(step, [&errors[0], &errors[1]], &before, [&after[0], &after[1]]);
    }
    comparison
}
