//! Units that failed: which of them still count, and which are history.

use std::collections::BTreeSet;

use anyhow::Result;
use posenc_experiments::plan::jobs;
use posenc_experiments::record::{Failure, UnitFailure};
use posenc_experiments::selector::Selectors;
use posenc_experiments::{Experiment, Profile};

use crate::device::CLASSES;
use crate::plan::Plans;
use crate::store::{Found, Store};

/// The failures of an item that this machine's report shows: of units that some profile plans now, with this data and seed, and
/// that have no record. Failures of units that have one, or whose definition is no more, are removed; those on other data, which a
/// later run may bring again, are kept and not shown. Second are the lines of files that cannot be used.
///
/// # Errors
///
/// Those of the plan.
pub fn current<'a>(
    experiment: &'a Experiment,
    plans: &Plans<'a>,
    store: &Store,
) -> Result<(Vec<Failure>, Vec<String>)> {
    let (paper, item) = (&experiment.paper, &experiment.item);
    let (kept, damaged) = store.failures(paper, item);
    if kept.is_empty() {
        return Ok((Vec::new(), damaged));
    }
    let mut keys = BTreeSet::new();
    let mut is_defined = vec![false; kept.len()];
    let jobs = |profile| jobs(std::iter::once(experiment), &Selectors::default(), profile);
    for job in Profile::ALL.into_iter().flat_map(jobs) {
        let revision = job.protocol().revision();
        for (UnitFailure { parts, failure }, is_defined) in kept.iter().zip(&mut is_defined) {
            *is_defined |= failure.group == job.group.id
                && failure.method == job.variant.id
                && failure.seed == job.seed_index
                // Signals, device and seed are the failure's own: this run may use other data.
                && job.key_parts(&failure.signal, &parts.data, &parts.device, parts.seed, &revision)
                    == *parts;
        }
    }
    for planned in plans.of(experiment)?.iter() {
        let of_class = CLASSES.into_iter().filter_map(|class| planned.on(class));
        for planned in std::iter::once(planned.clone()).chain(of_class) {
            keys.extend(planned.units.iter().map(|unit| unit.parts.key()));
        }
    }
    let mut shown = Vec::new();
    for (failure, is_defined) in kept.into_iter().zip(is_defined) {
        let parts = &failure.parts;
        if !is_defined || matches!(store.find(paper, item, parts), Found::Record(_)) {
            store.forget_failure(paper, item, parts);
        } else if keys.contains(&parts.key()) {
            shown.push(failure.failure);
        }
    }
    Ok((shown, damaged))
}
