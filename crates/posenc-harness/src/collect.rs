//! Collects raw records into the table of an item.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

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
    let mut best: BTreeMap<(usize, usize), Results<'_>> = BTreeMap::new();
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
            let results = Results::find(planned, store);
            let is_better = match best.get(&key) {
                None => results.complete || !results.records.is_empty(),
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
    let (mut all, mut commits) = (Collected::default(), BTreeMap::new());
    let mut provenance = Provenance::default();
    for ((group, variant), results) in best {
        let group = &experiment.groups[group];
        let variant = &group.variants[variant].id;
        if !results.complete {
            all.incomplete.push((group.id.clone(), variant.clone()));
        }
        let origin = origin(&results.planned);
        provenance.origins.extend(origin.map(|own| (format!("{}/{variant}", group.id), own)));
        let own = results.commit().unwrap_or(&commit).clone();
        for (place, unit, record) in results.records {
            let job = &results.planned[place].job;
            provenance.units += 1;
            provenance.seconds += record.seconds;
            provenance.peak_memory = provenance.peak_memory.max(record.peak_memory);
            if record.data != NO_DATA {
                provenance.data.insert(record.data.clone(), unit.parts.data.clone());
            }
            all.pictures(job, &record, &store.folder(&experiment.paper, &experiment.item));
            for row in rows(job, &unit, &record) {
                commits.insert(format!("{}/{}", row.group, row.method), own.clone());
                all.table.rows.push(row);
            }
            provenance.versions.extend(record.versions);
        }
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
        seconds: (provenance.seconds * 100.0).round() / 100.0,
        ..provenance
    };
    Ok(Some(all))
}

impl Collected {
    /// Adds the pictures of a unit, whose files are in a folder.
    fn pictures(&mut self, job: &Job<'_>, record: &UnitRecord, folder: &Path) {
        for stored in &record.pictures {
            let file = file_name(&stored.blake3);
            self.sources.insert(file.clone(), folder.join(&stored.file));
            self.table.pictures.push(Row {
                signal: stored.signal.clone(),
                x: Some(stored.width as f64),
                y: Some(stored.height as f64),
                unit: file,
                ..row(job, record, &stored.name, stored.psnr.unwrap_or(f64::NAN))
            });
        }
    }
}

/// Stored results of one variant at one profile.
struct Results<'a> {
    planned: Vec<PlannedJob<'a>>,
    /// The units found, with the place of their job.
    records: Vec<(usize, Unit, Box<UnitRecord>)>,
    complete: bool,
}

impl<'a> Results<'a> {
    fn find(planned: Vec<PlannedJob<'a>>, store: &Store) -> Self {
        let mut results = Results { planned, records: Vec::new(), complete: true };
        for (place, PlannedJob { job, units, .. }) in results.planned.iter().enumerate() {
            for unit in units.iter() {
                match store.find(&job.experiment.paper, &job.experiment.item, &unit.parts) {
                    Ok(record) => results.records.push((place, unit.clone(), record)),
                    Err(_) => results.complete = false,
                }
            }
        }
        results
    }

    /// The commit of the units. If there are several, prefers one that does not identify the source code.
    fn commit(&self) -> Option<&String> {
        let all: BTreeSet<&String> = self.records.iter().map(|(.., own)| &own.commit).collect();
        let known = || all.iter().copied().filter(|commit| !commit.is_empty());
        known().find(|commit| !is_clean(commit)).or(known().next())
    }

    /// Whether these are a part of the full protocol with units that `smaller` lacks. A part can be recorded if there is one repetition and
    /// a stated number of signals.
    fn has_more_of_full_protocol(&self, smaller: &Results<'_>) -> bool {
        let [PlannedJob { job, .. }] = &self.planned[..] else { return false };
        let keys = |own: &Results<'_>| -> BTreeSet<String> {
            own.records.iter().map(|(_, unit, _)| unit.parts.key()).collect()
        };
        job.profile == Profile::Paper
            && job.group.signals().is_some()
            && !keys(self).is_subset(&keys(smaller))
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
