//! Tables of an item: published and measured values.

mod cells;

use std::collections::BTreeSet;

use posenc_experiments::record::{Row, is_of_machine};
use posenc_experiments::schema::display::{Aggregate, Best, By, Table};

use self::cells::{
    Cell, Mixed, RowKey, close, count, is_clock, measured_cell, not_shown, printed_digits,
    printed_metric, published, published_cell,
};
use crate::markdown::{Align, Grid, attribute, bare, cell, details, plain};
use crate::numbers::{MISSING, counted, distinct, significant};
use crate::records::{Conditions, Run, Side};
use crate::sources::Sources;
use crate::view::View;

/// A table without its title.
struct Rendered {
    /// What its runs have in common, such as a reduction.
    remarks: String,
    body: String,
    /// Whether the paper has none of its groups.
    is_ours: bool,
}

/// Renders the tables of an item with their titles, legends and remarks. Tables of ablations alone are folded next to others.
pub fn render_all(view: &View<'_>) -> String {
    let tables = &view.experiment.tables;
    let all: Vec<_> = tables.iter().map(|table| (table, render(view, table))).collect();
    let has_others = all.iter().any(|(_, own)| !own.is_ours);
    let mut text = String::new();
    for (table, Rendered { remarks, body, is_ours }) in all {
        let [before, after] = if remarks.is_empty() { [""; 2] } else { ["<br>", "\n\n"] };
        text += &match is_ours && has_others {
            true => details(&attribute(&bare(&table.title)), &format!("{remarks}{after}{body}")),
            false => format!("**{}**{before}{remarks}\n\n{body}", cell(&table.title)),
        };
    }
    text
}

fn render(view: &View<'_>, table: &Table) -> Rendered {
    let mut sources = Sources::default();
    let keys = keys(view, table);
    let (mut grid, mut head) = (Grid::default(), Vec::new());
    let several = |f: fn(&RowKey) -> &str| keys.iter().map(f).collect::<BTreeSet<_>>().len() > 1;
    let groups = several(|k| &k.group);
    let methods = table.rows == By::Method || several(|k| &k.method);
    let mut lead: Vec<Vec<String>> = vec![Vec::new(); keys.len()];
    let mut add = |label: &str, align: Align, text: &dyn Fn(usize, &RowKey) -> String| {
        head.push((label.to_owned(), align));
        for (i, (row, key)) in lead.iter_mut().zip(&keys).enumerate() {
            row.push(text(i, key));
        }
    };
    if groups {
        // Only the first row of a group has its name.
        let is_first = |i: usize, key: &RowKey| i == 0 || keys[i - 1].group != key.group;
        let name =
            |i, key: &RowKey| if is_first(i, key) { plain(&key.group) } else { String::new() };
        add("Group", Align::Left, &name);
    }
    if methods {
        add("Method", Align::Left, &|_, key| plain(&key.method));
    }
    if matches!(table.rows, By::Signal | By::SignalX) {
        let signal = |_, key: &RowKey| key.signal.as_deref().map_or(MISSING.into(), plain);
        add("Signal", Align::Left, &signal);
    }
    if matches!(table.rows, By::X | By::SignalX) {
        add("x", Align::Right, &|_, key| key.x.map_or(MISSING.into(), |x| significant(x, 6)));
    }
    if let (Some((label, _)), Some(own)) = (head.last_mut(), &table.row_label) {
        *label = cell(own);
    }
    for (label, align) in head {
        grid.column(label, align);
    }
    let counts = |run: &Run| -> Vec<usize> {
        let of = |key| table.columns.iter().map(|column| count(run, key, column)).max();
        keys.iter().map(|key| of(key).unwrap_or(0)).collect()
    };
    // A run without values has no place in the rest of the table.
    let runs: Vec<(&Run, Vec<usize>)> = view.runs().map(|run| (run, counts(run))).collect();
    let runs: Vec<_> =
        runs.into_iter().filter(|(_, counts)| counts.iter().any(|n| *n > 0)).collect();
    let runs_note = runs_behind(view, &runs, &mut grid, &mut lead);
    let mut empty_in_paper = Vec::new();
    let (mut constants, mut equal): (Vec<String>, Vec<String>) = Default::default();
    let mut left_out: BTreeSet<String> = BTreeSet::new();
    let mut columns: Vec<TableColumn> = Vec::new();
    let (mut differences, mut quotients) = (false, false);
    let mut has_values = false;
    for column in &table.columns {
        let label = cell(&column.label);
        let mut published: Vec<Option<Cell>> = vec![];
        let digits = printed_digits(view, table, &keys, column);
        for key in &keys {
            let found = published_cell(view, table, key, column, digits, &mut sources);
            if let Err(note) = &found {
                empty_in_paper
                    .extend(note.clone().map(|n| format!("{}: {}", plain(&key.method), plain(&n))));
            }
            published.push(found.ok().flatten());
        }
        has_values |= published.iter().any(Option::is_some);
        let paper = table.published_label.as_deref().map_or("paper".into(), cell);
        let mut all: Vec<(String, Vec<Option<Cell>>)> = Vec::new();
        for side in &view.sides {
            let name = match (side.side, view.sides.len(), &table.measured_label) {
                (Side::Reference, 1, Some(label)) => cell(label),
                (Side::Reference, 1, None) => "measured".into(),
                (Side::Reference, ..) => "reference".into(),
                (Side::Local, ..) => "this machine".into(),
            };
            let run = side.run.as_ref();
            let mixed = run.map(|run| mixed(view, table, run)).unwrap_or_default();
            let cells: Vec<_> = keys
                .iter()
                .zip(&published)
                .map(|(k, p)| {
                    measured_cell(view, run, k, column, p.as_ref().map(|p| (p, digits)), mixed)
                })
                .collect();
            has_values |= cells.iter().any(Option::is_some);
            let compared = cells.iter().flatten().any(|c| c.difference.is_some());
            differences |= compared && !is_clock(column);
            quotients |= compared && is_clock(column);
            for (key, published) in keys.iter().zip(&published) {
                let reason = published.as_ref().and_then(|_| not_shown(view, run, key, column));
                left_out.extend(reason.map(|r| format!("{}: {r}", plain(&key.group))));
            }
            all.push((name, cells));
        }
        let has_paper = column.published && published.iter().any(Option::is_some);
        if has_paper {
            all.insert(0, (paper, published));
        }
        if has_paper && are_equal(&all) {
            all.remove(0);
            equal.push(label.clone());
        }
        match constant(&all) {
            Some(value) if keys.len() > 2 && column.best == Best::None => {
                constants.push(format!("{}: {value}", label.replace("<br>", " ")));
            }
            _ => {
                let named = |(i, (name, cells))| TableColumn {
                    heading: format!("{label}<br>{name}"),
                    cells,
                    best: column.best,
                    is_joined: i > 0,
                };
                columns.extend(all.into_iter().enumerate().map(named));
            }
        }
    }
    let is_bare = columns.is_empty();
    // Groups that the paper does not have are folded below those that it has, unless no column compares with it.
    let compares = table.columns.iter().any(|column| column.published);
    let is_of_ours =
        |key: &RowKey| view.experiment.group(&key.group).is_some_and(|group| group.ours.is_some());
    let is_ours = !keys.is_empty() && keys.iter().all(is_of_ours);
    let is_folded = |place: &usize| compares && keys.get(*place).is_some_and(is_of_ours);
    let (mut ours, mut shown): (Vec<usize>, Vec<usize>) = (0..keys.len()).partition(is_folded);
    if shown.is_empty() {
        std::mem::swap(&mut ours, &mut shown);
    }
    let part = |places: &[usize]| part(&grid, &lead, &columns, places);
    let mut text = String::new();
    let remarks = remarks(view, table, &runs);
    if keys.is_empty() || !has_values {
        text.push_str("*No values yet.*\n\n");
        return Rendered { remarks, body: text, is_ours };
    }
    let mut notes = Vec::new();
    if is_bare {
        text.push_str(&format!("In all {} rows: {}.\n\n", keys.len(), constants.join("; ")));
    } else {
        text.push_str(&part(&shown));
        if !constants.is_empty() {
            notes.push(format!("in all rows: {}", constants.join("; ")));
        }
    }
    if !equal.is_empty() {
        notes.push(format!("equal to the paper's as printed: {}", equal.join(", ")));
    }
    notes.extend(runs_note);
    if !left_out.is_empty() {
        let groups: Vec<_> = left_out.iter().map(|reason| plain(reason)).collect();
        notes.push(format!("not shown next to published values: {}", groups.join("; ")));
    }
    notes.extend(differences.then(|| "small numbers: measured − paper".to_owned()));
    notes.extend(quotients.then(|| "× after times: measured ÷ paper".to_owned()));
    if !sources.legend().is_empty() {
        notes.push(sources.legend());
    }
    if table.columns.iter().any(|c| c.aggregate == Aggregate::MeanDeviation) && text.contains(" ± ")
    {
        notes.push("± population standard deviation, left out where it rounds to zero".into());
    }
    if text.contains("| **") {
        notes.push(match columns.iter().any(TableColumn::is_uneven) {
            true => "bold: best of the column among the rows with the most signals".into(),
            false => "bold: best of the column".into(),
        });
    }
    if table.columns.iter().any(|c| c.aggregate == Aggregate::Median) {
        notes.push("medians, with 90th percentiles in parentheses".into());
    }
    empty_in_paper.sort();
    empty_in_paper.dedup();
    notes.extend(empty_in_paper);
    notes.extend(runs.iter().filter_map(|(run, _)| {
        let data = data(table, run).into_iter().map(plain).collect::<Vec<_>>().join(", ");
        let who = view.who(run.side).unwrap_or("measured");
        (!data.is_empty()).then(|| format!("{who} on {data}"))
    }));
    if !notes.is_empty() {
        text.push_str(&format!("<sub>{}</sub>\n\n", notes.join(" · ")));
    }
    if !ours.is_empty() && !is_bare {
        let summary = format!("Not in the paper ({})", counted(ours.len(), "row"));
        text.push_str(&details(&summary, &part(&ours)));
    }
    Rendered { remarks, body: text, is_ours }
}

/// A column of published values or of those of a run.
struct TableColumn {
    heading: String,
    cells: Vec<Option<Cell>>,
    best: Best,
    /// Whether it stays next to the column before it.
    is_joined: bool,
}

impl TableColumn {
    /// Whether the best value is chosen among some of the rows, because others have fewer signals.
    fn is_uneven(&self) -> bool {
        let mut signals = self.cells.iter().flatten().map(|cell| cell.signals);
        let first = signals.next();
        self.best != Best::None && signals.any(|own| Some(own) != first)
    }
}

/// The rows at some places, without columns that are empty in all of them; a number of runs that all share is below the table. `head` and
/// `lead` are the first columns.
fn part(head: &Grid, lead: &[Vec<String>], columns: &[TableColumn], places: &[usize]) -> String {
    let mut grid = head.clone();
    let mut rows: Vec<_> = places.iter().filter_map(|place| lead.get(*place)).cloned().collect();
    let n = grid.take_constant("n", &mut rows).map(|n| format!("<sub>n = {n}</sub>\n\n"));
    let width = rows.first().map_or(0, Vec::len);
    for column in columns {
        let cells: Vec<_> = places.iter().filter_map(|place| column.cells.get(*place)).collect();
        if cells.iter().all(|cell| cell.is_none()) {
            continue;
        }
        grid.column(column.heading.clone(), Align::Right);
        if column.is_joined {
            grid.join();
        }
        push(&mut rows, &cells, column.best);
    }
    for row in rows {
        grid.row(row);
    }
    grid.render_in_parts(width) + &n.unwrap_or_default()
}

/// Shows the number of runs behind each row: adds a column, or returns a note if the number is the same in all rows.
fn runs_behind(
    view: &View<'_>,
    runs: &[(&Run, Vec<usize>)],
    grid: &mut Grid,
    lead: &mut [Vec<String>],
) -> Option<String> {
    // The number of one run needs that of the other beside it.
    let are_single = runs.iter().flat_map(|(_, counts)| counts).all(|n| *n < 2);
    let mut notes = Vec::new();
    for (run, counts) in runs.iter().filter(|_| !are_single) {
        let different: BTreeSet<usize> = counts.iter().copied().filter(|n| *n > 0).collect();
        let who = view.who(run.side);
        match (different.len(), different.first()) {
            (_, None) => {}
            (1, Some(n)) => notes.push((who, format!("n = {n}"))),
            _ => {
                grid.column(who.map_or("n".into(), |who| format!("n<br>{who}")), Align::Right);
                for (row, n) in lead.iter_mut().zip(counts) {
                    row.push(if *n > 0 { n.to_string() } else { MISSING.into() });
                }
                notes.push((None, "n: signals × seeds".into()));
            }
        }
    }
    // Two runs of the same size need one note.
    if notes.windows(2).all(|pair| matches!(pair, [a, b] if a.1 == b.1)) {
        notes.truncate(1);
        notes.iter_mut().for_each(|note| note.0 = None);
    }
    let text = |(who, note): &(Option<&str>, String)| match who {
        Some(who) => format!("{note} ({who})"),
        None => note.clone(),
    };
    (!notes.is_empty()).then(|| notes.iter().map(text).collect::<Vec<_>>().join(", "))
}

/// Whether all measured values of a column equal the published ones as printed, and at least three do.
fn are_equal(sides: &[(String, Vec<Option<Cell>>)]) -> bool {
    let Some(((_, published), measured)) = sides.split_first() else { return false };
    let mut pairs = 0;
    for (_, cells) in measured {
        for (own, paper) in cells.iter().zip(published) {
            match (own, paper) {
                (Some(own), Some(paper)) if own.text == paper.text && paper.mark.is_empty() => {
                    pairs += 1;
                }
                (Some(_), None) | (None, None) => {}
                _ => return false,
            }
        }
    }
    pairs > 2
}

/// The value of a column if it is the same in all rows. If the paper's and the measured value differ, both are listed.
fn constant(sides: &[(String, Vec<Option<Cell>>)]) -> Option<String> {
    let mut values: Vec<(String, String)> = Vec::new();
    for (name, cells) in sides {
        let text = |c: &Option<Cell>| {
            c.as_ref().map(|c| format!("{}{}", c.text, c.mark)).unwrap_or_default()
        };
        let first = cells.first().map(text).filter(|t| !t.is_empty())?;
        if !cells.iter().all(|c| text(c) == first) {
            return None;
        }
        values.push((name.clone(), first));
    }
    let (_, first) = values.first()?;
    if values.iter().all(|(_, value)| value == first) {
        return Some(first.clone());
    }
    let named = values.iter().map(|(name, value)| format!("{value} ({name})"));
    Some(named.collect::<Vec<_>>().join(", "))
}

fn data<'a>(table: &Table, run: &'a Run) -> BTreeSet<&'a str> {
    let rows = run.table.rows.iter().filter(|r| is_shown(table, r) && r.data != "-");
    rows.map(|r| r.data.as_str()).collect()
}

/// Conditions of a run that differ between the values of the table.
fn mixed(view: &View<'_>, table: &Table, run: &Run) -> Mixed {
    let rows = run.table.rows.iter().filter(|r| is_shown(table, r));
    let reduced: BTreeSet<bool> = rows
        .filter_map(|r| Some(view.experiment.group(&r.group)?.reduced(r.profile).is_some()))
        .collect();
    let timed = run.table.rows.iter().filter(|r| is_shown(table, r) && is_of_machine(&r.metric));
    let devices: BTreeSet<&str> = timed.map(|r| r.device.as_str()).collect();
    Mixed {
        reduced: reduced.len() > 1,
        data: data(table, run).len() > 1,
        devices: devices.len() > 1,
    }
}

fn is_shown(table: &Table, row: &Row) -> bool {
    table.groups.contains(&row.group)
        && table.methods.as_ref().is_none_or(|m| m.contains(&row.method))
        && table.columns.iter().any(|c| c.metric == row.metric)
}

/// Caption remarks on reduced runs and other data.
fn remarks(view: &View<'_>, table: &Table, runs: &[(&Run, Vec<usize>)]) -> String {
    let mut parts = Vec::new();
    for (run, _) in runs {
        let remark = Conditions::of(view.experiment, run, |r| is_shown(table, r)).remark();
        if !remark.is_empty() {
            let who = view.who(run.side).map(|who| format!("{who} – ")).unwrap_or_default();
            parts.push(format!("*{who}{}*", plain(&remark)));
        }
    }
    parts.join("<br>")
}

/// Appends a column; the best value is bold if there are at least two values over equally many signals.
fn push(rows: &mut [Vec<String>], cells: &[&Option<Cell>], best: Best) {
    let most = cells.iter().copied().flatten().map(|cell| cell.signals).max();
    let is_complete = |cell: &&Cell| cell.value.is_finite() && Some(cell.signals) == most;
    let complete = || cells.iter().copied().flatten().filter(is_complete);
    let sign = match best {
        Best::Highest => 1.0,
        Best::Lowest => -1.0,
        Best::None => 0.0,
    };
    let top = complete().max_by(|a, b| (sign * a.value).total_cmp(&(sign * b.value)));
    let top = top.filter(|_| best != Best::None && complete().count() > 1);
    let top = top.map(|cell| cell.text.as_str());
    for (row, cell) in rows.iter_mut().zip(cells) {
        let Some(cell) = cell else {
            row.push(MISSING.into());
            continue;
        };
        // Values that are equal as printed are equally good.
        let is_best = Some(cell.text.as_str()) == top && is_complete(&cell);
        let bold = if is_best { "**" } else { "" };
        let mut shown = format!("{bold}{}{bold}{}", cell.text, cell.mark);
        let below = cell.difference.iter().chain(&cell.labels);
        let below: Vec<&str> = below.map(String::as_str).collect();
        if !below.is_empty() {
            shown.push_str(&format!("<br><sub>{}</sub>", below.join(", ")));
        }
        row.push(shown);
    }
}

fn keys(view: &View<'_>, table: &Table) -> Vec<RowKey> {
    let mut keys = Vec::new();
    for group in &table.groups {
        let own = view.experiment.group(group);
        let mut methods: Vec<String> = match (&table.methods, own) {
            (Some(methods), _) => methods.clone(),
            (None, Some(g)) => g.variants.iter().map(|v| v.id.clone()).collect(),
            (None, None) => Vec::new(),
        };
        if table.methods.is_none() {
            // Include groups and methods that have only published values.
            for v in published(view, group, None)
                .filter(|v| table.columns.iter().any(|c| *printed_metric(c) == v.metric))
            {
                if !methods.contains(&v.method) {
                    methods.push(v.method.clone());
                }
            }
        }
        // A list of methods for several groups can name methods that a group lacks.
        let is_of_group = |method: &String| {
            own.is_none_or(|g| g.variants.iter().any(|v| v.id == *method))
                || published(view, group, Some(method)).next().is_some()
                || view.runs().any(|run| run.rows(group, method, None, None).next().is_some())
        };
        methods.retain(is_of_group);
        for method in methods {
            let key = |signal: Option<String>, x: Option<f64>| RowKey {
                group: group.clone(),
                method: method.clone(),
                signal,
                x,
            };
            let rows = || {
                view.runs()
                    .flat_map(|run| run.rows(group, &method, None, None))
                    .filter(|r| table.columns.iter().any(|c| c.metric == r.metric))
            };
            let printed = || {
                published(view, group, Some(&method)).filter(|v| {
                    table.columns.iter().any(|c| c.published && *printed_metric(c) == v.metric)
                })
            };
            match table.rows {
                By::Method | By::Metric => keys.push(key(None, None)),
                By::Signal => {
                    let signals = rows().map(|r| &r.signal).chain(printed().map(|v| &v.signal));
                    let signals = distinct(signals.filter(|s| !s.is_empty()));
                    keys.extend(signals.into_iter().map(|s| key(Some(s.clone()), None)));
                }
                By::X | By::SignalX => {
                    let mut xs: Vec<f64> =
                        rows().filter_map(|r| r.x).chain(printed().filter_map(|v| v.x)).collect();
                    xs.sort_by(f64::total_cmp);
                    xs.dedup_by(|a, b| close(*a, *b));
                    let signals = rows().map(|r| r.signal.as_str()).filter(|s| *s != "-");
                    let signals = match table.rows {
                        By::X => vec![None],
                        _ => distinct(signals).into_iter().map(Some).collect(),
                    };
                    for signal in signals {
                        let signal = signal.map(str::to_owned);
                        keys.extend(xs.iter().map(|x| key(signal.clone(), Some(*x))));
                    }
                }
            }
        }
    }
    keys
}
