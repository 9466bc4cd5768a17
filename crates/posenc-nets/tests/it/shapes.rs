//! Compares the engine with the reference over two steps on random small shapes.

use crate::common;

use common::{
    bumps, distance, is_near_kink, network, noise, shuffled, task, triangle, waves, wide_matrix,
    widened,
};
use posenc_nets::reference::{Parameters, ReferenceEngine};
use posenc_nets::{Adam, CpuEngine, Engine, Input, Task};
use proptest::prelude::*;

/// An input of one of seven forms with about `d` features and `n` points.
fn input(form: usize, d: usize, n: usize) -> Input {
    match form {
        0 => Input::dense(waves(d, n)),
        1 => Input::dense(noise(d, n, "features")),
        2 => Input::dense(bumps(d, n, 1.5 / d as f64, triangle)),
        3 => Input::dense(shuffled(&bumps(d, n, 1.5 / d as f64, triangle))),
        4 => Input::grid(vec![waves(d, n.div_ceil(7)), noise(3, n.min(7), "axis")]),
        5 => return common::joint_waves(d.div_ceil(2), n, &[1 + n / 3, 4]).0,
        _ => {
            let points = common::scattered(n);
            let half = (n / 2 + 1) as u32;
            let indices = vec![
                points.iter().map(|&p| p as u32 % half).collect(),
                points.iter().map(|&p| p as u32 / half).collect(),
            ];
            Input::factored(vec![waves(d, half as usize), noise(2, 2, "coarse")], indices)
        }
    }
    .unwrap()
}

/// Adam whose step is nearly η/ε·g, so that the parameters depend on the gradient and not only on its sign.
fn nearly_gradient_descent() -> Adam {
    Adam { epsilon: 0.9, weight_decay: 1e-3, ..Adam::new(0.5) }
}

fn compare(task: &Task, threads: usize) {
    let mut ours = CpuEngine::new(threads).start(task.clone()).unwrap();
    let mut theirs = ReferenceEngine.start(task.clone()).unwrap();
    let initial = widened(&task.initial);
    let features = wide_matrix(&task.train.input.to_dense());
    let zero = Parameters::zeros(&task.network);
    let mut before = initial.clone();
    for step in 1..=2 {
        let errors = [ours.step().unwrap(), theirs.step().unwrap()];
        let after = [widened(&ours.parameters().unwrap()), widened(&theirs.parameters().unwrap())];
        assert_eq!((errors[0].len(), errors[1].len()), (task.runs(), task.runs()));
        // Targets are up to 1, so a much smaller error is the square of a difference that rounding dominates.
        for (a, b) in errors[0].iter().zip(&errors[1]) {
            assert!((a - b).abs() <= 1e-4 * b + 1e-6, "step {step}: {errors:?}");
        }
        // A unit at its kink may be on either side of it.
        if is_near_kink(&task.network, &features, &before) {
            return;
        }
        for (r, (a, b)) in after[0].iter().zip(&after[1]).enumerate() {
            for l in 0..zero.layers.len() {
                let (a, b) = (&a.layers[l], &b.layers[l]);
                let gone = distance(b, &initial[r].layers[l]);
                // Rounding of the gradient plus rounding of the parameters.
                let allowed = 1e-4 * gone + 3e-7 * distance(b, &zero.layers[l]);
                let apart = distance(a, b);
                assert!(apart <= allowed, "step {step}, run {r}, layer {l}: {apart:e} of {gone:e}");
            }
        }
        [_, before] = after;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    /// Catches shapes at which a block, a tile, a group or a lane ends in the wrong place.
    #[test]
    fn two_steps_match_the_reference(
        form in 0..7_usize,
        d in 1..300_usize,
        n in prop_oneof![1..20_usize, 100..400_usize],
        hidden in prop::collection::vec(1..20_usize, 0..4),
        output in 1..5_usize,
        runs in 1..6_usize,
        sigmoid: bool,
        threads in 1..4_usize,
    ) {
        let input = input(form, d, n);
        let mut network = network(input.dimension(), 0, 0, output, sigmoid);
        network.hidden = hidden;
        compare(&task(network, input, nearly_gradient_descent(), runs), threads);
    }

    /// Catches the same faults in Kronecker layers on grids, on some nodes, and on points between nodes.
    #[test]
    fn two_steps_of_kronecker_layers_match_the_reference(
        features in prop::collection::vec(1..40_usize, 1..4),
        nodes in prop::collection::vec(1..20_usize, 3),
        banded: bool,
        points in 0..3_usize,
        hidden in prop::option::of(1..6_usize),
        output in 1..5_usize,
        runs in 1..4_usize,
        sigmoid: bool,
        threads in 1..4_usize,
    ) {
        // Limit the number of features, because the reference multiplies the whole matrix.
        let most = [300, 40, 12][features.len() - 1];
        let axes: Vec<_> = features
            .iter()
            .zip(nodes)
            .map(|(&k, n)| (1 + k % most, n))
            .map(|(k, n)| if banded { bumps(k, n, 1.5 / k as f64, triangle) } else { waves(k, n) })
            .collect();
        let nodes: usize = axes.iter().map(faer::Mat::ncols).product();
        let input = match points {
            0 => Input::kronecker(axes),
            1 => {
                let some = common::scattered(nodes)[..nodes.div_ceil(2)].to_vec();
                Input::kronecker_at(axes, some.into_iter().map(|n| n as u32).collect())
            }
            _ => Input::kronecker_blended(axes, common::blending(nodes.div_ceil(2) + 3, nodes)),
        }
        .unwrap();
        // Narrow bumps may miss all points, and a point may have no nodes.
        prop_assume!(!input.is_zero());
        let network = common::kronecker_network(&input, hidden, output, sigmoid);
        compare(&task(network, input, nearly_gradient_descent(), runs), threads);
    }
}
