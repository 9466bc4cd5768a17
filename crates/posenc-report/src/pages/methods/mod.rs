//! Tables of methods of another item: paired with a baseline, or the best for the time they take.

mod front;
mod paired;

use std::collections::BTreeMap;

use anyhow::Result;
use minijinja::{Value, context};
use posenc_experiments::Profile;
use posenc_experiments::record::Row;
use posenc_experiments::schema::Experiment;
use posenc_experiments::schema::display::{Comparison, Front, PerSignal};

use super::Files;
use crate::Inputs;
use crate::links;
use crate::markdown::{cell, inline, plain};
use crate::numbers::distinct;
use crate::records::{Conditions, Run, Side};
use crate::template::safe;
use crate::view::{View, Views, sides};

pub use front::advice;

/// Metric of the time per signal, in seconds.
const TIME: &str = "time";

type Values<'a> = BTreeMap<&'a str, f64>;

/// Renders the comparisons of an item, and the answer where methods are paired with a baseline; adds figures to `files`.
pub fn render(views: &Views<'_>, view: &View<'_>, files: &mut Files) -> Result<[String; 2]> {
    let mut text = String::new();
    let mut answers = String::new();
    for comparison in &view.experiment.comparisons {
        text.push_str(&format!("**{}**\n\n", inline(&comparison.title)));
        let compared = comparison.item.split_once('/').and_then(|(p, i)| views.get(p, i));
        let runs = compared.iter().flat_map(|other| other.runs().map(move |run| (*other, run)));
        let mut measured = Vec::new();
        for (other, run) in runs {
            let source = Source { experiment: other.experiment, run };
            let table = match &comparison.front {
                Some(_) => front::table(comparison, source),
                None => paired::table(comparison, source, other.published),
            };
            let Some(table) = table else { continue };
            measured.push(run.side);
            let who = other.who(run.side);
            // A paragraph of its own, since a table begins at the start of a line.
            text.extend(who.map(|who| format!("*{who}.*\n\n")));
            text.push_str(&table);
            if comparison.front.is_some() {
                let line = source.conditions(comparison, |_| true).line();
                text.push_str(&format!("<sub>{}</sub>\n\n", plain(&line)));
                continue;
            }
            let who = who.map(|who| format!(" ({who})")).unwrap_or_default();
            let title = format!("{}{who}", inline(&comparison.title));
            let own = paired::answer(comparison, source).into_iter();
            answers.extend(own.map(|own| format!("- {title}, {own}\n")));
            text.push_str(&paired::figure(comparison, source, view.experiment, files)?);
        }
        if measured.is_empty() {
            text.push_str("*Not measured yet at the full protocol.*\n\n");
        } else {
            for own in view.sides.iter().filter(|own| !measured.contains(&own.side)) {
                text.push_str(&format!(
                    "*{}.* Not measured at the full protocol.\n\n",
                    own.side.name()
                ));
            }
        }
    }
    let baseline = view.experiment.comparisons.first().and_then(|of| of.groups.first());
    if let (Some(baseline), false) = (baseline, answers.is_empty()) {
        let next_to = format!("next to the {}", inline(&baseline.label));
        let by = "by the 95 % confidence intervals of the paired differences";
        answers.insert_str(0, &format!("**Our answer** for each method {next_to}, {by}:\n\n"));
    }
    Ok([text, answers])
}

/// The best method of each group on each kind of signal, by run: a row per kind, of the comparison with the largest signals.
pub fn choice(inputs: &Inputs<'_>, views: &Views<'_>) -> Vec<Value> {
    let experiments = &inputs.catalog.experiments;
    let has_front = |own: &&Experiment| own.comparisons.iter().any(|of| of.front.is_some());
    let Some(first) = experiments.iter().find(has_front) else { return Vec::new() };
    let page = links::item(&first.paper, &first.item);
    let all = experiments.iter().flat_map(|experiment| &experiment.comparisons);
    let mut kinds: Vec<(&Comparison, &Front)> = Vec::new();
    for (of, front) in all.filter_map(|of| Some((of, of.front.as_ref()?))) {
        let is_same = |own: &Front| own.axes == front.axes && own.positions == front.positions;
        match kinds.iter_mut().find(|(_, own)| is_same(own)) {
            Some(known) if known.1.side < front.side => *known = (of, front),
            Some(_) => {}
            None => kinds.push((of, front)),
        }
    }
    let labels =
        distinct(kinds.iter().flat_map(|(of, _)| &of.groups).map(|own| own.label.as_str()));
    let of_side = |side: Side| {
        let mut rows = Vec::new();
        for (of, _) in &kinds {
            let view = of.item.split_once('/').and_then(|(p, i)| views.get(p, i));
            let run = view.and_then(|view| view.runs().find(|run| run.side == side));
            let Some((view, run)) = view.zip(run) else { continue };
            let source = Source { experiment: view.experiment, run };
            rows.extend(front::best(of, source, &labels));
        }
        let count = |wanted| rows.iter().filter(|(_, own, _)| *own == Some(wanted)).count();
        let (wins, losses) = (count(true), count(false));
        let labels: Vec<_> = labels.iter().map(|label| safe(cell(label))).collect();
        let above: usize = rows.iter().map(|(.., above)| above).sum();
        let shown: Vec<Value> = rows.into_iter().map(|(row, ..)| row).collect();
        let has_any = !shown.is_empty();
        has_any.then(|| {
            let (name, page, compared) = (side.name(), safe(&page), wins + losses);
            context! { name, page, labels, rows => shown, wins, compared, above }
        })
    };
    sides(inputs).into_iter().filter_map(of_side).collect()
}

/// A run of the item whose methods are compared.
#[derive(Clone, Copy)]
struct Source<'a> {
    experiment: &'a Experiment,
    run: &'a Run,
}

impl<'a> Source<'a> {
    fn rows(self, group: &str, method: &str, metric: &str) -> impl Iterator<Item = &'a Row> {
        let rows = self.run.rows(group, method, None, None);
        rows.filter(move |row| row.metric == metric && row.x.is_none() && row.value.is_finite())
    }

    /// Values at the full protocol on any number of signals, means over seeds.
    fn values(self, group: &str, method: &str, metric: &str) -> Values<'a> {
        self.means(self.rows(group, method, metric))
    }

    fn cpu_times(self, group: &str, method: &str) -> Values<'a> {
        self.means(self.rows(group, method, TIME).filter(|row| row.device == "cpu"))
    }

    fn means(self, rows: impl Iterator<Item = &'a Row>) -> Values<'a> {
        let mut sums: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
        for row in rows.filter(|row| self.is_full(row)) {
            let (sum, count) = sums.entry(&row.signal).or_default();
            (*sum, *count) = (*sum + row.value, *count + 1.0);
        }
        sums.into_iter().map(|(signal, (sum, count))| (signal, sum / count)).collect()
    }

    fn per_signal(self, own: Option<&PerSignal>) -> Values<'a> {
        own.map(|own| self.values(&own.group, &own.method, &own.metric)).unwrap_or_default()
    }

    fn is_full(self, row: &Row) -> bool {
        let Some(group) = self.experiment.group(&row.group) else { return false };
        let protocol = |profile| group.protocol_of(&row.method, profile);
        protocol(row.profile).is_some() && protocol(row.profile) == protocol(Profile::Paper)
    }

    /// Conditions of the rows of the compared groups that `is_read` selects.
    fn conditions(self, of: &Comparison, is_read: impl Fn(&Row) -> bool) -> Conditions {
        let is_compared = |row: &Row| of.groups.iter().any(|own| own.group == row.group);
        Conditions::of(self.experiment, self.run, |row| is_compared(row) && is_read(row))
    }
}

/// The name of a metric in text: `test_psnr` is test PSNR.
fn named(metric: &str) -> String {
    metric.replace('_', " ").replace("psnr", "PSNR")
}
