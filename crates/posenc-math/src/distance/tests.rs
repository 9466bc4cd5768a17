use super::*;
use crate::{
    embedder::EmbedderSpec,
    testing::built,
    theory,
    tolerance::{Tolerance, assert_close},
};

/// l = 2σ√(k ln 10): where D of a Gaussian embedder falls to 10^-k (Prop. 2).
fn interval_for_sigma(sigma: f64, k: f64) -> f64 {
    2.0 * sigma * (k * std::f64::consts::LN_10).sqrt()
}

#[test]
fn streaming_agrees_with_whole_rows() {
    // 9,000 columns need three blocks.
    let spec = EmbedderSpec::new("gaussian").number("dimension", 9000.0).number("sigma", 0.03);
    let embedder = built(&spec);
    let row = |x: f64| {
        let mut row = vec![0.0; 9000];
        embedder.embed(x, &mut row);
        row
    };
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
    let anchor = row(0.5);
    for delta in centered_displacements(16) {
        let expected = product(&anchor, &row(0.5 + delta)) / product(&anchor, &anchor);
        let measured = measured_distance(&*embedder, &[delta]).unwrap()[0];
        assert_close(measured, expected, Tolerance::new(1e-15, 1e-12));
    }
}

#[test]
fn bisection_inverts_the_gaussian_rule() {
    for (sigma, k) in [(0.01, 1.0), (0.005, 1.6), (0.05, 3.0)] {
        let l = preserved_length(|delta| theory::gaussian_law(sigma, delta), k, 0.5);
        assert_close(l, interval_for_sigma(sigma, k), Tolerance::relative(1e-12));
    }
}

#[test]
fn lengths_at_the_ends_of_the_range() {
    assert_close(preserved_length(|_| 1.0, 1.0, 0.5), 0.5, Tolerance::EXACT);
    assert_close(preserved_length(|_| 0.0, 1.0, 0.5), 0.0, Tolerance::EXACT);
    assert_close(preserved_length(|_| f64::NAN, 1.0, 0.5), 0.0, Tolerance::EXACT);
    // A second hump does not count.
    let humps = |delta: f64| if (0.1..0.3).contains(&delta) { 0.0 } else { 1.0 };
    assert_close(preserved_length(humps, 1.0, 0.5), 0.1, Tolerance::absolute(1e-15));
}

#[test]
fn sampled_lengths_count_both_sides() {
    let sigma = 0.02;
    let n = 10_000;
    let values: Vec<f64> = centered_displacements(n)
        .into_iter()
        .map(|delta| theory::gaussian_law(sigma, delta))
        .collect();
    let expected = interval_for_sigma(sigma, 1.0);
    assert_close(sampled_preserved_length(&values, 1.0), expected, Tolerance::absolute(1e-4));
}

#[test]
fn a_zero_row_is_an_error() {
    let spec = EmbedderSpec::new("rectangle").number("dimension", 3.0).number("width", 0.01);
    assert_eq!(measured_distance(&*built(&spec), &[0.0]), Err(all_zero()));
}

/// Catches a wrong scale or direction of the transform.
#[test]
fn the_cyclic_distance_agrees_with_the_measured_one() {
    let d = 360;
    let spec = EmbedderSpec::new("gaussian").number("sigma", 0.02).text("boundary", "periodic");
    let embedder = built(&spec.number("dimension", f64::from(d)));
    let mut row = vec![0.0; d as usize];
    embedder.embed(0.25, &mut row);
    let cyclic = cyclic_distance(&row).unwrap();
    let displacements: Vec<f64> = (0..d).map(|k| f64::from(k) / f64::from(d)).collect();
    let measured = measured_distance(&*embedder, &displacements).unwrap();
    for (cyclic, measured) in cyclic.into_iter().zip(measured) {
        assert_close(cyclic, measured, Tolerance::absolute(1e-12));
    }
    assert!(cyclic_distance(&[]).is_err());
    assert!(cyclic_distance(&[0.0, 0.0]).is_err());
    assert!(cyclic_distance(&[1.0, f64::NAN]).is_err());
}
