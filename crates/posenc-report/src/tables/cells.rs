//! Cells of a table: published value, measured value and their difference.

use std::collections::BTreeSet;

use posenc_experiments::PublishedValue;
use posenc_experiments::record::{Row, is_of_machine};
use posenc_experiments::schema::Group;
use posenc_experiments::schema::display::{Aggregate, Column, Table};
use posenc_math::statistics::quantile;

use crate::markdown::plain;
use crate::numbers::{fixed, mean_deviation, signed, significant, written_digits};
use crate::records::{Run, device_name};
use crate::sources::Sources;
use crate::view::View;

#[derive(Debug, Clone, PartialEq)]
pub struct RowKey {
    pub group: String,
    pub method: String,
    /// Signal; `None` selects all.
    pub signal: Option<String>,
    /// Abscissa; `None` selects all.
    pub x: Option<f64>,
}

pub struct Cell {
    pub value: f64,
    pub text: String,
    pub mark: String,
    /// Difference from the published number.
    pub difference: Option<String>,
    /// Conditions that do not apply to the whole table.
    pub labels: Vec<String>,
    /// Number of signals of a measured value.
    pub signals: usize,
}

impl Cell {
    fn new(value: f64, text: String, mark: String) -> Self {
        Cell { value, text, mark, difference: None, labels: Vec::new(), signals: 0 }
    }
}

/// Published values of a group and a method, or of all its methods.
pub fn published<'a>(
    view: &'a View<'_>,
    group: &'a str,
    method: Option<&'a str>,
) -> impl Iterator<Item = &'a PublishedValue> + 'a {
    view.published
        .item(&view.experiment.paper, &view.experiment.item)
        .filter(move |v| v.group == group && method.is_none_or(|m| v.method == m))
}

/// Name of the metric of a column in the published values.
pub fn printed_metric(column: &Column) -> &String {
    column.published_metric.as_ref().unwrap_or(&column.metric)
}

fn chosen<'a>(
    view: &'a View<'_>,
    table: &'a Table,
    key: &'a RowKey,
    column: &'a Column,
) -> Vec<&'a PublishedValue> {
    if !column.published {
        return Vec::new();
    }
    let group = column.published_group.as_ref().unwrap_or(&key.group);
    let own = published(view, group, Some(&key.method))
        .filter(|v| key.signal.as_ref().is_none_or(|s| v.signal == *s));
    let of_signal = table.published_as.iter().filter(|p| key.signal.as_ref() == Some(&p.signal));
    let others = of_signal.flat_map(|p| published(view, &p.group, Some(&key.method)));
    let all: Vec<&PublishedValue> = own
        .chain(others)
        .filter(|v| {
            // A value with another metric name can lack its abscissa.
            let anywhere = column.published_metric.is_some() && v.x.is_none() && key.x.is_none();
            v.metric == *printed_metric(column) && (anywhere || at(key, column, v.x))
        })
        .collect();
    // Prefer a mean over signals to single signals.
    let means: Vec<_> = all.iter().copied().filter(|v| v.signal.is_empty()).collect();
    if key.signal.is_none() && !means.is_empty() { means } else { all }
}

/// Number of decimals of the published numbers in a column, at most `column.digits`: the report adds no
/// digits to published numbers.
pub fn printed_digits(view: &View<'_>, table: &Table, keys: &[RowKey], column: &Column) -> usize {
    let values = keys.iter().flat_map(|k| chosen(view, table, k, column));
    let numbers = values.flat_map(|v| v.value.into_iter().chain(v.deviation));
    numbers.map(written_digits).max().unwrap_or(0).min(column.digits)
}

/// The published number, or `Err` with the remark if the paper leaves the cell empty.
pub fn published_cell(
    view: &View<'_>,
    table: &Table,
    key: &RowKey,
    column: &Column,
    digits: usize,
    sources: &mut Sources,
) -> Result<Option<Cell>, Option<String>> {
    let chosen = chosen(view, table, key, column);
    let values: Vec<f64> = chosen.iter().filter_map(|v| v.value).collect();
    let Some(first) = chosen.iter().find(|v| v.value.is_some()) else {
        let note = chosen.first().map(|v| v.note.clone()).filter(|n| !n.is_empty());
        return if chosen.is_empty() { Ok(None) } else { Err(note) };
    };
    let mark = sources.mark(&first.source);
    Ok(Some(match (values.as_slice(), first.deviation) {
        ([value], Some(deviation)) if column.aggregate == Aggregate::MeanDeviation => {
            let text = format!("{} ± {}", fixed(*value, digits), fixed(deviation, digits));
            Cell::new(*value, text, mark)
        }
        // Published numbers keep their printed number of decimals.
        _ => Cell { mark, ..shown(&values, column, digits) },
    }))
}

fn rows<'a>(
    run: &'a Run,
    key: &'a RowKey,
    column: &'a Column,
) -> impl Iterator<Item = &'a Row> + 'a {
    run.rows(&key.group, &key.method, key.signal.as_deref(), key.x.or(column.x))
        .filter(|r| r.metric == column.metric && at(key, column, r.x))
}

/// Conditions that differ within a table, so that each number needs a label.
#[derive(Debug, Clone, Copy, Default)]
pub struct Mixed {
    /// Some numbers are from a reduced run and some are not.
    pub reduced: bool,
    /// The numbers were measured on several data sets.
    pub data: bool,
    /// The times were measured on several devices.
    pub devices: bool,
}

/// The measured number with its difference from the published one and its conditions. The published
/// number comes with its number of decimals. For data other than the paper's, no difference is shown.
pub fn measured_cell(
    view: &View<'_>,
    run: Option<&Run>,
    key: &RowKey,
    column: &Column,
    published: Option<(&Cell, usize)>,
    mixed: Mixed,
) -> Option<Cell> {
    let run = run?;
    let group = view.experiment.group(&key.group);
    let beside = |r: &&Row| published.is_none() || group.is_none_or(|g| g.untrained(r).is_none());
    let values: Vec<f64> = rows(run, key, column).filter(beside).map(|r| r.value).collect();
    if values.is_empty() {
        return None;
    }
    let mut cell = shown(&values, column, sensible(&values, column));
    let is_others = |data: &&String| group.is_some_and(|g| !g.is_papers_data(data));
    let other_data = rows(run, key, column).map(|r| &r.data).find(is_others);
    let is_equal = published.is_some_and(|(published, _)| cell.text == published.text);
    let signals: BTreeSet<&str> = rows(run, key, column).map(|r| r.signal.as_str()).collect();
    cell.signals = signals.len();
    let all = group.and_then(Group::signals).filter(|_| key.signal.is_none());
    let part = all.filter(|all| signals.len() < all.count);
    if let (Some((published, digits)), None) = (published, other_data) {
        let found = difference(cell.value, published.value, column, digits);
        // Numbers that are equal as printed need no difference, and a mean over some signals is not comparable with one
        // over all.
        let is_comparable = part.is_none() || is_clock(column);
        cell.difference = found.filter(|_| column.difference && !is_equal && is_comparable);
    }
    let is_reduced = |r: &Row| group.is_some_and(|g| g.reduced(r.profile).is_some());
    if let Some(all) = part.filter(|_| !is_equal) {
        cell.labels.push(format!("{} of {} {}", signals.len(), all.count, plain(&all.noun)));
    } else if mixed.reduced && !is_equal && rows(run, key, column).any(is_reduced) {
        cell.labels.push("reduced".into());
    }
    cell.labels.extend(other_data.filter(|_| mixed.data).map(|data| plain(data)));
    if mixed.devices && is_of_machine(&column.metric) {
        // Only the times of one device are shown for each method.
        let other = rows(run, key, column).map(|r| &r.device).find(|device| *device != "cpu");
        cell.labels.extend(other.map(|device| plain(device_name(device))));
    }
    Some(cell)
}

/// Measured minus published, with at most one more digit than the paper prints. For times, measured
/// divided by published, since the machines differ.
fn difference(measured: f64, published: f64, column: &Column, printed: usize) -> Option<String> {
    if !measured.is_finite() || !published.is_finite() {
        return None;
    }
    if !is_clock(column) {
        // Equal as printed.
        if fixed(measured, printed) == fixed(published, printed) {
            return None;
        }
        return Some(signed(measured - published, column.digits.min(printed + 1)));
    }
    (published > 0.0).then(|| format!("× {}", significant(measured / published, 2)))
}

pub fn is_clock(column: &Column) -> bool {
    column.metric.starts_with("time")
}

/// Why rows of a cell are not shown next to published values.
pub fn not_shown<'a>(
    view: &'a View<'_>,
    run: Option<&'a Run>,
    key: &'a RowKey,
    column: &'a Column,
) -> Option<&'a str> {
    let group = view.experiment.group(&key.group)?;
    rows(run?, key, column).find_map(|r| group.untrained(r))
}

/// Runs behind a cell: pairs of signal and seed.
pub fn count(run: &Run, key: &RowKey, column: &Column) -> usize {
    rows(run, key, column).map(|r| (&r.signal, r.seed)).collect::<BTreeSet<_>>().len()
}

/// Number of decimals of measured values. Times get three significant digits, since they vary from run to run.
fn sensible(values: &[f64], column: &Column) -> usize {
    let mean = mean_deviation(values).0.abs();
    if !is_clock(column) || !mean.is_normal() {
        return column.digits;
    }
    (2 - mean.log10().floor() as i32).clamp(0, 12) as usize
}

fn shown(values: &[f64], column: &Column, digits: usize) -> Cell {
    if column.aggregate == Aggregate::Median {
        let [median, most] = [0.5, 0.9].map(|share| quantile(values, share));
        let text = match values.len() {
            1 => fixed(median, digits),
            _ => format!("{} ({})", fixed(median, digits), fixed(most, digits)),
        };
        return Cell::new(median, text, String::new());
    }
    let (mean, deviation) = mean_deviation(values);
    let half = 0.5 * 0.1f64.powi(digits as i32);
    // A mean that would round to zero is shown with significant digits, and so is its deviation.
    let (text, spread, least) = if mean != 0.0 && mean.abs() < half {
        (significant(mean, 3), significant(deviation, 2), 1e-3 * mean.abs())
    } else {
        (fixed(mean, digits), fixed(deviation, digits), half)
    };
    let spreads = values.len() > 1 && column.aggregate == Aggregate::MeanDeviation;
    // Half of the last digit can round to zero as well.
    let spreads = spreads && spread.contains(|c: char| c.is_ascii_digit() && c != '0');
    let text = match spreads && deviation.is_finite() && deviation >= least {
        true => format!("{text} ± {spread}"),
        false => text,
    };
    Cell::new(mean, text, String::new())
}

/// Whether an abscissa matches that of the row or, if the row has none, that of the column.
fn at(key: &RowKey, column: &Column, x: Option<f64>) -> bool {
    match (key.x.or(column.x), x) {
        (None, _) => true,
        (Some(wanted), Some(x)) => close(x, wanted),
        (Some(_), None) => false,
    }
}

pub fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs().max(1e-12)
}
