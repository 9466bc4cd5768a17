//! Summary after a run: finished units per item, changed verdicts, failures and remaining units.

use std::collections::BTreeMap;
use std::path::Path;

use posenc_experiments::record::{ItemRecord, Table, item};
use posenc_experiments::shell::quoted;
use posenc_experiments::verdict::{Classified, Context, Verdict, judge};
use posenc_experiments::{Catalog, Experiment};
use posenc_report::shown_rows;

use posenc_harness::executor::RunSummary;
use posenc_harness::interrupts;
use posenc_harness::plan::PlannedJob;
use posenc_harness::span::{and_failed, counted, duration};

/// Maximum number of changed verdicts to list; further ones are only counted.
const LISTED: usize = 20;
/// Maximum number of first verdicts to list.
const FEW: usize = 5;

/// Verdicts that a run changed.
#[derive(Default)]
pub struct Changes {
    /// Those of claims that had no record before.
    new: Vec<ChangedVerdict>,
    changed: Vec<ChangedVerdict>,
}

/// A claim whose verdict changed during the run.
struct ChangedVerdict {
    /// `paper/item`.
    item: String,
    claim: String,
    before: Verdict,
    after: Verdict,
}

/// Verdicts before the run, for the items that the run may change.
pub struct Verdicts<'a> {
    before: Vec<(&'a Experiment, Vec<Classified>)>,
}

impl<'a> Verdicts<'a> {
    /// Judges the items of the work from the tables in a directory.
    pub fn read(catalog: &'a Catalog, work: &[PlannedJob<'a>], directory: &Path) -> Self {
        let is_of_work =
            |e: &&Experiment| work.iter().any(|work| std::ptr::eq(work.job.experiment, *e));
        let before = catalog.experiments.iter().filter(is_of_work);
        let before = before.map(|e| (e, verdicts(catalog, e, directory))).collect();
        Verdicts { before }
    }

    /// The verdicts that differ in a report rendered after the run.
    pub fn changed(&self, after: &BTreeMap<(String, String), Vec<Classified>>) -> Changes {
        let mut changes = Changes::default();
        for (experiment, before) in &self.before {
            let after = after.get(&(experiment.paper.clone(), experiment.item.clone()));
            let after = after.into_iter().flatten();
            for ((claim, before), after) in experiment.claims.iter().zip(before).zip(after) {
                let (before, after) = (before.verdict, after.verdict);
                if before == after {
                    continue;
                }
                let list = match before {
                    Verdict::NotRun => &mut changes.new,
                    _ => &mut changes.changed,
                };
                let (item, claim) = (experiment.id(), claim.id.clone());
                list.push(ChangedVerdict { item, claim, before, after });
            }
        }
        changes
    }
}

fn verdicts(catalog: &Catalog, experiment: &Experiment, directory: &Path) -> Vec<Classified> {
    let folder = item::folder(directory, &experiment.paper, &experiment.item);
    // A table that cannot be read is written again at the end of the run.
    let (table, _) = ItemRecord::read_tables(&folder).ok().flatten().unwrap_or_default();
    let table = Table { rows: shown_rows(experiment, &table.rows) };
    let record = Some(&table).filter(|table| !table.rows.is_empty());
    let context = Context { experiment, record, published: &catalog.published };
    experiment.claims.iter().map(|claim| judge(claim, context).classified()).collect()
}

/// Prints the summary. `waiting` is the number of units that wait for attention models.
pub fn tell(
    outcome: &RunSummary,
    changes: &Changes,
    workers: usize,
    waiting: usize,
    is_forced: bool,
) {
    // Without a terminal, a line was printed when the item was finished.
    let items = outcome.items.iter().filter(|(_, tally)| !tally.is_told);
    let width = items.clone().map(|(item, _)| item.chars().count()).max().unwrap_or(0);
    for (item, tally) in items {
        let failed = and_failed(tally.failed);
        let (done, seconds) = (tally.done, duration(tally.seconds));
        let s = if done == 1 { "" } else { "s" };
        eprintln!("  {item:width$}  {done:>5} unit{s}{failed}, {seconds} of computing");
    }
    let Changes { new, changed } = changes;
    if !new.is_empty() {
        eprintln!("claims with a first verdict: {}", new.len());
    }
    // All those of a first run are on its pages.
    for one in new.iter().filter(|_| new.len() <= FEW) {
        eprintln!("  {} {}: {} ({})", one.item, one.claim, one.after.sign(), one.after.name());
    }
    if !changed.is_empty() {
        eprintln!("verdicts that changed: {}", changed.len());
    }
    for one in changed.iter().take(LISTED) {
        let (before, after) = (one.before.sign(), one.after.sign());
        eprintln!("  {} {}: {before} → {after} ({})", one.item, one.claim, one.after.name());
    }
    if changed.len() > LISTED {
        eprintln!("  and {} more", changed.len() - LISTED);
    }
    if outcome.failures > 0 {
        eprintln!("{} failed; run the same command again to retry them", counted(outcome.failures));
    }
    let (units, seconds) = outcome.left;
    if units > 0 {
        let why = outcome.interrupted.map(|signal| format!("{}: ", interrupts::name(signal)));
        let why = why.unwrap_or_default();
        // With `--force`, repeated units cannot be distinguished from waiting ones: both have a record.
        let next = if is_forced { "to start over (--force)" } else { "to continue" };
        let wait = match waiting {
            0 => String::new(),
            _ => format!(", and {} for attention models", counted(waiting)),
        };
        eprintln!(
            "{why}{} left, about {} on {workers} workers{wait}; {next}: {}",
            counted(units),
            duration(seconds),
            command()
        );
    }
}

/// The command of this run, quoted for a shell.
fn command() -> String {
    let arguments = std::env::args_os().skip(1).map(|a| quoted(&a.to_string_lossy()));
    std::iter::once("cargo xtask".to_owned()).chain(arguments).collect::<Vec<_>>().join(" ")
}
