//! Limits: invalid tasks are refused with a message, and extreme valid tasks are trained.

use crate::common;

use common::{network, noise, targets, task, waves};
use faer::Mat;
use posenc_nets::reference::ReferenceEngine;
use posenc_nets::{
    Adam, CpuEngine, Engine, Input, NetError, OutputActivation, SampleSet, Samples, Task, WaveTable,
};

fn engines() -> [Box<dyn Engine>; 2] {
    [Box::new(CpuEngine::new(2)), Box::new(ReferenceEngine)]
}

fn sound() -> Task {
    task(network(6, 1, 5, 2, false), Input::dense(waves(6, 9)).unwrap(), Adam::new(1e-3), 2)
}

/// The error with which both engines refuse a task.
fn refusal(task: &Task) -> NetError {
    let [a, b] =
        engines().map(|engine| engine.start(task.clone()).err().expect("the task was accepted"));
    assert_eq!(a.to_string(), b.to_string());
    a
}

/// Catches missing checks. Each of these tasks would otherwise panic or train nonsense.
#[test]
fn tasks_that_do_not_fit_are_refused() {
    for engine in engines() {
        assert!(engine.start(sound()).is_ok(), "{}", engine.device());
    }
    let changed = |change: fn(&mut Task)| {
        let mut task = sound();
        change(&mut task);
        refusal(&task)
    };
    let zero = |error: &NetError| matches!(error, NetError::Zero { .. });
    let shape = |error: &NetError| matches!(error, NetError::Shape { .. });

    let none = changed(|task| {
        let input = Input::dense(Mat::zeros(6, 0)).unwrap();
        task.train = Samples { input, targets: Mat::zeros(0, 4) };
    });
    assert!(zero(&none) && none.to_string().contains("points"), "{none}");
    assert!(zero(&changed(|task| task.initial.clear())));
    assert!(zero(&changed(|task| task.network.hidden[0] = 0)));
    assert!(zero(&changed(|task| task.network.output = 0)));
    assert!(zero(&changed(|task| task.network.input = 0)));

    assert!(shape(&changed(|task| task.network.input = 7)));
    assert!(shape(&changed(|task| task.train.targets = targets(8, 4))));
    assert!(shape(&changed(|task| task.train.targets = targets(9, 3))));
    assert!(shape(&changed(|task| task.initial[1].layers[0].bias.push(0.0))));
    assert!(shape(&changed(|task| task.initial[1].layers[1].weights = Mat::zeros(2, 6))));
    assert!(shape(&changed(|task| {
        task.initial[0].layers.pop();
    })));
    let test = changed(|task| {
        task.test =
            Some(Samples { input: Input::dense(waves(5, 9)).unwrap(), targets: targets(9, 4) });
    });
    assert!(shape(&test) && test.to_string().contains("test"), "{test}");

    let target = changed(|task| task.train.targets[(3, 1)] = f32::NAN);
    assert!(matches!(target, NetError::NotFinite { .. }), "{target}");
}

/// Catches embeddings that would train only the biases, or NaN.
#[test]
fn embeddings_without_content_are_refused() {
    let mut nothing = sound();
    nothing.train.input = Input::dense(Mat::zeros(6, 9)).unwrap();
    let refused = refusal(&nothing);
    assert_eq!(refused, NetError::Vanishes);
    assert!(refused.to_string().contains("sigma"), "{refused}");
    nothing.train.input = Input::grid(vec![Mat::zeros(2, 3), Mat::zeros(4, 3)]).unwrap();
    assert_eq!(refusal(&nothing), NetError::Vanishes);

    for broken in [f32::NAN, f32::INFINITY] {
        let mut columns = waves(6, 9);
        columns[(2, 4)] = broken;
        let refused = Input::dense(columns.clone()).unwrap_err();
        assert!(matches!(refused, NetError::NotFinite { .. }), "{refused}");
        let refused = Input::grid(vec![columns, waves(2, 2)]).unwrap_err();
        assert!(matches!(refused, NetError::NotFinite { .. }), "{refused}");
    }
    let large = Input::from_rows(&Mat::from_fn(2, 2, |_, _| 1e300)).unwrap_err();
    assert!(matches!(large, NetError::NotFinite { .. }), "{large}");
}

/// Catches indices that would be read beyond their table.
#[test]
fn factored_inputs_that_do_not_fit_are_refused() {
    assert!(matches!(Input::factored(vec![], vec![]), Err(NetError::Zero { .. })));
    assert!(matches!(Input::grid(vec![]), Err(NetError::Zero { .. })));
    let tables = || vec![waves(2, 3), waves(4, 5)];
    for indices in [vec![vec![0, 1, 2]], vec![vec![0, 1, 2], vec![0, 1]]] {
        let refused = Input::factored(tables(), indices).unwrap_err();
        assert!(matches!(refused, NetError::Shape { .. }), "{refused}");
    }
    for (indices, columns) in
        [(vec![vec![0, 1, 3], vec![0, 1, 2]], 3), (vec![vec![0, 1, 2], vec![0, 1, 5]], 5)]
    {
        let refused = Input::factored(tables(), indices).unwrap_err();
        let expected = format!("index beyond its table: got {columns}, must be below {columns}");
        assert_eq!(refused.to_string(), expected);
    }
    let mut none = sound();
    none.train.input = Input::factored(vec![waves(6, 9)], vec![vec![]]).unwrap();
    none.train.targets = Mat::zeros(0, 4);
    assert!(matches!(refusal(&none), NetError::Zero { .. }));
}

/// Catches tables of different sizes, and indices beyond their table.
#[test]
fn waves_that_do_not_fit_are_refused() {
    let table = |waves: usize, n: usize| {
        let line: Vec<f64> = (0..n).map(|i| i as f64 / n as f64).collect();
        WaveTable::new(&vec![1.5; waves], &line)
    };
    let zero = |refused: Result<Input, NetError>| {
        assert!(matches!(refused, Err(NetError::Zero { .. })), "{refused:?}");
    };
    let shape = |refused: Result<Input, NetError>| {
        assert!(matches!(refused, Err(NetError::Shape { .. })), "{refused:?}");
    };
    assert!(
        Input::waves(vec![table(2, 3), table(2, 4)], vec![vec![2, 0], vec![3, 0]], 1.0).is_ok()
    );
    zero(Input::waves(vec![], vec![], 1.0));
    zero(Input::waves(vec![table(0, 3)], vec![vec![0]], 1.0));
    shape(Input::waves(vec![table(2, 3)], vec![], 1.0));
    let beyond = Input::waves(vec![table(2, 3)], vec![vec![3]], 1.0);
    assert!(matches!(beyond, Err(NetError::Index { index: 3, count: 3, .. })), "{beyond:?}");
    shape(Input::waves(vec![table(2, 3), table(1, 3)], vec![vec![0], vec![0]], 1.0));
    shape(Input::waves(vec![table(2, 3), table(2, 3)], vec![vec![0], vec![0, 1]], 1.0));
    let mut uneven = table(2, 3);
    uneven.cosines = Mat::zeros(2, 2);
    shape(Input::waves(vec![uneven], vec![vec![0]], 1.0));
    let refused = Input::waves(vec![table(2, 3)], vec![vec![0]], f32::NAN).unwrap_err();
    assert!(matches!(refused, NetError::NotFinite { .. }), "{refused}");
    let mut nothing = sound();
    nothing.train.input = Input::waves(vec![table(3, 9)], vec![(0..9).collect()], 0.0).unwrap();
    assert_eq!(refusal(&nothing), NetError::Vanishes);
}

/// Catches missing checks of Adam's settings, which would train nothing or NaN.
#[test]
fn settings_of_adam_outside_their_ranges_are_refused() {
    let sound_adam = Adam::new(1e-3);
    let rates = [0.0, -1e-3, f64::NAN, f64::INFINITY].map(Adam::new);
    let others = [
        Adam { beta1: 1.0, ..sound_adam },
        Adam { beta2: -0.1, ..sound_adam },
        Adam { beta2: f64::NAN, ..sound_adam },
        Adam { epsilon: 0.0, ..sound_adam },
        Adam { weight_decay: -1.0, ..sound_adam },
    ];
    for optimizer in rates.into_iter().chain(others) {
        let refused = refusal(&Task { optimizer, ..sound() });
        assert!(matches!(refused, NetError::Range { .. }), "{optimizer:?}: {refused}");
        assert!(refused.to_string().contains("allowed"), "{refused}");
    }
}

/// Catches predictions on another number of features, and panics on inputs without points.
#[test]
fn predictions_require_the_networks_features() {
    let deep = sound();
    let flat = Task { network: network(6, 0, 0, 2, false), ..sound() };
    let flat = Task { initial: common::initial(&flat.network, 2), ..flat };
    for task in [deep, flat] {
        for engine in engines() {
            let mut session = engine.start(task.clone()).unwrap();
            let refused = session.predict(&Input::dense(waves(5, 9)).unwrap()).unwrap_err();
            assert!(matches!(refused, NetError::Shape { found: 5, expected: 6, .. }), "{refused}");
            let none = session.predict(&Input::dense(Mat::zeros(6, 0)).unwrap()).unwrap();
            assert_eq!(none.shape(), (0, 4), "{}", engine.device());
            let zeros = session.predict(&Input::dense(Mat::zeros(6, 3)).unwrap()).unwrap();
            assert!((0..4).all(|c| zeros[(0, c)].is_finite()), "{}", engine.device());
        }
    }
}

/// Catches test errors that are reported without a test set.
#[test]
fn a_missing_test_set_has_no_errors() {
    let factored = Input::grid(vec![waves(2, 3), waves(4, 3)]).unwrap();
    for (depth, input) in
        [(0, Input::dense(waves(6, 9)).unwrap()), (0, factored.clone()), (2, factored)]
    {
        let task = task(network(6, depth, 5, 2, false), input, Adam::new(1e-3), 2);
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
fn solved(depth: usize, activation: OutputActivation) -> Task {
    let network = network(6, depth, 5, 1, false).with_output_activation(activation);
    let optimizer = Adam { weight_decay: 0.0, ..Adam::new(1e-2) };
    let mut task = task(network, Input::dense(waves(6, 300)).unwrap(), optimizer, 1);
    let last = task.initial[0].layers.last_mut().unwrap();
    last.weights.fill(0.0);
    let value = match activation {
        OutputActivation::Identity => 0.25,
        OutputActivation::Sigmoid => 0.5,
    };
    last.bias[0] = if value == 0.5 { 0.0 } else { value };
    task.train.targets.fill(value);
    task
}

/// Catches 0/0 in Adam: an exact fit has error 0 and must not change.
#[test]
fn an_exact_fit_has_error_zero_and_stays() {
    for activation in [OutputActivation::Identity, OutputActivation::Sigmoid] {
        for depth in [0, 2] {
            let task = solved(depth, activation);
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
        let input = Input::dense(waves(6, 300)).unwrap();
        let mut task = task(network(6, depth, 5, 1, true), input, Adam::new(1e-2), 1);
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
                let input = Input::dense(columns).unwrap();
                let task = task(network(6, depth, 5, 2, false), input, Adam::new(1e-3), 2);
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
