//! `reproduce`: run what has no record yet, then render the report of this machine.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use posenc_experiments::plan::{Job, NO_SIGNAL, jobs};
use posenc_experiments::record::{CaptionRecord, Gallery};
use posenc_experiments::schema::{Protocol, Variant};
use posenc_experiments::selector::Selectors;
use posenc_experiments::{Catalog, Profile};
use posenc_report::{Inputs, Records};

use crate::arguments::Reproduce;
use crate::device::{CPU, Devices, is_left_on_cpu};
use crate::executor::{self, Executor};
use crate::repository::Repository;
use crate::run::collect::collect;
use crate::run::data::{self, DataSets};
use crate::run::lock::Lock;
use crate::run::plan::{Reason, expand, pending};
use crate::run::progress::duration;
use crate::run::promote::{Promotion, files, promote, promote_captions, promote_pictures};
use crate::run::store::Store;
use crate::run::work::{self, Work};
use crate::{machine, protocols};

/// Runs the verb.
pub fn reproduce(repository: &Repository, options: &Reproduce) -> Result<ExitCode> {
    options.executor.check(options)?;
    if let Some(record) = &options.from {
        return super::repeat::repeat(repository, options, record);
    }
    let profile = parse_profile(&options.profile)?;
    let catalog = Catalog::read(repository.root())?;
    let selectors = parse_selectors(&catalog, &options.selectors)?;
    let data = DataSets::new(data::source(repository, &options.data)?, options.seed);
    let out = repository.out(options.out.as_deref());
    let store = Store::new(&out);

    let selected = jobs(catalog.experiments.iter(), &selectors, profile);
    announce_refusals(&catalog, &selectors, profile);
    announce_data(&selected, &data)?;
    let devices = executor::devices(options)?;
    let class = |protocol: &Protocol| devices.class(protocol);
    let planned = expand(selected, &data, &repository.published_checksum(), options.seed, &class)?;

    if options.dry_run {
        return dry_run(&planned, &store, options);
    }
    if options.executor.executor == Executor::Slurm
        && let Some(code) = executor::run(repository, options, &planned, &store)?
    {
        return Ok(code);
    }
    let _lock = Lock::take(&out)?;
    executor::refuse_beside(&out)?;
    store.sweep();
    let total: usize = planned.iter().map(|p| p.units.len()).sum();
    let work: Vec<Work<'_>> = planned
        .iter()
        .filter_map(|p| {
            let pending = pending(p, &store, options.force, false);
            for (unit, reason) in &pending {
                if let Reason::Damaged(why) = reason {
                    eprintln!("warning: {} {}: {why}; it is run again", p.job.path(), unit.signal);
                }
            }
            let units: Vec<_> = pending.into_iter().map(|(unit, _)| unit).collect();
            let cost = protocols::cost(&p.job, units.len());
            (!units.is_empty()).then(|| Work { job: p.job.clone(), units, cost })
        })
        .collect();
    let to_run: usize = work.iter().map(|w| w.units.len()).sum();
    eprintln!("profile {profile}: {to_run} of {total} units to run, {} on record", total - to_run);
    let workers = options.jobs.map_or_else(machine::cores, usize::from);
    if work.iter().any(|w| w.units.iter().any(|unit| unit.parts.device != CPU)) {
        eprintln!("device: training on {}", devices.header());
    }
    if devices.training() != CPU && work.iter().any(|w| is_left_on_cpu(w.job.protocol())) {
        eprintln!(
            "note: attention models train on the CPU in this build; POSENC_WGPU=attention before the command builds \
             them for wgpu, too"
        );
    }
    let (seed, fail_fast) = (options.seed, options.fail_fast);
    let failures = work::run(work, &store, &data, &devices, seed, workers, fail_fast);
    let page = write_results(repository, &catalog, &store, &data, &devices, options, &out)?;
    for failure in &failures {
        eprintln!("failed: {}: {}", failure.path, failure.message);
    }
    if !failures.is_empty() {
        eprintln!("{} jobs failed; run the same command again to retry only them", failures.len());
    }
    println!("{}", page.display());
    Ok(ExitCode::from(u8::from(!failures.is_empty())))
}

/// The profile of that name.
pub fn parse_profile(name: &str) -> Result<Profile> {
    let Some(profile) = Profile::parse(name) else {
        bail!("--profile {name}: allowed are {}", Profile::ALL.map(Profile::name).join(", "));
    };
    Ok(profile)
}

/// Parses selectors and refuses those that select nothing: a typo must not look like success.
pub fn parse_selectors(catalog: &Catalog, texts: &[String]) -> Result<Selectors> {
    let selectors = Selectors::parse(texts).map_err(anyhow::Error::msg)?;
    let mut all = Vec::new();
    for e in &catalog.experiments {
        for g in &e.groups {
            for v in &g.variants {
                all.push((e.paper.as_str(), e.item.as_str(), g.id.as_str(), v.id.as_str()));
            }
        }
    }
    let unmatched = selectors.unmatched(&all);
    if let Some(first) = unmatched.first() {
        let ids: Vec<String> = catalog.experiments.iter().map(|e| e.id()).collect();
        let hint = posenc_experiments::yaml::nearest(first, ids.iter().map(String::as_str))
            .map(|n| format!(" Did you mean {n}?"))
            .unwrap_or_default();
        bail!("selector `{first}` selects nothing.{hint} `cargo xtask list` shows all.");
    }
    Ok(selectors)
}

/// One line per group that was asked for and does not run at this profile.
fn announce_refusals(catalog: &Catalog, selectors: &Selectors, profile: Profile) {
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
fn announce_data(selected: &[Job<'_>], data: &DataSets) -> Result<()> {
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

fn dry_run(
    planned: &[crate::run::plan::PlannedJob<'_>],
    store: &Store,
    options: &Reproduce,
) -> Result<ExitCode> {
    let mut units = 0;
    let mut seconds = 0.0;
    for p in planned {
        let pending = pending(p, store, options.force, true);
        let cost = protocols::cost(&p.job, pending.len());
        for (unit, reason) in &pending {
            let signal = if unit.signal == NO_SIGNAL { "" } else { &unit.signal };
            println!(
                "{} seed {} {signal} [{}]: {reason}, about {}",
                p.job.path(),
                p.job.seed_index,
                p.job.recorded_profile,
                duration(cost / pending.len() as f64)
            );
        }
        units += pending.len();
        seconds += cost;
    }
    let total: usize = planned.iter().map(|p| p.units.len()).sum();
    let workers = options.jobs.map_or_else(machine::cores, usize::from);
    println!(
        "{units} of {total} units would run, about {} on {workers} workers",
        duration(seconds / workers as f64)
    );
    if options.executor.executor == Executor::Slurm {
        executor::print_shares(planned, store, options);
    }
    Ok(ExitCode::SUCCESS)
}

/// Tables and report of this machine, and on request the promotion into the reference.
pub fn write_results(
    repository: &Repository,
    catalog: &Catalog,
    store: &Store,
    data: &DataSets,
    devices: &Devices,
    options: &Reproduce,
    out: &Path,
) -> Result<std::path::PathBuf> {
    let local_directory = out.join("record");
    let mut promoted = false;
    for experiment in &catalog.experiments {
        let (csv, provenance) = files(&local_directory, experiment);
        let Some(local) = collect(experiment, store, data, devices, options.seed, repository)?
        else {
            for stale in [csv, provenance] {
                let _ = std::fs::remove_file(stale);
            }
            Gallery::write(&local_directory, &experiment.paper, &experiment.item, Vec::new())?;
            let nothing = CaptionRecord::default();
            nothing.write(&local_directory, &experiment.paper, &experiment.item)?;
            continue;
        };
        local.table.write(&csv, &experiment.paper, &experiment.item)?;
        local.provenance.write(&provenance)?;
        let pictures = local.pictures.clone();
        Gallery::write(&local_directory, &experiment.paper, &experiment.item, pictures)?;
        let captions = CaptionRecord { methods: local.captioned()? };
        captions.write(&local_directory, &experiment.paper, &experiment.item)?;
        if options.record {
            promoted |= promote_captions(experiment, &captions.methods, &repository.record())?;
            promoted |= promote_pictures(experiment, &local, &repository.record())?;
            for (method, promotion) in promote(experiment, &local, &repository.record())? {
                match promotion {
                    Promotion::Taken => promoted = true,
                    Promotion::Kept => eprintln!(
                        "kept: {}/{method}: the reference has a larger profile or the paper's data",
                        experiment.id()
                    ),
                }
            }
        }
    }
    let reference = Records::read(&repository.record(), catalog)?;
    if promoted {
        super::report::render_reference(repository, catalog, &reference, true)?
            .write(&repository.report())
            .context("report/ cannot be written")?;
    }
    let local = Records::read(&local_directory, catalog)?;
    let costs = super::costs::of_reference(repository, catalog, &reference)?;
    let report = posenc_report::render(&Inputs {
        catalog,
        reference: &reference,
        local: Some(&local),
        // Links to files of the repository hold from the default place only.
        repository: if options.out.is_none() { "../.." } else { "" },
        record: None,
        costs: Some(&costs),
    })?;
    let directory = out.join("report");
    report
        .write(&directory)
        .with_context(|| format!("{} cannot be written", directory.display()))?;
    Ok(directory.join("README.md"))
}
