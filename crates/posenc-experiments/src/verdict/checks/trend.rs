//! `trend`: means increase, decrease or stay constant along the abscissa.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Rule, metric_tolerance, not_negative};
use crate::schema::Group;
use crate::schema::claim::Select;
use crate::schema::metrics::Metrics;
use crate::schema::protocol::Fault;
use crate::verdict::clusters::Clusters;
use crate::verdict::curves::{Curve, curves};
use crate::verdict::points::{Context, describe, not_run, show};
use crate::verdict::statistics::{EQUIVALENCE, Fit, LEVEL, fit};
use crate::verdict::{Judged, Judgement, Verdict};

/// The means per abscissa increase, decrease or stay constant, for each method separately.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrendCheck {
    /// Rows.
    of: Select,
    /// Claimed direction as x grows.
    direction: Direction,
    /// Steps against the direction up to this share of the range of values are allowed, by default 0. For `constant`, the largest
    /// range of the means in the unit of the metric; the tolerance of the metric if absent.
    slack: Option<f64>,
}

/// What happens to a metric as the abscissa grows.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Direction {
    Increasing,
    Decreasing,
    Constant,
}

impl Rule for TrendCheck {
    fn selects(&self) -> Vec<(String, &Select)> {
        vec![("of".into(), &self.of)]
    }

    fn problem(&self, _: &[Group]) -> Option<Fault> {
        Some(("slack", not_negative(self.slack?)?))
    }

    fn complete(&mut self, metrics: &Metrics) -> Result<(), String> {
        if self.direction == Direction::Constant && self.slack.is_none() {
            self.slack = Some(metric_tolerance("slack", &self.of.metric, metrics)?);
        }
        Ok(())
    }

    fn judge(&self, clusters: Clusters, context: Context<'_>) -> Judged {
        let mut curves = curves(&self.of, clusters, context)?;
        if curves.is_empty() {
            let of = describe(&self.of);
            return Err(not_run(format!("no curve for {of}: its values have no x")));
        }
        curves.sort_by(|a, b| a.method.cmp(&b.method));
        let slack = self.slack.unwrap_or(0.0);
        let mut fits = Vec::new();
        let (mut failures, mut texts) = (Vec::new(), Vec::new());
        let (mut steps, mut repetitions) = (0, usize::MAX);
        let mut of_limit: Option<f64> = None;
        for curve in &curves {
            if curve.points.len() < 2 {
                let method = &curve.method;
                return Err(not_run(format!("{method}: a trend needs two places of the abscissa")));
            }
            steps += curve.points.len() - 1;
            let fewest = curve.by_cluster.iter().map(BTreeMap::len).min().unwrap_or(0);
            repetitions = repetitions.min(fewest);
            let one = match self.direction {
                Direction::Constant => constant(curve, slack, clusters.is_exact),
                Direction::Increasing => monotone(curve, 1.0, slack, clusters.is_exact),
                Direction::Decreasing => monotone(curve, -1.0, slack, clusters.is_exact),
            };
            texts.push(one.text);
            failures.extend(one.why.map(|why| format!("{} {why}", curve.method)));
            fits.extend(one.fits);
            of_limit = one.of_limit.into_iter().chain(of_limit).reduce(f64::max);
        }
        let shown = texts.len().min(4);
        let mut measured = texts[..shown].join("; ");
        if texts.len() > shown {
            measured += &format!("; … ({} curves)", texts.len());
        }
        let slack = match self.direction {
            Direction::Constant => format!("allowed range {}", show(slack)),
            _ => format!("slack {} %", show(100.0 * slack)),
        };
        let s = if curves.len() == 1 { "" } else { "s" };
        let mut statistics = format!("{} curve{s}, {steps} steps, {slack}", curves.len());
        if repetitions > 1 && !clusters.is_exact {
            statistics += &format!(", {}", clusters.counted(repetitions));
        }
        let verdict = Fit::joined(&fits);
        let reason = match verdict {
            Verdict::NotDecided => clusters.lack(),
            _ => failures.join("; "),
        };
        Ok(Judgement::new(verdict, measured, statistics, reason).near(of_limit))
    }
}

impl Curve {
    /// Differences between two places, for each repetition that has both.
    fn differences(&self, from: usize, to: usize) -> Vec<f64> {
        let (from, to) = (&self.by_cluster[from], &self.by_cluster[to]);
        to.iter().filter_map(|(key, value)| Some(value - from.get(key)?)).collect()
    }

    fn range(&self) -> (f64, f64) {
        let means = || self.points.iter().map(|p| p.1);
        (means().fold(f64::INFINITY, f64::min), means().fold(f64::NEG_INFINITY, f64::max))
    }

    /// By how much the mean grows between two places.
    fn change(&self, from: usize, to: usize) -> f64 {
        self.points[to].1 - self.points[from].1
    }
}

struct Course {
    fits: Vec<Fit>,
    text: String,
    why: Option<String>,
    of_limit: Option<f64>,
}

/// Tests for steps against the direction of `sign`, and for the change from the first place to the last.
fn monotone(curve: &Curve, sign: f64, slack: f64, is_exact: bool) -> Course {
    let last = curve.points.len() - 1;
    let (least, most) = curve.range();
    let slack = slack * (most - least).abs();
    let exact = |holds: bool| if holds { Fit::Inside } else { Fit::Outside };
    let step = |i: usize| -> Fit {
        if is_exact {
            return exact(sign * curve.change(i, i + 1) >= -slack);
        }
        let values: Vec<f64> = curve.differences(i, i + 1).iter().map(|d| sign * d).collect();
        match fit(&values, (-slack, f64::INFINITY), LEVEL, last, false) {
            // Only the overall change must be significant, not a single step.
            Fit::Unclear => Fit::Inside,
            other => other,
        }
    };
    let mut fits: Vec<Fit> = (0..last).map(step).collect();
    let against = fits.iter().filter(|f| **f == Fit::Outside).count();
    let overall = if is_exact {
        exact(sign * curve.change(0, last) > 0.0)
    } else {
        let values: Vec<f64> = curve.differences(0, last).iter().map(|d| sign * d).collect();
        fit(&values, (f64::MIN_POSITIVE, f64::INFINITY), LEVEL, 1, false)
    };
    fits.push(overall);
    let why = match (against, overall) {
        (0, Fit::Outside) => Some("changes against the direction from first to last".to_owned()),
        (0, Fit::Unclear) => Some("does not clearly change from first to last".to_owned()),
        (0, _) => None,
        (1, _) => Some("has 1 step against the direction".to_owned()),
        (n, _) => Some(format!("has {n} steps against the direction")),
    };
    let falls = (0..last).map(|i| -sign * curve.change(i, i + 1));
    let worst = falls.fold(f64::NEG_INFINITY, f64::max);
    let [first, end] = [0, last].map(|i| show(curve.points[i].1));
    Course {
        fits,
        text: format!("{}: {first} → {end}", curve.method),
        why,
        of_limit: (slack > 0.0).then(|| worst / slack),
    }
}

/// Tests the largest difference between two places.
fn constant(curve: &Curve, slack: f64, is_exact: bool) -> Course {
    let (least, most) = curve.range();
    let range = most - least;
    let fit = if is_exact {
        if range <= slack { Fit::Inside } else { Fit::Outside }
    } else {
        let place = |value: f64| curve.points.iter().position(|p| p.1 == value).unwrap_or(0);
        let differences = curve.differences(place(least), place(most));
        // Corrects for selecting the two places among all pairs.
        let pairs = curve.points.len() * (curve.points.len() - 1) / 2;
        fit(&differences, (f64::NEG_INFINITY, slack), EQUIVALENCE, pairs, false)
    };
    Course {
        fits: vec![fit],
        text: format!("{}: range {}", curve.method, show(range)),
        why: (fit != Fit::Inside).then(|| "is not clearly constant".to_owned()),
        of_limit: (slack > 0.0).then(|| range / slack),
    }
}
