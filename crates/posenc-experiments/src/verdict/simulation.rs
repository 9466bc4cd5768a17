//! Tests on simulated records that the rules keep the error rates in docs/METHODOLOGY.md.
//!
//! Each rate is the share of [`TRIALS`] seeded records with a verdict that is wrong by construction. The largest accepted share is
//! the stated rate plus four standard deviations of a binomial share, √(rate (1 − rate)/TRIALS).

use posenc_math::random::{gaussian_vector, stream};

use super::{Context, Verdict, judge};
use crate::published::Published;
use crate::record::{IndexedTable, Row, Table};
use crate::schema::protocol::testing::{A, B, demo};

const TRIALS: usize = 1000;
const SIZES: [usize; 3] = [3, 10, 16];
const PLACES: usize = 5;

/// A record of `n` images. A and B share the noise of an image and add independent noise, so that their difference has standard
/// deviation 1. Along the abscissa, the independent noise varies by a tenth of its own.
fn record(n: usize, trial: usize, mean: impl Fn(&str, usize) -> f64) -> Table {
    let mut rng = stream(trial as u64, &format!("simulation of {n} images"));
    let mut table = Table::default();
    for image in 0..n {
        let shared = 3.0 * gaussian_vector(&mut rng, 1)[0];
        for method in ["A", "B"] {
            let own = gaussian_vector(&mut rng, 1 + PLACES);
            for (place, small) in own[1..].iter().enumerate() {
                let noise = shared + std::f64::consts::FRAC_1_SQRT_2 * (own[0] + 0.1 * small);
                table.rows.push(Row {
                    signal: format!("image {image}"),
                    x: Some(place as f64),
                    unit: "dB".into(),
                    data: "images".into(),
                    ..Row::new("run", method, "psnr", 30.0 + noise + mean(method, place))
                });
            }
        }
    }
    table
}

/// Share of records on which the check has the verdict.
fn share(check: &str, verdict: Verdict, n: usize, mean: impl Fn(&str, usize) -> f64) -> f64 {
    let experiment = demo(
        "data: { set: images }, protocol: { kind: network-nd }",
        &format!("{{ id: c, says: s, source: s, check: {check} }}"),
    );
    let published = Published::default();
    let wrong = |trial: &usize| {
        let record = IndexedTable::new(record(n, *trial, &mean));
        let context =
            Context { experiment: &experiment, record: Some(&record), published: &published };
        judge(&experiment.claims[0], context).verdict == verdict
    };
    (0..TRIALS).filter(wrong).count() as f64 / TRIALS as f64
}

/// Asserts for all `sizes` that a wrong verdict is not more frequent than `rate`, up to four standard deviations.
fn assert_rare(
    what: &str,
    check: &str,
    verdict: Verdict,
    rate: f64,
    sizes: &[usize],
    mean: impl Fn(&str, usize) -> f64,
) {
    let most = rate + 4.0 * (rate * (1.0 - rate) / TRIALS as f64).sqrt();
    for n in sizes {
        let found = share(check, verdict, *n, &mean);
        println!("{what}, n = {n}: {} in {:.1} % of records", verdict.name(), 100.0 * found);
        assert!(found <= most, "{what}, n = {n}: {found} above {most}");
    }
}

const GOOD: Verdict = Verdict::Reproduced;
const BAD: Verdict = Verdict::NotReproduced;

/// Means that are zero except for method A.
fn of_a(mean: f64) -> impl Fn(&str, usize) -> f64 {
    move |method, _| if method == "A" { mean } else { 0.0 }
}

/// Catches abscissas that are counted as repetitions, and intervals that are too short.
#[test]
fn orderings_keep_their_error_rates() {
    let check = format!("{{ kind: ordering, of: [{A}, {B}], smallest_effect: 0.1 }}");
    assert_rare("ordering without effect", &check, GOOD, 0.025, &SIZES, of_a(0.0));
    assert_rare("ordering without effect", &check, BAD, 0.025, &SIZES, of_a(0.0));
    assert_rare("ordering with the published effect", &check, BAD, 0.025, &SIZES, of_a(0.5));
    let margin = format!("{{ kind: ordering, of: [{A}, {B}], margin: 0.5 }}");
    assert_rare("ordering with a margin, at it", &margin, GOOD, 0.025, &SIZES, of_a(-0.5));
    // The rule must still find a large effect.
    assert!(share(&check, Verdict::Reproduced, 16, of_a(3.0)) > 0.99);
}

/// Catches an equality that fails only because it has many abscissas, and one that holds only because it is uncertain.
#[test]
fn equalities_keep_their_error_rates() {
    let check =
        format!("{{ kind: equality, left: {A}, right: {B}, tolerance: {{ absolute: 1 }} }}");
    assert_rare("equality of means at the tolerance", &check, GOOD, 0.05, &SIZES, of_a(1.0));
    assert_rare("equality of equal means", &check, BAD, 0.05, &SIZES, of_a(0.0));
    assert!(share(&check, Verdict::Reproduced, 16, of_a(0.0)) > 0.8);
}

/// Catches a bound that is decided by the noise at its worst abscissa.
#[test]
fn bounds_keep_their_error_rates() {
    let check = format!("{{ kind: bound, of: {A}, at_most: 30 }}");
    assert_rare("bound on means at the limit", &check, GOOD, 0.025, &SIZES, of_a(0.0));
    assert_rare("bound on means at the limit", &check, BAD, 0.025, &SIZES, of_a(0.0));
    assert!(share(&check, Verdict::Reproduced, 16, of_a(-5.0)) > 0.95);
}

/// Catches a quotient whose interval is too short.
#[test]
fn ratios_keep_their_error_rates() {
    let check = format!("{{ kind: ratio, numerator: {A}, denominator: {B}, at_least: 1 }}");
    assert_rare("ratio at the limit", &check, GOOD, 0.025, &SIZES, of_a(0.0));
    assert_rare("ratio at the limit", &check, BAD, 0.025, &SIZES, of_a(0.0));
}

/// Catches a trend that is refuted because it has many steps, and one that is found in noise.
#[test]
fn trends_keep_their_error_rates() {
    let check = format!("{{ kind: trend, of: {A}, direction: increasing }}");
    assert_rare("trend of equal means", &check, GOOD, 0.025, &SIZES, of_a(0.0));
    // The mean rises only in the last step.
    let rise = |_: &str, place: usize| if place + 1 == PLACES { 0.5 } else { 0.0 };
    assert_rare("trend that rises", &check, BAD, 0.025, &SIZES, rise);
    let constant = format!("{{ kind: trend, of: {A}, direction: constant, slack: 0.5 }}");
    assert_rare("constant trend of equal means", &constant, BAD, 0.025, &SIZES, of_a(0.0));
    let apart = |_: &str, place: usize| if place == 0 { 0.5 } else { 0.0 };
    assert_rare("constant trend at the slack", &constant, GOOD, 0.025, &SIZES, apart);
}

/// Catches a maximum that is located among equal values.
#[test]
fn positions_keep_their_error_rates() {
    let check = format!("{{ kind: position, of: {A}, feature: highest, at: 2 }}");
    // Two abscissas share the maximum.
    let tie = |_: &str, place: usize| if place == 2 || place == 3 { 1.0 } else { 0.0 };
    assert_rare("maximum at two places", &check, GOOD, 0.025, &SIZES, tie);
    let peak = |_: &str, place: usize| if place == 2 { 0.1 } else { 0.0 };
    assert_rare("maximum at the place", &check, BAD, 0.025, &SIZES, peak);
    assert_eq!(share(&check, Verdict::NotDecided, 3, peak), 1.0);
}
