//! `bound`: the selected values stay within limits.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Rule, joint, limit_problem};
use crate::schema::Group;
use crate::schema::claim::Select;
use crate::schema::protocol::Fault;
use crate::verdict::clusters::Clusters;
use crate::verdict::pairs::values_at;
use crate::verdict::points::{Context, Point, not_run, points, show};
use crate::verdict::statistics::{Fit, LEVEL, fit, mean_interval};
use crate::verdict::{Judged, Judgement, Unjudged, Verdict};

/// The selected values stay within limits.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BoundCheck {
    /// Rows whose values must be within the limits.
    of: Select,
    /// Upper limit.
    at_most: Option<Limit>,
    /// Lower limit.
    at_least: Option<Limit>,
    /// Share of the limit by which a value may exceed it (rounding).
    #[serde(default)]
    slack: f64,
    /// Whether each single value must be within the limits, instead of the mean at each point.
    #[serde(default)]
    each: bool,
}

/// A limit: a number, or a metric of the same method, signal, seed and abscissa.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
enum Limit {
    Number(f64),
    Metric(String),
}

/// A value with its excess over a limit, as a share of the limit.
struct Excess<'a> {
    point: &'a Point,
    limit: f64,
    share: f64,
}

impl Rule for BoundCheck {
    fn selects(&self) -> Vec<(String, &Select)> {
        vec![("of".into(), &self.of)]
    }

    fn problem(&self, groups: &[Group]) -> Option<Fault> {
        let (least, most) = (self.at_least.as_ref(), self.at_most.as_ref());
        // A metric has no number to compare with the other limit.
        let number = |limit: &Limit| match limit {
            Limit::Number(number) => *number,
            Limit::Metric(_) => f64::NAN,
        };
        limit_problem(least.map(number), most.map(number)).or_else(|| {
            let group = groups.iter().find(|group| group.id == self.of.group)?;
            [("at_most", most), ("at_least", least)].into_iter().find_map(
                |(key, limit)| match limit {
                    Some(Limit::Metric(metric)) => Some((key, group.metric_problem(metric)?)),
                    _ => None,
                },
            )
        })
    }

    fn judge(&self, clusters: Clusters, context: Context<'_>) -> Judged {
        let all = points(&self.of, context)?;
        let limits_of = |limit: &Limit| -> Result<Vec<Option<f64>>, Unjudged> {
            match limit {
                Limit::Number(v) => Ok(vec![Some(*v); all.len()]),
                Limit::Metric(metric) => {
                    let select = Select { metric: metric.clone(), ..self.of.clone() };
                    values_at(&all, &points(&select, context)?)
                }
            }
        };
        let slack = self.slack + 1e-12;
        let is_exact = self.each || clusters.is_exact;
        let mut fits = Vec::new();
        // The place with the largest excess: the excess, a point, mean value, mean limit, and the number of repetitions.
        let mut worst: Option<(f64, &Point, f64, f64, usize)> = None;
        let (mut values, mut all_places) = (0, 0);
        for (limit, sign) in [(&self.at_most, 1.0), (&self.at_least, -1.0)] {
            let Some(limit) = limit else { continue };
            let excess = |(point, limit): (_, Option<f64>)| {
                let (point, limit): (&Point, f64) = (point, limit?);
                let scale = if limit == 0.0 { 1.0 } else { limit.abs() };
                Some(Excess { point, limit, share: sign * (point.value - limit) / scale })
            };
            let excesses: Vec<Excess<'_>> =
                all.iter().zip(limits_of(limit)?).filter_map(excess).collect();
            // A range has two limits at the same values.
            values = values.max(excesses.len());
            let places: Vec<Vec<&Excess<'_>>> = match self.each {
                true => excesses.iter().map(|e| vec![e]).collect(),
                false => clusters.places(&excesses, |e| e.point)?,
            };
            all_places = all_places.max(places.len());
            for place in &places {
                let shares = match is_exact {
                    // Without uncertainty, every value must be within the limit.
                    true => place.iter().map(|e| e.share).collect(),
                    false => clusters.means(place.iter().map(|e| (e.point, e.share))),
                };
                fits.push(fit(&shares, (f64::NEG_INFINITY, slack), LEVEL, places.len(), is_exact));
                let (share, shown) = match is_exact {
                    true => {
                        let most = place.iter().max_by(|a, b| a.share.total_cmp(&b.share));
                        let Some(most) = most else { continue };
                        (most.share, vec![*most])
                    }
                    false => (mean_interval(&shares).mean, place.clone()),
                };
                let mean = |of: fn(&Excess<'_>) -> f64| {
                    mean_interval(&clusters.means(shown.iter().map(|e| (e.point, of(e))))).mean
                };
                if worst.is_none_or(|(w, ..)| share > w)
                    && let Some(first) = shown.first()
                {
                    let (value, limit) = (mean(|e| e.point.value), mean(|e| e.limit));
                    worst = Some((share, first.point, value, limit, shares.len()));
                }
            }
        }
        let Some((excess, point, value, limit, n)) = worst else {
            return Err(not_run("no limit at the selected places"));
        };
        let verdict = Fit::joined(&fits);
        let place = point.x.map(|x| format!(", x = {}", show(x))).unwrap_or_default();
        let is_zero = limit == 0.0;
        let (value, limit) = (show(value), show(limit));
        let measured = format!("worst case: {}{place}, {value} (limit {limit})", point.method);
        let mut statistics =
            if values == 1 { "1 value".into() } else { format!("{values} values") };
        if !is_exact && n > 1 {
            statistics = clusters.counted_at(n, all_places);
        }
        let reason = match verdict {
            Verdict::NotDecided => clusters.lack(),
            Verdict::WithinNoise => {
                format!("the {}interval contains the limit", joint(all_places))
            }
            // No share of a limit of 0.
            _ if is_zero => "violates the limit".to_owned(),
            _ => format!("violates the limit by {} %", show(100.0 * excess)),
        };
        let of_limit = (!is_zero).then(|| (1.0 + excess) / (1.0 + self.slack));
        Ok(Judgement::new(verdict, measured, statistics, reason).near(of_limit))
    }
}
