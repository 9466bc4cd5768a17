//! The values that a claim selects, and numbers as text.

use std::collections::HashMap;

use super::pairs::values_at;
use super::{Unjudged, Verdict};
use crate::published::{Published, PublishedValue};
use crate::record::{IndexedTable, Keys, Row};
use crate::schema::Experiment;
use crate::schema::claim::{Select, Source, Statistic};

/// The data that a claim is judged with.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    pub experiment: &'a Experiment,
    pub record: Option<&'a IndexedTable>,
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

pub(super) fn not_run(reason: impl Into<String>) -> Unjudged {
    Unjudged { verdict: Verdict::NotRun, reason: reason.into() }
}

/// Largest magnitude of a measurement: of larger ones, the sum of squares over a record overflows.
const LARGEST: f64 = 1e140;

/// Rejects values that are not finite or too large to compute with. A run that diverged neither confirms nor refutes a claim.
fn check_finite(select: &Select, points: &[Point]) -> Result<(), Unjudged> {
    let Some(point) =
        points.iter().find(|point| point.value.is_nan() || point.value.abs() > LARGEST)
    else {
        return Ok(());
    };
    let (method, metric, value) = (&point.method, &select.metric, show(point.value));
    let at = point.x.map(|x| format!(" at x = {}", show(x))).unwrap_or_default();
    let reason = format!("{method}: {metric} is {value}{at}, which decides nothing");
    Err(Unjudged { verdict: Verdict::NotDecided, reason })
}

pub(super) fn describe(select: &Select) -> String {
    let method = select.method.as_deref().unwrap_or("*");
    format!("{}/{method} {}", select.group, select.metric_text())
}

/// The selected values, or their standard deviations if the selection asks for these.
pub(super) fn points(select: &Select, context: Context<'_>) -> Result<Vec<Point>, Unjudged> {
    let points = single_points(select, context)?;
    match select.statistic {
        Statistic::Deviation => deviations(&points),
        Statistic::Each => Ok(points),
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
fn deviations(points: &[Point]) -> Result<Vec<Point>, Unjudged> {
    let deviation = |place: Place<'_>| {
        let (method, x, value) = (place.method.to_owned(), place.x, deviation(&place.values())?);
        Ok(Point { method, signal: String::new(), seed: 0, x, y: None, value })
    };
    places(points)?.into_iter().map(deviation).collect()
}

/// Population standard deviation.
pub(super) fn deviation(values: &[f64]) -> Result<f64, Unjudged> {
    let value = posenc_math::statistics::population_std(values);
    value.map_err(|e| not_run(format!("no standard deviation: {e}")))
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

pub(super) fn rows<'a>(
    select: &'a Select,
    context: Context<'a>,
) -> impl Iterator<Item = &'a Row> + 'a {
    let table = context.record.into_iter();
    let rows = table.flat_map(|table| table.of_metric(&select.group, &select.metric));
    rows.filter(|row| select.takes_row(row))
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

/// Writes a confidence interval of this level, such as 0.95.
pub fn show_interval(level: f64, mean: f64, half_width: f64) -> String {
    let [low, high] = [mean - half_width, mean + half_width].map(show);
    format!("{:.0} % CI {low} to {high}", 100.0 * level)
}
