//! Curves held against curves: whether their means agree, and where a feature of one lies.

use std::collections::{BTreeMap, HashMap};

use super::select::{
    Context, Place, Spread, at_place, check_pairs, describe, incomparable, margin, not_grouped,
    not_run, places, points, same_place, show,
};
use super::statistics::{self, Interval};
use super::{Judged, Judgement, Verdict};
use crate::record::Keys;
use crate::schema::claim::{AgreementCheck, Feature, PositionCheck, Select, Source, Tolerance};

/// What a place of a curve is held against.
struct Expectation {
    method: String,
    x: Option<f64>,
    value: f64,
    deviation: Option<f64>,
}

/// How one place came out.
struct PlaceOutcome {
    verdict: Verdict,
    /// Difference over what is allowed.
    excess: f64,
    text: String,
}

pub(super) fn agreement(check: &AgreementCheck, context: Context<'_>) -> Judged {
    let of = places(&points(&check.of, context)?)?;
    let default = Select { from: Source::Published, ..check.of.clone() };
    let with = check.with.as_ref().unwrap_or(&default);
    let expected = expectations(with, context)?;
    let by_method = check.of.method.is_none() && with.method.is_none();
    let curves = Measured::new(&of, by_method)?;
    let mut outcomes = Vec::new();
    for e in &expected {
        for place in curves.matching(e) {
            let outcome = outcome(place, e, &check.tolerance);
            outcomes.push(outcome.ok_or_else(|| not_run("no deviation to measure by"))?);
        }
        check_pairs(outcomes.len(), [of.len(), expected.len()])?;
    }
    let count = |v: Verdict| outcomes.iter().filter(|o| o.verdict == v).count();
    let (all, agreeing) = (outcomes.len(), count(Verdict::Reproduced));
    let Some(worst) = outcomes.iter().max_by(|a, b| a.excess.total_cmp(&b.excess)) else {
        return Err(not_run(format!("nothing to hold {} against", describe(&check.of))));
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
    let judgement = Judgement { verdict, measured, statistics, reason: String::new() };
    Ok(judgement.unless(reduced))
}

fn expectations(with: &Select, context: Context<'_>) -> Result<Vec<Expectation>, Judgement> {
    let all = places(&points(with, context)?)?;
    let mean = |p: Place| {
        let value = statistics::mean_interval(&p.values).mean;
        Expectation { method: p.method, x: p.x, value, deviation: None }
    };
    let mut all_expected: Vec<_> = all.into_iter().map(mean).collect();
    if with.from == Source::Published {
        let (paper, item) = (&context.experiment.paper, &context.experiment.item);
        // Deviations of printed numbers by method: those with an abscissa, sorted by it, and those without.
        type Printed = (Vec<(f64, Option<f64>)>, Vec<Option<f64>>);
        let mut printed: HashMap<&str, Printed> = HashMap::new();
        let all = context.published.select(paper, item, with);
        for value in all.filter(|v| v.value.is_some()) {
            let (at, without) = printed.entry(&value.method).or_default();
            match value.x {
                Some(x) if x.is_nan() => {}
                Some(x) => at.push((x, value.deviation)),
                None => without.push(value.deviation),
            }
        }
        for (at, _) in printed.values_mut() {
            at.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        for e in &mut all_expected {
            let Some((at, without)) = printed.get(e.method.as_str()) else { continue };
            let here: Vec<Option<f64>> = match e.x {
                Some(x) => at_place(at, x).take(2).copied().collect(),
                None => without.iter().take(2).copied().collect(),
            };
            // The deviation of one number; that of a mean of several would be another.
            if let [one] = here.as_slice() {
                e.deviation = *one;
            }
        }
    }
    Ok(all_expected)
}

/// A place of a curve, or a whole curve, with what is known of its values.
struct Values {
    method: String,
    x: Option<f64>,
    interval: Interval,
    spread: Spread,
    /// Whether the spread of the values is noise: a mean over several abscissas spreads for another reason.
    is_noise: bool,
}

impl Values {
    fn new(method: &str, x: Option<f64>, values: &[f64], is_noise: bool) -> Self {
        let (interval, spread) = (statistics::mean_interval(values), Spread::of(values));
        Values { method: method.to_owned(), x, interval, spread, is_noise }
    }
}

/// Curves as expectations look for them. Statistics are computed once, however many expectations a place has.
struct Measured {
    by_method: bool,
    places: Vec<Values>,
    /// Curves as wholes, and their indices by method.
    wholes: Vec<Values>,
    of_method: HashMap<String, usize>,
    /// Indices of `places` sorted by abscissa, of a method or, unless methods are matched, of all.
    at: BTreeMap<String, Vec<(f64, usize)>>,
}

impl Measured {
    fn new(of: &[Place], by_method: bool) -> Result<Self, Judgement> {
        let mut at: BTreeMap<String, Vec<(f64, usize)>> = BTreeMap::new();
        for (index, place) in of.iter().enumerate() {
            if let Some(x) = place.x.filter(|x| !x.is_nan()) {
                let method = if by_method { place.method.clone() } else { String::new() };
                at.entry(method).or_default().push((x, index));
            }
        }
        for places in at.values_mut() {
            places.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        let whole = |places: Vec<&Place>| {
            let values: Vec<f64> = places.iter().flat_map(|place| &place.values).copied().collect();
            Some(Values::new(&places.first()?.method, None, &values, places.len() == 1))
        };
        let methods = Keys::of(of).by(|place| &place.method).groups().map_err(not_grouped)?;
        let wholes: Vec<Values> = methods.into_iter().filter_map(whole).collect();
        let place = |place: &Place| Values::new(&place.method, place.x, &place.values, true);
        Ok(Measured {
            by_method,
            places: of.iter().map(place).collect(),
            of_method: wholes.iter().zip(0..).map(|(w, index)| (w.method.clone(), index)).collect(),
            wholes,
            at,
        })
    }

    /// What an expectation is about, in the order of the curves: places, or whole curves where it has no abscissa.
    fn matching(&self, expected: &Expectation) -> Vec<&Values> {
        let method = if self.by_method { expected.method.as_str() } else { "" };
        let Some(wanted) = expected.x else {
            return match (self.by_method, self.of_method.get(method)) {
                (true, own) => own.and_then(|i| self.wholes.get(*i)).into_iter().collect(),
                (false, _) => self.wholes.iter().collect(),
            };
        };
        let sorted = self.at.get(method).map(Vec::as_slice).unwrap_or_default();
        let mut indices: Vec<usize> = at_place(sorted, wanted).copied().collect();
        indices.sort_unstable();
        indices.into_iter().filter_map(|index| self.places.get(index)).collect()
    }
}

fn outcome(place: &Values, expected: &Expectation, tolerance: &Tolerance) -> Option<PlaceOutcome> {
    let (margin, margin_text) =
        margin(tolerance, expected.value, expected.deviation, place.spread)?;
    let interval = &place.interval;
    let difference = (interval.mean - expected.value).abs();
    let noise = match tolerance.standard_errors {
        None if place.is_noise => interval.half_width.unwrap_or(0.0),
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
    let spread = match place.spread {
        Spread { n, deviation: Some(s) } => format!(" (deviation {}, n = {n})", show(s)),
        _ => String::new(),
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
    Some(PlaceOutcome { verdict, excess, text })
}

/// A method's means over the abscissa.
struct Curve {
    method: String,
    points: Vec<(f64, f64)>,
}

fn curves(select: &Select, context: Context<'_>) -> Result<Vec<Curve>, Judgement> {
    let mut all: Vec<Curve> = Vec::new();
    for place in places(&points(select, context)?)? {
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

pub(super) fn position(check: &PositionCheck, context: Context<'_>) -> Judged {
    let of = curves(&check.of, context)?;
    let with = check.with.as_ref().map(|w| curves(w, context)).transpose()?;
    let by_method =
        check.of.method.is_none() && check.with.as_ref().is_some_and(|w| w.method.is_none());
    let mut texts = Vec::new();
    let mut failures = Vec::new();
    // A place that was not measured may be the one that is looked for.
    let hole = |curve: &Curve| curve.points.iter().find(|p| p.1.is_nan()).map(|p| p.0);
    for curve in with.iter().flatten() {
        if let Some(x) = hole(curve) {
            return Err(not_run(format!("{} is not a number at x = {}", curve.method, show(x))));
        }
    }
    // Looked for once, however many curves are held against it.
    let with = with.map(|with| Counterparts::new(check, with, by_method));
    for curve in &of {
        if let Some(x) = hole(curve) {
            texts.push(format!("{}: not a number at x = {}", curve.method, show(x)));
            failures.push(format!("{} failed at x = {}", curve.method, show(x)));
            continue;
        }
        let expected = match (&with, check.at) {
            (Some(with), _) => match with.of(curve) {
                Ok(Some((_, Some(place)))) => *place,
                Ok(Some((method, None))) => {
                    return Err(not_run(format!("{method}: no such feature")));
                }
                Ok(None) => continue,
                Err(()) => {
                    return Err(not_run("several curves to hold one against; name a method"));
                }
            },
            (None, Some(at)) => at,
            (None, None) => return Err(not_run("no place is given")),
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
        return Err(not_run(format!("nothing to hold {} against", describe(&check.of))));
    }
    let measured = texts.join("; ");
    let s = if check.steps == 1 { "" } else { "s" };
    let statistics = format!("allowed: {} step{s} of the grid", check.steps);
    let published = check.with.as_ref().is_some_and(|w| w.from == Source::Published);
    let is_reproduced = failures.is_empty();
    let judgement = Judgement::of(is_reproduced, measured, statistics, failures.join("; "));
    Ok(judgement.unless(incomparable(&check.of, context).filter(|_| published)))
}

/// Where the feature is on the curves that others are held against.
struct Counterparts {
    /// Method, and the place of the feature if the curve has it.
    places: Vec<(String, Option<f64>)>,
    /// Indices by method, where methods are matched; `None` for a method with several curves.
    by_method: Option<HashMap<String, Option<usize>>>,
}

impl Counterparts {
    fn new(check: &PositionCheck, with: Vec<Curve>, by_method: bool) -> Self {
        let place = |curve: Curve| {
            let place = feature(check, &curve).and_then(|i| curve.points.get(i)).map(|p| p.0);
            (curve.method, place)
        };
        let places: Vec<(String, Option<f64>)> = with.into_iter().map(place).collect();
        let index = || {
            let mut index: HashMap<String, Option<usize>> = HashMap::new();
            for (i, (method, _)) in places.iter().enumerate() {
                index.entry(method.clone()).and_modify(|known| *known = None).or_insert(Some(i));
            }
            index
        };
        Counterparts { by_method: by_method.then(index), places }
    }

    /// The one that a curve is held against; an error if there are several.
    fn of(&self, curve: &Curve) -> Result<Option<&(String, Option<f64>)>, ()> {
        match &self.by_method {
            Some(index) => match index.get(&curve.method) {
                Some(Some(place)) => Ok(self.places.get(*place)),
                Some(None) => Err(()),
                None => Ok(None),
            },
            None if self.places.len() > 1 => Err(()),
            None => Ok(self.places.first()),
        }
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
