//! Tables of an item: published numbers beside those of the runs.

use std::collections::BTreeSet;

use posenc_experiments::PublishedValue;
use posenc_experiments::record::Row;
use posenc_experiments::schema::display::{Aggregate, Best, By, Column, Table};

use crate::markdown::{Align, Grid, cell, plain};
use crate::numbers::{MISSING, fixed, mean_deviation, significant, written_digits};
use crate::records::{Conditions, Run, Side};
use crate::sources::Sources;
use crate::view::View;

/// What a row of the table stands for.
#[derive(Debug, Clone, PartialEq)]
struct Key {
    group: String,
    method: String,
    signal: Option<String>,
    x: Option<f64>,
}

/// A number with its spread, ready to be compared and shown.
struct Cell {
    value: f64,
    text: String,
    mark: String,
}

/// Renders one table with its title, legend and remarks.
pub fn render(view: &View<'_>, table: &Table) -> String {
    let mut sources = Sources::default();
    let keys = keys(view, table);
    let mut grid = Grid::default();
    let several = |f: fn(&Key) -> &str| keys.iter().map(f).collect::<BTreeSet<_>>().len() > 1;
    let groups = several(|k| &k.group);
    let methods = table.rows == By::Method || several(|k| &k.method);
    if groups {
        grid.column("Group", Align::Left);
    }
    let own = table.row_label.as_deref().map(cell);
    if methods {
        let label = own.clone().filter(|_| table.rows == By::Method);
        grid.column(label.unwrap_or_else(|| "Method".into()), Align::Left);
    }
    match table.rows {
        By::Method | By::Metric => {}
        By::Signal => drop(grid.column(own.unwrap_or_else(|| "Signal".into()), Align::Left)),
        By::X => drop(grid.column(own.unwrap_or_else(|| "x".into()), Align::Right)),
    }
    let mut lead: Vec<Vec<String>> = keys
        .iter()
        .enumerate()
        .map(|(i, k)| {
            let mut cells = Vec::new();
            if groups {
                // Named once, at its first row.
                let first = i == 0 || keys[i - 1].group != k.group;
                cells.push(if first { plain(&k.group) } else { String::new() });
            }
            if methods {
                cells.push(plain(&k.method));
            }
            match table.rows {
                By::Method | By::Metric => {}
                By::Signal => cells.push(k.signal.as_deref().map_or(MISSING.into(), plain)),
                By::X => cells.push(k.x.map_or(MISSING.into(), |x| significant(x, 6))),
            }
            cells
        })
        .collect();
    let mut empty_in_paper = Vec::new();
    for column in &table.columns {
        let label = cell(&column.label);
        let mut published: Vec<Option<Cell>> = vec![];
        let digits = printed_digits(view, &keys, column);
        for key in &keys {
            let found = published_cell(view, key, column, digits, &mut sources);
            if let Err(note) = &found {
                empty_in_paper
                    .extend(note.clone().map(|n| format!("{}: {}", plain(&key.method), plain(&n))));
            }
            published.push(found.ok().flatten());
        }
        if column.published && published.iter().any(Option::is_some) {
            grid.column(format!("{label}<br>paper"), Align::Right);
            push(&mut lead, &published, column.best);
        }
        for side in &view.sides {
            let name = match (side.side, view.sides.len()) {
                (Side::Reference, 1) => "measured",
                (Side::Reference, _) => "reference",
                (Side::Local, _) => "this machine",
            };
            grid.column(format!("{label}<br>{name}"), Align::Right);
            let cells: Vec<_> =
                keys.iter().map(|k| measured_cell(side.run.as_ref(), k, column)).collect();
            push(&mut lead, &cells, column.best);
        }
    }
    for row in lead {
        grid.row(row);
    }
    let mut text = format!("**{}**", cell(&table.title));
    let remarks = remarks(view, table);
    if !remarks.is_empty() {
        text.push_str(&format!("<br>{remarks}"));
    }
    text.push_str("\n\n");
    if grid.is_empty() {
        text.push_str("*No values yet.*\n\n");
        return text;
    }
    text.push_str(&grid.render());
    let mut notes = Vec::new();
    if !sources.legend().is_empty() {
        notes.push(sources.legend());
    }
    if table.columns.iter().any(|c| c.aggregate == Aggregate::MeanDeviation) && text.contains(" ± ")
    {
        notes.push("mean ± population standard deviation".into());
    }
    empty_in_paper.sort();
    empty_in_paper.dedup();
    notes.extend(empty_in_paper);
    if !notes.is_empty() {
        text.push_str(&format!("<sub>{}</sub>\n\n", notes.join(" · ")));
    }
    text
}

/// Reduced runs and other data behind the table, for its caption.
fn remarks(view: &View<'_>, table: &Table) -> String {
    let mut parts = Vec::new();
    for run in view.runs() {
        let of = |r: &Row| {
            table.groups.contains(&r.group) && table.columns.iter().any(|c| c.metric == r.metric)
        };
        let remark = Conditions::of(view.experiment, run, of).remark();
        if !remark.is_empty() {
            let who = if view.sides.len() > 1 {
                format!("{} – ", run.side.name())
            } else {
                String::new()
            };
            parts.push(format!("*{who}{}*", plain(&remark)));
        }
    }
    parts.join("<br>")
}

/// Appends a column; its best value stands in bold where one is better than another.
fn push(rows: &mut [Vec<String>], cells: &[Option<Cell>], best: Best) {
    let finite = || cells.iter().flatten().filter(|c| c.value.is_finite());
    let sign = match best {
        Best::Highest => 1.0,
        Best::Lowest => -1.0,
        Best::None => 0.0,
    };
    let top = finite().max_by(|a, b| (sign * a.value).total_cmp(&(sign * b.value)));
    let top = top.filter(|_| best != Best::None && finite().count() > 1).map(|c| c.text.as_str());
    for (row, cell) in rows.iter_mut().zip(cells) {
        row.push(match cell {
            None => MISSING.into(),
            // Equal as printed is equally good.
            Some(c) if Some(c.text.as_str()) == top => format!("**{}**{}", c.text, c.mark),
            Some(c) => format!("{}{}", c.text, c.mark),
        });
    }
}

fn keys(view: &View<'_>, table: &Table) -> Vec<Key> {
    let mut keys = Vec::new();
    for group in &table.groups {
        let own = view.experiment.group(group);
        let mut methods: Vec<String> = match (&table.methods, own) {
            (Some(methods), _) => methods.clone(),
            (None, Some(g)) => g.variants.iter().map(|v| v.id.clone()).collect(),
            (None, None) => Vec::new(),
        };
        if table.methods.is_none() {
            // Groups, or methods of a group, that are only published stand in the table too.
            for v in published(view, group, None)
                .filter(|v| table.columns.iter().any(|c| *printed_metric(c) == v.metric))
            {
                if !methods.contains(&v.method) {
                    methods.push(v.method.clone());
                }
            }
        }
        for method in methods {
            let key = |signal: Option<String>, x: Option<f64>| Key {
                group: group.clone(),
                method: method.clone(),
                signal,
                x,
            };
            let rows = || {
                view.runs().flat_map(|r| &r.table.rows).filter(|r| {
                    r.group == *group
                        && r.method == method
                        && table.columns.iter().any(|c| c.metric == r.metric)
                })
            };
            let printed = || {
                published(view, group, Some(&method)).filter(|v| {
                    table.columns.iter().any(|c| c.published && *printed_metric(c) == v.metric)
                })
            };
            match table.rows {
                By::Method | By::Metric => keys.push(key(None, None)),
                By::Signal => {
                    let mut seen = BTreeSet::new();
                    let signals = rows().map(|r| &r.signal).chain(printed().map(|v| &v.signal));
                    for signal in signals.filter(|s| !s.is_empty()) {
                        if seen.insert(signal) {
                            keys.push(key(Some(signal.clone()), None));
                        }
                    }
                }
                By::X => {
                    let mut xs: Vec<f64> =
                        rows().filter_map(|r| r.x).chain(printed().filter_map(|v| v.x)).collect();
                    xs.sort_by(f64::total_cmp);
                    xs.dedup_by(|a, b| close(*a, *b));
                    keys.extend(xs.into_iter().map(|x| key(None, Some(x))));
                }
            }
        }
    }
    keys
}

fn published<'a>(
    view: &'a View<'_>,
    group: &'a str,
    method: Option<&'a str>,
) -> impl Iterator<Item = &'a PublishedValue> + 'a {
    view.published
        .item(&view.experiment.paper, &view.experiment.item)
        .filter(move |v| v.group == group && method.is_none_or(|m| v.method == m))
}

/// The name of a column's metric among published values.
fn printed_metric(column: &Column) -> &String {
    column.published_metric.as_ref().unwrap_or(&column.metric)
}

/// Published values that belong into a cell.
fn chosen<'a>(view: &'a View<'_>, key: &'a Key, column: &'a Column) -> Vec<&'a PublishedValue> {
    if !column.published {
        return Vec::new();
    }
    let all: Vec<&PublishedValue> = published(view, &key.group, Some(&key.method))
        .filter(|v| {
            // Under another name a value may lack the abscissa that it was read at.
            let anywhere = column.published_metric.is_some() && v.x.is_none() && key.x.is_none();
            v.metric == *printed_metric(column) && (anywhere || at(key, column, v.x))
        })
        .filter(|v| key.signal.as_ref().is_none_or(|s| v.signal == *s))
        .collect();
    // A mean over signals says more than single signals.
    let means: Vec<_> = all.iter().copied().filter(|v| v.signal.is_empty()).collect();
    if key.signal.is_none() && !means.is_empty() { means } else { all }
}

/// Digits that a column of published numbers was printed with, `column.digits` at most: no digit
/// is added to what the paper says.
fn printed_digits(view: &View<'_>, keys: &[Key], column: &Column) -> usize {
    let values = keys.iter().flat_map(|k| chosen(view, k, column));
    let numbers = values.flat_map(|v| v.value.into_iter().chain(v.deviation));
    numbers.map(written_digits).max().unwrap_or(0).min(column.digits)
}

/// The published number; `Err` with the remark on a cell that the paper leaves empty.
fn published_cell(
    view: &View<'_>,
    key: &Key,
    column: &Column,
    digits: usize,
    sources: &mut Sources,
) -> Result<Option<Cell>, Option<String>> {
    let chosen = chosen(view, key, column);
    let values: Vec<f64> = chosen.iter().filter_map(|v| v.value).collect();
    let Some(first) = chosen.iter().find(|v| v.value.is_some()) else {
        let note = chosen.first().map(|v| v.note.clone()).filter(|n| !n.is_empty());
        return if chosen.is_empty() { Ok(None) } else { Err(note) };
    };
    let mark = sources.mark(&first.source);
    Ok(Some(match (values.as_slice(), first.deviation) {
        ([value], Some(deviation)) if column.aggregate == Aggregate::MeanDeviation => {
            let text = format!("{} ± {}", fixed(*value, digits), fixed(deviation, digits));
            Cell { value: *value, text, mark }
        }
        _ => shown(&values, column.aggregate, digits, mark),
    }))
}

fn measured_cell(run: Option<&Run>, key: &Key, column: &Column) -> Option<Cell> {
    let values: Vec<f64> = run?
        .table
        .rows
        .iter()
        .filter(|r| r.group == key.group && r.method == key.method && r.metric == column.metric)
        .filter(|r| key.signal.as_ref().is_none_or(|s| r.signal == *s) && at(key, column, r.x))
        .map(|r| r.value)
        .collect();
    (!values.is_empty()).then(|| shown(&values, column.aggregate, column.digits, String::new()))
}

fn shown(values: &[f64], aggregate: Aggregate, digits: usize, mark: String) -> Cell {
    let (mean, deviation) = mean_deviation(values);
    let mut text = fixed(mean, digits);
    if values.len() > 1 && aggregate == Aggregate::MeanDeviation && deviation.is_finite() {
        // Equal values spread by rounding only, and not even by that as printed.
        let spread = if deviation <= 1e-12 * mean.abs() { 0.0 } else { deviation };
        text = format!("{text} ± {}", fixed(spread, digits));
    }
    Cell { value: mean, text, mark }
}

/// Whether an abscissa is the row's or, failing that, the column's.
fn at(key: &Key, column: &Column, x: Option<f64>) -> bool {
    match (key.x.or(column.x), x) {
        (None, _) => true,
        (Some(wanted), Some(x)) => close(x, wanted),
        (Some(_), None) => false,
    }
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs().max(1e-12)
}
