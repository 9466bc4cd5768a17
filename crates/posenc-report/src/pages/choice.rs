//! Advice on which method to use: the Pareto front of measured time and quality among the methods of another item.

use std::collections::BTreeMap;

use anyhow::Result;
use posenc_experiments::Catalog;
use posenc_experiments::record::Row;
use posenc_experiments::schema::Experiment;
use posenc_experiments::schema::display::{Choice, Positions};
use posenc_math::statistics::{LinearFit, linear_fit, mean, median};

use super::paired::{is_full, named};
use crate::markdown::{Align, Grid, cell, inline, plain};
use crate::numbers::{MISSING, duration, fixed};
use crate::records::{Conditions, Records, Run, Side};
use crate::view::{View, Views};

/// Smallest difference in quality that counts, in the metric's unit: half a unit of the second decimal, the last one
/// shown.
const SMALLEST: f64 = 0.005;
/// Level of the prediction intervals.
const LEVEL: f64 = 0.9;

/// Values by signal.
type Values = BTreeMap<String, f64>;

/// A method with its measured quality and time.
struct Candidate<'a> {
    label: &'a str,
    method: &'a str,
    /// Median over signals, in seconds.
    seconds: f64,
    /// Mean over all signals. A method that lacks some is compared with the best complete one on the signals it has.
    quality: f64,
    measured: Values,
    /// The predictor and the quality of each signal that has both.
    predicted: Vec<(f64, f64)>,
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
            (false, false) => MISSING,
        }
    }

    /// The expected quality of a signal with this predictor, and half the width of the interval.
    fn predict(&self, predictor: f64) -> Option<(f64, f64)> {
        let (quality, half_width) = line(self.predicted.iter())?.predict(predictor, LEVEL);
        Some((quality, half_width?))
    }

    /// Leave-one-out predictions: each signal is predicted from the others.
    fn left_out(&self) -> LeftOut {
        let one = |(place, (predictor, quality)): (usize, &(f64, f64))| {
            let others = self.predicted.iter().enumerate().filter(|(other, _)| *other != place);
            let line = line(others.map(|(_, pair)| pair))?;
            let (predicted, half_width) = line.predict(*predictor, LEVEL);
            let error = (predicted - quality).abs();
            Some((error, error <= half_width?))
        };
        LeftOut(self.predicted.iter().enumerate().filter_map(one).collect())
    }
}

/// Leave-one-out predictions: absolute errors, and whether the measured value is inside the interval.
#[derive(Default)]
struct LeftOut(Vec<(f64, bool)>);

impl LeftOut {
    /// Cells with the median error, and with the number of values inside their intervals.
    fn cells(&self) -> [String; 2] {
        if self.0.is_empty() {
            return [MISSING, MISSING].map(str::to_owned);
        }
        let errors: Vec<f64> = self.0.iter().map(|(error, _)| *error).collect();
        let inside = self.0.iter().filter(|(_, is_inside)| *is_inside).count();
        [fixed(median(&errors), 2), format!("{inside} of {}", self.0.len())]
    }
}

fn line<'p>(pairs: impl Iterator<Item = &'p (f64, f64)>) -> Option<LinearFit> {
    let (x, y): (Vec<f64>, Vec<f64>) = pairs.copied().unzip();
    linear_fit(&x, &y).ok()
}

/// The methods of a choice.
struct Candidates<'a> {
    /// The methods to list, fastest first.
    listed: Vec<Candidate<'a>>,
    /// Leave-one-out predictions of all methods, by label.
    left_out: Vec<(&'a str, LeftOut)>,
}

/// Selects the methods to list, fastest first: the Pareto fronts of time and quality among all methods and among
/// position encodings, and the best method of each group.
fn candidates<'a>(choice: &'a Choice, experiment: &'a Experiment, rows: &[Row]) -> Candidates<'a> {
    let values = |group: &str, method: &str, metric: &str| -> Values {
        let is_full = |row: &&Row| experiment.group(group).is_some_and(|group| is_full(group, row));
        rows.iter()
            .filter(|row| row.group == group && row.method == method && row.metric == metric)
            .filter(|row| row.x.is_none() && row.seed == 0 && row.value.is_finite())
            .filter(is_full)
            .map(|row| (row.signal.clone(), row.value))
            .collect()
    };
    let predictor = choice.predictor.as_ref();
    let predictor = predictor.map(|p| values(&p.group, &p.method, &p.metric)).unwrap_or_default();
    let mut all: Vec<Candidate<'a>> = Vec::new();
    for chosen in &choice.groups {
        let Some(group) = experiment.group(&chosen.group) else { continue };
        for variant in &group.variants {
            let measured = values(&group.id, &variant.id, &choice.metric);
            let seconds = values(&group.id, &variant.id, &choice.time);
            let numbers: Vec<f64> = measured.values().copied().collect();
            let (Ok(quality), false) = (mean(&numbers), seconds.is_empty()) else { continue };
            let pairs = measured.iter().filter_map(|(s, value)| Some((*predictor.get(s)?, *value)));
            all.push(Candidate {
                label: &chosen.label,
                method: &variant.id,
                seconds: median(&seconds.into_values().collect::<Vec<_>>()),
                quality,
                predicted: pairs.collect(),
                measured,
                is_encoding: variant.embedder.is_some(),
                is_best: false,
                is_best_encoding: false,
            });
        }
    }
    adjust(&mut all);
    all.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    let (mut best, mut best_encoding) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
    let mut best_of: BTreeMap<&str, f64> = BTreeMap::new();
    for candidate in &mut all {
        candidate.is_best = candidate.quality > best + SMALLEST;
        best = best.max(candidate.quality);
        if candidate.is_encoding {
            candidate.is_best_encoding = candidate.quality > best_encoding + SMALLEST;
            best_encoding = best_encoding.max(candidate.quality);
        }
        let best = best_of.entry(candidate.label).or_insert(f64::NEG_INFINITY);
        *best = best.max(candidate.quality);
    }
    let of_label = |label: &'a str| {
        let own = all.iter().filter(|candidate| candidate.label == label);
        (label, LeftOut(own.flat_map(|candidate| candidate.left_out().0).collect()))
    };
    let labels = choice.groups.iter().map(|chosen| of_label(&chosen.label));
    let left_out = labels.filter(|(_, left_out)| !left_out.0.is_empty()).collect();
    all.retain(|c| c.is_best || c.is_best_encoding || best_of.get(c.label) == Some(&c.quality));
    Candidates { listed: all, left_out }
}

/// Makes methods with fewer signals comparable: their quality becomes that of the best complete method plus the mean
/// difference from it on the signals that both have.
fn adjust(all: &mut [Candidate<'_>]) {
    let most = all.iter().map(|c| c.measured.len()).max().unwrap_or(0);
    let complete = all.iter().filter(|c| c.measured.len() == most);
    let Some(best) = complete.max_by(|a, b| a.quality.total_cmp(&b.quality)) else { return };
    let (mean_of_best, reference) = (best.quality, best.measured.clone());
    for candidate in all.iter_mut().filter(|c| c.measured.len() < most) {
        let differences: Vec<f64> = (candidate.measured.iter())
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
            let methods = candidates(choice, source.experiment, &run.table.rows);
            if methods.listed.is_empty() {
                continue;
            }
            is_measured = true;
            // A paragraph of its own, since a table begins at the start of a line.
            let who = source.who(run.side).map(|who| format!("*{who}.*\n\n")).unwrap_or_default();
            text.push_str(&format!("{who}{}", table(choice, &methods)));
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

fn table(choice: &Choice, methods: &Candidates<'_>) -> String {
    let (metric, unit) = (cell(&named(&choice.metric)), cell(&choice.unit));
    let has_predictions = !methods.left_out.is_empty();
    let mut grid = Grid::default();
    grid.column("Time", Align::Right)
        .column("Method", Align::Left)
        .column(format!("{metric} ({unit})"), Align::Right)
        .column("n", Align::Right)
        .column("Best up to this time among", Align::Left);
    if has_predictions {
        grid.column(format!("Median prediction error ({unit})"), Align::Right)
            .column("Inside 90 % interval", Align::Right);
    }
    for row in &methods.listed {
        let mut cells = vec![
            duration(row.seconds),
            cell(&row.name()),
            fixed(row.quality, 2),
            row.measured.len().to_string(),
            row.best_among().to_owned(),
        ];
        if has_predictions {
            cells.extend(row.left_out().cells());
        }
        grid.row(cells);
    }
    let mut text = grid.render();
    if has_predictions {
        let of_label = |(label, left_out): &(&str, LeftOut)| {
            let [error, inside] = left_out.cells();
            format!("{} {error} {unit} ({inside})", cell(label))
        };
        let all: Vec<String> = methods.left_out.iter().map(of_label).collect();
        text.push_str(&format!(
            "Median errors of predictions for all methods (measured values inside their 90 % interval): {}.\n\n",
            all.join("; ")
        ));
    }
    text
}

/// Formats the choice for signals with these sides and known positions as text for a terminal; empty without a matching
/// record. Of several choices, it is the one with signals nearest in size. `predictor` is the value of the choices'
/// predictor, measured on a signal of the user.
///
/// # Errors
///
/// A record that cannot be grouped.
pub fn advice(
    catalog: &Catalog,
    records: &Records,
    (sides, positions): (&[usize], Positions),
    predictor: Option<f64>,
) -> Result<String> {
    let all = catalog.experiments.iter().flat_map(|experiment| &experiment.choices);
    let mut matching: Vec<&Choice> =
        all.filter(|choice| choice.axes == sides.len() && choice.positions == positions).collect();
    let size = sides.iter().map(|&side| (side as f64).ln()).sum::<f64>() / sides.len() as f64;
    let distance = |choice: &Choice| ((choice.side as f64).ln() - size).abs();
    matching.sort_by(|a, b| distance(a).total_cmp(&distance(b)));
    for choice in matching {
        let Some((paper, item)) = choice.item.split_once('/') else { continue };
        let (Some(experiment), Some(record)) =
            (catalog.experiment(paper, item), records.get(paper, item))
        else {
            continue;
        };
        let run = Run::of(Side::Reference, experiment, record)?;
        let rows = candidates(choice, experiment, &run.table.rows).listed;
        if rows.is_empty() {
            continue;
        }
        let mut text = String::new();
        let heading = format!("{} ({})", named(&choice.metric), choice.unit);
        let this_file = if predictor.is_some() { "this file (90 %)" } else { "" };
        text.push_str(&format!(
            "{}\n{:>8}  {heading:>14}  {this_file:>20}  {:<28}method\n",
            choice.title, "time", "best up to this time among"
        ));
        for row in &rows {
            let expected = predictor.and_then(|predictor| row.predict(predictor));
            let expected = expected.map(|(mean, half)| format!("{mean:.1} ± {half:.1}"));
            text.push_str(&format!(
                "{:>8}  {:>14.2}  {:>20}  {:<28}{}\n",
                duration(row.seconds),
                row.quality,
                expected.unwrap_or_default(),
                row.best_among(),
                row.name()
            ));
        }
        text.push('\n');
        return Ok(text);
    }
    Ok(String::new())
}
