//! All papers and experiments of a repository.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::slice::from_ref;

use crate::coverage::{self, Statement};
use crate::published::Published;
use crate::schema::answer::{self, AnswerSentence};
use crate::schema::claim::{self, Claim, ClaimName, Quantity, Select, Sentence, Statistic};
use crate::schema::display::Comparison;
use crate::schema::metrics::Metrics;
use crate::schema::paper::Paper;
use crate::schema::{Experiment, Kinds};
use crate::text::file_name;
use crate::yaml::{Document, FileError, YamlPath, hint, no_claim, unknown_name};

/// Everything under `experiments/`, with the published values of `data/papers/`.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    /// Papers in the order of [`PAPER_ORDER`], then by name, then the extensions.
    pub papers: Vec<Paper>,
    /// Experiments, by paper and then by file name.
    pub experiments: Vec<Experiment>,
    pub published: Published,
    pub metrics: Metrics,
    /// Kinds of protocols that experiments can use.
    pub kinds: Kinds,
    /// Our answers to the papers' questions, by paper; papers without one are absent.
    pub answers: BTreeMap<String, Vec<AnswerSentence>>,
    /// The same in two or three sentences.
    pub short_answers: BTreeMap<String, Vec<AnswerSentence>>,
    /// Statements of the papers and what tests them, by paper; papers without a list are absent.
    pub coverage: BTreeMap<String, Vec<Statement>>,
    /// Errors of files that [`Catalog::usable`] left out.
    pub broken: Vec<FileError>,
}

/// Order of the papers in the report; others follow by name, and last the extensions.
pub const PAPER_ORDER: [&str; 3] = ["rethinking", "trading", "lff"];

impl Catalog {
    /// Reads `<root>/experiments` and `<root>/data/papers`, and completes claims with the rules of metrics.
    pub fn read(root: &Path, kinds: Kinds) -> Result<Self, FileError> {
        Catalog::with(root, &[], kinds)
    }

    /// Like [`Catalog::read`], with further folders of experiments, each with its `paper.yaml`.
    pub fn with(root: &Path, include: &[PathBuf], kinds: Kinds) -> Result<Self, FileError> {
        let mut catalog = Catalog::usable(root, include, kinds)?;
        let first = (!catalog.broken.is_empty()).then(|| catalog.broken.swap_remove(0));
        first.map_or(Ok(catalog), Err)
    }

    /// Like [`Catalog::with`], but leaves out experiments, papers, answers and lists of statements that have an error, and experiments whose
    /// published values have one.
    pub fn usable(root: &Path, include: &[PathBuf], kinds: Kinds) -> Result<Self, FileError> {
        let mut broken = Vec::new();
        let catalog = Catalog::checked(root, include, kinds, &mut broken);
        let broken = broken.into_iter().map(Document::locate).collect();
        Ok(Catalog { broken, ..catalog.map_err(Document::locate)? })
    }

    fn checked(
        root: &Path,
        include: &[PathBuf],
        kinds: Kinds,
        broken: &mut Vec<FileError>,
    ) -> Result<Self, FileError> {
        let directory = root.join("experiments");
        let mut catalog = Catalog {
            metrics: Metrics::read(&directory.join("metrics.yaml"))?,
            kinds,
            ..Catalog::default()
        };
        let sets = DataSetIds::read(&root.join("data/manifest.yaml"))?;
        let mut folders: Vec<PathBuf> =
            list(&directory)?.into_iter().filter(|p| p.is_dir()).collect();
        let rank = |p: &PathBuf| {
            let name = file_name(p);
            let known = PAPER_ORDER.iter().position(|k| *k == name);
            (known.unwrap_or(PAPER_ORDER.len()), name == crate::derive::PAPER, name)
        };
        folders.sort_by_key(rank);
        let own = folders.len();
        // A folder of the repository is read anyway.
        let resolved = |folder: &Path| folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let read: Vec<PathBuf> = folders.iter().map(|own| resolved(own)).collect();
        folders.extend(include.iter().filter(|own| !read.contains(&resolved(own))).cloned());
        let (mut documents, mut files): (Vec<Document>, Vec<PathBuf>) = (Vec::new(), Vec::new());
        for (i, folder) in folders.iter().enumerate() {
            let file = folder.join("paper.yaml");
            let read = |file: &Path| {
                let document = Document::read(file)?;
                let paper = Paper::from_document(&document)?;
                let (name, root) = (file_name(folder), document.root());
                if i < own && paper.key != name {
                    let message = format!("`{}`, but the folder is `{name}`", paper.key);
                    return Err(root.error("key", message));
                }
                if let Some(other) = catalog.papers.iter().position(|p| p.key == paper.key) {
                    let (key, other) = (&paper.key, files[other].display());
                    let message = format!("`{key}` is the key of {other} already; choose another");
                    return Err(root.error("key", message));
                }
                for (i, set) in paper.data.iter().enumerate() {
                    sets.check(&root.entry("data", i), "", set)?;
                }
                Ok((document, paper))
            };
            match read(&file) {
                Ok((document, paper)) => {
                    let experiments = catalog.read_experiments(folder, &paper, &sets, broken)?;
                    catalog.experiments.extend(experiments);
                    catalog.papers.push(paper);
                    documents.push(document);
                    files.push(file);
                }
                Err(error) => broken.push(error),
            }
        }
        let values = root.join("data/papers");
        let papers: Vec<String> = catalog.papers.iter().map(|paper| paper.key.clone()).collect();
        catalog
            .leave_out_papers(&papers, broken, |own, paper, _| own.published.read(&values, paper));
        catalog.leave_out(&[check_sources, check_repeats], broken);
        catalog.leave_out_papers(&papers, broken, |own, paper, are_left_out| {
            let is_missing = |item: &str| are_left_out && own.experiment(paper, item).is_none();
            own.published.check(&values, paper, &own.experiments, is_missing)
        });
        // A wrong name of a published value would look like one of a table.
        catalog.leave_out(&[check_tables, check_sources, check_repeats, check_published], broken);
        check_pages(&catalog.papers, &directory)?;
        catalog.answers = catalog.read_answers(&documents, "answer", broken, |own| &own.answer);
        catalog.short_answers =
            catalog.read_answers(&documents, "short_answer", broken, |own| &own.short_answer);
        catalog.coverage = catalog.read_coverage(&values, broken);
        Ok(catalog)
    }

    /// Leaves out experiments that fail a check, until none does: others may need those that are left out.
    fn leave_out(&mut self, checks: &[Check], broken: &mut Vec<FileError>) {
        loop {
            let known = broken.len();
            for check in checks {
                let check = |e: &Experiment| check(e, self, known > 0).err();
                let found: Vec<FileError> = self.experiments.iter().filter_map(check).collect();
                self.experiments.retain(|e| found.iter().all(|error| error.file != e.file));
                broken.extend(found);
            }
            if broken.len() == known {
                return;
            }
        }
    }

    /// Leaves out the experiments and the published values of papers whose published values have an error.
    fn leave_out_papers(
        &mut self,
        papers: &[String],
        broken: &mut Vec<FileError>,
        check: impl Fn(&mut Self, &str, bool) -> Result<(), FileError>,
    ) {
        for paper in papers {
            if let Err(error) = check(self, paper, !broken.is_empty()) {
                self.experiments.retain(|own| own.paper != *paper);
                self.published.remove(paper);
                broken.push(error);
            }
        }
    }

    /// Reads the experiments of a paper, without those that have an error.
    fn read_experiments(
        &self,
        folder: &Path,
        paper: &Paper,
        sets: &DataSetIds,
        broken: &mut Vec<FileError>,
    ) -> Result<Vec<Experiment>, FileError> {
        let mut experiments: Vec<Experiment> = Vec::new();
        for file in list(folder)? {
            let is_yaml = file.extension().is_some_and(|e| e == "yaml");
            if !is_yaml || file_name(&file) == "paper.yaml" {
                continue;
            }
            let is_new = |read: &Experiment| {
                let Some(other) = experiments.iter().find(|other| other.item == read.item) else {
                    return Ok(());
                };
                let message = format!("{} is defined in {} too", read.id(), other.file.display());
                Err(FileError::of(&file, message).key("item"))
            };
            let read = self.read_experiment(&file, paper, sets);
            let read = read.and_then(|read| is_new(&read).map(|()| read));
            match read {
                Ok(experiment) => experiments.push(experiment),
                Err(error) => broken.push(error),
            }
        }
        Ok(experiments)
    }

    fn read_experiment(
        &self,
        file: &Path,
        paper: &Paper,
        sets: &DataSetIds,
    ) -> Result<Experiment, FileError> {
        let document = Document::read(file)?;
        let root = document.root();
        let mut experiment = Experiment::from_document(&document, self.kinds)?;
        if experiment.paper != paper.key {
            let message =
                format!("`{}`, but the paper of the folder is `{}`", experiment.paper, paper.key);
            return Err(root.error("paper", message));
        }
        let items: Vec<_> = paper.items.iter().map(|i| i.item.as_str()).collect();
        if !items.contains(&experiment.item.as_str()) {
            let (item, hint) = (&experiment.item, hint(&experiment.item, items.iter().copied()));
            let message = format!(
                "`{item}` is not an item of {}/paper.yaml, which has {}{hint}; to add it, write `- {{ item: {item}, name: \"Table 1\", \
                 title: … }}` under `items` there",
                paper.key,
                if items.is_empty() { "none".to_owned() } else { items.join(", ") }
            );
            return Err(root.error("item", message));
        }
        for (i, claim) in experiment.claims.iter_mut().enumerate() {
            let place = root.entry("claims", i);
            claim.complete(&self.metrics).map_err(|(key, message)| place.error(key, message))?;
        }
        experiment.floors.iter_mut().for_each(|floor| floor.complete(&self.metrics));
        for (i, group) in experiment.groups.iter_mut().enumerate() {
            let Some(data) = &group.data else { continue };
            let place = root.entry("groups", i).key("data");
            let named = [("held_out", &data.held_out), ("weights", &data.weights)];
            sets.check(&place, "set", &data.set)?;
            for (key, set) in named.into_iter().filter_map(|(key, set)| Some((key, set.as_ref()?)))
            {
                sets.check(&place, key, set)?;
            }
            let is_papers = |set: &String| paper.data.contains(set);
            group.is_on_papers_data =
                is_papers(&data.set) && data.held_out.as_ref().is_none_or(is_papers);
        }
        Ok(experiment)
    }

    /// Reads the answer of each paper under `key`, whose claims are named `item#claim`, without those that have an error.
    fn read_answers(
        &self,
        documents: &[Document],
        key: &str,
        broken: &mut Vec<FileError>,
        value: impl Fn(&Paper) -> &Option<serde_yaml::Value>,
    ) -> BTreeMap<String, Vec<AnswerSentence>> {
        let read = |(paper, document): (&Paper, &Document)| {
            let Some(value) = value(paper) else { return Ok(None) };
            let selections = |name: &str| {
                let claim = ClaimName::parse(name, Some(&paper.key)).and_then(|name| {
                    let other = self.papers.iter().find(|other| other.key == name.paper);
                    match self.experiment(&name.paper, &name.item) {
                        Some(_) => Some(self.claim(&name)?.selects().count()),
                        // A copy with some of the experiments has no such claims, so the sentence is not shown.
                        None => other
                            .is_none_or(|other| other.items.iter().any(|own| own.item == name.item))
                            .then_some(usize::MAX),
                    }
                });
                claim.ok_or_else(|| self.no_claim(name, &paper.key))
            };
            let place = document.root().key(key);
            let sentences = answer::parse(&place, value, selections)?;
            let unpublished = sentences.iter().find_map(|own| {
                self.unpublished(&own.sentence, |name| ClaimName::parse(name, Some(&paper.key)))
            });
            match unpublished {
                Some(message) => Err(place.error("", message)),
                None => Ok(Some((paper.key.clone(), sentences))),
            }
        };
        let mut all = BTreeMap::new();
        for paper in self.papers.iter().zip(documents) {
            match read(paper) {
                Ok(answer) => all.extend(answer),
                Err(error) => broken.push(error),
            }
        }
        all
    }

    /// Whether there is a published value of a selection.
    fn is_published(&self, paper: &str, item: &str, select: &Select) -> bool {
        let mut printed = self.published.select(paper, item, select);
        match select.statistic {
            Statistic::Deviation => printed.any(|value| value.deviation.is_some()),
            _ => printed.any(|value| value.value.is_some()),
        }
    }

    /// What is wrong with a sentence that no record can complete, since a number that it takes was not published.
    fn unpublished(
        &self,
        sentence: &Sentence,
        name: impl Fn(&str) -> Option<ClaimName>,
    ) -> Option<String> {
        sentence.numbers().find_map(|number| {
            let Quantity::Published(index) = number.quantity else { return None };
            let name = name(&number.claim)?;
            let select = self.claim(&name)?.selects().nth(index)?;
            let message = format!(
                "`{{paper {}}}` of `{name}`: data/papers/{}.csv has no value of this selection; add it, or leave the number out",
                index + 1,
                name.paper
            );
            (!self.is_published(&name.paper, &name.item, select)).then_some(message)
        })
    }

    /// Reads the statements of the papers, without files that have an error. If experiments are left out, statements may name claims of
    /// these.
    fn read_coverage(
        &self,
        directory: &Path,
        broken: &mut Vec<FileError>,
    ) -> BTreeMap<String, Vec<Statement>> {
        let are_left_out = !broken.is_empty();
        let mut all = BTreeMap::new();
        for paper in &self.papers {
            let file = directory.join(format!("{}.coverage.yaml", paper.key));
            let find = |text: &str| {
                let is_known = |name: &ClaimName| {
                    let is_left_out = || self.experiment(&name.paper, &name.item).is_none();
                    self.claim(name).is_some() || (are_left_out && is_left_out())
                };
                let name = ClaimName::parse(text, Some(&paper.key)).filter(is_known);
                name.ok_or_else(|| self.no_claim(text, &paper.key))
            };
            match coverage::read(&file, find) {
                Ok(statements) if statements.is_empty() => {}
                Ok(statements) => drop(all.insert(paper.key.clone(), statements)),
                Err(error) => broken.push(error),
            }
        }
        all
    }

    /// That no claim has this name, which a file of `paper` gives.
    fn no_claim(&self, name: &str, paper: &str) -> String {
        let all = self.experiments.iter().flat_map(|experiment| {
            let item = match experiment.paper == paper {
                true => experiment.item.clone(),
                false => experiment.id(),
            };
            experiment.claims.iter().map(move |claim| format!("{item}#{}", claim.id))
        });
        let all: Vec<String> = all.collect();
        no_claim(name, all.iter().map(String::as_str))
    }

    pub fn claim(&self, name: &ClaimName) -> Option<&Claim> {
        let experiment = self.experiment(&name.paper, &name.item)?;
        experiment.claims.iter().find(|claim| claim.id == name.claim)
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

/// A check of an experiment against the others, some of which may be left out.
type Check = fn(&Experiment, &Catalog, bool) -> Result<(), FileError>;

/// Rejects a claim that repeats one that does not exist, or that repeats another one itself.
fn check_repeats(
    experiment: &Experiment,
    catalog: &Catalog,
    are_left_out: bool,
) -> Result<(), FileError> {
    for (i, claim) in experiment.claims.iter().enumerate() {
        let Some(name) = &claim.repeats else { continue };
        let message = match catalog.claim(name) {
            None if are_left_out && catalog.experiment(&name.paper, &name.item).is_none() => {
                continue;
            }
            None => format!("there is no claim `{name}`; name the claim that is repeated"),
            Some(other) if other.repeats.is_some() => {
                format!("`{name}` repeats another claim itself; name that one")
            }
            Some(_) => continue,
        };
        let error = FileError::of(&experiment.file, message);
        return Err(error.key(format!("claims[{i}].repeats")));
    }
    Ok(())
}

/// Rejects claims that nothing could decide and sentences that would never be shown, since a published value is missing.
fn check_published(experiment: &Experiment, catalog: &Catalog, _: bool) -> Result<(), FileError> {
    let (file, paper, item) = (&experiment.file, &experiment.paper, &experiment.item);
    for (i, claim) in experiment.claims.iter().enumerate() {
        let mut needed = claim.all_checks().flat_map(claim::Check::published);
        if let Some(select) = needed.find(|s| !catalog.is_published(paper, item, s)) {
            let (Select { group, metric, .. }, method) = (select, select.method.as_deref());
            let message = format!(
                "compares with the paper, but data/papers/{paper}.csv has no value of item `{item}`, group `{group}`, method `{}`, metric `{metric}`; add it, or use another kind of check",
                method.unwrap_or("any")
            );
            return Err(FileError::of(file, message).key(format!("claims[{i}]")));
        }
    }
    let name = |claim: &str| ClaimName::parse(&format!("{paper}/{item}#{claim}"), None);
    let found = experiment.answer.iter().find_map(|own| catalog.unpublished(&own.sentence, name));
    found.map_or(Ok(()), |message| Err(FileError::of(file, message).key("answer")))
}

/// Rejects comparisons of items, groups and methods that do not exist.
fn check_sources(experiment: &Experiment, catalog: &Catalog, _: bool) -> Result<(), FileError> {
    for (i, comparison) in experiment.comparisons.iter().enumerate() {
        let Comparison { item, groups, .. } = comparison;
        let problem = |message| {
            Err(FileError::of(&experiment.file, message).key(format!("comparisons[{i}]")))
        };
        let Some(source) = catalog.experiments.iter().find(|e| e.id() == *item) else {
            return problem(format!("`{item}` is not an item with an experiment"));
        };
        let names: Vec<&str> = source.groups.iter().map(|group| &*group.id).collect();
        let compared = groups.iter().map(|compared| (&compared.group, None));
        let single = comparison.floor.iter().map(|own| (&own.group, Some(&own.method)));
        for (name, method) in compared.chain(single) {
            let group = unknown_name(&format!("group in `{item}` named"), from_ref(name), &names);
            let methods = source.group(name).into_iter().flat_map(|group| &group.variants);
            let methods: Vec<&str> = methods.map(|variant| &*variant.id).collect();
            let method = method.and_then(|method| {
                let what = format!("method in `{item}/{name}` named");
                unknown_name(&what, from_ref(method), &methods)
            });
            if let Some((_, message)) = group.or(method) {
                return problem(message);
            }
        }
    }
    Ok(())
}

/// Rejects tables of groups and methods that are neither in the experiment nor among the published values of its item.
fn check_tables(experiment: &Experiment, catalog: &Catalog, _: bool) -> Result<(), FileError> {
    let published = &catalog.published;
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
    Ok(())
}

/// The ids of data sets in a manifest; `None` without one.
struct DataSetIds(Option<Vec<String>>);

impl DataSetIds {
    /// Reads only the ids; the rest of the manifest is checked where data are loaded.
    fn read(file: &Path) -> Result<Self, FileError> {
        if !posenc_files::is_there(file) {
            return Ok(DataSetIds(None));
        }
        let manifest = Document::read(file)?.value;
        let sets =
            ["sets", "file_sets"].into_iter().filter_map(|key| manifest.get(key)?.as_sequence());
        let ids = sets.flatten().filter_map(|set| Some(set.get("id")?.as_str()?.to_owned()));
        Ok(DataSetIds(Some(ids.collect())))
    }

    /// Rejects an id that is not in the manifest; the error is at `key` below `place`.
    fn check(&self, place: &YamlPath<'_>, key: &str, id: &String) -> Result<(), FileError> {
        let Some(ids) = &self.0 else { return Ok(()) };
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let wrong = unknown_name("data set in data/manifest.yaml named", from_ref(id), &ids);
        wrong.map_or(Ok(()), |(_, message)| Err(place.error(key, message)))
    }
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
        let mut published = Published::default();
        published.read(directory.path(), "demo").unwrap();
        let check = |table: &str| {
            let experiment = experiment(&format!(
                "paper: demo\nitem: fig1\nkind: figure\ntitle: T\nshows: S\ngroups:\n  - id: run\n    \
                 protocol: {{ kind: stable-rank }}\n    variants:\n      - {{ id: A, embedder: {{ kind: identity }} }}\n\
                 tables: [{{ id: t, title: T, columns: [{{ metric: rank, label: rank }}], {table} }}]\n"
            ));
            let catalog = Catalog { published: published.clone(), ..Catalog::default() };
            check_tables(&experiment, &catalog, false).map_err(|error| error.to_string())
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
