//! Advice on which method to use: the Pareto front of measured time and quality.

use std::collections::BTreeMap;

use minijinja::{Value, context};
use posenc_experiments::Catalog;
use posenc_experiments::schema::display::{Comparison, Front, Positions};
use posenc_math::statistics::{mean, median};

use super::{Source, Values, named};
use crate::markdown::{Align, Grid, cell, inline, plain};
use crate::numbers::{MISSING, duration, fixed};
use crate::records::{Records, Run, Side};
use crate::template::safe;

/// Smallest difference in quality that counts, in the metric's unit: half a unit of the second decimal, the last one
/// shown.
const SMALLEST: f64 = 0.005;

struct Candidate<'a> {
    label: &'a str,
    method: &'a str,
    /// Median over signals, in seconds; infinite if none ran on a CPU.
    seconds: f64,
    /// Mean over all signals. A method that lacks some is compared with the best complete one on the signals it has.
    quality: f64,
    measured: Values<'a>,
    is_encoding: bool,
    /// No faster method is better, among all methods and among position encodings.
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
}

fn candidates<'a>(of: &'a Comparison, source: Source<'a>) -> Vec<Candidate<'a>> {
    let mut all: Vec<Candidate<'a>> = Vec::new();
    for compared in &of.groups {
        let variants = source.experiment.group(&compared.group).map(|group| &group.variants);
        for variant in variants.into_iter().flatten() {
            let measured = source.values(&compared.group, &variant.id, &of.metric);
            let seconds = source.cpu_times(&compared.group, &variant.id);
            let numbers: Vec<f64> = measured.values().copied().collect();
            let Ok(quality) = mean(&numbers) else { continue };
            let seconds: Vec<f64> = seconds.into_values().collect();
            all.push(Candidate {
                label: &compared.label,
                method: &variant.id,
                seconds: if seconds.is_empty() { f64::INFINITY } else { median(&seconds) },
                quality,
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
    for candidate in &mut all {
        candidate.is_best = candidate.quality > best + SMALLEST;
        best = best.max(candidate.quality);
        if candidate.is_encoding {
            candidate.is_best_encoding = candidate.quality > best_encoding + SMALLEST;
            best_encoding = best_encoding.max(candidate.quality);
        }
    }
    all
}

/// Makes methods with fewer signals comparable: their quality becomes that of the best complete method plus the mean
/// difference from it on the signals that both have.
fn adjust(all: &mut [Candidate<'_>]) {
    let most = all.iter().map(|c| c.measured.len()).max().unwrap_or(0);
    let complete = all.iter().filter(|c| c.measured.len() == most);
    let Some(best) = complete.max_by(|a, b| a.quality.total_cmp(&b.quality)) else { return };
    let (mean_of_best, reference) = (best.quality, best.measured.clone());
    for candidate in all.iter_mut().filter(|c| c.measured.len() < most) {
        let pairs = super::paired::pairs(&reference, &candidate.measured);
        let differences: Vec<f64> = pairs.into_iter().map(|(best, own)| own - best).collect();
        if let Ok(difference) = mean(&differences) {
            candidate.quality = mean_of_best + difference;
        }
    }
}

/// The methods to list: the Pareto fronts of time and quality among all methods and among position encodings, and the
/// best method of each group. Methods without a time are left out.
fn listed(mut all: Vec<Candidate<'_>>) -> Vec<Candidate<'_>> {
    all.retain(|own| own.seconds.is_finite());
    let mut best_of: BTreeMap<&str, f64> = BTreeMap::new();
    for candidate in &all {
        let best = best_of.entry(candidate.label).or_insert(f64::NEG_INFINITY);
        *best = best.max(candidate.quality);
    }
    all.retain(|c| c.is_best || c.is_best_encoding || best_of.get(c.label) == Some(&c.quality));
    all
}

/// The table of a comparison; `None` without values.
pub fn table(of: &Comparison, source: Source<'_>) -> Option<String> {
    let (metric, unit) = (cell(&named(&of.metric)), cell(&of.unit));
    let mut grid = Grid::default();
    grid.column("Time", Align::Right)
        .column("Method", Align::Left)
        .column(format!("{metric} ({unit})"), Align::Right)
        .column("n", Align::Right)
        .column("Best up to this time among", Align::Left);
    let rows = listed(candidates(of, source));
    let most = rows.iter().map(|row| row.measured.len()).max()?;
    for row in &rows {
        let about = if row.measured.len() < most { "≈ " } else { "" };
        grid.row(vec![
            duration(row.seconds),
            cell(&row.name()),
            format!("{about}{}", fixed(row.quality, 2)),
            row.measured.len().to_string(),
            row.best_among().to_owned(),
        ]);
    }
    Some(grid.render())
}

/// The best method of each label among those with the most signals of their group; `None` without values. The best of all that have
/// all signals is marked. Also whether that is no encoding; `None` if only encodings, or none, have all
/// signals.
pub fn best(
    of: &Comparison,
    source: Source<'_>,
    labels: &[&str],
) -> Option<(Value, Option<bool>, usize)> {
    let all = candidates(of, source);
    let n = all.iter().map(|own| own.measured.len()).max()?;
    let best_of = |is_wanted: &dyn Fn(&Candidate<'_>) -> bool| {
        let wanted = || all.iter().filter(|own| is_wanted(own));
        let most = wanted().map(|own| own.measured.len()).max()?;
        let complete = wanted().filter(|own| own.measured.len() == most);
        complete.max_by(|a, b| a.quality.total_cmp(&b.quality))
    };
    let top = best_of(&|own| own.measured.len() == n)?;
    let complete = || all.iter().filter(|own| own.measured.len() == n);
    let has_both = complete().any(|own| own.is_encoding) && complete().any(|own| !own.is_encoding);
    let mut above = 0;
    let cell_of = |label: &&str| {
        let own = best_of(&|own| own.label == *label)?;
        let signals = own.measured.len();
        // On fewer signals, the measured mean next to that of the best method on the same signals.
        let pairs = super::paired::pairs(&own.measured, &top.measured);
        let (own_values, best): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        let means = (signals < n).then(|| mean(&own_values).ok().zip(mean(&best).ok())).flatten();
        above += usize::from(means.is_some_and(|(own, best)| own > best));
        Some(context! {
            label => *label,
            method => own.method,
            quality => fixed(means.map_or(own.quality, |(own, _)| own), 2),
            of_best => means.map(|(_, best)| format!("{} on these: {}", top.method, fixed(best, 2))),
            unit => &of.unit,
            time => if own.seconds.is_finite() { duration(own.seconds) } else { "on a GPU".to_owned() },
            is_best => has_both && std::ptr::eq(own, top),
            n => (signals < n).then_some(signals),
        })
    };
    let cells: Vec<Option<Value>> = labels.iter().map(cell_of).collect();
    let shown = context! {
        title => safe(inline(&of.title)),
        conditions => safe(plain(&source.conditions(of, |_| true).data_line())),
        n,
        cells,
    };
    Some((shown, has_both.then_some(!top.is_encoding), above))
}

/// Formats the front of signals with these sides and known positions as text for a terminal; empty without a matching
/// record. Of several fronts, it is the one with signals nearest in size.
pub fn advice(
    catalog: &Catalog,
    records: &Records,
    (sides, positions): (&[usize], Positions),
) -> String {
    let comparisons = catalog.experiments.iter().flat_map(|experiment| &experiment.comparisons);
    let fronts = comparisons.filter_map(|of| Some((of, of.front.as_ref()?)));
    let mut matching: Vec<(&Comparison, &Front)> = fronts
        .filter(|(_, front)| front.axes == sides.len() && front.positions == positions)
        .collect();
    let size = sides.iter().map(|&side| (side as f64).ln()).sum::<f64>() / sides.len() as f64;
    let distance = |front: &Front| ((front.side as f64).ln() - size).abs();
    matching.sort_by(|(_, a), (_, b)| distance(a).total_cmp(&distance(b)));
    for (of, _) in matching {
        let Some((paper, item)) = of.item.split_once('/') else { continue };
        let (Some(experiment), Some(record)) =
            (catalog.experiment(paper, item), records.get(paper, item))
        else {
            continue;
        };
        let run = &Run::of(Side::Reference, record);
        let rows = listed(candidates(of, Source { experiment, run }));
        if rows.is_empty() {
            continue;
        }
        let line = |time: &str, quality: &str, among: &str, method: &str| {
            format!("{time:>8}  {quality:>14}  {among:<28}{method}\n")
        };
        let heading = format!("{} ({})", named(&of.metric), of.unit);
        let mut text = format!("{}\n", of.title);
        text += &line("time", &heading, "best up to this time among", "method");
        for row in &rows {
            let quality = format!("{:.2}", row.quality);
            text += &line(&duration(row.seconds), &quality, row.best_among(), &row.name());
        }
        return text + "\n";
    }
    String::new()
}
