//! `position`: a feature of a curve is at a given place.

use std::collections::{BTreeMap, BTreeSet};

use posenc_math::random;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Rule, not_negative};
use crate::schema::Group;
use crate::schema::claim::{Select, same_place};
use crate::schema::protocol::Fault;
use crate::verdict::clusters::Clusters;
use crate::verdict::curves::{Curve, curves};
use crate::verdict::points::{Context, describe, not_run, show};
use crate::verdict::statistics::{Fit, LEVEL};
use crate::verdict::{Judged, Judgement, Verdict};

/// Number of bootstrap samples for the interval of a position.
const RESAMPLES: usize = 1000;
/// Minimum number of repetitions for the bootstrap. If two places are equally good, all n repetitions prefer a given one with
/// probability 2⁻ⁿ, which must be below 2.5 %.
const FEWEST: usize = 6;
/// Maximum number of means by repetition and abscissa for the bootstrap, so that no record takes minutes.
const MOST: usize = 20_000;

/// A feature of a curve of means per abscissa is at a given place, for each method separately.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PositionCheck {
    /// The curve.
    of: Select,
    /// Feature of the curve.
    feature: Feature,
    /// With `first-above`: how far the level is below the highest value of the curve, in the unit of the metric.
    below_highest: Option<f64>,
    /// Expected abscissa.
    at: f64,
    /// Number of steps of the curve's grid by which the two places may differ. A place between two points of the grid matches both.
    #[serde(default)]
    steps: usize,
}

/// A feature of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Feature {
    /// The place of the largest value.
    Highest,
    /// The place of the smallest value.
    Lowest,
    /// The smallest abscissa at which the curve is at or above the level of `below_highest`.
    FirstAbove,
}

impl Rule for PositionCheck {
    fn selects(&self) -> Vec<(String, &Select)> {
        vec![("of".into(), &self.of)]
    }

    fn problem(&self, _: &[Group]) -> Option<Fault> {
        if self.below_highest.is_some() != (self.feature == Feature::FirstAbove) {
            let message = "the feature `first-above`, and no other, needs `below_highest`";
            return Some(("below_highest", message.into()));
        }
        Some(("below_highest", not_negative(self.below_highest?)?))
    }

    fn judge(&self, clusters: Clusters, context: Context<'_>) -> Judged {
        let of = curves(&self.of, clusters, context)?;
        if of.is_empty() {
            return Err(not_run(format!("no curve for {}", describe(&self.of))));
        }
        let means = || of.iter().flat_map(|c| &c.by_cluster);
        if means().map(BTreeMap::len).sum::<usize>() > MOST {
            return Err(not_run(format!("more than {MOST} values for a position")));
        }
        let keys: BTreeSet<&String> = means().flat_map(BTreeMap::keys).collect();
        let keys: Vec<&String> = keys.into_iter().collect();
        let samples: Vec<Vec<&String>> = match clusters.is_exact || keys.len() < FEWEST {
            true => Vec::new(),
            false => {
                let label =
                    format!("position of {} {}", context.experiment.id(), describe(&self.of));
                let mut rng = random::stream(0, &label);
                let mut one =
                    || keys.iter().map(|_| keys[random::below(&mut rng, keys.len())]).collect();
                (0..RESAMPLES).map(|_| one()).collect()
            }
        };
        let (mut texts, mut fits, mut failures) = (Vec::new(), Vec::new(), Vec::new());
        let mut farthest = 0;
        for curve in &of {
            let Some(place) = self.place(&curve.points) else { continue };
            let resampled = |sample: &Vec<&String>| {
                let points = curve.resampled(sample);
                let place = self.place(&points);
                // Places without any of the sampled repetitions are left out, which may be all.
                place.map_or(usize::MAX, |place| steps_between(&points, place, self.at))
            };
            let mut resampled: Vec<usize> = samples.iter().map(resampled).collect();
            resampled.sort_unstable();
            let found = Location {
                place: curve.points[place].0,
                steps: steps_between(&curve.points, place, self.at),
                interval: interval(&resampled, keys.len()),
            };
            let fit = found.fit(self.steps, clusters.is_exact);
            let (text, why) = found.described(&curve.method, self.at, fit);
            texts.push(text);
            failures.extend(why);
            fits.push(fit);
            farthest = farthest.max(found.steps);
        }
        let s = if self.steps == 1 { "" } else { "s" };
        let mut statistics = format!("allowed: {} step{s} of the grid", self.steps);
        if !samples.is_empty() {
            statistics += &format!(", {}", clusters.counted(keys.len()));
        }
        let verdict = Fit::joined(&fits);
        let reason = match verdict {
            Verdict::NotDecided if keys.len() > 1 => {
                format!("{}, at least {FEWEST} needed", clusters.counted(keys.len()))
            }
            Verdict::NotDecided => clusters.lack(),
            _ => failures.join("; "),
        };
        let of_limit = (self.steps > 0).then(|| farthest as f64 / self.steps as f64);
        Ok(Judgement::new(verdict, texts.join("; "), statistics, reason).near(of_limit))
    }
}

impl PositionCheck {
    /// Index of the feature on a curve; `None` if the curve has no points.
    fn place(&self, points: &[(f64, f64)]) -> Option<usize> {
        let by_value = |i: &usize, j: &usize| points[*i].1.total_cmp(&points[*j].1);
        let highest = (0..points.len()).max_by(by_value);
        match self.feature {
            Feature::Highest => highest,
            Feature::Lowest => (0..points.len()).min_by(by_value),
            Feature::FirstAbove => {
                let level = points[highest?].1 - self.below_highest?;
                points.iter().position(|(_, y)| *y >= level)
            }
        }
    }
}

impl Curve {
    /// The mean curve of repetitions that were sampled with replacement. Places without any of these repetitions are left out.
    fn resampled(&self, sample: &[&String]) -> Vec<(f64, f64)> {
        let mean = |clusters: &BTreeMap<String, f64>| {
            let values = sample.iter().filter_map(|key| clusters.get(*key));
            let (sum, count) = values.fold((0.0, 0usize), |(s, n), v| (s + v, n + 1));
            (count > 0).then(|| sum / count as f64)
        };
        let points = self.points.iter().zip(&self.by_cluster);
        points.filter_map(|((x, _), clusters)| Some((*x, mean(clusters)?))).collect()
    }
}

/// The 95 % bootstrap interval of sorted steps of `n` repetitions; `None` without any. Its percentiles are expanded so that the
/// interval of a mean would be as wide as Student's t interval.
fn interval(resampled: &[usize], n: usize) -> Option<(usize, usize)> {
    let share = posenc_math::statistics::expanded_tail(LEVEL, n);
    let tail = (share * resampled.len() as f64) as usize;
    let last = resampled.len().checked_sub(tail + 1)?;
    Some((*resampled.get(tail)?, *resampled.get(last)?))
}

/// Where the feature is on a curve, and its distance in steps from the expected place.
struct Location {
    /// Abscissa of the feature on the mean curve.
    place: f64,
    steps: usize,
    /// Interval of the steps; `None` if there are too few repetitions.
    interval: Option<(usize, usize)>,
}

impl Location {
    fn fit(&self, allowed: usize, is_exact: bool) -> Fit {
        match self.interval {
            _ if is_exact && self.steps <= allowed => Fit::Inside,
            _ if is_exact => Fit::Outside,
            None => Fit::Undecided,
            Some((_, most)) if most <= allowed => Fit::Inside,
            Some((least, _)) if least > allowed => Fit::Outside,
            Some(_) => Fit::Unclear,
        }
    }

    /// The place in words, and why it is not clearly the expected one.
    fn described(&self, method: &str, expected: f64, fit: Fit) -> (String, Option<String>) {
        let counted = |steps: usize| match steps {
            usize::MAX => "nowhere".to_owned(),
            1 => "1 step".to_owned(),
            n => format!("{n} steps"),
        };
        let (place, expected, steps) = (show(self.place), show(expected), counted(self.steps));
        let mut text = format!("{method}: {place} against {expected} ({steps}");
        if let Some((least, most)) = self.interval {
            text += &format!(", 95 % interval {least} to {}", counted(most));
        }
        text.push(')');
        let why = match fit {
            Fit::Inside => None,
            Fit::Outside => Some(format!("{method} is {} off", counted(self.steps))),
            Fit::Unclear | Fit::Undecided => Some(format!("{method} is not clearly at that place")),
        };
        (text, why)
    }
}

/// Number of grid steps from the point `from` to a place. A place between two points is as far as the nearer one; a place beyond an
/// end is one step farther than the end.
fn steps_between(points: &[(f64, f64)], from: usize, place: f64) -> usize {
    if let Some(here) = points.iter().position(|p| same_place(p.0, place)) {
        return from.abs_diff(here);
    }
    match points.iter().position(|p| p.0 > place) {
        None => from.abs_diff(points.len() - 1) + 1,
        Some(0) => from + 1,
        Some(above) => from.abs_diff(above).min(from.abs_diff(above - 1)),
    }
}
