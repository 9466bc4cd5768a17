//! One function per kind of claim.

use super::select::{
    Context, Place, Point, Spread, describe, incomparable, margin, not_run, pairs, places, points,
    show, spread_text, unlike, values, values_at,
};
use super::{Judged, Judgement, Verdict, curves, statistics};
use crate::schema::claim::{
    Abscissa, BoundCheck, Check, Claim, Direction, EqualityCheck, Expected, First, Limit,
    OrderingCheck, RatioCheck, Select, Source, TrendCheck, ValueCheck,
};

/// Judges a claim. A wrong statement whose correction holds is an erratum, not a failure.
pub fn judge(claim: &Claim, context: Context<'_>) -> Judgement {
    let printed = decide(&claim.check, context);
    let Some(link) = &claim.erratum else {
        return printed;
    };
    if printed.verdict != Verdict::NotReproduced {
        return printed;
    }
    let corrected = decide(&link.check, context);
    match corrected.verdict {
        Verdict::Reproduced => Judgement {
            verdict: Verdict::Erratum,
            measured: corrected.measured,
            statistics: corrected.statistics,
            reason: format!(
                "as printed it fails ({}); corrected: {}",
                printed.measured, link.corrected
            ),
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

fn decide(check: &Check, context: Context<'_>) -> Judgement {
    let needs_record = check.selects().iter().any(|(_, s)| s.from == Source::Measured);
    if needs_record && context.record.is_none() {
        return not_run("no record");
    }
    let judged = match check {
        Check::Value(c) => value(c, context),
        Check::Ordering(c) => ordering(c, context),
        Check::Ratio(c) => ratio(c, context),
        Check::Trend(c) => trend(c, context),
        Check::Bound(c) => bound(c, context),
        Check::Equality(c) => equality(c, context),
        Check::Agreement(c) => curves::agreement(c, context),
        Check::Position(c) => curves::position(c, context),
    };
    judged.unwrap_or_else(|not_run| not_run)
}

fn value(check: &ValueCheck, context: Context<'_>) -> Judged {
    let points = points(&check.of, context)?;
    let (expected, deviation) = match check.expect {
        Expected::Number(v) => (v, None),
        Expected::Published(_) => {
            let item = &context.experiment.item;
            let found: Vec<_> = context
                .published
                .select(&context.experiment.paper, item, &check.of)
                .filter_map(|v| Some((v.value?, v.deviation)))
                .collect();
            match found.as_slice() {
                [one] => *one,
                [] => {
                    return Err(not_run(format!("nothing published for {}", describe(&check.of))));
                }
                _ => {
                    let (count, of) = (found.len(), describe(&check.of));
                    let message =
                        format!("{count} published values for {of}; narrow the selection");
                    return Err(not_run(message));
                }
            }
        }
    };
    let values = values(&points);
    let found = margin(&check.tolerance, expected, deviation, Spread::of(&values));
    let Some((margin, margin_text)) = found else {
        return Err(not_run("no deviation to measure by"));
    };
    let interval = statistics::mean_interval(&values);
    let measured = format!("{} against {} ({margin_text})", show(interval.mean), show(expected));
    let statistics = spread_text(&interval);
    let difference = (interval.mean - expected).abs();
    // The last digits of a decimal tolerance are not exact in binary.
    let verdict = if difference <= margin * (1.0 + 1e-9) {
        Verdict::Reproduced
    } else if interval.half_width.is_some_and(|h| difference <= margin + h) {
        Verdict::WithinNoise
    } else {
        Verdict::NotReproduced
    };
    let reason = match verdict {
        Verdict::Reproduced => String::new(),
        _ => format!("off by {}", show(interval.mean - expected)),
    };
    let judgement = Judgement { verdict, measured, statistics, reason };
    Ok(judgement.unless(incomparable(&check.of, context)))
}

fn ordering(check: &OrderingCheck, context: Context<'_>) -> Judged {
    let mut all = Vec::new();
    for select in &check.of {
        all.push((select, points(select, context)?));
    }
    let sign = match check.first {
        First::Highest => 1.0,
        First::Lowest => -1.0,
    };
    let mut worst = Verdict::Reproduced;
    let mut statistics_text = Vec::new();
    let mut reasons = Vec::new();
    let names = names(&check.of);
    let mut means = Vec::new();
    for (window, names) in all.windows(2).zip(names.windows(2)) {
        let ((a, left), (b, right)) = (&window[0], &window[1]);
        let pairs = pairs((a, left), (b, right))?;
        let title = format!("{} − {}", names[0], names[1]);
        if pairs.is_empty() {
            return Err(not_run(format!("{title}: no values in common")));
        }
        let differences: Vec<f64> = pairs.iter().map(|(l, r)| sign * (l - r)).collect();
        // Of what has no counterpart nothing is said here, so it is not shown either.
        let (lefts, rights): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        means.push(statistics::mean_interval(&lefts).mean);
        if means.len() + 1 == all.len() {
            means.push(statistics::mean_interval(&rights).mean);
        }
        let test = statistics::mean_interval(&differences);
        let is_finite = differences.iter().all(|d| d.is_finite());
        let verdict = match test.half_width {
            // Beyond all numbers there is no mean: only the signs are left.
            None if !is_finite && differences.iter().all(|d| *d > 0.0) => Verdict::Reproduced,
            None if differences.iter().any(|d| d.is_nan()) => Verdict::NotReproduced,
            None if !is_finite && differences.iter().any(|d| *d > 0.0) => Verdict::WithinNoise,
            // One exact number: its sign is all there is.
            None if test.mean > 0.0 => Verdict::Reproduced,
            None => Verdict::NotReproduced,
            Some(h) if test.mean > h => Verdict::Reproduced,
            Some(h) if test.mean < -h => Verdict::NotReproduced,
            Some(_) => Verdict::WithinNoise,
        };
        let mut text = format!("{title}: {}", show(sign * test.mean));
        if let Some(h) = test.half_width {
            text += &format!(" ± {} (n = {}", show(h), test.n);
            if let Some(p) = test.p {
                text += &format!(", paired t-test {}", show_p(p));
            }
            text.push(')');
        }
        statistics_text.push(text);
        if verdict != Verdict::Reproduced {
            reasons.push(format!("{title} is {}", verdict.name()));
        }
        worst = match (worst, verdict) {
            (Verdict::NotReproduced, _) | (_, Verdict::NotReproduced) => Verdict::NotReproduced,
            (Verdict::WithinNoise, _) | (_, Verdict::WithinNoise) => Verdict::WithinNoise,
            _ => Verdict::Reproduced,
        };
    }
    let between = match (worst, sign > 0.0) {
        (Verdict::Reproduced, true) => " > ",
        (Verdict::Reproduced, false) => " < ",
        _ => ", ",
    };
    let each = means.iter().zip(&names).map(|(mean, name)| format!("{name} {}", show(*mean)));
    let measured = each.collect::<Vec<_>>().join(between);
    let unlike = check.of.windows(2).find_map(|of| unlike(&of[0], &of[1], context));
    let (statistics, reason) = (statistics_text.join("; "), reasons.join("; "));
    Ok(Judgement { verdict: worst, measured, statistics, reason }.unless(unlike))
}

/// What tells the selections of an order apart: the method if that does, else the next key that
/// does, else all of them.
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
    let distinct = |names: &[String]| {
        names.iter().collect::<std::collections::BTreeSet<_>>().len() == names.len()
    };
    let by_one = keys.iter().map(|key| all(*key)).find(|names| distinct(names));
    let by_all = |s: &Select| format!("{}/{} {}, {}", s.group, method(s), s.metric, x(s));
    by_one.unwrap_or_else(|| all(&by_all))
}

fn show_p(p: f64) -> String {
    if p < 1e-4 { "p < 0.0001".into() } else { format!("p = {p:.4}") }
}

fn ratio(check: &RatioCheck, context: Context<'_>) -> Judged {
    let above = points(&check.numerator, context)?;
    let below = points(&check.denominator, context)?;
    let pairs = pairs((&check.numerator, &above), (&check.denominator, &below))?;
    let mean = |values: &[f64]| statistics::mean_interval(values).mean;
    // Where some have counterparts and some have none, those that have none are left out.
    let quotient = match pairs.len() {
        n if n > 0 && (n < above.len() || n < below.len()) => {
            let (above, below): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
            mean(&above) / mean(&below)
        }
        _ => mean(&values(&above)) / mean(&values(&below)),
    };
    let mut limits = Vec::new();
    if let Some(least) = check.at_least {
        limits.push(format!("at least {}", show(least)));
    }
    if let Some(most) = check.at_most {
        limits.push(format!("at most {}", show(most)));
    }
    let holds = quotient.is_finite()
        && check.at_least.is_none_or(|l| quotient >= l)
        && check.at_most.is_none_or(|m| quotient <= m);
    let each: Vec<f64> = pairs.iter().map(|(a, b)| a / b).collect();
    let statistics = match each.len() {
        0 | 1 => String::new(),
        n => {
            let least = each.iter().copied().fold(f64::INFINITY, f64::min);
            let most = each.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            format!("n = {n} pairs, quotients from {} to {}", show(least), show(most))
        }
    };
    let measured = format!("{} ({})", show(quotient), limits.join(", "));
    let judgement = Judgement::of(holds, measured, statistics, "outside the limits".into());
    Ok(judgement.unless(unlike(&check.numerator, &check.denominator, context)))
}

fn trend(check: &TrendCheck, context: Context<'_>) -> Judged {
    let all = points(&check.of, context)?;
    let on_curves: Vec<Point> = all.into_iter().filter(|p| p.x.is_some()).collect();
    if on_curves.is_empty() {
        return Err(not_run(format!("no curve for {}: its values have no x", describe(&check.of))));
    }
    let mut means = places(&on_curves)?;
    means.sort_by(|a, b| a.method.cmp(&b.method));
    let curves: Vec<&[Place]> = means.chunk_by(|a, b| a.method == b.method).collect();
    let mut failures = Vec::new();
    let mut steps = 0;
    let mut texts = Vec::new();
    for curve in &curves {
        let method = &curve[0].method;
        let ys: Vec<f64> =
            curve.iter().map(|p| statistics::mean_interval(&p.values).mean).collect();
        if ys.len() < 2 {
            return Err(not_run(format!("{method}: a trend needs two places of the abscissa")));
        }
        let least = ys.iter().copied().fold(f64::INFINITY, f64::min);
        let most = ys.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let slack = check.slack * (most - least).abs();
        steps += ys.len() - 1;
        let against = match check.direction {
            Direction::Constant => {
                let mean = statistics::mean_interval(&ys).mean;
                let spread = (most - least) / mean.abs().max(f64::MIN_POSITIVE);
                texts.push(format!("{method}: spread {} %", show(100.0 * spread)));
                usize::from(spread.is_nan() || spread > check.slack)
            }
            direction => {
                let sign = if direction == Direction::Increasing { 1.0 } else { -1.0 };
                texts.push(format!("{method}: {} → {}", show(ys[0]), show(ys[ys.len() - 1])));
                let is_against = |w: &&[f64]| {
                    let step = sign * (w[1] - w[0]);
                    step.is_nan() || step < -slack
                };
                let wrong = ys.windows(2).filter(is_against).count();
                let overall = sign * (ys[ys.len() - 1] - ys[0]) > 0.0;
                wrong + usize::from(!overall)
            }
        };
        if against > 0 {
            failures.push(format!("{method} has {against} steps against it"));
        }
    }
    let shown = texts.len().min(4);
    let mut measured = texts[..shown].join("; ");
    if texts.len() > shown {
        measured += &format!("; … ({} curves)", texts.len());
    }
    let slack = show(100.0 * check.slack);
    let statistics = format!("{} curves, {steps} steps, slack {slack} %", curves.len());
    Ok(Judgement::of(failures.is_empty(), measured, statistics, failures.join("; ")))
}

fn bound(check: &BoundCheck, context: Context<'_>) -> Judged {
    let all = points(&check.of, context)?;
    let limit_of = |limit: &Limit| -> Result<Vec<Option<f64>>, Judgement> {
        match limit {
            Limit::Number(v) => Ok(vec![Some(*v); all.len()]),
            Limit::Metric(metric) => {
                let select = Select { metric: metric.clone(), ..check.of.clone() };
                let others = points(&select, context)?;
                values_at(&all, &others)
            }
        }
    };
    // Largest excess over a limit, as a share of it.
    let mut worst: Option<(f64, &Point, f64)> = None;
    let mut judged = 0;
    for (limit, sign) in [(&check.at_most, 1.0), (&check.at_least, -1.0)] {
        let Some(limit) = limit else { continue };
        for (p, l) in all.iter().zip(limit_of(limit)?) {
            let Some(l) = l else { continue };
            judged += 1;
            let scale = if l == 0.0 { 1.0 } else { l.abs() };
            let excess = sign * (p.value - l) / scale;
            let excess = if excess.is_nan() { f64::INFINITY } else { excess };
            if worst.is_none_or(|(w, _, _)| excess > w) {
                worst = Some((excess, p, l));
            }
        }
    }
    let Some((excess, point, limit)) = worst else {
        return Err(not_run("no limit at the selected places"));
    };
    let place = point.x.map(|x| format!(" at x = {}", show(x))).unwrap_or_default();
    let (value, limit) = (show(point.value), show(limit));
    let measured = format!("closest to its limit: {} {value} against {limit}{place}", point.method);
    let statistics = if judged == 1 { "1 value".into() } else { format!("{judged} values") };
    let reason = format!("passes the limit by {} %", show(100.0 * excess));
    Ok(Judgement::of(excess <= check.slack + 1e-12, measured, statistics, reason))
}

fn equality(check: &EqualityCheck, context: Context<'_>) -> Judged {
    let left = points(&check.left, context)?;
    let right = points(&check.right, context)?;
    let pairs = pairs((&check.left, &left), (&check.right, &right))?;
    if pairs.is_empty() {
        return Err(not_run("no values in common"));
    }
    let relative = check.tolerance.relative.is_some();
    let tolerance = check.tolerance.absolute.or(check.tolerance.relative);
    let Some(tolerance) = tolerance else {
        return Err(not_run("an equality needs `absolute` or `relative`"));
    };
    let difference = |(a, b): &(f64, f64)| {
        let d = (a - b).abs();
        let d = if relative { d / b.abs().max(f64::MIN_POSITIVE) } else { d };
        if d.is_nan() { f64::INFINITY } else { d }
    };
    let largest = pairs.iter().map(difference).fold(0.0, f64::max);
    let holds = largest <= tolerance;
    let unit = if relative { " %" } else { "" };
    let scale = if relative { 100.0 } else { 1.0 };
    let unlike = unlike(&check.left, &check.right, context);
    let mut measured = format!("largest difference {}{unit}", show(scale * largest));
    if unlike.is_none() {
        measured += &format!(" (allowed {}{unit})", show(scale * tolerance));
    }
    let statistics =
        if pairs.len() == 1 { "1 pair".into() } else { format!("{} pairs", pairs.len()) };
    let judgement = Judgement::of(holds, measured, statistics, "the series differ".into());
    Ok(judgement.unless(unlike))
}
