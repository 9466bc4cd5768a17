//! `verify`: runs a sample of units again, on one thread and on several, and compares every bit of the results.
//!
//! Libraries fix the size of their thread pools when a process starts. Each of the two runs is therefore a separate process: this
//! binary with `--run-into`, which selects the same sample and writes its records into an empty store.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, ensure};
use posenc_experiments::plan::{Job, NO_SIGNAL, jobs};
use posenc_experiments::record::{UnitRecord, Value, is_of_machine};
use posenc_experiments::verdict::show;
use posenc_experiments::{Catalog, Profile};
use posenc_math::random::{stream, uniform_vector};

use crate::arguments::Verify;
use posenc_harness::data::{self, DataSets};
use posenc_harness::device::{CPU, Devices};
use posenc_harness::options::{parse_profile, parse_selectors};
use posenc_harness::plan::{PlannedJob, expand, leave_out_absent_picks, readers};
use posenc_harness::repository::Repository;
use posenc_harness::run_env::{RunEnv, keep};
use posenc_harness::store::{Found, Store};
use posenc_harness::timings::Timings;
use posenc_harness::unit::Unit;
use posenc_harness::{executor, machine};
use posenc_protocols::KINDS;

/// Seed of the random streams of all units: the default of `reproduce`.
const RUN_SEED: u64 = 0;
/// Units with a longer estimate, in seconds on one core, are sampled only if there are too few others.
const CHEAP: f64 = 5.0;

struct Drawn<'a> {
    unit: Unit,
    /// This unit alone.
    work: PlannedJob<'a>,
    /// Estimated seconds.
    cost: f64,
}

impl Drawn<'_> {
    fn name(&self) -> String {
        let signal = match self.unit.signal.as_str() {
            NO_SIGNAL => String::new(),
            signal => format!(" {signal}"),
        };
        format!("{} seed {}{signal}", self.work.job.path(), self.work.job.seed_index)
    }

    fn found(&self, store: &Store) -> Found {
        let experiment = self.work.job.experiment;
        store.find(&experiment.paper, &experiment.item, &self.unit.parts)
    }
}

/// Runs the verb: status 1 if a value differs, 2 if a unit fails.
pub fn verify(repository: &Repository, options: &Verify) -> Result<ExitCode> {
    let profile = parse_profile(&options.profile)?;
    let catalog = keep(Catalog::read(repository.root(), KINDS)?);
    let selectors = parse_selectors(catalog, &options.selectors)?;
    let data = keep(DataSets::new(data::source(repository, &options.data)?, RUN_SEED));
    let mut selected = jobs(catalog.experiments.iter(), &selectors, profile);
    let left_out = leave_out_absent_picks(&mut selected, data);
    let is_child = options.run_into.is_some();
    if !is_child {
        left_out.iter().for_each(|line| eprintln!("{line}"));
        announce_skipped(&selected, data)?;
    }
    let planned = expand(selected, data, &repository.published_checksum(), RUN_SEED, CPU)?;
    let timings = Timings::of_record(&repository.record(), &planned);
    let drawn = draw(planned, &timings, usize::from(options.units), options.seed);
    ensure!(!drawn.is_empty(), "the selection has no runnable units at profile `{profile}`");
    if let Some(directory) = &options.run_into {
        run_into(directory, drawn, data, usize::from(options.jobs));
        return Ok(ExitCode::SUCCESS);
    }
    let many = machine::cores().max(2);
    let one = fresh_run(repository, options, profile, 1)?;
    let several = fresh_run(repository, options, profile, many)?;
    let stores = [&one, &several].map(|directory| Store::new(directory.path()));
    let recorded = Store::new(&repository.out(options.out.as_deref()));
    let (mut equal, mut on_record, mut failed) = (0, 0, 0);
    for unit in &drawn {
        let name = unit.name();
        let [Found::Record(one), Found::Record(several)] =
            [unit.found(&stores[0]), unit.found(&stores[1])]
        else {
            println!("failed   {name}");
            failed += 1;
            continue;
        };
        let mut notes = Vec::new();
        let mut differences = Vec::new();
        let names = ["on 1 thread".to_owned(), format!("on {many} threads")];
        differences.extend(first_difference([&one, &several], &names));
        match unit.found(&recorded) {
            Found::Record(before) => {
                let names = ["on record".to_owned(), "now".to_owned()];
                let difference = first_difference([&before, &one], &names);
                notes.extend(difference.is_none().then(|| "equal to the record".to_owned()));
                on_record += usize::from(difference.is_none());
                differences.extend(difference);
            }
            Found::Damaged(why) => notes.push(format!("the record cannot be used: {why}")),
            Found::Stale(_) | Found::Nothing => notes.push("no record here".to_owned()),
        }
        let count = one.values.iter().filter(|v| !is_of_machine(&v.metric)).count();
        if differences.is_empty() {
            equal += 1;
            println!("equal    {name}: {count} values; {}", notes.join("; "));
        } else {
            differences.extend(notes.into_iter().filter(|note| note.contains("cannot be used")));
            println!("differs  {name}: {}", differences.join("; "));
        }
    }
    let count = drawn.len();
    println!(
        "{equal} of {count} units are equal on 1 and {many} threads; {on_record} equal their record"
    );
    Ok(ExitCode::from(if failed > 0 { 2 } else { u8::from(equal < count) }))
}

/// Prints one line per missing set of files, with the groups that are skipped.
fn announce_skipped(selected: &[Job<'_>], data: &DataSets) -> Result<()> {
    let sets = selected.iter().filter_map(|job| job.group.data.as_ref()).map(|data| &data.set);
    for set in sets.collect::<BTreeSet<&String>>() {
        if let Some(files) = data.files(set)?
            && let Err(absence) = &files.found
        {
            println!("skipped  {}: {absence}", readers(selected, set).join(", "));
        }
    }
    Ok(())
}

/// Selects a sample of units: cheap ones first, in random order and alternating between protocols, so that a small sample covers
/// many protocols.
fn draw<'a>(
    planned: Vec<PlannedJob<'a>>,
    timings: &Timings,
    count: usize,
    seed: u64,
) -> Vec<Drawn<'a>> {
    let mut all: Vec<Drawn<'a>> = Vec::new();
    for planned in planned {
        for unit in planned.units.iter() {
            let work = PlannedJob::new(planned.job.clone(), vec![unit.clone()]);
            all.push(Drawn { unit: unit.clone(), cost: timings.seconds(&work), work });
        }
    }
    let order = uniform_vector(&mut stream(seed, "verify: choice of units"), all.len(), 0.0, 1.0);
    let mut all: Vec<(f64, Drawn<'a>)> = order.into_iter().zip(all).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut turns: BTreeMap<&'static str, usize> = BTreeMap::new();
    let (mut cheap, mut dear) = (Vec::new(), Vec::new());
    for (_, unit) in all {
        if unit.cost > CHEAP {
            dear.push(unit);
            continue;
        }
        let turn = turns.entry(unit.work.job.protocol().name()).or_default();
        cheap.push((*turn, unit));
        *turn += 1;
    }
    // Both sorts are stable, so equal elements stay in random order.
    cheap.sort_by_key(|(turn, _)| *turn);
    dear.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    cheap.into_iter().map(|(_, unit)| unit).chain(dear).take(count).collect()
}

/// Runs the sample and stores its records in a directory. Prints failures, which leave no record.
fn run_into(directory: &Path, drawn: Vec<Drawn<'static>>, data: &'static DataSets, workers: usize) {
    let (store, devices) = (keep(Store::new(directory)), keep(Devices::cpu()));
    let site = RunEnv { store, data, devices, seed: RUN_SEED, commit: "" };
    let work = drawn.into_iter().map(|drawn| drawn.work).collect();
    for failure in executor::run_plainly(work, site, workers) {
        eprintln!("failed: {}: {}", failure.path, failure.message);
    }
}

/// Runs the same sample in a new process with this many threads; returns the temporary directory with its records.
fn fresh_run(
    repository: &Repository,
    options: &Verify,
    profile: Profile,
    threads: usize,
) -> Result<tempfile::TempDir> {
    let directory = tempfile::tempdir().context("a temporary directory cannot be created")?;
    let binary = std::env::current_exe().context("the path of this program is unknown")?;
    eprintln!("threads: {threads}");
    let mut command = Command::new(binary);
    command.arg("--root").arg(repository.root());
    command.args(["verify", "--units", &options.units.to_string()]);
    command.args(["--seed", &options.seed.to_string(), "--profile", profile.name()]);
    if let Some(data) = &options.data.data {
        command.arg("--data").arg(data);
    }
    for images in &options.data.images {
        command.arg(format!("--images={images}"));
    }
    command.arg("--run-into").arg(directory.path());
    command.args(["--jobs", &threads.to_string(), "--"]).args(&options.selectors);
    command.env("RAYON_NUM_THREADS", threads.to_string());
    let status = command.status().context("this program cannot start itself")?;
    ensure!(status.success(), "the run on {threads} threads ended with {status}");
    Ok(directory)
}

/// Describes the first difference between two records of a unit, with both numbers.
fn first_difference(records: [&UnitRecord; 2], names: &[String; 2]) -> Option<String> {
    let [a, b] = records.map(|record| {
        record.values.iter().filter(|v| !is_of_machine(&v.metric)).collect::<Vec<&Value>>()
    });
    let [first, second] = names;
    for (a, b) in a.iter().zip(&b) {
        let place = |v: &Value| (v.metric.clone(), v.method.clone(), v.signal.clone(), v.seed);
        let bits = |x: Option<f64>| x.map(f64::to_bits);
        let is_same_place =
            place(a) == place(b) && (bits(a.x), bits(a.y)) == (bits(b.x), bits(b.y));
        if !is_same_place {
            return Some(format!(
                "the values are in another order: {} {first}, {} {second}",
                described(a),
                described(b)
            ));
        }
        if a.value.to_bits() != b.value.to_bits() && !(a.value.is_nan() && b.value.is_nan()) {
            let (own, other) = (a.value, b.value);
            return Some(format!("{} is {own:?} {first} and {other:?} {second}", described(a)));
        }
    }
    (a.len() != b.len()).then(|| format!("{} values {first}, {} {second}", a.len(), b.len()))
}

/// Metric, method, signal, seed and abscissas of a value.
fn described(value: &Value) -> String {
    let mut text = value.metric.clone();
    text.extend(value.method.iter().chain(&value.signal).map(|name| format!(" {name}")));
    text.extend(value.seed.map(|seed| format!(" seed {seed}")));
    text.extend(value.x.map(|x| format!(" at x = {}", show(x))));
    text.extend(value.y.map(|y| format!(", y = {}", show(y))));
    text
}
