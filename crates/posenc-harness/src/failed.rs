//! Units that failed: which of them still count, and which are history.

use std::collections::BTreeSet;

use anyhow::Result;
use posenc_experiments::Experiment;
use posenc_experiments::record::{Failure, UnitFailure};

use crate::plan::{PlannedJob, Plans, all_jobs, defines};
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
