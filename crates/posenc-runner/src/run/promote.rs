//! Promoting records of this machine into the reference.

use std::path::{Path, PathBuf};

use anyhow::Result;
use posenc_experiments::record::{Provenance, Row, Table};
use posenc_experiments::{Experiment, Group};

use super::collect::Collected;

/// `<directory>/<paper>/<item>.csv` and its provenance.
pub fn files(directory: &Path, experiment: &Experiment) -> (PathBuf, PathBuf) {
    let stem = directory.join(&experiment.paper).join(&experiment.item);
    (stem.with_extension("csv"), stem.with_extension("provenance.json"))
}

/// How much a group's record is worth: the paper's own data first, then the full protocol, then
/// the profile, then how many rows there are.
fn worth(group: &Group, rows: &[&Row]) -> Option<(bool, bool, usize, usize)> {
    let smallest = rows.iter().map(|r| r.profile).min()?;
    let own_data = rows.iter().all(|r| group.data.as_ref().is_none_or(|d| d.set == r.data));
    let full = group.reduced(smallest).is_none();
    Some((own_data, full, smallest as usize, rows.len()))
}

/// What became of a group.
#[derive(Debug, PartialEq, Eq)]
pub enum Promotion {
    /// The local record is the reference now.
    Taken,
    /// The reference stays: it is better.
    Kept,
}

/// Merges a local record into the reference, group by group: a smaller profile or other data
/// never replaces something better.
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
        let of = |table: &Table| -> Vec<Row> {
            let rows = table.rows.iter().filter(|r| r.group == group.id);
            rows.cloned().collect()
        };
        let (mine, theirs) = (of(&local.table), of(&old));
        if mine.is_empty() {
            merged.rows.extend(theirs);
            continue;
        }
        let worth_mine = worth(group, &mine.iter().collect::<Vec<_>>());
        let worth_theirs = worth(group, &theirs.iter().collect::<Vec<_>>());
        // Equal worth is a newer run of the same protocol; fewer rows are not, unless the
        // experiment itself changed, which its variants tell.
        let compare = |w: Option<(bool, bool, usize, usize)>| w.map(|(a, b, c, _)| (a, b, c));
        let complete = group.variants.iter().all(|v| mine.iter().any(|r| r.method == v.id));
        let better = compare(worth_mine) > compare(worth_theirs)
            || (compare(worth_mine) == compare(worth_theirs)
                && (complete || worth_mine >= worth_theirs));
        if better {
            merged.rows.extend(mine);
            outcome.push((group.id.clone(), Promotion::Taken));
        } else {
            merged.rows.extend(theirs);
            outcome.push((group.id.clone(), Promotion::Kept));
        }
    }
    if outcome.iter().any(|(_, p)| *p == Promotion::Taken) && merged != old {
        let mut provenance = local.provenance.clone();
        if outcome.iter().any(|(_, p)| *p == Promotion::Kept) {
            // Groups of two runs stand in one record: keep what is known of the older data.
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
