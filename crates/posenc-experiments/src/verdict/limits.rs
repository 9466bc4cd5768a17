//! Checks of curves and series against limits: trends, bounds and equalities.

use std::collections::BTreeMap;

use super::clusters::Clusters;
use super::curves::{Curve, curves};
use super::judge::{EQUIVALENCE, LEVEL, no_tolerance};
use super::select::{
    Context, Pair, Point, describe, not_run, on_common_seeds, pairs, points, show, unlike,
    values_at,
};
use super::statistics::{Fit, fit, mean_interval};
use super::{Judged, Judgement, Unjudged, Verdict};
use crate::schema::claim::{BoundCheck, Direction, EqualityCheck, Limit, Select, TrendCheck};

/// The verdict on a claim about several places.
fn joined(fits: &[Fit]) -> Verdict {
    Verdict::worst(fits.iter().map(|fit| fit.verdict()))
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

pub(super) fn trend(check: &TrendCheck, clusters: Clusters, context: Context<'_>) -> Judged {
    let mut curves = curves(&check.of, clusters, context)?;
    if curves.is_empty() {
        return Err(not_run(format!("no curve for {}: its values have no x", describe(&check.of))));
    }
    curves.sort_by(|a, b| a.method.cmp(&b.method));
    let slack = check.slack.unwrap_or(0.0);
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
        let one = match check.direction {
            Direction::Constant => constant(curve, slack, clusters.is_exact),
            direction => {
                let sign = if direction == Direction::Increasing { 1.0 } else { -1.0 };
                monotone(curve, sign, slack, clusters.is_exact)
            }
        };
        texts.push(one.text);
        if let Some(why) = one.why {
            failures.push(format!("{} {why}", curve.method));
        }
        fits.extend(one.fits);
        of_limit = one.of_limit.into_iter().chain(of_limit).reduce(f64::max);
    }
    let shown = texts.len().min(4);
    let mut measured = texts[..shown].join("; ");
    if texts.len() > shown {
        measured += &format!("; … ({} curves)", texts.len());
    }
    let slack = match check.direction {
        Direction::Constant => format!("allowed range {}", show(slack)),
        _ => format!("slack {} %", show(100.0 * slack)),
    };
    let s = if curves.len() == 1 { "" } else { "s" };
    let mut statistics = format!("{} curve{s}, {steps} steps, {slack}", curves.len());
    if repetitions > 1 && !clusters.is_exact {
        statistics += &format!(", {}", clusters.counted(repetitions));
    }
    let verdict = joined(&fits);
    let reason = match verdict {
        Verdict::NotDecided => clusters.lack(),
        _ => failures.join("; "),
    };
    Ok(Judgement::new(verdict, measured, statistics, reason).near(of_limit))
}

/// The result for one curve of a trend.
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
    let step = |i: usize| -> Fit {
        if is_exact {
            let step = sign * curve.change(i, i + 1);
            return if step >= -slack { Fit::Inside } else { Fit::Outside };
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
    let change = sign * curve.change(0, last);
    let overall = if is_exact {
        if change > 0.0 { Fit::Inside } else { Fit::Outside }
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

/// A value with its excess over a limit, as a share of the limit.
struct Excess<'a> {
    point: &'a Point,
    limit: f64,
    share: f64,
}

pub(super) fn bound(check: &BoundCheck, clusters: Clusters, context: Context<'_>) -> Judged {
    let all = points(&check.of, context)?;
    let limit_of = |limit: &Limit| -> Result<Vec<Option<f64>>, Unjudged> {
        match limit {
            Limit::Number(v) => Ok(vec![Some(*v); all.len()]),
            Limit::Metric(metric) => {
                let select = Select { metric: metric.clone(), ..check.of.clone() };
                let others = points(&select, context)?;
                values_at(&all, &others)
            }
        }
    };
    let slack = check.slack + 1e-12;
    let mut fits = Vec::new();
    // The place with the largest excess: the excess, a point, mean value, mean limit, and the number of repetitions.
    let mut worst: Option<(f64, &Point, f64, f64, usize)> = None;
    let (mut values, mut all_places) = (0, 0);
    for (limit, sign) in [(&check.at_most, 1.0), (&check.at_least, -1.0)] {
        let Some(limit) = limit else { continue };
        let limits = limit_of(limit)?;
        let excesses: Vec<Excess<'_>> = (all.iter().zip(limits))
            .filter_map(|(point, limit)| {
                let limit = limit?;
                let scale = if limit == 0.0 { 1.0 } else { limit.abs() };
                Some(Excess { point, limit, share: sign * (point.value - limit) / scale })
            })
            .collect();
        // A range has two limits at the same values.
        values = values.max(excesses.len());
        let places: Vec<Vec<&Excess<'_>>> = match check.each {
            true => excesses.iter().map(|e| vec![e]).collect(),
            false => clusters.places(&excesses, |e| e.point)?,
        };
        all_places = all_places.max(places.len());
        for place in &places {
            let is_exact = check.each || clusters.is_exact;
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
                shown.iter().map(|e| of(e)).sum::<f64>() / shown.len().max(1) as f64
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
    let verdict = joined(&fits);
    let place = point.x.map(|x| format!(", x = {}", show(x))).unwrap_or_default();
    let (value, limit) = (show(value), show(limit));
    let measured = format!("worst case: {}{place}, {value} (limit {limit})", point.method);
    let mut statistics = if values == 1 { "1 value".into() } else { format!("{values} values") };
    if !check.each && !clusters.is_exact && n > 1 {
        statistics = format!("{} at {all_places} points", clusters.counted(n));
    }
    let reason = match verdict {
        Verdict::NotDecided => clusters.lack(),
        Verdict::WithinNoise => format!("the {}interval contains the limit", joint(all_places)),
        _ => format!("violates the limit by {} %", show(100.0 * excess)),
    };
    let of_limit = (1.0 + excess) / (1.0 + check.slack);
    Ok(Judgement::new(verdict, measured, statistics, reason).near(Some(of_limit)))
}

/// Intervals at several places are joint: all of them together have the level.
fn joint(places: usize) -> &'static str {
    if places > 1 { "joint " } else { "" }
}

pub(super) fn equality(check: &EqualityCheck, clusters: Clusters, context: Context<'_>) -> Judged {
    let [left, right] = [points(&check.left, context)?, points(&check.right, context)?];
    let [left, right] = on_common_seeds([&left, &right], clusters);
    let pairs = pairs((&check.left, &left), (&check.right, &right))?;
    if pairs.is_empty() {
        return Err(not_run("no values in common"));
    }
    let tolerance = check.tolerance.as_ref().ok_or_else(no_tolerance)?;
    let is_relative = tolerance.relative.is_some();
    let Some(tolerance) = tolerance.absolute.or(tolerance.relative) else {
        return Err(not_run("an equality needs `absolute` or `relative`"));
    };
    let difference = |pair: &Pair<'_>| {
        let d = pair.left.value - pair.right.value;
        if is_relative { d / pair.right.value.abs().max(f64::MIN_POSITIVE) } else { d }
    };
    let is_exact = check.each || clusters.is_exact;
    let places: Vec<Vec<&Pair<'_>>> = match is_exact {
        true => pairs.iter().map(|pair| vec![pair]).collect(),
        false => clusters.places(&pairs, |pair| pair.left)?,
    };
    let mut fits = Vec::new();
    let mut largest: f64 = 0.0;
    let mut repetitions = 0;
    for place in &places {
        let values = clusters.means(place.iter().map(|p| (p.measured, difference(p))));
        let range = (-tolerance, tolerance);
        fits.push(fit(&values, range, EQUIVALENCE, places.len(), is_exact));
        largest = largest.max(mean_interval(&values).mean.abs());
        repetitions = repetitions.max(values.len());
    }
    let unit = if is_relative { " %" } else { "" };
    let scale = if is_relative { 100.0 } else { 1.0 };
    let unlike = unlike(&check.left, &check.right, context);
    let what = if is_exact { "largest difference" } else { "largest mean difference" };
    let mut measured = format!("{what} {}{unit}", show(scale * largest));
    if unlike.is_none() {
        measured += &format!(" (allowed {}{unit})", show(scale * tolerance));
    }
    let statistics = match (is_exact, pairs.len()) {
        (_, 1) => "1 pair".to_owned(),
        (true, n) => format!("{n} pairs"),
        (false, _) => format!("{} at {} points", clusters.counted(repetitions), places.len()),
    };
    let verdict = joined(&fits);
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
