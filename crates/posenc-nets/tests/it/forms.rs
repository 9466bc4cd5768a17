//! Different forms of one embedding must give the same training.

use crate::common;

use common::{bumps, network, noise, task, triangle, waves};
use faer::Mat;
use posenc_nets::{Adam, CpuEngine, Engine, Input, Layer, Task};

/// Compares the errors of 20 steps and the predictions after them, for two equivalent tasks.
fn same_training(name: &str, one: &Task, other: &Task) {
    let mut a = CpuEngine::new(2).start(one.clone()).unwrap();
    let mut b = CpuEngine::new(2).start(other.clone()).unwrap();
    let mut worst: f64 = 0.0;
    for _ in 0..20 {
        for (a, b) in a.step().unwrap().iter().zip(b.step().unwrap()) {
            worst = worst.max((a - b).abs() / b);
        }
    }
    let predictions = a.predict(&one.train.input).unwrap();
    let others = b.predict(&other.train.input).unwrap();
    let apart = f64::from((&predictions - &others).norm_l2() / others.norm_l2());
    println!("{name}: errors {worst:.1e}, predictions {apart:.1e}");
    // A unit at its kink (see `common::Comparison`) limits the agreement to this.
    assert!(worst < 1e-4, "{name}: errors {worst:e}");
    assert!(apart < 1e-4, "{name}: predictions {apart:e}");
}

/// Catches products with small tables that differ from the product with the wide matrix.
#[test]
fn a_grid_trains_like_its_dense_matrix() {
    let (rows, columns) = (bumps(30, 17, 0.1, triangle), waves(12, 19));
    for (name, axes) in [
        ("two axes", vec![rows.clone(), columns.clone()]),
        ("three axes", vec![rows, columns, noise(5, 4, "axis")]),
        ("one axis", vec![waves(12, 150)]),
    ] {
        let grid = Input::grid(axes).unwrap();
        for depth in [0, 1, 3] {
            let network = network(grid.dimension(), depth, 16, 2, false);
            let factored = task(network, grid.clone(), Adam::new(1e-3), 2);
            let mut dense = factored.clone();
            dense.train.input = Input::dense(grid.to_dense()).unwrap();
            same_training(&format!("{name}, depth {depth}"), &factored, &dense);
        }
    }
}

/// Catches axes that vary in the wrong order.
#[test]
fn the_last_axis_of_a_grid_varies_fastest() {
    let grid = Input::grid(vec![waves(2, 3), noise(1, 4, "axis"), waves(3, 5)]).unwrap();
    assert_eq!((grid.points(), grid.dimension()), (60, 6));
    let (first, middle, last) = (waves(2, 3), noise(1, 4, "axis"), waves(3, 5));
    for point in 0..60 {
        let (i, j, k) = (point / 20, point / 5 % 4, point % 5);
        let expected = [
            first[(0, i)],
            first[(1, i)],
            middle[(0, j)],
            last[(0, k)],
            last[(1, k)],
            last[(2, k)],
        ];
        let found: Vec<f32> = (0..6).map(|feature| grid.at(feature, point)).collect();
        assert_eq!(found, expected, "point {point}");
    }
}

/// Catches wrong sums of phases, cosines before sines, and a scale that is missing or applied once per axis.
#[test]
fn joint_waves_are_sines_and_cosines_of_sums() {
    for axes in [&[30][..], &[17, 19], &[5, 6, 7]] {
        let (input, phases) = common::joint_waves(40, 100, axes);
        assert_eq!((input.dimension(), input.points()), (80, 100));
        let mut worst: f64 = 0.0;
        for i in 0..100 {
            for k in 0..40 {
                let (sine, cosine) = (std::f64::consts::TAU * phases[(k, i)]).sin_cos();
                worst = worst.max((f64::from(input.at(k, i)) - 0.25 * sine).abs());
                worst = worst.max((f64::from(input.at(40 + k, i)) - 0.25 * cosine).abs());
            }
        }
        println!("{axes:?}: {worst:.1e}");
        assert!(worst < 1e-7, "{axes:?}: {worst:e}");

        for depth in [0, 2] {
            let network = network(80, depth, 16, 2, false);
            let expanded = task(network, input.clone(), Adam::new(1e-3), 2);
            let mut dense = expanded.clone();
            dense.train.input = Input::dense(input.to_dense()).unwrap();
            same_training(&format!("{axes:?}, depth {depth}"), &expanded, &dense);
        }
    }
}

/// The same task with features and weights in a scattered order. It computes the same function, but its embedding has
/// no bands.
fn scattered_features(task: &Task) -> Task {
    let order = common::scattered(task.network.input);
    let mut other = task.clone();
    let columns = task.train.input.to_dense();
    let columns = Mat::from_fn(columns.nrows(), columns.ncols(), |j, i| columns[(order[j], i)]);
    other.train.input = Input::dense(columns).unwrap();
    for parameters in &mut other.initial {
        let Layer { weights, .. } = &parameters.layers[0];
        let weights = Mat::from_fn(weights.nrows(), weights.ncols(), |o, j| weights[(o, order[j])]);
        parameters.layers[0].weights = weights;
    }
    other
}

/// Catches bands that omit nonzero entries, by comparison with a task without bands.
#[test]
fn bands_train_like_the_whole_matrix() {
    for (name, matrix) in [
        ("triangle", bumps(200, 300, 0.02, triangle)),
        ("Gaussian", bumps(200, 300, 0.01, common::gaussian)),
        ("impulse", bumps(200, 300, 0.005, common::impulse)),
        ("two coordinates", common::stacked_bumps(100, 300, 0.03)),
    ] {
        for (depth, runs) in [(0, 1), (0, 6), (2, 2)] {
            let network = network(200, depth, 16, 1, false);
            let banded =
                task(network, Input::dense(matrix.clone()).unwrap(), Adam::new(1e-3), runs);
            let name = format!("{name}, depth {depth}, {runs} runs");
            same_training(&name, &banded, &scattered_features(&banded));
        }
    }
}
