//! `new`: writes files for a new embedder, experiment or paper.

mod changes;
mod embedder;
mod experiment;
mod names;
mod paper;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use posenc_experiments::plan::jobs;
use posenc_experiments::schema::MODELINE;
use posenc_experiments::selector::Selectors;
use posenc_experiments::shell;
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
        NewVerb::Paper(options) => paper::paper(repository, options)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The paper that gets a new item.
struct Target<'a> {
    root: &'a Path,
    /// Relative to the root, or absolute for a folder outside the repository.
    folder: PathBuf,
    key: String,
    include: Vec<PathBuf>,
}

impl<'a> Target<'a> {
    /// The paper in the folder `include`, or else the repository's own extensions; and the catalog with it.
    fn find(root: &'a Path, include: Option<&Path>) -> Result<(Self, Catalog)> {
        let include: Vec<PathBuf> = include.map(absolute).transpose()?.into_iter().collect();
        if let Some(folder) = include.first()
            && !posenc_files::is_there(&folder.join("paper.yaml"))
        {
            bail!(
                "{} has no paper.yaml; make one: cargo xtask new paper NAME --include {0}",
                folder.display()
            );
        }
        let catalog = Catalog::with(root, &include, KINDS)?;
        let own = match include.first() {
            None => Some("extensions".to_owned()),
            Some(folder) => key_in_repository(root, folder),
        };
        let target = match own {
            Some(key) => {
                Target { root, folder: Path::new("experiments").join(&key), key, include: vec![] }
            }
            None => {
                let paper = catalog.papers.last().context("the folder was not read")?;
                let folder = include.first().cloned().unwrap_or_default();
                Target { root, folder, key: paper.key.clone(), include }
            }
        };
        Ok((target, catalog))
    }

    /// Path of the new experiment file, numbered after all existing ones.
    fn experiment_file(&self, catalog: &Catalog, name: &Name) -> Result<PathBuf> {
        let (item, file) = (name.kebab(), self.folder.join("paper.yaml"));
        if item == "paper" {
            bail!("`paper` is the name of {}; choose another", file.display());
        }
        let paper = catalog.papers.iter().find(|p| p.key == self.key);
        let paper = paper.with_context(|| format!("{} does not exist", file.display()))?;
        if paper.items.iter().any(|i| i.item == item) {
            bail!("`{item}` is an item of {} already; choose another name", file.display());
        }
        let folder = self.root.join(&self.folder);
        let entries = posenc_files::entries(&folder)
            .with_context(|| format!("{} cannot be listed", folder.display()))?;
        let number = |file: &str| {
            let digits: String = file.chars().take_while(char::is_ascii_digit).collect();
            digits.parse::<u32>().ok()
        };
        let taken = entries.iter().filter_map(|entry| number(&entry.name.to_string_lossy()));
        let number = taken.map(|taken| taken.saturating_add(1)).fold(FIRST_NUMBER, u32::max);
        Ok(self.folder.join(format!("{number:02}-{item}.yaml")))
    }

    fn register(&self, name: &Name, title: &str, changes: &mut Changes<'_>) -> Result<()> {
        let line = format!(
            "- {{ item: {}, name: {}, title: {} }}",
            name.kebab(),
            quoted(&name.prose()),
            quoted(title)
        );
        changes.insert(&self.folder.join("paper.yaml"), ANCHOR, &line)
    }

    /// The first line of an experiment file, which names its JSON Schema.
    fn modeline(&self) -> Result<String> {
        if self.include.is_empty() {
            return Ok(MODELINE.to_owned());
        }
        let schema = absolute(&self.root.join("experiments/schema.json"))?;
        Ok(MODELINE.replace("../schema.json", &schema.to_string_lossy()))
    }

    /// The command that runs a new item.
    fn command(&self, name: &Name) -> String {
        let include = self.include.iter();
        let include =
            include.map(|own| format!(" --include {}", shell::quoted(&own.to_string_lossy())));
        format!(
            "cargo xtask reproduce {}/{}{}",
            self.key,
            name.kebab(),
            include.collect::<String>()
        )
    }

    /// Reads the whole catalog with the new item and plans it at every profile.
    fn check_catalog(&self, name: &Name) -> Result<()> {
        let catalog = Catalog::with(self.root, &self.include, KINDS)?;
        let (key, item) = (&self.key, name.kebab());
        let experiment = catalog.experiment(key, &item).context("the new item was not read")?;
        let is_planned = |profile: &Profile| {
            let everything = Selectors::default();
            !jobs(std::iter::once(experiment), &everything, *profile).is_empty()
                || experiment.groups.iter().all(|group| !group.runs_at(*profile))
        };
        match Profile::ALL.into_iter().find(|profile| !is_planned(profile)) {
            Some(profile) => bail!("{key}/{item} has nothing to run at `{profile}`"),
            None => Ok(()),
        }
    }
}

/// The key of the repository's paper in a folder, which is the folder's name.
fn key_in_repository(root: &Path, folder: &Path) -> Option<String> {
    let [folder, own] = [folder, &root.join("experiments")].map(|path| path.canonicalize().ok());
    let key = folder?.strip_prefix(own?).ok()?.to_str()?.to_owned();
    Some(key)
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("{} cannot be resolved", path.display()))
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
