//! The values that a claim selects, their statistics, and numbers as text.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::clusters::Clusters;
use super::statistics::Interval;
use super::{Unjudged, Verdict};
use crate::published::{Published, PublishedValue};
use crate::record::{Keys, Row, Table, is_counted, is_of_machine};
use crate::schema::claim::{Abscissa, Select, Source, Statistic, Tolerance, same_place};
use crate::schema::{Experiment, Group, Profile};

/// The data that a claim is judged with.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// Its record, if available.
    pub record: Option<&'a Table>,
    /// Published values.
    pub published: &'a Published,
}

impl<'a> Context<'a> {
    /// The published values that a selection names.
    pub(super) fn published_of(
        self,
        select: &'a Select,
    ) -> impl Iterator<Item = &'a PublishedValue> + 'a {
        self.published.select(&self.experiment.paper, &self.experiment.item, select)
    }
}

/// A number with the keys that pair it with others.
#[derive(Debug, Clone)]
pub(super) struct Point {
    pub method: String,
    pub signal: String,
    pub seed: u64,
    pub x: Option<f64>,
    /// Second abscissa, of a heat map.
    pub y: Option<f64>,
    pub value: f64,
}

impl Point {
    fn of(row: &Row) -> Point {
        let (method, signal) = (row.method.clone(), row.signal.clone());
        Point { method, signal, seed: row.seed, x: row.x, y: row.y, value: row.value }
    }
}

/// Maximum number of pairs per value of two selections. Repeated rows would be paired each with each.
const MAX_REPEATS: usize = 4;

/// Rejects pairs whose number grows with the product of the sizes of both selections.
pub(super) fn check_pairs(pairs: usize, [left, right]: [usize; 2]) -> Result<(), Unjudged> {
    match pairs > MAX_REPEATS * (left + right) {
        true => Err(not_run(
            "the record or the published values have duplicate rows, so values cannot be paired",
        )),
        false => Ok(()),
    }
}

pub(super) fn not_run(reason: impl Into<String>) -> Unjudged {
    Unjudged { verdict: Verdict::NotRun, reason: reason.into() }
}

/// Largest magnitude of a measurement: of larger ones, the sum of squares over a record overflows.
const MAX: f64 = 1e140;

/// Rejects values that are not finite or too large to compute with. A run that diverged neither confirms nor refutes a claim.
fn check_finite(select: &Select, points: &[Point]) -> Result<(), Unjudged> {
    let Some(point) = points.iter().find(|point| point.value.is_nan() || point.value.abs() > MAX)
    else {
        return Ok(());
    };
    let (method, metric, value) = (&point.method, &select.metric, show(point.value));
    let at = point.x.map(|x| format!(" at x = {}", show(x))).unwrap_or_default();
    let reason = format!("{method}: {metric} is {value}{at}, which decides nothing");
    Err(Unjudged { verdict: Verdict::NotDecided, reason })
}

pub(super) fn describe(select: &Select) -> String {
    let mut text = format!("{}/{}", select.group, select.method.as_deref().unwrap_or("*"));
    text.push(' ');
    text.push_str(&select.metric);
    if let Some(minus) = &select.minus {
        text.push_str(&format!(" − {minus}"));
    }
    text
}

/// The selected values, or their standard deviations if the selection asks for these.
pub(super) fn points(select: &Select, context: Context<'_>) -> Result<Vec<Point>, Unjudged> {
    let points = single_points(select, context)?;
    match select.statistic {
        Statistic::Deviation => deviations(&points),
        // The mean has the uncertainty of its values, so the values are returned.
        Statistic::Each | Statistic::Mean => Ok(points),
    }
}

/// The selected values, regardless of the selection's statistic.
pub(super) fn single_points(select: &Select, context: Context<'_>) -> Result<Vec<Point>, Unjudged> {
    let points: Vec<Point> = match select.from {
        Source::Measured => {
            let mut points: Vec<Point> = rows(select, context).map(Point::of).collect();
            if let Some(metric) = &select.minus {
                let other = Select { metric: metric.clone(), minus: None, ..select.clone() };
                let others: Vec<Point> = rows(&other, context).map(Point::of).collect();
                let subtracted = values_at(&points, &others)?;
                for (point, other_value) in points.iter_mut().zip(subtracted) {
                    let missing = || not_run(format!("no values for {}", describe(&other)));
                    point.value -= other_value.ok_or_else(missing)?;
                }
            }
            points
        }
        Source::Published => {
            let point = |v: &PublishedValue| {
                let (method, signal) = (v.method.clone(), v.signal.clone());
                Some(Point { method, signal, seed: 0, x: v.x, y: None, value: v.value? })
            };
            context.published_of(select).filter_map(point).collect()
        }
    };
    check_finite(select, &points)?;
    match points.is_empty() {
        true => Err(not_run(format!("no values for {}", describe(select)))),
        false => Ok(points),
    }
}

/// Population standard deviations by method and abscissa.
pub(super) fn deviations(points: &[Point]) -> Result<Vec<Point>, Unjudged> {
    let deviation = |place: Place<'_>| {
        let value = posenc_math::statistics::population_std(&place.values());
        let value = value.map_err(|e| not_run(format!("no standard deviation: {e}")))?;
        let (method, x) = (place.method.to_owned(), place.x);
        Ok(Point { method, signal: String::new(), seed: 0, x, y: None, value })
    };
    places(points)?.into_iter().map(deviation).collect()
}

/// A point with its index in its selection.
type Placed<'a> = (usize, &'a Point);

/// The keys that two values must share to be a pair, in addition to the second abscissa.
#[derive(Clone, Copy)]
struct Common {
    unit: bool,
    method: bool,
    x: bool,
}

/// Groups the points of two selections that share the `common` keys. Each group contains the points of the first and those of the
/// second selection, with their indices in their selections.
fn matched<'a>(
    [left, right]: [&'a [Point]; 2],
    common: Common,
) -> Result<Vec<[Vec<Placed<'a>>; 2]>, Unjudged> {
    let second = right.iter().enumerate().map(|(place, p)| (true, place, p));
    let all: Vec<_> =
        left.iter().enumerate().map(|(place, p)| (false, place, p)).chain(second).collect();
    let mut keys = Keys::of(&all).by(|p| &p.2.y);
    if common.unit {
        keys = keys.by(|p| &p.2.signal).by(|p| &p.2.seed);
    }
    if common.method {
        keys = keys.by(|p| &p.2.method);
    }
    if common.x {
        keys = keys.by(|p| &p.2.x);
    }
    let sides = |group: Vec<&(bool, usize, &'a Point)>| {
        [false, true].map(|side| {
            let own = group.iter().filter(|p| p.0 == side);
            own.map(|(_, place, point)| (*place, *point)).collect()
        })
    };
    Ok(keys.groups().map_err(not_grouped)?.into_iter().map(sides).collect())
}

/// For each point, the value of the first of `others` with the same keys.
pub(super) fn values_at(points: &[Point], others: &[Point]) -> Result<Vec<Option<f64>>, Unjudged> {
    let mut values = vec![None; points.len()];
    let common = Common { unit: true, method: true, x: true };
    for [own, others] in matched([points, others], common)? {
        for (place, _) in own {
            values[place] = others.first().map(|(_, point)| point.value);
        }
    }
    Ok(values)
}

pub(super) fn not_grouped(error: polars::error::PolarsError) -> Unjudged {
    not_run(format!("values cannot be grouped: {error}"))
}

/// All values of a method at an abscissa, of any signal and seed.
#[derive(Debug, Clone)]
pub(super) struct Place<'a> {
    pub method: &'a str,
    pub x: Option<f64>,
    pub points: Vec<&'a Point>,
}

impl Place<'_> {
    /// The values.
    pub fn values(&self) -> Vec<f64> {
        self.points.iter().map(|p| p.value).collect()
    }
}

/// Values by method and abscissa: methods in the order of the values, abscissas ascending.
pub(super) fn places(points: &[Point]) -> Result<Vec<Place<'_>>, Unjudged> {
    let mut methods: HashMap<&str, usize> = HashMap::new();
    let mut all: Vec<(usize, Place<'_>)> = Vec::new();
    let keys = Keys::of(points).by(|p| &p.method).by(|p| &p.x);
    for group in keys.groups().map_err(not_grouped)? {
        let Some(first) = group.first() else { continue };
        let next = methods.len();
        let method = *methods.entry(&first.method).or_insert(next);
        all.push((method, Place { method: &first.method, x: first.x, points: group }));
    }
    let x = |place: &Place<'_>| place.x.unwrap_or(f64::NEG_INFINITY);
    all.sort_by(|(m, a), (n, b)| m.cmp(n).then(x(a).total_cmp(&x(b))));
    Ok(all.into_iter().map(|(_, place)| place).collect())
}

/// The entries at `place`, from entries that are sorted by their places.
pub(super) fn at_place<T>(sorted: &[(f64, T)], place: f64) -> impl Iterator<Item = &T> {
    // Entries at the same place are adjacent, since the distance from it grows in both directions.
    let first = sorted.partition_point(|(x, _)| *x < place && !same_place(*x, place));
    let behind = sorted.get(first..).unwrap_or_default().iter();
    behind.take_while(move |(x, _)| same_place(*x, place)).map(|(_, entry)| entry)
}

pub(super) fn rows<'a>(
    select: &'a Select,
    context: Context<'a>,
) -> impl Iterator<Item = &'a Row> + 'a {
    context.record.into_iter().flat_map(move |t| t.select(select))
}

/// Indices of a group's variants by their ids.
fn variant_places(group: &Group) -> HashMap<&str, usize> {
    group.variants.iter().enumerate().map(|(place, v)| (v.id.as_str(), place)).collect()
}

/// Why the selected rows cannot be compared with the paper's own numbers.
pub(super) fn incomparable(select: &Select, context: Context<'_>) -> Option<String> {
    let group = context.experiment.group(&select.group)?;
    let mut is_known: HashMap<(&str, Profile), bool> = HashMap::new();
    for row in rows(select, context) {
        if is_counted(&select.metric) {
            let key = (row.method.as_str(), row.profile);
            if *is_known.entry(key).or_insert_with(|| group.has_papers_model(row)) {
                continue;
            }
        }
        if let Some(reduced) = group.reduced(row.profile) {
            return Some(format!("reduced: {reduced}"));
        }
        if !group.is_papers_data(&row.data) {
            return Some(format!("other data: {}", row.data));
        }
    }
    // A count does not depend on the signal.
    if is_counted(&select.metric) {
        return None;
    }
    group.parts(rows(select, context)).pop_first()
}

/// If a selection of several methods or of several signals lacks some: how many are on record.
pub(super) fn missing(select: &Select, context: Context<'_>) -> Option<String> {
    let is_measured = select.from == Source::Measured;
    let group = context.experiment.group(&select.group).filter(|_| is_measured)?;
    let lacks = |found: usize, total: usize, what: &str| {
        (1..total).contains(&found).then(|| format!("{found} of {total} {what} of `{}`", group.id))
    };
    // Rows of `errata` name no variant.
    let methods: BTreeSet<&str> = rows(select, context).map(|row| row.method.as_str()).collect();
    let selected = || group.variants.iter().filter(|v| select.takes_method(&v.id));
    let found = selected().filter(|v| methods.contains(v.id.as_str())).count();
    let signals: BTreeSet<&str> = rows(select, context).map(|row| row.signal.as_str()).collect();
    let named = select.signals.as_ref().map_or(0, Vec::len);
    lacks(found, selected().count(), "methods").or_else(|| lacks(signals.len(), named, "signals"))
}

/// A number with four significant digits, without trailing zeros; in scientific notation below 10⁻³ and from 10⁶ on.
pub fn show(value: f64) -> String {
    if !value.is_finite() || value == 0.0 {
        return format!("{value}");
    }
    if value.abs() < 1e-3 || value.abs() >= 1e6 {
        return format!("{value:.3e}");
    }
    let digits = (4 - value.abs().max(1e-3).log10().floor() as i32 - 1).clamp(0, 6) as usize;
    let text = format!("{value:.digits$}");
    // A tolerance of 0.5 is 0.5, not 0.5000.
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// How many values there are and how much they vary.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spread {
    pub n: usize,
    /// Sample standard deviation; `None` for fewer than two values.
    pub deviation: Option<f64>,
}

impl Spread {
    pub fn of(values: &[f64]) -> Self {
        let deviation = posenc_math::statistics::sample_std(values).ok();
        Spread { n: values.len(), deviation }
    }
}

/// How far a mean may be from the expected number, as a number and in words. `deviation` is the published one. `None` if the margin
/// depends on a spread that is unknown.
pub(super) fn margin(
    tolerance: &Tolerance,
    expected: f64,
    deviation: Option<f64>,
    spread: Spread,
) -> Option<(f64, String)> {
    if let Some(absolute) = tolerance.absolute {
        return Some((absolute, format!("± {}", show(absolute))));
    }
    if let Some(relative) = tolerance.relative {
        return Some((relative * expected.abs(), format!("± {} %", show(100.0 * relative))));
    }
    if let Some(factor) = tolerance.published_deviations {
        let text = format!("± {} published deviations", show(factor));
        return Some((factor * deviation?, text));
    }
    let (factor, runs) = (tolerance.standard_errors?, f64::from(tolerance.published_runs?));
    let own = spread.deviation?;
    // Published deviations are population standard deviations (ddof = 0).
    let theirs = deviation.map_or(own, |p| p * (runs / (runs - 1.0)).sqrt());
    let error = (own * own / spread.n as f64 + theirs * theirs / runs).sqrt();
    let text = format!("± {} standard errors of {}", show(factor), show(error));
    Some((factor * error, text))
}

/// Repetitions and interval in words; empty for an exact number.
pub(super) fn spread_text(clusters: Clusters, interval: &Interval) -> String {
    match interval.half_width {
        Some(h) => format!("{}, 90 % interval ± {}", clusters.counted(interval.n), show(h)),
        None if interval.n <= 1 => String::new(),
        None => clusters.counted(interval.n),
    }
}

/// Why two selections cannot be compared: their methods ran at profiles with different protocols, such as five epochs and two
/// thousand. Fewer signals or seeds do no harm, since only equal ones are paired.
pub(super) fn unlike(a: &Select, b: &Select, context: Context<'_>) -> Option<String> {
    if a.from != Source::Measured || b.from != Source::Measured {
        return None;
    }
    if is_of_machine(&a.metric) || is_of_machine(&b.metric) {
        let all = rows(a, context).chain(rows(b, context));
        let devices: BTreeSet<&str> = all.map(|row| row.device.as_str()).collect();
        if devices.len() > 1 {
            let devices: Vec<&str> = devices.into_iter().collect();
            return Some(format!("measured on different devices: {}", devices.join(", ")));
        }
    }
    if a.group != b.group {
        return unlike_groups(a, b, context);
    }
    let group = context.experiment.group(&a.group)?;
    let variants = variant_places(group);
    let runs = |select| {
        let mut runs: BTreeMap<&str, BTreeSet<Profile>> = BTreeMap::new();
        for row in rows(select, context) {
            runs.entry(&row.method).or_default().insert(row.profile);
        }
        runs
    };
    let (left, right) = (runs(a), runs(b));
    let protocol = |method: &str, profile| {
        let variant = *variants.get(method)?;
        group.resolved(profile, variant).map(|resolved| &resolved.protocol)
    };
    let names_method = a.method.is_some() || b.method.is_some();
    for (method, profiles) in &left {
        // If neither selection names a method, only equal methods are paired. Otherwise, all methods of both sides are.
        let others: Vec<(&str, &BTreeSet<Profile>)> = match names_method {
            true => right.iter().map(|(other, there)| (*other, there)).collect(),
            false => right.get(method).map(|there| (*method, there)).into_iter().collect(),
        };
        for profile in profiles {
            for (other, there) in others.iter().flat_map(|(o, t)| t.iter().map(move |t| (*o, *t))) {
                if *profile != there && protocol(method, *profile) != protocol(other, there) {
                    return Some(format!(
                        "measured at different profiles: {method} at `{profile}`, {other} at `{there}`"
                    ));
                }
            }
        }
    }
    None
}

/// Why two groups cannot be compared: one ran with settings that differ from the full protocol, such as fewer epochs, and the other
/// did not.
fn unlike_groups(a: &Select, b: &Select, context: Context<'_>) -> Option<String> {
    let reduced = |select: &Select| -> Option<(bool, String)> {
        let group = context.experiment.group(&select.group)?;
        // Some protocols have the number of runs in their settings, and fewer runs do no harm.
        if group.kind()?.repeats_key.is_some() {
            return None;
        }
        let variants = variant_places(group);
        let row = rows(select, context).next()?;
        let variant = *variants.get(row.method.as_str())?;
        let at = |profile| group.resolved(profile, variant).map(|r| &r.protocol);
        let (here, full) = (at(row.profile)?, at(Profile::Paper)?);
        Some((here != full, format!("{} at `{}`", group.id, row.profile)))
    };
    let ((left, one), (right, other)) = (reduced(a)?, reduced(b)?);
    (left != right).then(|| format!("measured at different scale: {one}, {other}"))
}

/// The values of two selections on common seeds, if one of them has a single seed and the other several, as a method with random
/// frequencies has next to one without. With signals as repetitions, values are averaged over seeds. A single computed value is compared
/// with each seed of the other. Other values stay as they are.
pub(super) fn on_common_seeds<'a>(
    [left, right]: [&'a [Point]; 2],
    clusters: Clusters,
) -> [Cow<'a, [Point]>; 2] {
    let seeds = |points: &[Point]| points.iter().map(|p| p.seed).collect::<BTreeSet<u64>>();
    let (a, b) = (seeds(left), seeds(right));
    if (a.len() == 1) == (b.len() == 1) {
        return [left.into(), right.into()];
    }
    let is_left_single = a.len() == 1;
    let (single, several) = if is_left_single { (left, right) } else { (right, left) };
    let [single, several]: [Cow<'_, [Point]>; 2] = if clusters.by_signal {
        let seed = single.first().map_or(0, |point| point.seed);
        [single.into(), averaged(several, seed).into()]
    } else if clusters.is_computed {
        let seeds = if is_left_single { b } else { a };
        let copies = seeds
            .into_iter()
            .flat_map(|seed| single.iter().map(move |point| Point { seed, ..point.clone() }));
        [copies.collect::<Vec<_>>().into(), several.into()]
    } else {
        [single.into(), several.into()]
    };
    if is_left_single { [single, several] } else { [several, single] }
}

/// Means over seeds, in the order of the first values.
fn averaged(points: &[Point], seed: u64) -> Vec<Point> {
    let mut places = HashMap::new();
    let mut means: Vec<(Point, usize)> = Vec::new();
    let bits = |x: Option<f64>| x.map(f64::to_bits);
    for point in points {
        let key = (&*point.method, &*point.signal, bits(point.x), bits(point.y));
        let place = *places.entry(key).or_insert_with(|| {
            means.push((Point { seed, value: 0.0, ..point.clone() }, 0));
            means.len() - 1
        });
        means[place].0.value += point.value;
        means[place].1 += 1;
    }
    let mean =
        |(point, count): (Point, usize)| Point { value: point.value / count as f64, ..point };
    means.into_iter().map(mean).collect()
}

/// Two values that are compared.
#[derive(Clone, Copy)]
pub(super) struct Pair<'a> {
    pub left: &'a Point,
    pub right: &'a Point,
    /// The one that was measured; the left one if both were.
    pub measured: &'a Point,
}

/// Rejects two selections with common places if one lacks places of the other, so that no claim is decided on a part of its
/// points. Published values may be missing, since papers leave cells empty.
pub(super) fn check_places(
    sides: [(&Select, &[Point]); 2],
    method: bool,
    x: bool,
) -> Result<(), Unjudged> {
    let places = matched([sides[0].1, sides[1].1], Common { unit: false, method, x })?;
    let lacks = |side: usize| places.iter().filter(|place| place[side].is_empty()).count();
    for (side, (select, _)) in sides.iter().enumerate() {
        let (missing, all) = (lacks(side), places.len());
        let is_measured = select.from == Source::Measured;
        if is_measured && missing > 0 && missing + lacks(1 - side) < all {
            let of = describe(select);
            return Err(not_run(format!("no values for {of} at {missing} of {all} points")));
        }
    }
    Ok(())
}

/// Pairs the values of two selections that share signal, seed and abscissas.
///
/// They must also share the method if neither selection names one; otherwise a value is paired with all methods of the other side. If
/// both selections name a single abscissa, the two may differ. Published values have neither signal nor seed, so they are paired with
/// all measured values at their abscissa.
pub(super) fn pairs<'a>(
    left: (&Select, &'a [Point]),
    right: (&Select, &'a [Point]),
) -> Result<Vec<Pair<'a>>, Unjudged> {
    let both = |of: fn(&Select) -> bool| of(left.0) && of(right.0);
    let common = Common {
        unit: left.0.from == right.0.from,
        method: both(|s| s.method.is_none()),
        x: !both(|s| matches!(s.x, Some(Abscissa::At(_)))),
    };
    check_places([left, right], common.method, common.x)?;
    let groups = matched([left.1, right.1], common)?;
    let counts = groups.iter().map(|[own, others]| own.len().saturating_mul(others.len()));
    check_pairs(counts.fold(0, usize::saturating_add), [left.1.len(), right.1.len()])?;
    let mut pairs = Vec::new();
    for [own, others] in &groups {
        let with_others = |own| others.iter().map(move |other| (own, other));
        pairs.extend(own.iter().flat_map(with_others));
    }
    pairs.sort_by_key(|(own, other)| (own.0, other.0));
    if common.method && common.unit {
        // A mean over all methods must not mix signals that lack some of them.
        let mut methods: BTreeMap<(&str, u64), BTreeSet<&str>> = BTreeMap::new();
        for ((_, point), _) in &pairs {
            methods.entry((&point.signal, point.seed)).or_default().insert(&point.method);
        }
        let most = methods.values().map(BTreeSet::len).max().unwrap_or(0);
        pairs.retain(|((_, point), _)| {
            methods.get(&(&*point.signal, point.seed)).is_none_or(|own| own.len() == most)
        });
    }
    let is_right = left.0.from == Source::Published && right.0.from == Source::Measured;
    let pair = |(own, other): (&Placed<'a>, &Placed<'a>)| Pair {
        left: own.1,
        right: other.1,
        measured: if is_right { other.1 } else { own.1 },
    };
    Ok(pairs.into_iter().map(pair).collect())
}
