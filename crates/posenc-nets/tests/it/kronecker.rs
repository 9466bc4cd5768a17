//! Compares the axis-by-axis products of Kronecker layers with the dense Kronecker matrix, which the reference
//! multiplies in double precision. `engines.rs` compares first steps and predictions, too.
//!
//! `agreement.rs` describes how Adam amplifies the rounding error of a gradient.

use crate::common;

use std::sync::Arc;

use common::{
    bumps, gaussian, initial, kronecker_inputs, kronecker_network, noise, shuffled, task, triangle,
    waves,
};
use faer::Mat;
use nalgebra_sparse::{CooMatrix, CsrMatrix};
use posenc_nets::reference::ReferenceEngine;
use posenc_nets::train::{Schedule, fit};
use posenc_nets::{
    Adam, CpuEngine, Engine, FirstLayer, Input, Kronecker, NetError, Network, OutputActivation,
    Points, Products, Samples, Task,
};

fn is_full(input: &Input) -> bool {
    matches!(input, Input::Kronecker(k) if matches!(k.points, Points::Grid))
}

/// Catches faults that appear only after several steps: moments of another weight, or a buffer that is not updated. Axes in the wrong
/// order and wrong products are found in the first step.
#[test]
fn training_matches_the_reference() {
    for (name, input) in kronecker_inputs() {
        for (hidden, outputs, sigmoid, runs) in
            [(None, 3, false, 2), (None, 2, true, 1), (Some(6), 3, false, 1)]
        {
            let network = kronecker_network(&input, hidden, outputs, sigmoid);
            let task = task(network, input.clone(), Adam::new(1e-3), runs);
            let engines = common::cpu_engines(&task);
            let has_gram = hidden.is_none() && !sigmoid && is_full(&input);
            assert_eq!(engines.len(), if has_gram { 3 } else { 2 }, "{name}");
            for engine in engines {
                let name = format!("{name}, hidden {hidden:?}, {engine:?}");
                common::agree(&engine, &ReferenceEngine, &name, &task, 20);
            }
        }
    }
}

/// A smooth `n` × `n` image with three channels and some noise.
fn image(n: usize) -> Mat<f32> {
    let detail = noise(n * n, 3, "image");
    Mat::from_fn(n * n, 3, |i, c| {
        let (x, y) = ((i / n) as f64 / n as f64, (i % n) as f64 / n as f64);
        let wave = (9.0 * x + c as f64).sin() * (13.0 * y).cos() + (30.0 * x * y).sin();
        (0.5 + 0.2 * wave) as f32 + 0.02 * detail[(i, c)]
    })
}

/// Final training and test PSNR after `epochs` epochs with the learning rate of Table 1.
fn psnrs(engine: &CpuEngine, input: &Input, test: &Input, epochs: u64) -> [f64; 2] {
    let Input::Kronecker(k) = test else { panic!("no grid") };
    let fine = image(k.axes[0].ncols());
    let coarse = image(match input {
        Input::Kronecker(k) => k.axes[0].ncols(),
        _ => panic!("no grid"),
    });
    let network = Network::kronecker(input.dimension(), None, 3).unwrap();
    let task = Task {
        initial: initial(&network, 1),
        network,
        optimizer: Adam::new(0.1),
        train: Samples { input: input.clone(), targets: coarse },
        test: Some(Samples { input: test.clone(), targets: fine }),
    };
    let mut session = engine.start(task).unwrap();
    let schedule = Schedule { epochs, curve_every: 0, layers: false, mean_of_last: 1 };
    let history = fit(&mut *session, &schedule, None, &mut |_, _| {}).unwrap();
    let summary = history.summaries[0];
    [summary.final_train_psnr, summary.final_test_psnr.unwrap()]
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
        let [gram, residual] = [Products::Gram, Products::Residual]
            .map(|products| CpuEngine::new(2).with_products(products));
        for (epochs, allowed) in [(50, 1e-3), (500, 0.02)] {
            let a = psnrs(&gram, &grid(48), &grid(96), epochs);
            let b = psnrs(&residual, &grid(48), &grid(96), epochs);
            println!("{name}, {epochs} epochs: {a:?} and {b:?} dB");
            for (a, b) in a.iter().zip(b) {
                assert!((a - b).abs() < allowed, "{name}, {epochs} epochs: {a} and {b} dB");
            }
        }
        // Compare the weights step by step.
        let network = Network::kronecker(48 * 48, None, 3).unwrap();
        let task = task(network, grid(48), Adam::new(1e-3), 1);
        common::agree(&gram, &residual, name, &task, 50);
    }
}

/// Catches curves that use the inexact errors of the Gram form's steps, which suffer from cancellation. A second session
/// with the same bits predicts at each point of the curve for comparison.
#[test]
fn a_fit_measures_exactly_even_if_steps_do_not() {
    let axis = scaled(bumps(40, 40, 1.2 / 40.0, triangle));
    let input = Input::kronecker(vec![axis.clone(), axis]).unwrap();
    let network = Network::kronecker(1600, None, 1).unwrap();
    let task = task(network, input.clone(), Adam::new(0.01), 1);
    let engine = CpuEngine::new(1).with_products(Products::Gram);
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
        for (hidden, products) in
            [(None, Products::Gram), (None, Products::Residual), (Some(3), Products::Automatic)]
        {
            let network = kronecker_network(&input, hidden, 2, false);
            let banded = task(network, input.clone(), Adam::new(1e-3), 1);
            let engine = CpuEngine::new(2).with_products(products);
            let mut a = engine.start(banded.clone()).unwrap();
            let mut b = engine.start(scattered_features(&banded)).unwrap();
            let name = format!("{name}, hidden {hidden:?}, {products:?}");
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

/// Catches missing checks of indices beyond the grid and of values that would train NaN.
#[test]
fn inputs_that_do_not_fit_are_refused() {
    let axes = || vec![waves(3, 4), waves(2, 5)];
    let shape = |refused: Result<Input, NetError>, word: &str| {
        let refused = refused.unwrap_err();
        assert!(matches!(refused, NetError::Shape { .. }), "{refused}");
        assert!(refused.to_string().contains(word), "{refused}");
    };
    assert!(matches!(Input::kronecker(vec![]), Err(NetError::Zero { .. })));
    assert!(matches!(Input::kronecker(vec![waves(2, 2); 4]), Err(NetError::Range { .. })));
    for empty in [Mat::zeros(0, 3), Mat::zeros(3, 0)] {
        assert!(matches!(Input::kronecker(vec![waves(2, 2), empty]), Err(NetError::Zero { .. })));
    }
    let broken = Mat::from_fn(2, 2, |i, j| if i + j == 2 { f32::NAN } else { 1.0 });
    let refused = Input::kronecker(vec![waves(3, 4), broken]).unwrap_err();
    assert!(matches!(refused, NetError::NotFinite { .. }), "{refused}");
    assert!(Input::kronecker_at(axes(), vec![0, 19]).is_ok());
    let refused = Input::kronecker_at(axes(), vec![0, 20]).unwrap_err();
    let expected = "node beyond the grid: got 20, must be below 20";
    assert_eq!(refused.to_string(), expected);
    shape(Input::kronecker_blended(axes(), CsrMatrix::zeros(7, 19)), "nodes");
    let mut weights = CooMatrix::new(7, 20);
    weights.push(3, 19, f32::INFINITY);
    let refused = Input::kronecker_blended(axes(), CsrMatrix::from(&weights)).unwrap_err();
    assert!(matches!(refused, NetError::NotFinite { .. }), "{refused}");
}

/// Catches missing checks of networks and inputs that cannot be combined.
#[test]
fn tasks_that_do_not_fit_are_refused() {
    let grid = || Input::kronecker(vec![waves(3, 4), waves(2, 5)]).unwrap();
    let of = |network: Network, input: Input| task(network, input, Adam::new(1e-3), 1);
    let sound = of(Network::kronecker(6, Some(4), 2).unwrap(), grid());
    let refusal = |task: &Task| {
        let [a, b] = [&CpuEngine::new(2) as &dyn Engine, &ReferenceEngine]
            .map(|engine| engine.start(task.clone()).err().expect("the task was accepted"));
        assert_eq!(a.to_string(), b.to_string());
        a
    };
    let combination = |error: NetError, word: &str| {
        assert!(matches!(error, NetError::Combination { .. }), "{error}");
        assert!(error.to_string().contains(word), "{error}");
    };
    assert!(CpuEngine::new(1).start(sound.clone()).is_ok());

    let affine = Network::new(6, 1, 4, 2).unwrap();
    combination(refusal(&of(affine, grid())), "Network::kronecker");
    let dense = Input::dense(waves(6, 20)).unwrap();
    combination(refusal(&of(sound.network.clone(), dense.clone())), "Input::kronecker");
    let mut test = sound.clone();
    test.test.as_mut().unwrap().input = dense.clone();
    combination(refusal(&test), "Input::kronecker");
    let mut deep = sound.clone();
    deep.network.hidden.push(4);
    combination(refusal(&deep), "at most one hidden layer");
    combination(Network { hidden: vec![2; 3], ..deep.network }.check().unwrap_err(), "got 3");

    // Also six features, but from other axes.
    let mut axes = sound.clone();
    let other = Input::kronecker(vec![waves(2, 4), waves(3, 5)]).unwrap();
    axes.test.as_mut().unwrap().input = other.clone();
    assert!(matches!(refusal(&axes), NetError::Shape { found: 2, expected: 3, .. }));
    let mut zero = sound.clone();
    zero.train.input = Input::kronecker(vec![waves(3, 4), Mat::zeros(2, 5)]).unwrap();
    assert_eq!(refusal(&zero), NetError::Vanishes);
    zero.train.input =
        Input::kronecker_blended(vec![waves(3, 4), waves(2, 5)], CsrMatrix::zeros(20, 20)).unwrap();
    assert_eq!(refusal(&zero), NetError::Vanishes);

    for engine in [&CpuEngine::new(2) as &dyn Engine, &ReferenceEngine] {
        let mut session = engine.start(sound.clone()).unwrap();
        combination(session.predict(&dense).unwrap_err(), "Input::kronecker");
        assert!(matches!(session.predict(&other), Err(NetError::Shape { .. })));
        let none = Input::kronecker_at(vec![waves(3, 4), waves(2, 5)], vec![]).unwrap();
        assert_eq!(session.predict(&none).unwrap().shape(), (0, 2));
        let affine = of(Network::new(6, 0, 0, 2).unwrap(), dense.clone());
        let mut session = engine.start(affine).unwrap();
        combination(session.predict(&grid()).unwrap_err(), "Network::kronecker");
    }

    let gram = CpuEngine::new(1).with_products(Products::Gram);
    combination(gram.start(sound.clone()).err().unwrap(), "Automatic");
    assert_eq!(sound.network.first, FirstLayer::Kronecker);
    let sigmoid = of(
        Network::kronecker(6, None, 2).unwrap().with_output_activation(OutputActivation::Sigmoid),
        grid(),
    );
    combination(gram.start(sigmoid).err().unwrap(), "output activation");
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
