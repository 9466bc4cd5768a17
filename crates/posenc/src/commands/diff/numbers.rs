//! Numbers of two records that differ by more than their noise.
//!
//! All values of a metric at one abscissa are two samples over signals and repetitions. Where both have the same
//! signals and repetitions the differences are tested (paired t), else the means (Welch's t); a difference counts if the
//! 95 % interval leaves out zero. Where nothing varies, any difference beyond rounding counts.

use std::collections::{BTreeMap, HashMap};

use posenc_experiments::record::{Row, is_of_machine};
use posenc_experiments::verdict::{Interval, difference_interval, mean_interval, show};

/// Numbers whose relative difference is below this are the same: sums in another order, another processor.
const ROUNDING: f64 = 1e-9;

/// A metric of a method whose numbers differ.
pub struct Change {
    /// `group/method metric`.
    pub what: String,
    /// In words: means, difference, interval.
    pub how: String,
}

/// A metric that only one record has, or has at more places.
pub struct Surplus {
    /// `group/method`, or the group where all of it is in one record only.
    pub method: String,
    /// The metric, with the number of places where that is not all; `None` for all of them.
    pub metric: Option<String>,
}

/// What two records of an item differ in.
#[derive(Default)]
pub struct Comparison {
    /// Beyond noise.
    pub changes: Vec<Change>,
    /// Only in the first, only in the second.
    pub surplus: [Vec<Surplus>; 2],
}

/// One value with what pairs it: signal and repetition.
type Single = (String, u64, f64);

/// The values of two records at an abscissa.
#[derive(Default)]
struct Place {
    x: Option<f64>,
    y: Option<f64>,
    sides: [Vec<Single>; 2],
}

/// The places of a metric of a method.
#[derive(Default)]
struct Curve {
    group: String,
    method: String,
    metric: String,
    unit: String,
    places: Vec<Place>,
    index: BTreeMap<(String, String), usize>,
}

/// A difference at a place.
struct Finding<'a> {
    place: &'a Place,
    means: [f64; 2],
    difference: f64,
    /// In words: how it was tested.
    test: String,
}

/// Compares the rows of an item; those of the machine only `with_times`.
pub fn compare(sides: [&[Row]; 2], with_times: bool) -> Comparison {
    let curves = curves(sides, with_times);
    let mut comparison = Comparison::default();
    for side in [0, 1] {
        comparison.surplus[side] = surplus(&curves, side);
    }
    for curve in &curves {
        comparison.changes.extend(change(curve));
    }
    comparison
}

/// All curves, in the order of the first record and then of the second.
fn curves(sides: [&[Row]; 2], with_times: bool) -> Vec<Curve> {
    let mut curves: Vec<Curve> = Vec::new();
    let mut index: BTreeMap<(&str, &str, &str), usize> = BTreeMap::new();
    for (side, rows) in sides.into_iter().enumerate() {
        for row in rows.iter().filter(|row| with_times || !is_of_machine(&row.metric)) {
            let at = *index.entry((&row.group, &row.method, &row.metric)).or_insert_with(|| {
                curves.push(Curve {
                    group: row.group.clone(),
                    method: row.method.clone(),
                    metric: row.metric.clone(),
                    unit: row.unit.clone(),
                    ..Curve::default()
                });
                curves.len() - 1
            });
            let Some(curve) = curves.get_mut(at) else { continue };
            // Abscissas may be measured, too: those that agree up to rounding are one.
            let key = |x: Option<f64>| x.map(|x| format!("{:.8e}", x + 0.0)).unwrap_or_default();
            let place = *curve.index.entry((key(row.x), key(row.y))).or_insert_with(|| {
                curve.places.push(Place { x: row.x, y: row.y, ..Place::default() });
                curve.places.len() - 1
            });
            if let Some(place) = curve.places.get_mut(place)
                && let Some(values) = place.sides.get_mut(side)
            {
                values.push((row.signal.clone(), row.seed, row.value));
            }
        }
    }
    curves
}

/// What only one side has: whole groups and methods in one entry, else metrics, else places.
fn surplus(curves: &[Curve], side: usize) -> Vec<Surplus> {
    let (here, there) = if side == 0 { (0, 1) } else { (1, 0) };
    let only_here = |place: &&Place| !place.sides[here].is_empty() && place.sides[there].is_empty();
    let only: Vec<usize> =
        curves.iter().map(|c| c.places.iter().filter(only_here).count()).collect();
    let is_whole = |(curve, only): (&Curve, &usize)| *only == curve.places.len();
    let mut whole_groups: HashMap<&str, bool> = HashMap::new();
    for (curve, only) in curves.iter().zip(&only) {
        *whole_groups.entry(&curve.group).or_insert(true) &= is_whole((curve, only));
    }
    let mut methods: Vec<(String, bool, Vec<Surplus>)> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    for (curve, only) in curves.iter().zip(&only) {
        let method = match whole_groups.get(curve.group.as_str()) {
            Some(true) => curve.group.clone(),
            _ => format!("{}/{}", curve.group, curve.method),
        };
        let at = *known.entry(method.clone()).or_insert_with(|| {
            methods.push((method.clone(), true, Vec::new()));
            methods.len() - 1
        });
        let Some((_, all, found)) = methods.get_mut(at) else { continue };
        let is_whole = is_whole((curve, only));
        *all &= is_whole;
        if *only > 0 {
            let metric = if is_whole {
                curve.metric.clone()
            } else {
                format!("{} at {only} more places", curve.metric)
            };
            found.push(Surplus { method, metric: Some(metric) });
        }
    }
    let entries = methods.into_iter().flat_map(|(method, all, found)| {
        if all { vec![Surplus { method, metric: None }] } else { found }
    });
    entries.collect()
}

fn change(curve: &Curve) -> Option<Change> {
    let both = |place: &&Place| place.sides.iter().all(|side| !side.is_empty());
    let compared = curve.places.iter().filter(both).count();
    let findings: Vec<Finding<'_>> = curve.places.iter().filter(both).filter_map(finding).collect();
    // What is no number on one side comes first.
    let size =
        |f: &Finding<'_>| if f.difference.is_nan() { f64::INFINITY } else { f.difference.abs() };
    let largest = findings.iter().max_by(|a, b| size(a).total_cmp(&size(b)))?;
    let unit = match curve.unit.as_str() {
        "" | "count" => String::new(),
        unit => format!(" {unit}"),
    };
    let mut how = String::new();
    if compared > 1 {
        how = format!("{} of {compared} places; most at x = ", findings.len());
        how += &largest.place.x.map(show).unwrap_or_default();
        how += &largest.place.y.map(|y| format!(", y = {}", show(y))).unwrap_or_default();
        how += ": ";
    }
    let [before, after] = largest.means.map(show);
    how += &format!("{before} → {after}{unit}, ");
    how += &format!("{}{}", signed(largest.difference), largest.test);
    Some(Change { what: format!("{}/{} {}", curve.group, curve.method, curve.metric), how })
}

fn signed(difference: f64) -> String {
    match difference {
        d if d < 0.0 => format!("−{}", show(-d)),
        d => format!("+{}", show(d)),
    }
}

/// What differs at a place by more than its noise.
fn finding(place: &Place) -> Option<Finding<'_>> {
    let [mut a, mut b] = place.sides.clone();
    for side in [&mut a, &mut b] {
        side.sort_by(|x, y| (&x.0, x.1).cmp(&(&y.0, y.1)).then(x.2.total_cmp(&y.2)));
    }
    let values = |side: &[Single]| side.iter().map(|single| single.2).collect::<Vec<f64>>();
    let is_paired = a.len() == b.len() && a.iter().zip(&b).all(|(x, y)| (&x.0, x.1) == (&y.0, y.1));
    let (a, b) = (values(&a), values(&b));
    let means = [mean_interval(&a).mean, mean_interval(&b).mean];
    if is_paired && a.iter().zip(&b).all(|(a, b)| is_same(*a, *b)) {
        return None;
    }
    let of = |interval: Interval, test: String| Finding {
        place,
        means,
        difference: interval.mean,
        test,
    };
    if a.iter().chain(&b).any(|v| !v.is_finite()) {
        let count = |side: &[f64]| side.iter().filter(|v| !v.is_finite()).count();
        let is_other = is_paired || count(&a) != count(&b);
        let test =
            format!(" (not finite: {} of {}, {} of {})", count(&a), a.len(), count(&b), b.len());
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
        None => Some(of(interval, format!(" (nothing varies, {kind})"))),
    }
}

/// Whether two numbers are one up to rounding.
fn is_same(a: f64, b: f64) -> bool {
    a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= ROUNDING * a.abs().max(b.abs())
}

#[cfg(test)]
mod tests {
    use posenc_experiments::Profile;

    use super::*;

    fn rows(metric: &str, values: &[(&str, f64)]) -> Vec<Row> {
        let row = |(signal, value): &(&str, f64)| Row {
            group: "g".into(),
            method: "m".into(),
            signal: (*signal).into(),
            seed: 0,
            metric: metric.into(),
            x: None,
            y: None,
            value: *value,
            unit: "dB".into(),
            profile: Profile::Smoke,
            device: "cpu".into(),
            data: "-".into(),
        };
        values.iter().map(row).collect()
    }

    fn texts(a: &[Row], b: &[Row]) -> Vec<String> {
        compare([a, b], false)
            .changes
            .into_iter()
            .map(|c| format!("{}: {}", c.what, c.how))
            .collect()
    }

    /// Catches noise that is listed, a shift that is not, a pairing that is lost with the order of rows, and a difference
    /// with the wrong sign.
    #[test]
    fn only_what_leaves_its_interval_is_listed() {
        let before = rows("psnr", &[("a", 20.0), ("b", 30.0), ("c", 40.0)]);
        let noise = rows("psnr", &[("a", 20.5), ("b", 29.4), ("c", 40.2)]);
        assert_eq!(texts(&before, &noise), [] as [String; 0]);
        // Far below the spread over signals, but the same way in each.
        let shift = rows("psnr", &[("c", 39.0), ("a", 18.9), ("b", 29.1)]);
        let found = texts(&before, &shift);
        assert_eq!(found, ["g/m psnr: 30 → 29 dB, −1 ± 0.2484 (3 pairs)"]);
        // Other signals: the means are far within their spread.
        let others = rows("psnr", &[("d", 39.0), ("e", 18.9), ("f", 29.1)]);
        assert_eq!(texts(&before, &others), [] as [String; 0]);
    }

    /// Catches rounding taken for a difference, a single number whose change is passed over, and a number that became none.
    #[test]
    fn single_numbers_differ_beyond_rounding() {
        let one = |value: f64| rows("rank", &[("-", value)]);
        assert_eq!(texts(&one(1.0), &one(1.0 + 1e-13)), [] as [String; 0]);
        assert_eq!(texts(&one(f64::NAN), &one(f64::NAN)), [] as [String; 0]);
        assert_eq!(texts(&one(1.0), &one(1.25)), ["g/m rank: 1 → 1.25 dB, +0.25 (one value each)"]);
        assert!(texts(&one(1.0), &one(f64::NAN))[0].contains("not finite: 0 of 1, 1 of 1"));
    }

    /// Catches clocks that are compared without being asked for, and metrics of one side that vanish.
    #[test]
    fn clocks_are_left_out_and_surplus_is_named() {
        let (fast, slow) = (rows("time", &[("-", 1.0)]), rows("time", &[("-", 2.0)]));
        assert!(compare([&fast, &slow], false).changes.is_empty());
        assert_eq!(compare([&fast, &slow], true).changes.len(), 1);
        let both = [rows("rank", &[("-", 1.0)]), rows("psnr", &[("-", 1.0)])].concat();
        let found = compare([&both, &rows("rank", &[("-", 1.0)])], false);
        assert_eq!(found.surplus[0][0].metric.as_deref(), Some("psnr"));
        assert!(found.surplus[1].is_empty());
        let found = compare([&[], &both], false);
        assert!(found.surplus[1].len() == 1 && found.surplus[1][0].metric.is_none());
    }
}
