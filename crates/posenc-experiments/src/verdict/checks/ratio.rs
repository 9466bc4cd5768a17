//! `ratio`: a quotient of means or of standard deviations is within limits.

use std::collections::{BTreeSet, HashMap};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Rule, limit_problem};
use crate::schema::Group;
use crate::schema::claim::{Select, Statistic};
use crate::schema::protocol::Fault;
use crate::verdict::clusters::Clusters;
use crate::verdict::comparable::unlike;
use crate::verdict::pairs::{on_common_seeds, pairs};
use crate::verdict::points::{Context, Point, deviation, not_run, places, show, single_points};
use crate::verdict::statistics::{Interval, LEVEL, interval_at, jackknife, mean};
use crate::verdict::{Judged, Judgement, Unjudged, Verdict};

/// Maximum of values × repetitions for which deviations are computed again without each repetition.
const MAX_LEFT_OUT: usize = 2_000_000;

/// The quotient of two means is within limits.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RatioCheck {
    /// Numerator.
    numerator: Select,
    /// Denominator.
    denominator: Select,
    /// Smallest quotient that confirms the claim.
    at_least: Option<f64>,
    /// Largest quotient that confirms the claim.
    at_most: Option<f64>,
}

impl Rule for RatioCheck {
    fn selects(&self) -> Vec<(String, &Select)> {
        vec![("numerator".into(), &self.numerator), ("denominator".into(), &self.denominator)]
    }

    fn problem(&self, _: &[Group]) -> Option<Fault> {
        if self.numerator.statistic != self.denominator.statistic {
            return Some(("numerator", "needs the `statistic` of the denominator".into()));
        }
        limit_problem(self.at_least, self.at_most)
    }

    fn judge(&self, clusters: Clusters, context: Context<'_>) -> Judged {
        let quotient = quotient([&self.numerator, &self.denominator], clusters, context)?;
        let least = self.at_least.map(|least| format!("at least {}", show(least)));
        let most = self.at_most.map(|most| format!("at most {}", show(most)));
        let limits: Vec<String> = least.into_iter().chain(most).collect();
        let (least, most) =
            (self.at_least.unwrap_or(f64::NEG_INFINITY), self.at_most.unwrap_or(f64::INFINITY));
        let verdict = quotient.verdict(least, most, clusters.is_exact);
        let of_limit = match (self.at_least, self.at_most) {
            (Some(least), Some(most)) => {
                let (middle, half) = (0.5 * (least + most), 0.5 * (most - least));
                Some((quotient.value - middle).abs() / half)
            }
            (Some(limit), None) | (None, Some(limit)) => Some(quotient.value / limit),
            (None, None) => None,
        };
        let measured = format!("{} ({})", show(quotient.value), limits.join(", "));
        let reason = match verdict {
            Verdict::NotDecided if !quotient.is_finite() => "the quotient is not finite".to_owned(),
            Verdict::NotDecided => clusters.lack(),
            Verdict::WithinNoise => "the interval contains a limit".to_owned(),
            _ => "outside the limits".to_owned(),
        };
        let judgement = Judgement::new(verdict, measured, quotient.words(clusters), reason);
        let unlike = unlike(&self.numerator, &self.denominator, context);
        Ok(judgement.near(of_limit).unless(unlike))
    }
}

/// A quotient of means with its uncertainty, on the logarithmic scale if both means are positive in every repetition.
pub(in crate::verdict) struct Quotient {
    pub value: f64,
    is_log: bool,
    /// Half width on its scale, and the number of repetitions.
    interval: Interval,
}

impl Quotient {
    /// A quotient with the uncertainty of jackknife `values`, which are on the scale of `is_log`.
    fn new(value: f64, is_log: bool, values: &[f64]) -> Self {
        Quotient { value, is_log, interval: interval_at(values, LEVEL) }
    }

    fn verdict(&self, least: f64, most: f64, is_exact: bool) -> Verdict {
        if !self.is_finite() {
            return Verdict::NotDecided;
        }
        let is_inside = |v: f64| v.is_finite() && least <= v && v <= most;
        let at_value = match is_inside(self.value) {
            true => Verdict::Reproduced,
            false => Verdict::NotReproduced,
        };
        if is_exact {
            return at_value;
        }
        let Some(h) = self.interval.half_width else {
            return if self.interval.n > 1 { at_value } else { Verdict::NotDecided };
        };
        let (lower, upper) = self.ends(h);
        if is_inside(lower) && is_inside(upper) {
            Verdict::Reproduced
        } else if upper < least || lower > most {
            Verdict::NotReproduced
        } else {
            Verdict::WithinNoise
        }
    }

    /// Whether the denominator is nonzero, also without any one repetition.
    fn is_finite(&self) -> bool {
        self.value.is_finite() && self.interval.mean.is_finite()
    }

    fn ends(&self, half_width: f64) -> (f64, f64) {
        match self.is_log {
            true => (self.value / half_width.exp(), self.value * half_width.exp()),
            false => (self.value - half_width, self.value + half_width),
        }
    }

    fn words(&self, clusters: Clusters) -> String {
        let counted = || clusters.counted(self.interval.n);
        match self.interval.half_width {
            Some(h) => {
                let (lower, upper) = self.ends(h);
                format!("{}, 95 % interval {} to {}", counted(), show(lower), show(upper))
            }
            None if self.interval.n > 1 => counted(),
            None => String::new(),
        }
    }
}

pub(in crate::verdict) fn quotient(
    [above, below]: [&Select; 2],
    clusters: Clusters,
    context: Context<'_>,
) -> Result<Quotient, Unjudged> {
    if above.statistic != below.statistic {
        return Err(not_run("needs the same statistic on both sides"));
    }
    let points = [single_points(above, context)?, single_points(below, context)?];
    if above.statistic == Statistic::Deviation {
        return of_deviations(points, clusters);
    }
    let [a, b] = on_common_seeds([&points[0], &points[1]], clusters);
    let pairs = pairs((above, &a), (below, &b))?;
    if pairs.is_empty() {
        return Ok(unpaired(points, clusters));
    }
    let a = clusters.means(pairs.iter().map(|p| (p.left, p.left.value)));
    let b = clusters.means(pairs.iter().map(|p| (p.left, p.right.value)));
    let (sum_a, sum_b) = (a.iter().sum::<f64>(), b.iter().sum::<f64>());
    let is_log = a.iter().chain(&b).all(|v| *v > 0.0);
    let scale = |v: f64| if is_log { v.ln() } else { v };
    let without: Vec<f64> =
        a.iter().zip(&b).map(|(a, b)| scale((sum_a - a) / (sum_b - b))).collect();
    let value = sum_a / sum_b;
    let values = match without.len() {
        1 => vec![scale(value)],
        _ => jackknife(scale(value), &without),
    };
    Ok(Quotient::new(value, is_log, &values))
}

/// The quotient of two standard deviations, which have no signal and seed that could be paired. Its logarithm is computed again without
/// each repetition if there are at least three.
fn of_deviations(sides: [Vec<Point>; 2], clusters: Clusters) -> Result<Quotient, Unjudged> {
    let keys: BTreeSet<String> = sides.iter().flatten().map(|p| clusters.key(p)).collect();
    let number: HashMap<&String, usize> = keys.iter().zip(0..).collect();
    // The values of each place, with the number of their repetition.
    let numbered = |points| -> Result<Vec<Vec<(usize, f64)>>, Unjudged> {
        let value = |point: &&Point| (number[&clusters.key(point)], point.value);
        let places = places(points)?.into_iter();
        Ok(places.map(|place| place.points.iter().map(value).collect()).collect())
    };
    let sides_by_place = [numbered(&sides[0])?, numbered(&sides[1])?];
    let log = |excluded: Option<usize>| {
        let mean_of = |places: &Vec<Vec<(usize, f64)>>| {
            let kept = |place: &Vec<(usize, f64)>| {
                let kept = place.iter().filter(|(number, _)| excluded != Some(*number));
                kept.map(|(_, value)| *value).collect::<Vec<f64>>()
            };
            let places = places.iter().map(kept).filter(|values| !values.is_empty());
            let deviations = places.map(|values| deviation(&values));
            Ok(mean(deviations.collect::<Result<Vec<f64>, Unjudged>>()?.into_iter()))
        };
        Ok((mean_of(&sides_by_place[0])? / mean_of(&sides_by_place[1])?).ln())
    };
    let all = log(None)?;
    if keys.len().saturating_mul(sides[0].len().saturating_add(sides[1].len())) > MAX_LEFT_OUT {
        return Err(not_run("too many values and repetitions for a standard deviation"));
    }
    let values = match keys.len() < 3 {
        true => vec![all],
        false => {
            let without = (0..keys.len()).map(|number| log(Some(number)));
            jackknife(all, &without.collect::<Result<Vec<_>, _>>()?)
        }
    };
    Ok(Quotient::new(mean(values.iter().copied()).exp(), true, &values))
}

/// The quotient of the means of independent samples, by the delta method on the logarithmic scale.
fn unpaired(sides: [Vec<Point>; 2], clusters: Clusters) -> Quotient {
    let samples = sides.map(|points| clusters.means_of(&points));
    let [a, b] = [&samples[0], &samples[1]];
    let value = mean(a.iter().copied()) / mean(b.iter().copied());
    let is_log = a.iter().chain(b).all(|v| *v > 0.0);
    let mut interval = Interval { n: 1, mean: value, half_width: None, p: None };
    let relative_error = |values: &Vec<f64>| {
        let spread = posenc_math::statistics::sample_std(values).ok()?;
        Some(spread / mean(values.iter().copied()) / (values.len() as f64).sqrt())
    };
    let fewest = a.len().min(b.len());
    if let (Some(a), Some(b), true) = (relative_error(a), relative_error(b), is_log && fewest > 1) {
        // The degrees of freedom of the smaller sample are conservative.
        interval.n = fewest;
        let factor = posenc_math::statistics::t_factor(LEVEL, (fewest - 1) as f64);
        let half_width = factor * (a * a + b * b).sqrt();
        interval.half_width = Some(half_width).filter(|h| h.is_finite() && *h > 1e-12);
    }
    Quotient { value, is_log, interval }
}
