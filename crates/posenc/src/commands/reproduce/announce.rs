//! What is said before anything runs.

use anyhow::Result;
use posenc_experiments::plan::Job;
use posenc_experiments::schema::Variant;
use posenc_experiments::selector::Selectors;
use posenc_experiments::{Catalog, Profile};

use posenc_harness::data::DataSets;
use posenc_harness::device::{CPU, Devices};
use posenc_harness::protocol::{self, Placement};
use posenc_harness::queue::Work;

/// One line per group that was asked for and does not run at this profile.
pub fn refusals(catalog: &Catalog, selectors: &Selectors, profile: Profile) {
    for experiment in &catalog.experiments {
        for group in &experiment.groups {
            let is_selected = |v: &Variant| {
                selectors.matches(&experiment.paper, &experiment.item, &group.id, &v.id)
            };
            if let Some(reason) = group.refused(profile)
                && group.variants.iter().any(is_selected)
            {
                eprintln!(
                    "not run at `{profile}`: {}/{}: {}",
                    experiment.id(),
                    group.id,
                    reason.trim()
                );
            }
        }
    }
}

/// One line per data set that is not the paper's own, and per group that lacks its files.
pub fn data_sets(selected: &[Job<'_>], data: &DataSets) -> Result<()> {
    let mut seen = Vec::new();
    for set in selected.iter().filter_map(|j| j.group.data.as_ref()) {
        if seen.contains(&&set.set) {
            continue;
        }
        seen.push(&set.set);
        if let Some(files) = data.files(&set.set)? {
            match &files.found {
                Ok(found) => found.warnings.iter().for_each(|w| eprintln!("note: {w}")),
                Err(absence) => {
                    let lacking =
                        |j: &&Job<'_>| j.group.data.as_ref().is_some_and(|d| d.set == set.set);
                    let mut groups: Vec<String> = (selected.iter().filter(lacking))
                        .map(|j| format!("{}/{}", j.experiment.id(), j.group.id))
                        .collect();
                    groups.dedup();
                    eprintln!("not run: {}: {absence}", groups.join(", "));
                }
            }
            continue;
        }
        for warning in &data.identity(&set.set)?.warnings {
            eprintln!("note: {warning}");
        }
    }
    Ok(())
}

/// What trains, where that is not the CPU.
pub fn devices(work: &[Work<'_>], devices: &Devices) {
    if work.iter().any(|w| w.units.iter().any(|unit| unit.parts.device != CPU)) {
        eprintln!("device: training on {}", devices.header());
    }
    if devices.training() != CPU
        && work.iter().any(|w| protocol::placement(w.job.protocol()) == Placement::CpuInThisBuild)
    {
        eprintln!(
            "note: attention models train on the CPU in this build; POSENC_WGPU=attention before the command builds \
             them for wgpu, too"
        );
    }
}
