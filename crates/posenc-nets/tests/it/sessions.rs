//! Threads, other runs and interruptions must not change the bits of a result.

use crate::common;

use common::{Shape, bumps, dense, error_bits, matrix_bits, parameter_bits, task, triangle, waves};
use posenc_nets::{
    Adam, CpuEngine, Engine, Input, NetError, OutputActivation, SampleSet, Session, Task,
};

/// Named tasks of every kind: one layer and several, few points and many tiles, one run and more runs than threads,
/// bands and factored inputs, and more weights than one chunk.
fn tasks() -> Vec<(&'static str, Task)> {
    let waves_of = |d, n| dense(waves(d, n));
    let band = |d, n| dense(common::shuffled(&bumps(d, n, 0.03, triangle)));
    let grid = Input::grid(vec![bumps(20, 37, 0.1, triangle), waves(12, 29)]).unwrap();
    let joint = |waves, points, axes| common::joint_waves(waves, points, axes).0;
    // More than one block of rows along the first axis, and more than one block of points.
    let square = vec![bumps(130, 71, 0.02, triangle), waves(40, 67)];
    let cube = vec![waves(36, 20), bumps(33, 33, 0.05, triangle), waves(9, 12)];
    let (square_nodes, cube_nodes) = (71 * 67, 20 * 33 * 12);
    let some: Vec<u32> =
        common::scattered(square_nodes)[..4500].iter().map(|&node| node as u32).collect();
    let full = Input::kronecker(square.clone()).unwrap();
    let at = Input::kronecker_at(square.clone(), some).unwrap();
    let between = common::blending(5000, square_nodes);
    let between = Input::kronecker_blended(square, between).unwrap();
    let full_cube = Input::kronecker(cube.clone()).unwrap();
    let between_cube = Input::kronecker_blended(cube, common::blending(6000, cube_nodes)).unwrap();
    let tasks: Vec<(&str, Input, Shape, usize)> = vec![
        ("Kronecker, one run", full.clone(), (0, 0, 3, false), 1),
        ("Kronecker, four runs", full.clone(), (0, 0, 2, false), 4),
        ("Kronecker, sigmoid", full.clone(), (0, 0, 3, true), 2),
        ("Kronecker at nodes", at, (0, 0, 3, false), 1),
        ("Kronecker, blended", between.clone(), (0, 0, 3, false), 2),
        ("Kronecker in 3-D", full_cube, (0, 0, 1, false), 1),
        ("Kronecker in 3-D, blended", between_cube, (0, 0, 2, false), 1),
        ("Kronecker, hidden layer", full, (1, 11, 3, false), 1),
        ("Kronecker, hidden layer, blended", between, (1, 5, 2, true), 2),
        ("waves, one run", joint(30, 700, &[29, 31]), (2, 24, 3, true), 1),
        ("waves, affine, three runs", joint(9, 300, &[8, 9]), (0, 0, 2, false), 3),
        ("affine, one run", waves_of(300, 1537), (0, 0, 1, false), 1),
        ("affine, three runs", waves_of(300, 129), (0, 0, 1, false), 3),
        ("affine, eleven runs", waves_of(300, 129), (0, 0, 1, false), 11),
        ("affine, five runs of two outputs on bands", band(300, 400), (0, 0, 2, false), 5),
        ("affine, sigmoid", waves_of(40, 400), (0, 0, 2, true), 2),
        ("affine, factored", grid.clone(), (0, 0, 2, false), 3),
        ("one tile, three runs", waves_of(30, 100), (2, 24, 2, false), 3),
        ("many tiles, one run", waves_of(300, 1537), (3, 40, 3, true), 1),
        ("many tiles, two runs", waves_of(30, 700), (2, 24, 1, false), 2),
        ("bands, one run", band(300, 1000), (2, 24, 1, false), 1),
        ("bands, four runs", band(300, 500), (1, 24, 2, false), 4),
        ("factored, one run", grid.clone(), (2, 24, 3, true), 1),
        ("factored, five runs", grid, (1, 24, 1, false), 5),
    ];
    let task = |(name, input, shape, runs)| (name, task(input, shape, Adam::new(1e-3), runs));
    tasks.into_iter().map(task).collect()
}

fn start(task: &Task, threads: usize) -> Box<dyn Session> {
    CpuEngine::new(threads).start(task.clone()).unwrap()
}

/// Bits of everything that a session reports about its current parameters.
fn present(session: &mut dyn Session, task: &Task) -> Vec<Vec<u64>> {
    let mut all = vec![
        error_bits(&session.errors(SampleSet::Train).unwrap()),
        error_bits(&session.errors(SampleSet::Test).unwrap()),
        error_bits(&session.hidden_stable_ranks().unwrap().concat()),
    ];
    let other = common::other_points(&task.train.input);
    for input in [&task.train.input, &other] {
        let bits = matrix_bits(&session.predict(input).unwrap());
        all.push(bits.into_iter().map(u64::from).collect());
    }
    for bits in parameter_bits(&session.parameters().unwrap()) {
        all.push(bits.into_iter().map(u64::from).collect());
    }
    all
}

/// Bits of the errors of `count` steps.
fn steps(session: &mut dyn Session, count: usize) -> Vec<Vec<u64>> {
    (0..count).map(|_| error_bits(&session.step().unwrap())).collect()
}

/// Catches sums whose partition depends on the number of threads.
#[test]
fn the_number_of_threads_changes_no_bit() {
    for (name, task) in tasks() {
        let mut single = start(&task, 1);
        let (errors, result) = (steps(&mut *single, 12), present(&mut *single, &task));
        for threads in [2, 3, 8] {
            let mut session = start(&task, threads);
            assert!(steps(&mut *session, 12) == errors, "{name}: errors with {threads} threads");
            assert!(present(&mut *session, &task) == result, "{name}: result, {threads} threads");
        }
    }
}

/// Catches steps that depend on earlier measurements.
#[test]
fn measuring_changes_nothing() {
    for (name, task) in tasks() {
        let (mut quiet, mut measured) = (start(&task, 2), start(&task, 2));
        for _ in 0..4 {
            let before = measured.errors(SampleSet::Train).unwrap();
            present(&mut *measured, &task);
            let (a, b) = (measured.step().unwrap(), quiet.step().unwrap());
            assert_eq!(error_bits(&a), error_bits(&b), "{name}");
            // A step returns the error before it.
            for (a, b) in a.iter().zip(&before) {
                assert!((a - b).abs() <= 1e-6 * b, "{name}: {a} in the step, {b} measured");
            }
        }
        assert!(present(&mut *measured, &task) == present(&mut *quiet, &task), "{name}");
    }
}

/// A task with some of the runs of `task`. Without hidden layers, the last run is repeated until the number of columns
/// is a multiple of [`posenc_nets::cpu::GROUP`], which the engine requires for equal bits.
fn only(task: &Task, runs: std::ops::Range<usize>) -> Task {
    let outputs = task.network.output;
    let mut chosen: Vec<usize> = runs.collect();
    if task.network.hidden.is_empty() {
        while !(chosen.len() * outputs).is_multiple_of(posenc_nets::cpu::GROUP) {
            chosen.push(chosen[chosen.len() - 1]);
        }
    }
    let columns = |targets: &faer::Mat<f32>| {
        faer::Mat::from_fn(targets.nrows(), chosen.len() * outputs, |i, j| {
            targets[(i, chosen[j / outputs] * outputs + j % outputs)]
        })
    };
    let mut task = task.clone();
    task.train.targets = columns(&task.train.targets);
    if let Some(test) = &mut task.test {
        test.targets = columns(&test.targets);
    }
    task.initial = chosen.iter().map(|&run| task.initial[run].clone()).collect();
    task
}

/// Catches runs that influence each other.
#[test]
fn a_run_trained_alone_gives_the_same_bits() {
    let mut differ = Vec::new();
    for (name, task) in tasks() {
        let mut together = start(&only(&task, 0..task.runs()), 2);
        let errors = steps(&mut *together, 12);
        let predictions = together.predict(&task.train.input).unwrap();
        let parameters = parameter_bits(&together.parameters().unwrap());
        for run in 0..task.runs() {
            let mut single = start(&only(&task, run..run + 1), 2);
            let own: Vec<u64> = errors.iter().map(|errors| errors[run]).collect();
            let first = |errors: &Vec<Vec<u64>>| errors.iter().map(|e| e[0]).collect::<Vec<_>>();
            let same_errors = first(&steps(&mut *single, 12)) == own;
            let same_parameters =
                parameter_bits(&single.parameters().unwrap())[0] == parameters[run];
            let outputs = task.network.output;
            let columns = predictions.as_ref().subcols(run * outputs, outputs).to_owned();
            let found = single.predict(&task.train.input).unwrap();
            let found = matrix_bits(&found.as_ref().subcols(0, outputs).to_owned());
            if !(same_errors && same_parameters && found == matrix_bits(&columns)) {
                differ.push(format!("{name}: run {run}"));
            }
        }
    }
    assert!(differ.is_empty(), "these runs differ when they are trained alone: {differ:?}");
}

/// Catches moments, step counts or outputs that are not saved. 10 epochs, a restored state and 10 more epochs must equal
/// 20 epochs, for any history of the session and any number of threads.
#[test]
fn an_interruption_changes_no_bit() {
    for (name, task) in tasks() {
        let mut through = start(&task, 2);
        steps(&mut *through, 10);
        let state = through.state().unwrap();
        let at_the_break = present(&mut *through, &task);
        let errors = steps(&mut *through, 10);
        let result = present(&mut *through, &task);

        let (fresh, mut used) = (start(&task, 3), start(&task, 2));
        steps(&mut *used, 4);
        for mut session in [fresh, used] {
            session.restore(&state).unwrap();
            assert_eq!(session.epoch(), 10, "{name}");
            assert!(session.state().unwrap() == state, "{name}: the state after it was restored");
            assert!(present(&mut *session, &task) == at_the_break, "{name}: right after");
            assert!(steps(&mut *session, 10) == errors, "{name}: errors");
            assert!(present(&mut *session, &task) == result, "{name}: result");
        }
    }
}

/// Catches a state that is restored, fully or partly, into a task of another shape.
#[test]
fn a_state_of_another_task_is_refused() {
    let of = |d, depth, width, output, runs| {
        task(dense(waves(d, 40)), (depth, width, output, false), Adam::new(1e-3), runs)
    };
    for (own, others) in [
        (of(12, 0, 0, 2, 2), [of(13, 0, 0, 2, 2), of(12, 0, 0, 3, 2), of(12, 0, 0, 1, 4)]),
        (of(12, 2, 8, 2, 2), [of(12, 2, 9, 2, 2), of(12, 1, 8, 2, 2), of(12, 2, 8, 2, 3)]),
    ] {
        let (mut session, mut untouched) = (start(&own, 2), start(&own, 2));
        for other in &others {
            let mut foreign = start(other, 2);
            foreign.step().unwrap();
            let refused = session.restore(&foreign.state().unwrap()).unwrap_err();
            assert!(matches!(refused, NetError::State { .. }), "{refused}");
        }
        let mut short = session.state().unwrap();
        short.numbers.pop();
        assert!(matches!(session.restore(&short), Err(NetError::State { .. })));
        assert_eq!(steps(&mut *session, 3), steps(&mut *untouched, 3));
    }
}

/// A factor of the initial parameters of a run that makes it diverge.
#[derive(Debug, Clone, Copy)]
struct Corruption {
    factor: f32,
    /// Whether only the first layer is corrupted. A ReLU written as max(z, 0) would turn NaN into zeros.
    first_layer: bool,
}

/// Catches NaN that leaks into other runs, and diverged runs that are not detected.
#[test]
fn a_diverged_run_leaves_the_others_alone() {
    let mut undetected = Vec::new();
    for (name, task) in tasks() {
        for (factor, first_layer) in [(3e38, false), (f32::NAN, false), (f32::NAN, true)] {
            let corruption = Corruption { factor, first_layer };
            // Large parameters alone need not cause divergence: sums of squares are doubles, and a sigmoid is finite unless its argument
            // is NaN.
            let is_bounded = task.network.output_activation == OutputActivation::Sigmoid;
            let must_diverge = factor.is_nan() || task.network.depth() > 0 && !is_bounded;
            for corrupted in 0..task.runs().min(3) {
                let is_detected = train_corrupted(name, &task, corruption, corrupted);
                if must_diverge && !is_detected {
                    undetected.push(format!("{name}, {corruption:?} in run {corrupted}"));
                }
            }
        }
    }
    assert!(undetected.is_empty(), "these runs are not recorded as diverged: {undetected:?}");
}

/// Compares the other runs with those of an uncorrupted task. Returns whether the corrupted run is recorded as diverged
/// in its first step.
fn train_corrupted(name: &str, task: &Task, corruption: Corruption, corrupted: usize) -> bool {
    let mut changed = task.clone();
    let layers = &mut changed.initial[corrupted].layers;
    let count = if corruption.first_layer { 1 } else { layers.len() };
    for layer in &mut layers[..count] {
        layer.weights *= faer::Scale(corruption.factor);
        layer.bias.iter_mut().for_each(|b| *b *= corruption.factor);
    }
    let name = format!("{name}, {corruption:?} in run {corrupted}");
    let others = || (0..task.runs()).filter(|run| *run != corrupted);
    let (mut session, mut unchanged) = (start(&changed, 2), start(task, 2));
    for step in 1..=3 {
        let (found, expected) = (session.step().unwrap(), unchanged.step().unwrap());
        for run in others() {
            let (found, expected) = (found[run].to_bits(), expected[run].to_bits());
            assert_eq!(found, expected, "{name}: run {run}, step {step}");
        }
    }
    let found = parameter_bits(&session.parameters().unwrap());
    let expected = parameter_bits(&unchanged.parameters().unwrap());
    for run in others() {
        assert_eq!(session.diverged()[run], None, "{name}: run {run}");
        assert!(found[run] == expected[run], "{name}: run {run}");
    }
    // None of this may panic, and a state with NaN must survive a round trip.
    present(&mut *session, &changed);
    let state = session.state().unwrap();
    session.restore(&state).unwrap();
    assert_eq!(
        common::bits(session.state().unwrap().numbers),
        common::bits(state.numbers),
        "{name}"
    );
    session.diverged()[corrupted] == Some(1)
}

/// Catches a divergence that is recorded late, twice or never.
#[test]
fn a_huge_learning_rate_diverges_and_its_epoch_is_recorded() {
    for (name, task) in tasks() {
        if task.network.depth() < 2 || task.network.output_activation != Default::default() {
            continue;
        }
        let task = Task { optimizer: Adam::new(1e30), ..task };
        let mut session = start(&task, 2);
        let first: Vec<Option<u64>> = vec![None; task.runs()];
        assert_eq!(session.diverged(), first);
        let mut seen = first;
        for epoch in 1..=6 {
            for (error, seen) in session.step().unwrap().iter().zip(&mut seen) {
                if !error.is_finite() && seen.is_none() {
                    *seen = Some(epoch);
                }
            }
            assert_eq!(session.diverged(), seen, "{name}, epoch {epoch}");
        }
        // The first step moves the weights to 1e30, and the second one multiplies them.
        assert!(seen.iter().all(|epoch| *epoch == Some(2)), "{name}: {seen:?}");
        present(&mut *session, &task);
    }
}
