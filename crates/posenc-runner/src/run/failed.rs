//! Units that failed: which of them still count, and which are history.

use std::collections::BTreeSet;

use anyhow::Result;
use posenc_experiments::plan::jobs;
use posenc_experiments::record::Failure;
use posenc_experiments::schema::Protocol;
use posenc_experiments::selector::Selectors;
use posenc_experiments::{Experiment, Profile};

use super::data::DataSets;
use super::plan::expand;
use super::store::{Found, Store};
use crate::device::{CLASSES, CPU, may_leave_cpu};

/// The failures of an item that this machine's report shows: of units that some profile plans now, with this data and seed, and
/// that have no record. Failures of units that have one, or that no profile plans in any such way, are removed. Second are the lines
/// of files that cannot be used.
///
/// # Errors
///
/// Those of the plan.
pub fn current(
    experiment: &Experiment,
    store: &Store,
    data: &DataSets,
    seed: u64,
    published: &str,
) -> Result<(Vec<Failure>, Vec<String>)> {
    let (paper, item) = (&experiment.paper, &experiment.item);
    let (kept, damaged) = store.failures(paper, item);
    if kept.is_empty() {
        return Ok((Vec::new(), damaged));
    }
    let mut keys = BTreeSet::new();
    let mut definitions = BTreeSet::new();
    for profile in Profile::ALL {
        for class in CLASSES {
            let of = |protocol: &Protocol| if may_leave_cpu(protocol) { class } else { CPU };
            let all = jobs(std::iter::once(experiment), &Selectors::default(), profile);
            for planned in expand(all, data, published, seed, &of)? {
                for unit in planned.units {
                    keys.insert(unit.parts.key());
                    let parts = unit.parts;
                    definitions.insert((parts.identity, parts.specification, parts.epochs));
                }
            }
        }
    }
    let mut shown = Vec::new();
    for failure in kept {
        let parts = &failure.parts;
        let is_planned = keys.contains(&parts.key());
        let definition =
            (parts.identity.clone(), parts.specification.clone(), parts.epochs.clone());
        let is_history = !definitions.contains(&definition)
            || matches!(store.find(paper, item, parts), Found::Record(_));
        if is_history {
            store.forget_failure(paper, item, parts);
        } else if is_planned {
            shown.push(failure.failure);
        }
    }
    Ok((shown, damaged))
}
