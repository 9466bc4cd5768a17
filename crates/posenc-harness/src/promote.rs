//! Promoting records of this machine into the reference: for each method, the better one of two lots of rows, or both joined.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;

use anyhow::Result;
use posenc_experiments::record::picture::is_publishable;
use posenc_experiments::record::{ItemRecord, Origin, Provenance, Row, Table, is_clean, item};
use posenc_experiments::{Experiment, Group, Profile};

use crate::collect::Collected;

/// Whether the reference accepts a device's measurements. A software adapter repeats the CPU's numbers and would replace them.
fn is_recordable(device: &str) -> bool {
    !device.starts_with("software adapter")
}

/// Rank of a method's rows: first by data (the paper's own, its substitute, other), then the full protocol before reduced ones, then by
/// profile.
fn rank(group: &Group, rows: &[Row]) -> Option<(u8, bool, Profile)> {
    let smallest = rows.iter().map(|r| r.profile).min()?;
    let data = |r: &Row| match &group.data {
        Some(d) if *d.measured() == r.data => 2,
        Some(d) if r.data.strip_prefix("substitute:") == Some(d.measured()) => 1,
        Some(_) => 0,
        None => 2,
    };
    let data = rows.iter().map(data).min()?;
    Some((data, group.reduced(smallest).is_none(), smallest))
}

/// The rows and pictures of a method in one run, with their origin and commit.
#[derive(Default)]
struct Lot<'a> {
    rows: Vec<Row>,
    pictures: Vec<Row>,
    origin: Option<&'a Origin>,
    commit: &'a str,
}

/// The lots of a run, by group and method.
fn lots(table: Table, provenance: &Provenance) -> HashMap<(String, String), Lot<'_>> {
    let mut all: HashMap<_, Lot<'_>> = HashMap::new();
    let pictures = table.pictures.into_iter().map(|row| (row, true));
    let rows = table.rows.into_iter().map(|row| (row, false)).chain(pictures);
    for (row, is_picture) in rows.filter(|(row, _)| is_recordable(&row.device)) {
        let lot = all.entry((row.group.clone(), row.method.clone())).or_insert_with(|| Lot {
            origin: provenance.origins.get(&format!("{}/{}", row.group, row.method)),
            commit: provenance.commit_of(&row.group, &row.method),
            ..Lot::default()
        });
        let list = if is_picture { &mut lot.pictures } else { &mut lot.rows };
        list.push(row);
    }
    all
}

impl Lot<'_> {
    /// Whether another lot has the same numbers and pictures.
    fn is_same(&self, other: &Lot<'_>) -> bool {
        let [own, others] = [self, other].map(|lot| lot.rows.iter().chain(&lot.pictures));
        own.clone().count() == others.clone().count() && own.zip(others).all(|(a, b)| a.is_same(b))
    }

    fn retain(&mut self, is_kept: impl Fn(&Row) -> bool) {
        self.rows.retain(&is_kept);
        self.pictures.retain(is_kept);
    }

    /// The common origin of two lots of one protocol. Profiles of it may differ in the number of signals.
    fn common_origin(&self, other: &Lot<'_>) -> Option<Origin> {
        let (own, others) = (self.origin?, other.origin?);
        let signals = own.signals.max(others.signals);
        let with_all = |origin: &Origin| Origin { signals, ..origin.clone() };
        with_all(own).differences(&with_all(others)).is_empty().then(|| with_all(own))
    }

    /// Signals of the units that `other` has and this lot lacks.
    fn missing_signals(&self, other: &Lot<'_>) -> BTreeSet<String> {
        let own: HashSet<(u64, &str)> = self.rows.iter().map(unit).collect();
        let missing = other.rows.iter().filter(|row| !own.contains(&unit(row)));
        missing.map(|row| row.signal.clone()).collect()
    }
}

fn unit(row: &Row) -> (u64, &str) {
    (row.seed, &row.signal)
}

/// Which of two lots of a method the reference gets.
enum Choice {
    Local,
    Reference,
    /// Nothing new: the numbers, their origin and what identifies the code are the same.
    Same,
    /// Both: they are parts of one protocol.
    Joined(Origin),
}

/// Chooses between the rows of a run and those of the reference. Rows of equal rank come from a newer run of the same protocol; they
/// replace the old ones if that run is complete or has at least as many rows.
fn choose(group: &Group, local: &Lot<'_>, is_complete: bool, reference: &Lot<'_>) -> Choice {
    let is_same_origin = match (local.origin, reference.origin) {
        (Some(own), Some(other)) => own.differences(other).is_empty(),
        _ => true,
    };
    let is_identified = is_clean(local.commit) && !is_clean(reference.commit);
    if local.is_same(reference) && is_same_origin && !is_identified {
        return Choice::Same;
    }
    let [own, others] = [local, reference].map(|lot| rank(group, &lot.rows));
    // A complete run of a smaller profile is joined only if the reference lacks some of its units.
    let is_part = !is_complete || own < others && !reference.missing_signals(local).is_empty();
    match local.common_origin(reference).filter(|_| is_part) {
        Some(origin) => Choice::Joined(origin),
        None if own > others => Choice::Local,
        None if own == others && (is_complete || local.rows.len() >= reference.rows.len()) => {
            Choice::Local
        }
        None => Choice::Reference,
    }
}

/// Rows of two lots of one protocol; the first wins where both have a unit. All get the larger profile, because a smaller one may be
/// the same protocol with fewer signals.
fn joined(own: &[Row], others: &[Row]) -> Vec<Row> {
    let units: HashSet<(u64, &str)> = own.iter().map(unit).collect();
    let others = others.iter().filter(|row| !units.contains(&unit(row)));
    let mut rows: Vec<Row> = others.chain(own).cloned().collect();
    rows.sort_by(|a, b| unit(a).cmp(&unit(b)));
    let profile = rows.iter().map(|row| row.profile).max();
    rows.iter_mut().for_each(|row| row.profile = profile.unwrap_or(row.profile));
    rows
}

#[derive(Default)]
pub struct Promoted {
    /// Whether the reference has new rows, or fewer pictures.
    pub is_taken: bool,
    /// Methods (`group/method`) whose rows in the reference are kept because they are better.
    pub kept: Vec<String>,
    /// Methods whose recorded rows were replaced although the run lacks some of their signals, with these signals.
    pub dropped: Vec<(String, BTreeSet<String>)>,
}

/// Merges a local record into the reference, method by method. A smaller profile, other data or an interrupted run never replaces better
/// rows, and a run of one method leaves the others unchanged. Of an untrained model, only sizes are taken. A run of some signals is joined
/// with recorded units of the same protocol, code version, seed and data.
pub fn promote(experiment: &Experiment, local: &Collected, directory: &Path) -> Result<Promoted> {
    let folder = item::folder(directory, &experiment.paper, &experiment.item);
    let (mut old, before) = ItemRecord::read_tables(&folder)?.unwrap_or_default();
    let recorded = old.pictures.len();
    let mut new = local.table.clone();
    for table in [&mut new, &mut old] {
        keep_wanted(experiment, &mut table.pictures);
    }
    let (mut ours, mut theirs) = (lots(new, &local.provenance), lots(old.clone(), &before));
    let mut promoted = Promoted::default();
    let mut provenance = local.provenance.clone();
    provenance.commits.clear();
    let mut merged = Table::default();
    for group in &experiment.groups {
        let of_group = |table: &'_ Table| -> Vec<String> {
            let rows = table.rows.iter().filter(|row| row.group == group.id);
            rows.map(|row| row.method.clone()).collect()
        };
        // Variants in file order, then other methods of the run, because a variant may measure several. Methods that only the reference
        // has are kept unless the run has the group.
        let mut methods: Vec<String> = group.variants.iter().map(|v| v.id.clone()).collect();
        let of_run = of_group(&local.table);
        let others = if of_run.is_empty() { of_group(&old) } else { of_run };
        let mut known: HashSet<String> = methods.iter().cloned().collect();
        methods.extend(others.into_iter().filter(|method| known.insert(method.clone())));
        for method in &methods {
            let name = format!("{}/{method}", group.id);
            let [mut own, mut others] = [&mut ours, &mut theirs]
                .map(|all| all.remove(&(group.id.clone(), method.clone())).unwrap_or_default());
            let is_measured = !own.rows.is_empty();
            own.retain(|row| group.untrained(row).is_none());
            let is_complete = !local.incomplete.iter().any(|(g, m)| *g == group.id && m == method);
            let choice = match own.rows.is_empty() {
                true => Choice::Same,
                false => {
                    // Rows of a profile that the group no longer has make room for any run.
                    others.retain(|row| group.runs_at(row.profile));
                    choose(group, &own, is_complete, &others)
                }
            };
            let is_local = matches!(choice, Choice::Local | Choice::Joined(_));
            promoted.is_taken |= is_local;
            let lot = match choice {
                Choice::Joined(origin) => {
                    provenance.origins.insert(name.clone(), origin);
                    let rows = joined(&own.rows, &others.rows);
                    Lot { rows, pictures: joined(&own.pictures, &others.pictures), ..own }
                }
                Choice::Local => {
                    let missing = own.missing_signals(&others);
                    if !is_complete && !missing.is_empty() {
                        promoted.dropped.push((name.clone(), missing));
                    }
                    own
                }
                Choice::Reference => {
                    promoted.kept.push(name.clone());
                    others
                }
                Choice::Same => others,
            };
            if !is_local && is_measured {
                provenance.origins.remove(&name);
            }
            if lot.commit != provenance.commit && !lot.rows.is_empty() {
                provenance.commits.insert(name, lot.commit.to_owned());
            }
            merged.rows.extend(lot.rows);
            merged.pictures.extend(lot.pictures);
        }
    }
    if promoted.is_taken {
        let of_group = |group: &'_ Group| -> Vec<String> {
            group.variants.iter().map(|v| format!("{}/{}", group.id, v.id)).collect()
        };
        let defined: HashSet<String> = experiment.groups.iter().flat_map(of_group).collect();
        for (key, origin) in before.origins.iter().filter(|(key, _)| defined.contains(*key)) {
            provenance.origins.entry(key.clone()).or_insert_with(|| origin.clone());
        }
        // Rows of two runs can be on different data.
        for (label, sha) in &before.data {
            if merged.rows.iter().any(|row| row.data == *label) {
                provenance.data.entry(label.clone()).or_insert_with(|| sha.clone());
            }
        }
        // Two joined runs may have pictures of different signals.
        keep_wanted(experiment, &mut merged.pictures);
        ItemRecord::write(&folder, &merged, &provenance, &local.sources)?;
    } else if !old.rows.is_empty() {
        // Restores lost pictures, and removes those that the definition no longer shows.
        ItemRecord::write(&folder, &old, &before, &local.sources)?;
        promoted.is_taken = old.pictures.len() < recorded;
    }
    Ok(promoted)
}

/// Keeps the pictures that the reference accepts and the definition shows. Those of a data set or of a user's files are not ours to publish.
fn keep_wanted(experiment: &Experiment, pictures: &mut Vec<Row>) {
    pictures.retain(|own| is_publishable(&own.data));
    let grids: Vec<_> = experiment.pictures.iter().map(|grid| grid.selection(pictures)).collect();
    pictures.retain(|own| grids.iter().any(|shows| shows(own)));
}

#[cfg(test)]
mod tests;
