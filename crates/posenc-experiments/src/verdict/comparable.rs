//! Why numbers cannot be compared: with the paper's, or with each other.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::points::{Context, rows};
use crate::record::{is_counted, is_of_machine};
use crate::schema::Profile;
use crate::schema::claim::Select;

/// Why the selected rows cannot be compared with the paper's own numbers, which `printed` selects.
pub(super) fn incomparable(
    select: &Select,
    printed: Option<&Select>,
    context: Context<'_>,
) -> Option<String> {
    let group = context.experiment.group(&select.group)?;
    let mut is_known: HashMap<(&str, Profile), bool> = HashMap::new();
    for row in rows(select, context) {
        if is_counted(&select.metric) {
            let key = (row.method.as_str(), row.profile);
            if *is_known.entry(key).or_insert_with(|| group.has_papers_model(row)) {
                continue;
            }
        }
        if let Some(reduced) = group.reduced(row.profile) {
            return Some(format!("reduced: {reduced}"));
        }
        if !group.is_papers_data(&row.data) {
            return Some(format!("other data: {}", row.data));
        }
    }
    // A count does not depend on the signal, and numbers of named signals need no others.
    let is_named = printed.is_some_and(|own| own.signal.is_some() || own.signals.is_some());
    if is_named || is_counted(&select.metric) {
        return None;
    }
    group.parts(rows(select, context)).pop_first()
}

/// If a selection of several methods or of several signals lacks some: how many are on record.
pub(super) fn missing(select: &Select, context: Context<'_>) -> Option<String> {
    let group = context.experiment.group(&select.group)?;
    let lacks = |found: usize, total: usize, what: &str| {
        (1..total).contains(&found).then(|| format!("{found} of {total} {what} of `{}`", group.id))
    };
    // Rows of `errata` name no variant.
    let methods: BTreeSet<&str> = rows(select, context).map(|row| row.method.as_str()).collect();
    let selected = || group.variants.iter().filter(|v| select.takes_method(&v.id));
    let found = selected().filter(|v| methods.contains(v.id.as_str())).count();
    let signals: BTreeSet<&str> = rows(select, context).map(|row| row.signal.as_str()).collect();
    let named = select.signals.as_ref().map_or(0, Vec::len);
    lacks(found, selected().count(), "methods").or_else(|| lacks(signals.len(), named, "signals"))
}

/// Why two selections cannot be compared: their methods ran at profiles with different protocols, such as five epochs and two
/// thousand. Fewer signals or seeds do no harm, since only equal ones are paired.
pub(super) fn unlike(a: &Select, b: &Select, context: Context<'_>) -> Option<String> {
    if is_of_machine(&a.metric) || is_of_machine(&b.metric) {
        let all = rows(a, context).chain(rows(b, context));
        let devices: BTreeSet<&str> = all.map(|row| row.device.as_str()).collect();
        if devices.len() > 1 {
            let devices: Vec<&str> = devices.into_iter().collect();
            return Some(format!("measured on different devices: {}", devices.join(", ")));
        }
    }
    if a.group != b.group {
        return unlike_groups(a, b, context);
    }
    let group = context.experiment.group(&a.group)?;
    let runs = |select| {
        let mut runs: BTreeMap<&str, BTreeSet<Profile>> = BTreeMap::new();
        for row in rows(select, context) {
            runs.entry(&row.method).or_default().insert(row.profile);
        }
        runs
    };
    let (left, right) = (runs(a), runs(b));
    let names_method = a.method.is_some() || b.method.is_some();
    for (method, profiles) in &left {
        // If neither selection names a method, only equal methods are paired. Otherwise, all methods of both sides are.
        let others: Vec<(&str, &BTreeSet<Profile>)> = match names_method {
            true => right.iter().map(|(other, there)| (*other, there)).collect(),
            false => right.get(method).map(|there| (*method, there)).into_iter().collect(),
        };
        for profile in profiles {
            for (other, there) in others.iter().flat_map(|(o, t)| t.iter().map(move |t| (*o, *t))) {
                let differs =
                    || group.protocol_of(method, *profile) != group.protocol_of(other, there);
                if *profile != there && differs() {
                    return Some(format!(
                        "measured at different profiles: {method} at `{profile}`, {other} at `{there}`"
                    ));
                }
            }
        }
    }
    None
}

/// Why two groups cannot be compared: one ran with settings that differ from the full protocol, such as fewer epochs, and the other
/// did not.
fn unlike_groups(a: &Select, b: &Select, context: Context<'_>) -> Option<String> {
    let reduced = |select: &Select| -> Option<(bool, String)> {
        let group = context.experiment.group(&select.group)?;
        // Some protocols have the number of runs in their settings, and fewer runs do no harm.
        if group.kind()?.repeats_key.is_some() {
            return None;
        }
        let row = rows(select, context).next()?;
        let at = |profile| group.protocol_of(&row.method, profile);
        let (here, full) = (at(row.profile)?, at(Profile::Paper)?);
        Some((here != full, format!("{} at `{}`", group.id, row.profile)))
    };
    let ((left, one), (right, other)) = (reduced(a)?, reduced(b)?);
    (left != right).then(|| format!("measured at different scale: {one}, {other}"))
}
