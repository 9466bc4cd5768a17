//! Rules that keep verdicts fair: several checks, methods that did not learn, few samples of random features.

use super::{Context, Judgement, Verdict};
use crate::published::Published;
use crate::record::{IndexedTable, Row, Table};
use crate::schema::Experiment;
use crate::schema::protocol::testing::experiment;

/// An experiment on images with a floor, a method of one seed and one with random frequencies.
fn images(claims: &str) -> Experiment {
    images_with(claims, "")
}

/// The same with more keys of the experiment.
fn images_with(claims: &str, more: &str) -> Experiment {
    experiment(&format!(
        "paper: demo\nitem: fig1\nkind: figure\ntitle: T\nshows: S\ngroups:\n\
         \x20 - {{ id: run, data: {{ set: images }}, protocol: {{ kind: network-nd }}, variants: [{{ id: A, embedder: {{ kind: identity }} }}, \
         {{ id: B, embedder: {{ kind: identity }} }}, {{ id: R, embedder: {{ kind: rff, dimension: 4, sigma: 1 }} }}] }}\n\
         \x20 - {{ id: other, data: {{ set: images }}, protocol: {{ kind: network-nd }}, variants: [{{ id: S, embedder: {{ kind: rff, dimension: 4, sigma: 2 }} }}] }}\n\
         \x20 - {{ id: constant, data: {{ set: images }}, protocol: {{ kind: network-nd }}, variants: [{{ id: Mean, embedder: {{ kind: identity }} }}] }}\n\
         floors: [{{ group: constant, method: Mean, metric: psnr, applies_to: [run] }}]\n\
         claims: [{claims}]\n{more}"
    ))
}

/// Values of methods on six images, which differ between images by the same amounts; `seeds` of each.
fn record(values: &[(&str, &str, f64)], seeds: u64) -> Table {
    let mut table = Table::default();
    for (group, method, value) in values {
        for image in 0..6 {
            for seed in 0..if ["R", "S"].contains(method) { seeds } else { 1 } {
                let noise = 0.01 * f64::from(image % 3) * value.abs().sqrt();
                table.rows.push(Row {
                    signal: format!("image-{image}"),
                    seed,
                    data: "images".into(),
                    ..Row::new(group, method, "psnr", value + f64::from(image) + noise)
                });
            }
        }
    }
    table
}

fn judged(claim: &str, table: &Table) -> Judgement {
    let experiment = images(&format!("{{ id: c, says: s, source: s, {claim} }}"));
    super::tests::judged(&experiment, table, &Published::default())
}

fn select(method: &str) -> String {
    format!("{{ group: run, method: {method}, metric: psnr }}")
}

fn order(methods: [&str; 2]) -> String {
    let [a, b] = methods.map(select);
    format!("{{ kind: ordering, smallest_effect: 0, of: [{a}, {b}] }}")
}

const LEARNED: &[(&str, &str, f64)] =
    &[("run", "A", 25.0), ("run", "B", 20.0), ("run", "R", 22.0), ("constant", "Mean", 12.0)];

/// Catches a merged claim that holds although one of its checks fails, that hides the failing check, or that counts once in Holm's
/// family.
#[test]
fn a_claim_holds_only_if_each_check_does() {
    let table = record(LEARNED, 5);
    let both = |second: [&str; 2]| {
        let checks = [("first", ["A", "B"]), ("second", second)].map(|(label, methods)| {
            order(methods).replacen('{', &format!("{{ label: {label}, "), 1)
        });
        judged(&format!("checks: [{}]", checks.join(", ")), &table)
    };
    let all = both(["A", "R"]);
    assert_eq!(all.verdict, Verdict::Reproduced, "{all:?}");
    assert!(all.measured.starts_with("2 of 2 checks hold"), "{all:?}");
    assert_eq!(all.p_values.len(), 2);
    assert_eq!(all.p(), all.p_values.iter().copied().reduce(f64::max));
    let wrong = both(["B", "A"]);
    assert_eq!(wrong.decisive_p, 1, "{wrong:?}");
    let one = both(["B", "A"]);
    assert_eq!(one.verdict, Verdict::NotReproduced, "{one:?}");
    assert!(one.measured.starts_with("1 of 2 checks hold; second: B 22"), "{one:?}");
    assert!(!one.reason.contains("first"), "{one:?}");
    let missing = judged(
        &format!("checks: [{}, {}]", order(["A", "B"]), order(["A", "R"])),
        &record(&LEARNED[..2], 5),
    );
    assert_eq!(missing.verdict, Verdict::NotRun, "{missing:?}");
}

/// Catches an order of methods that did not learn, and a floor that applies to itself.
#[test]
fn methods_below_a_floor_are_not_compared() {
    let mut values = LEARNED.to_vec();
    values[1].2 = -37.0;
    let table = record(&values, 5);
    let below = judged(&format!("check: {}", order(["A", "B"])), &table);
    assert_eq!(below.verdict, Verdict::NotComparable, "{below:?}");
    assert!(below.reason.contains("B did not learn: -34.44 against 14.53 with Mean"), "{below:?}");
    let above = judged(&format!("check: {}", order(["A", "R"])), &table);
    assert_eq!(above.verdict, Verdict::Reproduced, "{above:?}");
    // Of two methods below the floor, the reason names the one that gains less.
    values[0].2 = -10.0;
    let both = judged(&format!("check: {}", order(["A", "B"])), &record(&values, 5));
    assert!(both.reason.starts_with("B did not learn"), "{both:?}");
    // Compared with the floor itself, a method that did not learn fails.
    let of_floor = format!(
        "check: {{ kind: ordering, smallest_effect: 0, of: [{}, {{ group: constant, method: Mean, metric: psnr }}] }}",
        select("B")
    );
    assert_eq!(judged(&of_floor, &table).verdict, Verdict::NotReproduced);
    let itself = format!(
        "check: {{ kind: ordering, smallest_effect: 0, of: [{}, {{ group: constant, method: Mean, metric: psnr }}] }}",
        select("A")
    );
    assert_eq!(judged(&itself, &table).verdict, Verdict::Reproduced);
}

/// Catches an order of methods that all solve the task, a ceiling that concerns other metrics, and one that a single method reaches.
#[test]
fn grades_of_solutions_are_not_compared() {
    let mut table = record(LEARNED, 5);
    for (method, rate) in [("A", 96.0), ("B", 94.0), ("R", 99.0)] {
        table.rows.push(Row { data: "images".into(), ..Row::new("run", method, "rate", rate) });
    }
    let judged = |excludes: &str, of: [&str; 2], table: &Table| {
        let claim = format!("{{ id: c, says: S, source: P, check: {} }}", order(of));
        let ceiling = format!("{{ metric: rate, at_least: 95, excludes: [{excludes}] }}");
        let own = images_with(&claim, &format!("ceilings: [{ceiling}]\n"));
        super::tests::judged(&own, table, &Published::default())
    };
    let solved = judged("psnr", ["A", "R"], &table);
    assert_eq!(solved.verdict, Verdict::NotComparable, "{solved:?}");
    assert!(solved.reason.contains("rate is at least 96 (limit 95)"), "{solved:?}");
    for (excludes, of) in [("rate", ["A", "R"]), ("psnr", ["A", "B"])] {
        assert_ne!(
            judged(excludes, of, &table).verdict,
            Verdict::NotComparable,
            "{excludes} {of:?}"
        );
    }
    // A method whose success is not known does not solve the task.
    table.rows.retain(|row| row.metric != "rate" || row.method == "A");
    assert_ne!(judged("psnr", ["A", "R"], &table).verdict, Verdict::NotComparable);
    table.rows.push(Row { data: "images".into(), ..Row::new("run", "R", "rate", f64::NAN) });
    assert_ne!(judged("psnr", ["A", "R"], &table).verdict, Verdict::NotComparable);
}

/// Catches a verdict from one sample of random frequencies, and several samples where only the first is compared.
#[test]
fn few_samples_of_random_features_do_not_decide() {
    let check = format!("check: {}", order(["A", "R"]));
    for (seeds, expected) in
        [(1, Verdict::NotDecided), (4, Verdict::NotDecided), (5, Verdict::Reproduced)]
    {
        let judgement = judged(&check, &record(LEARNED, seeds));
        assert_eq!(judgement.verdict, expected, "{judgement:?}");
    }
    // The first sample is below A, the mean over samples above it. The interval is that over samples, which is the wider one.
    let mut table = Table::default();
    for (above, expected) in [(10.0, Verdict::WithinNoise), (20.0, Verdict::NotReproduced)] {
        table = record(LEARNED, 5);
        for row in table.rows.iter_mut().filter(|row| row.method == "R" && row.seed > 0) {
            row.value += above;
        }
        let judgement = judged(&check, &table);
        assert_eq!(judgement.verdict, expected, "{judgement:?}");
        assert!(judgement.statistics.contains("n = 5 seeds"), "{judgement:?}");
    }
    // B has no random features.
    assert_eq!(
        judged(&format!("check: {}", order(["A", "B"])), &table).verdict,
        Verdict::Reproduced
    );
}

/// Catches an order of two methods with random features whose interval leaves out their samples: of five, one fails and four differ in the
/// other direction.
#[test]
fn samples_on_both_sides_count() {
    let mut table = record(&[LEARNED, &[("other", "S", 20.0)]].concat(), 5);
    for row in table.rows.iter_mut().filter(|row| row.method == "S") {
        row.value += if row.seed == 0 { -20.0 } else { 3.0 };
    }
    let check = order(["R", "S"]).replace("run, method: S", "other, method: S");
    let judgement = judged(&format!("check: {check}"), &table);
    assert_eq!(judgement.verdict, Verdict::WithinNoise, "{judgement:?}");
    assert!(judgement.statistics.contains("n = 5 seeds"), "{judgement:?}");
}

/// Catches a mean over signals that a sentence calls one of a single signal, as a comparison with a printed value, which has no
/// repetitions, once did.
#[test]
fn signals_are_counted_whatever_the_check() {
    let table = IndexedTable::new(record(LEARNED, 5));
    let published = Published::default();
    let value = format!("{{ kind: value, of: {}, expect: 25 }}", select("A"));
    for check in [order(["A", "R"]), value] {
        let experiment = images(&format!("{{ id: c, says: s, source: s, check: {check} }}"));
        let context =
            Context { experiment: &experiment, record: Some(&table), published: &published };
        assert_eq!(super::Numbers::of(&experiment.claims[0], context).count(0), Some(6), "{check}");
    }
}

/// Catches a selection by name that takes other methods or signals, too, and one that lacks a signal and is judged on the others.
#[test]
fn several_methods_and_signals_are_selected_by_name() {
    let table = record(LEARNED, 5);
    let bound = |select: &str, limit: f64| {
        let of = format!("{{ group: run, metric: psnr{select} }}");
        judged(
            &format!("check: {{ kind: bound, each: true, of: {of}, at_least: {limit} }}"),
            &table,
        )
    };
    assert_eq!(bound("", 21.9).verdict, Verdict::NotReproduced);
    assert_eq!(bound(", methods: [A, R]", 21.9).verdict, Verdict::Reproduced);
    assert_eq!(bound(", signals: [image-4, image-5]", 23.9).verdict, Verdict::Reproduced);
    assert_eq!(bound(", signals: [image-0, image-5]", 23.9).verdict, Verdict::NotReproduced);
    let lacking = bound(", signals: [image-5, image-6]", 0.0);
    assert_eq!(lacking.verdict, Verdict::NotComparable);
    assert_eq!(lacking.reason, "1 of 2 signals of `run`");
}
