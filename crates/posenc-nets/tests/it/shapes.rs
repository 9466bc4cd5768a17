//! Compares the engine with the reference over two steps on random small shapes.

use crate::common;

use common::{Tolerance, bumps, noise, shuffled, task, task_of, triangle, waves};
use posenc_nets::reference::ReferenceEngine;
use posenc_nets::{Adam, CpuEngine, Input, Task};
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

/// Targets are up to 1, so a much smaller error is the square of a difference that rounding dominates. The parameters differ by the
/// rounding of the gradient and by their own. A unit at its kink may be on either side of it.
const CLOSE: Tolerance =
    Tolerance { errors: [1e-4, 1e-6], parameters: [1e-4, 3e-7], at_kink: None };

fn compare(task: &Task, threads: usize) {
    common::agree(&CpuEngine::new(threads), &ReferenceEngine, "a random shape", task, 2, &CLOSE);
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
        let mut network = common::network(&input, (0, 0, output, sigmoid));
        network.hidden = hidden;
        compare(&task_of(network, input, nearly_gradient_descent(), runs), threads);
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
        let shape = (usize::from(hidden.is_some()), hidden.unwrap_or(0), output, sigmoid);
        compare(&task(input, shape, nearly_gradient_descent(), runs), threads);
    }
}
