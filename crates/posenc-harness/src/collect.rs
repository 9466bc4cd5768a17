//! Collects raw records into the table of an item.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use posenc_experiments::plan::Job;
use posenc_experiments::record::item::Sources;
use posenc_experiments::record::picture::file_name;
use posenc_experiments::record::{Origin, Provenance, Row, Table, UnitRecord, is_clean};
use posenc_experiments::{Experiment, Group, Profile};

use crate::device::{CLASSES, Devices};
use crate::machine;
use crate::plan::{PlannedJob, Plans};
use crate::repository::Repository;
use crate::store::Store;
use crate::unit::{NO_DATA, Unit};

/// Results of an item on this machine.
#[derive(Default)]
pub struct Collected {
    pub table: Table,
    /// Where its pictures are.
    pub sources: Sources,
    pub provenance: Provenance,
    /// Pairs (group, variant) with units without a record, because the run was interrupted or a unit failed.
    pub incomplete: Vec<(String, String)>,
}

/// Collects the records that the store has for an experiment.
///
/// Each variant uses the largest profile whose units all have records, or else the available records of the largest profile with any. If
/// the experiment file states the number of signals, an incomplete full protocol is preferred to a smaller profile, unless that profile ran
/// the same units. Records of the device class that trains now are preferred to those of other classes.
pub fn collect<'a>(
    experiment: &'a Experiment,
    plans: &Plans<'a>,
    store: &Store,
    devices: &Devices,
    repository: &Repository,
) -> Result<Option<Collected>> {
    let planned = plans.of(experiment)?;
    let mut best: BTreeMap<(usize, usize), Results> = BTreeMap::new();
    let own = devices.training();
    let others = CLASSES.into_iter().filter(|class| *class != own);
    let classes: Vec<&'static str> = std::iter::once(own).chain(others).collect();
    let profiles = Profile::ALL.into_iter().rev();
    for (profile, class) in profiles.flat_map(|p| classes.iter().map(move |class| (p, *class))) {
        // Jobs of one variant that differ in the seed are collected together.
        let mut variants: BTreeMap<(usize, usize), Vec<PlannedJob<'_>>> = BTreeMap::new();
        for planned in planned.iter().filter(|planned| planned.job.profile == profile) {
            let planned = match planned.on(class) {
                Some(planned) => planned,
                // Protocols that run on the CPU alone have the same records for all classes.
                None if class == own => planned.clone(),
                None => continue,
            };
            let is_its_group = |g: &Group| g.id == planned.job.group.id;
            if let Some(group) = experiment.groups.iter().position(is_its_group) {
                let key = (group, planned.job.variant_index);
                variants.entry(key).or_default().push(planned);
            }
        }
        for (key, planned) in variants {
            if best.get(&key).is_some_and(|results| results.complete) {
                continue;
            }
            let results = results_of(&planned, store)?;
            let is_better = match best.get(&key) {
                None => results.complete || !results.rows.is_empty(),
                Some(part) => results.complete && !part.has_more_of_full_protocol(&results),
            };
            if is_better {
                best.insert(key, results);
            }
        }
    }
    if best.is_empty() {
        return Ok(None);
    }
    let commit = repository.commit();
    let mut all = Collected::default();
    let mut spent = Provenance::default();
    let mut commits = BTreeMap::new();
    for ((group, variant), results) in best {
        let group = &experiment.groups[group];
        let variant = &group.variants[variant].id;
        if !results.complete {
            all.incomplete.push((group.id.clone(), variant.clone()));
        }
        let own = results.commit().unwrap_or(&commit).clone();
        let names = results.rows.iter().map(|row| format!("{}/{}", row.group, row.method));
        commits.extend(names.map(|name| (name, own.clone())));
        let key = format!("{}/{variant}", group.id);
        spent.origins.extend(results.origin.map(|origin| (key, origin)));
        all.table.rows.extend(results.rows);
        all.table.pictures.extend(results.pictures);
        all.sources.extend(results.sources);
        let own = results.spent;
        spent.units += own.units;
        spent.seconds += own.seconds;
        spent.peak_memory = spent.peak_memory.max(own.peak_memory);
        spent.data.extend(own.data);
        spent.versions.extend(own.versions);
    }
    // If one commit measured all rows, the provenance names that commit, whatever is checked out now.
    let first = commits.values().next().cloned();
    let commit = first.filter(|one| commits.values().all(|own| own == one)).unwrap_or(commit);
    commits.retain(|_, own| *own != commit);
    all.provenance = Provenance {
        command: format!("cargo xtask reproduce {}", experiment.id()),
        commit,
        commits,
        machine: machine::processor(),
        cores: machine::cores(),
        seed: plans.seed,
        seconds: (spent.seconds * 100.0).round() / 100.0,
        ..spent
    };
    Ok(Some(all))
}

/// Stored results of one variant at one profile.
#[derive(Default)]
struct Results {
    complete: bool,
    /// Keys of the units found.
    found: BTreeSet<String>,
    /// Whether some of the units can be recorded as a part of the full protocol. This requires one repetition and a stated number of
    /// signals.
    is_divisible: bool,
    rows: Vec<Row>,
    pictures: Vec<Row>,
    sources: Sources,
    /// Sums and maxima over units.
    spent: Provenance,
    origin: Option<Origin>,
    /// Commits that the records of the units name.
    commits: BTreeSet<String>,
}

impl Results {
    /// The commit of the units. If there are several, prefers one that does not identify the source code.
    fn commit(&self) -> Option<&String> {
        self.commits.iter().find(|commit| !is_clean(commit)).or(self.commits.first())
    }

    /// Whether these are a part of the full protocol with units that `smaller` lacks.
    fn has_more_of_full_protocol(&self, smaller: &Results) -> bool {
        self.is_divisible && !self.found.is_subset(&smaller.found)
    }
}

/// Origin of the results of a variant; `planned` contains all jobs of the variant.
pub fn origin<'a>(planned: impl IntoIterator<Item = &'a PlannedJob<'a>>) -> Option<Origin> {
    let mut found: Option<Origin> = None;
    for PlannedJob { job, units, .. } in planned {
        if let Some(origin) = &mut found {
            origin.repetitions += 1;
        } else if let Some(parts) = units.first().map(|unit| &unit.parts) {
            found = Some(Origin {
                profile: job.recorded_profile,
                seed: parts.seed,
                repetitions: 1,
                signals: units.len(),
                specification: parts.specification.clone(),
                revisions: parts.revisions.clone(),
                data: parts.data.clone(),
            });
        }
    }
    found
}

/// Rows of a unit's record, restricted to the metrics that its group records.
pub fn rows(job: &Job<'_>, unit: &Unit, record: &UnitRecord) -> impl Iterator<Item = Row> {
    let values = record.values.iter().filter(|value| job.group.records(&value.metric));
    values.cloned().map(|value| Row {
        method: value.method.unwrap_or_else(|| job.variant.id.clone()),
        signal: value.signal.unwrap_or_else(|| unit.signal.clone()),
        seed: value.seed.unwrap_or(job.seed_index),
        x: value.x,
        y: value.y,
        unit: value.unit,
        ..row(job, record, &value.metric, value.value)
    })
}

/// A row of a unit without signal, abscissa and unit of measurement.
fn row(job: &Job<'_>, record: &UnitRecord, metric: &str, value: f64) -> Row {
    Row {
        seed: job.seed_index,
        profile: job.recorded_profile,
        device: record.device.clone(),
        data: record.data.clone(),
        ..Row::new(&job.group.id, &job.variant.id, metric, value)
    }
}

fn results_of(planned: &[PlannedJob<'_>], store: &Store) -> Result<Results> {
    let is_divisible = match planned {
        [one] => one.job.profile == Profile::Paper && one.job.group.signals().is_some(),
        _ => false,
    };
    let origin = origin(planned);
    let mut results = Results { complete: true, is_divisible, origin, ..Results::default() };
    for PlannedJob { job, units, .. } in planned {
        let experiment = job.experiment;
        for unit in units.iter() {
            let found = store.find(&experiment.paper, &experiment.item, &unit.parts);
            let Ok(record) = found else {
                results.complete = false;
                continue;
            };
            results.found.insert(unit.parts.key());
            let spent = &mut results.spent;
            spent.units += 1;
            spent.seconds += record.seconds;
            spent.peak_memory = spent.peak_memory.max(record.peak_memory);
            if record.data != NO_DATA {
                spent.data.insert(record.data.clone(), unit.parts.data.clone());
            }
            spent.versions.extend(record.versions.clone());
            let commit = Some(record.commit.clone()).filter(|commit| !commit.is_empty());
            results.commits.extend(commit);
            let folder = store.folder(&experiment.paper, &experiment.item);
            for stored in &record.pictures {
                let file = file_name(&stored.blake3);
                results.sources.insert(file.clone(), folder.join(&stored.file));
                results.pictures.push(Row {
                    signal: stored.signal.clone(),
                    x: Some(stored.width as f64),
                    y: Some(stored.height as f64),
                    unit: file,
                    ..row(job, &record, &stored.name, stored.psnr.unwrap_or(f64::NAN))
                });
            }
            results.rows.extend(rows(job, unit, &record));
        }
    }
    Ok(results)
}
