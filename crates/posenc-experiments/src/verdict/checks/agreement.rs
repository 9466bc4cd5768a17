//! `agreement`: the means of a curve agree with published ones.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Rule, Tolerance};
use crate::published::PublishedValue;
use crate::schema::Group;
use crate::schema::claim::{Select, Source, same_place};
use crate::schema::metrics::Metrics;
use crate::schema::protocol::Fault;
use crate::verdict::clusters::Clusters;
use crate::verdict::comparable::incomparable;
use crate::verdict::pairs::check_pairs;
use crate::verdict::points::{
    Context, Place, Point, describe, not_run, places, points, show, show_interval,
};
use crate::verdict::statistics::{EQUIVALENCE, Fit, interval_at, mean_interval, near};
use crate::verdict::{Judged, Judgement, Unjudged, Verdict};

/// The means of a curve over signals and seeds agree with the published ones, matched over method and abscissa.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgreementCheck {
    /// The curve.
    of: Select,
    /// Published values; those of the same selection if absent. Methods are matched if neither selection names one. A published value
    /// without abscissa is compared with the mean of the whole curve.
    with: Option<Select>,
    /// Largest difference; the tolerance of the metric if absent.
    tolerance: Option<Tolerance>,
    /// Which repetitions determine the uncertainty.
    #[serde(default)]
    sample: Sample,
}

/// Which repetitions determine the uncertainty of a value that is compared with a published one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Sample {
    /// Both numbers come from the same signals: only seeds differ.
    #[default]
    Seeds,
    /// The signals are a different sample than the paper's, such as random lines.
    Signals,
}

/// A published mean.
struct Expected<'a> {
    method: &'a str,
    x: Option<f64>,
    value: f64,
    /// The deviation of a single published number; a mean of several numbers has none.
    deviation: Option<f64>,
}

/// The result for one place.
struct Outcome {
    fit: Fit,
    /// Difference divided by the margin.
    excess: f64,
    /// Method and abscissa.
    place: String,
    text: String,
}

impl Rule for AgreementCheck {
    fn selects(&self) -> Vec<(String, &Select)> {
        let with = self.with.iter().map(|with| ("with".to_owned(), with));
        std::iter::once(("of".to_owned(), &self.of)).chain(with).collect()
    }

    fn published(&self) -> Option<&Select> {
        self.with.is_none().then_some(&self.of)
    }

    fn is_on_same_signals(&self) -> bool {
        self.sample == Sample::Seeds
    }

    fn problem(&self, _: &[Group]) -> Option<Fault> {
        if self.with.as_ref().is_some_and(|with| with.from == Source::Measured) {
            let message =
                "needs `from: published`; compare two curves of the record with an `equality`";
            return Some(("with", message.into()));
        }
        self.tolerance.as_ref()?.problem(true)
    }

    fn complete(&mut self, metrics: &Metrics) -> Result<(), String> {
        Tolerance::complete(&mut self.tolerance, &self.of.metric, metrics)
    }

    fn judge(&self, clusters: Clusters, context: Context<'_>) -> Judged {
        let points_of = points(&self.of, context)?;
        let of = places(&points_of)?;
        let same = Select { from: Source::Published, ..self.of.clone() };
        let with = self.with.as_ref().unwrap_or(&same);
        let tolerance = Tolerance::given(&self.tolerance)?;
        let printed = points(with, context)?;
        let mut expected = expectations(with, &printed, context)?;
        // The claim is about the abscissas that it selects.
        let range = self.of.x.as_ref();
        expected.retain(|e| e.x.is_none() || range.is_none_or(|range| range.contains(e.x)));
        let by_method = self.of.method.is_none() && with.method.is_none();
        let (mut matches, mut missing) = (Vec::new(), 0);
        let curves: Vec<&[Place<'_>]> = of.chunk_by(|a, b| a.method == b.method).collect();
        let numbers: HashMap<&str, usize> = curves.iter().map(|c| c[0].method).zip(0..).collect();
        for e in &expected {
            let own: &[&[Place<'_>]] = match numbers.get(e.method) {
                _ if !by_method => &curves,
                Some(number) => &curves[*number..=*number],
                None => &[],
            };
            let before = matches.len();
            for curve in own {
                match e.x {
                    // A number without an abscissa is compared with whole curves.
                    None => matches.push((*curve, e)),
                    x => matches.extend(at(curve, x, |p| p.x).chunks(1).map(|part| (part, e))),
                }
            }
            missing += usize::from(matches.len() == before);
            check_pairs(matches.len(), [of.len(), expected.len()])?;
        }
        let reduced = incomparable(&self.of, Some(with), context);
        // A reduced run may have fewer points, and is not compared.
        if missing > 0 && (reduced.is_none() || matches.is_empty()) {
            let (of, all) = (describe(&self.of), expected.len());
            return Err(not_run(format!("no values for {of} at {missing} of {all} points")));
        }
        let outcome = |(part, e): &(&[Place<'_>], &Expected<'_>)| {
            let outcome = outcome(part, e, tolerance, matches.len(), clusters);
            outcome.ok_or_else(|| not_run("no standard deviation for the tolerance"))
        };
        let mut outcomes = matches.iter().map(outcome).collect::<Result<Vec<_>, _>>()?;
        let agreeing = outcomes.iter().filter(|o| o.fit == Fit::Inside).count();
        let verdict = match outcomes.iter().all(|o| matches!(o.fit, Fit::Inside | Fit::Unclear)) {
            true if agreeing == outcomes.len() => Verdict::Reproduced,
            true => Verdict::WithinNoise,
            false => Verdict::NotReproduced,
        };
        let count = outcomes.len();
        outcomes.sort_by(|a, b| a.excess.total_cmp(&b.excess));
        let Some(worst) = outcomes.last() else {
            return Err(not_run(format!("nothing to compare {} with", describe(&self.of))));
        };
        let (measured, statistics) = match count {
            1 => (worst.text.clone(), String::new()),
            _ => {
                let worst = format!("worst point: {}: {}", worst.place, worst.text);
                (format!("{agreeing} of {count} points within tolerance"), worst)
            }
        };
        let judgement = Judgement::new(verdict, measured, statistics, String::new());
        Ok(judgement.near(Some(worst.excess)).unless(reduced))
    }
}

/// The published means by method and abscissa.
fn expectations<'a>(
    with: &Select,
    printed: &'a [Point],
    context: Context<'_>,
) -> Result<Vec<Expected<'a>>, Unjudged> {
    let mut values: HashMap<&str, Vec<&PublishedValue>> = HashMap::new();
    for value in context.published_of(with).filter(|v| v.value.is_some()) {
        values.entry(&value.method).or_default().push(value);
    }
    for own in values.values_mut() {
        let x = |v: &PublishedValue| v.x.unwrap_or(f64::NEG_INFINITY);
        own.sort_by(|a, b| x(a).total_cmp(&x(b)));
    }
    let deviation = |place: &Place<'_>| match at(values.get(place.method)?, place.x, |v| v.x) {
        [only] => only.deviation,
        _ => None,
    };
    let expectation = |place: Place<'a>| Expected {
        method: place.method,
        x: place.x,
        value: mean_interval(&place.values()).mean,
        deviation: deviation(&place),
    };
    Ok(places(printed)?.into_iter().map(expectation).collect())
}

/// The entries at an abscissa of a list that is sorted by it; entries without an abscissa come first.
fn at<T>(sorted: &[T], x: Option<f64>, of: impl Fn(&T) -> Option<f64>) -> &[T] {
    let is_here = |own: Option<f64>| match (own, x) {
        (Some(own), Some(x)) => same_place(own, x),
        (own, x) => own == x,
    };
    let from = sorted.partition_point(|entry| of(entry) < x && !is_here(of(entry)));
    let rest = &sorted[from..];
    &rest[..rest.partition_point(|entry| is_here(of(entry)))]
}

/// Compares a place of a curve, or all its places, with a published mean; `None` if the tolerance depends on a spread that is unknown.
fn outcome(
    part: &[Place<'_>],
    expected: &Expected<'_>,
    tolerance: &Tolerance,
    places: usize,
    clusters: Clusters,
) -> Option<Outcome> {
    let means = clusters.means_of(part.iter().flat_map(|place| place.points.iter().copied()));
    let interval = interval_at(&means, EQUIVALENCE);
    let (mean, is_exact) = (interval.mean, clusters.is_exact);
    let (fit, margin, margin_text) = match tolerance.margin(expected.value) {
        Some((margin, text)) => {
            (near(&means, expected.value, margin, places, is_exact), margin, text)
        }
        None => {
            let (margin, text) = standard_errors(&means, expected.deviation, tolerance)?;
            // Standard errors already account for noise.
            (near(&[mean], expected.value, margin, places, true), margin, text)
        }
    };
    let excess = (mean - expected.value).abs() / margin.max(f64::MIN_POSITIVE);
    let at = expected.x.and(part[0].x).map(|x| format!(" at x = {}", show(x))).unwrap_or_default();
    let spread = match interval.half_width.filter(|_| !is_exact) {
        Some(h) => format!(" ({}, n = {})", show_interval(EQUIVALENCE, mean, h), interval.n),
        None => String::new(),
    };
    let theirs = match expected.deviation {
        Some(p) => format!(" (deviation {})", show(p)),
        None => String::new(),
    };
    let (method, mean, expected) = (part[0].method, show(mean), show(expected.value));
    let text = format!("{mean}{spread} against {expected}{theirs}, {margin_text}");
    Some(Outcome { fit, excess, place: format!("{method}{at}"), text })
}

/// The margin in standard errors, as a number and in words. `deviation` is the published one.
fn standard_errors(
    means: &[f64],
    deviation: Option<f64>,
    tolerance: &Tolerance,
) -> Option<(f64, String)> {
    let (factor, runs) = (tolerance.standard_errors?, f64::from(tolerance.published_runs?));
    let own = posenc_math::statistics::sample_std(means).ok()?;
    // Published deviations are population standard deviations (ddof = 0).
    let theirs = deviation.map_or(own, |p| p * (runs / (runs - 1.0)).sqrt());
    let error = (own * own / means.len() as f64 + theirs * theirs / runs).sqrt();
    let text = format!("allowed ± {} standard errors of {}", show(factor), show(error));
    Some((factor * error, text))
}
