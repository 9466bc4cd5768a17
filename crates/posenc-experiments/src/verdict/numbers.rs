//! Numbers of a claim, for sentences and for data next to its verdict.

use super::clusters::Clusters;
use super::judge::{Side, differences, mean, quotient};
use super::select::{Context, pairs, points, rows};
use super::statistics::{Interval, mean_interval};
use crate::schema::claim::{Claim, Select, Source};

/// Numbers of a claim's selections, which are indexed from 0. They follow the rules of its verdict: the same independent repetitions,
/// pairs and intervals. A number is `None` if the record or the published values lack its values.
pub struct Numbers<'a> {
    selects: Vec<&'a Select>,
    clusters: Clusters,
    context: Context<'a>,
}

impl<'a> Numbers<'a> {
    /// The numbers of a claim.
    pub fn of(claim: &'a Claim, context: Context<'a>) -> Self {
        let selects = claim.check.selects().into_iter().map(|(_, select)| select).collect();
        let clusters = Clusters::of(&claim.check, claim.is_exact, context);
        Numbers { selects, clusters, context }
    }

    /// The selections.
    pub fn selects(&self) -> &[&'a Select] {
        &self.selects
    }

    /// Mean of a selection, with its 95 % interval.
    pub fn mean(&self, index: usize) -> Option<Interval> {
        let points = points(self.selects.get(index)?, self.context).ok()?;
        Some(self.interval(&self.clusters.means(points.iter().map(|p| (p, p.value)))))
    }

    /// Mean of the published values of a selection.
    pub fn published(&self, index: usize) -> Option<f64> {
        let select = Select { from: Source::Published, ..(*self.selects.get(index)?).clone() };
        let points = points(&select, self.context).ok()?;
        Some(mean(points.iter().map(|p| p.value)))
    }

    /// Quotient of the means of two selections.
    pub fn ratio(&self, above: usize, below: usize) -> Option<f64> {
        let sides = [self.side(above)?, self.side(below)?];
        Some(quotient(&sides, self.clusters).ok()?.value)
    }

    /// Mean of the first selection minus the second over pairs, with its 95 % interval. Without pairs, the difference of the means, with
    /// no interval.
    pub fn difference(&self, left: usize, right: usize) -> Option<Interval> {
        let sides = [&self.side(left)?, &self.side(right)?];
        let [a, b] = [sides[0].compared().ok()?, sides[1].compared().ok()?];
        let pairs = pairs((sides[0].select, &a), (sides[1].select, &b)).ok()?;
        if pairs.is_empty() {
            let mean = self.mean(left)?.mean - self.mean(right)?.mean;
            return Some(Interval { n: 1, mean, half_width: None, p: None });
        }
        let values =
            differences(sides, &pairs, self.clusters, |p| p.left.value - p.right.value).ok()?;
        Some(self.interval(&values))
    }

    /// Unit of a selection's values.
    pub fn unit(&self, index: usize) -> &'a str {
        let Some(select) = self.selects.get(index) else { return "" };
        match select.from {
            Source::Measured => {
                rows(select, self.context).next().map_or("", |row| row.unit.as_str())
            }
            Source::Published => self.unit_as_published(index),
        }
    }

    /// Unit of the published values of a selection.
    pub fn unit_as_published(&self, index: usize) -> &'a str {
        let Some(select) = self.selects.get(index) else { return "" };
        let mut values = self.context.published_of(select);
        values.find(|v| v.value.is_some()).map_or("", |v| v.unit.as_str())
    }

    /// The interval of a mean over repetitions; exact numbers have none.
    fn interval(&self, values: &[f64]) -> Interval {
        let interval = mean_interval(values);
        match self.clusters.is_exact {
            true => Interval { half_width: None, p: None, ..interval },
            false => interval,
        }
    }

    fn side(&self, index: usize) -> Option<Side<'a>> {
        Side::of(self.selects.get(index)?, self.context).ok()
    }
}
