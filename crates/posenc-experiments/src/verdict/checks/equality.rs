//! `equality`: two series agree point by point.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Rule, Tolerance, joint};
use crate::schema::Group;
use crate::schema::claim::Select;
use crate::schema::metrics::Metrics;
use crate::schema::protocol::Fault;
use crate::verdict::clusters::Clusters;
use crate::verdict::comparable::unlike;
use crate::verdict::pairs::{Pair, on_common_seeds, pairs};
use crate::verdict::points::{Context, not_run, points, show};
use crate::verdict::statistics::{EQUIVALENCE, Fit, fit, mean_interval};
use crate::verdict::{Judged, Judgement, Verdict};

/// Two series agree point by point, matched over signal, seed and abscissa.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EqualityCheck {
    /// One series.
    left: Select,
    /// The other, which relative tolerances refer to.
    right: Select,
    /// Largest difference; the tolerance of the metric if absent.
    tolerance: Option<Tolerance>,
    /// Whether each single pair must agree, instead of the mean difference at each point.
    #[serde(default)]
    each: bool,
}

impl Rule for EqualityCheck {
    fn selects(&self) -> Vec<(String, &Select)> {
        vec![("left".into(), &self.left), ("right".into(), &self.right)]
    }

    fn problem(&self, _: &[Group]) -> Option<Fault> {
        self.tolerance.as_ref()?.problem(false)
    }

    fn complete(&mut self, metrics: &Metrics) -> Result<(), String> {
        Tolerance::complete(&mut self.tolerance, &self.left.metric, metrics)
    }

    fn judge(&self, clusters: Clusters, context: Context<'_>) -> Judged {
        let [left, right] = [points(&self.left, context)?, points(&self.right, context)?];
        let [left, right] = on_common_seeds([&left, &right], clusters);
        let pairs = pairs((&self.left, &left), (&self.right, &right))?;
        if pairs.is_empty() {
            return Err(not_run("no values in common"));
        }
        let tolerance = Tolerance::given(&self.tolerance)?;
        let is_relative = tolerance.relative.is_some();
        let tolerance = tolerance.absolute.or(tolerance.relative);
        let tolerance = tolerance.ok_or_else(|| not_run("no tolerance"))?;
        let difference = |pair: &Pair<'_>| {
            let d = pair.left.value - pair.right.value;
            if is_relative { d / pair.right.value.abs().max(f64::MIN_POSITIVE) } else { d }
        };
        let is_exact = self.each || clusters.is_exact;
        let places: Vec<Vec<&Pair<'_>>> = match is_exact {
            true => pairs.iter().map(|pair| vec![pair]).collect(),
            false => clusters.places(&pairs, |pair| pair.left)?,
        };
        let mut fits = Vec::new();
        let mut largest: f64 = 0.0;
        let mut repetitions = 0;
        for place in &places {
            let values = clusters.means(place.iter().map(|p| (p.left, difference(p))));
            let range = (-tolerance, tolerance);
            fits.push(fit(&values, range, EQUIVALENCE, places.len(), is_exact));
            largest = largest.max(mean_interval(&values).mean.abs());
            repetitions = repetitions.max(values.len());
        }
        let (scale, unit) = if is_relative { (100.0, " %") } else { (1.0, "") };
        let unlike = unlike(&self.left, &self.right, context);
        let what = if is_exact { "largest difference" } else { "largest mean difference" };
        let mut measured = format!("{what} {}{unit}", show(scale * largest));
        if unlike.is_none() {
            measured += &format!(" (allowed {}{unit})", show(scale * tolerance));
        }
        let statistics = match (is_exact, pairs.len()) {
            (_, 1) => "1 pair".to_owned(),
            (true, n) => format!("{n} pairs"),
            (false, _) => clusters.counted_at(repetitions, places.len()),
        };
        let verdict = Fit::joined(&fits);
        let reason = match verdict {
            Verdict::NotDecided => clusters.lack(),
            Verdict::WithinNoise => {
                format!("the {}90 % interval contains the limit", joint(places.len()))
            }
            _ => "the series differ".to_owned(),
        };
        let of_limit = (tolerance > 0.0).then(|| largest / tolerance);
        Ok(Judgement::new(verdict, measured, statistics, reason).near(of_limit).unless(unlike))
    }
}
