//! Promoting records of this machine into the reference.

use std::path::{Path, PathBuf};

use anyhow::Result;
use posenc_experiments::record::{Provenance, Row, Table};
use posenc_experiments::{Experiment, Group, Profile};

use super::collect::Collected;

/// `<directory>/<paper>/<item>.csv` and its provenance.
pub fn files(directory: &Path, experiment: &Experiment) -> (PathBuf, PathBuf) {
    let stem = directory.join(&experiment.paper).join(&experiment.item);
    (stem.with_extension("csv"), stem.with_extension("provenance.json"))
}

/// How much a method's rows are worth: the paper's own data first, then the full protocol, then
/// the profile.
fn worth(group: &Group, rows: &[&Row]) -> Option<(bool, bool, Profile)> {
    let smallest = rows.iter().map(|r| r.profile).min()?;
    let own_data = rows.iter().all(|r| group.data.as_ref().is_none_or(|d| d.set == r.data));
    Some((own_data, group.reduced(smallest).is_none(), smallest))
}

/// What became of a method's rows.
#[derive(Debug, PartialEq, Eq)]
pub enum Promotion {
    /// The local record is the reference now.
    Taken,
    /// The reference stays: it is better.
    Kept,
}

/// Merges a local record into the reference, method by method: a smaller profile, other data or
/// an interrupted run never replaces something better, and a run of one method leaves the others.
pub fn promote(
    experiment: &Experiment,
    local: &Collected,
    directory: &Path,
) -> Result<Vec<(String, Promotion)>> {
    let (csv, provenance_file) = files(directory, experiment);
    let old = if csv.exists() {
        Table::read(&csv, &experiment.paper, &experiment.item)?
    } else {
        Table::default()
    };
    let mut merged = Table::default();
    let mut outcome = Vec::new();
    for group in &experiment.groups {
        let of = |table: &'_ Table, method: &str| -> Vec<Row> {
            let rows = table.rows.iter().filter(|r| r.group == group.id && r.method == method);
            rows.cloned().collect()
        };
        // Variants in the order of the file; what else the run gave (a variant may measure
        // several things); of the reference only what is still defined.
        let mut methods: Vec<&str> = group.variants.iter().map(|v| v.id.as_str()).collect();
        for row in local.table.rows.iter().filter(|r| r.group == group.id) {
            if !methods.contains(&row.method.as_str()) {
                methods.push(&row.method);
            }
        }
        if !local.table.rows.iter().any(|r| r.group == group.id) {
            merged.rows.extend(old.rows.iter().filter(|r| r.group == group.id).cloned());
            continue;
        }
        for method in methods {
            let (mine, theirs) = (of(&local.table, method), of(&old, method));
            if mine.is_empty() {
                merged.rows.extend(theirs);
                continue;
            }
            let is_missing = |(g, m): &(String, String)| *g == group.id && m == method;
            let complete = !local.incomplete.iter().any(is_missing);
            let worth_mine = worth(group, &mine.iter().collect::<Vec<_>>());
            let worth_theirs = worth(group, &theirs.iter().collect::<Vec<_>>());
            // Equal worth is a newer run of the same protocol, if it came to its end.
            let better = worth_mine > worth_theirs
                || worth_mine == worth_theirs && (complete || mine.len() >= theirs.len());
            let name = format!("{}/{method}", group.id);
            if better {
                merged.rows.extend(mine);
                outcome.push((name, Promotion::Taken));
            } else {
                merged.rows.extend(theirs);
                outcome.push((name, Promotion::Kept));
            }
        }
    }
    if outcome.iter().any(|(_, p)| *p == Promotion::Taken) && merged != old {
        let mut provenance = local.provenance.clone();
        if outcome.iter().any(|(_, p)| *p == Promotion::Kept)
            || merged.rows.len() > local.table.rows.len()
        {
            // Rows of two runs stand in one record: keep what is known of the older data.
            let before = Provenance::read(&provenance_file)?;
            for (label, sha) in before.data {
                provenance.data.entry(label).or_insert(sha);
            }
        }
        merged.write(&csv, &experiment.paper, &experiment.item)?;
        provenance.write(&provenance_file)?;
    }
    Ok(outcome)
}
