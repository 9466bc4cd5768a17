//! Tests of all engines: the CPU engine, and the device engine on any available adapter.
//!
//! A software Vulkan adapter is sufficient. Without the feature `wgpu`, or without a driver, the tests check the CPU
//! engine only and count as skipped.

use crate::common;

use faer::Mat;
use posenc_files::testing::{Need, skip};
use posenc_math::quality::psnr_of;
use posenc_nets::train::{Schedule, fit};
use posenc_nets::{
    Adam, CpuEngine, Engine, Input, Network, SampleSet, Samples, Session, State, Task, reference,
};

use common::{
    bumps, gaussian, initial, joint_waves, kronecker_inputs, kronecker_network, network, noise,
    task, triangle, waves, wide_matrix, widened,
};

/// The device engine with its default limits, and with limits that force small chunks of points and runs.
#[cfg(feature = "wgpu")]
fn devices() -> Vec<Box<dyn Engine>> {
    use posenc_nets::device::{Choice, DeviceEngine, Options};
    use std::sync::OnceLock;
    static OPEN: OnceLock<Option<DeviceEngine>> = OnceLock::new();
    let open = || DeviceEngine::open(Choice::GpuOrSoftware).ok();
    let Some(engine) = OPEN.get_or_init(open).clone() else {
        skip(Need::Vulkan, "there is no Vulkan driver");
        return Vec::new();
    };
    let small = Options { chunk_bytes: 1, work_at_once: 1.0 };
    vec![Box::new(engine.clone()), Box::new(engine.with_options(small))]
}

#[cfg(not(feature = "wgpu"))]
fn devices() -> Vec<Box<dyn Engine>> {
    skip(Need::Vulkan, "this build has no device engine");
    Vec::new()
}

/// All engines, the CPU engine with every method for the products of `task`.
fn engines(task: &Task) -> Vec<Box<dyn Engine>> {
    let mut engines: Vec<Box<dyn Engine>> = vec![Box::new(CpuEngine::new(1))];
    engines.extend(common::cpu_engines(task).into_iter().map(|e| Box::new(e) as Box<dyn Engine>));
    engines.extend(devices());
    engines
}

/// Named networks of every kind on inputs of every form.
fn kinds() -> Vec<(String, Network, Input)> {
    let dense = Input::dense(waves(23, 150)).unwrap();
    let banded = Input::dense(bumps(60, 140, 0.03, triangle)).unwrap();
    let factored = Input::grid(vec![bumps(9, 13, 0.2, gaussian), waves(8, 11)]).unwrap();
    let (joint, _) = joint_waves(12, 130, &[14, 13]);
    let mut all = Vec::new();
    // Few points per coordinate: the device expands the features instead of multiplying the tables.
    let tables = vec![waves(7, 60), bumps(10, 40, 0.1, gaussian)];
    let indices = vec![(0..90).map(|i| i % 60).collect(), (0..90).map(|i| i * 7 % 40).collect()];
    let loose = Input::factored(tables, indices).unwrap();
    for (name, input) in [
        ("dense", dense),
        ("banded", banded),
        ("factored", factored),
        ("loosely factored", loose),
        ("waves", joint),
    ] {
        for (depth, outputs, sigmoid) in [(0, 1, false), (0, 3, true), (1, 1, true), (3, 3, false)]
        {
            let network = network(input.dimension(), depth, 17, outputs, sigmoid);
            all.push((format!("{name}, depth {depth}, {outputs} outputs"), network, input.clone()));
        }
    }
    for (name, input) in kronecker_inputs() {
        for (hidden, outputs, sigmoid) in [(None, 2, false), (Some(5), 3, true)] {
            let network = kronecker_network(&input, hidden, outputs, sigmoid);
            all.push((format!("{name}, hidden {hidden:?}"), network, input.clone()));
        }
    }
    all
}

/// Adam with β = 0, whose first step reveals the gradient g: θ − θ' = η g / (|g| + ε). [`shown`] solves for g.
const SHOWING: Adam =
    Adam { learning_rate: 1000.0, beta1: 0.0, beta2: 0.0, epsilon: 0.5, weight_decay: 0.0 };

fn shown(before: f64, after: f64) -> f64 {
    let share = (before - after) / SHOWING.learning_rate;
    SHOWING.epsilon * share / (1.0 - share.abs())
}

/// Catches missing terms and factors in gradients, and layers or runs that are read at the wrong place. Losses and
/// gradients of the first step must agree with double precision to 1e-4.
#[test]
fn first_losses_and_gradients_match_double_precision() {
    for (name, network, input) in kinds() {
        let task = task(network.clone(), input.clone(), SHOWING, 2);
        let features = wide_matrix(&input.to_dense());
        for engine in engines(&task) {
            let mut session = engine.start(task.clone()).unwrap();
            let errors = session.errors(SampleSet::Train).unwrap();
            let tests = session.errors(SampleSet::Test).unwrap();
            let stepped = session.step().unwrap();
            let after = widened(&session.parameters().unwrap());
            for (run, before) in widened(&task.initial).iter().enumerate() {
                let columns = |targets: &Mat<f32>| {
                    let o = network.output;
                    Mat::from_fn(targets.nrows(), o, |i, c| f64::from(targets[(i, run * o + c)]))
                };
                let own = columns(&task.train.targets);
                let (loss, gradient) =
                    reference::loss_and_gradient(&network, before, features.as_ref(), own.as_ref())
                        .unwrap();
                let other = columns(&task.test.as_ref().unwrap().targets);
                let test =
                    reference::loss(&network, before, features.as_ref(), other.as_ref()).unwrap();
                for (found, expected) in
                    [(errors[run], loss), (stepped[run], loss), (tests[run], test)]
                {
                    let apart = (found - expected).abs() / expected;
                    assert!(apart < 1e-4, "{name}, {}, run {run}: {apart:e}", engine.device());
                }
                for (l, expected) in gradient.layers.iter().enumerate() {
                    let (old, new) = (&before.layers[l], &after[run].layers[l]);
                    let weights = Mat::from_fn(old.weights.nrows(), old.weights.ncols(), |i, j| {
                        shown(old.weights[(i, j)], new.weights[(i, j)])
                    });
                    let apart = (&weights - &expected.weights).norm_l2();
                    let (mut square, mut whole) =
                        (apart.powi(2), expected.weights.squared_norm_l2());
                    for ((old, new), g) in old.bias.iter().zip(&new.bias).zip(&expected.bias) {
                        square += (shown(*old, *new) - g).powi(2);
                        whole += g.powi(2);
                    }
                    let apart = (square / whole).sqrt();
                    assert!(
                        apart < 1e-4,
                        "{name}, {}, run {run}, layer {l}: {apart:e}",
                        engine.device()
                    );
                }
            }
        }
    }
}

/// Catches mixed-up moments, a bias correction of the wrong step, missing weight decay, and accumulating errors. After
/// 50 steps, parameters must agree with double precision to 1e-3 of their distance from the initial parameters. The first step of all
/// kinds is compared above, and all steps of the CPU engine in `agreement.rs` and `kronecker.rs`.
#[test]
fn fifty_steps_match_double_precision() {
    let adam = Adam { weight_decay: 1e-3, ..Adam::new(2e-3) };
    for (name, network, input) in kinds().into_iter().step_by(5) {
        let task = task(network, input, adam, 2);
        let mut exact = reference::ReferenceEngine.start(task.clone()).unwrap();
        (0..50).for_each(|_| drop(exact.step().unwrap()));
        let (expected, start) = (widened(&exact.parameters().unwrap()), widened(&task.initial));
        let losses = exact.errors(SampleSet::Train).unwrap();
        // Small chunks need many dispatches per step, and a wrong one shows in the first step.
        for engine in devices().into_iter().take(1) {
            let mut session = engine.start(task.clone()).unwrap();
            session.advance(&[false; 50]).unwrap();
            assert_eq!(session.epoch(), 50);
            for (found, expected) in session.errors(SampleSet::Train).unwrap().iter().zip(&losses) {
                let apart = (found - expected).abs() / expected;
                assert!(apart < 1e-3, "{name}, {}: loss {apart:e}", engine.device());
            }
            let found = widened(&session.parameters().unwrap());
            for (run, (found, expected)) in found.iter().zip(&expected).enumerate() {
                for (l, (found, expected)) in found.layers.iter().zip(&expected.layers).enumerate()
                {
                    let moved = common::distance(expected, &start[run].layers[l]);
                    let apart = common::distance(found, expected) / moved;
                    assert!(
                        apart < 1e-3,
                        "{name}, {}, run {run}, layer {l}: {apart:e}",
                        engine.device()
                    );
                }
            }
        }
    }
}

/// A small image of waves and a disc, size² × 3.
fn image(size: usize) -> Mat<f32> {
    Mat::from_fn(size * size, 3, |i, c| {
        let (x, y) = ((i % size) as f64 / size as f64, (i / size) as f64 / size as f64);
        let disc = if (x - 0.4).hypot(y - 0.6) < 0.25 { 0.3 } else { 0.0 };
        (0.4 + disc + 0.2 * (9.0 * x + 5.0 * y * (c + 1) as f64).sin()) as f32
    })
}

/// Every second coordinate, for training; as in the papers, the test set contains all coordinates.
fn every_second(axis: &Mat<f32>) -> Mat<f32> {
    Mat::from_fn(axis.nrows(), axis.ncols() / 2, |k, n| axis[(k, 2 * n)])
}

/// Catches small errors that accumulate. The PSNRs of a fit to a small image, averaged over the last epochs as in the
/// papers, must be within 0.05 dB of the CPU engine.
#[test]
fn a_small_image_reaches_the_same_psnr() {
    let size = 32;
    let axis = bumps(40, size, 0.05, gaussian);
    let (half, whole) = (every_second(&axis), image(size));
    let sparse = |i: usize| 2 * (i % (size / 2)) + 2 * (i / (size / 2)) * size;
    let few = Mat::from_fn(size * size / 4, 3, |i, c| whole[(sparse(i), c)]);
    let grids = |axis: &Mat<f32>| vec![axis.clone(), axis.clone()];
    let simple = [Input::grid(grids(&half)).unwrap(), Input::grid(grids(&axis)).unwrap()];
    let complex =
        [Input::kronecker(grids(&half)).unwrap(), Input::kronecker(grids(&axis)).unwrap()];
    let cases = [
        ("simple", network(80, 2, 32, 3, true), &simple, 5e-4),
        ("complex", kronecker_network(&complex[0], None, 3, false), &complex, 0.1),
        ("complex, hidden", kronecker_network(&complex[0], Some(8), 3, false), &complex, 5e-3),
    ];
    let schedule = Schedule { epochs: 200, curve_every: 50, layers: false, mean_of_last: 20 };
    for (name, network, inputs, rate) in cases {
        let task = Task {
            optimizer: Adam::new(rate),
            train: Samples { input: inputs[0].clone(), targets: few.clone() },
            test: Some(Samples { input: inputs[1].clone(), targets: whole.clone() }),
            initial: initial(&network, 1),
            network,
        };
        let run = |engine: &dyn Engine| {
            let mut session = engine.start(task.clone()).unwrap();
            let history = fit(&mut *session, &schedule, None, &mut |_, _| {}).unwrap();
            let predicted = session.predict(&task.test.as_ref().unwrap().input).unwrap();
            let error = (&predicted - &whole).squared_norm_l2() / (3 * size * size) as f32;
            (history, psnr_of(f64::from(error)))
        };
        let (expected, picture) = run(&CpuEngine::new(1));
        let expected_summary = expected.summaries[0];
        assert!(expected_summary.train_psnr > 18.0, "{name}: {expected_summary:?}");
        // The limits of the second device are those of the tests above.
        for engine in devices().into_iter().take(1) {
            let (found, seen) = run(&*engine);
            let summary = found.summaries[0];
            println!("{name}, {}: {summary:?}, CPU {expected_summary:?}", engine.device());
            for (found, expected) in [
                (summary.train_psnr, expected_summary.train_psnr),
                (summary.test_psnr.unwrap(), expected_summary.test_psnr.unwrap()),
                (summary.final_test_psnr.unwrap(), expected_summary.final_test_psnr.unwrap()),
                (seen, picture),
            ] {
                assert!((found - expected).abs() < 0.05, "{name}: {found} and {expected}");
            }
            assert_eq!(found.curve.len(), expected.curve.len());
            for (a, b) in found.curve.iter().zip(&expected.curve) {
                assert_eq!(a.epoch, b.epoch);
                assert!((a.train_psnr[0] - b.train_psnr[0]).abs() < 0.05, "{name}: {a:?} {b:?}");
                assert!((a.test_psnr[0] - b.test_psnr[0]).abs() < 0.05, "{name}: {a:?} {b:?}");
            }
        }
    }
}

/// Bits of the errors and the state of a session.
fn bits(session: &mut dyn Session) -> Vec<u64> {
    let mut numbers: Vec<f64> = session.errors(SampleSet::Train).unwrap();
    numbers.extend(session.errors(SampleSet::Test).unwrap());
    let State { numbers: state, .. } = session.state().unwrap();
    numbers.extend(state.into_iter().map(f64::from));
    numbers.into_iter().map(f64::to_bits).collect()
}

/// Catches sums in a varying order, and incomplete states. On one adapter, the same seeds must give the same bits for
/// any number of epochs per call, also after restoring a state. `sessions.rs` checks this for the CPU engine.
#[test]
fn the_same_adapter_gives_the_same_bits_and_resumes_from_a_state() {
    for (k, (name, network, input)) in kinds().into_iter().step_by(7).enumerate() {
        let task = task(network, input, Adam::new(1e-2), 3);
        // Once more epochs than the device does at a time.
        let (before, after) = if k == 0 { (30, 40) } else { (4, 5) };
        for engine in devices() {
            let at = format!("{name}, {}", engine.device());
            let mut through = engine.start(task.clone()).unwrap();
            through.advance(&vec![false; before + after]).unwrap();
            let expected = bits(&mut *through);
            let mut singly = engine.start(task.clone()).unwrap();
            for _ in 0..before {
                singly.step().unwrap();
            }
            let state = singly.state().unwrap();
            let mut resumed = engine.start(task.clone()).unwrap();
            resumed.restore(&state).unwrap();
            assert!(resumed.state().unwrap() == state, "{at}");
            for session in [&mut singly, &mut resumed] {
                session.advance(&vec![true; after]).unwrap();
                assert_eq!(session.epoch(), (before + after) as u64, "{at}");
                assert!(bits(&mut **session) == expected, "{at}");
            }
            let mut short = state.clone();
            short.numbers.pop();
            assert!(resumed.restore(&short).is_err(), "{at}");
        }
    }
}

/// Catches predictions and stable ranks of the wrong layer, run or point.
#[test]
fn predictions_and_stable_ranks_match_double_precision() {
    for (name, network, input) in kinds() {
        let task = task(network.clone(), input.clone(), Adam::new(1e-2), 2);
        let mut exact = reference::ReferenceEngine.start(task.clone()).unwrap();
        let (outputs, ranks) =
            (exact.predict(&input).unwrap(), exact.hidden_stable_ranks().unwrap());
        for engine in engines(&task) {
            let mut session = engine.start(task.clone()).unwrap();
            let found = session.predict(&input).unwrap();
            assert_eq!(found.shape(), outputs.shape(), "{name}");
            let apart = (&found - &outputs).norm_l2() / outputs.norm_l2();
            assert!(apart < 1e-5, "{name}, {}: {apart:e}", engine.device());
            let found = session.hidden_stable_ranks().unwrap();
            assert_eq!(found.len(), ranks.len(), "{name}");
            for (found, expected) in found.iter().flatten().zip(ranks.iter().flatten()) {
                let apart = (found - expected).abs() / expected;
                assert!(apart < 1e-3, "{name}, {}: {found}, {expected}", engine.device());
            }
        }
    }
}

/// Catches a divergence that is not detected, is recorded at another epoch than on the CPU, or affects other runs.
#[test]
fn a_diverged_run_is_recorded_and_leaves_the_others_alone() {
    let input = Input::dense(noise(12, 90, "features")).unwrap();
    for depth in [0, 2] {
        let network = network(12, depth, 9, 1, false);
        let mut task = task(network, input.clone(), Adam::new(1e-2), 3);
        // These weights make the outputs overflow.
        task.initial[1].layers[0].weights.fill(1e38);
        let mut expected = CpuEngine::new(1).start(task.clone()).unwrap();
        expected.advance(&[true; 5]).unwrap();
        assert_eq!(expected.diverged(), [None, Some(1), None]);
        let sound = expected.errors(SampleSet::Train).unwrap();
        for engine in engines(&task) {
            let mut session = engine.start(task.clone()).unwrap();
            session.advance(&[true; 5]).unwrap();
            assert_eq!(session.diverged(), expected.diverged(), "{}", engine.device());
            let found = session.errors(SampleSet::Train).unwrap();
            for run in [0, 2] {
                let apart = (found[run] - sound[run]).abs() / sound[run];
                assert!(apart < 1e-4, "{}: {apart:e}", engine.device());
            }
        }
    }
}
