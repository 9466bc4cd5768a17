//! Numbers of two records that differ significantly.
//!
//! At each abscissa, the values of a metric form two samples over signals and repetitions, one per record. If both have the same
//! signals and repetitions, the differences are tested (paired t), else the means (Welch's t). A difference counts if its 95 %
//! confidence interval excludes zero. If no value varies, any difference beyond rounding counts.

use std::collections::HashMap;

use anyhow::Result;
use posenc_experiments::record::{Keys, Row, is_of_machine};
use posenc_experiments::verdict::{Interval, difference_interval, mean_interval, show};

/// Numbers with a smaller relative difference are equal: the order of summation or the processor may differ.
const ROUNDING: f64 = 1e-9;

/// Differences between two records of an item.
pub struct Comparison {
    /// Numbers that differ significantly: `group/method metric` with means, difference and interval.
    pub changes: Vec<String>,
    /// Entries that only the first or only the second record has: `group/method metric` (with the number of additional points if
    /// both have the metric), or `group/method` or `group` if all of its metrics are missing in the other.
    pub surplus: [Vec<String>; 2],
}

/// A row with its record (`side` 0 or 1) and its rounded abscissas.
struct Single<'a> {
    side: usize,
    row: &'a Row,
    x: String,
    y: String,
}

/// Values of both records at one abscissa; at least one value.
type Place<'a> = Vec<&'a Single<'a>>;

/// All points of a metric of a method; at least one point.
type Curve<'p, 'a> = Vec<&'p Place<'a>>;

/// A significant difference at one abscissa.
struct Finding<'a> {
    at: &'a Row,
    means: [f64; 2],
    difference: f64,
    /// How the difference was tested, in words.
    test: String,
}

/// Compares the rows of an item. Machine-dependent metrics (times, rates, memory) are compared only `with_times`.
pub fn compare(sides: [&[Row]; 2], with_times: bool) -> Result<Comparison> {
    // Abscissas may be measured values, so those that agree up to rounding are equal.
    let rounded = |x: Option<f64>| x.map(|x| format!("{:.8e}", x + 0.0)).unwrap_or_default();
    let mut singles = Vec::new();
    for (side, rows) in sides.into_iter().enumerate() {
        for row in rows.iter().filter(|row| with_times || !is_of_machine(&row.metric)) {
            singles.push(Single { side, row, x: rounded(row.x), y: rounded(row.y) });
        }
    }
    let keys = Keys::of(&singles).by(|s| &s.row.group).by(|s| &s.row.method).by(|s| &s.row.metric);
    let places: Vec<Place<'_>> = keys.by(|s| &s.x).by(|s| &s.y).groups()?;
    let keys = Keys::of(&places).by(|p| &p[0].row.group).by(|p| &p[0].row.method);
    let curves: Vec<Curve<'_, '_>> = keys.by(|p| &p[0].row.metric).groups()?;
    Ok(Comparison {
        changes: curves.iter().filter_map(|curve| change(curve)).collect(),
        surplus: [0, 1].map(|side| surplus(&curves, side)),
    })
}

fn is_on(place: &Place<'_>, side: usize) -> bool {
    place.iter().any(|single| single.side == side)
}

fn first<'a>(curve: &Curve<'_, 'a>) -> &'a Row {
    curve[0][0].row
}

/// Entries that only one side has: whole groups and methods as one entry, else metrics, else numbers of points.
fn surplus(curves: &[Curve<'_, '_>], side: usize) -> Vec<String> {
    let only_here = |place: &&&Place<'_>| !is_on(place, 1 - side);
    let only: Vec<usize> = curves.iter().map(|c| c.iter().filter(only_here).count()).collect();
    let is_whole = |(curve, only): (&Curve<'_, '_>, &usize)| *only == curve.len();
    let mut whole_groups: HashMap<&str, bool> = HashMap::new();
    for (curve, only) in curves.iter().zip(&only) {
        *whole_groups.entry(&first(curve).group).or_insert(true) &= is_whole((curve, only));
    }
    let mut methods: Vec<(String, bool, Vec<String>)> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    for (curve, only) in curves.iter().zip(&only) {
        let Row { group, method, metric, .. } = first(curve);
        let method = match whole_groups.get(group.as_str()) {
            Some(true) => group.clone(),
            _ => format!("{group}/{method}"),
        };
        let at = *known.entry(method.clone()).or_insert_with(|| {
            methods.push((method.clone(), true, Vec::new()));
            methods.len() - 1
        });
        let Some((_, all, found)) = methods.get_mut(at) else { continue };
        let is_whole = is_whole((curve, only));
        *all &= is_whole;
        if *only > 0 {
            let more = if is_whole { String::new() } else { format!(" at {only} more points") };
            found.push(format!("{method} {metric}{more}"));
        }
    }
    let entries = methods.into_iter();
    entries.flat_map(|(method, all, found)| if all { vec![method] } else { found }).collect()
}

fn change(curve: &Curve<'_, '_>) -> Option<String> {
    let places: Vec<_> = curve.iter().filter(|place| is_on(place, 0) && is_on(place, 1)).collect();
    let compared = places.len();
    let findings: Vec<Finding<'_>> =
        places.into_iter().filter_map(|place| finding(place)).collect();
    // A value that is not finite counts as the largest difference.
    let size =
        |f: &Finding<'_>| if f.difference.is_nan() { f64::INFINITY } else { f.difference.abs() };
    let largest = findings.iter().max_by(|a, b| size(a).total_cmp(&size(b)))?;
    let Row { group, method, metric, unit, .. } = first(curve);
    let unit = match unit.as_str() {
        "" | "count" => String::new(),
        unit => format!(" {unit}"),
    };
    let mut text = format!("{group}/{method} {metric}: ");
    if compared > 1 {
        text += &format!("{} of {compared} points; largest difference at x = ", findings.len());
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
fn finding<'a>(place: &Place<'a>) -> Option<Finding<'a>> {
    let pairing = |row: &&'a Row| (row.signal.as_str(), row.seed);
    let [a, b] = [0, 1].map(|side| {
        let mut rows: Vec<&Row> = place.iter().filter(|s| s.side == side).map(|s| s.row).collect();
        rows.sort_by(|x, y| pairing(x).cmp(&pairing(y)).then(x.value.total_cmp(&y.value)));
        rows
    });
    let is_paired = a.iter().map(pairing).eq(b.iter().map(pairing));
    let at = place.first()?.row;
    let [mut a, mut b] = [a, b].map(|rows| rows.iter().map(|row| row.value).collect::<Vec<f64>>());
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
    let of =
        |interval: Interval, test: String| Finding { at, means, difference: interval.mean, test };
    if a.iter().chain(&b).any(|v| !v.is_finite()) {
        let is_other = is_paired || not_finite[0] != not_finite[1];
        let [own, other] = [0, 1].map(|i| format!("{} of {}", not_finite[i], sizes[i]));
        let test = format!(" (not finite: {own}, {other})");
        let difference = Interval { n: 0, mean: f64::NAN, half_width: None, p: None };
        return is_other.then(|| of(difference, test));
    }
    let (interval, kind) = if is_paired {
        let differences: Vec<f64> = a.iter().zip(&b).map(|(a, b)| b - a).collect();
        (mean_interval(&differences), format!("{} pairs", a.len()))
    } else {
        (difference_interval(&a, &b), format!("{} and {} values", a.len(), b.len()))
    };
    match interval.half_width {
        Some(half_width) if interval.mean.abs() <= half_width => None,
        Some(half_width) => {
            let test = format!(" ± {} ({kind})", show(half_width));
            Some(of(interval, test))
        }
        None if is_same(means[0], means[1]) => None,
        None if a.len() == 1 && b.len() == 1 => Some(of(interval, " (one value each)".to_owned())),
        None => Some(of(interval, format!(" (no variation, {kind})"))),
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

    fn texts(a: &[Row], b: &[Row]) -> Vec<String> {
        compare([a, b], false).unwrap().changes
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
        assert_eq!(found, ["g/m psnr: 30 → 29 dB, −1 ± 0.2484 (3 pairs)"]);
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
        assert_eq!(found, ["g/m psnr: 30 → 29 dB, −1 ± 0.2484 (3 pairs)"]);
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
        assert!(compare([&fast, &slow], false).unwrap().changes.is_empty());
        assert_eq!(compare([&fast, &slow], true).unwrap().changes.len(), 1);
        let both = [rows("rank", &[("-", 1.0)]), rows("psnr", &[("-", 1.0)])].concat();
        let found = compare([&both, &rows("rank", &[("-", 1.0)])], false).unwrap();
        assert_eq!(found.surplus, [vec!["g/m psnr".to_owned()], Vec::new()]);
        let found = compare([&[], &both], false).unwrap();
        assert_eq!(found.surplus[1], ["g"]);
    }
}
