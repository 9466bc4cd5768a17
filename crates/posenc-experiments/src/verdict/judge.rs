//! One function per kind of claim.

use std::collections::{BTreeMap, HashMap};

use super::select::{
    Context, Point, Spread, describe, incomparable, margin, not_run, pairs, points, show,
    spread_text, unlike, values,
};
use super::{Judgement, Verdict, curves, statistics};
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
    match check {
        Check::Value(c) => value(c, context),
        Check::Ordering(c) => ordering(c, context),
        Check::Ratio(c) => ratio(c, context),
        Check::Trend(c) => trend(c, context),
        Check::Bound(c) => bound(c, context),
        Check::Equality(c) => equality(c, context),
        Check::Agreement(c) => curves::agreement(c, context),
        Check::Position(c) => curves::position(c, context),
    }
}

fn value(check: &ValueCheck, context: Context<'_>) -> Judgement {
    let points = match points(&check.of, context) {
        Ok(points) => points,
        Err(judgement) => return judgement,
    };
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
                [] => return not_run(format!("nothing published for {}", describe(&check.of))),
                _ => {
                    return not_run(format!(
                        "{} published values for {}; narrow the selection",
                        found.len(),
                        describe(&check.of)
                    ));
                }
            }
        }
    };
    let values = values(&points);
    let found = margin(&check.tolerance, expected, deviation, Spread::of(&values));
    let Some((margin, margin_text)) = found else {
        return not_run("no deviation to measure by");
    };
    let interval = statistics::mean_interval(&values);
    let measured = format!("{} against {} ({margin_text})", show(interval.mean), show(expected));
    let statistics = spread_text(&interval);
    if let Some(reason) = incomparable(&check.of, context) {
        return Judgement { verdict: Verdict::NotComparable, measured, statistics, reason };
    }
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
    Judgement { verdict, measured, statistics, reason }
}

fn ordering(check: &OrderingCheck, context: Context<'_>) -> Judgement {
    let mut all = Vec::new();
    for select in &check.of {
        match points(select, context) {
            Ok(points) => all.push((select, points)),
            Err(judgement) => return judgement,
        }
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
        let pairs = match pairs((a, left), (b, right)) {
            Ok(pairs) => pairs,
            Err(judgement) => return judgement,
        };
        let title = format!("{} − {}", names[0], names[1]);
        if pairs.is_empty() {
            return not_run(format!("{title}: no values in common"));
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
    if let Some(reason) = unlike {
        let statistics = statistics_text.join("; ");
        return Judgement { verdict: Verdict::NotComparable, measured, statistics, reason };
    }
    Judgement {
        verdict: worst,
        measured,
        statistics: statistics_text.join("; "),
        reason: reasons.join("; "),
    }
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

fn ratio(check: &RatioCheck, context: Context<'_>) -> Judgement {
    let (above, below) =
        match (points(&check.numerator, context), points(&check.denominator, context)) {
            (Ok(a), Ok(b)) => (a, b),
            (Err(j), _) | (_, Err(j)) => return j,
        };
    let pairs = match pairs((&check.numerator, &above), (&check.denominator, &below)) {
        Ok(pairs) => pairs,
        Err(judgement) => return judgement,
    };
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
    if let Some(reason) = unlike(&check.numerator, &check.denominator, context) {
        return Judgement { verdict: Verdict::NotComparable, measured, statistics, reason };
    }
    Judgement {
        verdict: if holds { Verdict::Reproduced } else { Verdict::NotReproduced },
        measured,
        statistics,
        reason: if holds { String::new() } else { "outside the limits".into() },
    }
}

fn trend(check: &TrendCheck, context: Context<'_>) -> Judgement {
    let all = match points(&check.of, context) {
        Ok(points) => points,
        Err(judgement) => return judgement,
    };
    // Means per abscissa, for each method by itself.
    let mut curves: BTreeMap<&str, BTreeMap<u64, (f64, Vec<f64>)>> = BTreeMap::new();
    for p in &all {
        let Some(x) = p.x else { continue };
        // Order-preserving bits, so that the map is sorted by x.
        let bits = x.to_bits();
        let key = if x.is_sign_negative() { !bits } else { bits | 1 << 63 };
        let entry = curves.entry(&p.method).or_default().entry(key);
        entry.or_insert_with(|| (x, Vec::new())).1.push(p.value);
    }
    if curves.is_empty() {
        return not_run(format!("no curve for {}: its values have no x", describe(&check.of)));
    }
    let mut failures = Vec::new();
    let mut steps = 0;
    let mut texts = Vec::new();
    for (method, curve) in &curves {
        let ys: Vec<f64> = curve.values().map(|(_, v)| statistics::mean_interval(v).mean).collect();
        if ys.len() < 2 {
            return not_run(format!("{method}: a trend needs two places of the abscissa"));
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
    Judgement {
        verdict: if failures.is_empty() { Verdict::Reproduced } else { Verdict::NotReproduced },
        measured,
        statistics: format!(
            "{} curves, {steps} steps, slack {} %",
            curves.len(),
            show(100.0 * check.slack)
        ),
        reason: failures.join("; "),
    }
}

fn bound(check: &BoundCheck, context: Context<'_>) -> Judgement {
    let all = match points(&check.of, context) {
        Ok(points) => points,
        Err(judgement) => return judgement,
    };
    let limit_of = |limit: &Limit| -> Result<Vec<Option<f64>>, Judgement> {
        match limit {
            Limit::Number(v) => Ok(vec![Some(*v); all.len()]),
            Limit::Metric(metric) => {
                let select = Select { metric: metric.clone(), ..check.of.clone() };
                let others = points(&select, context)?;
                let mut index = HashMap::new();
                for (key, o) in others.iter().filter_map(|o| Some((o.key()?, o))) {
                    index.entry(key).or_insert(o.value);
                }
                Ok(all.iter().map(|p| index.get(&p.key()?).copied()).collect())
            }
        }
    };
    // Largest excess over a limit, as a share of it.
    let mut worst: Option<(f64, &Point, f64)> = None;
    let mut judged = 0;
    for (limit, sign) in [(&check.at_most, 1.0), (&check.at_least, -1.0)] {
        let Some(limit) = limit else { continue };
        let limits = match limit_of(limit) {
            Ok(limits) => limits,
            Err(judgement) => return judgement,
        };
        for (p, l) in all.iter().zip(limits) {
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
        return not_run("no limit at the selected places");
    };
    let place = point.x.map(|x| format!(" at x = {}", show(x))).unwrap_or_default();
    let holds = excess <= check.slack + 1e-12;
    Judgement {
        verdict: if holds { Verdict::Reproduced } else { Verdict::NotReproduced },
        measured: format!(
            "closest to its limit: {} {} against {}{place}",
            point.method,
            show(point.value),
            show(limit)
        ),
        statistics: if judged == 1 { "1 value".into() } else { format!("{judged} values") },
        reason: if holds {
            String::new()
        } else {
            format!("passes the limit by {} %", show(100.0 * excess))
        },
    }
}

fn equality(check: &EqualityCheck, context: Context<'_>) -> Judgement {
    let (left, right) = match (points(&check.left, context), points(&check.right, context)) {
        (Ok(a), Ok(b)) => (a, b),
        (Err(j), _) | (_, Err(j)) => return j,
    };
    let pairs = match pairs((&check.left, &left), (&check.right, &right)) {
        Ok(pairs) => pairs,
        Err(judgement) => return judgement,
    };
    if pairs.is_empty() {
        return not_run("no values in common");
    }
    let relative = check.tolerance.relative.is_some();
    let tolerance = check.tolerance.absolute.or(check.tolerance.relative);
    let Some(tolerance) = tolerance else {
        return not_run("an equality needs `absolute` or `relative`");
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
    if let Some(reason) = unlike(&check.left, &check.right, context) {
        let measured = format!("largest difference {}{unit}", show(scale * largest));
        let statistics = format!("{} pairs", pairs.len());
        return Judgement { verdict: Verdict::NotComparable, measured, statistics, reason };
    }
    Judgement {
        verdict: if holds { Verdict::Reproduced } else { Verdict::NotReproduced },
        measured: format!(
            "largest difference {}{unit} (allowed {}{unit})",
            show(scale * largest),
            show(scale * tolerance)
        ),
        statistics: if pairs.len() == 1 {
            "1 pair".into()
        } else {
            format!("{} pairs", pairs.len())
        },
        reason: if holds { String::new() } else { "the series differ".into() },
    }
}
