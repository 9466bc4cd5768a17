use super::*;
use crate::testing::{entries, random, times};
use crate::tolerance::{Tolerance, assert_all_close};
use proptest::prelude::*;

#[test]
fn dense_of_a_small_example() {
    // Catches swapped factors: [1 2] ⊗ [1; 10] is [1 2; 10 20], not its transpose.
    let a = Mat::from_fn(1, 2, |_, j| (j + 1) as f64);
    let b = Mat::from_fn(2, 1, |i, _| [1.0, 10.0][i]);
    assert_eq!(entries(&dense(a.as_ref(), b.as_ref())), [1.0, 2.0, 10.0, 20.0]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    // Catches a transposed factor and a wrong order of vec.
    #[test]
    fn separable_2d_equals_dense(n in 1..7usize, m in 1..7usize, k in 1..7usize, l in 1..7usize, seed in 0..1000u64) {
        let (a, w, b) = (random(n, k, seed), random(k, l, seed + 1), random(m, l, seed + 2));
        let fast = separable_2d(a.as_ref(), w.as_ref(), b.as_ref()).unwrap();
        let reference = times(&dense(a.as_ref(), b.as_ref()), &entries(&w));
        assert_all_close(&entries(&fast), &reference, Tolerance::absolute(1e-12));
    }
}

#[test]
fn features_order_points_like_the_separable_product() {
    // Rows = y, columns = x: a feature of x alone must vary along the columns only.
    let psi_x = Mat::from_fn(3, 1, |i, _| i as f64);
    let psi_y = Mat::from_fn(2, 1, |_, _| 1.0);
    let features = dense(psi_y.as_ref(), psi_x.as_ref());
    assert_eq!(entries(&features), [0.0, 1.0, 2.0, 0.0, 1.0, 2.0]);
    let simple = simple_features(psi_y.as_ref(), psi_x.as_ref());
    assert_eq!((simple[(4, 0)], simple[(4, 1)]), (1.0, 1.0));
}

#[test]
fn errors_name_mismatched_shapes() {
    let (a, w) = (random(5, 4, 1), random(3, 2, 2));
    let message = separable_2d(a.as_ref(), w.as_ref(), a.as_ref()).unwrap_err().to_string();
    assert!(message.contains("5×4") && message.contains("3×2"), "{message}");
}
