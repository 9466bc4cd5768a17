//! All papers and experiments of a repository.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::published::Published;
use crate::schema::paper::Paper;
use crate::schema::{Experiment, Kinds};
use crate::yaml::{FileError, nearest};

/// Everything under `experiments/`, with the published values of `data/papers/`.
#[derive(Debug, Clone)]
pub struct Catalog {
    /// Papers in the order of publication given by [`PAPER_ORDER`], then by name.
    pub papers: Vec<Paper>,
    /// Experiments, by paper and then by file name.
    pub experiments: Vec<Experiment>,
    /// Published values.
    pub published: Published,
}

/// Order of the papers in the report; others follow by name.
pub const PAPER_ORDER: [&str; 3] = ["rethinking", "trading", "lff"];

impl Catalog {
    /// Reads `<root>/experiments` and `<root>/data/papers`.
    pub fn read(root: &Path, kinds: Kinds) -> Result<Self, FileError> {
        let directory = root.join("experiments");
        let mut papers = Vec::new();
        let mut experiments: Vec<Experiment> = Vec::new();
        let mut seen: BTreeMap<String, PathBuf> = BTreeMap::new();
        let mut folders: Vec<PathBuf> =
            list(&directory)?.into_iter().filter(|p| p.is_dir()).collect();
        let rank = |p: &PathBuf| {
            let name = name(p);
            let known = PAPER_ORDER.iter().position(|k| *k == name);
            (known.unwrap_or(PAPER_ORDER.len()), name)
        };
        folders.sort_by_key(rank);
        for folder in folders {
            let key = name(&folder);
            let paper = Paper::read(&folder.join("paper.yaml"))?;
            if paper.key != key {
                let message = format!("`{}`, but the folder is `{key}`", paper.key);
                return Err(FileError::of(folder.join("paper.yaml"), message).at(1).key("key"));
            }
            for file in list(&folder)? {
                let is_experiment =
                    file.extension().is_some_and(|e| e == "yaml") && name(&file) != "paper.yaml";
                if !is_experiment {
                    continue;
                }
                let experiment = Experiment::read(&file, kinds)?;
                let problem = |key, message: String| FileError::of(&file, message).key(key);
                if experiment.paper != key {
                    return Err(problem(
                        "paper",
                        format!("`{}`, but the folder is `{key}`", experiment.paper),
                    ));
                }
                if !paper.items.iter().any(|i| i.item == experiment.item) {
                    let items: Vec<_> = paper.items.iter().map(|i| i.item.as_str()).collect();
                    let hint = nearest(&experiment.item, items.iter().copied())
                        .map(|n| format!("; did you mean `{n}`?"))
                        .unwrap_or_default();
                    return Err(problem(
                        "item",
                        format!(
                            "`{}` is not an item of {key}/paper.yaml{hint} Allowed: {}",
                            experiment.item,
                            items.join(", ")
                        ),
                    ));
                }
                if let Some(other) = seen.insert(experiment.id(), file.clone()) {
                    return Err(problem(
                        "item",
                        format!("{} is defined in {} too", experiment.id(), other.display()),
                    ));
                }
                experiments.push(experiment);
            }
            papers.push(paper);
        }
        let published =
            Published::read(&root.join("data/papers"), papers.iter().map(|p| p.key.as_str()))?;
        Ok(Catalog { papers, experiments, published })
    }

    /// The experiment of an item.
    pub fn experiment(&self, paper: &str, item: &str) -> Option<&Experiment> {
        self.experiments.iter().find(|e| e.paper == paper && e.item == item)
    }
}

fn name(path: &Path) -> String {
    path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Entries of a directory, sorted.
fn list(directory: &Path) -> Result<Vec<PathBuf>, FileError> {
    let problem = |e| FileError::of(directory, format!("cannot be listed: {e}"));
    let mut entries = std::fs::read_dir(directory)
        .map_err(problem)?
        .map(|e| e.map(|e| e.path()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(problem)?;
    entries.sort();
    Ok(entries)
}
