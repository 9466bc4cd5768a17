//! Limits: invalid inputs and tasks are refused with a message, and extreme valid tasks are trained.

use crate::common;

use common::{dense, noise, targets, task, waves};
use faer::Mat;
use nalgebra_sparse::{CooMatrix, CsrMatrix};
use posenc_nets::reference::ReferenceEngine;
use posenc_nets::{
    Adam, CpuEngine, Engine, Input, NetError, Products, SampleSet, Samples, Task, WaveTable,
};

fn engines() -> [Box<dyn Engine>; 2] {
    [Box::new(CpuEngine::new(2)), Box::new(ReferenceEngine)]
}

fn wave_table(waves: usize, n: usize) -> WaveTable {
    let line: Vec<f64> = (0..n).map(|i| i as f64 / n as f64).collect();
    WaveTable::new(&vec![1.5; waves], &line)
}

/// A change of a sound task, and a part of the message with which both engines refuse it.
type Change = (fn(&mut Task), &'static str);

/// Sets the input of the training samples.
fn set(task: &mut Task, input: Result<Input, NetError>) {
    task.train.input = input.unwrap();
}

/// Checks that both engines train a task and refuse every change of it with the same message.
fn check_refusals(sound: &Task, changes: &[Change]) {
    for engine in engines() {
        assert!(engine.start(sound.clone()).is_ok(), "{}", engine.device());
    }
    for (change, part) in changes {
        let mut changed = sound.clone();
        change(&mut changed);
        let [a, b] = engines().map(|engine| match engine.start(changed.clone()) {
            Ok(_) => panic!("accepted, not: {part}"),
            Err(error) => error.to_string(),
        });
        assert!(a == b && a.contains(part), "{a}; {b}; not: {part}");
    }
}

const VANISHES: &str = "every feature of every training point underflows to zero";

/// Catches missing checks. Each of these tasks would otherwise panic, train only the biases, or train nonsense.
#[test]
fn tasks_that_do_not_fit_are_refused() {
    let sound = task(dense(waves(6, 9)), (1, 5, 2, false), Adam::new(1e-3), 2);
    let changes: [Change; 27] = [
        (
            |t| t.train = Samples { input: dense(Mat::zeros(6, 0)), targets: Mat::zeros(0, 4) },
            "the number of points is 0",
        ),
        (|t| t.initial.clear(), "the number of runs is 0"),
        (|t| t.network.hidden[0] = 0, "the width of a hidden layer is 0"),
        (|t| t.network.output = 0, "the number of outputs is 0"),
        (|t| t.network.input = 0, "the embedding dimension is 0"),
        (|t| t.network.input = 7, "columns of a weight matrix: expected 7, got 6"),
        (|t| t.train.targets = targets(8, 4), "targets of the training samples: expected 9, got 8"),
        (|t| t.train.targets = targets(9, 3), "target columns of the training samples: expected 4"),
        (|t| t.initial[1].layers[0].bias.push(0.0), "biases of a layer: expected 5, got 6"),
        (|t| t.initial[1].layers[1].weights = Mat::zeros(2, 6), "matrix: expected 5, got 6"),
        (|t| drop(t.initial[0].layers.pop()), "layers: expected 2, got 1"),
        (
            |t| t.test = Some(Samples { input: dense(waves(5, 9)), targets: targets(9, 4) }),
            "features: expected 6, got 5",
        ),
        (|t| t.train.targets[(3, 1)] = f32::NAN, "a target is NaN"),
        (|t| t.train.input = dense(Mat::zeros(6, 9)), VANISHES),
        (|t| set(t, Input::grid(vec![Mat::zeros(2, 3), Mat::zeros(4, 3)])), VANISHES),
        (|t| set(t, Input::waves(vec![wave_table(3, 9)], vec![(0..9).collect()], 0.0)), VANISHES),
        (|t| set(t, Input::factored(vec![waves(6, 9)], vec![vec![]])), "the number of points is 0"),
        (|t| set(t, Input::kronecker(vec![waves(6, 9)])), "requires a Kronecker layer"),
        (|t| t.optimizer.learning_rate = 0.0, "the learning rate is 0; allowed: above 0"),
        (|t| t.optimizer.learning_rate = -1e-3, "the learning rate is -0.001"),
        (|t| t.optimizer.learning_rate = f64::NAN, "the learning rate is NaN"),
        (|t| t.optimizer.learning_rate = f64::INFINITY, "the learning rate is inf"),
        (|t| t.optimizer.beta1 = 1.0, "beta1 is 1; allowed: 0 up to below 1"),
        (|t| t.optimizer.beta2 = -0.1, "beta2 is -0.1"),
        (|t| t.optimizer.beta2 = f64::NAN, "beta2 is NaN"),
        (|t| t.optimizer.epsilon = 0.0, "epsilon is 0; allowed: above 0"),
        (|t| t.optimizer.weight_decay = -1.0, "the weight decay is -1"),
    ];
    check_refusals(&sound, &changes);
}

fn axes() -> Vec<Mat<f32>> {
    vec![waves(3, 4), waves(2, 5)]
}

fn kronecker() -> Input {
    Input::kronecker(axes()).unwrap()
}

/// Also six features, but from other axes.
fn other_axes() -> Input {
    Input::kronecker(vec![waves(2, 4), waves(3, 5)]).unwrap()
}

/// Catches missing checks of networks and inputs that cannot be combined.
#[test]
fn kronecker_layers_that_do_not_fit_are_refused() {
    let sound = task(kronecker(), (1, 4, 2, false), Adam::new(1e-3), 1);
    let required = "a Kronecker layer requires a Kronecker input (Input::kronecker)";
    let changes: [Change; 6] = [
        (|t| t.train.input = dense(waves(6, 20)), "a Kronecker layer requires a Kronecker input"),
        (|t| t.test.as_mut().unwrap().input = dense(waves(6, 20)), "requires a Kronecker input"),
        (|t| t.network.hidden.push(4), "one hidden layer may follow a Kronecker layer, got 2"),
        (|t| t.test.as_mut().unwrap().input = other_axes(), "features of an axis: expected 3"),
        (|t| set(t, Input::kronecker(vec![waves(3, 4), Mat::zeros(2, 5)])), VANISHES),
        (|t| set(t, Input::kronecker_blended(axes(), CsrMatrix::zeros(20, 20))), VANISHES),
    ];
    check_refusals(&sound, &changes);
    for engine in engines() {
        let mut session = engine.start(sound.clone()).unwrap();
        let refused = session.predict(&dense(waves(6, 20))).unwrap_err();
        assert!(refused.to_string().contains(required), "{refused}");
        assert!(matches!(session.predict(&other_axes()), Err(NetError::Shape { .. })));
        let none = Input::kronecker_at(axes(), vec![]).unwrap();
        assert_eq!(session.predict(&none).unwrap().shape(), (0, 2));
        let affine = task(dense(waves(6, 20)), (0, 0, 2, false), Adam::new(1e-3), 1);
        let refused = engine.start(affine).unwrap().predict(&kronecker()).unwrap_err();
        assert!(refused.to_string().contains("Network::kronecker"), "{refused}");
    }
    let sigmoid = task(kronecker(), (0, 0, 2, true), Adam::new(1e-3), 1);
    for task in [sound, sigmoid] {
        let engine = CpuEngine::new(1).with_products(Some(Products::Gram));
        let gram = engine.start(task).err().unwrap();
        assert!(gram.to_string().contains("no hidden layer and no output activation"), "{gram}");
    }
}

/// Catches indices that would be read beyond their table or grid, tables of different sizes, and values that would train NaN.
#[test]
fn inputs_that_do_not_fit_are_refused() {
    let broken = |value| Mat::from_fn(2, 2, |i, j| if i + j == 2 { value } else { 1.0 });
    let tables = || vec![waves(2, 3), waves(4, 5)];
    let wave = |counts: &[usize], indices| {
        Input::waves(counts.iter().map(|&h| wave_table(h, 3)).collect(), indices, 1.0)
    };
    let uneven = WaveTable { cosines: Mat::zeros(2, 2), ..wave_table(2, 3) };
    let mut weights = CooMatrix::new(7, 20);
    weights.push(3, 19, f32::INFINITY);
    let not_finite = "a value of the embedding is NaN, infinite or too large";
    let beyond = "index beyond its table: got 3, must be below 3";
    for (input, part) in [
        (Input::dense(broken(f32::NAN)), not_finite),
        (Input::grid(vec![broken(f32::INFINITY), waves(2, 2)]), not_finite),
        (Input::from_rows(&Mat::from_fn(2, 2, |_, _| 1e300)), not_finite),
        (Input::factored(vec![], vec![]), "the number of tables is 0"),
        (Input::grid(vec![]), "the number of tables is 0"),
        (Input::factored(tables(), vec![vec![0, 1, 2]]), "index lists of a factored input"),
        (Input::factored(tables(), vec![vec![0, 1, 2], vec![0, 1]]), "points of an index list"),
        (Input::factored(tables(), vec![vec![0, 1, 3], vec![0, 1, 2]]), beyond),
        (Input::factored(tables(), vec![vec![0, 1, 2], vec![0, 1, 5]]), "got 5, must be below 5"),
        (wave(&[], vec![]), "the number of tables is 0"),
        (wave(&[0], vec![vec![0]]), "the number of frequencies is 0"),
        (wave(&[2], vec![]), "index lists of waves: expected 1, got 0"),
        (wave(&[2], vec![vec![3]]), beyond),
        (wave(&[2, 1], vec![vec![0], vec![0]]), "frequencies of a table: expected 2, got 1"),
        (wave(&[2, 2], vec![vec![0], vec![0, 1]]), "points of an index list: expected 1, got 2"),
        (Input::waves(vec![uneven], vec![vec![0]], 1.0), "coordinates of the cosines"),
        (Input::waves(vec![wave_table(2, 3)], vec![vec![0]], f32::NAN), "the scale of the"),
        (Input::kronecker(vec![]), "the number of axes is 0"),
        (Input::kronecker(vec![waves(2, 2); 4]), "is 4; allowed: 1 to 3"),
        (Input::kronecker(vec![waves(2, 2), Mat::zeros(0, 3)]), "dimension of an axis is 0"),
        (Input::kronecker(vec![waves(2, 2), Mat::zeros(3, 0)]), "points of an axis is 0"),
        (Input::kronecker(vec![waves(3, 4), broken(f32::NAN)]), not_finite),
        (Input::kronecker_at(axes(), vec![0, 20]), "node beyond the grid: got 20, must be below"),
        (Input::kronecker_blended(axes(), CsrMatrix::zeros(7, 19)), "expected 20, got 19"),
        (Input::kronecker_blended(axes(), CsrMatrix::from(&weights)), "a weight of the blending"),
    ] {
        let error = input.unwrap_err().to_string();
        assert!(error.contains(part), "{error}; not: {part}");
    }
    assert!(wave(&[2, 2], vec![vec![2, 0], vec![1, 0]]).is_ok());
    assert!(Input::kronecker_at(axes(), vec![0, 19]).is_ok());
}

/// Catches predictions on another number of features, and panics on inputs without points.
#[test]
fn predictions_require_the_networks_features() {
    for depth in [0, 1] {
        let task = task(dense(waves(6, 9)), (depth, 5, 2, false), Adam::new(1e-3), 2);
        for engine in engines() {
            let mut session = engine.start(task.clone()).unwrap();
            let refused = session.predict(&dense(waves(5, 9))).unwrap_err();
            assert!(matches!(refused, NetError::Shape { found: 5, expected: 6, .. }), "{refused}");
            let none = session.predict(&dense(Mat::zeros(6, 0))).unwrap();
            assert_eq!(none.shape(), (0, 4), "{}", engine.device());
            let zeros = session.predict(&dense(Mat::zeros(6, 3))).unwrap();
            assert!((0..4).all(|c| zeros[(0, c)].is_finite()), "{}", engine.device());
        }
    }
}

/// Catches test errors that are reported without a test set.
#[test]
fn a_missing_test_set_has_no_errors() {
    let factored = Input::grid(vec![waves(2, 3), waves(4, 3)]).unwrap();
    for (depth, input) in [(0, dense(waves(6, 9))), (0, factored.clone()), (2, factored)] {
        let task = task(input, (depth, 5, 2, false), Adam::new(1e-3), 2);
        let task = Task { test: None, ..task };
        for engine in engines() {
            let mut session = engine.start(task.clone()).unwrap();
            session.step().unwrap();
            assert!(session.errors(SampleSet::Test).unwrap().is_empty(), "{}", engine.device());
            assert_eq!(session.errors(SampleSet::Train).unwrap().len(), 2, "{}", engine.device());
        }
    }
}

/// A task whose initial parameters fit a constant signal exactly, without weight decay.
fn solved(depth: usize, sigmoid: bool) -> Task {
    let optimizer = Adam { weight_decay: 0.0, ..Adam::new(1e-2) };
    let mut task = task(dense(waves(6, 300)), (depth, 5, 1, sigmoid), optimizer, 1);
    let last = task.initial[0].layers.last_mut().unwrap();
    last.weights.fill(0.0);
    last.bias[0] = if sigmoid { 0.0 } else { 0.25 };
    task.train.targets.fill(if sigmoid { 0.5 } else { 0.25 });
    task
}

/// Catches 0/0 in Adam: an exact fit has error 0 and must not change.
#[test]
fn an_exact_fit_has_error_zero_and_stays() {
    for sigmoid in [false, true] {
        for depth in [0, 2] {
            let task = solved(depth, sigmoid);
            for engine in engines() {
                let mut session = engine.start(task.clone()).unwrap();
                for _ in 0..5 {
                    assert_eq!(
                        session.step().unwrap(),
                        [0.0],
                        "{}, depth {depth}",
                        engine.device()
                    );
                }
                assert_eq!(session.errors(SampleSet::Train).unwrap(), [0.0]);
                assert_eq!(session.diverged(), [None]);
                assert_eq!(session.parameters().unwrap(), task.initial, "{}", engine.device());
            }
        }
    }
}

/// Catches a sigmoid or slope that is NaN if the exponential overflows.
#[test]
fn a_saturated_sigmoid_is_finite() {
    for depth in [0, 1] {
        let mut task = task(dense(waves(6, 300)), (depth, 5, 1, true), Adam::new(1e-2), 1);
        for layer in &mut task.initial[0].layers {
            layer.weights *= faer::Scale(1e4);
        }
        for engine in engines() {
            let mut session = engine.start(task.clone()).unwrap();
            for _ in 0..5 {
                let error = session.step().unwrap()[0];
                assert!((0.0..=1.0).contains(&error), "{}: {error}", engine.device());
            }
            let outputs = session.predict(&task.train.input).unwrap();
            assert!((0..300).all(|i| (0.0..=1.0).contains(&outputs[(i, 0)])));
        }
    }
}

/// Catches panics and undetected non-finite errors at the limits of single precision.
#[test]
fn extreme_embeddings_do_not_panic() {
    for scale in [1e-44_f32, 1e-38, 1e-20, 1e18, 1e38] {
        for depth in [0, 2] {
            for n in [1, 150] {
                let mut columns = noise(6, n, "extreme");
                for i in 0..n {
                    columns.col_as_slice_mut(i).iter_mut().for_each(|v| *v *= scale);
                }
                let task = task(dense(columns), (depth, 5, 2, false), Adam::new(1e-3), 2);
                let mut session = match CpuEngine::new(2).start(task.clone()) {
                    Ok(session) => session,
                    // A refusal is allowed if all features are subnormal.
                    Err(error) => {
                        assert_eq!(error, NetError::Vanishes, "{scale:e}");
                        assert!(scale < 1e-37, "{scale:e}");
                        continue;
                    }
                };
                for _ in 0..5 {
                    let errors = session.step().unwrap();
                    for (error, diverged) in errors.iter().zip(session.diverged()) {
                        assert!(error.is_finite() || diverged.is_some(), "{scale:e}: {errors:?}");
                        assert!(error.is_finite() || scale > 1.0, "{scale:e}: {errors:?}");
                    }
                }
                session.hidden_stable_ranks().unwrap();
                session.predict(&task.train.input).unwrap();
            }
        }
    }
}
