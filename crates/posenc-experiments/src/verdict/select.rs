//! What a claim looks at: values by selection, their statistics, and numbers as text.

use std::collections::{BTreeMap, BTreeSet};

use super::statistics::{self, Interval};
use super::{Judgement, Verdict};
use crate::published::Published;
use crate::record::{Row, Table};
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
        Source::Measured => rows(select, context)
            .map(|r| {
                Ok(Point {
                    method: r.method.clone(),
                    signal: r.signal.clone(),
                    seed: r.seed,
                    x: r.x,
                    y: r.y,
                    value: r.value - taken_away(select, context, r)?,
                })
            })
            .collect::<Result<_, _>>()?,
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
    places(&points)
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

/// The value of the metric that is taken away from a row's; 0 where there is none.
fn taken_away(select: &Select, context: Context<'_>, row: &Row) -> Result<f64, Judgement> {
    let Some(metric) = &select.minus else { return Ok(0.0) };
    let other = Select { metric: metric.clone(), minus: None, ..select.clone() };
    let own = rows(&other, context).find(|r| {
        let is_alike = r.method == row.method && r.signal == row.signal && r.seed == row.seed;
        is_alike && r.x == row.x && r.y == row.y
    });
    let missing = || not_run(format!("no values for {}", describe(&other)));
    own.map(|r| r.value).ok_or_else(missing)
}

/// All values of a method at an abscissa, whatever signal and seed.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub method: String,
    pub x: Option<f64>,
    pub values: Vec<f64>,
}

/// Values by method and abscissa: methods in the order of the values, abscissas rising.
pub(super) fn places(points: &[Point]) -> Vec<Place> {
    let mut methods: Vec<&str> = Vec::new();
    let mut all: Vec<(usize, Place)> = Vec::new();
    let mut index: BTreeMap<(usize, Option<u64>), usize> = BTreeMap::new();
    for p in points {
        let method = methods.iter().position(|m| *m == p.method).unwrap_or_else(|| {
            methods.push(&p.method);
            methods.len() - 1
        });
        // Adding zero makes one number of 0 and -0.
        let at = *index.entry((method, p.x.map(|x| (x + 0.0).to_bits()))).or_insert_with(|| {
            all.push((method, Place { method: p.method.clone(), x: p.x, values: Vec::new() }));
            all.len() - 1
        });
        all[at].1.values.push(p.value);
    }
    let x = |place: &Place| place.x.unwrap_or(f64::NEG_INFINITY);
    all.sort_by(|(m, a), (n, b)| m.cmp(n).then(x(a).total_cmp(&x(b))));
    all.into_iter().map(|(_, place)| place).collect()
}

/// Whether two abscissas are the same: those of files are rounded.
pub(super) fn same_place(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs().max(1e-12)
}

pub(super) fn rows<'a>(
    select: &'a Select,
    context: Context<'a>,
) -> impl Iterator<Item = &'a Row> + 'a {
    context.record.into_iter().flat_map(move |t| t.select(select))
}

/// The metric that is counted from the settings: neither data nor the length of a run move it.
const PARAMETERS: &str = "params";

/// Whether the model of a row is that of the published protocol.
fn has_the_papers_model(group: &Group, row: &Row) -> bool {
    let Some(variant) = group.variants.iter().position(|v| v.id == row.method) else {
        return false;
    };
    let at = |profile| group.resolved(profile, variant).map(|r| &r.protocol);
    match (at(row.profile), at(Profile::Paper)) {
        (Some(here), Some(paper)) => here.has_model_of(paper),
        _ => false,
    }
}

/// Why the selected rows cannot be held against the paper's own numbers.
pub(super) fn incomparable(select: &Select, context: Context<'_>) -> Option<String> {
    let group = context.experiment.group(&select.group)?;
    for row in rows(select, context) {
        if select.metric == PARAMETERS && has_the_papers_model(group, row) {
            continue;
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

/// How far the mean of `values` may be off, as a number and in words; `None` where that rests on a
/// spread that is not known. `deviation` is the published one.
pub(super) fn margin(
    tolerance: &Tolerance,
    expected: f64,
    deviation: Option<f64>,
    values: &[f64],
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
    let own = posenc_math::statistics::sample_std(values).ok()?;
    // Printed deviations are those of the population, ddof 0.
    let theirs = deviation.map_or(own, |p| p * (runs / (runs - 1.0)).sqrt());
    let error = (own * own / values.len() as f64 + theirs * theirs / runs).sqrt();
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
    let runs = |select| {
        let of = |row: &Row| (row.method.clone(), row.profile);
        rows(select, context).map(of).collect::<BTreeSet<(String, Profile)>>()
    };
    let (left, right) = (runs(a), runs(b));
    let protocol = |method: &str, profile| {
        let variant = group.variants.iter().position(|v| v.id == method)?;
        group.resolved(profile, variant).map(|resolved| &resolved.protocol)
    };
    for (method, profile) in &left {
        for (other, there) in &right {
            if profile != there
                && select_pairs(a, b, method, other)
                && protocol(method, *profile) != protocol(method, *there)
            {
                return Some(format!(
                    "measured at different profiles: {method} at `{profile}`, {other} at `{there}`"
                ));
            }
        }
    }
    None
}

/// Whether rows of these methods may be paired.
fn select_pairs(a: &Select, b: &Select, method: &str, other: &str) -> bool {
    a.method.is_some() || b.method.is_some() || method == other
}

/// Pairs two selections over signal, seed and place, and over the method where neither selection names one; where one does, with
/// all methods of the other. Where both name one place of the abscissa, these may differ.
pub(super) fn pairs(left: (&Select, &[Point]), right: (&Select, &[Point])) -> Vec<(f64, f64)> {
    let both = |of: fn(&Select) -> bool| of(left.0) && of(right.0);
    let by_method = both(|s| s.method.is_none());
    let by_x = !both(|s| matches!(s.x, Some(Abscissa::At(_))));
    let key = |p: &Point| {
        let method = if by_method { p.method.clone() } else { String::new() };
        // Bits order well enough for a lookup, and -0 does not occur as an abscissa.
        let x = p.x.filter(|_| by_x).map(f64::to_bits);
        (method, p.signal.clone(), p.seed, x, p.y.map(f64::to_bits))
    };
    let mut index: BTreeMap<_, Vec<f64>> = BTreeMap::new();
    for p in right.1 {
        index.entry(key(p)).or_default().push(p.value);
    }
    let all = |p: &Point| index.get(&key(p)).cloned().unwrap_or_default();
    left.1.iter().flat_map(|p| all(p).into_iter().map(|other| (p.value, other))).collect()
}
