//! What a claim looks at: values by selection, their statistics, and numbers as text.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::statistics::{self, Interval};
use super::{Judgement, Verdict};
use crate::published::Published;
use crate::record::{Keys, Row, Table};
use crate::schema::claim::{Abscissa, Select, Source, Statistic, Tolerance};
use crate::schema::{Experiment, Group, Profile};

/// What a claim is judged with.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// Its record, if there is one.
    pub record: Option<&'a Table>,
    /// Published values.
    pub published: &'a Published,
}

/// A number with the keys that pair it with others.
#[derive(Debug, Clone)]
pub(super) struct Point {
    pub method: String,
    pub signal: String,
    pub seed: u64,
    pub x: Option<f64>,
    /// Of a map.
    pub y: Option<f64>,
    pub value: f64,
}

impl Point {
    fn of(row: &Row) -> Point {
        let (method, signal) = (row.method.clone(), row.signal.clone());
        Point { method, signal, seed: row.seed, x: row.x, y: row.y, value: row.value }
    }
}

/// How many pairs there may be for each value of two selections. Rows that repeat would make a pair of each with each.
const MOST_REPEATS: usize = 4;

/// Refuses pairs of values whose number grows with the product of both selections.
pub(super) fn check_pairs(pairs: usize, [left, right]: [usize; 2]) -> Result<(), Judgement> {
    match pairs > MOST_REPEATS * (left + right) {
        true => Err(not_run("rows of the record repeat: a value has many counterparts")),
        false => Ok(()),
    }
}

pub(super) fn not_run(reason: impl Into<String>) -> Judgement {
    Judgement {
        verdict: Verdict::NotRun,
        measured: "–".into(),
        statistics: String::new(),
        reason: reason.into(),
    }
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

pub(super) fn points(select: &Select, context: Context<'_>) -> Result<Vec<Point>, Judgement> {
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
        Source::Published => context
            .published
            .select(&context.experiment.paper, &context.experiment.item, select)
            .filter_map(|v| {
                Some(Point {
                    method: v.method.clone(),
                    signal: v.signal.clone(),
                    seed: 0,
                    x: v.x,
                    y: None,
                    value: v.value?,
                })
            })
            .collect(),
    };
    if points.is_empty() {
        return Err(not_run(format!("no values for {}", describe(select))));
    }
    let statistic = match select.statistic {
        Statistic::Each => return Ok(points),
        Statistic::Mean => |v: &[f64]| Some(statistics::mean_interval(v).mean),
        Statistic::Deviation => |v: &[f64]| posenc_math::statistics::population_std(v).ok(),
    };
    places(&points)?
        .into_iter()
        .map(|p| {
            let value = match p.values.iter().all(|v| v.is_finite()) {
                true => statistic(&p.values),
                // A failed measurement is not averaged away.
                false => Some(f64::NAN),
            };
            let missing = || not_run(format!("no spread of one value for {}", describe(select)));
            let value = value.ok_or_else(missing)?;
            Ok(Point { method: p.method, signal: String::new(), seed: 0, x: p.x, y: None, value })
        })
        .collect()
}

/// A point with its place in its selection.
type Placed<'a> = (usize, &'a Point);

/// Groups of points of two selections that agree in signal, repetition and second abscissa and, if asked for, in method and
/// first abscissa: those of the first and those of the second, each with its place in its selection.
fn matched<'a>(
    [left, right]: [&'a [Point]; 2],
    by_method: bool,
    by_x: bool,
) -> Result<Vec<[Vec<Placed<'a>>; 2]>, Judgement> {
    let second = right.iter().enumerate().map(|(place, p)| (true, place, p));
    let all: Vec<_> =
        left.iter().enumerate().map(|(place, p)| (false, place, p)).chain(second).collect();
    let mut keys = Keys::of(&all).by(|p| &p.2.signal).by(|p| &p.2.seed).by(|p| &p.2.y);
    if by_method {
        keys = keys.by(|p| &p.2.method);
    }
    if by_x {
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

/// The value of the first of `others` at the place of each point.
pub(super) fn values_at(points: &[Point], others: &[Point]) -> Result<Vec<Option<f64>>, Judgement> {
    let mut values = vec![None; points.len()];
    for [own, other] in matched([points, others], true, true)? {
        for (place, _) in own {
            values[place] = other.first().map(|(_, point)| point.value);
        }
    }
    Ok(values)
}

pub(super) fn not_grouped(error: polars::error::PolarsError) -> Judgement {
    not_run(format!("values cannot be grouped: {error}"))
}

/// All values of a method at an abscissa, whatever signal and seed.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub method: String,
    pub x: Option<f64>,
    pub values: Vec<f64>,
}

/// Values by method and abscissa: methods in the order of the values, abscissas rising.
pub(super) fn places(points: &[Point]) -> Result<Vec<Place>, Judgement> {
    let mut methods: HashMap<&str, usize> = HashMap::new();
    let mut all: Vec<(usize, Place)> = Vec::new();
    let keys = Keys::of(points).by(|p| &p.method).by(|p| &p.x);
    for group in keys.groups().map_err(not_grouped)? {
        let Some(first) = group.first() else { continue };
        let next = methods.len();
        let method = *methods.entry(&first.method).or_insert(next);
        let values = group.iter().map(|p| p.value).collect();
        all.push((method, Place { method: first.method.clone(), x: first.x, values }));
    }
    let x = |place: &Place| place.x.unwrap_or(f64::NEG_INFINITY);
    all.sort_by(|(m, a), (n, b)| m.cmp(n).then(x(a).total_cmp(&x(b))));
    Ok(all.into_iter().map(|(_, place)| place).collect())
}

/// Whether two abscissas are the same: those of files are rounded.
pub(super) fn same_place(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs().max(1e-12)
}

/// Entries at a place, of entries that are sorted by their places, which are numbers.
pub(super) fn at_place<T>(sorted: &[(f64, T)], place: f64) -> impl Iterator<Item = &T> {
    // Places that are the same lie side by side, since the distance grows with each step away.
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

/// The metric that is counted from the settings: neither data nor the length of a run move it.
const PARAMETERS: &str = "params";

/// Places of a group's variants by their ids.
fn variant_places(group: &Group) -> HashMap<&str, usize> {
    group.variants.iter().enumerate().map(|(place, v)| (v.id.as_str(), place)).collect()
}

/// Why the selected rows cannot be held against the paper's own numbers.
pub(super) fn incomparable(select: &Select, context: Context<'_>) -> Option<String> {
    let group = context.experiment.group(&select.group)?;
    let variants = variant_places(group);
    // Whether the model of a method at a profile is that of the published protocol.
    let mut has_the_papers_model: HashMap<(&str, Profile), bool> = HashMap::new();
    for row in rows(select, context) {
        if select.metric == PARAMETERS {
            let key = (row.method.as_str(), row.profile);
            let is_same = *has_the_papers_model.entry(key).or_insert_with(|| {
                let Some(&variant) = variants.get(row.method.as_str()) else { return false };
                let at = |profile| group.resolved(profile, variant).map(|r| &r.protocol);
                match (at(row.profile), at(Profile::Paper)) {
                    (Some(here), Some(paper)) => here.has_model_of(paper),
                    _ => false,
                }
            });
            if is_same {
                continue;
            }
        }
        if let Some(reduced) = group.reduced(row.profile) {
            return Some(format!("reduced: {reduced}"));
        }
        if group.data.as_ref().is_some_and(|d| d.set != row.data) {
            return Some(format!("other data: {}", row.data));
        }
    }
    None
}

pub(super) fn values(points: &[Point]) -> Vec<f64> {
    points.iter().map(|p| p.value).collect()
}

/// Four significant digits are enough to compare and few enough to read.
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
    /// Standard deviation of the sample; `None` of fewer than two values.
    pub deviation: Option<f64>,
}

impl Spread {
    pub fn of(values: &[f64]) -> Self {
        let deviation = posenc_math::statistics::sample_std(values).ok();
        Spread { n: values.len(), deviation }
    }
}

/// How far the mean of values may be off, as a number and in words; `None` where that rests on a
/// spread that is not known. `deviation` is the published one.
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
    // Printed deviations are those of the population, ddof 0.
    let theirs = deviation.map_or(own, |p| p * (runs / (runs - 1.0)).sqrt());
    let error = (own * own / spread.n as f64 + theirs * theirs / runs).sqrt();
    let text = format!("± {} standard errors of {}", show(factor), show(error));
    Some((factor * error, text))
}

pub(super) fn spread_text(interval: &Interval) -> String {
    match interval.half_width {
        Some(h) => format!("n = {}, 95 % interval ± {}", interval.n, show(h)),
        None if interval.n == 1 => String::new(),
        None => format!("n = {}", interval.n),
    }
}

/// Why numbers of two selections cannot be held against each other: methods of one group that were run at profiles which do
/// different things, such as five epochs and two thousand. Fewer signals or seeds alone do no harm, since only the same are paired.
pub(super) fn unlike(a: &Select, b: &Select, context: Context<'_>) -> Option<String> {
    if a.group != b.group || a.from != Source::Measured || b.from != Source::Measured {
        return None;
    }
    let group = context.experiment.group(&a.group)?;
    let variants = variant_places(group);
    let runs = |select| {
        let mut runs: BTreeMap<&str, BTreeSet<Profile>> = BTreeMap::new();
        let all = context.record.into_iter().flat_map(|table| &table.rows);
        for row in all.filter(|row| row.selected(select)) {
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
        // Where no selection names a method only the same are paired, else one side has no other method.
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

/// Pairs two selections over signal, seed and place, and over the method where neither selection names one; where one does, with
/// all methods of the other. Where both name one place of the abscissa, these may differ.
pub(super) fn pairs(
    left: (&Select, &[Point]),
    right: (&Select, &[Point]),
) -> Result<Vec<(f64, f64)>, Judgement> {
    let both = |of: fn(&Select) -> bool| of(left.0) && of(right.0);
    let by_method = both(|s| s.method.is_none());
    let by_x = !both(|s| matches!(s.x, Some(Abscissa::At(_))));
    let groups = matched([left.1, right.1], by_method, by_x)?;
    let counts = groups.iter().map(|[own, others]| own.len().saturating_mul(others.len()));
    check_pairs(counts.fold(0, usize::saturating_add), [left.1.len(), right.1.len()])?;
    let mut pairs = Vec::new();
    for [own, others] in &groups {
        let with_others = |own| others.iter().map(move |other| (own, other));
        pairs.extend(own.iter().flat_map(with_others));
    }
    pairs.sort_by_key(|(own, other)| (own.0, other.0));
    Ok(pairs.into_iter().map(|(own, other)| (own.1.value, other.1.value)).collect())
}
