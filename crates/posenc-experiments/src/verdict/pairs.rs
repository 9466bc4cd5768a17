//! Values that are paired over signal, seed and abscissa.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::Unjudged;
use super::clusters::Clusters;
use super::points::{Point, describe, not_grouped, not_run};
use crate::record::Keys;
use crate::schema::claim::{Abscissa, Select};

/// Maximum number of pairs per value of two selections. Repeated rows would be paired each with each.
const MAX_REPEATS: usize = 4;

/// Rejects pairs whose number grows with the product of the sizes of both selections.
pub(super) fn check_pairs(pairs: usize, [left, right]: [usize; 2]) -> Result<(), Unjudged> {
    match pairs > MAX_REPEATS * (left + right) {
        true => Err(not_run(
            "the record or the published values have duplicate rows, so values cannot be paired",
        )),
        false => Ok(()),
    }
}

/// A point with its index in its selection.
type Placed<'a> = (usize, &'a Point);

/// The keys that two values must share to be a pair, in addition to the second abscissa.
#[derive(Clone, Copy)]
struct Common {
    unit: bool,
    method: bool,
    x: bool,
}

/// Groups the points of two selections that share the `common` keys. Each group contains the points of the first and those of the
/// second selection, with their indices in their selections.
fn matched<'a>(
    [left, right]: [&'a [Point]; 2],
    common: Common,
) -> Result<Vec<[Vec<Placed<'a>>; 2]>, Unjudged> {
    let second = right.iter().enumerate().map(|(place, p)| (true, place, p));
    let all: Vec<_> =
        left.iter().enumerate().map(|(place, p)| (false, place, p)).chain(second).collect();
    let mut keys = Keys::of(&all).by(|p| &p.2.y);
    if common.unit {
        keys = keys.by(|p| &p.2.signal).by(|p| &p.2.seed);
    }
    if common.method {
        keys = keys.by(|p| &p.2.method);
    }
    if common.x {
        keys = keys.by(|p| &p.2.x);
    }
    let sides = |group: Vec<&(bool, usize, &'a Point)>| {
        [false, true].map(|side| {
            let own = group.iter().filter(|p| p.0 == side);
            own.map(|(_, place, point)| (*place, *point)).collect()
        })
    };
    Ok(keys.groups().map_err(not_grouped)?.into_iter().map(sides).collect())
}

/// For each point, the value of the first of `others` with the same keys.
pub(super) fn values_at(points: &[Point], others: &[Point]) -> Result<Vec<Option<f64>>, Unjudged> {
    let mut values = vec![None; points.len()];
    let common = Common { unit: true, method: true, x: true };
    for [own, others] in matched([points, others], common)? {
        for (place, _) in own {
            values[place] = others.first().map(|(_, point)| point.value);
        }
    }
    Ok(values)
}

/// The values of two selections on common seeds, if one of them has a single seed and the other several, as a method with random
/// frequencies has next to one without. With signals as repetitions, values are averaged over seeds. A single computed value is compared
/// with each seed of the other. Other values do not change.
pub(super) fn on_common_seeds<'a>(
    [left, right]: [&'a [Point]; 2],
    clusters: Clusters,
) -> [Cow<'a, [Point]>; 2] {
    let seeds = |points: &[Point]| points.iter().map(|p| p.seed).collect::<BTreeSet<u64>>();
    let (a, b) = (seeds(left), seeds(right));
    if (a.len() == 1) == (b.len() == 1) {
        return [left.into(), right.into()];
    }
    let is_left_single = a.len() == 1;
    let (single, several) = if is_left_single { (left, right) } else { (right, left) };
    let [single, several]: [Cow<'_, [Point]>; 2] = if clusters.by_signal {
        let seed = single.first().map_or(0, |point| point.seed);
        [single.into(), averaged(several, seed).into()]
    } else if clusters.is_computed {
        let seeds = if is_left_single { b } else { a };
        let copies = seeds
            .into_iter()
            .flat_map(|seed| single.iter().map(move |point| Point { seed, ..point.clone() }));
        [copies.collect::<Vec<_>>().into(), several.into()]
    } else {
        [single.into(), several.into()]
    };
    if is_left_single { [single, several] } else { [several, single] }
}

/// Means over seeds, in the order of the first values.
fn averaged(points: &[Point], seed: u64) -> Vec<Point> {
    let mut places = HashMap::new();
    let mut means: Vec<(Point, usize)> = Vec::new();
    let bits = |x: Option<f64>| x.map(f64::to_bits);
    for point in points {
        let key = (&*point.method, &*point.signal, bits(point.x), bits(point.y));
        let place = *places.entry(key).or_insert_with(|| {
            means.push((Point { seed, value: 0.0, ..point.clone() }, 0));
            means.len() - 1
        });
        means[place].0.value += point.value;
        means[place].1 += 1;
    }
    let mean =
        |(point, count): (Point, usize)| Point { value: point.value / count as f64, ..point };
    means.into_iter().map(mean).collect()
}

#[derive(Clone, Copy)]
pub(super) struct Pair<'a> {
    pub left: &'a Point,
    pub right: &'a Point,
}

/// Pairs the values of two selections that share signal, seed and abscissas.
///
/// They must also share the method if neither selection names one; otherwise a value is paired with all methods of the other side. If
/// both selections name a single abscissa, the two may differ. If both sides have equally many rows of one unit and method at an abscissa,
/// these are paired in their order.
pub(super) fn pairs<'a>(
    left: (&Select, &'a [Point]),
    right: (&Select, &'a [Point]),
) -> Result<Vec<Pair<'a>>, Unjudged> {
    let both = |of: fn(&Select) -> bool| of(left.0) && of(right.0);
    let method = both(|s| s.method.is_none());
    let x = !both(|s| matches!(s.x, Some(Abscissa::At(_))));
    // If the sides have common places and one lacks places of the other, no claim is decided on a part of its points.
    let places = matched([left.1, right.1], Common { unit: false, method, x })?;
    let lacks = |side: usize| places.iter().filter(|place| place[side].is_empty()).count();
    for (side, select) in [left.0, right.0].into_iter().enumerate() {
        let (missing, all) = (lacks(side), places.len());
        if missing > 0 && missing + lacks(1 - side) < all {
            let of = describe(select);
            return Err(not_run(format!("no values for {of} at {missing} of {all} points")));
        }
    }
    let groups = matched([left.1, right.1], Common { unit: true, method, x })?;
    let counts = groups.iter().map(|[own, others]| own.len().saturating_mul(others.len()));
    check_pairs(counts.fold(0, usize::saturating_add), [left.1.len(), right.1.len()])?;
    let mut pairs = Vec::new();
    let is_of_one_method =
        |side: &[Placed<'_>]| side.windows(2).all(|two| two[0].1.method == two[1].1.method);
    for [own, others] in &groups {
        // Rows that a unit has several times at one abscissa are paired in their order.
        if own.len() == others.len() && is_of_one_method(own) && is_of_one_method(others) {
            pairs.extend(own.iter().zip(others));
        } else {
            pairs.extend(own.iter().flat_map(|own| others.iter().map(move |other| (own, other))));
        }
    }
    pairs.sort_by_key(|(own, other)| (own.0, other.0));
    if method {
        // A mean over all methods must not mix signals that lack some of them.
        let mut methods: BTreeMap<(&str, u64), BTreeSet<&str>> = BTreeMap::new();
        for ((_, point), _) in &pairs {
            methods.entry((&point.signal, point.seed)).or_default().insert(&point.method);
        }
        let most = methods.values().map(BTreeSet::len).max().unwrap_or(0);
        pairs.retain(|((_, point), _)| {
            methods.get(&(&*point.signal, point.seed)).is_none_or(|own| own.len() == most)
        });
    }
    Ok(pairs.into_iter().map(|(own, other)| Pair { left: own.1, right: other.1 }).collect())
}

/// Means by repetition of a number of each pair of two selections on common seeds.
pub(super) fn paired_differences(
    [left, right]: [(&Select, &[Point]); 2],
    clusters: Clusters,
    difference: impl Fn(&Pair<'_>) -> f64,
) -> Result<Vec<f64>, Unjudged> {
    let [a, b] = on_common_seeds([left.1, right.1], clusters);
    let pairs = pairs((left.0, &a), (right.0, &b))?;
    Ok(clusters.means(pairs.iter().map(|p| (p.left, difference(p)))))
}
