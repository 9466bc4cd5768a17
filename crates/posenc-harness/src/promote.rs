//! Promoting records of this machine into the reference.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use anyhow::Result;
use posenc_experiments::record::gallery::{Content, is_publishable};
use posenc_experiments::record::{
    CaptionRecord, CaptionedMethod, Gallery, GalleryPicture, Origin, Provenance, Row, Table,
    is_clean, pair,
};
use posenc_experiments::{Experiment, Group, Profile};
use posenc_files::is_there;

use crate::collect::Collected;

/// `<directory>/<paper>/<item>.csv` and its provenance.
pub fn files(directory: &Path, experiment: &Experiment) -> (PathBuf, PathBuf) {
    let stem = directory.join(&experiment.paper).join(&experiment.item);
    (stem.with_extension("csv"), stem.with_extension("provenance.json"))
}

/// Whether the reference accepts a device's measurements. A software adapter repeats the CPU's numbers and would replace them.
fn is_recordable(device: &str) -> bool {
    !device.starts_with("software adapter")
}

/// Rank of a method's rows: first by data (the paper's own, its substitute, other), then the full protocol before reduced ones, then by
/// profile.
fn worth(group: &Group, rows: &[&Row]) -> Option<(u8, bool, Profile)> {
    let smallest = rows.iter().map(|r| r.profile).min()?;
    let data = |r: &&Row| match &group.data {
        Some(d) if d.set == r.data => 2,
        Some(d) if r.data.strip_prefix("substitute:") == Some(&d.set) => 1,
        Some(_) => 0,
        None => 2,
    };
    let data = rows.iter().map(data).min()?;
    Some((data, group.reduced(smallest).is_none(), smallest))
}

/// Rows by group and method.
type ByMethod<'a> = HashMap<(&'a str, &'a str), Vec<&'a Row>>;

fn by_method(table: &Table) -> ByMethod<'_> {
    let mut all = ByMethod::new();
    for row in &table.rows {
        all.entry((&row.group, &row.method)).or_default().push(row);
    }
    all
}

fn is_same(a: &[impl Borrow<Row>], b: &[impl Borrow<Row>]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.borrow().is_same(b.borrow()))
}

fn unit(row: &Row) -> (u64, String) {
    (row.seed, row.signal.clone())
}

/// Adds the units of an earlier run of the same protocol that this run lacks. All rows get the larger profile, because a smaller one may be
/// the same protocol with fewer signals.
fn joined(mine: Vec<Row>, theirs: Vec<Row>) -> Vec<Row> {
    let own: HashSet<(u64, String)> = mine.iter().map(unit).collect();
    let others = theirs.into_iter().filter(|row| !own.contains(&unit(row)));
    let mut rows: Vec<Row> = others.chain(mine).collect();
    rows.sort_by_key(unit);
    let profile = rows.iter().map(|row| row.profile).max();
    rows.iter_mut().for_each(|row| row.profile = profile.unwrap_or(row.profile));
    rows
}

/// Signals of the units in `others` that `rows` lacks.
fn missing_signals(rows: &[Row], others: &[Row]) -> BTreeSet<String> {
    let own: HashSet<(u64, String)> = rows.iter().map(unit).collect();
    others.iter().filter(|row| !own.contains(&unit(row))).map(|row| row.signal.clone()).collect()
}

/// Result of [`promote`].
pub struct Promoted {
    /// Whether the reference now contains local rows of any method.
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
    let (csv, provenance_file) = files(directory, experiment);
    let (paper, item) = (&experiment.paper, &experiment.item);
    let (old, before) = match is_there(&csv) {
        true => pair::read(&csv, &provenance_file, paper, item)?,
        false => Default::default(),
    };
    let mut merged = Table::default();
    let mut provenance = local.provenance.clone();
    let mut kept = Vec::new();
    let mut dropped = Vec::new();
    let mut stays = BTreeSet::new();
    let mut taken = HashSet::new();
    let (local_rows, old_rows) = (by_method(&local.table), by_method(&old));
    let incomplete: HashSet<(&str, &str)> =
        local.incomplete.iter().map(|(group, method)| (group.as_str(), method.as_str())).collect();
    for group in &experiment.groups {
        let of = |rows: &ByMethod<'_>, method: &str| -> Vec<Row> {
            let rows = rows.get(&(group.id.as_str(), method)).into_iter().flatten();
            rows.filter(|r| is_recordable(&r.device)).map(|r| (*r).clone()).collect()
        };
        // Variants in file order, then other methods of the run, because a variant may measure several. Methods that only the reference has
        // are kept if they are still defined.
        let mut methods: Vec<&str> = group.variants.iter().map(|v| v.id.as_str()).collect();
        let mut known: HashSet<&str> = methods.iter().copied().collect();
        for row in local.table.rows.iter().filter(|r| r.group == group.id) {
            if known.insert(&row.method) {
                methods.push(&row.method);
            }
        }
        if !local.table.rows.iter().any(|r| r.group == group.id) {
            merged.rows.extend(old.rows.iter().filter(|r| r.group == group.id).cloned());
            continue;
        }
        for method in methods {
            let (mut mine, mut theirs) = (of(&local_rows, method), of(&old_rows, method));
            mine.retain(|row| group.untrained(row).is_none());
            if mine.is_empty() {
                if local_rows.contains_key(&(group.id.as_str(), method)) {
                    // Rows of a software adapter or of an untrained model are rejected, and so is their origin.
                    stays.insert(format!("{}/{method}", group.id));
                }
                merged.rows.extend(theirs);
                continue;
            }
            // Rows of a profile that the group no longer has make room for any run.
            theirs.retain(|row| group.runs_at(row.profile));
            let complete = !incomplete.contains(&(group.id.as_str(), method));
            let worth_mine = worth(group, &mine.iter().collect::<Vec<_>>());
            let worth_theirs = worth(group, &theirs.iter().collect::<Vec<_>>());
            // Rows of equal worth come from a newer run of the same protocol. They replace the old ones if that run is complete or has at
            // least as many rows.
            let better = worth_mine > worth_theirs
                || worth_mine == worth_theirs && (complete || mine.len() >= theirs.len());
            let name = format!("{}/{method}", group.id);
            let origins = (local.provenance.origins.get(&name), before.origins.get(&name));
            // Profiles of the same protocol may differ in the number of signals.
            let same_protocol = match origins {
                (Some(own), Some(earlier)) => {
                    let signals = own.signals.max(earlier.signals);
                    let with_all = |origin: &Origin| Origin { signals, ..origin.clone() };
                    let is_same = with_all(own).differences(&with_all(earlier)).is_empty();
                    is_same.then(|| with_all(own))
                }
                _ => None,
            };
            // A complete run of a smaller profile is joined only if the reference lacks some of its units.
            let is_part = !complete
                || worth_mine < worth_theirs && !missing_signals(&theirs, &mine).is_empty();
            if let Some(origin) = same_protocol.filter(|_| is_part) {
                merged.rows.extend(joined(mine, theirs));
                provenance.origins.insert(name.clone(), origin);
                taken.insert(name);
            } else if better {
                let missing = missing_signals(&mine, &theirs);
                if !complete && !missing.is_empty() {
                    dropped.push((name.clone(), missing));
                }
                merged.rows.extend(mine);
                taken.insert(name);
            } else {
                merged.rows.extend(theirs);
                kept.push(name.clone());
                stays.insert(name);
            }
        }
    }
    let is_identified = set_commits(&mut provenance, &taken, &merged, (&old_rows, &before));
    // Equal numbers of a newer version: without the new origin, `--from` would reject the record.
    let is_newer = provenance.origins.iter().any(|(variant, own)| {
        let earlier = before.origins.get(variant).filter(|_| !stays.contains(variant));
        earlier.is_some_and(|earlier| !own.differences(earlier).is_empty())
    });
    if !taken.is_empty() && (is_identified || is_newer || !is_same(&merged.rows, &old.rows)) {
        // Rows that stay keep their origin.
        provenance.origins.retain(|key, _| !stays.contains(key));
        let of_group = |group: &Group| -> Vec<String> {
            group.variants.iter().map(|v| format!("{}/{}", group.id, v.id)).collect()
        };
        let defined: HashSet<String> = experiment.groups.iter().flat_map(of_group).collect();
        for (key, origin) in before.origins {
            if defined.contains(&key) {
                provenance.origins.entry(key).or_insert(origin);
            }
        }
        if !kept.is_empty() || merged.rows.len() > local.table.rows.len() {
            // One record can combine rows of two runs: keep the provenance of the older data.
            for (label, sha) in before.data {
                provenance.data.entry(label).or_insert(sha);
            }
        }
        pair::write(&csv, &provenance_file, paper, item, (&merged, &provenance))?;
    }
    Ok(Promoted { is_taken: !taken.is_empty(), kept, dropped })
}

/// Sets the commits of the methods of a merged table. Methods in `taken` get the commit of the local run; the others keep theirs. Equal
/// rows keep a commit that identifies the source code if that of the local run does not.
///
/// Returns whether the rows of a method get such a commit for the first time.
fn set_commits(
    provenance: &mut Provenance,
    taken: &HashSet<String>,
    merged: &Table,
    (old_rows, before): (&ByMethod<'_>, &Provenance),
) -> bool {
    let mut is_identified = false;
    let mut commits = BTreeMap::new();
    for (key, rows) in by_method(merged) {
        let (group, method) = key;
        let (own, earlier) = (provenance.commit_of(group, method), before.commit_of(group, method));
        let name = format!("{group}/{method}");
        let is_same = old_rows.get(&key).is_some_and(|old| is_same(old, &rows));
        let is_own = taken.contains(&name) && !(is_same && is_clean(earlier) && !is_clean(own));
        is_identified |= is_own && is_clean(own) && !is_clean(earlier);
        let commit = if is_own { own } else { earlier };
        if commit != provenance.commit {
            commits.insert(name, commit.to_owned());
        }
    }
    provenance.commits = commits;
    is_identified
}

/// Merges the pictures of a local run into the reference, method by method; true if the reference
/// changed.
///
/// Takes only pictures of generated signals, because pictures of a data set or of a user's files are not ours to publish. The
/// reference may therefore show numbers measured on the paper's data next to pictures of a run on generated images, each
/// labeled with its own data. Pictures that the definition does not show are left out to keep the reference small.
pub fn promote_pictures(
    experiment: &Experiment,
    local: &Collected,
    directory: &Path,
) -> Result<bool> {
    let (paper, item) = (&experiment.paper, &experiment.item);
    let old = Gallery::read_usable(directory, paper, item)?;
    let (ours, theirs) = (
        wanted(experiment, local.pictures.iter().map(|(picture, _)| picture)),
        wanted(experiment, old.pictures.iter()),
    );
    let mut merged: Vec<(GalleryPicture, Content)> = Vec::new();
    for group in &experiment.groups {
        for variant in &group.variants {
            let of_method = |p: &GalleryPicture| p.group == group.id && p.method == variant.id;
            let mine: Vec<_> = ours
                .iter()
                .filter_map(|i| local.pictures.get(*i))
                .filter(|(picture, _)| of_method(picture))
                .collect();
            let theirs: Vec<_> = theirs
                .iter()
                .filter_map(|i| old.pictures.get(*i))
                .filter(|picture| of_method(picture))
                .collect();
            let worth = |profile: Option<Profile>| profile.map(|p| (group.reduced(p).is_none(), p));
            let worth_mine = worth(mine.iter().map(|(p, _)| p.profile).min());
            let worth_theirs = worth(theirs.iter().map(|p| p.profile).min());
            let is_missing = |(g, m): &(String, String)| *g == group.id && *m == variant.id;
            let complete = !local.incomplete.iter().any(is_missing);
            // As with rows: pictures of equal worth come from a newer run of the same protocol.
            let better = worth_mine > worth_theirs
                || worth_mine == worth_theirs && (complete || mine.len() >= theirs.len());
            if better {
                merged.extend(mine.into_iter().cloned());
            } else {
                for picture in theirs {
                    // Read now: its file may be replaced by another picture's.
                    merged.push((picture.clone(), Content::Bytes(old.bytes(picture)?)));
                }
            }
        }
    }
    Ok(Gallery::write(directory, paper, item, merged)?)
}

/// Merges predicted captions of the first screens into the reference, method by method; true if the reference changed.
///
/// As with pictures, only captions of generated screens are accepted.
pub fn promote_captions(
    experiment: &Experiment,
    local: &[CaptionedMethod],
    directory: &Path,
) -> Result<bool> {
    let (paper, item) = (&experiment.paper, &experiment.item);
    let old = match CaptionRecord::read(directory, paper, item) {
        // The write below replaces a damaged file.
        Err(_) if !local.is_empty() => CaptionRecord::default(),
        read => read?,
    };
    let mut merged = CaptionRecord::default();
    for group in &experiment.groups {
        for variant in &group.variants {
            let of_method = |m: &&CaptionedMethod| {
                m.group == group.id
                    && m.method == variant.id
                    && is_publishable(&m.data)
                    && is_recordable(&m.device)
            };
            let mine = local.iter().find(of_method);
            let theirs = old.methods.iter().find(of_method);
            let worth = |m: &CaptionedMethod| (group.reduced(m.profile).is_none(), m.profile);
            // Captions of equal worth come from a newer run of the same protocol.
            let taken = match (mine, theirs) {
                (Some(mine), Some(theirs)) if worth(mine) < worth(theirs) => Some(theirs),
                (mine, theirs) => mine.or(theirs),
            };
            merged.methods.extend(taken.cloned());
        }
    }
    Ok(merged.write(directory, paper, item)?)
}

/// Indices of the pictures that the reference accepts and the definition shows.
fn wanted<'a>(
    experiment: &Experiment,
    pictures: impl Iterator<Item = &'a GalleryPicture>,
) -> BTreeSet<usize> {
    let (places, ours): (Vec<_>, Vec<_>) = pictures
        .enumerate()
        .filter(|(_, p)| is_publishable(&p.data) && is_recordable(&p.device))
        .unzip();
    let shown = experiment.pictures.iter().flat_map(|grid| grid.select(&ours));
    shown.filter_map(|i| places.get(i).copied()).collect()
}

#[cfg(test)]
mod tests;
