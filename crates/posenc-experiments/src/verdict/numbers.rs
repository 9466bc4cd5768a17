//! Numbers of a claim, for sentences and for data next to its verdict.

use std::collections::BTreeSet;

use super::checks::quotient;
use super::clusters::{Clusters, unnumbered};
use super::pairs::{Pair, on_common_seeds, paired_differences, pairs};
use super::points::{Context, points, rows};
use super::statistics::{Interval, mean, mean_interval};
use crate::schema::claim::{Claim, ClaimCheck, Select, Source, Statistic};

/// Numbers of a claim's selections, which are indexed from 0. They follow the rules of its verdict: the same independent repetitions,
/// pairs and intervals. A number is `None` if the record or the published values lack its values.
pub struct Numbers<'a> {
    /// The selections of all checks, each with the repetitions of its check.
    selects: Vec<(&'a Select, Clusters)>,
    context: Context<'a>,
}

impl<'a> Numbers<'a> {
    pub fn of(claim: &'a Claim, context: Context<'a>) -> Self {
        let of_check = |own: &'a ClaimCheck| {
            let clusters = Clusters::new(&own.check, own.is_exact, context);
            own.check.selects().into_iter().map(move |(_, select)| (select, clusters))
        };
        Numbers { selects: claim.checks.iter().flat_map(of_check).collect(), context }
    }

    pub fn selects(&self) -> impl Iterator<Item = &'a Select> {
        self.selects.iter().map(|(select, _)| *select)
    }

    /// Mean of a selection, with its 95 % interval.
    pub fn mean(&self, index: usize) -> Option<Interval> {
        let (select, clusters) = self.selects.get(index)?;
        let points = points(select, self.context).ok()?;
        Some(interval(*clusters, &clusters.means_of(&points)))
    }

    /// Number of signals of a selection or, with a single one, of its repetitions.
    pub fn count(&self, index: usize) -> Option<usize> {
        // A standard deviation is one point; this counts the values behind it.
        let each = Select { statistic: Statistic::Each, ..self.selects.get(index)?.0.clone() };
        let points = points(&each, self.context).ok()?;
        let signals: BTreeSet<&str> =
            points.iter().map(|point| unnumbered(&point.signal)).collect();
        let seeds: BTreeSet<u64> = points.iter().map(|point| point.seed).collect();
        Some(if signals.len() > 1 { signals.len() } else { seeds.len() })
    }

    /// Mean of the published values of a selection.
    pub fn published(&self, index: usize) -> Option<f64> {
        let select = Select { from: Source::Published, ..self.selects.get(index)?.0.clone() };
        if select.statistic == Statistic::Deviation {
            let printed = self.context.published_of(&select).filter_map(|value| value.deviation);
            let printed: Vec<f64> = printed.collect();
            return (!printed.is_empty()).then(|| mean(printed.into_iter()));
        }
        let points = points(&select, self.context).ok()?;
        Some(mean(points.iter().map(|p| p.value)))
    }

    /// Quotient of the means of two selections.
    pub fn ratio(&self, above: usize, below: usize) -> Option<f64> {
        let (above, clusters) = self.selects.get(above)?;
        let (below, _) = self.selects.get(below)?;
        Some(quotient([above, below], *clusters, self.context).ok()?.value)
    }

    /// Mean of the first selection minus the second over pairs, with its 95 % interval: over signals or over samples of random
    /// features, whichever is wider, as for an order. Without pairs, the difference of the means, with no interval.
    pub fn difference(&self, left: usize, right: usize) -> Option<Interval> {
        let ((a, clusters), (b, _)) = (*self.selects.get(left)?, *self.selects.get(right)?);
        let sides = [points(a, self.context).ok()?, points(b, self.context).ok()?];
        let on_seeds = on_common_seeds([&sides[0], &sides[1]], clusters);
        let pairs = pairs((a, &on_seeds[0]), (b, &on_seeds[1])).ok()?;
        if pairs.is_empty() {
            let mean = self.mean(left)?.mean - self.mean(right)?.mean;
            return Some(Interval { n: 1, mean, half_width: None, p: None });
        }
        let difference = |p: &Pair<'_>| p.left.value - p.right.value;
        let values = clusters.means(pairs.iter().map(|p| (p.left, difference(p))));
        let own = interval(clusters, &values);
        let samples = clusters.across_samples([&sides[0], &sides[1]]);
        let wider = samples.filter(|_| !clusters.is_exact).and_then(|samples| {
            let sides = [(a, &*sides[0]), (b, &*sides[1])];
            let over = interval(samples, &paired_differences(sides, samples, difference).ok()?);
            (over.half_width > own.half_width).then_some(over)
        });
        Some(wider.unwrap_or(own))
    }

    /// Unit of a selection's values.
    pub fn unit(&self, index: usize) -> &'a str {
        let Some((select, _)) = self.selects.get(index) else { return "" };
        match select.from {
            Source::Measured => {
                rows(select, self.context).next().map_or("", |row| row.unit.as_str())
            }
            Source::Published => self.unit_as_published(index),
        }
    }

    /// Unit of the published values of a selection.
    pub fn unit_as_published(&self, index: usize) -> &'a str {
        let Some((select, _)) = self.selects.get(index) else { return "" };
        let mut values = self.context.published_of(select);
        values.find(|v| v.value.is_some()).map_or("", |v| v.unit.as_str())
    }
}

/// The interval of a mean over repetitions; exact numbers have none.
fn interval(clusters: Clusters, values: &[f64]) -> Interval {
    let interval = mean_interval(values);
    match clusters.is_exact {
        true => Interval { half_width: None, p: None, ..interval },
        false => interval,
    }
}
