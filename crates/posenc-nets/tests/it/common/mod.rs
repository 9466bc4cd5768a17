//! Problems and comparisons that several tests share.

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

/// Hidden layers, their width, outputs, and whether these have a sigmoid.
pub type Shape = (usize, usize, usize, bool);

/// A network on the features of `input`, with a Kronecker layer if these are Kronecker features.
pub fn network(input: &Input, (depth, width, output, sigmoid): Shape) -> Network {
    let first = match input {
        Input::Kronecker(_) => FirstLayer::Kronecker,
        _ => FirstLayer::Affine,
    };
    let output_activation =
        if sigmoid { OutputActivation::Sigmoid } else { OutputActivation::Identity };
    let (input, hidden) = (input.dimension(), vec![width; depth]);
    Network { input, first, hidden, output, output_activation }
}

pub fn dense(columns: Mat<f32>) -> Input {
    Input::dense(columns).unwrap()
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
        FirstLayer::Affine => &[None][..],
        FirstLayer::Kronecker => &[None, Some(Products::Residual), Some(Products::Gram)],
    };
    let engines = methods.iter().map(|&products| CpuEngine::new(2).with_products(products));
    engines.filter(|engine| engine.start(task.clone()).is_ok()).collect()
}

/// Initial parameters of several runs.
pub fn initial(network: &Network, runs: usize) -> Vec<Parameters> {
    (0..runs).map(|r| network.initialize(&mut stream(r as u64, "initial"))).collect()
}

/// A task with separate targets for every run, and a test set with other targets on the same input.
pub fn task(input: Input, shape: Shape, optimizer: Adam, runs: usize) -> Task {
    task_of(network(&input, shape), input, optimizer, runs)
}

pub fn task_of(network: Network, input: Input, optimizer: Adam, runs: usize) -> Task {
    let n = input.points();
    let columns = runs * network.output;
    let train = Samples { input: input.clone(), targets: targets(n, columns) };
    let test = Samples { input, targets: noise(n, columns, "test") };
    let initial = initial(&network, runs);
    Task { network, optimizer, train, test: Some(test), initial }
}

/// Features of other points for the same network.
pub fn other_points(input: &Input) -> Input {
    match input {
        Input::Kronecker(k) => {
            let axes = k.axes.iter().zip([11, 7, 5]).map(|(a, n)| noise(a.nrows(), n, "other"));
            Input::kronecker(axes.collect()).unwrap()
        }
        _ => dense(noise(input.dimension(), 133, "other")),
    }
}

/// A z closer to 0 than this may round to either sign. It is a sum of some tens of terms below 1.
const NEAR: f64 = 2e-7;

/// Whether a hidden unit may be at the kink of its ReLU at some point.
///
/// If a unit's pre-activation z is as close to 0 as the rounding error, two engines may be on different sides of the kink. The point then
/// contributes to the gradient of one engine only. If the unit is active on few points, Adam turns this into whole steps, and the
/// deviation grows from 1e-6 to 1e-2.
pub fn is_near_kink(
    network: &Network,
    features: &Mat<f64>,
    runs: &[reference::Parameters],
) -> bool {
    let smallest = |(depth, run): (usize, &reference::Parameters)| {
        // The outputs of the network that ends at this layer are its z.
        let head = Network {
            hidden: network.hidden[..depth].to_vec(),
            output: network.hidden[depth],
            output_activation: OutputActivation::Identity,
            ..*network
        };
        let parameters = reference::Parameters { layers: run.layers[..=depth].to_vec() };
        let z = reference::outputs(&head, &parameters, features.as_ref());
        (0..z.ncols()).flat_map(|o| z.col_as_slice(o)).fold(f64::INFINITY, |s, z| s.min(z.abs()))
    };
    let layers = (0..network.depth()).flat_map(|depth| runs.iter().map(move |run| (depth, run)));
    layers.map(smallest).any(|z| z <= NEAR)
}

/// Accepted differences between two engines.
pub struct Tolerance {
    /// Of errors: relative and absolute.
    pub errors: [f64; 2],
    /// Of the parameters of a layer: relative to their distance from the initial ones, and to their size.
    pub parameters: [f64; 2],
    /// Relative ones of errors and parameters once a unit was near its kink; `None` ends the comparison there.
    pub at_kink: Option<[f64; 2]>,
}

/// See `agreement.rs`.
pub const CLOSE: Tolerance =
    Tolerance { errors: [1e-5, 0.0], parameters: [5e-4, 0.0], at_kink: Some([2e-3, 5e-2]) };

/// Trains one task with two engines and compares errors and parameters step by step. Returns whether no unit was near its kink at first.
#[track_caller]
pub fn agree(
    engine: &dyn Engine,
    reference: &dyn Engine,
    name: &str,
    task: &Task,
    steps: usize,
    tolerance: &Tolerance,
) -> bool {
    let mut ours = engine.start(task.clone()).unwrap();
    let mut theirs = reference.start(task.clone()).unwrap();
    let initial = widened(&task.initial);
    let zero = reference::Parameters::zeros(&task.network);
    let features = wide_matrix(&task.train.input.to_dense());
    let starts_smooth = !is_near_kink(&task.network, &features, &initial);
    let (mut before, mut is_smooth) = (initial.clone(), starts_smooth);
    let Tolerance { mut errors, mut parameters, at_kink } = *tolerance;
    for step in 1..=steps {
        is_smooth = is_smooth && !is_near_kink(&task.network, &features, &before);
        if let (false, Some(larger)) = (is_smooth, at_kink) {
            [errors[0], parameters[0]] = larger;
        }
        let (a, b) = (ours.step().unwrap(), theirs.step().unwrap());
        assert_eq!((a.len(), b.len()), (task.runs(), task.runs()));
        for (a, b) in a.iter().zip(&b) {
            let allowed = errors[0] * b + errors[1];
            assert!((a - b).abs() < allowed, "{name}, step {step}: errors {a} and {b}");
        }
        if !is_smooth && at_kink.is_none() {
            break;
        }
        let after = [ours.parameters().unwrap(), theirs.parameters().unwrap()].map(|p| widened(&p));
        for (run, start) in initial.iter().enumerate() {
            for (l, start) in start.layers.iter().enumerate() {
                let [a, b] = [&after[0][run].layers[l], &after[1][run].layers[l]];
                let (apart, moved) = (distance(a, b), distance(b, start));
                let allowed = parameters[0] * moved + parameters[1] * distance(b, &zero.layers[l]);
                assert!(
                    apart <= allowed,
                    "{name}, step {step}, run {run}, layer {l}: {apart:e} of {moved:e}"
                );
            }
        }
        [_, before] = after;
    }
    starts_smooth
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
