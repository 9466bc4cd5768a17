//! `reproduce --from RECORD`: repeats the runs of a record and compares every bit of the results.
//!
//! Profile and seed of each method come from the record. Before anything runs, the command checks that this working tree has the
//! same specifications, revisions and data. Older records lack these entries; the command then prints a note instead.

mod same;

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use posenc_experiments::plan::{Job, jobs};
use posenc_experiments::record::{Origin, Provenance, Row, Table};
use posenc_experiments::selector::Selectors;
use posenc_experiments::{Catalog, Experiment, Group, Profile};

use super::source::Source;
use posenc_harness::collect;
use posenc_harness::cost_model::CostModel;
use posenc_harness::data::{self, DataSets};
use posenc_harness::device::{CPU, Devices, GPU, SOFTWARE};
use posenc_harness::interrupts::{self, Interrupts};
use posenc_harness::lock::{self, Lock};
use posenc_harness::machine;
use posenc_harness::options::{Reproduce, parse_selectors};
use posenc_harness::plan::{PlannedJob, expand};
use posenc_harness::progress::{Detail, Progress};
use posenc_harness::queue::Work;
use posenc_harness::repository::Repository;
use posenc_harness::run_env::{RunEnv, keep};
use posenc_harness::store::{Found, Store};
use posenc_harness::supervisor::{self, RunSummary};
use posenc_harness::unit::NO_DATA;
use posenc_protocols::KINDS;
use same::Sameness;

/// A variant with results in the record.
struct Target<'a> {
    experiment: &'a Experiment,
    group: &'a Group,
    variant: usize,
    profile: Profile,
    seed: u64,
    /// Class of the device that measured it, and its full name.
    class: &'static str,
    device: String,
    /// Label of the data, and their checksum in the record.
    data: String,
    checksum: Option<String>,
    /// How the record was made; `None` in older records.
    origin: Option<Origin>,
}

impl Target<'_> {
    fn name(&self) -> String {
        format!("{}/{}/{}", self.experiment.id(), self.group.id, self.variant())
    }

    fn variant(&self) -> &str {
        self.group.variants.get(self.variant).map_or("", |v| &v.id)
    }

    fn is(&self, job: &Job<'_>) -> bool {
        job.experiment.id() == self.experiment.id()
            && job.group.id == self.group.id
            && job.variant_index == self.variant
    }
}

/// The record of an item, and the variants to repeat.
struct Item<'a> {
    experiment: &'a Experiment,
    table: Table,
    provenance: Provenance,
    targets: Vec<Target<'a>>,
}

/// The plan of all targets with the same profile, seed and device class.
struct Round<'a> {
    seed: u64,
    data: &'static DataSets,
    planned: Vec<PlannedJob<'a>>,
}

/// Runs the verb: status 1 if a value differs or a unit fails.
pub fn repeat(repository: &Repository, options: &Reproduce, record: &str) -> Result<ExitCode> {
    let out = lock::output(repository, options.out.as_deref(), "out/repeat")?;
    let catalog = keep(Catalog::read(repository.root(), KINDS)?);
    let selectors = parse_selectors(catalog, &options.selectors)?;
    let source = Source::open(repository, record)?;
    let mut refusals = Vec::new();
    let items = items(catalog, &selectors, &source, &mut refusals)?;
    if items.is_empty() && refusals.is_empty() {
        bail!("{record} has no record of the selection; `cargo xtask list` shows all items");
    }
    let targets = || items.iter().flat_map(|item| &item.targets);
    let leaves_cpu = targets().any(|target| target.class != CPU);
    let devices = if leaves_cpu { Devices::open(&options.device)? } else { Devices::cpu() };
    let devices = keep(devices);
    let mut rounds: BTreeMap<(Profile, u64, &str), Vec<&Target<'_>>> = BTreeMap::new();
    for target in targets() {
        rounds.entry((target.profile, target.seed, target.class)).or_default().push(target);
    }
    let mut plans = Vec::new();
    for ((profile, seed, class), targets) in rounds {
        let data = keep(DataSets::new(data::source(repository, &options.data)?, seed));
        let mut selected = jobs(catalog.experiments.iter(), &Selectors::default(), profile);
        selected.retain(|job| targets.iter().any(|target| target.is(job)));
        let on = if class == CPU { CPU } else { devices.training() };
        let planned = expand(selected, data, &repository.published_checksum(), seed, on)?;
        for target in targets {
            let own: Vec<&PlannedJob<'_>> = planned.iter().filter(|p| target.is(&p.job)).collect();
            let why = refusal(target, &own, data, devices)?;
            refusals.extend(why.map(|why| format!("{}: {why}", target.name())));
        }
        plans.push(Round { seed, data, planned });
    }
    if !refusals.is_empty() {
        for refusal in &refusals {
            eprintln!("cannot be repeated: {refusal}");
        }
        bail!(
            "{} methods of {record} cannot be repeated here (see above), so nothing was run; check out the revision that \
             made them, bring their data (--data DIR), or select others",
            refusals.len()
        );
    }
    announce_unchecked(&items);
    let _lock = Lock::take(&out)?;
    let store = keep(Store::new(&out));
    store.sweep();
    let signals = Interrupts::listen().context("signal handlers cannot be installed")?;
    let mut failures = Vec::new();
    for round in &plans {
        let outcome = run(round, store, devices, options, &signals);
        failures.extend(outcome.failures);
        if let Some(signal) = outcome.interrupted {
            eprintln!(
                "{}: not compared; run the same command again to continue",
                interrupts::name(signal)
            );
            return Ok(ExitCode::from(128 + signal as u8));
        }
        // The disk is full, or `--fail-fast` ends the run after a failure.
        if outcome.left.0 > 0 || options.fail_fast && !failures.is_empty() {
            break;
        }
    }
    signals.end_at_once();
    for failure in &failures {
        eprintln!("failed: {}: {}", failure.path, failure.message);
    }
    let is_same = compare(&items, &plans, store);
    Ok(ExitCode::from(u8::from(!is_same || !failures.is_empty())))
}

/// Items of the record with their selected variants. Adds a refusal for each selected item, group or method that this working tree
/// does not define.
fn items<'a>(
    catalog: &'a Catalog,
    selectors: &Selectors,
    source: &Source,
    refusals: &mut Vec<String>,
) -> Result<Vec<Item<'a>>> {
    let mut items = Vec::new();
    for (paper, item) in source.items()? {
        let Some(experiment) = catalog.experiment(&paper, &item) else {
            if selectors.matches(&paper, &item, "", "") {
                refusals.push(format!("{paper}/{item}: no experiment of this working tree"));
            }
            continue;
        };
        let Some((table, provenance)) = source.read(&paper, &item)? else { continue };
        let mut targets = Vec::new();
        for group in &experiment.groups {
            let rows = table.rows.iter().filter(|row| row.group == group.id);
            targets.extend(of_group(experiment, group, &rows.collect::<Vec<_>>(), &provenance));
        }
        targets.retain(|t| selectors.matches(&paper, &item, &t.group.id, t.variant()));
        let lost = lost(experiment, selectors, &table, &provenance);
        refusals.extend(lost.into_iter().map(|what| format!("{paper}/{item}/{what}")));
        if !targets.is_empty() {
            items.push(Item { experiment, table, provenance, targets });
        }
    }
    Ok(items)
}

/// Selected groups and methods of a record that this working tree does not define.
fn lost(
    experiment: &Experiment,
    selectors: &Selectors,
    table: &Table,
    provenance: &Provenance,
) -> BTreeSet<String> {
    // Ids of groups contain no slash; ids of methods may.
    let origins = provenance.origins.keys().filter_map(|key| key.split_once('/'));
    let has_rows = |group: &str, method: &str| {
        table.rows.iter().any(|row| row.group == group && row.method == method)
    };
    let rows = table.rows.iter().map(|row| (row.group.as_str(), row.method.as_str()));
    let is_of_a_variant = |(group, method): &(&str, &str)| {
        experiment.group(group).is_some_and(|group| {
            let is_variant = group.variants.iter().any(|v| v.id == *method);
            // If a variant has no rows under its own id, its rows may have other method names.
            let is_named_otherwise =
                !provenance.origins.contains_key(&format!("{}/{method}", group.id))
                    && group.variants.iter().any(|v| !has_rows(&group.id, &v.id));
            is_variant || is_named_otherwise
        })
    };
    origins
        .chain(rows)
        .filter(|(group, method)| {
            selectors.matches(&experiment.paper, &experiment.item, group, method)
        })
        .filter(|name| !is_of_a_variant(name))
        .map(|(group, method)| match experiment.group(group) {
            Some(_) => format!("{group}/{method}: no such method here"),
            None => format!("{group}: no such group here"),
        })
        .collect()
}

/// Variants of a group with rows or an origin in the record. A variant may measure several things; its rows then have other method
/// names.
fn of_group<'a>(
    experiment: &'a Experiment,
    group: &'a Group,
    rows: &[&Row],
    provenance: &Provenance,
) -> Vec<Target<'a>> {
    let is_variant = |row: &&&Row| group.variants.iter().any(|v| v.id == row.method);
    let others: Vec<&&Row> = rows.iter().filter(|row| !is_variant(row)).collect();
    let mut targets = Vec::new();
    for (variant, own) in group.variants.iter().enumerate() {
        let origin = provenance.origins.get(&format!("{}/{}", group.id, own.id));
        let named = rows.iter().find(|row| row.method == own.id);
        let nameless =
            || others.first().filter(|_| origin.is_some() || provenance.origins.is_empty());
        let Some(row) = named.or_else(|| nameless().copied()) else { continue };
        targets.push(Target {
            experiment,
            group,
            variant,
            profile: origin.map_or(row.profile, |origin| origin.profile),
            seed: origin.map_or(provenance.seed, |origin| origin.seed),
            class: class(&row.device),
            device: row.device.clone(),
            data: row.data.clone(),
            checksum: provenance.data.get(&row.data).cloned(),
            origin: origin.cloned(),
        });
    }
    targets
}

/// The class of a device, given its name in records.
fn class(device: &str) -> &'static str {
    match device {
        CPU => CPU,
        device if device.starts_with("software adapter") => SOFTWARE,
        _ => GPU,
    }
}

/// Why a target cannot be repeated here.
fn refusal(
    target: &Target<'_>,
    planned: &[&PlannedJob<'_>],
    data: &DataSets,
    devices: &Devices,
) -> Result<Option<String>> {
    let Some(unit) = planned.iter().flat_map(|p| p.units.iter()).next() else {
        if let Some(why) = target.group.refused(target.profile) {
            return Ok(Some(format!(
                "does not run at profile `{}`: {}",
                target.profile,
                why.trim()
            )));
        }
        if let Some(set) = &target.group.data
            && let Some(files) = data.files(&set.set)?
            && let Err(absence) = &files.found
        {
            return Ok(Some(absence.clone()));
        }
        return Ok(Some(format!("no units to run at profile `{}`", target.profile)));
    };
    if target.class != CPU && devices.training() != target.class {
        return Ok(Some(format!(
            "was measured on {}, but this machine trains on {}; choose another with --device",
            target.device,
            devices.label(devices.training())
        )));
    }
    if unit.data != target.data {
        return Ok(Some(format!("data {} on record, {} here", target.data, unit.data)));
    }
    let differences = match &target.origin {
        Some(origin) => collect::origin(planned.iter().copied())
            .map(|here| origin.differences(&here))
            .unwrap_or_default(),
        // Older records have one list of checksums per label, for whatever its groups read; one common checksum suffices.
        None => {
            let here = &unit.parts.data;
            let is_other = |known: &&String| {
                target.data != NO_DATA
                    && !known.split(' ').any(|sum| here.split(' ').any(|h| h == sum))
            };
            let other = target.checksum.as_ref().filter(is_other);
            other.map(|known| format!("sha256 of the data {known} → {here}")).into_iter().collect()
        }
    };
    let why = || {
        format!("definition, revision or data differ (record → here): {}", differences.join("; "))
    };
    Ok((!differences.is_empty()).then(why))
}

/// Prints a note with the number of methods that cannot be checked, and one with the versions that differ.
fn announce_unchecked(items: &[Item<'_>]) {
    let targets = || items.iter().flat_map(|item| &item.targets);
    let unchecked = targets().filter(|target| target.origin.is_none()).count();
    if unchecked > 0 {
        eprintln!(
            "note: {unchecked} of {} methods cannot be checked: their record lacks specifications and revisions, so \
             values may differ",
            targets().count()
        );
    }
    let here = machine::versions();
    let mut others = BTreeSet::new();
    for (name, own) in items.iter().flat_map(|item| &item.provenance.versions) {
        let other = here.get(name).filter(|other| *other != own);
        others.extend(other.map(|other| format!("{name} {own} → {other}")));
    }
    if !others.is_empty() {
        let others: Vec<String> = others.into_iter().collect();
        eprintln!("note: software versions differ (record → here): {}", others.join(", "));
    }
}

/// Runs the units of a plan that have no record in the store.
fn run(
    round: &Round<'static>,
    store: &'static Store,
    devices: &'static Devices,
    options: &Reproduce,
    signals: &Interrupts,
) -> RunSummary {
    let total: usize = round.planned.iter().map(|p| p.units.len()).sum();
    let work = Work::pending(&round.planned, store, options.force);
    let to_run: usize = work.iter().map(|w| w.units.len()).sum();
    eprintln!("{to_run} of {total} units to run, {} already repeated", total - to_run);
    let workers = options.jobs.map_or_else(machine::cores, usize::from);
    let site = RunEnv { store, data: round.data, devices, seed: round.seed, commit: "" };
    let detail = Detail::asked(options.quiet, options.verbose);
    let mut progress = Progress::new(to_run, workers, detail);
    let run = supervisor::Options {
        workers,
        fail_fast: options.fail_fast,
        memory: options.memory,
        signals: signals.clone(),
        ..supervisor::Options::default()
    };
    supervisor::run(work, site, &run, CostModel::default(), &mut progress)
}

/// Prints for each item whether its values are bitwise equal; returns whether all are.
fn compare(items: &[Item<'_>], rounds: &[Round<'_>], store: &Store) -> bool {
    let here = machine::processor();
    let mut is_same = true;
    for item in items {
        let id = item.experiment.id();
        let mut measured: Vec<Row> = Vec::new();
        // Rows of a variant may have other method names. The remaining rows of its group belong to other variants.
        let mut methods: BTreeSet<(String, String)> = BTreeSet::new();
        for PlannedJob { job, units, .. } in rounds.iter().flat_map(|round| &round.planned) {
            if job.experiment.id() != id {
                continue;
            }
            methods.insert((job.group.id.clone(), job.variant.id.clone()));
            for unit in units.iter() {
                let found = store.find(&job.experiment.paper, &job.experiment.item, &unit.parts);
                if let Found::Record(record) = found {
                    measured.extend(collect::rows(job, unit, &record));
                }
            }
        }
        methods.extend(measured.iter().map(|row| (row.group.clone(), row.method.clone())));
        let is_of_targets = |row: &&Row| methods.contains(&(row.group.clone(), row.method.clone()));
        let recorded: Vec<&Row> = item.table.rows.iter().filter(is_of_targets).collect();
        let sameness = Sameness::of(&recorded, &measured);
        println!("{id}: {sameness}");
        if sameness.is_same() {
            continue;
        }
        is_same = false;
        let others = "other processors may differ in the last digits";
        match item.provenance.machine.as_str() {
            "" => println!("  the record does not name its processor; {others}"),
            there if there == here => println!(
                "  the record was made on the same kind of processor ({here}), so its values should be bitwise equal"
            ),
            there => {
                println!("  the record was made on {there}, this machine has {here}; {others}");
            }
        }
    }
    is_same
}
