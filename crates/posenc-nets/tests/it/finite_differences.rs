//! Compares the reference's gradient with central differences of its error.

use crate::common;

use posenc_nets::reference::{Parameters, loss, loss_and_gradient};

/// Catches errors in derivatives: a missing factor, a transposed product, a ReLU mask at the wrong layer, a sigmoid
/// without its slope.
///
/// With h = 1e-5, a central difference has a truncation error of about h² = 1e-10 and a rounding error of about
/// 1e-16/h = 1e-11. No unit of these networks is so close to its kink that a difference crosses it.
#[test]
fn gradients_match_central_differences() {
    const STEP: f64 = 1e-5;
    let (d, width, n, outputs) = (5, 6, 9, 2);
    let input = common::wide_matrix(&common::noise(d, n, "input"));
    let targets = common::wide_matrix(&common::targets(n, outputs));
    for depth in [0, 1, 2, 4] {
        for sigmoid in [false, true] {
            let network = common::network(d, depth, width, outputs, sigmoid);
            let start = Parameters::from_single(&common::initial(&network, 1)[0]);
            let (error, gradient) =
                loss_and_gradient(&network, &start, input.as_ref(), targets.as_ref()).unwrap();
            let at = |numbers: &[f64]| {
                let parameters = Parameters::from_numbers(&network, numbers);
                loss(&network, &parameters, input.as_ref(), targets.as_ref()).unwrap()
            };
            let mut numbers = start.numbers();
            assert_eq!(numbers.len(), network.parameter_count());
            assert_eq!(at(&numbers), error, "depth {depth}: loss and loss_and_gradient differ");

            let gradient = gradient.numbers();
            let largest = gradient.iter().fold(0.0, |largest: f64, g| largest.max(g.abs()));
            let mut worst: f64 = 0.0;
            for k in 0..numbers.len() {
                let here = numbers[k];
                numbers[k] = here + STEP;
                let above = at(&numbers);
                numbers[k] = here - STEP;
                let below = at(&numbers);
                numbers[k] = here;
                let difference = (above - below) / (2.0 * STEP);
                worst = worst.max((difference - gradient[k]).abs() / largest);
            }
            println!("depth {depth}, sigmoid {sigmoid}: {worst:.1e} of the largest entry");
            assert!(worst < 1e-7, "depth {depth}, sigmoid {sigmoid}: {worst:e}");
            assert!(largest > 1e-3, "depth {depth}: the gradient is too small to test anything");
        }
    }
}
