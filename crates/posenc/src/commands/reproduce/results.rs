//! Results of a run: tables and report of this machine, and with `--record` the reference records.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use posenc_experiments::Catalog;
use posenc_experiments::record::{ItemRecord, item};
use posenc_experiments::verdict::Classified;
use posenc_report::{Inputs, Records};

use posenc_harness::collect::collect;
use posenc_harness::lock;
use posenc_harness::promote::promote;
use posenc_harness::run_env::ResultInputs;

use crate::commands::report::{render_reference, write_reference};

/// Verdicts of all items on the records of this machine, by paper and item.
pub type Verdicts = BTreeMap<(String, String), Vec<Classified>>;

/// The page that a run of these items is about: that of the item or of the paper if there is one only, else the first page.
pub fn page(catalog: &Catalog, out: &Path, items: &BTreeSet<String>) -> PathBuf {
    // Some items share the page of an item of another paper.
    let host = |id: &str| {
        let (paper, item) = id.split_once('/')?;
        let paper = catalog.papers.iter().find(|own| own.key == paper)?;
        paper.items.iter().find(|own| own.item == item)?.page.as_deref()
    };
    let papers: BTreeSet<&str> =
        items.iter().map(|id| id.split('/').next().unwrap_or_default()).collect();
    let name = match (items.first(), papers.first()) {
        (Some(item), _) if items.len() == 1 => host(item).unwrap_or(item),
        (_, Some(paper)) if papers.len() == 1 => paper,
        _ => "README",
    };
    out.join("report").join(format!("{name}.md"))
}

/// Writes tables and report of this machine; with `--record`, also promotes records into the reference. A notice marks an
/// unfinished run: the report shows it, and nothing is promoted. `only` has the items of the run if it does not run all; the
/// tables of others are kept.
pub fn write(
    inputs: &ResultInputs<'_>,
    notice: Option<&str>,
    only: Option<&BTreeSet<String>>,
) -> Result<Verdicts> {
    let ResultInputs { repository, plans, store, devices, options, out } = *inputs;
    let catalog = plans.catalog;
    let local_directory = out.join("record");
    let mut promoted = false;
    // Held until the report is rendered: two runs that record at the same time would lose each other's rows.
    let is_promoted = options.record && notice.is_none();
    let _lock = is_promoted.then(|| lock::of_reference(repository)).transpose()?;
    let mut shown = Vec::new();
    for experiment in &catalog.experiments {
        if !plans.is_whole(experiment) {
            // A build with attention models collects the item.
            shown.push(experiment);
            continue;
        }
        let folder = item::folder(&local_directory, &experiment.paper, &experiment.item);
        let Some(local) = collect(experiment, plans, store, devices, repository)? else {
            // The table of an earlier state. Items that this run does not select keep it, but the report does not show it.
            if notice.is_none() && only.is_none_or(|only| only.contains(&experiment.id())) {
                ItemRecord::remove(&folder, "no unit of this item has a record")?;
            }
            continue;
        };
        shown.push(experiment);
        ItemRecord::write(&folder, &local.table, &local.provenance, &local.sources)?;
        if is_promoted {
            let rows = promote(experiment, &local, &repository.record())?;
            promoted |= rows.is_taken;
            for method in rows.kept {
                eprintln!(
                    "kept: {}/{method}: the reference has more signals, a larger profile or the paper's data",
                    experiment.id()
                );
            }
            for (method, signals) in rows.dropped {
                let (id, signals) = (experiment.id(), Vec::from_iter(signals).join(", "));
                eprintln!(
                    "dropped: {id}/{method}: rows of {signals} cannot be joined with this run: they are of another protocol, \
                     version or seed, or the record lacks their origin; to keep them, restore report/record/{id} with git, or run \
                     these signals again with --record"
                );
            }
        }
    }
    let reference = Records::read(&repository.record(), catalog)?;
    if promoted {
        let report = render_reference(catalog, &reference, true)?;
        write_reference(repository, &reference, &report)?;
    }
    let local = Records::of(&local_directory, shown)?;
    let inputs = Inputs {
        catalog,
        reference: &reference,
        local: Some(&local),
        // Links to files of the repository work only from the default directory.
        repository: if options.out.is_none() { "../.." } else { "" },
        record: None,
        local_record: Some("../record"),
    };
    let directory = out.join("report");
    let mut report = posenc_report::render(&inputs)?;
    if let Some(notice) = notice {
        report = report.with_notice(notice);
    }
    report = report.with_notice_about(&catalog.broken);
    report
        .write(&directory)
        .with_context(|| format!("{} cannot be written", directory.display()))?;
    Ok(report.verdicts)
}
