//! Checks the reference: its gradient against central differences of its error, its error and its steps against their definitions.

use crate::common::{self, noise, waves, wide_matrix};

use posenc_nets::reference::{
    AdamState, Layer, Parameters, ReferenceEngine, loss, loss_and_gradient,
};
use posenc_nets::{Adam, Engine as _, Input, Network};

/// Catches errors in derivatives: a missing factor, a transposed product, a ReLU mask at the wrong layer, a sigmoid
/// without its slope.
///
/// With h = 1e-5, a central difference has a truncation error of about h² = 1e-10 and a rounding error of about
/// 1e-16/h = 1e-11. No unit of these networks is so close to its kink that a difference crosses it.
#[test]
fn gradients_match_central_differences() {
    const STEP: f64 = 1e-5;
    let (d, width, n, outputs) = (5, 6, 9, 2);
    let input = wide_matrix(&noise(d, n, "input"));
    let targets = wide_matrix(&common::targets(n, outputs));
    for depth in [0, 1, 2, 4] {
        for sigmoid in [false, true] {
            let features = common::dense(noise(d, n, "input"));
            let network = common::network(&features, (depth, width, outputs, sigmoid));
            let mut own = Parameters::from_single(&common::initial(&network, 1)[0]);
            let (error, mut gradient) =
                loss_and_gradient(&network, &own, input.as_ref(), targets.as_ref());
            let at = |own: &Parameters| loss(&network, own, input.as_ref(), targets.as_ref());
            assert_eq!(at(&own), error, "depth {depth}: loss and loss_and_gradient differ");
            let (mut largest, mut worst): (f64, f64) = (0.0, 0.0);
            for k in 0..network.parameter_count() {
                let here = *number(&mut own, k);
                *number(&mut own, k) = here + STEP;
                let above = at(&own);
                *number(&mut own, k) = here - STEP;
                let below = at(&own);
                *number(&mut own, k) = here;
                let expected = *number(&mut gradient, k);
                worst = worst.max(((above - below) / (2.0 * STEP) - expected).abs());
                largest = largest.max(expected.abs());
            }
            println!("depth {depth}, sigmoid {sigmoid}: {worst:.1e} of {largest:.1e}");
            assert!(worst < 1e-7 * largest, "depth {depth}, sigmoid {sigmoid}: {worst:e}");
            assert!(largest > 1e-3, "depth {depth}: the gradient is too small to test anything");
        }
    }
}

/// Number `k` of all weights and biases.
fn number(parameters: &mut Parameters, k: usize) -> &mut f64 {
    let layers = parameters.layers.iter_mut();
    let mut all = layers.flat_map(|Layer { weights, bias }| {
        weights.col_iter_mut().flat_map(|column| column.iter_mut()).chain(bias)
    });
    all.nth(k).unwrap()
}

/// Catches deviations from PyTorch's Adam: ε inside the root or before the bias correction, decoupled weight decay, and a step count that is
/// off by one. With values of 1e-8, the places of ε and weight decay would have no visible effect.
#[test]
fn steps_are_those_of_adam() {
    let adam =
        Adam { epsilon: 0.02, weight_decay: 0.05, beta1: 0.8, beta2: 0.95, ..Adam::new(2e-3) };
    let network = Network::new(1, 0, 0, 1).unwrap();
    let one = |weight: f64, bias: f64| Parameters {
        layers: vec![Layer { weights: faer::Mat::full(1, 1, weight), bias: vec![bias] }],
    };
    let (mut state, mut found) = (AdamState::new(&network), one(0.7, -0.2));
    let (mut theta, mut m, mut v) = ([0.7, -0.2], [0.0; 2], [0.0; 2]);
    for t in 1..=5 {
        let gradients = [0.3 * f64::from(t), -0.5 / f64::from(t)];
        state.step(&adam, &mut found, &one(gradients[0], gradients[1]));
        for k in 0..2 {
            let g = gradients[k] + 0.05 * theta[k];
            m[k] = 0.8 * m[k] + 0.2 * g;
            v[k] = 0.95 * v[k] + 0.05 * g * g;
            let root = (v[k] / (1.0 - 0.95f64.powi(t))).sqrt();
            theta[k] -= 2e-3 * (m[k] / (1.0 - 0.8f64.powi(t))) / (root + 0.02);
        }
        for (k, expected) in theta.into_iter().enumerate() {
            let found = *number(&mut found, k);
            assert!((found - expected).abs() < 1e-14, "step {t}: {found} and {expected}");
        }
    }
}

/// Catches a Kronecker layer whose weights are not numbered as in Ψ₀ᵀ W Ψ₁, a wrong factor of the error, and a missing bias or activation.
#[test]
fn errors_are_those_of_the_definition() {
    let (rows, columns) = (waves(6, 9), noise(5, 8, "columns"));
    let input = Input::kronecker(vec![rows.clone(), columns.clone()]).unwrap();
    let task = common::task(input, (1, 4, 2, true), Adam::new(1e-3), 1);
    let mut session = ReferenceEngine.start(task.clone()).unwrap();
    let [first, last] = &common::widened(&task.initial)[0].layers[..] else { panic!("two layers") };
    let (rows, columns) = (wide_matrix(&rows), wide_matrix(&columns));
    let mut sum = 0.0;
    for (point, (i, j)) in (0..9).flat_map(|i| (0..8).map(move |j| (i, j))).enumerate() {
        let hidden = |h: usize| {
            let term = |k0: usize, k1: usize| {
                first.weights[(h, k0 * 5 + k1)] * rows[(k0, i)] * columns[(k1, j)]
            };
            let z: f64 = (0..6).map(|k0| (0..5).map(|k1| term(k0, k1)).sum::<f64>()).sum();
            z.max(0.0)
        };
        for o in 0..2 {
            let z: f64 =
                (0..4).map(|h| last.weights[(o, h)] * hidden(h)).sum::<f64>() + last.bias[o];
            let target = f64::from(task.train.targets[(point, o)]);
            sum += (1.0 / (1.0 + (-z).exp()) - target).powi(2);
        }
    }
    let (found, expected) = (session.step().unwrap()[0], sum / 144.0);
    // The dense features are rounded to single precision.
    assert!((found - expected).abs() < 1e-6 * expected, "{found} and {expected}");
}
