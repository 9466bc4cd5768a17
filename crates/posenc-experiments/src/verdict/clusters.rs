//! Which values are independent repetitions, and means over the values that are not.

use std::collections::{BTreeMap, BTreeSet};

use super::Unjudged;
use super::checks::Check;
use super::points::{Context, Point, not_grouped, rows};
use super::statistics::mean;
use crate::record::{Keys, NO_SIGNAL, Row, is_of_machine};
use crate::schema::Group;
use crate::schema::protocol::WithoutData;

/// The independent repetitions of a check.
///
/// Abscissas of a curve, seeds of one signal and pixels of one image are never independent. A cluster is a signal if several signals
/// are selected, they are samples (such as lines, images and clips), and the check does not compare with numbers of the same signals.
/// Otherwise a cluster is a seed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Clusters {
    /// Whether a cluster is a signal, and not a seed.
    pub by_signal: bool,
    /// Whether signals are parts of one result, which are judged separately.
    has_parts: bool,
    /// Whether nothing about the quantity is random.
    pub is_exact: bool,
    /// Whether all values are computed from a definition, some perhaps with random features.
    pub is_computed: bool,
    /// Test size over training size if seeds are random splits of the same data, else 0.
    overlap: f64,
}

impl Clusters {
    /// The repetitions of a check. `is_exact`: its metrics are counted or computed from settings.
    pub fn new(check: &Check, is_exact: bool, context: Context<'_>) -> Self {
        let group = |row: &Row| context.experiment.group(&row.group);
        let kind = |row: &Row| group(row).and_then(Group::kind);
        let mut signals: BTreeSet<&str> = BTreeSet::new();
        let mut seeds: BTreeMap<(&str, &str), BTreeSet<u64>> = BTreeMap::new();
        let (mut is_theory, mut are_samples, mut has_rows) = (true, true, false);
        let mut overlap: f64 = 0.0;
        for select in check.measured() {
            for row in rows(select, context) {
                has_rows = true;
                let kind = kind(row);
                let computes = kind.is_some_and(|k| k.without_data == WithoutData::Theory);
                let is_computed = (row.data == "-" && computes) || is_of_embedder(row, context);
                is_theory &= is_computed && !is_of_machine(&row.metric);
                are_samples &= kind.is_some_and(|k| k.signals_are_samples);
                signals.insert(unnumbered(&row.signal));
                let own = seeds.entry((&row.group, &row.method)).or_default();
                if own.insert(row.seed) {
                    let protocol = group(row).and_then(|g| g.protocol_of(&row.method, row.profile));
                    overlap = overlap.max(protocol.map_or(0.0, |own| own.settings().overlap()));
                }
            }
        }
        let is_repeated = seeds.values().any(|seeds| seeds.len() > 1);
        Clusters {
            by_signal: has_rows
                && are_samples
                && signals.len() > 1
                && !check.rule().is_on_same_signals(),
            has_parts: has_rows && !are_samples,
            is_exact: is_exact || !has_rows || (is_theory && !is_repeated),
            is_computed: is_theory,
            overlap,
        }
    }

    /// The same values with samples of random features as repetitions instead of signals; `None` if neither side has several.
    pub fn across_samples(&self, sides: [&[Point]; 2]) -> Option<Self> {
        let has_several =
            sides.map(|side| side.iter().any(|p| Some(p.seed) != side.first().map(|f| f.seed)));
        let is_repeated = has_several[0] || has_several[1];
        let samples = Clusters { by_signal: false, is_computed: true, ..*self };
        (self.by_signal && is_repeated).then_some(samples)
    }

    pub fn key(&self, point: &Point) -> String {
        match self.by_signal {
            true => unnumbered(&point.signal).to_owned(),
            false => point.seed.to_string(),
        }
    }

    /// A number of clusters in words.
    pub fn counted(&self, n: usize) -> String {
        let what = match self.by_signal {
            true => "signals",
            false if self.overlap > 0.0 => "overlapping splits",
            false => "seeds",
        };
        format!("n = {n} {what}")
    }

    /// A number of clusters at each of several points in words.
    pub fn counted_at(&self, n: usize, points: usize) -> String {
        let at = if points > 1 { format!(" at {points} points") } else { String::new() };
        self.counted(n) + &at
    }

    /// Why a single cluster has no uncertainty.
    pub fn lack(&self) -> String {
        let what = if self.by_signal { "signal" } else { "repetition" };
        format!("only one {what}, so the uncertainty is unknown")
    }

    /// Means of values by cluster, in the order of the clusters' names. Those of overlapping splits are moved away from their mean by the factor
    /// by which intervals over them are too narrow, √(1 + n · overlap) (Nadeau and Bengio 2003, corrected resampled t-test).
    pub fn means<'a>(&self, values: impl Iterator<Item = (&'a Point, f64)>) -> Vec<f64> {
        let mut means: Vec<f64> = self.by_cluster(values).into_values().collect();
        if self.overlap > 0.0 && !self.by_signal {
            let n = means.len() as f64;
            let (center, factor) = (mean(means.iter().copied()), (1.0 + n * self.overlap).sqrt());
            means.iter_mut().for_each(|own| *own = center + factor * (*own - center));
        }
        means
    }

    pub fn means_of<'a>(&self, points: impl IntoIterator<Item = &'a Point>) -> Vec<f64> {
        self.means(points.into_iter().map(|point| (point, point.value)))
    }

    pub fn by_cluster<'a>(
        &self,
        values: impl Iterator<Item = (&'a Point, f64)>,
    ) -> BTreeMap<String, f64> {
        let mut sums: BTreeMap<String, (f64, usize)> = BTreeMap::new();
        for (point, value) in values {
            let (sum, count) = sums.entry(self.key(point)).or_default();
            *sum += value;
            *count += 1;
        }
        sums.into_iter().map(|(key, (sum, count))| (key, sum / count as f64)).collect()
    }

    /// Groups values by the places of the check: by method and abscissas, and by signal if signals are parts. Places are in the order
    /// of their first values.
    pub fn places<'a, T>(
        &self,
        values: &'a [T],
        point: impl Fn(&T) -> &Point + Copy,
    ) -> Result<Vec<Vec<&'a T>>, Unjudged> {
        let mut keys = Keys::of(values)
            .by(move |v| &point(v).method)
            .by(move |v| &point(v).x)
            .by(move |v| &point(v).y);
        if self.has_parts {
            keys = keys.by(move |v| &point(v).signal);
        }
        keys.groups().map_err(not_grouped)
    }
}

/// Whether a row is an exact property of an embedder: it belongs to no signal, although its protocol measures on signals, and the
/// embedder is not random.
fn is_of_embedder(row: &Row, context: Context<'_>) -> bool {
    let Some(group) = context.experiment.group(&row.group) else { return false };
    let variant = group.variants.iter().find(|variant| variant.id == row.method);
    let spec = variant.and_then(|variant| variant.embedder.as_ref());
    let kind = spec.and_then(|spec| posenc_math::embedder::find(&spec.kind));
    is_without_signal(row, group) && kind.is_some_and(|kind| !kind.is_random)
}

/// Whether a row belongs to no signal, although its protocol measures on signals.
pub(super) fn is_without_signal(row: &Row, group: &Group) -> bool {
    row.signal == NO_SIGNAL && group.kind().is_some_and(|kind| kind.signals_are_samples)
}

/// A signal's name without the number that distinguishes repetitions of one signal: `row 426 (2)` becomes `row 426`.
pub(super) fn unnumbered(signal: &str) -> &str {
    let number = signal.strip_suffix(')').and_then(|rest| rest.rsplit_once(" ("));
    match number {
        Some((name, digits))
            if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) =>
        {
            name
        }
        _ => signal,
    }
}
