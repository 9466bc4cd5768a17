use faer::Mat;
use proptest::prelude::*;

use super::circulant::circulant_singular_values;
use super::gram::embedding_stable_rank;
use super::*;
use crate::{
    embedder::{Embedder, EmbedderSpec, build, line, matrix},
    random::{gaussian_vector, stream},
    testing::{built, spec},
    tolerance::{Tolerance, assert_all_close, assert_close},
};

fn embedder(kind: &str, dimension: usize, sigma: f64) -> Box<dyn Embedder> {
    built(&spec(kind, dimension, "sigma", sigma))
}

/// An N × d matrix with decaying random columns.
fn random_matrix(n: usize, d: usize, decay: f64, seed: u64) -> Mat<f64> {
    let values = gaussian_vector(&mut stream(seed, "matrix"), n * d);
    Mat::from_fn(n, d, |i, j| values[i * d + j] * (-decay * j as f64).exp())
}

/// The definition, from all singular values.
fn reference(x: &Mat<f64>) -> f64 {
    stable_rank_of(&singular_values(x.as_ref()).unwrap()).unwrap()
}

#[test]
fn all_routes_agree_with_all_singular_values() {
    for embedder in [
        embedder("rff", 400, 3.0),
        embedder("rff", 340, 60.0),
        embedder("gaussian", 450, 0.01),
        embedder("gaussian", 450, 0.0022),
        embedder("linf", 300, 6.0),
    ] {
        let xs = line(300);
        let x = matrix(&*embedder, &xs);
        let expected = reference(&x);
        let tolerance = Tolerance::relative(1e-9);
        assert_close(stable_rank(x.as_ref()).unwrap(), expected, tolerance);
        assert_close(embedding_stable_rank(&*embedder, &xs).unwrap(), expected, tolerance);
        assert_close(line_stable_rank(&*embedder, 300).unwrap(), expected, tolerance);
        // Otherwise used only for Gram matrices above 1000 × 1000.
        let gram = &x * x.transpose();
        assert_close(gram::iterated_from_gram(&gram).unwrap(), expected, tolerance);
    }
}

#[test]
fn blocks_of_columns_and_of_samples_add_up() {
    // 300 × 20,000 takes six blocks of columns; 20,000 × 60 takes three blocks of samples.
    let wide = embedder("rff", 20_000, 15.0);
    let expected = line_stable_rank(&*wide, 300).unwrap();
    let streamed = embedding_stable_rank(&*wide, &line(300)).unwrap();
    assert_close(streamed, expected, Tolerance::relative(1e-8));

    let tall = embedder("gaussian", 60, 0.02);
    let xs = line(20_000);
    let whole = stable_rank(matrix(&*tall, &xs).as_ref()).unwrap();
    let streamed = embedding_stable_rank(&*tall, &xs).unwrap();
    assert_close(streamed, whole, Tolerance::relative(1e-10));
}

#[test]
fn the_circulant_route_agrees_with_the_streamed_one() {
    // d = 720: successive rows are shifted by 90 columns for n = 8, down to one column for n = 720.
    let specs = [
        EmbedderSpec::new("gaussian").number("sigma", 0.013).text("boundary", "periodic"),
        EmbedderSpec::new("gaussian").number("sigma", 0.2).text("boundary", "periodic"),
        EmbedderSpec::new("rectangle").number("width", 0.11).text("boundary", "periodic"),
        EmbedderSpec::new("square").number("frequency", 3.0).text("boundary", "periodic"),
        EmbedderSpec::new("random").text("scaling", "unit-row"),
        EmbedderSpec::new("impulse"),
    ];
    for spec in specs {
        let spec = spec.number("dimension", 720.0);
        let embedder = build(&spec, &mut stream(7, "shifts")).unwrap();
        assert!(embedder.is_circulant());
        for n in [8, 45, 360, 720] {
            let streamed = embedding_stable_rank(&*embedder, &line(n)).unwrap();
            let transformed = line_stable_rank(&*embedder, n).unwrap();
            assert_close(transformed, streamed, Tolerance::relative(1e-9));
        }
    }
}

#[test]
fn ranks_of_known_matrices() {
    let identity = Mat::<f64>::identity(500, 700);
    assert_close(stable_rank(identity.as_ref()).unwrap(), 500.0, Tolerance::relative(1e-12));
    let ones = Mat::from_fn(3, 5, |_, _| 2.0);
    assert_close(stable_rank(ones.as_ref()).unwrap(), 1.0, Tolerance::relative(1e-12));
    let diagonal = Mat::from_fn(3, 3, |i, j| if i == j { [3.0, 2.0, 1.0][i] } else { 0.0 });
    assert_close(stable_rank(diagonal.as_ref()).unwrap(), 14.0 / 9.0, Tolerance::relative(1e-12));
}

#[test]
fn squares_that_underflow_or_overflow_are_rescaled() {
    let x = random_matrix(6, 9, 0.3, 1);
    let expected = reference(&x);
    for scale in [1e-300, 1e-170, 1e170, 1e300] {
        let scaled = Mat::from_fn(6, 9, |i, j| x[(i, j)] * scale);
        assert_close(stable_rank(scaled.as_ref()).unwrap(), expected, Tolerance::relative(1e-12));
    }
    let formula = |text: &str| {
        let spec = EmbedderSpec::new("formula").number("dimension", 30.0).text("psi", text);
        let embedder = build(&spec, &mut stream(0, "")).unwrap();
        embedding_stable_rank(&*embedder, &line(20)).unwrap()
    };
    let tiny = formula("1e-200*exp(-100*u*u)");
    assert_close(tiny, formula("exp(-100*u*u)"), Tolerance::relative(1e-12));
}

#[test]
fn matrices_without_a_stable_rank_are_errors() {
    let message = |rank: Result<f64, Error>| rank.unwrap_err().to_string();
    let check = |x: Mat<f64>, part: &str| {
        let message = message(stable_rank(x.as_ref()));
        assert!(message.contains(part), "{message}");
    };
    check(Mat::zeros(0, 4), "is 0 x 4");
    check(Mat::zeros(4, 0), "is 4 x 0");
    check(Mat::zeros(3, 4), "all features are zero");
    for broken in [f64::NAN, f64::INFINITY] {
        let x = Mat::from_fn(3, 4, |i, j| if (i, j) == (2, 1) { broken } else { 1.0 });
        check(x, "sample 2");
    }
    let embedder = embedder("gaussian", 10, 0.001);
    assert!(embedding_stable_rank(&*embedder, &[]).is_err());
    assert!(line_stable_rank(&*embedder, 0).is_err());
    let not_finite = message(embedding_stable_rank(&*embedder, &[0.0, f64::NAN]));
    assert!(not_finite.contains("sample 1"), "{not_finite}");
    // Midway between two centers, bells this narrow are zero.
    assert_eq!(embedding_stable_rank(&*embedder, &[0.05]), Err(all_zero()));
    for row in [&[][..], &[1.0, f64::NAN], &[1.0, 2.0], &[0.0, 0.0], &[-1.0, 0.5]] {
        assert!(toeplitz_stable_rank(row).is_err(), "{row:?}");
    }
    assert!(circulant_stable_rank(&[]).is_err());
    assert_eq!(circulant_stable_rank(&[0.0; 3]), Err(all_zero()));
}

#[test]
fn rank_and_condition_number_of_given_singular_values() {
    let values = [4.0, 2.0, 1.0, 1e-12, 0.0];
    assert_eq!(numerical_rank(&values, 1e-10), 3);
    assert_eq!(numerical_rank(&values, 0.3), 2);
    assert_eq!(numerical_rank(&[0.0, 0.0], 1e-10), 0);
    assert_close(condition_number(&values), f64::INFINITY, Tolerance::EXACT);
    assert_close(condition_number(&values[..3]), 4.0, Tolerance::EXACT);
    assert!(condition_number(&[]).is_nan());
}

#[test]
fn circulants_agree_with_the_decomposition() {
    // n = 8 as in errata E-R7; a further 1/n would divide every value by 8.
    let column = gaussian_vector(&mut stream(6, "circulant"), 8);
    let dense = Mat::from_fn(8, 8, |i, j| column[(i + 8 - j) % 8]);
    let expected = singular_values(dense.as_ref()).unwrap();
    let actual = circulant_singular_values(&column).unwrap();
    assert_all_close(&actual, &expected, Tolerance::absolute(1e-12));
}

#[test]
fn toeplitz_of_one_sample_and_of_a_constant() {
    assert_close(toeplitz_stable_rank(&[3.0]).unwrap(), 1.0, Tolerance::relative(1e-12));
    assert_close(toeplitz_stable_rank(&[2.0; 700]).unwrap(), 1.0, Tolerance::relative(1e-12));
    let mut identity = vec![0.0; 700];
    identity[0] = 2.0;
    assert_close(toeplitz_stable_rank(&identity).unwrap(), 700.0, Tolerance::relative(1e-12));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_gram_route_agrees_with_all_singular_values(
        n in 1_usize..40,
        d in 1_usize..40,
        decay in 0.0_f64..0.5,
        seed: u64,
    ) {
        let x = random_matrix(n, d, decay, seed);
        let rank = stable_rank(x.as_ref()).unwrap();
        prop_assert!(Tolerance::relative(1e-10).accepts(rank, reference(&x)));
        prop_assert!(rank >= 1.0 - 1e-12 && rank <= n.min(d) as f64 + 1e-9);
        // Transposing and scaling change nothing.
        let transposed = Mat::from_fn(d, n, |i, j| -7.0 * x[(j, i)]);
        let other = stable_rank(transposed.as_ref()).unwrap();
        prop_assert!(Tolerance::relative(1e-10).accepts(other, rank));
    }

    #[test]
    fn the_toeplitz_route_agrees_with_the_decomposition(
        n in 2_usize..300,
        sigma in 0.1_f64..200.0,
        half_dimension in 1_usize..60,
        seed: u64,
    ) {
        let spec = EmbedderSpec::new("rff")
            .number("dimension", 2.0 * half_dimension as f64)
            .number("sigma", sigma);
        let embedder = build(&spec, &mut stream(seed, "toeplitz")).unwrap();
        let row: Vec<f64> =
            line(n).iter().map(|&x| embedder.gram_kernel(x).unwrap()).collect();
        let expected = reference(&matrix(&*embedder, &line(n)));
        let actual = toeplitz_stable_rank(&row).unwrap();
        prop_assert!(
            Tolerance::relative(1e-9).accepts(actual, expected), "{} {}", actual, expected
        );
    }
}
