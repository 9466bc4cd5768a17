//! Compares the CPU engine with the reference, step by step, on every kind of shape.
//!
//! The engine rounds to single precision, with an error of 6e-8 per operation, which changes a loss by about 1e-6 of its
//! value. An Adam step divides the gradient by its own size, so its relative error is that of the gradient. Cancellation
//! makes the error of a gradient larger, and with a small learning rate, steps are so short that the rounding of the
//! weights matters. The tolerances (`common::CLOSE`) are therefore 1e-5 for losses, and for the parameters of a layer 5e-4 of
//! their distance from the initial parameters. After a unit was at its kink, they are 2e-3 and 5e-2.
//!
//! Targets are noisy and learning rates small, so that no loss comes close to zero, where relative deviations are
//! meaningless.

use crate::common;

use common::{
    CLOSE, bumps, dense, gaussian, impulse, kronecker_inputs, noise, shuffled, task, task_of,
    triangle, waves,
};
use faer::Mat;
use posenc_nets::reference::ReferenceEngine;
use posenc_nets::{Adam, CpuEngine, Input, Network, Points, Task};

/// Trains with both engines and compares the errors and parameters of every step.
fn agree_for(steps: usize, name: &str, task: &Task) {
    let engine = CpuEngine::new(2);
    let is_smooth = common::agree(&engine, &ReferenceEngine, name, task, steps, &CLOSE);
    assert!(is_smooth, "{name}: the first step is near a kink and tests little");
}

fn agree(name: &str, task: &Task) {
    agree_for(50, name, task);
}

/// Catches mixed-up runs or outputs, dropped remainders of blocks of columns, features or points, and faults that appear only with far
/// more features than points.
#[test]
fn one_layer_with_runs_and_outputs() {
    for (d, n, runs, outputs) in [
        (64, 129, 1, 1),
        (64, 129, 3, 1),
        (64, 129, 1, 3),
        (65, 7, 5, 3),
        (300, 1537, 9, 1),
        (129, 1000, 4, 2),
        (1, 7, 2, 1),
        (40, 1, 1, 1),
        (1, 1, 1, 1),
        (1, 1, 5, 2),
        (3000, 50, 1, 1),
        (3000, 50, 6, 1),
        (1500, 7, 3, 1),
    ] {
        let (features, rate) =
            if d > 1000 { (noise(d, n, "wide"), 1e-5) } else { (waves(d, n), 1e-3) };
        let task = task(dense(features), (0, 0, outputs, false), Adam::new(rate), runs);
        agree(&format!("affine, {d} x {n}, {runs} runs of {outputs}"), &task);
    }
}

/// Named embeddings that vanish almost everywhere.
fn banded() -> Vec<(String, Mat<f32>)> {
    let mut all = Vec::new();
    for (name, d, n, width, shape) in [
        ("triangle", 600, 1000, 0.01, triangle as fn(f64) -> f64),
        ("triangle", 33, 1537, 0.1, triangle),
        ("Gaussian", 500, 1000, 0.003, gaussian),
        // Here, whole blocks of features vanish at every point.
        ("Gaussian", 2000, 7, 0.001, gaussian),
        ("impulse", 1000, 129, 0.001, impulse),
        ("impulse", 64, 1000, 1.0 / 64.0, impulse),
    ] {
        let matrix = bumps(d, n, width, shape);
        all.push((format!("{name}, {d} x {n}, scattered points"), shuffled(&matrix)));
        all.push((format!("{name}, {d} x {n}"), matrix));
    }
    all.push(("two coordinates, 240 x 1000".to_owned(), common::stacked_bumps(120, 1000, 0.02)));
    all
}

/// Catches bands that are one entry too short, missing weight decay of features that vanish at every point, and points in
/// the wrong order.
#[test]
fn networks_on_bands() {
    for (name, matrix) in banded() {
        for (depth, outputs, runs) in [(0, 1, 1), (0, 1, 5), (2, 2, 1)] {
            let shape = (depth, 16, outputs, false);
            let task = task(dense(matrix.clone()), shape, Adam::new(1e-3), runs);
            // A wrong band shows in the first steps.
            agree_for(12, &format!("depth {depth}, {name}, {runs} runs"), &task);
        }
    }
}

/// Catches errors in the passes through hidden layers, with numbers of points that do not fill a tile, buffers that are sized by the
/// first of several layers of different widths, and a sigmoid that is missing in the outputs or in their gradient.
#[test]
fn networks_of_every_depth() {
    for depth in 0..=4 {
        for n in [1, 7, 129, 1000, 1537] {
            let runs = if n == 129 { 3 } else { 1 };
            let shape = (depth, 20, 3, depth % 2 == 0);
            let task = task(dense(waves(24, n)), shape, Adam::new(1e-3), runs);
            agree(&format!("depth {depth}, {n} points, {runs} runs"), &task);
        }
    }
    for (d, hidden, output, n) in [
        (1, vec![1, 1], 1, 9),
        (1, vec![7, 7], 1, 9),
        (1, vec![33, 33], 5, 9),
        (10, vec![5, 40, 3], 60, 150),
        (10, vec![40, 2], 60, 150),
        (10, vec![3, 50], 60, 150),
    ] {
        let name = format!("{d} features, hidden {hidden:?}");
        let network = Network { hidden, ..Network::new(d, 0, 0, output).unwrap() };
        agree(&name, &task_of(network, dense(waves(d, n)), Adam::new(1e-3), 2));
    }
}

fn factored() -> Vec<(String, Input)> {
    let (rows, columns) = (bumps(30, 37, 0.05, triangle), waves(20, 29));
    let grid = Input::grid(vec![rows.clone(), columns.clone()]).unwrap();
    let axes = vec![waves(8, 6), bumps(9, 11, 0.2, gaussian), noise(5, 7, "axis")];
    // Tables over the rows, columns and diagonals of scattered points.
    let diagonals = noise(12, 37 + 28, "diagonals");
    let points = common::scattered(37 * 29);
    let points = &points[..500];
    let (row, column) = (|p: &usize| p / 29, |p: &usize| p % 29);
    let indices = vec![
        points.iter().map(|p| row(p) as u32).collect(),
        points.iter().map(|p| column(p) as u32).collect(),
        points.iter().map(|p| (row(p) + column(p)) as u32).collect(),
    ];
    vec![
        ("grid of 37 x 29".to_owned(), grid),
        ("grid of 6 x 11 x 7".to_owned(), Input::grid(axes).unwrap()),
        (
            "500 points with diagonals".to_owned(),
            Input::factored(vec![rows, columns, diagonals], indices).unwrap(),
        ),
    ]
}

/// Catches wrong outer sums, gradients that are added to the wrong column of a table, waves that are expanded for the wrong point, and
/// swapped sines and cosines.
#[test]
fn factored_inputs_and_joint_waves() {
    let mut inputs = factored();
    for (waves, points, axes) in
        [(20, 300, [17, 19, 1].as_slice()), (33, 129, &[40]), (9, 500, &[7, 6, 13])]
    {
        let (input, _) = common::joint_waves(waves, points, axes);
        inputs.push((format!("{waves} waves, {axes:?}"), input));
    }
    for (name, input) in inputs {
        for (depth, runs, sigmoid) in [(0, 3, false), (0, 1, true), (2, 2, false), (4, 1, true)] {
            let task = task(input.clone(), (depth, 18, 3, sigmoid), Adam::new(1e-3), runs);
            agree(&format!("{name}, depth {depth}, {runs} runs"), &task);
        }
    }
}

/// Catches an ε or a weight decay in the wrong place, which has no visible effect at 1e-8.
#[test]
fn coarse_settings_of_adam() {
    let adam =
        Adam { epsilon: 0.02, weight_decay: 0.05, beta1: 0.8, beta2: 0.95, ..Adam::new(2e-3) };
    // Some impulses vanish at every point, so their gradient is the weight decay alone.
    let impulses = bumps(300, 150, 0.002, impulse);
    for depth in [0, 1, 3] {
        for (name, features) in [("waves", waves(40, 150)), ("impulses", impulses.clone())] {
            let task = task(dense(features), (depth, 12, 2, false), adam, 2);
            agree(&format!("coarse Adam on {name}, depth {depth}"), &task);
        }
    }
    let without = Adam { beta1: 0.0, beta2: 0.0, ..Adam::new(1e-3) };
    agree("Adam without memory", &task(dense(waves(12, 50)), (1, 12, 2, false), without, 1));
}

/// Catches faults of Kronecker layers that appear only after several steps: moments of another weight, or a buffer that is not updated.
/// Axes in the wrong order and wrong products are found in the first step. The reference multiplies the dense Kronecker matrix.
#[test]
fn kronecker_layers() {
    for (name, input) in kronecker_inputs() {
        for (shape, runs) in [((0, 0, 3, false), 2), ((0, 0, 2, true), 1), ((1, 6, 3, false), 1)] {
            let task = task(input.clone(), shape, Adam::new(1e-3), runs);
            let engines = common::cpu_engines(&task);
            let is_full = matches!(&input, Input::Kronecker(k) if matches!(k.points, Points::Grid));
            let has_gram = is_full && shape == (0, 0, 3, false);
            assert_eq!(engines.len(), if has_gram { 3 } else { 2 }, "{name}");
            for engine in engines {
                let name = format!("{name}, {shape:?}, {engine:?}");
                common::agree(&engine, &ReferenceEngine, &name, &task, 20, &CLOSE);
            }
        }
    }
}
