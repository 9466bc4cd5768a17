//! Expands jobs to units with keys, and looks up their records.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use anyhow::{Result, bail};
use posenc_data::{Format, Identity};
use posenc_experiments::plan::{Job, NO_SIGNAL, jobs};
use posenc_experiments::record::is_dirty;
use posenc_experiments::schema::Data;
use posenc_experiments::selector::Selectors;
use posenc_experiments::{Catalog, Experiment, Profile};

use crate::data::DataSets;
use crate::device::CPU;
use crate::options::{Again, Places};
use crate::protocol::{self, Placement, Protocol};
use crate::store::{Reason, Store};
use crate::unit::{ALL_SIGNALS, NO_DATA, Unit};

#[derive(Clone)]
pub struct PlannedJob<'a> {
    pub job: Job<'a>,
    /// All its units. They share a checkpoint.
    pub units: Arc<[Unit]>,
    /// The units that this process runs, in the order of the plan.
    pub to_run: Vec<Unit>,
}

impl<'a> PlannedJob<'a> {
    /// A job whose units all run.
    pub fn new(job: Job<'a>, units: Vec<Unit>) -> Self {
        PlannedJob { job, to_run: units.clone(), units: units.into() }
    }

    /// The same job, which runs only these units.
    pub fn only(&self, to_run: Vec<Unit>) -> Self {
        PlannedJob { to_run, job: self.job.clone(), units: self.units.clone() }
    }

    /// The same units on another class of device; `None` if the protocol runs on the CPU alone.
    pub fn on(&self, class: &'static str) -> Option<Self> {
        if protocol::placement(self.job.protocol()) != Placement::Device {
            return None;
        }
        let on_class = |unit: &Unit| {
            let mut unit = unit.clone();
            class.clone_into(&mut unit.parts.device);
            unit
        };
        Some(PlannedJob::new(self.job.clone(), self.units.iter().map(on_class).collect()))
    }

    /// Restricts this process to the signals at these indices in their data set. Units that do not have a single signal are kept.
    pub fn restrict_to(&mut self, places: &Places) {
        self.to_run.retain(|unit| {
            [ALL_SIGNALS, NO_SIGNAL].contains(&unit.signal.as_str())
                || places.0.contains(&unit.signal_index)
        });
    }

    /// Whether the units are computed together, so that all their records come at the end.
    pub fn emits_as_batch(&self) -> bool {
        self.job.protocol().kind().emits_as_batch
    }
}

/// The jobs of an experiment at all profiles, smallest first. A group without a `long` profile of its own runs its `quick` one.
pub fn all_jobs(experiment: &Experiment) -> Vec<Job<'_>> {
    let at = |profile| {
        let jobs = jobs(std::iter::once(experiment), &Selectors::default(), profile);
        jobs.into_iter().filter(move |job| job.profile == profile)
    };
    Profile::ALL.into_iter().flat_map(at).collect()
}

/// The data set of a job and the number of signals that its group needs, if the group picks signals that the set lacks. The user's own set
/// may be too small.
fn lacks_signals(job: &Job<'_>, data: &DataSets) -> Option<(Arc<Identity>, usize)> {
    let Data { set, pick: Some(places), .. } = job.group.data.as_ref()? else { return None };
    // A set of files has no signals. Errors of other sets are reported when they are read.
    let Ok(None) = data.files(set) else { return None };
    let identity = data.identity(set).ok()?;
    let limit = job.resolved.signals.unwrap_or(usize::MAX);
    let needed = places.iter().take(limit).max().map_or(0, |most| most.saturating_add(1));
    (needed > identity.signals.len()).then_some((identity, needed))
}

/// Removes jobs whose groups pick signals that the user's own data set lacks, and returns one line per group. For other data sets this is
/// an error in the experiment file, which [`expand`] reports.
pub fn leave_out_absent_picks(jobs: &mut Vec<Job<'_>>, data: &DataSets) -> Vec<String> {
    let mut lines = Vec::new();
    jobs.retain(|job| {
        let Some((identity, needed)) = lacks_signals(job, data) else { return true };
        if !["user:", "other:"].iter().any(|own| identity.label.starts_with(own)) {
            return true;
        }
        let line = format!(
            "not run: {}/{}: needs at least {needed} signals of `{}`, and {} has {}",
            job.experiment.id(),
            job.group.id,
            job.group.data.as_ref().map_or("", |data| &data.set),
            identity.label,
            identity.signals.len()
        );
        if !lines.contains(&line) {
            lines.push(line);
        }
        false
    });
    lines
}

/// Groups (`paper/item/group`) of jobs that read a data set.
pub fn readers(jobs: &[Job<'_>], set: &str) -> Vec<String> {
    let reads = |job: &&Job<'_>| job.group.data.as_ref().is_some_and(|data| data.set == set);
    let group = |job: &Job<'_>| format!("{}/{}", job.experiment.id(), job.group.id);
    let mut groups: Vec<String> = jobs.iter().filter(reads).map(group).collect();
    groups.dedup();
    groups
}

/// Expands jobs to units, also those that this build cannot run.
///
/// `published` is the checksum of the published values, which the errata checks read; `class` is the class of device that
/// trains.
pub fn expand<'a>(
    jobs: Vec<Job<'a>>,
    data: &DataSets,
    published: &str,
    seed: u64,
    class: &'static str,
) -> Result<Vec<PlannedJob<'a>>> {
    let mut planned = Vec::new();
    for job in jobs {
        let implementation = protocol::of(job.protocol()).ok();
        let files = match &job.group.data {
            Some(set) => data.files(&set.set)?,
            None => None,
        };
        if let Some(set) = &job.group.data {
            if let Some(own) = implementation {
                check_format(&job, &set.set, own.reads(), files.as_deref().map(|f| f.format))?;
            }
            if files.is_some() && (set.pick.is_some() || set.held_out.is_some()) {
                bail!(
                    "{}: `{}` is a set of files, which is read as a whole; remove `data.pick` and `data.held_out`",
                    job.path(),
                    set.set
                );
            }
        }
        let weights = match job.group.data.as_ref().and_then(|data| data.weights.as_ref()) {
            Some(set) => weights_of(&job, set, data, implementation)?,
            None => None,
        };
        let revision = job.protocol().revision();
        let device = protocol::placement(job.protocol()).class(class);
        let unit = |signal: &str, signal_index, sha: &str, label: &str| Unit {
            signal: signal.to_owned(),
            signal_index,
            parts: job.key_parts(signal, sha, device, seed, &revision),
            data: label.to_owned(),
        };
        let units = match &job.group.data {
            Some(_) if let Some(files) = &files => match &files.found {
                Ok(found) => {
                    let sha256 = match &weights {
                        Some(weights) => format!("{} {weights}", found.sha256),
                        None => found.sha256.clone(),
                    };
                    vec![unit(ALL_SIGNALS, 0, &sha256, &found.label)]
                }
                // Missing files have no replacement.
                Err(_) => continue,
            },
            None if job.protocol().kind().reads_published => {
                vec![unit(NO_SIGNAL, 0, published, NO_DATA)]
            }
            None => vec![unit(NO_SIGNAL, 0, NO_DATA, NO_DATA)],
            Some(Data { set, held_out: Some(other), .. }) => {
                let (own, measured) = (data.identity(set)?, data.identity(other)?);
                // Values are measured on `held_out`. If only the other set is replaced, the label names what replaces it.
                let only_own = own.label != *set && measured.label == *other;
                let label = if only_own { &own.label } else { &measured.label };
                vec![unit(ALL_SIGNALS, 0, &format!("{} {}", own.sha256, measured.sha256), label)]
            }
            Some(set) => {
                let identity = data.identity(&set.set)?;
                let limit = job.resolved.signals.unwrap_or(usize::MAX);
                let all = identity.signals.len();
                let found = set.pick.as_ref().map_or(all, Vec::len);
                if let Some(stated) = &set.signals
                    && identity.label == set.set
                    && found != stated.count
                {
                    bail!(
                        "{}: `data.signals` is {} {}, but the group runs {found}; correct it",
                        job.path(),
                        stated.count,
                        stated.noun
                    );
                }
                let places = set.pick.clone().unwrap_or_else(|| (0..all).collect());
                let one = |place: usize| match identity.signals.get(place) {
                    Some(name) => Ok(unit(name, place, &identity.sha256, &identity.label)),
                    None => bail!(
                        "{}: `data.pick` names signal {place} of `{}`, which has {all} (from 0)",
                        job.path(),
                        set.set
                    ),
                };
                places.into_iter().take(limit).map(one).collect::<Result<_>>()?
            }
        };
        planned.push(PlannedJob::new(job, units));
    }
    Ok(planned)
}

/// The jobs that may have records: those of every profile, on the CPU. Each experiment is planned once.
pub struct Plans<'a> {
    pub catalog: &'a Catalog,
    pub data: &'a DataSets,
    /// Checksum of the published values.
    pub published: String,
    pub seed: u64,
    planned: Mutex<BTreeMap<String, Arc<Vec<PlannedJob<'a>>>>>,
}

impl<'a> Plans<'a> {
    /// Creates plans; each experiment is planned on first use.
    pub fn new(catalog: &'a Catalog, data: &'a DataSets, published: String, seed: u64) -> Self {
        Plans { catalog, data, published, seed, planned: Mutex::default() }
    }

    /// Whether this build can run all groups of an experiment.
    pub fn is_whole(&self, experiment: &Experiment) -> bool {
        experiment.groups.iter().all(|group| {
            let resolved = Profile::ALL.into_iter().filter_map(|p| group.resolved(p, 0)).next();
            resolved.is_none_or(|resolved| protocol::is_built(&resolved.protocol))
        })
    }

    /// The jobs of an experiment at all profiles, smallest profile first. Groups that pick signals that the user's smaller data set lacks
    /// are left out, because they ran on other data or not at all.
    pub fn of(&self, experiment: &'a Experiment) -> Result<Arc<Vec<PlannedJob<'a>>>> {
        let lock = || self.planned.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let id = experiment.id();
        if let Some(planned) = lock().get(&id) {
            return Ok(planned.clone());
        }
        let mut all = all_jobs(experiment);
        all.retain(|job| {
            protocol::is_built(job.protocol()) && lacks_signals(job, self.data).is_none()
        });
        let planned = Arc::new(expand(all, self.data, &self.published, self.seed, CPU)?);
        lock().insert(id, planned.clone());
        Ok(planned)
    }
}

/// Checksum of the pretrained weights or word vectors of a model; `None` if they are missing.
fn weights_of(
    job: &Job<'_>,
    set: &str,
    data: &DataSets,
    implementation: Option<&dyn Protocol>,
) -> Result<Option<String>> {
    let files = data.files(set)?;
    if let Some(wanted) = implementation.map(Protocol::weights)
        && files.as_ref().is_none_or(|files| files.format != wanted)
    {
        bail!(
            "{}: `data.weights: {set}` is not a set of {}; data/manifest.yaml lists the sets",
            job.path(),
            wanted.name()
        );
    }
    Ok(files.and_then(|files| Some(files.found.as_ref().ok()?.sha256.clone())))
}

/// Rejects a data set whose format differs from the one that the protocol reads.
fn check_format(
    job: &Job<'_>,
    set: &str,
    wanted: Option<Format>,
    held: Option<Format>,
) -> Result<()> {
    let name = |format: Option<Format>| format.map_or("images or clips", Format::name);
    if wanted == held {
        return Ok(());
    }
    bail!(
        "{}: `data.set: {set}` contains {}, but `{}` reads {}; data/manifest.yaml lists the sets",
        job.path(),
        name(held),
        job.protocol().name(),
        name(wanted)
    )
}

/// The units of a job that must run, with the reason. With `explain`, older records are read to explain why.
pub fn lookup(
    planned: &PlannedJob<'_>,
    store: &Store,
    again: Again,
    explain: bool,
) -> Vec<(Unit, Reason)> {
    let (paper, item) = (&planned.job.experiment.paper, &planned.job.experiment.item);
    let reason = |unit: &Unit| {
        if again == Again::All {
            return Some(Reason::Forced);
        }
        let found = match explain {
            true => store.explain(paper, item, &unit.parts),
            false => store.find(paper, item, &unit.parts),
        };
        match found {
            Ok(record) if again == Again::Uncommitted && is_dirty(&record.commit) => {
                Some(Reason::Uncommitted)
            }
            found => found.err(),
        }
    };
    planned.to_run.iter().filter_map(|unit| Some((unit.clone(), reason(unit)?))).collect()
}
