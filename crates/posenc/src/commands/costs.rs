//! The report's cost page: estimated costs at the papers' scale, next to recorded times.
//!
//! All inputs are definitions, the manifest and the reference records, and none depends on the machine. The report's cost page is
//! therefore the same on all machines, byte for byte.

use anyhow::Result;
use posenc_data::Manifest;
use posenc_experiments::plan::{Job, jobs};
use posenc_experiments::record::ItemRecord as Record;
use posenc_experiments::selector::Selectors;
use posenc_experiments::{Catalog, Experiment, Profile};
use posenc_report::Records;
use posenc_report::costs::{Check, Costs, ItemCosts};

use posenc_harness::protocol::{self, Estimate, Placement, Workload};
use posenc_harness::repository::Repository;
use posenc_harness::shape::SignalShape;

/// Assumptions of the report's cost page: a machine like that of the reference, a small cluster of them, and a GPU at the lowest rate
/// that an NVIDIA H100 reached with the deep networks of `trading` Table 1 (docs/SPEED.md).
const CORES: usize = 2;
const NODES: usize = 8;
const GPU_RATE: f64 = 16e12;

pub fn of_reference(
    repository: &Repository,
    catalog: &Catalog,
    reference: &Records,
) -> Result<Costs> {
    let mut costs = Costs {
        profile: Profile::Paper,
        cores: CORES,
        nodes: NODES,
        gpu_rate: GPU_RATE,
        items: Vec::new(),
    };
    let manifest = Manifest::read(&repository.manifest())?;
    // Items that only compare records of others have no groups and cost nothing.
    for experiment in catalog.experiments.iter().filter(|e| !e.groups.is_empty()) {
        let mut own = of_item(experiment, catalog, costs.profile, &manifest)?;
        let key = (experiment.paper.clone(), experiment.item.clone());
        if let Some(record) = reference.items.get(&key) {
            own.check = check(experiment, record, &manifest)?;
            own.rate = rate(record);
        }
        costs.items.push(own);
    }
    Ok(costs)
}

fn of_item(
    experiment: &Experiment,
    catalog: &Catalog,
    profile: Profile,
    manifest: &Manifest,
) -> Result<ItemCosts> {
    let (paper, item) = (&experiment.paper, &experiment.item);
    let name = catalog.papers.iter().find(|p| p.key == *paper).and_then(|p| {
        let described = p.items.iter().find(|i| i.item == *item)?;
        Some(described.name.clone())
    });
    let mut costs = ItemCosts {
        paper: paper.clone(),
        item: item.clone(),
        name: name.unwrap_or_else(|| experiment.title.clone()),
        ..ItemCosts::default()
    };
    for group in &experiment.groups {
        if let Some(reason) = group.refused(profile) {
            costs.refused.push((group.id.clone(), reason.to_owned()));
        } else if let Some(data) = &group.data
            && manifest.file_set(&data.set).is_some()
        {
            costs.needs.push((group.id.clone(), data.set.clone()));
        }
    }
    for job in jobs(std::iter::once(experiment), &Selectors::default(), profile) {
        let units = units(&job, manifest)?;
        let estimate = estimate(&job, manifest, units);
        costs.units += units;
        costs.seconds += estimate.seconds;
        costs.operations += estimate.operations;
        costs.longest = costs.longest.max(estimate.seconds);
        // Independent of the features of this build: what some build can train on a GPU.
        if protocol::placement(job.protocol()) != Placement::Cpu {
            costs.on_device += estimate.seconds;
            costs.device_operations += estimate.operations;
        } else {
            costs.longest_on_cpu = costs.longest_on_cpu.max(estimate.seconds);
        }
    }
    Ok(costs)
}

/// Mean of the recorded rates, in FLOP/s.
fn rate(record: &Record) -> Option<f64> {
    let rates = record.table.rows.iter().filter(|r| r.metric == "rate" && r.unit == "GFLOP/s");
    let (sum, count) = rates.fold((0.0, 0.0), |(sum, count), r| (sum + r.value, count + 1.0));
    (count > 0.0).then(|| 1e9 * sum / count)
}

/// Number of units of a job, given the data sets of the manifest.
fn units(job: &Job<'_>, manifest: &Manifest) -> Result<usize> {
    Ok(match &job.group.data {
        Some(data) if data.held_out.is_none() && manifest.file_set(&data.set).is_none() => {
            let all = match &data.pick {
                Some(places) => places.len(),
                None => manifest.get(&data.set)?.count,
            };
            all.min(job.resolved.signals.unwrap_or(usize::MAX))
        }
        _ => 1,
    })
}

/// Measured seconds of a record, and the estimate for the same units; `None` if the record's number of units differs from that of
/// the definitions.
fn check(experiment: &Experiment, record: &Record, manifest: &Manifest) -> Result<Option<Check>> {
    let mut check = Check { units: 0, measured: record.provenance.seconds, estimated: 0.0 };
    let rows = &record.table.rows;
    for profile in Profile::ALL {
        for job in jobs(std::iter::once(experiment), &Selectors::default(), profile) {
            let (group, variant) = (&job.group.id, &job.variant.id);
            let origin = record.provenance.origins.get(&format!("{group}/{variant}"));
            // Rows may have other method names; all rows of the group then have the same profile.
            let of_method = rows.iter().find(|r| r.group == *group && r.method == *variant);
            let row = of_method.or_else(|| rows.iter().find(|r| r.group == *group));
            let recorded = origin.map(|o| o.profile).or(row.map(|r| r.profile));
            // Profiles with the same protocol share records: count each job only at its recorded profile.
            if recorded != Some(profile) || [job.profile, job.recorded_profile] != [profile; 2] {
                continue;
            }
            let units = match origin {
                Some(origin) if job.seed_index >= origin.repetitions as u64 => continue,
                Some(origin) => origin.signals,
                None => units(&job, manifest)?,
            };
            check.units += units;
            check.estimated += estimate(&job, manifest, units).seconds;
        }
    }
    Ok((check.units == record.provenance.units && check.units > 0).then_some(check))
}

fn estimate(job: &Job<'_>, manifest: &Manifest, units: usize) -> Estimate {
    Workload { job, shape: SignalShape::of(job, manifest), units }.estimate()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use posenc_experiments::record::Row;
    use posenc_protocols::KINDS;
    use posenc_protocols::network_nd::NetworkNd;

    use super::*;

    /// Measured and estimated seconds of a group's units.
    #[derive(Default)]
    struct Times {
        measured: f64,
        estimated: f64,
    }

    /// The kind of protocol; for `network-nd` with encoding and depth, which determine the arithmetic.
    fn arithmetic(job: &Job<'_>) -> String {
        let name = job.protocol().name();
        let Some(settings) = job.protocol().as_settings::<NetworkNd>() else {
            return name.to_owned();
        };
        let swept = settings.sweep.as_ref().map_or(1, |sweep| sweep.values.0.len());
        let depth = (0..swept).map(|index| settings.at(index).0.depth).max().unwrap_or(0);
        let depth = if depth == 0 { "linear" } else { "deep" };
        format!("{name}, {:?}, {depth}", settings.encoding).to_lowercase()
    }

    /// Adds the times of a record by kind of protocol, for variants with a recorded time of each unit.
    fn times(
        experiment: &Experiment,
        record: &Record,
        manifest: &Manifest,
        by_kind: &mut BTreeMap<String, Vec<(String, Times)>>,
    ) {
        let mut by_group: BTreeMap<&str, (String, Times)> = BTreeMap::new();
        for profile in Profile::ALL {
            for job in jobs(std::iter::once(experiment), &Selectors::default(), profile) {
                let of_unit = |row: &&Row| {
                    row.group == job.group.id
                        && row.method == job.variant.id
                        && row.seed == job.seed_index
                        && row.profile == profile
                        && ["time", "time_shared"].contains(&row.metric.as_str())
                };
                let rows: Vec<_> = record.table.rows.iter().filter(of_unit).collect();
                if [job.profile, job.recorded_profile] != [profile; 2] || rows.is_empty() {
                    continue;
                }
                let signals: BTreeSet<_> = rows.iter().map(|row| &row.signal).collect();
                let (kind, times) = by_group.entry(&job.group.id).or_default();
                *kind = arithmetic(&job);
                times.measured += rows.iter().map(|row| row.value).sum::<f64>();
                times.estimated += estimate(&job, manifest, signals.len()).seconds;
            }
        }
        for (group, (kind, times)) in by_group {
            let group = format!("{}/{group}", experiment.id());
            by_kind.entry(kind).or_default().push((group, times));
        }
    }

    /// Minimum seconds at which the error of an estimate is distinguishable from the start-up time of a program.
    const LEAST: f64 = 5.0;

    /// Kinds without recorded times to compare an estimate with, and the reason.
    const UNTESTED: &[(&str, &str)] = &[
        ("blending-weights", "all records take less than 5 s"),
        ("box-positions", "all records take less than 5 s"),
        ("complexity", "all records take less than 5 s"),
        ("distance-map", "its item trains networks as well, whose times are tested"),
        ("embedding", "all records take less than 5 s"),
        ("errata", "all records take less than 5 s"),
        ("kronecker-rank", "all records take less than 5 s"),
        ("memorization", "all records take less than 5 s"),
        ("network-nd, simple, linear", "all records take less than 5 s"),
        ("pixel-entropies", "its item trains models as well, whose times are tested"),
        ("position-encoding", "all records take less than 5 s"),
        ("psnr-prediction", "its record lacks the numbers of neighbors that were added last"),
        ("separable-solution", "all records take less than 5 s"),
        ("similarity", "all records take less than 5 s"),
        ("singular-values", "all records take less than 5 s"),
        ("widget-captioning", "the record has a forward pass on a few screens"),
    ];

    /// Catches estimates that ignore what determines the time, such as the number of layers. Recorded times come from machines
    /// under different load, so the median over groups must be within a factor of two.
    #[test]
    fn estimates_are_near_recorded_times() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let repository = Repository::find(Some(&root)).unwrap();
        let catalog = Catalog::read(repository.root(), KINDS).unwrap();
        let reference = Records::read(&repository.record(), &catalog).unwrap();
        let manifest = Manifest::read(&repository.manifest()).unwrap();
        let mut by_kind: BTreeMap<String, Vec<(String, Times)>> = BTreeMap::new();
        for experiment in &catalog.experiments {
            let key = (experiment.paper.clone(), experiment.item.clone());
            let Some(record) = reference.items.get(&key) else { continue };
            let before: usize = by_kind.values().map(Vec::len).sum();
            times(experiment, record, &manifest, &mut by_kind);
            let has_times = by_kind.values().map(Vec::len).sum::<usize>() > before;
            // Without times of units, the time of the whole item counts for its kinds together.
            if !has_times && let Some(check) = check(experiment, record, &manifest).unwrap() {
                let kinds: BTreeSet<_> =
                    experiment.groups.iter().filter_map(|g| Some(g.kind()?.name)).collect();
                let kinds = kinds.into_iter().collect::<Vec<_>>().join(" + ");
                let times = Times { measured: check.measured, estimated: check.estimated };
                by_kind.entry(kinds).or_default().push((experiment.id(), times));
            }
        }
        let mut tested = BTreeSet::new();
        for (kinds, groups) in &by_kind {
            let fit = groups.iter().filter(|(_, times)| times.measured >= LEAST);
            let mut ratios: Vec<(f64, &str)> =
                fit.map(|(name, t)| (t.measured / t.estimated, name.as_str())).collect();
            ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
            let middle = [ratios.len().wrapping_sub(1) / 2, ratios.len() / 2];
            let [Some((low, _)), Some((high, _))] = middle.map(|place| ratios.get(place)) else {
                continue;
            };
            let median = (low * high).sqrt();
            println!("{kinds}: {median:.2} times the estimate, median of {} groups", ratios.len());
            assert!((0.5..=2.0).contains(&median), "{kinds}: {ratios:?}");
            tested.insert(kinds.clone());
            tested.extend(kinds.split(" + ").map(str::to_owned));
            tested.extend(kinds.split(", ").next().map(str::to_owned));
        }
        let all = by_kind.keys().cloned().chain(KINDS.names().map(str::to_owned));
        for kind in all.filter(|kind| !tested.contains(kind)) {
            let is_listed = |known: &&(&str, &str)| kind.split(" + ").any(|own| own == known.0);
            assert!(UNTESTED.iter().any(|known| is_listed(&known)), "no recorded time for {kind}");
        }
    }
}
