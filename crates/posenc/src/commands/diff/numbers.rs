//! Numbers of two records that differ significantly.
//!
//! At each abscissa, the values of a metric form two samples over signals and repetitions, one per record. If both have the same
//! signals and repetitions, the differences are tested (paired t), else the means (Welch's t). A difference counts if its 95 %
//! confidence interval excludes zero. If no value varies, any difference beyond rounding counts.

use std::collections::{BTreeMap, BTreeSet};

use posenc_experiments::record::{Row, is_of_machine};
use posenc_experiments::verdict::{
    Interval, LEVEL, difference_interval, mean_interval, show, show_interval,
};

/// Numbers with a smaller relative difference are equal: the order of summation or the processor may differ.
const ROUNDING: f64 = 1e-9;

/// The rows of both records at one abscissa.
type Point<'a> = [Vec<&'a Row>; 2];

/// The points of a metric of a method, by abscissas.
type Curve<'a> = BTreeMap<[String; 2], Point<'a>>;

/// A significant difference at one abscissa.
struct Finding<'a> {
    at: &'a Row,
    means: [f64; 2],
    difference: f64,
    /// How the difference was tested, in words.
    test: String,
}

/// Numbers of an item that differ significantly, as text, and what only the first or only the second record has: groups, else
/// methods, else metrics, else points. Times, rates and memory are compared only `with_times`.
pub fn compare(sides: [&[&Row]; 2], with_times: bool) -> (Vec<String>, [Vec<String>; 2]) {
    // Abscissas may be measured values, so those that agree up to rounding are equal.
    let rounded = |x: Option<f64>| x.map(|x| format!("{:.8e}", x + 0.0)).unwrap_or_default();
    let mut curves: BTreeMap<[&str; 3], Curve<'_>> = BTreeMap::new();
    for (side, rows) in sides.into_iter().enumerate() {
        for row in rows.iter().filter(|row| with_times || !is_of_machine(&row.metric)) {
            let curve = curves.entry([&row.group, &row.method, &row.metric]).or_default();
            curve.entry([rounded(row.x), rounded(row.y)]).or_default()[side].push(row);
        }
    }
    let changes = curves.iter().filter_map(|(name, curve)| change(name, curve)).collect();
    (changes, [0, 1].map(|side| surplus(&curves, side)))
}

fn surplus(curves: &BTreeMap<[&str; 3], Curve<'_>>, side: usize) -> Vec<String> {
    // Group, method and metric; a prefix stands for all that begins with it.
    let names = |side: usize| -> BTreeSet<&[&str]> {
        let has = |curve: &Curve<'_>| curve.values().any(|point| !point[side].is_empty());
        let own = curves.iter().filter(|(_, curve)| has(curve));
        own.flat_map(|(name, _)| (1..=3).map(move |length| &name[..length])).collect()
    };
    let others = names(1 - side);
    let parent = |name: &[&str]| others.contains(&name[..name.len() - 1]) || name.len() == 1;
    let only = names(side).into_iter().filter(|name| !others.contains(name) && parent(name));
    let text = |name: &[&str]| match name {
        [group, method, metric] => format!("{group}/{method} {metric}"),
        shorter => shorter.join("/"),
    };
    let points = curves.iter().filter_map(|(name, curve)| {
        let only = |point: &&Point<'_>| point[1 - side].is_empty() && !point[side].is_empty();
        let count = curve.values().filter(only).count();
        let is_shared = count > 0 && others.contains(&name[..]);
        is_shared.then(|| format!("{} at {count} more points", text(name)))
    });
    only.map(text).chain(points).collect()
}

fn change(&[group, method, metric]: &[&str; 3], curve: &Curve<'_>) -> Option<String> {
    let shared: Vec<_> =
        curve.values().filter(|point| point.iter().all(|s| !s.is_empty())).collect();
    let findings: Vec<Finding<'_>> = shared.iter().filter_map(|point| finding(point)).collect();
    // A value that is not finite counts as the largest difference.
    let size =
        |f: &Finding<'_>| if f.difference.is_nan() { f64::INFINITY } else { f.difference.abs() };
    let largest = findings.iter().max_by(|a, b| size(a).total_cmp(&size(b)))?;
    let unit = match largest.at.unit.as_str() {
        "" | "count" => String::new(),
        unit => format!(" {unit}"),
    };
    let mut text = format!("{group}/{method} {metric}: ");
    if shared.len() > 1 {
        text +=
            &format!("{} of {} points; largest difference at x = ", findings.len(), shared.len());
        text += &largest.at.x.map(show).unwrap_or_default();
        text += &largest.at.y.map(|y| format!(", y = {}", show(y))).unwrap_or_default();
        text += ": ";
    }
    let [before, after] = largest.means.map(show);
    let sign = if largest.difference < 0.0 { '−' } else { '+' };
    let difference = show(largest.difference.abs());
    Some(text + &format!("{before} → {after}{unit}, {sign}{difference}{}", largest.test))
}

/// The significant difference at an abscissa, if any.
fn finding<'a>(point: &Point<'a>) -> Option<Finding<'a>> {
    let pairing = |row: &&'a Row| (row.signal.as_str(), row.seed);
    let [a, b] = point.clone().map(|mut rows| {
        rows.sort_by(|x, y| pairing(x).cmp(&pairing(y)).then(x.value.total_cmp(&y.value)));
        rows
    });
    let is_paired = a.iter().map(pairing).eq(b.iter().map(pairing));
    let at = *a.first()?;
    let [mut a, mut b] =
        [&a, &b].map(|rows| rows.iter().map(|row| row.value).collect::<Vec<f64>>());
    let not_finite = [&a, &b].map(|side| side.iter().filter(|v| !v.is_finite()).count());
    let sizes = [a.len(), b.len()];
    if is_paired {
        // Two equal values that are not finite, such as NaN, do not differ, but the means would be NaN.
        let pairs = a.into_iter().zip(b);
        (a, b) = pairs.filter(|(a, b)| a.is_finite() || !is_same(*a, *b)).unzip();
    }
    let means = [mean_interval(&a).mean, mean_interval(&b).mean];
    if is_paired && a.iter().zip(&b).all(|(a, b)| is_same(*a, *b)) {
        return None;
    }
    let of = |difference: f64, test: String| Some(Finding { at, means, difference, test });
    if a.iter().chain(&b).any(|v| !v.is_finite()) {
        let [own, other] = [0, 1].map(|i| format!("{} of {}", not_finite[i], sizes[i]));
        let is_other = is_paired || not_finite[0] != not_finite[1];
        return of(f64::NAN, format!(" (not finite: {own}, {other})")).filter(|_| is_other);
    }
    let (interval, kind): (Interval, String) = if is_paired {
        let differences: Vec<f64> = a.iter().zip(&b).map(|(a, b)| b - a).collect();
        (mean_interval(&differences), format!("{} pairs", a.len()))
    } else {
        (difference_interval(&a, &b), format!("{} and {} values", a.len(), b.len()))
    };
    match interval.half_width {
        Some(half_width) if interval.mean.abs() <= half_width => None,
        Some(half_width) => {
            let text = show_interval(LEVEL, interval.mean, half_width).replace(" -", " −");
            of(interval.mean, format!(" ({text}, {kind})"))
        }
        None if is_same(means[0], means[1]) => None,
        None if a.len() == 1 && b.len() == 1 => of(interval.mean, " (one value each)".to_owned()),
        None => of(interval.mean, format!(" (no variation, {kind})")),
    }
}

/// Whether two numbers are equal up to rounding.
fn is_same(a: f64, b: f64) -> bool {
    let difference = (a - b).abs();
    // An infinite number equals only itself.
    let is_close = difference.is_finite() && difference <= ROUNDING * a.abs().max(b.abs());
    a == b || a.is_nan() && b.is_nan() || is_close
}

#[cfg(test)]
mod tests {
    use posenc_experiments::Profile;

    use super::*;

    fn rows(metric: &str, values: &[(&str, f64)]) -> Vec<Row> {
        let row = |(signal, value): &(&str, f64)| Row {
            signal: (*signal).into(),
            unit: "dB".into(),
            profile: Profile::Smoke,
            ..Row::new("g", "m", metric, *value)
        };
        values.iter().map(row).collect()
    }

    fn compared(a: &[Row], b: &[Row], with_times: bool) -> (Vec<String>, [Vec<String>; 2]) {
        let [a, b] = [a, b].map(|rows| rows.iter().collect::<Vec<&Row>>());
        compare([&a, &b], with_times)
    }

    fn texts(a: &[Row], b: &[Row]) -> Vec<String> {
        compared(a, b, false).0
    }

    /// Catches noise that is listed, a shift that is not, a pairing that is lost with the order of rows, and a difference
    /// with the wrong sign.
    #[test]
    fn only_significant_differences_are_listed() {
        let before = rows("psnr", &[("a", 20.0), ("b", 30.0), ("c", 40.0)]);
        let noise = rows("psnr", &[("a", 20.5), ("b", 29.4), ("c", 40.2)]);
        assert_eq!(texts(&before, &noise), [] as [String; 0]);
        // Far below the spread over signals, but with the same sign for each.
        let shift = rows("psnr", &[("c", 39.0), ("a", 18.9), ("b", 29.1)]);
        let found = texts(&before, &shift);
        assert_eq!(found, ["g/m psnr: 30 → 29 dB, −1 (95 % CI −1.248 to −0.7516, 3 pairs)"]);
        // Other signals: the means are far within their spread.
        let others = rows("psnr", &[("d", 39.0), ("e", 18.9), ("f", 29.1)]);
        assert_eq!(texts(&before, &others), [] as [String; 0]);
    }

    /// Catches rounding mistaken for a difference, a single number whose change is ignored, and a number that became NaN.
    #[test]
    fn single_numbers_differ_beyond_rounding() {
        let one = |value: f64| rows("rank", &[("-", value)]);
        assert_eq!(texts(&one(1.0), &one(1.0 + 1e-13)), [] as [String; 0]);
        assert_eq!(texts(&one(f64::NAN), &one(f64::NAN)), [] as [String; 0]);
        assert_eq!(texts(&one(1.0), &one(1.25)), ["g/m rank: 1 → 1.25 dB, +0.25 (one value each)"]);
        assert!(texts(&one(1.0), &one(f64::NAN))[0].contains("not finite: 0 of 1, 1 of 1"));
    }

    /// Catches NaN in both records that hides a difference of the other signals or lists their noise, and an infinite number that
    /// equals a finite one.
    #[test]
    fn numbers_that_are_not_finite_in_both_records_are_left_out() {
        let with_nan = |values: [f64; 3]| {
            let [a, b, c] = values;
            rows("psnr", &[("a", a), ("b", b), ("c", c), ("d", f64::NAN), ("e", f64::INFINITY)])
        };
        let before = with_nan([20.0, 30.0, 40.0]);
        assert_eq!(texts(&before, &with_nan([20.5, 29.4, 40.2])), [] as [String; 0]);
        let found = texts(&before, &with_nan([18.9, 29.1, 39.0]));
        assert_eq!(found, ["g/m psnr: 30 → 29 dB, −1 (95 % CI −1.248 to −0.7516, 3 pairs)"]);
        let found = texts(&before, &with_nan([20.0, 30.0, f64::NAN]));
        assert!(found[0].contains("not finite: 2 of 5, 3 of 5"), "{found:?}");
        let one = |value: f64| rows("psnr", &[("-", value)]);
        for other in [1.0, f64::NEG_INFINITY] {
            assert!(!texts(&one(f64::INFINITY), &one(other)).is_empty(), "{other}");
        }
    }

    /// Catches times that are compared without `--times`, and metrics of one side that are not listed.
    #[test]
    fn clocks_are_left_out_and_surplus_is_named() {
        let (fast, slow) = (rows("time", &[("-", 1.0)]), rows("time", &[("-", 2.0)]));
        assert!(texts(&fast, &slow).is_empty());
        assert_eq!(compared(&fast, &slow, true).0.len(), 1);
        let both = [rows("rank", &[("-", 1.0)]), rows("psnr", &[("-", 1.0)])].concat();
        let (_, surplus) = compared(&both, &rows("rank", &[("-", 1.0)]), false);
        assert_eq!(surplus, [vec!["g/m psnr".to_owned()], Vec::new()]);
        assert_eq!(compared(&[], &both, false).1[1], ["g"]);
        let points = [1.0, 2.0].map(|x| Row { x: Some(x), ..both[0].clone() });
        let (_, surplus) = compared(&points, &points[..1], false);
        assert_eq!(surplus, [vec!["g/m rank at 1 more points".to_owned()], Vec::new()]);
    }
}
