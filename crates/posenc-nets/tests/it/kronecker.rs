//! Forms of the products of Kronecker layers on the CPU: through Gram matrices, through residuals, with and without bands.

use crate::common;

use std::sync::Arc;

use common::{CLOSE, bumps, gaussian, initial, noise, shuffled, task, triangle, waves};
use faer::Mat;
use nalgebra_sparse::{CooMatrix, CsrMatrix};
use posenc_nets::train::{Schedule, fit};
use posenc_nets::{
    Adam, CpuEngine, Engine, Input, Kronecker, NetError, Network, Products, Samples, Task,
};

/// A smooth `n` × `n` image with three channels and some noise.
fn image(n: usize) -> Mat<f32> {
    let detail = noise(n * n, 3, "image");
    Mat::from_fn(n * n, 3, |i, c| {
        let (x, y) = ((i / n) as f64 / n as f64, (i % n) as f64 / n as f64);
        let wave = (9.0 * x + c as f64).sin() * (13.0 * y).cos() + (30.0 * x * y).sin();
        (0.5 + 0.2 * wave) as f32 + 0.02 * detail[(i, c)]
    })
}

/// Divides by the largest norm of a column, as in the experiments.
fn scaled(mut columns: Mat<f32>) -> Mat<f32> {
    let norm = |i: usize| columns.col_as_slice(i).iter().map(|v| v * v).sum::<f32>();
    let largest = (0..columns.ncols()).map(norm).fold(0.0, f32::max).sqrt();
    columns *= faer::Scale(1.0 / largest);
    columns
}

/// Catches a Gram form that is not equivalent to the residual form. The forms round differently, and with the papers'
/// large learning rate, Adam makes their weights diverge, but the PSNRs must agree. With a small learning rate, the
/// weights must agree over 50 steps.
#[test]
fn the_gram_form_trains_like_the_residual_form() {
    for (name, axis) in [
        ("waves", (|n| waves(48, n)) as fn(usize) -> Mat<f32>),
        ("Gaussian", |n| bumps(48, n, 0.02, gaussian)),
        ("triangle", |n| bumps(48, n, 2.0 / 48.0, triangle)),
    ] {
        let grid = |n| {
            let axis = scaled(axis(n));
            Input::kronecker(vec![axis.clone(), axis]).unwrap()
        };
        let task = |rate| task(grid(48), (0, 0, 3, false), Adam::new(rate), 1);
        let of_image = Task {
            train: Samples { input: grid(48), targets: image(48) },
            test: Some(Samples { input: grid(96), targets: image(96) }),
            ..task(0.1)
        };
        let [gram, residual] = [Products::Gram, Products::Residual]
            .map(|products| CpuEngine::new(2).with_products(Some(products)));
        for (epochs, allowed) in [(50, 1e-3), (500, 0.02)] {
            let schedule = Schedule { epochs, curve_every: 0, layers: false, mean_of_last: 1 };
            let [a, b] = [&gram, &residual].map(|engine| {
                let mut session = engine.start(of_image.clone()).unwrap();
                let history = fit(&mut *session, &schedule, None, &mut |_, _| {}).unwrap();
                let summary = history.summaries[0];
                [summary.final_train_psnr, summary.final_test_psnr.unwrap()]
            });
            for (a, b) in a.iter().zip(b) {
                assert!((a - b).abs() < allowed, "{name}, {epochs} epochs: {a} and {b} dB");
            }
        }
        common::agree(&gram, &residual, name, &task(1e-3), 50, &CLOSE);
    }
}

/// Catches curves that use the inexact errors of the Gram form's steps, which suffer from cancellation. A second session
/// with the same bits predicts at each point of the curve for comparison.
#[test]
fn a_fit_measures_exactly_even_if_steps_do_not() {
    let axis = scaled(bumps(40, 40, 1.2 / 40.0, triangle));
    let input = Input::kronecker(vec![axis.clone(), axis]).unwrap();
    let task = task(input.clone(), (0, 0, 1, false), Adam::new(0.01), 1);
    let engine = CpuEngine::new(1).with_products(Some(Products::Gram));
    let mut session = engine.start(task.clone()).unwrap();
    assert!(!session.step_errors_are_exact());
    let schedule = Schedule { epochs: 2001, curve_every: 500, layers: false, mean_of_last: 1 };
    let history = fit(&mut *session, &schedule, None, &mut |_, _| {}).unwrap();

    let mut again = engine.start(task.clone()).unwrap();
    let mut worst: f64 = 0.0;
    for point in &history.curve {
        let mut stepped = f64::NAN;
        while again.epoch() < point.epoch {
            stepped = again.step().unwrap()[0];
        }
        let found = again.predict(&input).unwrap();
        let square = |i: usize| f64::from(found[(i, 0)] - task.train.targets[(i, 0)]).powi(2);
        let error = (0..1600).map(square).sum::<f64>() / 1600.0;
        let (psnr, measured) = (-10.0 * error.log10(), point.train_psnr[0]);
        assert!((psnr - measured).abs() < 1e-6, "{psnr} and {measured} dB at {}", point.epoch);
        if point.epoch > 0 {
            worst = worst.max((stepped - error).abs() / error);
        }
    }
    let last = history.summaries[0].final_train_psnr;
    println!("{last} dB; errors of steps off by {worst:.1e} of themselves");
    assert!(last > 60.0 && worst > 0.01, "{last} dB, {worst}: nothing cancels here");
}

/// The same task with the features of every axis, and their weights, in a scattered order. It computes the same function
/// without bands.
fn scattered_features(task: &Task) -> Task {
    let mut other = task.clone();
    let scatter = |input: &Input| {
        let Input::Kronecker(k) = input else { panic!("no grid") };
        let axes = k.axes.iter().map(|axis| shuffled(&axis.transpose().to_owned()));
        let axes = axes.map(|axis| axis.transpose().to_owned()).collect();
        Input::Kronecker(Arc::new(Kronecker { axes, points: k.points.clone() }))
    };
    let Input::Kronecker(k) = &task.train.input else { panic!("no grid") };
    let orders: Vec<_> = k.axes.iter().map(|axis| common::scattered(axis.nrows())).collect();
    let old = |mut feature: usize| {
        let (mut old, mut stride) = (0, 1);
        for order in orders.iter().rev() {
            old += order[feature % order.len()] * stride;
            stride *= order.len();
            feature /= order.len();
        }
        old
    };
    other.train.input = scatter(&task.train.input);
    if let Some(test) = &mut other.test {
        test.input = scatter(&test.input);
    }
    for parameters in &mut other.initial {
        let weights = &mut parameters.layers[0].weights;
        *weights = Mat::from_fn(weights.nrows(), weights.ncols(), |o, j| weights[(o, old(j))]);
    }
    other
}

/// Catches bands that omit nonzero entries, with fewer and with more points than features, and diagonals that are read
/// at the wrong offset.
#[test]
fn bands_train_like_the_whole_matrix() {
    let narrow = |k: usize, n| bumps(k, n, 1.5 / k as f64, triangle);
    let wide = |k: usize, n| bumps(k, n, 0.8 / k as f64, gaussian);
    for (name, axes) in [
        ("two axes", vec![narrow(70, 70), wide(67, 67)]),
        ("fewer points", vec![narrow(70, 33), wide(66, 30)]),
        ("more points", vec![narrow(40, 90), wide(33, 70)]),
        ("one axis", vec![wide(150, 150)]),
        ("three axes", vec![narrow(30, 30), wide(37, 37), narrow(40, 40)]),
        ("bands and waves", vec![narrow(50, 50), waves(20, 30), narrow(45, 45)]),
        ("waves and bands", vec![waves(20, 30), narrow(50, 50)]),
    ] {
        let input = Input::kronecker(axes).unwrap();
        for (depth, products) in
            [(0, Some(Products::Gram)), (0, Some(Products::Residual)), (1, None)]
        {
            let banded = task(input.clone(), (depth, 3, 2, false), Adam::new(1e-3), 1);
            let engine = CpuEngine::new(2).with_products(products);
            let mut a = engine.start(banded.clone()).unwrap();
            let mut b = engine.start(scattered_features(&banded)).unwrap();
            let name = format!("{name}, depth {depth}, {products:?}");
            for _ in 0..20 {
                for (a, b) in a.step().unwrap().iter().zip(b.step().unwrap()) {
                    assert!((a - b).abs() < 1e-4 * b, "{name}: errors {a} and {b}");
                }
            }
            let predictions = a.predict(&input).unwrap();
            let others = b.predict(&scattered_features(&banded).train.input).unwrap();
            let apart = (&predictions - &others).norm_l2() / others.norm_l2();
            assert!(apart < 1e-4, "{name}: predictions {apart:e}");
        }
    }
}

/// Catches parameter counts and initial weights that differ from the papers (`trading` Tables 1 and 3, Fig. 10).
#[test]
fn counts_and_initial_weights_match_the_papers() {
    let count =
        |features, hidden| Network::kronecker(features, hidden, 3).unwrap().parameter_count();
    assert_eq!(count(256 * 256, None), 196_608);
    assert_eq!(count(256 * 256, Some(256)), 16_777_987);
    assert_eq!(count(64 * 64 * 64, None), 786_432);
    assert_eq!(count(64 * 64 * 64, Some(256)), 67_109_635);
    for (hidden, limit) in [(None, 1.0 / 3f32.sqrt()), (Some(16), 0.25)] {
        let network = Network::kronecker(5000, hidden, 3).unwrap();
        let parameters = &initial(&network, 1)[0];
        assert!(parameters.layers[0].bias.is_empty());
        let largest = |layer: usize| {
            let weights = &parameters.layers[layer].weights;
            let column = |i: usize| weights.col_as_slice(i).iter();
            (0..weights.ncols()).flat_map(column).fold(0.0, |l: f32, w| l.max(w.abs()))
        };
        assert!(largest(0) <= limit && largest(0) > 0.99 * limit, "{hidden:?}: {}", largest(0));
        if hidden.is_some() {
            assert_eq!(parameters.layers[1].bias.len(), 3);
            assert!(largest(1) <= 0.25, "{}", largest(1));
        }
    }
}

/// Catches an allocation that ends the process: activations of a hidden layer at many points, and a limit that ignores the positions
/// of test samples and predictions.
#[test]
fn tasks_that_need_too_much_memory_are_refused() {
    let samples = |points| {
        let blending = CooMatrix::<f32>::try_from_triplets(points, 4, vec![0], vec![0], vec![1.0]);
        let blending = CsrMatrix::from(&blending.unwrap());
        let input = Input::kronecker_blended(vec![waves(2, 2), waves(2, 2)], blending).unwrap();
        Samples { input, targets: Mat::zeros(points, 1) }
    };
    let network = Network::kronecker(4, Some(512), 1).unwrap();
    let initial = initial(&network, 1);
    let task = |train, test| {
        let (network, initial) = (network.clone(), initial.clone());
        Task { network, optimizer: Adam::new(1e-3), train, test, initial }
    };
    let refused = |error: NetError, word: &str| {
        assert!(matches!(error, NetError::Memory { .. }), "{error}");
        assert!(error.to_string().contains(word), "{error}");
    };
    let start = |task| CpuEngine::new(1).start(task);
    refused(start(task(samples(3_000_000), None)).err().unwrap(), "training");
    // The activations take 3.8 of 4 GiB, and the evaluation of more points another 0.25 GiB.
    let (few, many) = (samples(2_000_000), samples(6_000_000));
    let mut session = start(task(few.clone(), None)).unwrap();
    refused(session.predict(&many.input).unwrap_err(), "predicting");
    refused(start(task(few, Some(many))).err().unwrap(), "training");
}
