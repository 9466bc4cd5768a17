//! Checkpoints that no run resumes from.
//!
//! A checkpoint is removed if no profile of the catalog plans its job any more, or if all units that it trains have records. The check uses
//! the data, device and seed of the checkpoint, because another run may use them again. Checkpoints that do not name their job, since
//! they are damaged or of another version, are removed.

use std::path::{Path, PathBuf};

use anyhow::Result;
use posenc_experiments::output::remove;
use posenc_experiments::plan::Job;
use posenc_experiments::record::KeyParts;
use posenc_experiments::{Catalog, Experiment};
use posenc_files::Kind;

use crate::checkpoint::{Owner, is_checkpoint};
use crate::plan::{all_jobs, defines};
use crate::store::{Found, Store};

/// Removes orphaned checkpoints from a store that no other process uses, and names them. With `is_forced`, units with records run
/// again, so their checkpoints are kept.
///
/// # Errors
///
/// A file that cannot be removed.
pub fn sweep(store: &Store, catalog: &Catalog, is_forced: bool) -> Result<()> {
    for (folder, experiment) in folders(store.all_checkpoints(), catalog) {
        for file in checkpoints(&folder) {
            let owner = Owner::read(&file).zip(experiment);
            if !owner.is_some_and(|(owner, own)| is_used(&owner, own, store, is_forced)) {
                remove(&file, "no run resumes from this checkpoint")?;
            }
        }
    }
    Ok(())
}

/// Folders that may contain checkpoints, each with its experiment: the common folder, then the item folders two levels below it. Those of
/// unknown papers are left out, since a run with `--include` may use them.
fn folders<'a>(root: &Path, catalog: &'a Catalog) -> Vec<(PathBuf, Option<&'a Experiment>)> {
    let mut all = vec![(root.to_owned(), None)];
    let is_known = |(_, name): &(PathBuf, String)| catalog.papers.iter().any(|p| p.key == *name);
    for (paper, paper_name) in directories(root).into_iter().filter(is_known) {
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
