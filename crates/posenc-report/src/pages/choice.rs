//! Which method to use: the methods of another item that no faster method exceeds, by measured time and quality.

use std::collections::BTreeMap;

use anyhow::Result;
use posenc_experiments::Catalog;
use posenc_experiments::record::Row;
use posenc_experiments::schema::Experiment;
use posenc_experiments::schema::display::{Choice, Positions};
use posenc_math::statistics::{mean, median};

use super::paired::{is_full, named};
use crate::markdown::{Align, Grid, cell, inline, plain};
use crate::numbers::{duration, fixed};
use crate::records::{Conditions, Records, Run, Side};
use crate::view::{View, Views};

/// Smallest difference in quality that counts, in the metric's unit: one in the second decimal that a table shows.
const SMALLEST: f64 = 0.005;

/// A method with its measured quality and time.
struct Candidate<'a> {
    label: &'a str,
    method: &'a str,
    /// Median over signals, in seconds.
    seconds: f64,
    /// Mean over all signals. A method that lacks some is compared with the best complete one on the signals it has.
    quality: f64,
    signals: usize,
    is_encoding: bool,
    is_best: bool,
    is_best_encoding: bool,
}

impl Candidate<'_> {
    fn name(&self) -> String {
        format!("{} ({})", self.method, self.label)
    }

    fn best_among(&self) -> &'static str {
        match (self.is_best, self.is_best_encoding) {
            (true, true) => "all methods",
            (true, false) => "all methods, no encoding",
            (false, true) => "position encodings",
            (false, false) => "–",
        }
    }
}

/// Quality and time of a method, by signal.
#[derive(Default)]
struct Measured {
    quality: BTreeMap<String, f64>,
    seconds: BTreeMap<String, f64>,
}

/// The methods worth knowing, the fastest first: those that no faster one exceeds, among all methods and among position encodings, and
/// the best of each group.
fn candidates<'a>(
    choice: &'a Choice,
    experiment: &'a Experiment,
    rows: &[Row],
) -> Vec<Candidate<'a>> {
    let mut all: Vec<(Candidate<'a>, Measured)> = Vec::new();
    for chosen in &choice.groups {
        let Some(group) = experiment.group(&chosen.group) else { continue };
        for variant in &group.variants {
            let own = |row: &&Row| {
                row.group == group.id
                    && row.method == variant.id
                    && row.x.is_none()
                    && row.seed == 0
            };
            let mut measured = Measured::default();
            for row in rows.iter().filter(own).filter(|row| is_full(group, row)) {
                let values = match &row.metric {
                    metric if *metric == choice.metric => &mut measured.quality,
                    metric if *metric == choice.time => &mut measured.seconds,
                    _ => continue,
                };
                values.insert(row.signal.clone(), row.value);
            }
            measured.quality.retain(|_, value| value.is_finite());
            let seconds: Vec<f64> = measured.seconds.values().copied().collect();
            let quality: Vec<f64> = measured.quality.values().copied().collect();
            let Ok(quality) = mean(&quality) else { continue };
            if seconds.is_empty() {
                continue;
            }
            let candidate = Candidate {
                label: &chosen.label,
                method: &variant.id,
                seconds: median(&seconds),
                quality,
                signals: measured.quality.len(),
                is_encoding: variant.embedder.is_some(),
                is_best: false,
                is_best_encoding: false,
            };
            all.push((candidate, measured));
        }
    }
    adjust(&mut all);
    let mut all: Vec<Candidate<'a>> = all.into_iter().map(|(candidate, _)| candidate).collect();
    all.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    let (mut best, mut best_encoding) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
    for candidate in &mut all {
        candidate.is_best = candidate.quality > best + SMALLEST;
        best = best.max(candidate.quality);
        if candidate.is_encoding {
            candidate.is_best_encoding = candidate.quality > best_encoding + SMALLEST;
            best_encoding = best_encoding.max(candidate.quality);
        }
    }
    let mut best_of: BTreeMap<&str, f64> = BTreeMap::new();
    for candidate in &all {
        let best = best_of.entry(candidate.label).or_insert(f64::NEG_INFINITY);
        *best = best.max(candidate.quality);
    }
    all.retain(|c| c.is_best || c.is_best_encoding || best_of.get(c.label) == Some(&c.quality));
    all
}

/// Makes methods on fewer signals comparable: the mean difference from the best complete method, on the signals that both have, is added
/// to the mean of that method.
fn adjust(all: &mut [(Candidate<'_>, Measured)]) {
    let most = all.iter().map(|(c, _)| c.signals).max().unwrap_or(0);
    let complete = all.iter().filter(|(c, _)| c.signals == most);
    let Some((best, reference)) = complete.max_by(|a, b| a.0.quality.total_cmp(&b.0.quality))
    else {
        return;
    };
    let (mean_of_best, reference) = (best.quality, reference.quality.clone());
    for (candidate, measured) in all.iter_mut().filter(|(c, _)| c.signals < most) {
        let differences: Vec<f64> = (measured.quality.iter())
            .filter_map(|(signal, value)| Some(value - reference.get(signal)?))
            .collect();
        if let Ok(difference) = mean(&differences) {
            candidate.quality = mean_of_best + difference;
        }
    }
}

/// Renders the choices of an item.
pub fn render(views: &Views<'_>, view: &View<'_>) -> String {
    let mut text = String::new();
    for choice in &view.experiment.choices {
        text.push_str(&format!("**{}**\n\n", inline(&choice.title)));
        let source = choice.item.split_once('/').and_then(|(paper, item)| views.get(paper, item));
        let runs = source.iter().flat_map(|source| source.runs().map(move |run| (*source, run)));
        let mut is_measured = false;
        for (source, run) in runs {
            let rows = candidates(choice, source.experiment, &run.table.rows);
            if rows.is_empty() {
                continue;
            }
            is_measured = true;
            let who = source.who(run.side).map(|who| format!("*{who}.* ")).unwrap_or_default();
            text.push_str(&format!("{who}{}\n", table(choice, &rows)));
            let is_read = |row: &Row| choice.groups.iter().any(|chosen| chosen.group == row.group);
            let conditions = Conditions::of(source.experiment, run, is_read);
            text.push_str(&format!("<sub>{}</sub>\n\n", plain(&conditions.line())));
        }
        if !is_measured {
            text.push_str("*Not measured yet: no method was run at the full protocol.*\n\n");
        }
    }
    text
}

fn table(choice: &Choice, rows: &[Candidate<'_>]) -> String {
    let mut grid = Grid::default();
    grid.column("Time", Align::Right)
        .column("Method", Align::Left)
        .column(format!("{} ({})", cell(&named(&choice.metric)), cell(&choice.unit)), Align::Right)
        .column("n", Align::Right)
        .column("Best at this time among", Align::Left);
    for row in rows {
        grid.row(vec![
            duration(row.seconds),
            cell(&row.name()),
            fixed(row.quality, 2),
            row.signals.to_string(),
            row.best_among().to_owned(),
        ]);
    }
    grid.render()
}

/// The choices for signals with this number of axes and these known positions, as text for a terminal; empty if nothing is on record.
///
/// # Errors
///
/// A record that cannot be grouped.
pub fn advice(
    catalog: &Catalog,
    records: &Records,
    axes: usize,
    positions: Positions,
) -> Result<String> {
    let mut text = String::new();
    let all = catalog.experiments.iter().flat_map(|experiment| &experiment.choices);
    for choice in all.filter(|choice| choice.axes == axes && choice.positions == positions) {
        let Some((paper, item)) = choice.item.split_once('/') else { continue };
        let (Some(experiment), Some(record)) =
            (catalog.experiment(paper, item), records.get(paper, item))
        else {
            continue;
        };
        let run = Run::of(Side::Reference, experiment, record)?;
        let rows = candidates(choice, experiment, &run.table.rows);
        if rows.is_empty() {
            continue;
        }
        let heading = format!("{} ({})", named(&choice.metric), choice.unit);
        text.push_str(&format!("{}\n", choice.title));
        text.push_str(&format!(
            "{:>8}  {heading:>14}  {:>3}  {:<26}method\n",
            "time", "n", "best at this time among"
        ));
        for row in &rows {
            text.push_str(&format!(
                "{:>8}  {:>14.2}  {:>3}  {:<26}{}\n",
                duration(row.seconds),
                row.quality,
                row.signals,
                row.best_among(),
                row.name()
            ));
        }
        text.push('\n');
    }
    Ok(text)
}
