//! Methods that did not learn, or that all solve the task, cannot be compared: their order says nothing about the encodings.

use std::collections::BTreeMap;

use super::checks::{Against, Check};
use super::points::{Context, rows, show};
use crate::record::Row;
use crate::schema::claim::{Ceiling, Floor, Select};

/// Why an order, a quotient or an equality is not comparable: a compared method does not exceed a floor of the experiment.
pub(super) fn below(check: &Check, context: Context<'_>) -> Option<String> {
    if check.against() != Against::Methods {
        return None;
    }
    let selects: Vec<&Select> = check.measured().collect();
    // A check that compares a method with the floor itself must be able to fail.
    let is_named = |s: &Select| s.method.is_some() || s.methods.is_some();
    let is_compared = |floor: &Floor| {
        let is_floor = |s: &Select| s.group == floor.group && s.takes_method(&floor.method);
        selects.iter().any(|s| is_named(s) && is_floor(s))
    };
    context.experiment.floors.iter().filter(|floor| !is_compared(floor)).find_map(|floor| {
        let is_own = |s: &&&Select| s.metric == floor.metric && s.minus.is_none();
        let own = selects.iter().filter(is_own).filter(|s| floor.is_for(&s.group));
        let below = own.flat_map(|select| of_select(floor, select, context));
        below.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, reason)| reason)
    })
}

type Mean = (f64, usize);

fn add(mean: &mut Mean, value: f64) {
    mean.0 += value;
    mean.1 += 1;
}

/// The methods of a selection that do not exceed a floor: the gain over it, and why it is too small.
fn of_select(floor: &Floor, select: &Select, context: Context<'_>) -> Vec<(f64, String)> {
    let is_floor = |row: &Row| row.method == floor.method && row.group == floor.group;
    let mut floors: BTreeMap<&str, Mean> = BTreeMap::new();
    let table = context.record.into_iter();
    let all = table.flat_map(|table| table.of_metric(&floor.group, &floor.metric));
    for row in all.filter(|row| is_floor(row)) {
        add(floors.entry(&row.signal).or_default(), row.value);
    }
    let mut methods: BTreeMap<&str, BTreeMap<&str, Mean>> = BTreeMap::new();
    for row in rows(select, context).filter(|row| !is_floor(row)) {
        let signals = methods.entry(&row.method).or_default();
        add(signals.entry(&row.signal).or_default(), row.value);
    }
    let below = methods.into_iter().filter_map(|(method, signals)| {
        // Means over the signals that both have.
        let (mut own, mut least) = (Mean::default(), Mean::default());
        for (signal, (sum, count)) in signals {
            let Some((floor_sum, floor_count)) = floors.get(signal) else { continue };
            add(&mut own, sum / count as f64);
            add(&mut least, floor_sum / *floor_count as f64);
        }
        let [own, least] = [own, least].map(|(sum, count)| sum / count as f64);
        let gain = if floor.lower_is_better { least - own } else { own - least };
        // NaN without common signals: nothing to compare with.
        (gain <= floor.margin).then(|| {
            let (learned, limit) = if gain > 0.0 {
                (
                    "hardly learned",
                    format!(" (gain {}, more than {} required)", show(gain), show(floor.margin)),
                )
            } else {
                ("did not learn", String::new())
            };
            let (own, least, floor) = (show(own), show(least), &floor.method);
            (gain, format!("{method} {learned}: {own} against {least} with {floor}{limit}"))
        })
    });
    below.collect()
}

/// Why an order, a quotient or an equality is not comparable: all compared methods solve the task, and the metrics only grade their solutions.
pub(super) fn solved(check: &Check, context: Context<'_>) -> Option<String> {
    if check.against() != Against::Methods {
        return None;
    }
    context.experiment.ceilings.iter().find_map(|ceiling| {
        let least: Option<Vec<f64>> =
            check.measured().map(|select| least_success(ceiling, select, context)).collect();
        let least = least?.into_iter().reduce(lower)?;
        let Ceiling { metric, at_least, .. } = ceiling;
        (least >= *at_least).then(|| {
            let (least, limit) = (show(least), show(*at_least));
            format!("all methods solve the task: {metric} is at least {least} (limit {limit})")
        })
    })
}

/// The lowest mean success of the selected methods; `None` if the ceiling does not concern the selected metric.
fn least_success(ceiling: &Ceiling, select: &Select, context: Context<'_>) -> Option<f64> {
    if !ceiling.excludes.contains(&select.metric) {
        return None;
    }
    let success = Select { metric: ceiling.metric.clone(), minus: None, ..select.clone() };
    let mut methods: BTreeMap<&str, Mean> = BTreeMap::new();
    for row in rows(select, context) {
        methods.entry(&row.method).or_default();
    }
    for row in rows(&success, context) {
        add(methods.entry(&row.method).or_default(), row.value);
    }
    // A method without a value of this metric has NaN, which is not at the ceiling.
    methods.into_values().map(|(sum, count)| sum / count as f64).reduce(lower)
}

/// The lower value; NaN if one is NaN.
fn lower(a: f64, b: f64) -> f64 {
    if b.is_nan() || b < a { b } else { a }
}
