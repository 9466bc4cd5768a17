//! Tables of methods of another item: paired with a baseline, or the best for the time they take.

mod front;
mod paired;

use std::collections::BTreeMap;

use anyhow::Result;
use posenc_experiments::Profile;
use posenc_experiments::record::Row;
use posenc_experiments::schema::Experiment;
use posenc_experiments::schema::display::{Comparison, PerSignal};

use super::Files;
use crate::markdown::{inline, plain};
use crate::records::{Conditions, Run};
use crate::view::{View, Views};

pub use front::advice;

type Values<'a> = BTreeMap<&'a str, f64>;

/// Renders the comparisons of an item; adds figures to `files`.
pub fn render(views: &Views<'_>, view: &View<'_>, files: &mut Files) -> Result<String> {
    let mut text = String::new();
    for comparison in &view.experiment.comparisons {
        text.push_str(&format!("**{}**\n\n", inline(&comparison.title)));
        let compared = comparison.item.split_once('/').and_then(|(p, i)| views.get(p, i));
        let runs = compared.iter().flat_map(|other| other.runs().map(move |run| (*other, run)));
        let mut is_measured = false;
        for (other, run) in runs {
            let source = Source { experiment: other.experiment, run };
            let table = match &comparison.front {
                Some(front) => front::table(comparison, front, source),
                None => paired::table(comparison, source, other.published),
            };
            let Some(table) = table else { continue };
            is_measured = true;
            // A paragraph of its own, since a table begins at the start of a line.
            let who = other.who(run.side).map(|who| format!("*{who}.*\n\n")).unwrap_or_default();
            text.push_str(&format!("{who}{table}"));
            if comparison.front.is_none() {
                text.push_str(&paired::figure(comparison, source, view.experiment, files)?);
            } else {
                let line = source.conditions(comparison, |_| true).line();
                text.push_str(&format!("<sub>{}</sub>\n\n", plain(&line)));
            }
        }
        if !is_measured {
            text.push_str("*Not measured yet at the full protocol.*\n\n");
        }
    }
    Ok(text)
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
        let mut sums: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
        for row in self.rows(group, method, metric).filter(|row| self.is_full(row)) {
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
        let Some(variant) = group.variants.iter().position(|v| v.id == row.method) else {
            return false;
        };
        let protocol = |profile| group.resolved(profile, variant).map(|r| &r.protocol);
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
