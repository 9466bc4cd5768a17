//! Stored failures of units: which ones still apply, and which ones are obsolete.

use std::collections::BTreeSet;

use anyhow::Result;
use posenc_experiments::Experiment;
use posenc_experiments::record::{Failure, UnitFailure};

use crate::plan::{PlannedJob, Plans, all_jobs, defines};
use crate::store::{Found, Store};

/// Returns the failures of an item that the report of this machine shows, and one message for each unusable file.
///
/// A failure is shown if some profile plans its unit with the current data and seed, and the unit has no record. Failures of units that
/// have a record, or that are no longer defined, are removed. Failures on other data are kept but not shown, because a later run may use
/// that data again.
///
/// # Errors
///
/// Errors of the plan.
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
    for planned in plans.of(experiment)?.iter().flat_map(PlannedJob::on_all_devices) {
        keys.extend(planned.units.iter().map(|unit| unit.parts.key()));
    }
    let jobs = all_jobs(experiment);
    let mut shown = Vec::new();
    for UnitFailure { parts, failure } in kept {
        let name = (&*failure.group, &*failure.method, failure.seed);
        let is_defined = jobs.iter().any(|job| defines(job, name, &failure.signal, &parts));
        if !is_defined || matches!(store.find(paper, item, &parts), Found::Record(_)) {
            store.forget_failure(paper, item, &parts);
        } else if keys.contains(&parts.key()) {
            shown.push(failure);
        }
    }
    Ok((shown, damaged))
}
