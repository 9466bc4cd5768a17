//! Curves held against curves: whether their means agree, and where a feature of one lies.

use super::select::{
    Context, Place, describe, incomparable, margin, not_run, places, points, same_place, show,
};
use super::{Judgement, Verdict, statistics};
use crate::schema::claim::{AgreementCheck, Feature, PositionCheck, Select, Source, Tolerance};

/// What a place of a curve is held against.
struct Expectation {
    method: String,
    x: Option<f64>,
    value: f64,
    deviation: Option<f64>,
}

/// How one place came out.
struct Outcome {
    verdict: Verdict,
    /// Difference over what is allowed.
    excess: f64,
    text: String,
}

pub(super) fn agreement(check: &AgreementCheck, context: Context<'_>) -> Judgement {
    let of = match points(&check.of, context) {
        Ok(points) => places(&points),
        Err(judgement) => return judgement,
    };
    let default = Select { from: Source::Published, ..check.of.clone() };
    let with = check.with.as_ref().unwrap_or(&default);
    let expected = match expectations(with, context) {
        Ok(expected) => expected,
        Err(judgement) => return judgement,
    };
    let by_method = check.of.method.is_none() && with.method.is_none();
    let mut outcomes = Vec::new();
    for e in &expected {
        for (place, noise) in matching(&of, e, by_method) {
            match outcome(&place, e, &check.tolerance, noise) {
                Some(outcome) => outcomes.push(outcome),
                None => return not_run("no deviation to measure by"),
            }
        }
    }
    let count = |v: Verdict| outcomes.iter().filter(|o| o.verdict == v).count();
    let (all, agreeing) = (outcomes.len(), count(Verdict::Reproduced));
    let Some(worst) = outcomes.iter().max_by(|a, b| a.excess.total_cmp(&b.excess)) else {
        return not_run(format!("nothing to hold {} against", describe(&check.of)));
    };
    // Shares are of whole places: two thirds of three are two.
    let needed = check.share * all as f64 - 1e-9;
    let verdict = if agreeing as f64 >= needed {
        Verdict::Reproduced
    } else if (agreeing + count(Verdict::WithinNoise)) as f64 >= needed {
        Verdict::WithinNoise
    } else {
        Verdict::NotReproduced
    };
    let asked = match check.share {
        1.0 => String::new(),
        share => format!(", {} % are asked for", show(100.0 * share)),
    };
    let measured = format!("{agreeing} of {all} places agree{asked}");
    let statistics = format!("farthest off: {}", worst.text);
    let reduced = match with.from {
        Source::Published => incomparable(&check.of, context),
        Source::Measured => None,
    };
    match reduced {
        Some(reason) => Judgement { verdict: Verdict::NotComparable, measured, statistics, reason },
        None => Judgement { verdict, measured, statistics, reason: String::new() },
    }
}

fn expectations(with: &Select, context: Context<'_>) -> Result<Vec<Expectation>, Judgement> {
    let all = places(&points(with, context)?);
    let mean = |p: Place| {
        let value = statistics::mean_interval(&p.values).mean;
        Expectation { method: p.method, x: p.x, value, deviation: None }
    };
    let mut all: Vec<_> = all.into_iter().map(mean).collect();
    if with.from == Source::Published {
        let (paper, item) = (&context.experiment.paper, &context.experiment.item);
        for e in &mut all {
            let here = |x: Option<f64>| match (x, e.x) {
                (Some(a), Some(b)) => same_place(a, b),
                (a, b) => a.is_none() && b.is_none(),
            };
            let mut printed = context
                .published
                .select(paper, item, with)
                .filter(|v| v.method == e.method && here(v.x) && v.value.is_some());
            // The deviation of one number; that of a mean of several would be another.
            if let (Some(one), None) = (printed.next(), printed.next()) {
                e.deviation = one.deviation;
            }
        }
    }
    Ok(all)
}

/// Places of the curve that an expectation is about, each with whether the spread of its values is
/// noise: a mean over several abscissas spreads for another reason.
fn matching(of: &[Place], expected: &Expectation, by_method: bool) -> Vec<(Place, bool)> {
    let same_method = |p: &&Place| !by_method || p.method == expected.method;
    if let Some(wanted) = expected.x {
        let here = |p: &&Place| p.x.is_some_and(|x| same_place(x, wanted));
        return of.iter().filter(same_method).filter(here).map(|p| (p.clone(), true)).collect();
    }
    let mut whole: Vec<(Place, bool)> = Vec::new();
    for place in of.iter().filter(same_method) {
        match whole.iter_mut().find(|(w, _)| w.method == place.method) {
            Some((w, noise)) => {
                w.values.extend(&place.values);
                *noise = false;
            }
            None => whole.push((Place { x: None, ..place.clone() }, true)),
        }
    }
    whole
}

fn outcome(
    place: &Place,
    expected: &Expectation,
    tolerance: &Tolerance,
    noise: bool,
) -> Option<Outcome> {
    let (margin, margin_text) =
        margin(tolerance, expected.value, expected.deviation, &place.values)?;
    let interval = statistics::mean_interval(&place.values);
    let difference = (interval.mean - expected.value).abs();
    let noise = match tolerance.standard_errors {
        None if noise => interval.half_width.unwrap_or(0.0),
        // Standard errors are a noise margin already.
        _ => 0.0,
    };
    let verdict = if difference <= margin * (1.0 + 1e-9) {
        Verdict::Reproduced
    } else if difference <= margin + noise {
        Verdict::WithinNoise
    } else {
        Verdict::NotReproduced
    };
    let excess = difference / margin.max(f64::MIN_POSITIVE);
    let excess = if excess.is_nan() { f64::INFINITY } else { excess };
    let at = place.x.map(|x| format!(" at x = {}", show(x))).unwrap_or_default();
    let spread = match posenc_math::statistics::sample_std(&place.values) {
        Ok(s) => format!(" (deviation {}, n = {})", show(s), place.values.len()),
        Err(_) => String::new(),
    };
    let theirs = match expected.deviation {
        Some(p) => format!(" (deviation {})", show(p)),
        None => String::new(),
    };
    let text = format!(
        "{}{at}: {}{spread} against {}{theirs}, {margin_text}",
        place.method,
        show(interval.mean),
        show(expected.value)
    );
    Some(Outcome { verdict, excess, text })
}

/// A method's means over the abscissa.
struct Curve {
    method: String,
    points: Vec<(f64, f64)>,
}

fn curves(select: &Select, context: Context<'_>) -> Result<Vec<Curve>, Judgement> {
    let mut all: Vec<Curve> = Vec::new();
    for place in places(&points(select, context)?) {
        let mean = statistics::mean_interval(&place.values).mean;
        let Some(x) = place.x else { continue };
        match all.last_mut().filter(|c| c.method == place.method) {
            Some(curve) => curve.points.push((x, mean)),
            None => all.push(Curve { method: place.method, points: vec![(x, mean)] }),
        }
    }
    if all.is_empty() {
        return Err(not_run(format!("no curve for {}", describe(select))));
    }
    Ok(all)
}

pub(super) fn position(check: &PositionCheck, context: Context<'_>) -> Judgement {
    let of = match curves(&check.of, context) {
        Ok(curves) => curves,
        Err(judgement) => return judgement,
    };
    let with = match check.with.as_ref().map(|w| curves(w, context)).transpose() {
        Ok(with) => with,
        Err(judgement) => return judgement,
    };
    let by_method =
        check.of.method.is_none() && check.with.as_ref().is_some_and(|w| w.method.is_none());
    let mut texts = Vec::new();
    let mut failures = Vec::new();
    // A place that was not measured may be the one that is looked for.
    let hole = |curve: &Curve| curve.points.iter().find(|p| p.1.is_nan()).map(|p| p.0);
    for curve in with.iter().flatten() {
        if let Some(x) = hole(curve) {
            return not_run(format!("{} is not a number at x = {}", curve.method, show(x)));
        }
    }
    for curve in &of {
        if let Some(x) = hole(curve) {
            texts.push(format!("{}: not a number at x = {}", curve.method, show(x)));
            failures.push(format!("{} failed at x = {}", curve.method, show(x)));
            continue;
        }
        let expected = match (&with, check.at) {
            (Some(with), _) => {
                let mut fitting = with.iter().filter(|w| !by_method || w.method == curve.method);
                match (fitting.next(), fitting.next()) {
                    (Some(other), None) => match feature(check, other) {
                        Some(index) => other.points[index].0,
                        None => return not_run(format!("{}: no such feature", other.method)),
                    },
                    (None, _) => continue,
                    (Some(_), Some(_)) => {
                        return not_run("several curves to hold one against; name a method");
                    }
                }
            }
            (None, Some(at)) => at,
            (None, None) => return not_run("no place is given"),
        };
        let Some(found) = feature(check, curve) else {
            texts.push(format!("{}: nowhere, against {}", curve.method, show(expected)));
            failures.push(format!("{} does not reach the level", curve.method));
            continue;
        };
        let steps = steps_between(&curve.points, found, expected);
        let place = show(curve.points[found].0);
        let s = if steps == 1 { "" } else { "s" };
        texts.push(format!(
            "{}: {place} against {} ({steps} step{s})",
            curve.method,
            show(expected)
        ));
        if steps > check.steps {
            failures.push(format!("{} is {steps} step{s} off", curve.method));
        }
    }
    if texts.is_empty() {
        return not_run(format!("nothing to hold {} against", describe(&check.of)));
    }
    let measured = texts.join("; ");
    let s = if check.steps == 1 { "" } else { "s" };
    let statistics = format!("allowed: {} step{s} of the grid", check.steps);
    let published = check.with.as_ref().is_some_and(|w| w.from == Source::Published);
    if let Some(reason) = incomparable(&check.of, context).filter(|_| published) {
        return Judgement { verdict: Verdict::NotComparable, measured, statistics, reason };
    }
    Judgement {
        verdict: if failures.is_empty() { Verdict::Reproduced } else { Verdict::NotReproduced },
        measured,
        statistics,
        reason: failures.join("; "),
    }
}

/// Index of the feature on a curve.
fn feature(check: &PositionCheck, curve: &Curve) -> Option<usize> {
    let points = &curve.points;
    let by_value = |i: &usize, j: &usize| points[*i].1.total_cmp(&points[*j].1);
    let above = |(_, y): &(f64, f64)| check.level.is_some_and(|level| *y >= level);
    match check.feature {
        Feature::Highest => (0..points.len()).max_by(by_value),
        Feature::Lowest => (0..points.len()).min_by(by_value),
        Feature::LastAbove => points.iter().rposition(above),
        Feature::FirstAbove => points.iter().position(above),
    }
}

/// Steps on the grid of `points` from one of them to a place. A place between two points is as near
/// as the nearer of them; each side beyond an end counts as one step more.
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
