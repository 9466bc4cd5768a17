//! `new`: writes files for a new embedder or experiment.

mod changes;
mod embedder;
mod experiment;
mod names;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use posenc_experiments::plan::jobs;
use posenc_experiments::selector::Selectors;
use posenc_experiments::{Catalog, Profile};

use crate::arguments::NewVerb;
use changes::Changes;
use names::Name;
use posenc_harness::repository::Repository;
use posenc_protocols::KINDS;

const ANCHOR: &str = "# new items: above this line";
/// Smaller numbers belong to the repository's own extensions.
const FIRST_NUMBER: u32 = 10;

pub fn new(repository: &Repository, verb: &NewVerb) -> Result<ExitCode> {
    match verb {
        NewVerb::Embedder(options) => embedder::embedder(repository, options)?,
        NewVerb::Experiment(options) => experiment::experiment(repository, options)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The folder of the repository's own extensions, which gets a new item.
const FOLDER: &str = "experiments/extensions";
/// Its paper.
const PAPER: &str = "extensions";

/// Path of the new experiment file, numbered after all existing ones.
fn experiment_file(root: &Path, catalog: &Catalog, name: &Name) -> Result<PathBuf> {
    let (item, folder) = (name.kebab(), Path::new(FOLDER));
    let file = folder.join("paper.yaml");
    if item == "paper" {
        bail!("`paper` is the name of {}; choose another", file.display());
    }
    let paper = catalog.papers.iter().find(|p| p.key == PAPER);
    let paper = paper.with_context(|| format!("{} does not exist", file.display()))?;
    if paper.items.iter().any(|i| i.item == item) {
        bail!("`{item}` is an item of {} already; choose another name", file.display());
    }
    let entries = posenc_files::entries(&root.join(folder))
        .with_context(|| format!("{FOLDER} cannot be listed"))?;
    let number = |file: &str| {
        let digits: String = file.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u32>().ok()
    };
    let taken = entries.iter().filter_map(|entry| number(&entry.name.to_string_lossy()));
    let number = taken.map(|taken| taken.saturating_add(1)).fold(FIRST_NUMBER, u32::max);
    Ok(folder.join(format!("{number:02}-{item}.yaml")))
}

/// Plans the line in `paper.yaml`.
fn register(name: &Name, title: &str, changes: &mut Changes<'_>) -> Result<()> {
    let line = format!(
        "- {{ item: {}, name: {}, title: {} }}",
        name.kebab(),
        quoted(&name.prose()),
        quoted(title)
    );
    changes.insert(&Path::new(FOLDER).join("paper.yaml"), ANCHOR, &line)
}

/// The command that runs a new item.
fn command(name: &Name) -> String {
    format!("cargo xtask reproduce {PAPER}/{}", name.kebab())
}

/// Reads the whole catalog with the new item and plans it at every profile.
fn check_catalog(root: &Path, name: &Name) -> Result<()> {
    let (catalog, item) = (Catalog::read(root, KINDS)?, name.kebab());
    let experiment = catalog.experiment(PAPER, &item).context("the new item was not read")?;
    let is_planned = |profile: &Profile| {
        let everything = Selectors::default();
        !jobs(std::iter::once(experiment), &everything, *profile).is_empty()
            || experiment.groups.iter().all(|group| !group.runs_at(*profile))
    };
    match Profile::ALL.into_iter().find(|profile| !is_planned(profile)) {
        Some(profile) => bail!("{PAPER}/{item} has nothing to run at `{profile}`"),
        None => Ok(()),
    }
}

/// Replaces `{{key}}` by its value, key by key.
fn fill(template: &str, values: &[(&str, String)]) -> String {
    values.iter().fold(template.to_owned(), |text, (key, value)| {
        text.replace(&format!("{{{{{key}}}}}"), value)
    })
}

/// A text as a double-quoted YAML string.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}
