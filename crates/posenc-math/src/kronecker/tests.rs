use super::*;
use crate::spectrum::stable_rank;
use crate::testing::{entries, gaussian, narrow, of_rank, random, times};
use crate::tolerance::{Tolerance, assert_all_close, assert_close};
use proptest::prelude::*;

/// Singular values above 1e-9 of the largest; every matrix here has a clear gap there.
fn rank(m: &Mat<f64>) -> usize {
    let values = m.singular_values().expect("small matrices converge");
    values.iter().filter(|&&s| s > 1e-9 * values[0]).count()
}

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

    // Catches a mode product along the wrong axis, since the sizes differ in most cases.
    #[test]
    fn separable_3d_equals_dense(
        n in prop::array::uniform3(1..5usize), k in prop::array::uniform3(1..5usize), seed in 0..1000u64,
    ) {
        let factors: Vec<_> = (0..3).map(|axis| random(n[axis], k[axis], seed + axis as u64)).collect();
        let w = Cube::from_fn(k, |[p, q, r]| ((seed as usize + 31 * p + 17 * q + 5 * r) as f64).cos());
        let fast = separable_3d([factors[0].as_ref(), factors[1].as_ref(), factors[2].as_ref()], &w).unwrap();
        let abc = dense(dense(factors[0].as_ref(), factors[1].as_ref()).as_ref(), factors[2].as_ref());
        prop_assert_eq!(fast.shape(), n);
        assert_all_close(fast.values(), &times(&abc, w.values()), Tolerance::absolute(1e-12));
    }

    // trading, Eq. 9.
    #[test]
    fn rank_of_the_product_is_the_product_of_the_ranks(r in 1..5usize, s in 1..5usize, seed in 0..1000u64) {
        let (a, b) = (of_rank(6, 5, r, seed), of_rank(5, 7, s, seed + 3));
        prop_assert_eq!((rank(&a), rank(&b)), (r, s));
        prop_assert_eq!(rank(&dense(a.as_ref(), b.as_ref())), r * s);
    }

    // The singular values of the product are all products of singular values, so stable ranks multiply
    // like ranks. Catches a stable rank without the square, or with the largest row norm.
    #[test]
    fn stable_rank_of_the_product_is_the_product_of_the_stable_ranks(
        n in prop::array::uniform3(1..5usize), k in prop::array::uniform3(1..5usize), seed in 0..1000u64,
    ) {
        let factors: Vec<_> = (0..3).map(|axis| random(n[axis], k[axis], seed + axis as u64)).collect();
        let stable = |m: &Mat<f64>| stable_rank(m.as_ref()).unwrap();
        let pair = dense(factors[0].as_ref(), factors[1].as_ref());
        let product = dense(pair.as_ref(), factors[2].as_ref());
        let expected: f64 = factors.iter().map(stable).product();
        assert_close(stable(&product), expected, Tolerance::relative(1e-9));
        // The definition: sum of squares over the square of the largest singular value.
        let values = product.singular_values().unwrap();
        let by_definition = values.iter().map(|s| (s / values[0]).powi(2)).sum::<f64>();
        assert_close(expected, by_definition, Tolerance::relative(1e-9));
    }

    // trading, Eqs. 7 and 8: whatever the weights, the image of the simple linear encoding has rank 2.
    #[test]
    fn the_image_of_the_simple_encoding_has_rank_two_at_most(n in 3..9usize, m in 3..9usize, k in 1..6usize, seed in 0..1000u64) {
        let (psi_x, psi_y) = (random(n, k, seed), random(m, k, seed + 1));
        let w: Vec<f64> = (0..2 * k).map(|i| ((seed as usize + i) as f64 * 1.7).cos()).collect();
        let pixels = times(&simple_features(psi_y.as_ref(), psi_x.as_ref()), &w);
        let image = Mat::from_fn(m, n, |row, column| pixels[row * n + column]);
        prop_assert!(rank(&image) <= 2);
    }
}

#[test]
fn simple_and_complex_rank_on_sixteen_by_sixteen_points() {
    // The protocol sheet's check: 8 features per axis give ranks 2K = 16 and K² = 64.
    let psi = gaussian(16, 8, 0.1);
    assert_eq!(rank(&simple_features(psi.as_ref(), psi.as_ref())), 16);
    assert_eq!(rank(&complex_features(psi.as_ref(), psi.as_ref())), 64);
}

#[test]
fn complex_features_order_points_like_the_separable_product() {
    // Rows = y, columns = x: a feature of x alone must vary along the columns only.
    let psi_x = Mat::from_fn(3, 1, |i, _| i as f64);
    let psi_y = Mat::from_fn(2, 1, |_, _| 1.0);
    let features = complex_features(psi_y.as_ref(), psi_x.as_ref());
    assert_eq!(entries(&features), [0.0, 1.0, 2.0, 0.0, 1.0, 2.0]);
    let simple = simple_features(psi_y.as_ref(), psi_x.as_ref());
    assert_eq!((simple[(4, 0)], simple[(4, 1)]), (1.0, 1.0));
}

#[test]
fn single_precision_agrees_with_double() {
    let (a, w) = (random(5, 4, 1), random(4, 4, 2));
    let wide = separable_2d(a.as_ref(), w.as_ref(), a.as_ref()).unwrap();
    let single =
        separable_2d(narrow(&a).as_ref(), narrow(&w).as_ref(), narrow(&a).as_ref()).unwrap();
    let single = Mat::from_fn(5, 5, |i, j| f64::from(single[(i, j)]));
    assert_all_close(&entries(&single), &entries(&wide), Tolerance::absolute(1e-5));
}

#[test]
fn errors_name_mismatched_shapes() {
    let (a, w) = (random(5, 4, 1), random(3, 2, 2));
    let message = separable_2d(a.as_ref(), w.as_ref(), a.as_ref()).unwrap_err().to_string();
    assert!(message.contains("5×4") && message.contains("3×2"), "{message}");
    let cube = Cube::from_fn([2, 3, 4], |_| 0.0);
    let message = cube.mode_product(1, a.as_ref()).unwrap_err().to_string();
    assert!(
        message.contains("5×4") && message.contains("2×3×4") && message.contains("needs 3"),
        "{message}"
    );
    let message = Cube::new([2, 2, 2], vec![0.0; 7]).unwrap_err().to_string();
    assert!(message.contains("must have 8") && message.contains("got 7"), "{message}");
}
