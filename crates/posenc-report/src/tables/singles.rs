//! Folded tables with the values per signal that the means of a table summarize.

use std::collections::HashSet;

use posenc_experiments::record::Row;
use posenc_experiments::schema::display::{Aggregate, Best, Column, Table};

use super::cells::{
    Mixed, RowKey, measured_cell, not_shown, printed_digits, published, published_cell,
};
use super::{TableColumn, part};
use crate::markdown::{Align, Grid, cell, details, plain};
use crate::numbers::distinct;
use crate::records::Run;
use crate::sources::Sources;
use crate::view::View;

/// Renders the values per signal of all columns with means, one table per column and group. If the paper has values for
/// some groups, only these groups are shown; the others are only in the CSV file.
pub fn render(view: &View<'_>, table: &Table, keys: &[RowKey], sources: &mut Sources) -> String {
    let averaged = |c: &&Column| c.aggregate == Aggregate::MeanDeviation;
    let mut columns: Vec<&Column> = table.columns.iter().filter(averaged).collect();
    if columns.is_empty() {
        columns = table.columns.iter().collect();
    }
    let is_printed = |group: &&String| published(view, group, None).next().is_some();
    let all = !table.groups.iter().any(|group| is_printed(&group));
    let mut body = String::new();
    let mut most = 0;
    for run in view.runs() {
        for column in &columns {
            for group in table.groups.iter().filter(|group| all || is_printed(group)) {
                // Leave out values that the main table does not show next to published ones.
                let is_shown = |k: &&RowKey| {
                    k.group == *group && not_shown(view, Some(run), k, column).is_none()
                };
                let keys: Vec<&RowKey> = keys.iter().filter(is_shown).collect();
                let signals = signals(run, column, &keys);
                if signals.is_empty() {
                    continue;
                }
                most = most.max(signals.len());
                let who = view.who(run.side).map(|who| format!(", {who}")).unwrap_or_default();
                body.push_str(&format!("{}, {}{who}\n\n", cell(&column.label), plain(group)));
                body.push_str(&one(view, (table, run), column, (&keys, &signals), sources));
            }
        }
    }
    match most {
        0 => String::new(),
        1 => details("Values of 1 signal", &body),
        n => details(&format!("Values per signal ({n} signals)"), &body),
    }
}

/// Signals with values in a group, in record order.
fn signals<'a>(run: &'a Run, column: &Column, keys: &[&RowKey]) -> Vec<&'a str> {
    let methods: HashSet<_> = keys.iter().map(|k| (&k.group, &k.method)).collect();
    let is_own = |row: &&Row| {
        row.metric == column.metric
            && row.signal != "-"
            && methods.contains(&(&row.group, &row.method))
    };
    distinct(run.table.rows.iter().filter(is_own).map(|row| row.signal.as_str()))
}

/// The table of a column and a group: a row for each signal and a column for each method.
fn one(
    view: &View<'_>,
    (table, run): (&Table, &Run),
    column: &Column,
    (keys, signals): (&[&RowKey], &[&str]),
    sources: &mut Sources,
) -> String {
    let mut head = Grid::default();
    head.column("Signal", Align::Left);
    let lead: Vec<_> = signals.iter().map(|signal| vec![plain(signal)]).collect();
    let single = Column { aggregate: Aggregate::Mean, ..column.clone() };
    let mut cell = |key: &RowKey, signal: &&str| {
        let key = RowKey { signal: Some((*signal).to_owned()), ..key.clone() };
        let digits = printed_digits(view, table, std::slice::from_ref(&key), column);
        let printed = published_cell(view, table, &key, &single, digits, sources).ok().flatten();
        let compared = printed.as_ref().map(|p| (p, digits));
        let mut cell = measured_cell(view, Some(run), &key, &single, compared, Mixed::default())?;
        if let Some(p) = &printed {
            cell.labels.insert(0, format!("paper {}{}", p.text, p.mark));
            cell.labels.extend(cell.difference.take());
        }
        Some(cell)
    };
    let method = |key: &&RowKey| TableColumn {
        heading: plain(&key.method),
        cells: signals.iter().map(|signal| cell(key, signal)).collect(),
        best: Best::None,
        is_joined: false,
    };
    let columns: Vec<TableColumn> = keys.iter().map(method).collect();
    part(&head, &lead, &columns, &(0..signals.len()).collect::<Vec<_>>())
}
