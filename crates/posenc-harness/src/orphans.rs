//! Checkpoints that no run resumes from.
//!
//! A checkpoint is removed if no profile of the catalog plans its job any more, or if all units that it trains have records. The check uses
//! the data, device and seed of the checkpoint, because another run may use them again. Checkpoints that do not name their job (of older
//! versions, or damaged) are identified by their file name, with the data and the seed of this run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Result;
use posenc_experiments::output::remove;
use posenc_experiments::plan::Job;
use posenc_experiments::record::KeyParts;
use posenc_experiments::{Catalog, Experiment};
use posenc_files::Kind;

use crate::checkpoint::{Owner, is_checkpoint, key};
use crate::plan::{PlannedJob, Plans, all_jobs, defines};
use crate::store::{Found, Store};

/// Removes orphaned checkpoints from a store that no other process uses, and names them. With `is_forced`, units with records run
/// again, so their checkpoints are kept. Checkpoints that earlier versions left in the common folder move to the folder of their item.
///
/// # Errors
///
/// Errors of the plan. No checkpoint that a plan could still use has then been removed.
pub fn sweep(store: &Store, plans: &Plans<'_>, is_forced: bool) -> Result<()> {
    let root = store.all_checkpoints();
    let mut by_name: Option<BTreeMap<String, PathBuf>> = None;
    for (folder, experiment) in folders(root, plans.catalog) {
        for file in checkpoints(&folder) {
            let is_used = match (Owner::read(&file), experiment) {
                (_, None) if folder != *root => false,
                (Some(owner), Some(experiment)) => is_used(&owner, experiment, store, is_forced),
                _ => {
                    if by_name.is_none() {
                        by_name = Some(names(store, plans)?);
                    }
                    let name = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
                    let place = by_name.as_ref().zip(name).and_then(|(all, name)| all.get(&name));
                    match place {
                        Some(place) if *place != folder => adopt(&file, place),
                        place => place.is_some(),
                    }
                }
            };
            if !is_used {
                remove(&file, "no run resumes from this checkpoint")?;
            }
        }
    }
    Ok(())
}

/// Moves a checkpoint to the folder of its item; `false` if that folder already has a file of this name.
fn adopt(file: &Path, folder: &Path) -> bool {
    let Some(place) = file.file_name().map(|name| folder.join(name)) else { return true };
    if place.exists() {
        return false;
    }
    // If the move fails, the next run tries again.
    let _ = posenc_files::make_folder(folder).and_then(|()| std::fs::rename(file, place));
    true
}

/// Folders that may contain checkpoints, each with its experiment: the common folder, then the item folders two levels below it.
fn folders<'a>(root: &Path, catalog: &'a Catalog) -> Vec<(PathBuf, Option<&'a Experiment>)> {
    let mut all = vec![(root.to_owned(), None)];
    for (paper, paper_name) in directories(root) {
        for (item, item_name) in directories(&paper) {
            all.push((item, catalog.experiment(&paper_name, &item_name)));
        }
    }
    all
}

/// Directories in a folder with their names; links are not followed.
fn directories(folder: &Path) -> Vec<(PathBuf, String)> {
    let entries = posenc_files::entries(folder).unwrap_or_default().into_iter();
    entries
        .filter(|entry| entry.kind == Kind::Folder)
        .filter_map(|entry| Some((folder.join(&entry.name), entry.name.into_string().ok()?)))
        .collect()
}

/// Files in a folder that have the name and the first bytes of a checkpoint.
fn checkpoints(folder: &Path) -> Vec<PathBuf> {
    let is_name = |path: &Path| {
        let stem = path.file_stem().map(|stem| stem.to_string_lossy());
        path.extension().is_some_and(|extension| extension == "bin")
            && stem.is_some_and(|s| s.len() == 64 && s.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    let entries = posenc_files::entries(folder).unwrap_or_default().into_iter();
    entries
        .filter(|entry| entry.kind == Kind::File)
        .map(|entry| folder.join(entry.name))
        .filter(|path| is_name(path) && is_checkpoint(path))
        .collect()
}

/// Whether a run may resume from a checkpoint of this owner.
fn is_used(owner: &Owner, experiment: &Experiment, store: &Store, is_forced: bool) -> bool {
    let Some(first) = owner.signals.first() else { return false };
    let name = (&*owner.group, &*owner.method, owner.repetition);
    let is_its = |job: &Job<'_>| defines(job, name, first, &owner.parts);
    let Some(job) = all_jobs(experiment).into_iter().find(is_its) else { return false };
    let has_record = |signal: &String| {
        let KeyParts { data, device, seed, .. } = &owner.parts;
        let parts = job.key_parts(signal, data, device, *seed, &job.protocol().revision());
        matches!(store.find(&experiment.paper, &experiment.item, &parts), Found::Record(_))
    };
    let mut trained = owner.trained.iter().map(|&place| owner.signals.get(place));
    is_forced || !trained.all(|signal| signal.is_some_and(has_record))
}

/// Names of the checkpoints of all plans with this run's data and seed, with the folder of each.
fn names(store: &Store, plans: &Plans<'_>) -> Result<BTreeMap<String, PathBuf>> {
    let mut names = BTreeMap::new();
    for experiment in &plans.catalog.experiments {
        let folder = store.checkpoints(&experiment.paper, &experiment.item);
        for planned in plans.of(experiment)?.iter().flat_map(PlannedJob::on_all_devices) {
            let each = planned.units.iter().map(|unit| key(std::iter::once(&unit.parts)));
            let all = key(planned.units.iter().map(|unit| &unit.parts));
            names.extend(each.chain([all]).map(|name| (name, folder.clone())));
        }
    }
    Ok(names)
}
