//! Verdicts on synthetic records.

use super::{Context, Evidence, Judgement, Verdict, difference_interval, judge};
use crate::published::Published;
use crate::record::{IndexedTable, Row, Table};
use crate::schema::protocol::testing::{A, B, demo};
use crate::schema::{Experiment, Profile};

const PUBLISHED: &str = "\
item,group,method,signal,metric,x,value,std,unit,source,note
fig1,run,A,some row,psnr,1,10,,dB,notebook,
fig1,run,A,some row,psnr,2,30,,dB,notebook,
fig1,run,A,some row,psnr,3,20,,dB,notebook,
fig1,notebook,N=2,,peak_psnr,,20,,dB,plot,
fig1,notebook,N=2,,psnr,1,10,1.5,dB,notebook,
fig1,notebook,N=3,,psnr,0,22.5,,dB,notebook,
";

/// An experiment with one group and one claim, which have these keys.
fn with_claim(group: &str, claim: &str) -> Experiment {
    demo(group, &format!("{{ id: c, says: s, source: s, {claim} }}"))
}

/// The judgement of an experiment's only claim.
pub(super) fn judged(experiment: &Experiment, record: &Table, published: &Published) -> Judgement {
    let record = IndexedTable::new(record.clone());
    let context = Context { experiment, record: Some(&record), published };
    judge(&experiment.claims[0], context)
}

/// Six seeds of each value, alternately `spread` below and above it. The half width of the 95 % interval is 1.15 times the spread.
fn record(profile: Profile, spread: f64, values: &[(&str, f64, f64)]) -> Table {
    let mut table = Table::default();
    for (method, x, value) in values {
        for seed in 0..6 {
            let sign = if seed % 2 == 0 { -1.0 } else { 1.0 };
            table.rows.push(Row {
                signal: "row 1".into(),
                seed,
                x: Some(*x),
                unit: "dB".into(),
                profile,
                ..Row::new("run", method, "psnr", value + sign * spread)
            });
        }
    }
    table
}

fn verdict(check: &str, record: &Table) -> Judgement {
    let group = "protocol: { kind: stable-rank, samples: [1] }, \
                 profiles: { smoke: { reduced: half, settings: { samples: [2] } } }";
    judged(&with_claim(group, &format!("check: {check}")), record, &published())
}

fn published() -> Published {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("demo.csv"), PUBLISHED).unwrap();
    let mut published = Published::default();
    published.read(directory.path(), "demo").unwrap();
    published
}

const CURVE: &[(&str, f64, f64)] = &[("A", 1.0, 10.5), ("A", 2.0, 30.5), ("A", 3.0, 21.5)];

/// Catches a metric that is subtracted from another unit's value or not at all, and a missing metric that passes.
#[test]
fn metrics_are_subtracted_unit_by_unit() {
    let mut record = record(Profile::Paper, 1.0, &[("A", 1.0, 10.0), ("B", 1.0, 12.0)]);
    let plain = format!("{{ kind: ordering, first: highest, of: [{A}, {B}] }}");
    let check = plain.replace("metric: psnr", "metric: psnr, minus: floor");
    let none = verdict(&check, &record);
    assert_eq!(none.verdict, Verdict::NotRun);
    assert!(none.reason.contains("no values for run/A floor"), "{}", none.reason);
    // A is about 4 above its floor and B about 1; without subtraction, B is higher.
    for row in record.rows.clone() {
        let above = if row.method == "A" { 4.0 } else { 1.0 } + 0.01 * row.seed as f64;
        record.rows.push(Row { metric: "floor".into(), value: row.value - above, ..row });
    }
    assert_eq!(verdict(&check, &record).verdict, Verdict::Reproduced);
    assert_ne!(verdict(&plain, &record).verdict, Verdict::Reproduced);
}

/// Catches a number of all signals that is compared with some of them, and one of a named signal that waits for the others.
#[test]
fn numbers_of_named_signals_need_no_others() {
    let directory = tempfile::tempdir().unwrap();
    let rows = "fig1,page,A,row 1,psnr,,10,,dB,code,\nfig1,run,A,,psnr,,10,,dB,paper,\n";
    let header = PUBLISHED.lines().next().unwrap();
    std::fs::write(directory.path().join("demo.csv"), format!("{header}\n{rows}")).unwrap();
    let mut published = Published::default();
    published.read(directory.path(), "demo").unwrap();
    let mut record = record(Profile::Paper, 0.1, &[("A", 1.0, 10.0)]);
    record.rows.iter_mut().for_each(|row| row.data = "pictures".into());
    let group = "data: { set: pictures, signals: 3 rows }, protocol: { kind: network-nd }";
    let judged_with = |of: &str, with: &str| {
        let of = format!("{{ group: run, method: A, metric: psnr{of} }}");
        let with = format!("{{ from: published, method: A, metric: psnr, {with} }}");
        let check =
            format!("{{ kind: agreement, of: {of}, with: {with}, tolerance: {{ absolute: 1 }} }}");
        judged(&with_claim(group, &format!("check: {check}")), &record, &published).verdict
    };
    assert_eq!(judged_with("", "group: run"), Verdict::NotComparable);
    assert_eq!(judged_with(", signal: row 1", "group: run"), Verdict::NotComparable);
    let named = judged_with(", signal: row 1", "group: page, signal: row 1");
    assert_eq!(named, Verdict::Reproduced);
}

/// Catches rows that a unit has several times at one abscissa and that are paired each with each.
#[test]
fn repeated_rows_are_paired_in_order() {
    let mut record = record(Profile::Paper, 0.0, &[("A", 1.0, 1.0), ("A", 1.0, 2.0)]);
    for row in record.rows.clone() {
        record.rows.push(Row { metric: "law".into(), ..row });
    }
    let side = |metric: &str| format!("{{ group: run, method: A, metric: {metric} }}");
    let check = format!(
        "{{ kind: equality, left: {}, right: {}, tolerance: {{ absolute: 0.1 }}, each: true }}",
        side("psnr"),
        side("law")
    );
    assert_eq!(verdict(&check, &record).verdict, Verdict::Reproduced);
}

/// Catches intervals over random splits of the same data that are as narrow as those of independent repetitions.
#[test]
fn intervals_over_overlapping_splits_are_wider() {
    let mut record = record(Profile::Paper, 1.0, &[("A", 1.0, 10.0), ("B", 1.0, 8.5)]);
    record.rows.iter_mut().filter(|row| row.method == "B").for_each(|row| row.value = 8.5);
    let judged_with = |overlap: &str| {
        let group = format!("protocol: {{ kind: network-nd{overlap} }}");
        let claim = format!("check: {{ kind: ordering, of: [{A}, {B}] }}");
        judged(&with_claim(&group, &claim), &record, &published())
    };
    // The half width is 1.15, and with six splits √(1 + 6/3) = 1.73 times as large.
    let plain = judged_with("");
    assert_eq!(plain.verdict, Verdict::Reproduced, "{plain:?}");
    assert!(plain.statistics.contains("1.5 (95 % CI 0.3504 to 2.65"), "{plain:?}");
    let third = judged_with(", overlap: 0.3333333333333333");
    assert_eq!(third.verdict, Verdict::WithinNoise, "{third:?}");
    assert!(
        third.statistics.contains("1.5 (95 % CI -0.4912 to 3.491, n = 6 overlapping splits"),
        "{third:?}"
    );
}

/// Catches an agreement that compares single values instead of means, too few points, or signals by their names, which differ between
/// papers and records.
#[test]
fn an_agreement_counts_points() {
    let full = record(Profile::Paper, 0.2, CURVE);
    let check = |tolerance: &str| {
        verdict(&format!("{{ kind: agreement, of: {A}, tolerance: {tolerance} }}"), &full)
    };
    let all = check("{ absolute: 1.7 }");
    assert_eq!(all.verdict, Verdict::Reproduced, "{all:?}");
    assert_eq!(all.measured, "3 of 3 points within tolerance");
    assert!(all.statistics.contains("A at x = 3: 21.5"), "{all:?}");
    assert_eq!(all.of_limit.map(|share| (100.0 * share).round()), Some(88.0));
    // The third point is off by 1.5, with an interval of ± 0.18.
    assert_eq!(check("{ absolute: 1.4 }").verdict, Verdict::WithinNoise);
    assert_eq!(check("{ absolute: 1 }").verdict, Verdict::NotReproduced);
    // Standard errors: the deviation of the sample is 0.22, √(0.048/6 + 0.048/8) is 0.118.
    let errors = |n: f64| check(&format!("{{ standard_errors: {n}, published_runs: 8 }}"));
    assert_eq!(errors(12.8).verdict, Verdict::Reproduced);
    let far = errors(12.6);
    assert_eq!((far.verdict, far.measured.contains("2 of 3")), (Verdict::NotReproduced, true));
    // A reduced run is not compared with the paper's numbers, and a missing one is not judged.
    let wide = format!("{{ kind: agreement, of: {A}, tolerance: {{ absolute: 2 }} }}");
    let reduced = record(Profile::Smoke, 0.0, CURVE);
    assert_eq!(verdict(&wide, &reduced).verdict, Verdict::NotComparable);
    let of_b = record(Profile::Paper, 0.0, &[("B", 1.0, 1.0)]);
    assert_eq!(verdict(&wide, &of_b).verdict, Verdict::NotRun);
}

/// Catches a statement about all methods that is decided by the first method on record.
#[test]
fn a_claim_about_all_methods_waits_for_all() {
    let check = "{ kind: bound, of: { group: run, metric: psnr }, at_least: 5 }";
    let mut values = vec![("A", 1.0, 10.0)];
    let partial = verdict(check, &record(Profile::Paper, 1.0, &values));
    assert_eq!(partial.verdict, Verdict::NotComparable);
    assert_eq!(partial.reason, "1 of 2 methods of `run`");
    values.push(("B", 1.0, 12.0));
    let all = verdict(check, &record(Profile::Paper, 1.0, &values));
    assert_eq!(all.verdict, Verdict::Reproduced, "{all:?}");
}

/// Catches values of another group that are matched by method name, or not at all if the paper gives no abscissa.
#[test]
fn an_agreement_compares_with_other_groups() {
    let record = record(Profile::Paper, 0.0, CURVE);
    let with = |metric: &str, absolute: f64| {
        let check = format!(
            "{{ kind: agreement, of: {{ group: run, method: A, metric: psnr, x: {{ from: 0, to: 2 }} }}, \
             with: {{ from: published, group: notebook, method: \"N=2\", metric: {metric} }}, \
             tolerance: {{ absolute: {absolute} }} }}"
        );
        verdict(&check, &record)
    };
    let one = with("psnr", 1.0);
    assert_eq!(one.verdict, Verdict::Reproduced, "{one:?}");
    assert!(one.measured.contains("deviation 1.5"), "{one:?}");
    // (10.5 + 30.5) / 2 = 20.5 against 20.
    assert_eq!(with("peak_psnr", 0.6).verdict, Verdict::Reproduced);
    assert_eq!(with("peak_psnr", 0.4).verdict, Verdict::NotReproduced);
}

/// Catches steps that are counted from the wrong side, and features that are searched from the wrong end.
#[test]
fn positions_are_counted_in_steps_of_the_grid() {
    let values = [10.0, 40.0, 90.0, 80.0, 45.0, 5.0];
    let curve: Vec<_> =
        values.iter().enumerate().map(|(i, v)| ("A", 10f64.powi(i as i32), *v)).collect();
    let record = record(Profile::Paper, 1.0, &curve);
    for (rest, fits) in [
        ("feature: highest, at: 100", true),
        ("feature: highest, at: 50", true),
        ("feature: highest, at: 300", true),
        ("feature: highest, at: 2000", false),
        ("feature: highest, at: 2000, steps: 1", true),
        ("feature: highest, at: 1.0e7, steps: 3", false),
        ("feature: highest, at: 1.0e7, steps: 4", true),
        ("feature: lowest, at: 100000", true),
        ("feature: first-above, below_highest: 48, at: 100", true),
        ("feature: first-above, below_highest: 49, at: 10", false),
        ("feature: first-above, below_highest: 51, at: 10", true),
    ] {
        let expected = if fits { Verdict::Reproduced } else { Verdict::NotReproduced };
        let judgement = verdict(&format!("{{ kind: position, of: {A}, {rest} }}"), &record);
        assert_eq!(judgement.verdict, expected, "{rest}: {judgement:?}");
    }
}

/// Catches a run that diverged, or a number whose square overflows, that decides a claim of any kind.
#[test]
fn measurements_that_are_not_finite_decide_nothing() {
    let curve: Vec<_> = CURVE.iter().flat_map(|(_, x, y)| [("A", *x, *y), ("B", *x, *y)]).collect();
    let whole = record(Profile::Paper, 0.5, &curve);
    let at_one = A.replace(" }", ", x: 1 }");
    let deviation = A.replace(" }", ", statistic: deviation }");
    for check in [
        format!("kind: value, of: {at_one}, expect: 10, tolerance: {{ absolute: 99 }}"),
        format!("kind: value, of: {at_one}, expect: 99, tolerance: {{ absolute: 1 }}"),
        format!("kind: ordering, margin: 9, of: [{A}, {B}]"),
        format!("kind: ordering, first: lowest, of: [{B}, {A}]"),
        format!("kind: ratio, numerator: {A}, denominator: {B}, at_least: 0.5"),
        format!("kind: trend, of: {A}, direction: constant, slack: 99"),
        format!("kind: trend, of: {A}, direction: decreasing"),
        format!("kind: bound, of: {A}, at_least: -99"),
        format!("kind: bound, of: {B}, at_most: 1"),
        format!("kind: bound, each: true, of: {deviation}, at_most: 99"),
        format!("kind: equality, left: {A}, right: {B}, tolerance: {{ absolute: 99 }}"),
        format!("kind: agreement, of: {A}, tolerance: {{ absolute: 99 }}"),
        format!("kind: position, of: {A}, feature: highest, at: 2"),
    ] {
        let check = format!("{{ {check} }}");
        assert_ne!(verdict(&check, &whole).verdict, Verdict::NotDecided, "{check}");
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e308] {
            let mut broken = whole.clone();
            broken.rows.iter_mut().for_each(|row| {
                row.value = if (row.seed, row.x) == (0, Some(1.0)) { value } else { row.value };
            });
            let judgement = verdict(&check, &broken);
            assert_eq!(judgement.verdict, Verdict::NotDecided, "{check}: {judgement:?}");
            assert!(judgement.reason.contains(" at x = 1, which"), "{judgement:?}");
        }
    }
    let none = record(Profile::Paper, 0.0, &[("A", 1.0, 1.0), ("B", 1.0, 0.0)]);
    let ratio = format!("{{ kind: ratio, numerator: {A}, denominator: {B}, at_least: 2 }}");
    assert_eq!(verdict(&ratio, &none).verdict, Verdict::NotDecided);
}

/// Catches a claim that is decided on those of its points that happen to be on record.
#[test]
fn a_part_of_the_points_decides_nothing() {
    let part = record(Profile::Paper, 0.1, &[("A", 1.0, 10.0), ("A", 2.0, 30.0), ("B", 2.0, 29.0)]);
    for (check, reason) in [
        (
            format!("{{ kind: ordering, of: [{A}, {B}] }}"),
            "no values for run/B psnr at 1 of 2 points",
        ),
        (
            format!("{{ kind: ordering, of: [{B}, {A}] }}"),
            "no values for run/B psnr at 1 of 2 points",
        ),
        (
            format!("{{ kind: ratio, numerator: {A}, denominator: {B}, at_least: 1 }}"),
            "no values for run/B psnr at 1 of 2 points",
        ),
        (
            format!("{{ kind: agreement, of: {A}, tolerance: {{ absolute: 9 }} }}"),
            "no values for run/A psnr at 1 of 3 points",
        ),
    ] {
        let judgement = verdict(&check, &part);
        assert_eq!((judgement.verdict, &*judgement.reason), (Verdict::NotRun, reason), "{check}");
    }
    // A claim about some abscissas needs these only.
    let one = A.replace(" }", ", x: 1 }");
    let with = A.replace(" }", ", from: published }");
    let check =
        format!("{{ kind: agreement, of: {one}, with: {with}, tolerance: {{ absolute: 1 }} }}");
    assert_eq!(verdict(&check, &part).verdict, Verdict::Reproduced);
}

/// Catches a parameter count that is not judged because of fewer training images, and one of a smaller model that is judged.
#[test]
fn counts_are_comparable_if_the_model_is_the_papers() {
    let check = "{ kind: value, of: { group: run, method: A, metric: params }, expect: 7, tolerance: { absolute: 0 } }";
    for (settings, comparable) in [("epochs: 1, side: 64", true), ("epochs: 1, width: 8", false)] {
        let group = format!(
            "data: {{ set: some }}, protocol: {{ kind: network-nd, learning_rate: 0.1, epochs: 9, depth: 1 }}, \
             profiles: {{ smoke: {{ reduced: half, settings: {{ {settings} }} }} }}"
        );
        let mut record = record(Profile::Smoke, 0.0, &[("A", 1.0, 7.0)]);
        record.rows.iter_mut().for_each(|r| r.metric = "params".into());
        let experiment = with_claim(&group, &format!("check: {check}"));
        let verdict = judged(&experiment, &record, &Published::default()).verdict;
        let expected = if comparable { Verdict::Reproduced } else { Verdict::NotComparable };
        assert_eq!(verdict, expected, "{settings}");
    }
}

/// Catches a deviation that is computed over the abscissa, or over both methods at once.
#[test]
fn statistics_of_selections() {
    let mut record = record(Profile::Paper, 0.5, &[("A", 1.0, 10.0), ("A", 2.0, 30.0)]);
    record.rows.extend(self::record(Profile::Paper, 2.0, &[("B", 1.0, 0.0), ("B", 2.0, 0.0)]).rows);
    let [a, b] = [A, B].map(|select| select.replace(" }", ", statistic: deviation }"));
    let bound = format!("{{ kind: bound, of: {a}, at_most: 0.5, at_least: 0.5 }}");
    let judgement = verdict(&bound, &record);
    // A single deviation over all repetitions has no uncertainty.
    assert_eq!(judgement.verdict, Verdict::NotDecided, "{judgement:?}");
    assert!(judgement.measured.contains("A, x = 1, 0.5 (limit 0.5)"), "{judgement:?}");
    let quotient = |least: f64| {
        let check =
            format!("{{ kind: ratio, numerator: {b}, denominator: {a}, at_least: {least} }}");
        verdict(&check, &record)
    };
    // With one repetition left out, the deviations are within a few percent of 2 and 0.5.
    assert_eq!(quotient(3.9).verdict, Verdict::Reproduced, "{:?}", quotient(3.9));
    assert_eq!(quotient(4.1).verdict, Verdict::NotReproduced, "{:?}", quotient(4.1));
    // A sentence may name any two selections, also a mean and a deviation, whose quotient would mean nothing.
    let order = format!("{{ label: a, kind: ordering, of: [{A}, {B}] }}");
    let claim = format!("checks: [{order}, {}]", bound.replace("{ kind", "{ label: b, kind"));
    let experiment = with_claim("protocol: { kind: stable-rank, samples: [1] }", &claim);
    let published = published();
    let record = IndexedTable::new(record);
    let context = Context { experiment: &experiment, record: Some(&record), published: &published };
    let numbers = super::Numbers::of(&experiment.claims[0], context);
    assert!(numbers.ratio(0, 1).is_some() && numbers.ratio(0, 2).is_none());
    let single = "{ kind: bound, of: { group: run, metric: psnr }, at_least: -3 }";
    let judgement = verdict(single, &record);
    assert_eq!(
        (judgement.verdict, judgement.statistics.as_str()),
        (Verdict::Reproduced, "n = 6 seeds at 4 points")
    );
    // The interval of B is ± 2.3, and single values are below the limit.
    let near = single.replace("-3", "-1.5");
    assert_eq!(verdict(&near, &record).verdict, Verdict::WithinNoise);
    let each = near.replace("at_least", "each: true, at_least");
    assert_eq!(verdict(&each, &record).verdict, Verdict::NotReproduced);
}

/// Catches an order of one method's values that gives all members the same name.
#[test]
fn members_of_an_order_have_distinct_names() {
    let record =
        record(Profile::Paper, 0.5, &[("A", 1.0, 10.0), ("A", 2.0, 30.0), ("B", 2.0, 0.0)]);
    let select =
        |method: &str, x: &str| format!("{{ group: run, method: {method}, metric: psnr{x} }}");
    let text = |a: &str, b: &str| {
        verdict(&format!("{{ kind: ordering, of: [{a}, {b}] }}"), &record).measured
    };
    assert_eq!(text(&select("A", ", x: 2"), &select("B", ", x: 2")), "A 30 > B 0");
    // One place against another pairs signals and seeds; whole curves are paired place by place.
    let places = text(&select("A", ", x: 2"), &select("A", ", x: 1"));
    assert_eq!(places, "x = 2 30 > x = 1 10");
    let apart = text(&select("A", ", x: { from: 2, to: 3 }"), &select("A", ", x: 1"));
    assert_eq!(apart, "–");
}

/// Catches an interval that is too wide or too narrow, a difference with the wrong sign, and rounding errors that count as noise.
#[test]
fn a_difference_of_independent_samples() {
    let (a, b) = ([1.0, 2.0, 3.0], [4.0, 6.0, 8.0]);
    let found = difference_interval(&a, &b);
    // Welch: standard error √(1/3 + 4/3), 2.94 degrees of freedom, t = 3.22.
    assert_eq!((found.n, found.mean), (6, 4.0));
    assert!((found.half_width.unwrap() - 3.22 * (5.0f64 / 3.0).sqrt()).abs() < 0.03, "{found:?}");
    // The prediction interval of one more value is ± t₂ s √(1 + 1/3) = 4.303 · 1.155.
    let single = difference_interval(&[7.0], &a);
    assert_eq!(single.mean, -5.0);
    assert!((single.half_width.unwrap() - 4.968).abs() < 0.01, "{single:?}");
    assert_eq!(difference_interval(&[7.0], &[8.0]).half_width, None);
    assert_eq!(difference_interval(&[1.0; 4], &[1.5; 3]).half_width, None);
}

/// Catches a trend that holds for values without an abscissa.
#[test]
fn a_trend_needs_an_abscissa() {
    let mut record = record(Profile::Paper, 0.0, CURVE);
    record.rows.iter_mut().for_each(|row| row.x = None);
    let check = "{ kind: trend, of: { group: run, metric: psnr }, direction: increasing }";
    let judgement = verdict(check, &record);
    assert_eq!(judgement.verdict, Verdict::NotRun, "{judgement:?}");
    assert!(judgement.reason.contains("no x"), "{judgement:?}");
}

/// Catches a reduced run that is compared with a full one, and equal runs at two profiles that are not compared.
#[test]
fn methods_at_different_profiles_are_not_compared() {
    let a = ("A", 1.0, 10.0);
    let b = ("B", 1.0, 5.0);
    let both = |profile| {
        let mut table = record(Profile::Paper, 0.1, &[a]);
        table.rows.extend(record(profile, 0.1, &[b]).rows);
        table
    };
    for check in [
        format!("{{ kind: ordering, of: [{A}, {B}] }}"),
        format!("{{ kind: ratio, numerator: {A}, denominator: {B}, at_least: 1.5 }}"),
        format!("{{ kind: equality, left: {A}, right: {B}, tolerance: {{ absolute: 9 }} }}"),
    ] {
        // `quick` does what `paper` does; `smoke` has other samples.
        assert_eq!(verdict(&check, &both(Profile::Quick)).verdict, Verdict::Reproduced, "{check}");
        let judgement = verdict(&check, &both(Profile::Smoke));
        assert_eq!(judgement.verdict, Verdict::NotComparable, "{check}");
        assert!(judgement.reason.contains("A at `paper`, B at `smoke`"), "{judgement:?}");
    }
}

/// Catches a ratio of times of two devices.
#[test]
fn times_of_different_devices_are_not_compared() {
    let (above, below) = (A.replace("psnr", "time"), B.replace("psnr", "time"));
    let check =
        format!("{{ kind: ratio, numerator: {above}, denominator: {below}, at_least: 1.5 }}");
    let mut table = record(Profile::Paper, 0.1, &[("A", 1.0, 10.0), ("B", 1.0, 5.0)]);
    table.rows.iter_mut().for_each(|row| row.metric = "time".into());
    assert_eq!(verdict(&check, &table).verdict, Verdict::Reproduced);
    let of_a = table.rows.iter_mut().filter(|row| row.method == "A");
    of_a.for_each(|row| row.device = "GPU".into());
    let judgement = verdict(&check, &table);
    assert_eq!(judgement.verdict, Verdict::NotComparable, "{judgement:?}");
    assert!(judgement.reason.contains("different devices: GPU, cpu"), "{judgement:?}");
}

/// Catches a heat map whose rows are all compared with the last row of the other map.
#[test]
fn maps_are_paired_by_both_coordinates() {
    let mut record = record(Profile::Paper, 0.0, &[("A", 1.0, 0.0), ("B", 1.0, 0.0)]);
    for row in record.rows.clone() {
        record.rows.push(Row { y: Some(2.0), value: 7.0, ..row });
    }
    let check =
        format!("{{ kind: equality, left: {A}, right: {B}, tolerance: {{ absolute: 0 }} }}");
    assert_eq!(verdict(&check, &record).verdict, Verdict::Reproduced);
    record.rows.last_mut().unwrap().value = 8.0;
    assert_eq!(verdict(&check, &record).verdict, Verdict::WithinNoise);
    let each = check.replace("kind: equality", "kind: equality, each: true");
    assert_eq!(verdict(&each, &record).verdict, Verdict::NotReproduced);
}

/// Catches shown means that include unpaired values.
#[test]
fn an_order_is_decided_and_shown_by_its_pairs() {
    let check = &format!("{{ kind: ordering, of: [{A}, {B}] }}");
    let mut table = record(Profile::Paper, 0.1, &[("A", 1.0, 5.0), ("B", 1.0, 4.0)]);
    // A has a value of another row, but B has none.
    let other = record(Profile::Paper, 0.1, &[("A", 1.0, -50.0)]).rows.into_iter();
    table.rows.extend(other.map(|row| Row { signal: "row 2".into(), ..row }));
    assert_eq!(verdict(check, &table).measured, "A 5 > B 4");
    let ratio = format!("{{ kind: ratio, numerator: {A}, denominator: {B}, at_least: 1.2 }}");
    assert_eq!(verdict(&ratio, &table).verdict, Verdict::Reproduced);
    // One method is paired with all methods, not only with the last one.
    let both = record(Profile::Paper, 0.1, &[("A", 1.0, 10.0), ("B", 1.0, 50.0)]);
    let all = format!("{{ kind: ordering, of: [{B}, {{ group: run, metric: psnr }}] }}");
    assert_eq!(verdict(&all, &both).measured, "B 50 > run 30");
}

/// Catches repeated rows that are paired each with each, so that a record of megabytes fills the memory.
#[test]
fn repeated_rows_are_not_paired_each_with_each() {
    let values = [("A", 1.0, 5.0), ("B", 1.0, 4.0)];
    for (times, expected) in [(1, Verdict::Reproduced), (30, Verdict::NotRun)] {
        let table = record(Profile::Paper, 0.1, &values.repeat(times));
        for check in [
            format!("{{ kind: ordering, of: [{A}, {B}] }}"),
            format!("{{ kind: ratio, numerator: {A}, denominator: {B}, at_least: 1.1 }}"),
            format!("{{ kind: equality, left: {A}, right: {B}, tolerance: {{ absolute: 2 }} }}"),
        ] {
            let judgement = verdict(&check, &table);
            assert_eq!(judgement.verdict, expected, "{check}: {judgement:?}");
            assert!(times == 1 || judgement.reason.contains("duplicate rows"), "{judgement:?}");
        }
    }
}

/// An experiment on images, whose signals are samples, with one claim.
fn on_images(check: &str, claim: &str) -> Experiment {
    let group = "data: { set: images }, protocol: { kind: network-nd, epochs: 9 }, \
                 profiles: { quick: { reduced: 3 of 9 epochs, settings: { epochs: 3 } } }";
    with_claim(group, &format!("{claim} check: {check}"))
}

/// Values by method, signal, seed and abscissa.
fn images(values: &[(&str, &str, u64, f64, f64)]) -> Table {
    let row = |(method, signal, seed, x, value): &(&str, &str, u64, f64, f64)| Row {
        signal: (*signal).into(),
        seed: *seed,
        x: Some(*x),
        unit: "dB".into(),
        data: "images".into(),
        ..Row::new("run", method, "psnr", *value)
    };
    values.iter().map(row).collect::<Vec<_>>().into()
}

fn of_images(check: &str, claim: &str, record: &Table) -> Judgement {
    judged(&on_images(check, claim), record, &Published::default())
}

const ORDER: &str = "{ kind: ordering, smallest_effect: 0.5, of: [{ group: run, method: A, metric: psnr }, \
                     { group: run, method: B, metric: psnr }] }";

/// Catches abscissas, seeds of one image, or a duplicate image that count as repetitions.
#[test]
fn only_images_are_repetitions_if_there_are_several() {
    let mut values = Vec::new();
    for (image, difference) in [("row 1", 1.0), ("row 2", 3.0), ("row 2 (2)", 3.0), ("row 3", 2.0)]
    {
        for seed in 0..2 {
            for x in 0..5 {
                values.push(("A", image, seed, f64::from(x), 20.0 + difference));
                values.push(("B", image, seed, f64::from(x), 20.0));
            }
        }
    }
    let judgement = of_images(ORDER, "", &images(&values));
    assert!(judgement.statistics.contains("n = 3 signals"), "{judgement:?}");
    // 2 ± 4.30 · 1/√3.
    assert_eq!(judgement.verdict, Verdict::WithinNoise);
    // The value that a bound shows is the mean of three rows, too: (21 + 23 + 22)/3.
    let bound = "{ kind: bound, of: { group: run, method: A, metric: psnr }, at_most: 30 }";
    let judgement = of_images(bound, "", &images(&values));
    assert!(judgement.measured.contains(" 22 (limit 30)"), "{judgement:?}");
    let one: Vec<_> = values.into_iter().filter(|v| v.1 == "row 1").collect();
    let seeds = of_images(ORDER, "", &images(&one));
    assert!(seeds.statistics.contains("n = 2 seeds"), "{seeds:?}");
    let single: Vec<_> = one.into_iter().filter(|v| v.2 == 0).collect();
    let judgement = of_images(ORDER, "", &images(&single));
    assert_eq!(judgement.verdict, Verdict::NotDecided, "{judgement:?}");
    assert!(judgement.reason.contains("uncertainty is unknown"), "{judgement:?}");
}

/// Catches a significant difference below the smallest effect that counts as an effect, and a margin that is ignored.
#[test]
fn orders_have_a_smallest_effect_and_margins() {
    let values = |difference: f64| {
        let mut values = Vec::new();
        for (image, noise) in [("a", -0.01), ("b", 0.0), ("c", 0.01)] {
            values.push(("A", image, 0, 0.0, 20.0 + difference + noise));
            values.push(("B", image, 0, 0.0, 20.0));
        }
        images(&values)
    };
    for (difference, expected) in [
        (0.6, Verdict::Reproduced),
        (0.4, Verdict::Negligible),
        (-0.4, Verdict::Negligible),
        (-0.6, Verdict::NotReproduced),
        (0.01, Verdict::WithinNoise),
    ] {
        let judgement = of_images(ORDER, "", &values(difference));
        assert_eq!(judgement.verdict, expected, "{difference}: {judgement:?}");
        assert!(judgement.p().is_some());
    }
    let margin = ORDER.replace("smallest_effect: 0.5", "margin: 0.5");
    for (difference, expected) in
        [(-0.4, Verdict::Reproduced), (-0.51, Verdict::WithinNoise), (-0.6, Verdict::NotReproduced)]
    {
        let judgement = of_images(&margin, "", &values(difference));
        assert_eq!(judgement.verdict, expected, "{difference}: {judgement:?}");
    }
    // The margin is shown, or the order of the means would look wrong.
    let judgement = of_images(&margin, "", &values(-0.4));
    assert_eq!(judgement.measured, "A 19.6 > B 20 − 0.5");
}

/// Catches the spread between images used as the uncertainty of a comparison on the same images.
#[test]
fn comparisons_on_the_same_images_ignore_the_spread_between_images() {
    let values: Vec<_> = (0..8)
        .map(|i| ("A", ["a", "b", "c", "d"][i % 4], (i / 4) as u64, 0.0, 20.0 + (i % 4) as f64))
        .collect();
    let check = |more: &str| {
        format!(
            "{{ kind: agreement, of: {A}, with: {{ from: published, group: notebook, method: N=3, metric: psnr }}, \
             tolerance: {{ absolute: 0.5 }}{more} }}"
        )
    };
    let of_images = |check: &str| judged(&on_images(check, ""), &images(&values), &published());
    // Both seeds have the mean 21.5, which is off by 1 dB; images differ from it by up to 1.5 dB.
    assert_eq!(of_images(&check("")).verdict, Verdict::NotReproduced);
    let sampled = of_images(&check(", sample: signals"));
    assert_eq!(sampled.verdict, Verdict::WithinNoise, "{sampled:?}");
}

/// Catches a claim of this project that counts as reproduced, evidence in too good a class, and other data that hide a reduction.
#[test]
fn evidence_is_the_weakest_of_the_rows() {
    let values: Vec<_> = (0..3)
        .flat_map(|i| {
            let image = ["a", "b", "c"][i];
            [("A", image, 0, 0.0, 22.0 + 0.01 * i as f64), ("B", image, 0, 0.0, 20.0)]
        })
        .collect();
    let mut record = images(&values);
    let class = |claim: &str, record: &Table| {
        let judgement = of_images(ORDER, claim, record);
        (judgement.verdict, judgement.evidence)
    };
    assert_eq!(class("", &record), (Verdict::Reproduced, Some(Evidence::PaperFull)));
    // A set that the paper did not use is other data, at any profile.
    let mut elsewhere = on_images(ORDER, "");
    elsewhere.groups[0].is_on_papers_data = false;
    let other = judged(&elsewhere, &record, &Published::default());
    assert_eq!((other.evidence, other.condition.as_str()), (Some(Evidence::OtherData), "images"));
    let ours = "ours: true,";
    assert_eq!(class(ours, &record), (Verdict::Holds, Some(Evidence::Ours)));
    let opposite = ORDER.replace("A", "\0").replace("B", "A").replace("\0", "B");
    let failed = of_images(&opposite, ours, &record);
    assert_eq!(failed.verdict, Verdict::DoesNotHold, "{failed:?}");
    let repeats = "ours: true, repeats: other/fig2#d,";
    assert_eq!(class(repeats, &record), (Verdict::Holds, Some(Evidence::Repeated)));
    record.rows.iter_mut().for_each(|row| row.profile = Profile::Quick);
    let reduced = of_images(ORDER, "", &record);
    assert_eq!(reduced.evidence, Some(Evidence::Reduced));
    assert_eq!(reduced.condition, "3 of 9 epochs");
    record.rows[0].data = "user:images".into();
    let own = of_images(ORDER, "", &record);
    assert_eq!((own.verdict, own.evidence), (Verdict::Reproduced, Some(Evidence::OtherData)));
    assert_eq!(own.condition, "user:images; 3 of 9 epochs");
    record.rows[1].data = "others".into();
    let both = of_images(ORDER, "", &record);
    assert_eq!(both.condition, "others; 3 of 9 epochs · user:images; 3 of 9 epochs");
    assert_eq!(class("", &Table::default()), (Verdict::NotRun, None));
}

/// Catches a curve without uncertainty that is judged by its mean, and a t-test over its abscissas.
#[test]
fn deterministic_orders_hold_at_every_point() {
    let check = &format!("{{ kind: ordering, of: [{A}, {B}] }}");
    let curve = |at_two: f64| {
        let values = [("A", 1.0, 5.0), ("A", 2.0, at_two), ("B", 1.0, 1.0), ("B", 2.0, 2.0)];
        let mut table = record(Profile::Paper, 0.0, &values);
        table.rows.retain(|row| row.seed == 0);
        table
    };
    let all = verdict(check, &curve(3.0));
    assert_eq!((all.verdict, all.p()), (Verdict::Reproduced, None), "{all:?}");
    assert_eq!(all.evidence, Some(Evidence::Theory));
    let one = verdict(check, &curve(1.0));
    assert_eq!(one.verdict, Verdict::NotReproduced, "{one:?}");
    assert!(one.reason.contains("holds at 1 of 2 points"), "{one:?}");
}
