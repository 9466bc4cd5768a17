//! All papers and experiments of a repository.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use crate::coverage::{self, Statement};
use crate::published::Published;
use crate::schema::answer::{self, AnswerSentence};
use crate::schema::claim::{Claim, ClaimName};
use crate::schema::display::Comparison;
use crate::schema::metrics::Metrics;
use crate::schema::paper::Paper;
use crate::schema::{Experiment, Kinds};
use crate::text::file_name;
use crate::yaml::{Document, FileError, hint, unknown_name};

/// Everything under `experiments/`, with the published values of `data/papers/`.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    /// Papers in the order of [`PAPER_ORDER`], then by name, then the extensions.
    pub papers: Vec<Paper>,
    /// Experiments, by paper and then by file name.
    pub experiments: Vec<Experiment>,
    pub published: Published,
    pub metrics: Metrics,
    /// Our answers to the papers' questions, by paper; papers without one are absent.
    pub answers: BTreeMap<String, Vec<AnswerSentence>>,
    /// The same in two or three sentences.
    pub short_answers: BTreeMap<String, Vec<AnswerSentence>>,
    /// Statements of the papers and what tests them, by paper; papers without a list are absent.
    pub coverage: BTreeMap<String, Vec<Statement>>,
}

/// Order of the papers in the report; others follow by name, and last the extensions.
pub const PAPER_ORDER: [&str; 3] = ["rethinking", "trading", "lff"];

impl Catalog {
    /// Reads `<root>/experiments` and `<root>/data/papers`, and completes claims with the rules of metrics.
    pub fn read(root: &Path, kinds: Kinds) -> Result<Self, FileError> {
        Catalog::checked(root, kinds).map_err(Document::locate)
    }

    fn checked(root: &Path, kinds: Kinds) -> Result<Self, FileError> {
        let directory = root.join("experiments");
        let metrics = Metrics::read(&directory.join("metrics.yaml"))?;
        let mut papers = Vec::new();
        let mut experiments: Vec<Experiment> = Vec::new();
        let mut seen: BTreeMap<String, PathBuf> = BTreeMap::new();
        let mut folders: Vec<PathBuf> =
            list(&directory)?.into_iter().filter(|p| p.is_dir()).collect();
        let rank = |p: &PathBuf| {
            let name = file_name(p);
            let known = PAPER_ORDER.iter().position(|k| *k == name);
            (known.unwrap_or(PAPER_ORDER.len()), name == crate::derive::PAPER, name)
        };
        folders.sort_by_key(rank);
        for folder in folders {
            let key = file_name(&folder);
            let paper = Paper::read(&folder.join("paper.yaml"))?;
            if paper.key != key {
                let message = format!("`{}`, but the folder is `{key}`", paper.key);
                return Err(FileError::of(folder.join("paper.yaml"), message).key("key"));
            }
            for file in list(&folder)? {
                let is_experiment = file.extension().is_some_and(|e| e == "yaml")
                    && file_name(&file) != "paper.yaml";
                if !is_experiment {
                    continue;
                }
                let mut experiment = Experiment::read(&file, kinds)?;
                let problem = |key: &str, message: String| FileError::of(&file, message).key(key);
                for (i, claim) in experiment.claims.iter_mut().enumerate() {
                    claim.complete(&metrics).map_err(|(key, message)| {
                        problem(&format!("claims[{i}].{key}"), message)
                    })?;
                }
                experiment.floors.iter_mut().for_each(|floor| floor.complete(&metrics));
                for group in &mut experiment.groups {
                    let is_papers = |set: &String| paper.data.contains(set);
                    group.is_on_papers_data = group.data.as_ref().is_none_or(|data| {
                        is_papers(&data.set) && data.held_out.as_ref().is_none_or(is_papers)
                    });
                }
                if experiment.paper != key {
                    let message = format!("`{}`, but the folder is `{key}`", experiment.paper);
                    return Err(problem("paper", message));
                }
                if !paper.items.iter().any(|i| i.item == experiment.item) {
                    let items: Vec<_> = paper.items.iter().map(|i| i.item.as_str()).collect();
                    let (item, hint) =
                        (&experiment.item, hint(&experiment.item, items.iter().copied()));
                    let message = format!(
                        "`{item}` is not an item of {key}/paper.yaml; allowed: {}{hint}",
                        items.join(", ")
                    );
                    return Err(problem("item", message));
                }
                if let Some(other) = seen.insert(experiment.id(), file.clone()) {
                    let (id, other) = (experiment.id(), other.display());
                    return Err(problem("item", format!("{id} is defined in {other} too")));
                }
                experiments.push(experiment);
            }
            papers.push(paper);
        }
        check_pages(&papers, &directory)?;
        check_sources(&experiments)?;
        let published =
            Published::read(&root.join("data/papers"), papers.iter().map(|p| p.key.as_str()))?;
        published.check(&root.join("data/papers"), &experiments)?;
        check_tables(&experiments, &published)?;
        let mut catalog = Catalog { papers, experiments, published, metrics, ..Catalog::default() };
        catalog.check_repeats()?;
        catalog.answers = catalog.read_answers(&directory, "answer", |own| &own.answer)?;
        catalog.short_answers =
            catalog.read_answers(&directory, "short_answer", |own| &own.short_answer)?;
        catalog.coverage = catalog.read_coverage(root)?;
        Ok(catalog)
    }

    /// Reads the answer of each paper under `key`, whose claims are named `item#claim`.
    fn read_answers(
        &self,
        directory: &Path,
        key: &str,
        value: impl Fn(&Paper) -> &Option<serde_yaml::Value>,
    ) -> Result<BTreeMap<String, Vec<AnswerSentence>>, FileError> {
        let read = |paper: &Paper| {
            let Some(value) = value(paper) else { return Ok(None) };
            let selections = |name: &str| {
                let name = ClaimName::parse(name, Some(&paper.key))?;
                let other = self.papers.iter().find(|other| other.key == name.paper);
                match self.experiment(&name.paper, &name.item) {
                    Some(_) => Some(self.claim(&name)?.selects().count()),
                    // A copy with some of the experiments has no such claims, so the sentence is not shown.
                    None => other
                        .is_none_or(|other| other.items.iter().any(|own| own.item == name.item))
                        .then_some(usize::MAX),
                }
            };
            let document = Document::read(&directory.join(&paper.key).join("paper.yaml"))?;
            let sentences = answer::parse(&document.root().key(key), value, selections)?;
            Ok(Some((paper.key.clone(), sentences)))
        };
        self.papers.iter().filter_map(|paper| read(paper).transpose()).collect()
    }

    fn read_coverage(&self, root: &Path) -> Result<BTreeMap<String, Vec<Statement>>, FileError> {
        let mut all = BTreeMap::new();
        for paper in &self.papers {
            let file = root.join("data/papers").join(format!("{}.coverage.yaml", paper.key));
            let is_known = |name: &ClaimName| self.claim(name).is_some();
            let statements = coverage::read(&file, &paper.key, is_known)?;
            if !statements.is_empty() {
                all.insert(paper.key.clone(), statements);
            }
        }
        Ok(all)
    }

    pub fn claim(&self, name: &ClaimName) -> Option<&Claim> {
        let experiment = self.experiment(&name.paper, &name.item)?;
        experiment.claims.iter().find(|claim| claim.id == name.claim)
    }

    /// Checks that every `repeats` names an existing claim that does not repeat another one.
    fn check_repeats(&self) -> Result<(), FileError> {
        for experiment in &self.experiments {
            for (i, claim) in experiment.claims.iter().enumerate() {
                let Some(name) = &claim.repeats else { continue };
                let message = match self.claim(name) {
                    None => format!("there is no claim `{name}`; name the claim that is repeated"),
                    Some(other) if other.repeats.is_some() => {
                        format!("`{name}` repeats another claim itself; name that one")
                    }
                    Some(_) => continue,
                };
                let error = FileError::of(&experiment.file, message);
                return Err(error.key(format!("claims[{i}].repeats")));
            }
        }
        Ok(())
    }

    pub fn experiment(&self, paper: &str, item: &str) -> Option<&Experiment> {
        self.experiments.iter().find(|e| e.paper == paper && e.item == item)
    }
}

/// Rejects items on the page of an item that does not exist or is on another page itself.
fn check_pages(papers: &[Paper], directory: &Path) -> Result<(), FileError> {
    let all = || papers.iter().flat_map(|paper| paper.items.iter().map(move |own| (paper, own)));
    for (paper, item) in all() {
        let Some(page) = &item.page else { continue };
        // A copy may lack the other paper.
        let of_paper = page.split_once('/').map_or("", |(of, _)| of);
        if !of_paper.is_empty() && !papers.iter().any(|other| other.key == of_paper) {
            continue;
        }
        let host = all().find(|(of, own)| *page == format!("{}/{}", of.key, own.item));
        if host.is_none_or(|(of, own)| of.key == paper.key || own.page.is_some()) {
            let message = format!(
                "`{page}` of item `{}` is not an item of another paper with a page of its own; name one as PAPER/ITEM",
                item.item
            );
            let file = directory.join(&paper.key).join("paper.yaml");
            return Err(FileError::of(file, message).key("items"));
        }
    }
    Ok(())
}

/// Rejects comparisons of items, groups and methods that do not exist.
fn check_sources(experiments: &[Experiment]) -> Result<(), FileError> {
    for experiment in experiments {
        for (i, comparison) in experiment.comparisons.iter().enumerate() {
            let Comparison { item, groups, .. } = comparison;
            let problem = |message| {
                Err(FileError::of(&experiment.file, message).key(format!("comparisons[{i}]")))
            };
            let Some(source) = experiments.iter().find(|e| e.id() == *item) else {
                return problem(format!("`{item}` is not an item with an experiment"));
            };
            let compared = groups.iter().map(|compared| (&compared.group, None));
            let single = comparison.per_signal().map(|own| (&own.group, Some(&own.method)));
            for (name, method) in compared.chain(single) {
                let Some(group) = source.group(name) else {
                    let ids: Vec<_> = source.groups.iter().map(|g| g.id.as_str()).collect();
                    let allowed = ids.join(", ");
                    return problem(format!("`{item}` has no group `{name}`; allowed: {allowed}"));
                };
                let ids: Vec<_> = group.variants.iter().map(|v| v.id.as_str()).collect();
                if let Some(method) = method.filter(|method| !ids.contains(&method.as_str())) {
                    let allowed = ids.join(", ");
                    return problem(format!(
                        "`{item}/{name}` has no method `{method}`; allowed: {allowed}"
                    ));
                }
            }
        }
    }
    Ok(())
}

/// Rejects tables of groups and methods that are neither in the experiment nor among the published values of its item.
fn check_tables(experiments: &[Experiment], published: &Published) -> Result<(), FileError> {
    for experiment in experiments.iter().filter(|e| !e.tables.is_empty()) {
        let mut known: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for group in &experiment.groups {
            let variants = group.variants.iter().map(|variant| variant.id.as_str());
            known.entry(&group.id).or_default().extend(variants);
        }
        for value in published.item(&experiment.paper, &experiment.item) {
            known.entry(&value.group).or_default().insert(&value.method);
        }
        let groups: Vec<&str> = known.keys().copied().collect();
        for (i, table) in experiment.tables.iter().enumerate() {
            let own: HashSet<&str> = table.groups.iter().map(String::as_str).collect();
            let of_groups = known.iter().filter(|(group, _)| own.contains(*group));
            let methods: Vec<&str> = of_groups.flat_map(|(_, methods)| methods).copied().collect();
            let chosen = table.methods.as_deref().unwrap_or_default();
            let wrong_group = unknown_name("group", &table.groups, &groups);
            let wrong = wrong_group.map(|wrong| ("groups", wrong)).or_else(|| {
                let wrong_method = unknown_name("method", chosen, &methods);
                wrong_method.map(|wrong| ("methods", wrong))
            });
            let error = |key: String, message| {
                Err(FileError::of(&experiment.file, message).key(format!("tables[{i}].{key}")))
            };
            if let Some((key, (j, message))) = wrong {
                return error(format!("{key}[{j}]"), message);
            }
            for (j, column) in table.columns.iter().enumerate() {
                let measured = table.groups.iter().filter_map(|id| experiment.group(id));
                let problems = measured.map(|group| group.metric_problem(&column.metric));
                let problem = problems.reduce(|a, b| a.and(b)).flatten();
                let mut printed = published.item(&experiment.paper, &experiment.item);
                // A copy of some groups may have columns of others.
                let is_known = experiment.kinds.all.iter().any(|kind| kind.records(&column.metric));
                if let Some(message) =
                    problem.filter(|_| !is_known && !printed.any(|v| v.metric == column.metric))
                {
                    return error(format!("columns[{j}].metric"), message);
                }
            }
        }
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::protocol::testing::experiment;

    /// Catches a misspelled group or method of a table, and names that only published values have but are refused.
    #[test]
    fn tables_name_groups_and_methods_that_exist() {
        let directory = tempfile::tempdir().unwrap();
        let published = "item,group,method,signal,metric,x,value,std,unit,source,note\n\
                         fig1,run,C,,rank,,1,,,paper,\nfig1,printed,D,,rank,,1,,,paper,\n";
        std::fs::write(directory.path().join("demo.csv"), published).unwrap();
        let published = Published::read(directory.path(), ["demo"].into_iter()).unwrap();
        let check = |table: &str| {
            let experiment = experiment(&format!(
                "paper: demo\nitem: fig1\nkind: figure\ntitle: T\nshows: S\ngroups:\n  - id: run\n    \
                 protocol: {{ kind: stable-rank }}\n    variants:\n      - {{ id: A, embedder: {{ kind: identity }} }}\n\
                 tables: [{{ id: t, title: T, columns: [{{ metric: rank, label: rank }}], {table} }}]\n"
            ));
            check_tables(&[experiment], &published).map_err(|error| error.to_string())
        };
        for table in ["groups: [run]", "groups: [run, printed], methods: [A, C, D]"] {
            assert_eq!(check(table), Ok(()), "{table}");
        }
        for (table, key, message) in [
            (
                "groups: [run, printde]",
                "groups[1]",
                "no group `printde`; allowed: printed, run; did you",
            ),
            ("groups: [run], methods: [A, Gau]", "methods[1]", "no method `Gau`; allowed: A, C"),
            ("groups: [run], methods: [D]", "methods[0]", "no method `D`; allowed: A, C"),
        ] {
            let error = check(table).unwrap_err();
            assert!(error.contains(&format!("tables[0].{key}")), "{table}: {error}");
            assert!(error.contains(message), "{table}: {error}");
        }
    }
}
