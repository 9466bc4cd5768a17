//! Whether this machine's tables and report are up to date.
//!
//! Rendering takes seconds, too long for a run with nothing to do. Each run therefore stores a checksum over the content of all
//! inputs (definitions, published values, both records, raw records, failures, data, this program, the commit, the machine) and of
//! all outputs (tables, pictures, pages). A change or removal of any of them changes the checksum.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context, Result};
use posenc_experiments::record::table::write_atomically;
use posenc_experiments::text::read_text;
use posenc_files::{Kind, entries, is_there};

use posenc_harness::data::Files;
use posenc_harness::machine;
use posenc_harness::run_env::ResultInputs;

/// Name of the checksum's file below the output directory.
const FILE: &str = "report.checksum";

const CHECKSUM_BYTES: u64 = 64;

/// Whether nothing has changed since the checksum was stored.
pub fn is_fresh(inputs: &ResultInputs<'_>) -> bool {
    let kept = read_text(&inputs.out.join(FILE), CHECKSUM_BYTES).unwrap_or_default();
    !kept.is_empty() && checksum(inputs).is_ok_and(|checksum| checksum == kept)
}

/// Stores the checksum of the current state. If that fails, the next run renders everything again, unless the state is that of the
/// earlier checksum.
pub fn keep(inputs: &ResultInputs<'_>) {
    if let Ok(checksum) = checksum(inputs) {
        let _ = write_atomically(&inputs.out.join(FILE), checksum.as_bytes());
    }
}

fn checksum(inputs: &ResultInputs<'_>) -> Result<String> {
    let ResultInputs { repository, plans, devices, options, out, .. } = *inputs;
    let mut hasher = blake3::Hasher::new();
    let program = std::env::current_exe().context("the path of this program is unknown")?;
    add_file(&mut hasher, "program", &program)?;
    let root = repository.root();
    for (name, folder, linked) in [
        ("experiments", root.join("experiments"), 1),
        ("published", root.join("data/papers"), 0),
        ("reference", repository.record(), 0),
        ("raw", out.join("raw"), 0),
        ("failed", out.join("failed"), 0),
        ("record", out.join("record"), 0),
        ("report", out.join("report"), 0),
    ] {
        add_folder(&mut hasher, name, &folder, linked)?;
    }
    let groups = plans.catalog.experiments.iter().flat_map(|e| &e.groups);
    let sets: BTreeSet<&String> = groups
        .filter_map(|g| g.data.as_ref())
        .flat_map(|d| std::iter::once(&d.set).chain(&d.held_out).chain(&d.weights))
        .collect();
    for set in sets {
        add(&mut hasher, set.as_bytes());
        let identity = match plans.data.files(set)?.as_deref() {
            Some(Files { found: Ok(found), .. }) => format!("{} {}", found.label, found.sha256),
            Some(Files { found: Err(_), .. }) => "absent".to_owned(),
            None => format!("{:?}", plans.data.identity(set)?),
        };
        add(&mut hasher, identity.as_bytes());
    }
    let run = format!(
        "{} {} {} {} {} {}",
        repository.commit(),
        machine::processor(),
        machine::cores(),
        devices.training(),
        options.seed,
        options.out.is_none()
    );
    add(&mut hasher, run.as_bytes());
    Ok(hasher.finalize().to_hex().to_string())
}

/// The length prefix separates consecutive inputs.
fn add(hasher: &mut blake3::Hasher, bytes: &[u8]) {
    hasher.update(&(bytes.len() as u64).to_le_bytes());
    hasher.update(bytes);
}

fn add_file(hasher: &mut blake3::Hasher, name: &str, file: &Path) -> Result<()> {
    add(hasher, name.as_bytes());
    let file = posenc_files::open(file)?;
    let length = file.metadata()?.len();
    hasher.update(&length.to_le_bytes());
    hasher.update_reader(file.take(length))?;
    Ok(())
}

/// Adds all files below a folder, by name; a missing folder has none. Links to folders are followed `linked` levels deep, as the
/// readers of the folder do; deeper links are an error.
fn add_folder(hasher: &mut blake3::Hasher, name: &str, folder: &Path, linked: usize) -> Result<()> {
    add(hasher, name.as_bytes());
    let entries = if is_there(folder) { entries(folder)? } else { Vec::new() };
    add(hasher, &(entries.len() as u64).to_le_bytes());
    for entry in entries {
        let path = folder.join(&entry.name);
        let name = entry.name.to_string_lossy();
        if entry.kind == Kind::Folder || linked > 0 && path.is_dir() {
            add_folder(hasher, &name, &path, linked.saturating_sub(1))?;
        } else {
            add_file(hasher, &name, &path)?;
        }
    }
    Ok(())
}
