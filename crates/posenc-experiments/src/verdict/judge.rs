//! The verdict on a claim, and checks of single numbers: values, orders and quotients.

use std::borrow::Cow;
use std::collections::BTreeSet;

use posenc_math::errata::Severity;

use super::clusters::Clusters;
use super::select::{
    Context, Pair, Point, Spread, describe, deviations, incomparable, margin, missing, not_run,
    on_common_seeds, pairs, points, show, single_points, spread_text, unlike,
};
use super::statistics::{self, Fit, Interval, fit, interval_at, jackknife};
use super::{Judged, Judgement, Unjudged, Verdict, curves, evidence, floors, limits, samples};
use crate::schema::claim::{
    Abscissa, Check, Claim, ClaimCheck, Expected, First, OrderingCheck, RatioCheck, Select, Source,
    Statistic, ValueCheck,
};

/// Level of the interval that a value, an agreement or an equality must have within its tolerance: two one-sided tests at 5 %.
pub(super) const EQUIVALENCE: f64 = 0.90;
/// Level of all other intervals.
pub(super) const LEVEL: f64 = 0.95;
/// Maximum of values × repetitions for which deviations are computed again without each repetition.
const MAX_LEFT_OUT: usize = 2_000_000;

/// Judges a claim. A wrong statement whose correction holds is an erratum, not a failure.
pub fn judge(claim: &Claim, context: Context<'_>) -> Judgement {
    let judgement = with_erratum(claim, context);
    let basis = evidence::of(claim, context);
    let verdict = match judgement.verdict {
        Verdict::Reproduced if claim.is_ours => Verdict::Holds,
        other => other,
    };
    let is_run = verdict != Verdict::NotRun;
    Judgement {
        verdict,
        evidence: basis.class.filter(|_| is_run),
        rows: basis.rows.filter(|_| is_run),
        condition: if is_run { basis.condition } else { String::new() },
        ..judgement
    }
}

fn with_erratum(claim: &Claim, context: Context<'_>) -> Judgement {
    let printed = all(&claim.checks, context);
    let Some(link) = &claim.erratum else { return printed };
    if printed.verdict != Verdict::NotReproduced {
        return printed;
    }
    let corrected = all(&link.checks, context);
    let is_ambiguous =
        |e: &&posenc_math::errata::Erratum| e.id == link.id && e.severity == Severity::Ambiguous;
    let (verdict, what) = match posenc_math::errata::all().iter().any(is_ambiguous) {
        true => (Verdict::Ambiguous, "the other reading"),
        false => (Verdict::Erratum, "corrected"),
    };
    match corrected.verdict {
        Verdict::Reproduced => Judgement {
            verdict,
            measured: corrected.measured,
            statistics: corrected.statistics,
            reason: format!(
                "as printed it fails ({}); {what}: {}",
                printed.measured, link.corrected
            ),
            p_values: corrected.p_values,
            decisive_p: corrected.decisive_p,
            ..printed
        },
        _ => Judgement {
            reason: format!(
                "{}; the correction ({}) is {}: {}",
                printed.reason,
                link.corrected,
                corrected.verdict.name(),
                corrected.measured
            ),
            ..printed
        },
    }
}

/// Number of checks whose numbers are shown if all of a claim's checks hold.
const SHOWN_CHECKS: usize = 3;

/// Judges several checks that must all hold. The texts name the checks that do not hold, or else the first ones.
fn all(checks: &[ClaimCheck], context: Context<'_>) -> Judgement {
    let mut judged: Vec<(&ClaimCheck, Judgement)> =
        checks.iter().map(|own| (own, decide(&own.check, own.is_exact, context))).collect();
    if judged.len() == 1
        && let Some((_, only)) = judged.pop()
    {
        return only;
    }
    let verdict = Verdict::worst(judged.iter().map(|(_, judgement)| judgement.verdict));
    let holds = |judgement: &Judgement| judgement.verdict == Verdict::Reproduced;
    let held = judged.iter().filter(|(_, judgement)| holds(judgement)).count();
    let mut shown: Vec<_> = judged.iter().filter(|(_, judgement)| !holds(judgement)).collect();
    if shown.is_empty() {
        shown = judged.iter().take(SHOWN_CHECKS).collect();
    }
    let text = |of: fn(&Judgement) -> String| {
        let labeled = |(own, judgement): &&(&ClaimCheck, Judgement)| match of(judgement) {
            text if text.is_empty() || own.label.is_empty() => text,
            text => format!("{}: {text}", own.label),
        };
        let texts: Vec<String> = shown.iter().map(labeled).filter(|t| !t.is_empty()).collect();
        texts.join("; ")
    };
    let numbers = text(|j| j.measured.clone());
    // Without a decision, the number of checks that hold would read like one.
    let measured = match verdict {
        Verdict::NotRun | Verdict::NotDecided | Verdict::NotComparable => numbers,
        _ => format!("{held} of {} checks hold; {numbers}", judged.len()),
    };
    let reason = text(|j| match j.reason.as_str() {
        "" => String::new(),
        reason => format!("{} ({reason})", j.verdict.name()),
    });
    let mut judgement = Judgement::new(verdict, measured, text(|j| j.statistics.clone()), reason);
    // The check that is nearest to its limit shows how narrow the claim is.
    let distance = |share: &f64| (share - 1.0).abs();
    let shares = judged.iter().filter_map(|(_, judgement)| judgement.of_limit);
    judgement.of_limit = shares.min_by(|a, b| distance(a).total_cmp(&distance(b)));
    let mut decides: Option<(usize, f64)> = None;
    for (_, own) in judged {
        let decisive = verdict != Verdict::NotReproduced || own.verdict == verdict;
        for p in own.p_values {
            // A failure rests on the check that refutes most clearly, anything else on the least clear check.
            let is_nearer =
                |known: f64| if verdict == Verdict::NotReproduced { p < known } else { p > known };
            if decisive && decides.is_none_or(|(_, known)| is_nearer(known)) {
                decides = Some((judgement.p_values.len(), p));
            }
            judgement.p_values.push(p);
        }
    }
    judgement.decisive_p = decides.map_or(0, |(place, _)| place);
    judgement
}

fn decide(check: &Check, is_exact: bool, context: Context<'_>) -> Judgement {
    let selects = check.selects();
    let needs_record = selects.iter().any(|(_, s)| s.from == Source::Measured);
    if needs_record && context.record.is_none() {
        return not_run("no record").judgement();
    }
    let clusters = Clusters::of(check, is_exact, context);
    let judged = match check {
        Check::Value(c) => value(c, clusters, context),
        Check::Ordering(c) => ordering(c, clusters, context),
        Check::Ratio(c) => ratio(c, clusters, context),
        Check::Trend(c) => limits::trend(c, clusters, context),
        Check::Bound(c) => limits::bound(c, clusters, context),
        Check::Equality(c) => limits::equality(c, clusters, context),
        Check::Agreement(c) => curves::agreement(c, clusters, context),
        Check::Position(c) => curves::position(c, clusters, context),
    };
    let missing = || selects.iter().find_map(|(_, select)| missing(select, context));
    let judgement = match judged {
        Ok(judgement) => judgement.unless(missing()).unless(floors::below(check, context)),
        Err(reason) => return reason.judgement(),
    };
    let is_decided = !matches!(judgement.verdict, Verdict::NotComparable | Verdict::NotRun);
    let lack = samples::too_few(check, context).or_else(|| samples::one_run(check, context));
    match lack.filter(|_| is_decided && !is_exact) {
        Some(reason) => Judgement { verdict: Verdict::NotDecided, reason, ..judgement },
        None => judgement,
    }
}

/// Compares a mean with an expected number and a margin. A single repetition is judged by its value alone, since the expected number
/// comes from the same signals.
pub(super) fn near(
    values: &[f64],
    expected: f64,
    margin: f64,
    places: usize,
    is_exact: bool,
) -> Fit {
    // The last digits of a decimal tolerance are not exact in binary.
    let margin = margin * (1.0 + 1e-9);
    let differences: Vec<f64> = values.iter().map(|v| v - expected).collect();
    let is_exact = is_exact || differences.len() == 1;
    let values = match is_exact {
        // Compares the mean over the parts of an exact number, not each part.
        true => vec![statistics::mean_interval(&differences).mean],
        false => differences,
    };
    fit(&values, (-margin, margin), EQUIVALENCE, places, is_exact)
}

fn value(check: &ValueCheck, clusters: Clusters, context: Context<'_>) -> Judged {
    let points = points(&check.of, context)?;
    let (expected, deviation) = match check.expect {
        Expected::Number(v) => (v, None),
        Expected::Published(_) => {
            let found = context.published_of(&check.of);
            let found: Vec<_> = found.filter_map(|v| Some((v.value?, v.deviation))).collect();
            let of = describe(&check.of);
            match found[..] {
                [one] => one,
                [] => return Err(not_run(format!("nothing published for {of}"))),
                [..] => {
                    let count = found.len();
                    let message =
                        format!("{count} published values for {of}; narrow the selection");
                    return Err(not_run(message));
                }
            }
        }
    };
    let means = clusters.means(points.iter().map(|p| (p, p.value)));
    let tolerance = check.tolerance.as_ref().ok_or_else(no_tolerance)?;
    let spread = Spread::of(&means);
    let found = margin(tolerance, expected, deviation, spread);
    let (margin, margin_text) = found.ok_or_else(no_deviation)?;
    let interval = interval_at(&means, EQUIVALENCE);
    let fit = match tolerance.standard_errors {
        // Standard errors already account for noise.
        Some(_) => near(&[interval.mean], expected, margin, 1, true),
        None => near(&means, expected, margin, 1, clusters.is_exact),
    };
    let measured = format!("{} against {} ({margin_text})", show(interval.mean), show(expected));
    let statistics = spread_text(clusters, &interval);
    let reason = format!("off by {}", show(interval.mean - expected));
    let judgement = Judgement::new(fit.verdict(), measured, statistics, reason);
    let judgement = judgement.near(Some((interval.mean - expected).abs() / margin));
    Ok(judgement.unless(incomparable(&check.of, context)))
}

/// The error for a check without tolerance whose metric has none either.
pub(super) fn no_tolerance() -> Unjudged {
    not_run(
        "no tolerance: the check has none, and neither has its metric in experiments/metrics.yaml",
    )
}

/// The error for a tolerance in standard deviations or errors that are unknown.
pub(super) fn no_deviation() -> Unjudged {
    not_run("no standard deviation for the tolerance")
}

/// The values of a selection, from which one repetition can be left out.
pub(super) struct Side<'a> {
    pub select: &'a Select,
    points: Vec<Point>,
}

impl<'a> Side<'a> {
    pub(super) fn of(select: &'a Select, context: Context<'_>) -> Result<Self, Unjudged> {
        Ok(Side { select, points: single_points(select, context)? })
    }

    fn is_deviation(&self) -> bool {
        self.select.statistic == Statistic::Deviation
    }

    /// The points that are compared: the values, or their deviations.
    pub(super) fn compared(&self) -> Result<Cow<'_, [Point]>, Unjudged> {
        Ok(match self.is_deviation() {
            true => Cow::Owned(deviations(&self.points)?),
            false => Cow::Borrowed(&self.points),
        })
    }

    /// The points that are compared, without those of a cluster.
    fn without(&self, clusters: Clusters, excluded: Option<&str>) -> Result<Vec<Point>, Unjudged> {
        let is_kept = |p: &&Point| excluded != Some(clusters.key(p).as_str());
        let kept: Vec<Point> = self.points.iter().filter(is_kept).cloned().collect();
        match self.is_deviation() {
            true => deviations(&kept),
            false => Ok(kept),
        }
    }
}

/// Values of [`jackknife`] for a statistic of two sides, which leaves out one repetition at a time. A single value if there are fewer
/// than three repetitions.
fn left_out(
    [left, right]: [&Side<'_>; 2],
    clusters: Clusters,
    statistic: impl Fn(&[Point], &[Point]) -> Result<f64, Unjudged>,
) -> Result<Vec<f64>, Unjudged> {
    let of = |excluded: Option<&str>| {
        statistic(&left.without(clusters, excluded)?, &right.without(clusters, excluded)?)
    };
    let all = of(None)?;
    let keys: BTreeSet<String> =
        left.points.iter().chain(&right.points).map(|p| clusters.key(p)).collect();
    let values = left.points.len().saturating_add(right.points.len());
    if keys.len().saturating_mul(values) > MAX_LEFT_OUT {
        return Err(not_run("too many values and repetitions for a standard deviation"));
    }
    // Without one of two repetitions there is no deviation.
    if keys.len() < 3 {
        return Ok(vec![all]);
    }
    let without: Vec<f64> = keys.iter().map(|key| of(Some(key))).collect::<Result<_, _>>()?;
    Ok(jackknife(all, &without))
}

/// Mean differences of the pairs `all` of two sides, by repetition. For standard deviations over repetitions, values of [`jackknife`].
pub(super) fn differences(
    [left, right]: [&Side<'_>; 2],
    all: &[Pair<'_>],
    clusters: Clusters,
    difference: impl Fn(&Pair<'_>) -> f64,
) -> Result<Vec<f64>, Unjudged> {
    if left.is_deviation() || right.is_deviation() {
        return left_out([left, right], clusters, |a, b| {
            let pairs = pairs((left.select, a), (right.select, b))?;
            Ok(mean(pairs.iter().map(&difference)))
        });
    }
    Ok(clusters.means(all.iter().map(|p| (p.measured, difference(p)))))
}

/// [`differences`] of two sides, given the points that they compare.
pub(super) fn paired(
    [left, right]: [&Side<'_>; 2],
    compared: [&[Point]; 2],
    clusters: Clusters,
    difference: impl Fn(&Pair<'_>) -> f64,
) -> Result<Vec<f64>, Unjudged> {
    let [a, b] = on_common_seeds(compared, clusters);
    let pairs = pairs((left.select, &a), (right.select, &b))?;
    differences([left, right], &pairs, clusters, difference)
}

pub(super) fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0usize), |(sum, count), v| (sum + v, count + 1));
    sum / count.max(1) as f64
}

fn ordering(check: &OrderingCheck, clusters: Clusters, context: Context<'_>) -> Judged {
    let all = check.of.iter().map(|s| Side::of(s, context)).collect::<Result<Vec<_>, _>>()?;
    let sign = match check.first {
        First::Highest => 1.0,
        First::Lowest => -1.0,
    };
    let effect = check.smallest_effect.unwrap_or(0.0);
    let names = names(&check.of);
    let compared = all.iter().map(Side::compared).collect::<Result<Vec<_>, _>>()?;
    let mut verdicts = Vec::new();
    let (mut statistics_text, mut reasons, mut means) = (Vec::new(), Vec::new(), Vec::new());
    let mut ps: Vec<(Verdict, Option<f64>)> = Vec::new();
    let mut of_limit: Option<f64> = None;
    for (i, (window, names)) in all.windows(2).zip(names.windows(2)).enumerate() {
        let (left, right) = (&window[0], &window[1]);
        let title = format!("{} − {}", names[0], names[1]);
        let [a, b] = on_common_seeds([&compared[i], &compared[i + 1]], clusters);
        let pairs = pairs((left.select, &a), (right.select, &b))?;
        if pairs.is_empty() {
            return Err(not_run(format!("{title}: no values in common")));
        }
        // The shown means are over paired values and independent repetitions, as the verdict is.
        let shown = |value: fn(&Pair<'_>) -> f64| {
            mean(clusters.means(pairs.iter().map(|p| (p.measured, value(p)))).into_iter())
        };
        means.push(shown(|p| p.left.value));
        if means.len() + 1 == all.len() {
            means.push(shown(|p| p.right.value));
        }
        let step = if clusters.is_exact {
            exact_order(&pairs, sign, effect, check.margin)
        } else {
            let difference = |p: &Pair<'_>| sign * (p.left.value - p.right.value);
            let values = differences([left, right], &pairs, clusters, difference)?;
            let step = Step::of(&values, effect, check.margin, clusters);
            // With several samples of random features on several signals, the interval is the wider one: over signals or samples.
            match clusters.across_samples([&compared[i], &compared[i + 1]]) {
                Some(samples) => {
                    let values = paired(
                        [left, right],
                        [&compared[i], &compared[i + 1]],
                        samples,
                        difference,
                    )?;
                    step.or_wider(Step::of(&values, effect, check.margin, samples))
                }
                None => step,
            }
        };
        let mut text = format!("{title}: {}", show(sign * step.mean));
        text.push_str(&step.text);
        statistics_text.push(text);
        if step.verdict != Verdict::Reproduced {
            let why = step.why.map(|why| format!(" ({why})")).unwrap_or_default();
            reasons.push(format!("{title} is {}{why}", step.verdict.name()));
        }
        verdicts.push(step.verdict);
        ps.push((step.verdict, step.p));
        // The step that is nearest to its limit shows how narrow the order is.
        let distance = |share: f64| (share - 1.0).abs();
        of_limit = match (of_limit, step.of_limit) {
            (Some(a), Some(b)) if distance(a) <= distance(b) => Some(a),
            (a, b) => b.or(a),
        };
    }
    let worst = Verdict::worst(verdicts);
    let between = match (worst, sign > 0.0) {
        (Verdict::Reproduced, true) => " > ",
        (Verdict::Reproduced, false) => " < ",
        _ => ", ",
    };
    let each = means.iter().zip(&names).map(|(mean, name)| format!("{name} {}", show(*mean)));
    let each: Vec<String> = each.collect();
    let measured = if worst == Verdict::Reproduced && check.margin > 0.0 {
        // Within the margin, the means may be in the other order.
        let (minus, margin) = (if sign > 0.0 { '−' } else { '+' }, show(check.margin));
        let step = |pair: &[String]| format!("{}{between}{} {minus} {margin}", pair[0], pair[1]);
        each.windows(2).map(step).collect::<Vec<_>>().join("; ")
    } else {
        each.join(between)
    };
    let unlike = check.of.windows(2).find_map(|of| unlike(&of[0], &of[1], context));
    let judgement = Judgement::new(worst, measured, statistics_text.join("; "), reasons.join("; "));
    // An order fails by its clearest wrong step, and holds only if each step does.
    let p = match worst {
        Verdict::NotReproduced => {
            let wrong = ps.iter().filter(|(verdict, _)| *verdict == worst).map(|(_, p)| *p);
            wrong.flatten().reduce(f64::min)
        }
        _ => ps
            .iter()
            .map(|(_, p)| *p)
            .collect::<Option<Vec<f64>>>()
            .and_then(|all| all.into_iter().reduce(f64::max)),
    };
    let p_values = p.into_iter().collect();
    Ok(Judgement { p_values, ..judgement.near(of_limit) }.unless(unlike))
}

/// One step of an order.
struct Step {
    verdict: Verdict,
    /// Mean difference, with the claimed sign.
    mean: f64,
    /// What follows the mean in the statistics.
    text: String,
    why: Option<String>,
    p: Option<f64>,
    of_limit: Option<f64>,
    half_width: Option<f64>,
}

/// An order of numbers without uncertainty holds at every point, and on average by at least the smallest effect.
fn exact_order(pairs: &[Pair<'_>], sign: f64, effect: f64, margin: f64) -> Step {
    let difference = |p: &&Pair<'_>| sign * (p.left.value - p.right.value);
    // Ignore differences at the level of rounding errors.
    let holds = |p: &&Pair<'_>| {
        let scale = p.left.value.abs().max(p.right.value.abs());
        difference(p) + margin > 1e-12 * scale
    };
    let (count, held) = (pairs.len(), pairs.iter().filter(holds).count());
    let points = format!("holds at {held} of {count} points");
    let mean = mean(pairs.iter().map(|p| difference(&p)));
    let is_small = margin == 0.0 && pairs.iter().all(|p| difference(&p).abs() < effect);
    let verdict = match (is_small, held == count) {
        (true, _) => Verdict::Negligible,
        (false, true) if margin == 0.0 && mean < effect => Verdict::Negligible,
        (false, true) => Verdict::Reproduced,
        (false, false) => Verdict::NotReproduced,
    };
    Step {
        verdict,
        mean,
        text: if count == 1 { String::new() } else { format!(" (exact; {points})") },
        why: match verdict {
            Verdict::Negligible => Some(format!("smallest effect {}", show(effect))),
            _ => (count > 1).then_some(points),
        },
        p: None,
        of_limit: None,
        half_width: None,
    }
}

impl Step {
    /// The step with the wider interval.
    fn or_wider(self, other: Step) -> Step {
        let half_width = |step: &Step| step.half_width.unwrap_or(0.0);
        if half_width(&other) > half_width(&self) { other } else { self }
    }

    /// Judges a step by the differences of independent repetitions, with the claimed sign. `effect` is the smallest difference that
    /// matters; a `margin` above 0 allows differences against the order.
    fn of(values: &[f64], effect: f64, margin: f64, clusters: Clusters) -> Step {
        let effect = if margin > 0.0 { 0.0 } else { effect };
        let shown = statistics::mean_interval(values).mean;
        let values: Vec<f64> = values.iter().map(|v| v + margin).collect();
        let test = statistics::mean_interval(&values);
        let significant = |mean: f64| match (mean.abs() >= effect, mean > 0.0) {
            (false, _) => Verdict::Negligible,
            (true, true) => Verdict::Reproduced,
            (true, false) => Verdict::NotReproduced,
        };
        let verdict = match test.half_width {
            None if values.len() == 1 => Verdict::NotDecided,
            // All repetitions differ by the same number.
            None if test.mean == 0.0 => Verdict::NotReproduced,
            None => significant(test.mean),
            Some(h) if test.mean.abs() > h => significant(test.mean),
            Some(_) => Verdict::WithinNoise,
        };
        let mut text = String::new();
        if let Some(h) = test.half_width {
            text = format!(" ± {} ({}", show(h), clusters.counted(test.n));
            if margin > 0.0 {
                text += &format!(", margin {}", show(margin));
            }
            if test.p.is_some() {
                text += ", paired t-test";
            }
            text.push(')');
        } else if test.n > 1 {
            text = format!(" ({})", clusters.counted(test.n));
        }
        let why = match verdict {
            Verdict::NotDecided => Some(clusters.lack()),
            Verdict::Negligible => Some(format!("smallest effect {}", show(effect))),
            _ => None,
        };
        let limit = test.half_width.unwrap_or(0.0).max(effect);
        let of_limit = (limit > 0.0 && values.len() > 1).then(|| test.mean.abs() / limit);
        Step { verdict, mean: shown, text, why, p: test.p, of_limit, half_width: test.half_width }
    }
}

/// Names that distinguish the selections of an order: the methods if they differ, else the first key that differs, else all keys.
fn names(of: &[Select]) -> Vec<String> {
    let x = |s: &Select| match &s.x {
        None => "x".to_owned(),
        Some(Abscissa::At(v)) => format!("x = {}", show(*v)),
        Some(Abscissa::Between(i)) => format!("x from {} to {}", show(i.from), show(i.to)),
    };
    let method = |s: &Select| s.method.clone().unwrap_or_else(|| s.group.clone());
    let keys: [&dyn Fn(&Select) -> String; 4] =
        [&method, &|s| s.group.clone(), &|s| s.metric.clone(), &x];
    let all = |key: &dyn Fn(&Select) -> String| of.iter().map(key).collect::<Vec<_>>();
    let distinct = |names: &[String]| names.iter().collect::<BTreeSet<_>>().len() == names.len();
    let by_one = keys.iter().map(|key| all(*key)).find(|names| distinct(names));
    let by_all = |s: &Select| {
        let place = s.x.as_ref().map_or_else(String::new, |_| format!(", {}", x(s)));
        format!("{}/{} {}{place}", s.group, method(s), s.metric)
    };
    let names = by_one.unwrap_or_else(|| all(&by_all)).into_iter().zip(of);
    let name = |(name, s): (String, &Select)| match &s.minus {
        Some(_) => format!("{name} ({})", s.metric_text()),
        None => name,
    };
    names.map(name).collect()
}

/// A quotient of means with its uncertainty, on the logarithmic scale if both means are positive in every repetition.
pub(super) struct Quotient {
    pub value: f64,
    is_log: bool,
    /// Half width on its scale, and the number of repetitions.
    interval: Interval,
}

fn ratio(check: &RatioCheck, clusters: Clusters, context: Context<'_>) -> Judged {
    let sides = [Side::of(&check.numerator, context)?, Side::of(&check.denominator, context)?];
    let quotient = quotient(&sides, clusters)?;
    let mut limits = Vec::new();
    if let Some(least) = check.at_least {
        limits.push(format!("at least {}", show(least)));
    }
    if let Some(most) = check.at_most {
        limits.push(format!("at most {}", show(most)));
    }
    let (least, most) =
        (check.at_least.unwrap_or(f64::NEG_INFINITY), check.at_most.unwrap_or(f64::INFINITY));
    let verdict = quotient.verdict(least, most, clusters.is_exact);
    let of_limit = match (check.at_least, check.at_most) {
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
    let judgement = judgement.near(of_limit);
    Ok(judgement.unless(unlike(&check.numerator, &check.denominator, context)))
}

impl Quotient {
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

    /// A quotient with the uncertainty of jackknife `values`, which are on the scale of `is_log`.
    fn of(value: f64, is_log: bool, values: &[f64]) -> Self {
        Quotient { value, is_log, interval: interval_at(values, LEVEL) }
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

pub(super) fn quotient(sides: &[Side<'_>; 2], clusters: Clusters) -> Result<Quotient, Unjudged> {
    let [above, below] = sides;
    if above.is_deviation() || below.is_deviation() {
        // Deviations have no signal and seed that could be paired.
        let log = |a: &[Point], b: &[Point]| {
            let mean_of = |points: &[Point]| mean(points.iter().map(|p| p.value));
            Ok((mean_of(a) / mean_of(b)).ln())
        };
        let values = left_out([above, below], clusters, log)?;
        let value = mean(values.iter().copied()).exp();
        return Ok(Quotient::of(value, true, &values));
    }
    let [a, b] = on_common_seeds([&above.points, &below.points], clusters);
    let pairs = pairs((above.select, &a), (below.select, &b))?;
    if pairs.is_empty() {
        return Ok(unpaired(above, below, clusters));
    }
    let a = clusters.means(pairs.iter().map(|p| (p.measured, p.left.value)));
    let b = clusters.means(pairs.iter().map(|p| (p.measured, p.right.value)));
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
    Ok(Quotient::of(value, is_log, &values))
}

/// The quotient of the means of independent samples, by the delta method on the logarithmic scale.
fn unpaired(above: &Side<'_>, below: &Side<'_>, clusters: Clusters) -> Quotient {
    let means = |side: &Side<'_>| clusters.means(side.points.iter().map(|p| (p, p.value)));
    let (a, b) = (means(above), means(below));
    let value = mean(a.iter().copied()) / mean(b.iter().copied());
    let is_log = a.iter().chain(&b).all(|v| *v > 0.0);
    let mut interval = Interval { n: 1, mean: value, half_width: None, p: None };
    // Published numbers count as exact.
    let is_measured = |side: &Side<'_>| side.select.from == Source::Measured;
    let samples: Vec<&[f64]> = [(above, &a), (below, &b)]
        .into_iter()
        .filter_map(|(side, values)| is_measured(side).then_some(values.as_slice()))
        .collect();
    let relative_error = |values: &&[f64]| {
        let spread = posenc_math::statistics::sample_std(values).ok()?;
        Some(spread / mean(values.iter().copied()) / (values.len() as f64).sqrt())
    };
    let errors: Option<Vec<f64>> = samples.iter().map(relative_error).collect();
    let fewest = samples.iter().map(|values| values.len()).min();
    if let (Some(errors), Some(n), true) = (errors, fewest.filter(|n| *n > 1), is_log) {
        // The degrees of freedom of the smaller sample are conservative.
        interval.n = n;
        let factor = posenc_math::statistics::t_factor(LEVEL, (n - 1) as f64);
        let half_width = factor * errors.iter().map(|e| e * e).sum::<f64>().sqrt();
        interval.half_width = Some(half_width).filter(|h| h.is_finite() && *h > 1e-12);
    }
    Quotient { value, is_log, interval }
}
