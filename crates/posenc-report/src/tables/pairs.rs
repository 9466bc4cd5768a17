//! Published and measured values of a table as numbers, for drawings.

use posenc_experiments::schema::display::{Column, Table};
use posenc_experiments::schema::protocol::WithoutData;

use super::cells::{Mixed, measured_cell, printed_digits, published_cell};
use crate::plot::comparison::{Dot, Kind};
use crate::records::{Conditions, Run};
use crate::sources::Sources;
use crate::view::View;

/// The first column of an item's tables that the paper fills, and its rows; `None` if there is no such column.
pub fn of<'a>(view: &'a View<'_>, run: &Run) -> Option<(&'a Column, Vec<(String, Dot)>)> {
    let columns = |table: &'a Table| table.columns.iter().map(move |column| (table, column));
    let filled = view.experiment.tables.iter().flat_map(columns).filter_map(|(table, column)| {
        let pairs = pairs(view, run, table, column);
        pairs.iter().any(|(_, dot)| dot.measured.is_some()).then_some((column, pairs))
    });
    filled.into_iter().next()
}

/// The rows with a published value, each with its group.
fn pairs(view: &View<'_>, run: &Run, table: &Table, column: &Column) -> Vec<(String, Dot)> {
    let keys = super::keys(view, table);
    let digits = printed_digits(view, table, &keys, column);
    let mut sources = Sources::default();
    let mut found = Vec::new();
    for key in keys {
        let published = published_cell(view, table, &key, column, digits, &mut sources);
        let Some(published) = published.ok().flatten().filter(|cell| cell.value.is_finite()) else {
            continue;
        };
        let measured = measured_cell(
            view,
            Some(run),
            &key,
            column,
            Some((&published, digits)),
            Mixed::default(),
        );
        let own = Conditions::of(view.experiment, run, |row| {
            row.group == key.group && row.method == key.method && row.metric == column.metric
        });
        let group = view.experiment.group(&key.group);
        let kind = group.and_then(|group| group.kind());
        // Generated data have other values than the paper's data, even if they replace no data set.
        let is_generated = kind.is_some_and(|kind| kind.without_data == WithoutData::Generated)
            && own.data.contains("-");
        let measured_as = match (is_generated || !own.other_data.is_empty(), own.reduced.is_empty())
        {
            (true, true) => Some(Kind::Other),
            // Neither the data nor the protocol is the paper's.
            (true, false) => None,
            (false, false) => Some(Kind::Reduced),
            (false, true) => Some(Kind::Full),
        };
        let measured = measured.and_then(|cell| Some((cell.value, measured_as?)));
        let measured = measured.filter(|(value, _)| value.is_finite());
        let dot = Dot { label: key.method, published: published.value, measured };
        found.push((key.group, dot));
    }
    found
}
