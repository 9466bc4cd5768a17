//! `verify`: repeats recorded units and compares every bit of the results.
//!
//! Profile, seed and device of each method come from the record. A method whose definition, revisions or data differ from those of the
//! record does not run and is listed; with `--all`, it counts as different. One whose data or device is missing here is skipped.

use std::collections::{BTreeMap, HashSet};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use posenc_experiments::plan::{Job, NO_SIGNAL, jobs};
use posenc_experiments::record::{Origin, Provenance, Row, Table, is_of_machine};
use posenc_experiments::selector::Selectors;
use posenc_experiments::verdict::show;
use posenc_experiments::{Catalog, Experiment, Group, Profile};
use posenc_math::random::{stream, uniform_vector};

use super::source::Source;
use crate::arguments::Verify;
use posenc_harness::collect;
use posenc_harness::data::{self, DataSets};
use posenc_harness::device::{CPU, Devices, class_of};
use posenc_harness::interrupts::{self, Interrupts};
use posenc_harness::options::parse_selectors;
use posenc_harness::plan::{PlannedJob, expand};
use posenc_harness::repository::Repository;
use posenc_harness::run_env::{RunEnv, keep};
use posenc_harness::store::Store;
use posenc_harness::timings::Timings;
use posenc_harness::unit::Unit;
use posenc_harness::{executor, machine};
use posenc_protocols::KINDS;

/// Units with a longer [`Timings::rank`], in seconds on one core, are sampled only if there are too few others.
const CHEAP: f64 = 5.0;

/// A variant with results in a record.
struct Method<'a> {
    experiment: &'a Experiment,
    group: &'a Group,
    variant: usize,
    profile: Profile,
    seed: u64,
    /// Device and data as the record names them.
    device: String,
    data: String,
    /// `None` in older records, whose definitions cannot be compared.
    origin: Option<Origin>,
}

/// Why a method is not repeated.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Refusal {
    /// Its data or device is missing here.
    Absent(String),
    /// It is no longer what was recorded.
    Changed(String),
}

/// A job that can be repeated, with its data.
struct Repeated {
    planned: PlannedJob<'static>,
    seed: u64,
    data: &'static DataSets,
}

/// Runs the verb: status 1 if a value differs, a unit fails or, with `--all`, a method has changed.
pub fn verify(repository: &Repository, options: &Verify) -> Result<ExitCode> {
    let catalog = keep(Catalog::with(repository.root(), &options.include.include, KINDS)?);
    let selectors = parse_selectors(catalog, &options.selectors)?;
    let reference = || repository.record().display().to_string();
    let source = Source::open(&options.from.clone().unwrap_or_else(reference))?;
    // Names of methods by reason.
    let mut refused: BTreeMap<Refusal, Vec<String>> = BTreeMap::new();
    let not_here = || Refusal::Changed("not defined here".to_owned());
    let mut records = Vec::new();
    let mut methods = Vec::new();
    for (paper, item) in source.items()? {
        let Some(experiment) = catalog.experiment(&paper, &item) else {
            if selectors.matches(&paper, &item, "", "") {
                refused.entry(not_here()).or_default().push(format!("{paper}/{item}"));
            }
            continue;
        };
        let Some((table, provenance)) = source.read(&paper, &item)? else { continue };
        for (group, method) in lost(experiment, &selectors, &provenance) {
            let name = format!("{paper}/{item}/{group}/{method}");
            refused.entry(not_here()).or_default().push(name);
        }
        let own = methods_of(experiment, &selectors, &table, &provenance);
        if !own.is_empty() {
            methods.extend(own);
            records.push((experiment, table, provenance.machine));
        }
    }
    let on_other_devices = methods.iter().any(|method| class_of(&method.device) != CPU);
    let devices = if on_other_devices { Devices::open(&options.device)? } else { Devices::cpu() };
    let devices = keep(devices);
    let mut rounds: BTreeMap<(u64, Profile, &str), Vec<Method<'_>>> = BTreeMap::new();
    for method in methods {
        rounds
            .entry((method.seed, method.profile, class_of(&method.device)))
            .or_default()
            .push(method);
    }
    let mut all: Vec<Repeated> = Vec::new();
    let mut sets: Option<(u64, &'static DataSets)> = None;
    for ((seed, profile, class), methods) in rounds {
        let data = match sets.filter(|(of_seed, _)| *of_seed == seed) {
            Some((_, data)) => data,
            None => keep(DataSets::new(data::source(repository, &options.data)?, seed)),
        };
        sets = Some((seed, data));
        let mut selected = jobs(catalog.experiments.iter(), &Selectors::default(), profile);
        selected.retain(|job| methods.iter().any(|method| method.is_of(job)));
        let class = if class == CPU { CPU } else { devices.training() };
        let planned = expand(selected, data, &repository.published_checksum(), seed, class)?;
        for method in methods {
            let own: Vec<&PlannedJob<'_>> =
                planned.iter().filter(|p| method.is_of(&p.job)).collect();
            match method.refusal(&own, data, devices)? {
                Some(refusal) => refused.entry(refusal).or_default().push(method.name()),
                None => {
                    let own = own.into_iter().cloned();
                    all.extend(own.map(|planned| Repeated { planned, seed, data }));
                }
            }
        }
    }
    for (refusal, names) in &refused {
        let (what, why) = match refusal {
            Refusal::Absent(why) => ("skipped", why),
            Refusal::Changed(why) => ("changed", why),
        };
        println!("{what}: {}: {why}", names.join(", "));
    }
    // A sample may come from what has not changed.
    let has_changed = refused.keys().any(|refusal| matches!(refusal, Refusal::Changed(_)));
    if all.is_empty() {
        if options.all && has_changed {
            return Ok(ExitCode::FAILURE);
        }
        let hint = match options.from {
            Some(_) => "",
            None => "; --from out/record repeats the results of this machine",
        };
        bail!("nothing of the selection in {} can be repeated here{hint}", source.name);
    }
    let jobs: Vec<PlannedJob<'_>> = all.iter().map(|own| own.planned.clone()).collect();
    let timings = Timings::of_record(&repository.record(), &jobs);
    let count =
        |all: &[Repeated]| -> usize { all.iter().map(|own| own.planned.to_run.len()).sum() };
    let total = count(&all);
    if !options.all {
        sample(&mut all, &timings, options.sample.into());
    }
    eprintln!("{} of {total} recorded units are repeated", count(&all));
    let directory = tempfile::tempdir().context("a temporary directory cannot be created")?;
    let store = keep(Store::new(directory.path()));
    let signals = Interrupts::listen().context("signal handlers cannot be installed")?;
    let mut failed = false;
    for round in all.chunk_by(|a, b| a.seed == b.seed) {
        let Some(&Repeated { seed, data, .. }) = round.first() else { continue };
        let work = round.iter().map(|own| own.planned.clone());
        let work = work.filter(|job| !job.to_run.is_empty()).collect();
        let workers = options.jobs.map_or_else(machine::cores, usize::from);
        let run = executor::Options { workers, signals: signals.clone(), ..Default::default() };
        let env = RunEnv { store, data, devices, seed, commit: "" };
        let outcome = executor::run(work, env, run, timings.clone());
        failed |= outcome.failures > 0 || outcome.left.0 > 0;
        if let Some(signal) = outcome.interrupted {
            eprintln!("{}: nothing was compared", interrupts::name(signal));
            return Ok(ExitCode::from(128 + signal as u8));
        }
    }
    signals.end_at_once();
    let mut differs = false;
    for (experiment, table, machine) in &records {
        differs |= !compare(experiment, &table.rows, machine, &all, store);
    }
    Ok(ExitCode::from(u8::from(differs || failed || options.all && has_changed)))
}

/// Selected methods that a record has and the experiment does not, by group. Rows may have other method names than their variants, so
/// only the variants that the record names itself count.
fn lost<'a>(
    experiment: &Experiment,
    selectors: &Selectors,
    provenance: &'a Provenance,
) -> Vec<(&'a str, &'a str)> {
    let is_defined = |group: &str, method: &str| {
        experiment.group(group).is_some_and(|g| g.variants.iter().any(|v| v.id == method))
    };
    // Ids of groups contain no slash; ids of methods may.
    let names = provenance.origins.keys().filter_map(|key| key.split_once('/'));
    let is_selected = |(group, method): &(&str, &str)| {
        selectors.matches(&experiment.paper, &experiment.item, group, method)
    };
    names.filter(is_selected).filter(|(group, method)| !is_defined(group, method)).collect()
}

/// Selected variants of an experiment with results in its record.
fn methods_of<'a>(
    experiment: &'a Experiment,
    selectors: &Selectors,
    table: &Table,
    provenance: &Provenance,
) -> Vec<Method<'a>> {
    let mut methods = Vec::new();
    for group in &experiment.groups {
        for (index, variant) in group.variants.iter().enumerate() {
            if !selectors.matches(&experiment.paper, &experiment.item, &group.id, &variant.id) {
                continue;
            }
            let origin = provenance.origins.get(&format!("{}/{}", group.id, variant.id));
            let mut rows = table.rows.iter().filter(|row| row.group == group.id);
            // A variant that measures several things has rows with other method names.
            let named = rows.clone().find(|row| row.method == variant.id);
            let is_named_otherwise =
                |row: &&Row| group.variants.iter().all(|variant| variant.id != row.method);
            let has_others = origin.is_some() || provenance.origins.is_empty();
            let other = || rows.find(is_named_otherwise).filter(|_| has_others);
            let Some(row) = named.or_else(other) else { continue };
            methods.push(Method {
                experiment,
                group,
                variant: index,
                profile: origin.map_or(row.profile, |origin| origin.profile),
                seed: origin.map_or(provenance.seed, |origin| origin.seed),
                device: row.device.clone(),
                data: row.data.clone(),
                origin: origin.cloned(),
            });
        }
    }
    methods
}

impl Method<'_> {
    fn name(&self) -> String {
        let variant = self.group.variants.get(self.variant).map_or("", |v| &v.id);
        format!("{}/{}/{variant}", self.experiment.id(), self.group.id)
    }

    fn is_of(&self, job: &Job<'_>) -> bool {
        std::ptr::eq(job.group, self.group) && job.variant_index == self.variant
    }

    fn refusal(
        &self,
        planned: &[&PlannedJob<'_>],
        data: &DataSets,
        devices: &Devices,
    ) -> Result<Option<Refusal>> {
        let Some(unit) = planned.iter().flat_map(|p| p.units.iter()).next() else {
            if let Some(why) = self.group.refused(self.profile) {
                let why = format!("does not run at profile `{}`: {}", self.profile, why.trim());
                return Ok(Some(Refusal::Changed(why)));
            }
            let files = self.group.data.as_ref().map(|own| data.files(&own.set)).transpose()?;
            let absence = files.flatten().and_then(|files| files.found.as_ref().err().cloned());
            let why = || Refusal::Changed(format!("no units at profile `{}`", self.profile));
            return Ok(Some(absence.map_or_else(why, Refusal::Absent)));
        };
        let absent = if ![CPU, devices.training()].contains(&class_of(&self.device)) {
            Some(format!(
                "was measured on {}, but this machine trains on {}; choose another with --device",
                self.device,
                devices.label(devices.training())
            ))
        } else {
            let why = || format!("data {} on record, {} here (--data DIR)", self.data, unit.data);
            (unit.data != self.data).then(why)
        };
        let here = collect::origin(planned.iter().copied());
        let differences = match (&self.origin, here) {
            (Some(origin), Some(mut here)) => {
                // Other data have another checksum and another number of signals.
                if absent.is_some() {
                    here.data.clone_from(&origin.data);
                    here.signals = origin.signals;
                }
                origin.differences(&here).join("; ")
            }
            _ => String::new(),
        };
        Ok(match differences.as_str() {
            "" => absent.map(Refusal::Absent),
            _ => Some(Refusal::Changed(format!(
                "definition, revision or data differ (record → here): {differences}"
            ))),
        })
    }
}

/// Chooses cheap units first, in random order and alternating between protocols, so that a small sample covers many of them.
fn sample(all: &mut [Repeated], timings: &Timings, count: usize) {
    let mut units: Vec<(usize, bool, Unit)> = Vec::new();
    for (job, Repeated { planned, .. }) in all.iter_mut().enumerate() {
        let seconds = timings.rank(planned) / planned.to_run.len().max(1) as f64;
        let own = std::mem::take(&mut planned.to_run).into_iter();
        units.extend(own.map(|unit| (job, seconds > CHEAP, unit)));
    }
    let draws = uniform_vector(&mut stream(0, "verify: choice of units"), units.len(), 0.0, 1.0);
    let mut drawn: Vec<_> = draws.into_iter().zip(units).collect();
    drawn.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut turns: BTreeMap<&'static str, usize> = BTreeMap::new();
    let mut ranked = Vec::new();
    for (_, (job, is_long, unit)) in drawn {
        let turn = turns.entry(all[job].planned.job.protocol().name()).or_default();
        *turn += 1;
        ranked.push(((is_long, *turn), job, unit));
    }
    // A stable sort: equal elements stay in random order.
    ranked.sort_by_key(|(rank, ..)| *rank);
    for (_, job, unit) in ranked.into_iter().take(count) {
        all[job].planned.to_run.push(unit);
    }
}

/// Prints whether the repeated values of an item are bitwise equal; returns whether they are.
fn compare(
    experiment: &Experiment,
    recorded: &[Row],
    machine: &str,
    all: &[Repeated],
    store: &Store,
) -> bool {
    let mut measured: Vec<Row> = Vec::new();
    let mut count = 0;
    for own in all.iter().filter(|own| std::ptr::eq(own.planned.job.experiment, experiment)) {
        for unit in &own.planned.to_run {
            let found = store.find(&experiment.paper, &experiment.item, &unit.parts);
            if let Ok(record) = found {
                measured.extend(collect::rows(&own.planned.job, unit, &record));
                count += 1;
            }
        }
    }
    if count == 0 {
        return true;
    }
    let difference = difference(recorded, &measured);
    let units = if count == 1 { "unit" } else { "units" };
    let values = measured.iter().filter(|row| !is_of_machine(&row.metric)).count();
    let Some(difference) = difference else {
        println!("{}: {count} {units}, {values} values, bitwise equal", experiment.id());
        return true;
    };
    println!("{}: {count} {units}, {difference}", experiment.id());
    let here = machine::processor();
    match machine == here {
        true => println!("  the record was made on the same kind of processor ({here})"),
        false => println!(
            "  other processors may differ in the last digits: the record was made on {machine}, this machine has {here}"
        ),
    }
    false
}

/// Group, method, signal and seed.
type Run<'a> = (&'a str, &'a str, &'a str, u64);

fn run(row: &Row) -> Run<'_> {
    (&row.group, &row.method, &row.signal, row.seed)
}

/// What identifies a value: its run, its metric and both abscissas as bits.
fn key(row: &Row) -> (Run<'_>, &str, Option<u64>, Option<u64>) {
    (run(row), &row.metric, row.x.map(f64::to_bits), row.y.map(f64::to_bits))
}

/// Differences between recorded values and those measured now, in words; `None` if all are bitwise equal. Times, rates and memory
/// are not compared.
fn difference(recorded: &[Row], measured: &[Row]) -> Option<String> {
    let runs: HashSet<Run<'_>> = measured.iter().map(run).collect();
    let is_compared = |row: &&Row| !is_of_machine(&row.metric) && runs.contains(&run(row));
    let mut now: BTreeMap<_, Vec<f64>> = BTreeMap::new();
    for row in measured.iter().rev().filter(is_compared) {
        now.entry(key(row)).or_default().push(row.value);
    }
    let (mut compared, mut missing, mut largest) = (0, 0, 0.0_f64);
    let mut differing = Vec::new();
    for row in recorded.iter().filter(is_compared) {
        let Some(value) = now.get_mut(&key(row)).and_then(Vec::pop) else {
            missing += 1;
            continue;
        };
        compared += 1;
        if value.to_bits() != row.value.to_bits() && !(value.is_nan() && row.value.is_nan()) {
            largest = largest.max((value - row.value).abs() / value.abs().max(row.value.abs()));
            differing.push((row, value));
        }
    }
    let surplus: usize = now.values().map(Vec::len).sum();
    let mut parts = Vec::new();
    if let Some((row, value)) = differing.first() {
        parts.push(format!(
            "{} of {compared} values differ (largest relative difference {}); the first: {} is {:?} on record and {value:?} now",
            differing.len(),
            show(largest),
            described(row),
            row.value
        ));
    }
    if missing > 0 {
        parts.push(format!("{missing} values of the record were not measured again"));
    }
    if surplus > 0 {
        parts.push(format!("{surplus} values are not on record"));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn described(row: &Row) -> String {
    let mut text = format!("{}/{} {}", row.group, row.method, row.metric);
    if row.signal != NO_SIGNAL {
        text += &format!(" of {}", row.signal);
    }
    text += &format!(" seed {}", row.seed);
    text.extend(row.x.map(|x| format!(" at x = {}", show(x))));
    text.extend(row.y.map(|y| format!(", y = {}", show(y))));
    text
}
