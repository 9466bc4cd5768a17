//! Numbers of a claim, for sentences and for data next to its verdict.

use super::clusters::Clusters;
use super::judge::{Side, differences, mean, paired, quotient};
use super::select::{Context, Pair, on_common_seeds, pairs, points, rows};
use super::statistics::{Interval, mean_interval};
use crate::schema::claim::{Claim, ClaimCheck, Select, Source, Statistic};

/// Numbers of a claim's selections, which are indexed from 0. They follow the rules of its verdict: the same independent repetitions,
/// pairs and intervals. A number is `None` if the record or the published values lack its values.
pub struct Numbers<'a> {
    /// The selections of all checks, each with the repetitions of its check.
    selects: Vec<(&'a Select, Clusters)>,
    context: Context<'a>,
}

impl<'a> Numbers<'a> {
    /// The numbers of a claim.
    pub fn of(claim: &'a Claim, context: Context<'a>) -> Self {
        let of_check = |own: &'a ClaimCheck| {
            let clusters = Clusters::of(&own.check, own.is_exact, context);
            own.check.selects().into_iter().map(move |(_, select)| (select, clusters))
        };
        Numbers { selects: claim.checks.iter().flat_map(of_check).collect(), context }
    }

    /// The selections.
    pub fn selects(&self) -> impl Iterator<Item = &'a Select> {
        self.selects.iter().map(|(select, _)| *select)
    }

    /// Mean of a selection, with its 95 % interval.
    pub fn mean(&self, index: usize) -> Option<Interval> {
        let (select, clusters) = self.selects.get(index)?;
        let points = points(select, self.context).ok()?;
        Some(interval(*clusters, &clusters.means(points.iter().map(|p| (p, p.value)))))
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
        let sides = [self.side(above)?, self.side(below)?];
        Some(quotient(&sides, self.selects.get(above)?.1).ok()?.value)
    }

    /// Mean of the first selection minus the second over pairs, with its 95 % interval: over signals or over samples of random
    /// features, whichever is wider, as for an order. Without pairs, the difference of the means, with no interval.
    pub fn difference(&self, left: usize, right: usize) -> Option<Interval> {
        let sides = [&self.side(left)?, &self.side(right)?];
        let clusters = self.selects.get(left)?.1;
        let compared = [sides[0].compared().ok()?, sides[1].compared().ok()?];
        let compared = [&*compared[0], &*compared[1]];
        let [a, b] = on_common_seeds(compared, clusters);
        let pairs = pairs((sides[0].select, &a), (sides[1].select, &b)).ok()?;
        if pairs.is_empty() {
            let mean = self.mean(left)?.mean - self.mean(right)?.mean;
            return Some(Interval { n: 1, mean, half_width: None, p: None });
        }
        let difference = |p: &Pair<'_>| p.left.value - p.right.value;
        let own = interval(clusters, &differences(sides, &pairs, clusters, difference).ok()?);
        let samples = clusters.across_samples(compared).filter(|_| !clusters.is_exact);
        let wider = samples.and_then(|samples| {
            let over = interval(samples, &paired(sides, compared, samples, difference).ok()?);
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

    fn side(&self, index: usize) -> Option<Side<'a>> {
        Side::of(self.selects.get(index)?.0, self.context).ok()
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
