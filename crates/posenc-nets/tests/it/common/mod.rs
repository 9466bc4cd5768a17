//! Problems and comparisons that several tests share.

use std::fmt::{Display, Formatter};

use faer::Mat;
use nalgebra_sparse::{CooMatrix, CsrMatrix};
use posenc_math::random::{stream, uniform_vector};
use posenc_nets::{
    Adam, CpuEngine, Engine, FirstLayer, Input, Network, OutputActivation, Parameters, Products,
    Samples, Task, WaveTable, reference,
};

/// Uniform random numbers in ±1.
pub fn noise(rows: usize, columns: usize, label: &str) -> Mat<f32> {
    let draws = uniform_vector(&mut stream(1, label), rows * columns, -1.0, 1.0);
    Mat::from_fn(rows, columns, |i, j| draws[j * rows + i] as f32)
}

/// Features ψ_j(x_i) = shape((x_i − t_j)/width) with d centers t_j and N points x_i spread over [0, 1], d × N.
pub fn bumps(d: usize, n: usize, width: f64, shape: fn(f64) -> f64) -> Mat<f32> {
    let centre = |j: usize| (j as f64 + 0.5) / d as f64;
    let point = |i: usize| (i as f64 + 0.25) / n as f64;
    Mat::from_fn(d, n, |j, i| shape((point(i) - centre(j)) / width) as f32)
}

/// max(0, 1 − |u|).
pub fn triangle(u: f64) -> f64 {
    (1.0 - u.abs()).max(0.0)
}

/// e^(−u²/2).
pub fn gaussian(u: f64) -> f64 {
    (-0.5 * u * u).exp()
}

/// 1 on [−½, ½).
pub fn impulse(u: f64) -> f64 {
    if (-0.5..0.5).contains(&u) { 1.0 } else { 0.0 }
}

/// Cosines and sines of increasing frequency, d × N: an embedding without bands.
pub fn waves(d: usize, n: usize) -> Mat<f32> {
    let point = |i: usize| (i as f64 + 0.25) / n as f64;
    Mat::from_fn(d, n, |j, i| {
        let angle = std::f64::consts::TAU * (1 + j / 2) as f64 * 0.7 * point(i);
        (if j % 2 == 0 { angle.cos() } else { angle.sin() }) as f32
    })
}

/// The same points in a scattered order.
pub fn shuffled(matrix: &Mat<f32>) -> Mat<f32> {
    let order = scattered(matrix.ncols());
    Mat::from_fn(matrix.nrows(), matrix.ncols(), |j, i| matrix[(j, order[i])])
}

/// 0 … n−1 in a scattered order.
pub fn scattered(n: usize) -> Vec<usize> {
    let keys = uniform_vector(&mut stream(2, "order"), n, 0.0, 1.0);
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|a, b| keys[*a].total_cmp(&keys[*b]));
    order
}

/// A 2-D embedding of n scattered points, 2d × N: the bumps of one coordinate stacked on those of the other.
pub fn stacked_bumps(d: usize, n: usize, width: f64) -> Mat<f32> {
    let (x, y) = (shuffled(&bumps(d, n, width, triangle)), bumps(d, n, width, gaussian));
    Mat::from_fn(2 * d, n, |j, i| if j < d { x[(j, i)] } else { y[(j - d, i)] })
}

/// Targets between 0 and 1, N × columns: a wave per column plus noise, so that no error vanishes.
pub fn targets(n: usize, columns: usize) -> Mat<f32> {
    let noise = noise(n, columns, "targets");
    Mat::from_fn(n, columns, |i, c| {
        let wave = ((1 + c % 3) as f64 * 6.3 * i as f64 / n as f64 + c as f64).sin();
        (0.5 + 0.3 * wave) as f32 + 0.2 * noise[(i, c)]
    })
}

/// A network with `depth` hidden layers of `width` units and an identity or sigmoid output.
pub fn network(d: usize, depth: usize, width: usize, output: usize, sigmoid: bool) -> Network {
    let activation = if sigmoid { OutputActivation::Sigmoid } else { OutputActivation::Identity };
    Network::new(d, depth, width, output).unwrap().with_output_activation(activation)
}

/// A network with a Kronecker layer on the features of `input`, at most one hidden layer, and an identity or sigmoid
/// output.
pub fn kronecker_network(
    input: &Input,
    hidden: Option<usize>,
    output: usize,
    sigmoid: bool,
) -> Network {
    let activation = if sigmoid { OutputActivation::Sigmoid } else { OutputActivation::Identity };
    Network::kronecker(input.dimension(), hidden, output)
        .unwrap()
        .with_output_activation(activation)
}

/// A random blending matrix with up to four nodes per point; some points have no node.
pub fn blending(points: usize, nodes: usize) -> CsrMatrix<f32> {
    let draws = uniform_vector(&mut stream(3, "blending"), 8 * points, 0.0, 1.0);
    let mut weights = CooMatrix::new(points, nodes);
    for (point, draws) in draws.chunks_exact(8).enumerate() {
        for corner in 0..(8.0 * draws[0]) as usize % 5 {
            let node = (draws[2 * (corner % 4)] * nodes as f64) as usize;
            weights.push(point, node, draws[2 * (corner % 4) + 1] as f32);
        }
    }
    CsrMatrix::from(&weights)
}

/// Named Kronecker inputs of every kind: one to three axes with different numbers of features and points, with and
/// without bands, on whole grids, on some nodes, and on points between nodes.
pub fn kronecker_inputs() -> Vec<(String, Input)> {
    let band = |k: usize, n| bumps(k, n, 1.6 / k as f64, triangle);
    let mut all = Vec::new();
    for (name, axes) in [
        ("one axis", vec![waves(14, 33)]),
        ("one banded axis", vec![band(40, 40)]),
        ("two axes", vec![waves(6, 13), noise(9, 7, "axis")]),
        ("two axes, one of them short", vec![noise(1, 9, "axis"), waves(10, 1)]),
        ("two banded axes", vec![band(21, 21), band(34, 34)]),
        ("bands and waves", vec![band(19, 25), waves(8, 11)]),
        ("three axes", vec![waves(4, 5), noise(3, 6, "axis"), waves(6, 4)]),
        ("three axes with bands", vec![band(18, 18), noise(3, 2, "axis"), band(12, 12)]),
    ] {
        let nodes: usize = axes.iter().map(Mat::ncols).product();
        // Some nodes in a scattered order, one of them twice.
        let mut some: Vec<u32> =
            scattered(nodes)[..nodes / 2 + 1].iter().map(|&node| node as u32).collect();
        some.push(some[0]);
        let blending = blending(nodes / 2 + 40, nodes);
        all.extend([
            (format!("{name}, grid"), Input::kronecker(axes.clone()).unwrap()),
            (format!("{name}, nodes"), Input::kronecker_at(axes.clone(), some).unwrap()),
            (format!("{name}, blended"), Input::kronecker_blended(axes, blending).unwrap()),
        ]);
    }
    all
}

/// Joint Fourier features of points in a scattered order on a grid with `axes` coordinates per axis, and their phases
/// (waves × points) in turns.
pub fn joint_waves(waves: usize, points: usize, axes: &[usize]) -> (Input, Mat<f64>) {
    let frequencies: Vec<Vec<f64>> = (0..axes.len())
        .map(|a| uniform_vector(&mut stream(a as u64, "frequencies"), waves, -9.0, 9.0))
        .collect();
    let order = scattered(points.max(axes.iter().product()));
    let mut stride = 1;
    let indices: Vec<Vec<u32>> = axes
        .iter()
        .map(|&n| {
            let index = order[..points].iter().map(|&p| (p / stride % n) as u32).collect();
            stride *= n;
            index
        })
        .collect();
    let tables = axes.iter().zip(&frequencies).map(|(&n, frequencies)| {
        let coordinates: Vec<f64> = (0..n).map(|i| i as f64 / n as f64).collect();
        WaveTable::new(frequencies, &coordinates)
    });
    let input = Input::waves(tables.collect(), indices.clone(), 0.25).unwrap();
    let phases = Mat::from_fn(waves, points, |k, i| {
        (0..axes.len()).map(|a| frequencies[a][k] * f64::from(indices[a][i]) / axes[a] as f64).sum()
    });
    (input, phases)
}

/// The CPU engine with every method for the gradient that `task` supports.
pub fn cpu_engines(task: &Task) -> Vec<CpuEngine> {
    let methods = match task.network.first {
        FirstLayer::Affine => &[Products::Automatic][..],
        FirstLayer::Kronecker => &[Products::Automatic, Products::Residual, Products::Gram],
    };
    let engines = methods.iter().map(|&products| CpuEngine::new(2).with_products(products));
    engines.filter(|engine| engine.start(task.clone()).is_ok()).collect()
}

/// Initial parameters of several runs.
pub fn initial(network: &Network, runs: usize) -> Vec<Parameters> {
    (0..runs).map(|r| network.initialize(&mut stream(r as u64, "initial"))).collect()
}

/// A task with separate targets for every run, and a test set with other targets on the same input.
pub fn task(network: Network, input: Input, optimizer: Adam, runs: usize) -> Task {
    let n = input.points();
    let columns = runs * network.output;
    let train = Samples { input: input.clone(), targets: targets(n, columns) };
    let test = Samples { input, targets: noise(n, columns, "test") };
    let initial = initial(&network, runs);
    Task { network, optimizer, train, test: Some(test), initial }
}

/// Deviation between two training runs of the same task.
#[derive(Debug, Clone)]
pub struct Deviation {
    /// Largest |E − E'|/E' over all runs, with its step.
    pub error: (f64, usize),
    /// For each layer, the largest ‖θ − θ'‖/‖θ' − θ₀‖ over all runs, with its step: the difference relative to the
    /// distance from the initial parameters.
    pub layers: Vec<(f64, usize)>,
}

impl Deviation {
    fn none(layers: usize) -> Self {
        Deviation { error: (0.0, 0), layers: vec![(0.0, 0); layers] }
    }

    /// The largest deviation over all layers.
    pub fn parameters(&self) -> f64 {
        self.layers.iter().fold(0.0, |largest, layer| layer.0.max(largest))
    }
}

impl Display for Deviation {
    fn fmt(&self, out: &mut Formatter<'_>) -> std::fmt::Result {
        let show = |(value, step): &(f64, usize)| format!("{value:.1e} (step {step})");
        let layers: Vec<_> = self.layers.iter().map(show).collect();
        write!(out, "error {}, parameters by layer {}", show(&self.error), layers.join(", "))
    }
}

/// Tracks the deviation between two engines that train the same task.
///
/// If a unit's pre-activation z is as close to 0 as the rounding error, the two engines may be on different sides of the
/// ReLU's kink. The point then contributes to the gradient of one engine only. If the unit is active on few points,
/// Adam turns this into whole steps, and the deviation grows from 1e-6 to 1e-2. The deviation before the first step
/// near a kink is therefore recorded separately.
pub struct Comparison {
    network: Network,
    input: Mat<f64>,
    initial: Vec<reference::Parameters>,
    pub deviation: Deviation,
    /// Deviation over the steps before the first one near a kink.
    pub smooth: Deviation,
    /// Number of steps before the first one near a kink.
    pub smooth_steps: usize,
    is_smooth: bool,
}

impl Comparison {
    /// A z closer to 0 than this may round to either sign. It is a sum of some tens of terms below 1.
    const NEAR: f64 = 2e-7;

    /// Starts tracking before the first step.
    pub fn new(task: &Task) -> Self {
        let layers = task.network.layers().len();
        Comparison {
            network: task.network.clone(),
            input: wide_matrix(&task.train.input.to_dense()),
            initial: widened(&task.initial),
            deviation: Deviation::none(layers),
            smooth: Deviation::none(layers),
            smooth_steps: 0,
            is_smooth: true,
        }
    }

    /// Records one step of all runs: the errors of both engines, the parameters before the step, and the parameters of
    /// both engines after it.
    pub fn record(
        &mut self,
        step: usize,
        errors: [&[f64]; 2],
        before: &[reference::Parameters],
        after: [&[reference::Parameters]; 2],
    ) {
        self.is_smooth &= self.nearest_kink(before) > Self::NEAR;
        self.smooth_steps += usize::from(self.is_smooth);
        let [ours, theirs] = errors;
        assert_eq!((ours.len(), theirs.len()), (self.initial.len(), self.initial.len()));
        for (a, b) in ours.iter().zip(theirs) {
            assert!(a.is_finite() && *b > 0.0, "step {step}: {a} and {b}");
            self.update(step, |deviation| &mut deviation.error, (a - b).abs() / b);
        }
        let [ours, theirs] = after;
        assert_eq!((ours.len(), theirs.len()), (self.initial.len(), self.initial.len()));
        for (r, (a, b)) in ours.iter().zip(theirs).enumerate() {
            assert_eq!(
                (a.layers.len(), b.layers.len()),
                (self.initial[r].layers.len(), a.layers.len())
            );
            for (l, (a, b)) in a.layers.iter().zip(&b.layers).enumerate() {
                let share = distance(a, b) / distance(b, &self.initial[r].layers[l]);
                assert!(share.is_finite(), "step {step}, run {r}, layer {l}: {share}");
                self.update(step, |deviation| &mut deviation.layers[l], share);
            }
        }
    }

    fn update(
        &mut self,
        step: usize,
        place: impl Fn(&mut Deviation) -> &mut (f64, usize),
        value: f64,
    ) {
        let smooth = self.is_smooth.then_some(&mut self.smooth);
        for place in smooth.into_iter().chain([&mut self.deviation]).map(place) {
            if value > place.0 {
                *place = (value, step);
            }
        }
    }

    /// The smallest |z| of all hidden units at all points.
    fn nearest_kink(&self, runs: &[reference::Parameters]) -> f64 {
        let mut nearest = f64::INFINITY;
        for depth in 0..self.network.depth() {
            // The outputs of the network that ends at this layer are its z.
            let head = Network {
                hidden: self.network.hidden[..depth].to_vec(),
                output: self.network.hidden[depth],
                output_activation: OutputActivation::Identity,
                ..self.network
            };
            for run in runs {
                let layers = run.layers[..=depth].to_vec();
                let parameters = reference::Parameters { layers };
                let z = reference::outputs(&head, &parameters, self.input.as_ref()).unwrap();
                for o in 0..z.ncols() {
                    let smallest = |nearest: f64, z: &f64| nearest.min(z.abs());
                    nearest = z.col_as_slice(o).iter().fold(nearest, smallest);
                }
            }
        }
        nearest
    }

    /// Checks the deviation of an engine in single precision from the reference.
    #[track_caller]
    pub fn check(&self, name: &str) {
        for (deviation, error, parameters) in
            [(&self.smooth, 1e-5, 5e-4), (&self.deviation, 2e-3, 5e-2)]
        {
            assert!(deviation.error.0 < error, "{name}: {deviation}");
            assert!(deviation.parameters() < parameters, "{name}: {deviation}");
        }
    }
}

/// Trains one task with two engines, step by step.
pub fn compare(
    engine: &dyn Engine,
    reference: &dyn Engine,
    task: &Task,
    steps: usize,
) -> Comparison {
    let mut ours = engine.start(task.clone()).unwrap();
    let mut theirs = reference.start(task.clone()).unwrap();
    let mut comparison = Comparison::new(task);
    let mut before = widened(&theirs.parameters().unwrap());
    for step in 1..=steps {
        let errors = [ours.step().unwrap(), theirs.step().unwrap()];
        let after = [widened(&ours.parameters().unwrap()), widened(&theirs.parameters().unwrap())];
        comparison.record(step, [&errors[0], &errors[1]], &before, [&after[0], &after[1]]);
        [_, before] = after;
    }
    comparison
}

/// Converts parameters to double precision.
pub fn widened(runs: &[Parameters]) -> Vec<reference::Parameters> {
    runs.iter().map(reference::Parameters::from_single).collect()
}

/// Converts a matrix to double precision.
pub fn wide_matrix(matrix: &Mat<f32>) -> Mat<f64> {
    Mat::from_fn(matrix.nrows(), matrix.ncols(), |i, j| f64::from(matrix[(i, j)]))
}

/// ‖θ − θ'‖ over the weights and biases of a layer.
pub fn distance(a: &reference::Layer, b: &reference::Layer) -> f64 {
    assert_eq!((a.weights.shape(), a.bias.len()), (b.weights.shape(), b.bias.len()));
    let weights = (&a.weights - &b.weights).squared_norm_l2();
    let biases = a.bias.iter().zip(&b.bias).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
    (weights + biases).sqrt()
}

/// Bits of numbers, for comparisons in which 0 differs from −0 and NaN equals itself.
pub fn bits(numbers: impl IntoIterator<Item = f32>) -> Vec<u32> {
    numbers.into_iter().map(f32::to_bits).collect()
}

pub fn error_bits(errors: &[f64]) -> Vec<u64> {
    errors.iter().map(|e| e.to_bits()).collect()
}

/// Bits of all parameters of all runs.
pub fn parameter_bits(runs: &[Parameters]) -> Vec<Vec<u32>> {
    let of = |parameters: &Parameters| {
        let mut all = Vec::new();
        for layer in &parameters.layers {
            all.extend(matrix_bits(&layer.weights));
            all.extend(bits(layer.bias.iter().copied()));
        }
        all
    };
    runs.iter().map(of).collect()
}

/// Bits of a matrix, column by column.
pub fn matrix_bits(matrix: &Mat<f32>) -> Vec<u32> {
    (0..matrix.ncols()).flat_map(|j| bits(matrix.col_as_slice(j).iter().copied())).collect()
}
