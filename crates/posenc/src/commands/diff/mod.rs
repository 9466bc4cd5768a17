//! `diff`: differences between two records, the most important first.

mod numbers;
mod parameters;

use std::collections::BTreeSet;
use std::process::ExitCode;

use anyhow::Result;
use posenc_experiments::record::{Row, Table};
use posenc_experiments::schema::claim::{Claim, Select};
use posenc_experiments::selector::Selectors;
use posenc_experiments::verdict::{Context, judge};
use posenc_experiments::{Catalog, Experiment};
use posenc_files::terminal::print_lines;
use posenc_report::shown_rows;

use super::source::Source;
use crate::arguments::Diff;
use parameters::Differences;
use posenc_harness::options::parse_selectors;
use posenc_harness::repository::Repository;
use posenc_protocols::KINDS;

const WIDTH: usize = 100;

/// Differences by section; each entry is one line before wrapping.
#[derive(Default)]
struct Found {
    claims: Vec<Vec<String>>,
    numbers: Vec<String>,
    parameters: Differences,
    only: Vec<String>,
}

/// Runs the verb: status 1 if a claim changed.
pub fn diff(repository: &Repository, options: &Diff) -> Result<ExitCode> {
    let catalog = Catalog::read(repository.root(), KINDS)?;
    let selectors = parse_selectors(&catalog, &options.selectors)?;
    let before = Source::open(repository, &options.before)?;
    let after = Source::open(repository, &options.after)?;
    let sides = [&before, &after];
    let mut found = Found::default();
    let mut only: [Vec<String>; 2] = Default::default();
    for (paper, item) in items(&catalog, &selectors, sides)? {
        let id = format!("{paper}/{item}");
        let experiment = catalog.experiment(&paper, &item);
        let (a, b) = match (before.read(&paper, &item)?, after.read(&paper, &item)?) {
            (Some(a), Some(b)) => (a, b),
            (a, b) => {
                for (list, side) in only.iter_mut().zip([a, b]) {
                    list.extend(side.map(|_| id.clone()));
                }
                continue;
            }
        };
        if let Some(experiment) = experiment {
            let tables = [&a.0, &b.0];
            found.claims.extend(changed_claims(&catalog, experiment, &selectors, tables));
        }
        let selected = |table: &Table| -> Vec<Row> {
            let is_selected = |r: &&Row| selectors.matches(&paper, &item, &r.group, &r.method);
            table.rows.iter().filter(is_selected).cloned().collect()
        };
        let rows = [selected(&a.0), selected(&b.0)];
        let [own, other] = [&rows[0][..], &rows[1][..]];
        let comparison = numbers::compare([own, other], options.times)?;
        found.numbers.extend(comparison.changes.iter().map(|change| format!("{id} {change}")));
        for (list, surplus) in only.iter_mut().zip(comparison.surplus) {
            list.extend(surplus.into_iter().map(|what| format!("{id}/{what}")));
        }
        found.parameters.add(&id, [own, other], [&a.1, &b.1]);
    }
    for (side, list) in sides.into_iter().zip(only) {
        found.only.extend(list.into_iter().map(|what| format!("only in {}: {what}", side.name)));
    }
    for side in sides.into_iter().filter(|side| side.is_of_other_definitions) {
        let note = format!(
            "note: the experiments of {} differ from the working tree's; both records are judged by the working tree's claims",
            side.name
        );
        print_lines(&wrapped(&note, 0));
    }
    print_lines(&found.text());
    Ok(ExitCode::from(u8::from(!found.claims.is_empty())))
}

/// Selected items with a record on either side: those of the catalog in its order, then others by name.
fn items(
    catalog: &Catalog,
    selectors: &Selectors,
    sides: [&Source; 2],
) -> Result<Vec<(String, String)>> {
    let mut recorded = BTreeSet::new();
    for side in sides {
        recorded.extend(side.items()?);
    }
    let is_selected = |(paper, item): &(String, String)| {
        let Some(experiment) = catalog.experiment(paper, item) else {
            return selectors.matches(paper, item, "", "");
        };
        experiment.groups.iter().any(|group| {
            group.variants.iter().any(|v| selectors.matches(paper, item, &group.id, &v.id))
        })
    };
    let known: Vec<(String, String)> =
        catalog.experiments.iter().map(|e| (e.paper.clone(), e.item.clone())).collect();
    let defined: BTreeSet<&(String, String)> = known.iter().collect();
    let others: Vec<(String, String)> =
        recorded.iter().filter(|item| !defined.contains(item)).cloned().collect();
    let known = known.into_iter().filter(|item| recorded.contains(item));
    Ok(known.chain(others).filter(is_selected).collect())
}

/// Claims that read a selected method and whose verdicts differ.
fn changed_claims(
    catalog: &Catalog,
    experiment: &Experiment,
    selectors: &Selectors,
    tables: [&Table; 2],
) -> Vec<Vec<String>> {
    let looks_at = |select: &Select| {
        let (paper, item) = (&experiment.paper, &experiment.item);
        let variants = experiment.group(&select.group).into_iter().flat_map(|g| &g.variants);
        match &select.method {
            Some(method) => selectors.matches(paper, item, &select.group, method),
            None => {
                variants.into_iter().any(|v| selectors.matches(paper, item, &select.group, &v.id))
            }
        }
    };
    let is_selected = |claim: &&Claim| selectors.is_everything() || claim.selects().any(looks_at);
    let shown = tables.map(|table| Table { rows: shown_rows(experiment, &table.rows) });
    let changed = |claim: &Claim| {
        let [before, after] = [&shown[0], &shown[1]].map(|table| {
            let record = Some(table).filter(|table| !table.rows.is_empty());
            judge(claim, Context { experiment, record, published: &catalog.published })
        });
        if before.verdict == after.verdict {
            return None;
        }
        let (old, new) = (before.verdict.name(), after.verdict.name());
        Some(vec![
            format!("{} {}: {old} → {new}", experiment.id(), claim.id),
            format!("before: {}", measured(&before.measured, &before.reason)),
            format!("after: {}", measured(&after.measured, &after.reason)),
        ])
    };
    experiment.claims.iter().filter(is_selected).filter_map(changed).collect()
}

fn measured(measured: &str, reason: &str) -> String {
    if reason.is_empty() { measured.to_owned() } else { format!("{measured} ({reason})") }
}

impl Found {
    fn text(&self) -> String {
        let parameters = self.parameters.lines();
        let mut text = String::new();
        if !self.claims.is_empty() {
            text += &format!("claims that changed: {}\n", self.claims.len());
            for claim in &self.claims {
                for (i, line) in claim.iter().enumerate() {
                    text += &wrapped(line, if i == 0 { 2 } else { 4 });
                }
            }
        }
        for (title, lines) in [
            ("numbers that differ significantly", &self.numbers),
            ("parameters that differ", &parameters),
            ("only in one record", &self.only),
        ] {
            if !lines.is_empty() {
                text += &format!("{title}: {}\n", lines.len());
                text.extend(lines.iter().map(|line| wrapped(line, 2)));
            }
        }
        if text.is_empty() { "no difference\n".to_owned() } else { text }
    }
}

/// Wraps a line at spaces to [`WIDTH`] columns, with an indent. Continuation lines are indented by 4 more columns.
fn wrapped(line: &str, indent: usize) -> String {
    let mut text = String::new();
    let mut current = " ".repeat(indent);
    let mut is_empty = true;
    for word in line.split_whitespace() {
        if !is_empty && current.chars().count() + 1 + word.chars().count() > WIDTH {
            text += &current;
            text.push('\n');
            current = " ".repeat(indent + 4);
            is_empty = true;
        }
        if !is_empty {
            current.push(' ');
        }
        current += word;
        is_empty = false;
    }
    text + &current + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches lines beyond the width, lost words, and an empty line before a long word.
    #[test]
    fn lines_are_broken_at_spaces() {
        let long = "word ".repeat(60) + &"x".repeat(120);
        let text = wrapped(&long, 2);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.iter().take(lines.len() - 1).all(|line| line.len() <= WIDTH), "{text}");
        assert!(lines.iter().all(|line| !line.trim().is_empty()), "{text}");
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&text), words(&long));
        assert!(lines[0].starts_with("  word") && lines[1].starts_with("      word"), "{text}");
    }
}
