//! Checks that compare curves: agreement of their means, and positions of their features.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use posenc_math::random;

use super::clusters::Clusters;
use super::judge::{EQUIVALENCE, LEVEL, near, no_deviation, no_tolerance};
use super::select::{
    Context, Place, Point, Spread, at_place, check_pairs, check_places, describe, incomparable,
    margin, not_grouped, not_run, places, points, show,
};
use super::statistics::{self, Fit, Interval, interval_at};
use super::{Judged, Judgement, Unjudged, Verdict};
use crate::record::Keys;
use crate::schema::claim::{
    AgreementCheck, Feature, PositionCheck, Sample, Select, Source, Tolerance, same_place,
};

/// The value that a place of a curve is compared with.
struct Expectation {
    method: String,
    x: Option<f64>,
    value: f64,
    deviation: Option<f64>,
}

/// The result for one place.
struct PlaceOutcome {
    fit: Fit,
    /// Difference divided by the margin.
    excess: f64,
    text: String,
}

pub(super) fn agreement(
    check: &AgreementCheck,
    clusters: Clusters,
    context: Context<'_>,
) -> Judged {
    let points_of = points(&check.of, context)?;
    let of = places(&points_of)?;
    let default = Select { from: Source::Published, ..check.of.clone() };
    let with = check.with.as_ref().unwrap_or(&default);
    let tolerance = check.tolerance.as_ref().ok_or_else(no_tolerance)?;
    let mut expected = expectations(with, context)?;
    // The claim is about the abscissas that it selects.
    let range = check.of.x.as_ref();
    expected.retain(|e| e.x.is_none() || range.is_none_or(|range| range.contains(e.x)));
    let by_method = check.of.method.is_none() && with.method.is_none();
    let curves = Measured::new(&of, by_method, clusters)?;
    if with.from == Source::Measured {
        check_places([(&check.of, &points_of), (with, &points(with, context)?)], by_method, true)?;
    }
    let (mut matches, mut missing) = (Vec::new(), 0);
    for e in &expected {
        let own = curves.matching(e);
        missing += usize::from(own.is_empty());
        matches.extend(own.into_iter().map(|place| (place, e)));
        check_pairs(matches.len(), [of.len(), expected.len()])?;
    }
    let reduced = match with.from {
        Source::Published => incomparable(&check.of, context),
        Source::Measured => None,
    };
    // A reduced run may have fewer points, and is not compared.
    if missing > 0 && (reduced.is_none() || matches.is_empty()) {
        let (of, all) = (describe(&check.of), expected.len());
        return Err(not_run(format!("no values for {of} at {missing} of {all} points")));
    }
    let outcome = |(place, e): &(&Values, &Expectation)| {
        let outcome = outcome(place, e, tolerance, matches.len(), clusters.is_exact);
        outcome.ok_or_else(no_deviation)
    };
    let mut outcomes = matches.iter().map(outcome).collect::<Result<Vec<_>, _>>()?;
    let count = |fit: Fit| outcomes.iter().filter(|o| o.fit == fit).count();
    let (all, agreeing) = (outcomes.len(), count(Fit::Inside));
    // The small allowance is for rounding: two thirds of three places are two.
    let needed = check.share * all as f64 - 1e-9;
    let verdict = if agreeing as f64 >= needed {
        Verdict::Reproduced
    } else if (agreeing + count(Fit::Unclear)) as f64 >= needed {
        Verdict::WithinNoise
    } else {
        Verdict::NotReproduced
    };
    let asked = match check.share {
        1.0 => String::new(),
        share => format!(" (at least {} % required)", show(100.0 * share)),
    };
    let measured = format!("{agreeing} of {all} points within tolerance{asked}");
    outcomes.sort_by(|a, b| a.excess.total_cmp(&b.excess));
    let Some(worst) = outcomes.last() else {
        return Err(not_run(format!("nothing to compare {} with", describe(&check.of))));
    };
    let statistics = format!("worst point: {}", worst.text);
    // The place that decides: the last one that must agree to reach the share.
    let decisive = (needed.ceil().max(1.0) as usize - 1).min(all - 1);
    let of_limit = outcomes.get(decisive).map(|o| o.excess);
    let judgement = Judgement::new(verdict, measured, statistics, String::new()).near(of_limit);
    Ok(judgement.unless(reduced))
}

fn expectations(with: &Select, context: Context<'_>) -> Result<Vec<Expectation>, Unjudged> {
    let points = points(with, context)?;
    let all = places(&points)?;
    let mean = |p: Place<'_>| {
        let value = statistics::mean_interval(&p.values()).mean;
        Expectation { method: p.method.to_owned(), x: p.x, value, deviation: None }
    };
    let mut all_expected: Vec<_> = all.into_iter().map(mean).collect();
    if with.from == Source::Published {
        // Deviations of published numbers by method: those with an abscissa, sorted by it, and those without.
        type Printed = (Vec<(f64, Option<f64>)>, Vec<Option<f64>>);
        let mut printed: HashMap<&str, Printed> = HashMap::new();
        for value in context.published_of(with).filter(|v| v.value.is_some()) {
            let (at, without) = printed.entry(&value.method).or_default();
            match value.x {
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
            // The deviation belongs to a single number; a mean of several numbers has none.
            if let [one] = here.as_slice() {
                e.deviation = *one;
            }
        }
    }
    Ok(all_expected)
}

/// Statistics of a place of a curve, or of a whole curve.
struct Values {
    method: String,
    x: Option<f64>,
    /// Means by repetition.
    means: Vec<f64>,
    interval: Interval,
    spread: Spread,
}

impl Values {
    fn new<'a>(
        method: &str,
        x: Option<f64>,
        values: impl Iterator<Item = (&'a Point, f64)> + Clone,
        clusters: Clusters,
    ) -> Self {
        let means = clusters.means(values.clone());
        let interval = interval_at(&means, EQUIVALENCE);
        let spread = Spread::of(&means);
        Values { method: method.to_owned(), x, means, interval, spread }
    }
}

/// Curves, indexed for lookup by expectations. Statistics are computed once per place, for any number of expectations.
struct Measured {
    by_method: bool,
    places: Vec<Values>,
    /// Statistics of whole curves, and their indices by method.
    wholes: Vec<Values>,
    of_method: HashMap<String, usize>,
    /// Abscissas and indices of `places`, sorted, by method. Unless methods are matched, the key is empty for all.
    at: BTreeMap<String, Vec<(f64, usize)>>,
}

impl Measured {
    fn new(of: &[Place<'_>], by_method: bool, clusters: Clusters) -> Result<Self, Unjudged> {
        let mut at: BTreeMap<String, Vec<(f64, usize)>> = BTreeMap::new();
        for (index, place) in of.iter().enumerate() {
            if let Some(x) = place.x.filter(|x| !x.is_nan()) {
                let method = if by_method { place.method.to_owned() } else { String::new() };
                at.entry(method).or_default().push((x, index));
            }
        }
        for places in at.values_mut() {
            places.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        let whole = |places: Vec<&(String, &Place<'_>)>| {
            let (method, _) = places.first()?;
            let points: Vec<&Point> =
                places.iter().flat_map(|(_, place)| place.points.iter().copied()).collect();
            Some(Values::new(method, None, points.iter().map(|p| (*p, p.value)), clusters))
        };
        let named: Vec<(String, &Place<'_>)> =
            of.iter().map(|place| (place.method.to_owned(), place)).collect();
        let methods = Keys::of(&named).by(|(method, _)| method).groups().map_err(not_grouped)?;
        let wholes: Vec<Values> = methods.into_iter().filter_map(whole).collect();
        let place = |place: &Place<'_>| {
            let points = place.points.iter().map(|p| (*p, p.value));
            Values::new(place.method, place.x, points, clusters)
        };
        Ok(Measured {
            by_method,
            places: of.iter().map(place).collect(),
            of_method: wholes.iter().zip(0..).map(|(w, index)| (w.method.clone(), index)).collect(),
            wholes,
            at,
        })
    }

    /// What an expectation is compared with, in the order of the curves: places, or whole curves if it has no abscissa.
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

fn outcome(
    place: &Values,
    expected: &Expectation,
    tolerance: &Tolerance,
    places: usize,
    is_exact: bool,
) -> Option<PlaceOutcome> {
    let (margin, margin_text) =
        margin(tolerance, expected.value, expected.deviation, place.spread)?;
    let mean = place.interval.mean;
    let fit = match tolerance.standard_errors {
        // Standard errors already account for noise.
        Some(_) => near(&[mean], expected.value, margin, places, true),
        None => near(&place.means, expected.value, margin, places, is_exact),
    };
    let excess = (mean - expected.value).abs() / margin.max(f64::MIN_POSITIVE);
    let at = place.x.map(|x| format!(" at x = {}", show(x))).unwrap_or_default();
    let spread = match place.interval.half_width {
        Some(h) if !is_exact => {
            format!(" (90 % interval ± {}, n = {})", show(h), place.interval.n)
        }
        _ => String::new(),
    };
    let theirs = match expected.deviation {
        Some(p) => format!(" (deviation {})", show(p)),
        None => String::new(),
    };
    let text = format!(
        "{}{at}: {}{spread} against {}{theirs}, {margin_text}",
        place.method,
        show(mean),
        show(expected.value)
    );
    Some(PlaceOutcome { fit, excess, text })
}

/// A method's means over the abscissa.
pub(super) struct Curve {
    pub method: String,
    pub points: Vec<(f64, f64)>,
    /// Means by repetition, in the order of `points`.
    pub by_cluster: Vec<BTreeMap<String, f64>>,
}

impl Curve {
    /// The mean curve of repetitions that were sampled with replacement. Places without any of these repetitions are left out.
    fn resampled(&self, sample: &[&String]) -> Curve {
        let mean = |clusters: &BTreeMap<String, f64>| {
            let values = sample.iter().filter_map(|key| clusters.get(*key));
            let (sum, count) = values.fold((0.0, 0usize), |(s, n), v| (s + v, n + 1));
            (count > 0).then(|| sum / count as f64)
        };
        let points = self.points.iter().zip(&self.by_cluster);
        let points = points.filter_map(|((x, _), clusters)| Some((*x, mean(clusters)?))).collect();
        Curve { method: self.method.clone(), points, by_cluster: Vec::new() }
    }
}

/// A curve for each method of a selection. Values without an abscissa are left out.
pub(super) fn curves(
    select: &Select,
    clusters: Clusters,
    context: Context<'_>,
) -> Result<Vec<Curve>, Unjudged> {
    let mut all: Vec<Curve> = Vec::new();
    let points = points(select, context)?;
    for place in places(&points)? {
        let mean = statistics::mean_interval(&place.values()).mean;
        let Some(x) = place.x else { continue };
        let own = clusters.by_cluster(place.points.iter().map(|p| (*p, p.value)));
        match all.last_mut().filter(|c| c.method == place.method) {
            Some(curve) => {
                curve.points.push((x, mean));
                curve.by_cluster.push(own);
            }
            None => all.push(Curve {
                method: place.method.to_owned(),
                points: vec![(x, mean)],
                by_cluster: vec![own],
            }),
        }
    }
    Ok(all)
}

/// Number of bootstrap samples for the interval of a position.
const RESAMPLES: usize = 1000;
/// Minimum number of repetitions for the bootstrap. If two places are equally good, all n repetitions prefer a given one with
/// probability 2⁻ⁿ, which must be below 2.5 %.
const FEWEST: usize = 6;
/// Maximum number of means by repetition and abscissa for the bootstrap, so that no record takes minutes.
const MAX: usize = 20_000;

/// Where the feature is on a curve, and its distance in steps from the expected place.
struct Found {
    /// Abscissa of the feature on the mean curve; `None` if the curve does not have the feature.
    place: Option<f64>,
    expected: f64,
    /// Steps of the mean curve.
    steps: usize,
    /// Steps of resampled curves, sorted; empty if there are too few repetitions.
    resampled: Vec<usize>,
    /// Number of repetitions.
    n: usize,
}

impl Found {
    /// The 95 % bootstrap interval of the steps. Its percentiles are expanded so that the interval of a mean would be as wide as
    /// Student's t interval.
    fn interval(&self) -> Option<(usize, usize)> {
        let share = posenc_math::statistics::expanded_tail(LEVEL, self.n);
        let tail = (share * self.resampled.len() as f64) as usize;
        let last = self.resampled.len().checked_sub(tail + 1)?;
        Some((*self.resampled.get(tail)?, *self.resampled.get(last)?))
    }

    fn fit(&self, allowed: usize, is_exact: bool) -> Fit {
        match self.interval() {
            _ if is_exact && self.steps <= allowed => Fit::Inside,
            _ if is_exact => Fit::Outside,
            None => Fit::Undecided,
            Some((_, most)) if most <= allowed => Fit::Inside,
            Some((least, _)) if least > allowed => Fit::Outside,
            Some(_) => Fit::Unclear,
        }
    }
}

pub(super) fn position(check: &PositionCheck, clusters: Clusters, context: Context<'_>) -> Judged {
    let published = check.with.as_ref().is_some_and(|w| w.from == Source::Published);
    let curves = |select: &Select| match curves(select, clusters, context)? {
        none if none.is_empty() => Err(not_run(format!("no curve for {}", describe(select)))),
        all => Ok(all),
    };
    let of = curves(&check.of)?;
    let with = check.with.as_ref().map(curves).transpose()?;
    let by_method =
        check.of.method.is_none() && check.with.as_ref().is_some_and(|w| w.method.is_none());
    let keys: BTreeSet<&String> =
        of.iter().flat_map(|c| &c.by_cluster).flat_map(|p| p.keys()).collect();
    let keys: Vec<&String> = keys.into_iter().collect();
    let all = of.iter().chain(with.iter().flatten()).flat_map(|c| &c.by_cluster);
    if all.map(BTreeMap::len).sum::<usize>() > MAX {
        return Err(not_run(format!("more than {MAX} values for a position")));
    }
    // On the same signals as a published curve, a few repetitions are judged by their mean alone, like values.
    let is_exact =
        clusters.is_exact || (published && check.sample == Sample::Seeds && keys.len() < FEWEST);
    let samples: Vec<Vec<&String>> = match is_exact || keys.len() < FEWEST {
        true => Vec::new(),
        false => {
            let label = format!("position of {} {}", context.experiment.id(), describe(&check.of));
            let mut rng = random::stream(0, &label);
            let mut one =
                || keys.iter().map(|_| keys[random::below(&mut rng, keys.len())]).collect();
            (0..RESAMPLES).map(|_| one()).collect()
        }
    };
    // The features of the other curves are located once, for all curves that are compared with them.
    let counterparts = |with: &[Curve]| Counterparts::new(check, with, by_method);
    let mean_with = with.as_deref().map(counterparts);
    let mut texts = Vec::new();
    let (mut fits, mut failures) = (Vec::new(), Vec::new());
    let mut farthest: Option<usize> = None;
    for curve in &of {
        let expected = match (&mean_with, check.at) {
            (Some(with), _) => match with.of(curve) {
                Ok(Some((_, Some(place)))) => *place,
                Ok(Some((method, None))) => {
                    return Err(not_run(format!("{method}: no such feature")));
                }
                Ok(None) => continue,
                Err(()) => return Err(not_run("several curves match; name a method")),
            },
            (None, Some(at)) => at,
            (None, None) => return Err(not_run("no place is given")),
        };
        let place = feature(check, curve);
        let steps = |curve: &Curve, expected: f64| match feature(check, curve) {
            Some(found) => steps_between(&curve.points, found, expected),
            None => usize::MAX,
        };
        let resampled = |sample: &Vec<&String>| {
            let own = curve.resampled(sample);
            // A measured counterpart is resampled with the same repetitions; a published one is fixed.
            let expected = match &with {
                Some(with) if !published => {
                    let with: Vec<Curve> = with.iter().map(|c| c.resampled(sample)).collect();
                    match counterparts(&with).of(curve) {
                        Ok(Some((_, Some(place)))) => *place,
                        _ => expected,
                    }
                }
                _ => expected,
            };
            steps(&own, expected)
        };
        let mut found = Found {
            place: place.map(|i| curve.points[i].0),
            expected,
            steps: steps(curve, expected),
            resampled: samples.iter().map(resampled).collect(),
            n: keys.len(),
        };
        found.resampled.sort_unstable();
        let fit = found.fit(check.steps, is_exact);
        let (text, why) = described(&curve.method, &found, fit);
        texts.push(text);
        failures.extend(why);
        fits.push(fit);
        farthest = farthest.max(Some(found.steps));
    }
    if texts.is_empty() {
        return Err(not_run(format!("nothing to compare {} with", describe(&check.of))));
    }
    let s = if check.steps == 1 { "" } else { "s" };
    let mut statistics = format!("allowed: {} step{s} of the grid", check.steps);
    if !samples.is_empty() {
        statistics += &format!(", {}", clusters.counted(keys.len()));
    }
    let verdict = Verdict::worst(fits.iter().map(|fit| fit.verdict()));
    let reason = match verdict {
        Verdict::NotDecided if keys.len() > 1 => {
            format!("{}, at least {FEWEST} needed", clusters.counted(keys.len()))
        }
        Verdict::NotDecided => clusters.lack(),
        _ => failures.join("; "),
    };
    let of_limit = farthest.filter(|_| check.steps > 0);
    let of_limit = of_limit.map(|steps| steps as f64 / check.steps as f64);
    let judgement = Judgement::new(verdict, texts.join("; "), statistics, reason).near(of_limit);
    Ok(judgement.unless(incomparable(&check.of, context).filter(|_| published)))
}

/// The place of a feature in words, and why it is not clearly the expected one.
fn described(method: &str, found: &Found, fit: Fit) -> (String, Option<String>) {
    let counted = |steps: usize| match steps {
        usize::MAX => "nowhere".to_owned(),
        1 => "1 step".to_owned(),
        n => format!("{n} steps"),
    };
    let expected = show(found.expected);
    let Some(place) = found.place else {
        let text = format!("{method}: nowhere, against {expected}");
        let why = (fit != Fit::Inside).then(|| format!("{method} does not reach the level"));
        return (text, why);
    };
    let mut text =
        format!("{method}: {} against {expected} ({}", show(place), counted(found.steps));
    if let Some((least, most)) = found.interval() {
        text += &format!(", 95 % interval {least} to {}", counted(most));
    }
    text.push(')');
    let why = match fit {
        Fit::Inside => None,
        Fit::Outside => Some(format!("{method} is {} off", counted(found.steps))),
        Fit::Unclear | Fit::Undecided => Some(format!("{method} is not clearly at that place")),
    };
    (text, why)
}

/// Where the feature is on the curves that others are compared with.
struct Counterparts {
    /// Method, and the place of the feature if the curve has it.
    places: Vec<(String, Option<f64>)>,
    /// Indices by method, if methods are matched; `None` for a method with several curves.
    by_method: Option<HashMap<String, Option<usize>>>,
}

impl Counterparts {
    fn new(check: &PositionCheck, with: &[Curve], by_method: bool) -> Self {
        let place = |curve: &Curve| {
            let place = feature(check, curve).and_then(|i| curve.points.get(i)).map(|p| p.0);
            (curve.method.clone(), place)
        };
        let places: Vec<(String, Option<f64>)> = with.iter().map(place).collect();
        let index = || {
            let mut index: HashMap<String, Option<usize>> = HashMap::new();
            for (i, (method, _)) in places.iter().enumerate() {
                index.entry(method.clone()).and_modify(|known| *known = None).or_insert(Some(i));
            }
            index
        };
        Counterparts { by_method: by_method.then(index), places }
    }

    /// The counterpart of a curve; an error if there are several.
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
    let highest = || points.iter().map(|p| p.1).max_by(f64::total_cmp);
    let level = check.level.or_else(|| Some(highest()? - check.below_highest?));
    let above = |(_, y): &(f64, f64)| level.is_some_and(|level| *y >= level);
    match check.feature {
        Feature::Highest => (0..points.len()).max_by(by_value),
        Feature::Lowest => (0..points.len()).min_by(by_value),
        Feature::LastAbove => points.iter().rposition(above),
        Feature::FirstAbove => points.iter().position(above),
    }
}

/// Number of grid steps from the point `from` to a place. A place between two points is as far as the nearer one; a place beyond an
/// end is one step farther than the end.
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
