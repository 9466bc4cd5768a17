//! Tests of all engines: the CPU engine, and the device engine on any available adapter.
//!
//! A software Vulkan adapter is sufficient. Without the feature `wgpu`, or without a driver, the tests check the CPU
//! engine only and count as skipped.

use crate::common;

use common::{
    Tolerance, bumps, dense, gaussian, joint_waves, kronecker_inputs, noise, task, triangle, waves,
};
use posenc_files::testing::{Need, skip};
use posenc_nets::reference::ReferenceEngine;
use posenc_nets::{Adam, CpuEngine, Engine, Input, SampleSet, Session, State, Task};

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

/// Named tasks of every kind of network on inputs of every form.
fn kinds(adam: Adam, runs: usize) -> Vec<(String, Task)> {
    // Few points per coordinate: the device uploads the features instead of multiplying the tables.
    let tables = vec![waves(7, 60), bumps(10, 40, 0.1, gaussian)];
    let indices = vec![(0..90).map(|i| i % 60).collect(), (0..90).map(|i| i * 7 % 40).collect()];
    let mut all = Vec::new();
    for (name, input) in [
        ("dense", dense(waves(23, 150))),
        ("banded", dense(bumps(60, 140, 0.03, triangle))),
        ("factored", Input::grid(vec![bumps(9, 13, 0.2, gaussian), waves(8, 11)]).unwrap()),
        ("loosely factored", Input::factored(tables, indices).unwrap()),
        ("waves", joint_waves(12, 130, &[14, 13]).0),
    ] {
        for (depth, outputs, sigmoid) in [(0, 1, false), (0, 3, true), (1, 1, true), (3, 3, false)]
        {
            let task = task(input.clone(), (depth, 17, outputs, sigmoid), adam, runs);
            all.push((format!("{name}, depth {depth}, {outputs} outputs"), task));
        }
    }
    for (name, input) in kronecker_inputs() {
        for shape in [(0, 0, 2, false), (1, 5, 3, true)] {
            let task = task(input.clone(), shape, adam, runs);
            all.push((format!("{name}, depth {}", shape.0), task));
        }
    }
    all
}

/// Catches missing terms and factors in gradients, and layers or runs that are read at the wrong place. With these settings, a step is
/// η g / (|g| + ε), so that it shows the gradient g and not only its sign.
#[test]
fn first_losses_and_gradients_match_double_precision() {
    let adam =
        Adam { learning_rate: 1000.0, beta1: 0.0, beta2: 0.0, epsilon: 0.5, weight_decay: 0.0 };
    let tolerance =
        Tolerance { errors: [1e-4, 0.0], parameters: [1e-4, 0.0], at_kink: Some([1e-4; 2]) };
    for (name, task) in kinds(adam, 2) {
        for engine in engines(&task) {
            let name = format!("{name}, {}", engine.device());
            common::agree(&*engine, &ReferenceEngine, &name, &task, 1, &tolerance);
        }
    }
}

/// Catches mixed-up moments, a bias correction of the wrong step, missing weight decay, and accumulating errors. `agreement.rs` tests the
/// CPU engine.
#[test]
fn fifty_steps_match_double_precision() {
    let adam = Adam { weight_decay: 1e-3, ..Adam::new(2e-3) };
    let tolerance =
        Tolerance { errors: [1e-3, 0.0], parameters: [1e-3, 0.0], at_kink: Some([2e-3, 5e-2]) };
    for (name, task) in kinds(adam, 2).into_iter().step_by(5) {
        // Small chunks need many dispatches per step, and a wrong one shows in the first step.
        for engine in devices().into_iter().take(1) {
            let name = format!("{name}, {}", engine.device());
            common::agree(&*engine, &ReferenceEngine, &name, &task, 50, &tolerance);
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
    for (k, (name, task)) in kinds(Adam::new(1e-2), 3).into_iter().step_by(7).enumerate() {
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

/// Catches errors, predictions and stable ranks of the wrong parameters, layer, run or points, before and after training.
#[test]
fn measurements_match_double_precision() {
    for (k, (name, mut task)) in kinds(Adam::new(1e-3), 2).into_iter().enumerate() {
        // Other points, which are dense in place of factored ones, or the reverse.
        let test = task.test.as_mut().unwrap();
        test.input = common::other_points(&task.train.input);
        if k % 2 == 1 {
            std::mem::swap(&mut test.input, &mut task.train.input);
        }
        for samples in [&mut task.train, test] {
            samples.targets = common::targets(samples.input.points(), 2 * task.network.output);
        }
        let inputs = [task.train.input.clone(), task.test.as_ref().unwrap().input.clone()];
        for engine in engines(&task) {
            let mut ours = engine.start(task.clone()).unwrap();
            let mut theirs = ReferenceEngine.start(task.clone()).unwrap();
            for epoch in [0, 20] {
                ours.advance(&vec![false; epoch]).unwrap();
                theirs.advance(&vec![false; epoch]).unwrap();
                let at = format!("{name}, {}, epoch {epoch}", engine.device());
                let close = |a: &[f64], b: &[f64], share: f64| {
                    assert_eq!(a.len(), b.len(), "{at}");
                    for (a, b) in a.iter().zip(b) {
                        assert!((a - b).abs() < share * b, "{at}: {a} and {b}");
                    }
                };
                for set in [SampleSet::Train, SampleSet::Test] {
                    close(&ours.errors(set).unwrap(), &theirs.errors(set).unwrap(), 1e-4);
                }
                for input in &inputs {
                    let (a, b) = (ours.predict(input).unwrap(), theirs.predict(input).unwrap());
                    assert_eq!(a.shape(), (input.points(), 2 * task.network.output), "{at}");
                    let apart = (&a - &b).norm_l2() / b.norm_l2();
                    assert!(apart < 1e-4, "{at}: {apart:e}");
                }
                let (a, b) =
                    (ours.hidden_stable_ranks().unwrap(), theirs.hidden_stable_ranks().unwrap());
                assert_eq!((a.len(), b.len()), (2, 2), "{at}");
                a.iter().zip(&b).for_each(|(a, b)| close(a, b, 1e-3));
                assert!(b.concat().iter().all(|rank| *rank >= 1.0));
            }
        }
    }
}

/// Catches a divergence that is not detected, is recorded at another epoch than on the CPU, or affects other runs.
#[test]
fn a_diverged_run_is_recorded_and_leaves_the_others_alone() {
    for depth in [0, 2] {
        let features = dense(noise(12, 90, "features"));
        let mut task = task(features, (depth, 9, 1, false), Adam::new(1e-2), 3);
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
