//! Sentences of experiments with their numbers: headline findings and the answers of items.
//!
//! Every number is computed from the record or the published values when the page is rendered.

use std::collections::{BTreeMap, BTreeSet};

use posenc_experiments::record::Row;
use posenc_experiments::schema::claim::{
    Claim, Number, Part, Quantity, Select, Sentence, Source, Statistic,
};
use posenc_experiments::verdict::mean_interval;

use crate::markdown::inline;
use crate::numbers::{fixed, mean_deviation, signed, significant};
use crate::view::{SideView, View};

/// Significant digits of a number whose sentence does not state its decimals.
const DIGITS: usize = 3;

/// A sentence with its numbers; `None` if the record lacks one of them. Numbers without a claim belong to `own`.
pub fn filled(
    view: &View<'_>,
    side: &SideView,
    sentence: &Sentence,
    own: Option<&Claim>,
) -> Option<String> {
    let mut text = String::new();
    for part in &sentence.parts {
        match part {
            Part::Text(words) => text.push_str(words),
            Part::Number(number) => text.push_str(&shown(view, side, number, own)?),
        }
    }
    Some(inline(&text))
}

fn shown(view: &View<'_>, side: &SideView, number: &Number, own: Option<&Claim>) -> Option<String> {
    let claim = match &number.claim {
        Some(id) => view.experiment.claims.iter().find(|claim| claim.id == *id),
        None => own,
    }?;
    let selects: Vec<&Select> = claim.check.selects().into_iter().map(|(_, s)| s).collect();
    let values = |i: usize| values(view, side, selects.get(i).copied()?);
    let printed = |value: f64| match number.digits {
        Some(digits) => fixed(value, digits),
        None => significant(value, DIGITS),
    };
    match number.quantity {
        Quantity::Mean(i) => {
            let values = values(i)?;
            Some(with_unit(printed(mean(&clusters(&values))), &values))
        }
        Quantity::Published(i) => {
            let select = Select { from: Source::Published, ..(*selects.get(i)?).clone() };
            let values = self::values(view, side, &select)?;
            let all: Vec<f64> = values.iter().map(|v| v.value).collect();
            Some(with_unit(printed(mean(&all)), &values))
        }
        Quantity::Ratio(i, j) => {
            let (above, below) = (values(i)?, values(j)?);
            Some(printed(mean(&clusters(&above)) / mean(&clusters(&below))))
        }
        Quantity::Difference(i, j) => {
            let (left, right) = (values(i)?, values(j)?);
            Some(difference(&left, &right, number.digits))
        }
    }
}

/// Numbers of a selection over independent units.
pub struct Summary {
    /// Mean.
    pub mean: f64,
    /// Half width of the 95 % t interval of the mean; `None` for fewer than two units or without spread.
    pub half_width: Option<f64>,
    /// Number of independent units.
    pub n: usize,
    /// Unit of the values.
    pub unit: String,
}

/// Summarizes a selection; `None` without values.
pub fn summary(view: &View<'_>, side: &SideView, select: &Select) -> Option<Summary> {
    let values = values(view, side, select)?;
    let interval = mean_interval(&clusters(&values));
    let unit = values.first().map(|v| v.unit.clone()).unwrap_or_default();
    Some(Summary { mean: interval.mean, half_width: interval.half_width, n: interval.n, unit })
}

/// A value with what pairs it with others.
#[derive(Clone)]
struct Value {
    signal: String,
    seed: u64,
    /// Bits of the abscissa.
    x: Option<u64>,
    value: f64,
    unit: String,
}

impl Value {
    fn of(row: &Row) -> Value {
        Value {
            signal: row.signal.clone(),
            seed: row.seed,
            x: row.x.map(f64::to_bits),
            value: row.value,
            unit: row.unit.clone(),
        }
    }

    fn key(&self) -> (&str, u64, Option<u64>) {
        (&self.signal, self.seed, self.x)
    }
}

/// Values of a selection; `None` if there are none.
fn values(view: &View<'_>, side: &SideView, select: &Select) -> Option<Vec<Value>> {
    let experiment = view.experiment;
    let found: Vec<Value> = match select.from {
        Source::Published => {
            let published = view.published.select(&experiment.paper, &experiment.item, select);
            let value = |v: &posenc_experiments::PublishedValue| {
                Some(Value {
                    signal: v.signal.clone(),
                    seed: 0,
                    x: v.x.map(f64::to_bits),
                    value: v.value?,
                    unit: v.unit.clone(),
                })
            };
            published.filter_map(value).collect()
        }
        Source::Measured => {
            let rows = |metric: &str| -> Vec<Value> {
                let select = Select { metric: metric.to_owned(), ..select.clone() };
                let run = side.run.iter();
                run.flat_map(|run| run.table.select(&select).map(Value::of).collect::<Vec<_>>())
                    .collect()
            };
            let mut found = rows(&select.metric);
            if let Some(minus) = &select.minus {
                let others = rows(minus);
                let by_key: BTreeMap<_, f64> = others.iter().map(|v| (v.key(), v.value)).collect();
                found = found
                    .iter()
                    .filter_map(|v| {
                        Some(Value { value: v.value - by_key.get(&v.key())?, ..v.clone() })
                    })
                    .collect();
            }
            found
        }
    };
    let found = match select.statistic {
        Statistic::Deviation => deviations(&found),
        Statistic::Each | Statistic::Mean => found,
    };
    (!found.is_empty()).then_some(found)
}

/// The population standard deviation at each abscissa.
fn deviations(values: &[Value]) -> Vec<Value> {
    let mut by_x: BTreeMap<Option<u64>, Vec<&Value>> = BTreeMap::new();
    for value in values {
        by_x.entry(value.x).or_default().push(value);
    }
    let deviation = |(x, own): (Option<u64>, Vec<&Value>)| {
        let all: Vec<f64> = own.iter().map(|v| v.value).collect();
        let unit = own.first().map(|v| v.unit.clone()).unwrap_or_default();
        Value { signal: String::new(), seed: 0, x, value: mean_deviation(&all).1, unit }
    };
    by_x.into_iter().map(deviation).collect()
}

/// Means over independent units: signals if there are several, else seeds.
fn clusters(values: &[Value]) -> Vec<f64> {
    let signals: BTreeSet<&str> = values.iter().map(|v| v.signal.as_str()).collect();
    let mut by_unit: BTreeMap<(&str, u64), Vec<f64>> = BTreeMap::new();
    for value in values {
        let key = if signals.len() > 1 { (value.signal.as_str(), 0) } else { ("", value.seed) };
        by_unit.entry(key).or_default().push(value.value);
    }
    by_unit.values().map(|own| mean(own)).collect()
}

fn mean(values: &[f64]) -> f64 {
    mean_interval(values).mean
}

/// The paired difference with its 95 % confidence interval and the number of independent units.
fn difference(left: &[Value], right: &[Value], digits: Option<usize>) -> String {
    let by_key: BTreeMap<_, f64> = right.iter().map(|v| (v.key(), v.value)).collect();
    let pair = |v: &Value| Some(Value { value: v.value - by_key.get(&v.key())?, ..v.clone() });
    let paired: Vec<Value> = left.iter().filter_map(pair).collect();
    let digits_of = |value: f64| {
        digits.unwrap_or_else(|| {
            let magnitude = if value == 0.0 { 0.0 } else { value.abs().log10().floor() };
            (DIGITS as f64 - 1.0 - magnitude).clamp(0.0, 9.0) as usize
        })
    };
    if paired.is_empty() {
        let value = mean(&clusters(left)) - mean(&clusters(right));
        return with_unit(signed(value, digits_of(value)), left);
    }
    let interval = mean_interval(&clusters(&paired));
    let digits = digits_of(interval.mean);
    let value = with_unit(signed(interval.mean, digits), left);
    match interval.half_width {
        None => value,
        Some(half) => {
            let (low, high) = (interval.mean - half, interval.mean + half);
            format!(
                "{value} (95 % CI {} to {}, n = {})",
                fixed(low, digits),
                fixed(high, digits),
                interval.n
            )
        }
    }
}

fn with_unit(text: String, values: &[Value]) -> String {
    let unit = values.first().map(|v| v.unit.as_str()).unwrap_or_default();
    match unit {
        "" | "count" | "1" => text,
        // A scale of the number, not a unit.
        unit if unit.strip_prefix('x').is_some_and(|n| n.parse::<f64>().is_ok()) => text,
        unit => format!("{text} {unit}"),
    }
}
