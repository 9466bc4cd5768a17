//! `diff`: differences between two records, the most important first.

mod numbers;

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use anyhow::Result;
use posenc_experiments::record::{IndexedTable, Provenance, Row, Table};
use posenc_experiments::schema::claim::{Claim, Select};
use posenc_experiments::selector::Selectors;
use posenc_experiments::verdict::{Context, judge};
use posenc_experiments::{Catalog, Experiment};
use posenc_files::terminal::print_lines;
use posenc_report::shown_rows;

use super::source::Source;
use crate::arguments::Diff;
use posenc_harness::options::parse_selectors;
use posenc_harness::repository::Repository;
use posenc_protocols::KINDS;

/// Maximum number of items or methods that are listed for a parameter.
const LISTED: usize = 4;

/// Runs the verb: status 1 if a claim changed.
pub fn diff(repository: &Repository, options: &Diff) -> Result<ExitCode> {
    let catalog = Catalog::read(repository.root(), KINDS)?;
    let selectors = parse_selectors(&catalog, &options.selectors)?;
    let sides = [Source::open(&options.before)?, Source::open(&options.after)?];
    let (mut claims, mut numbers, mut parameters) = (Vec::new(), Vec::new(), BTreeMap::new());
    let mut only: [Vec<String>; 2] = Default::default();
    for (paper, item) in items(&catalog, &selectors, &sides)? {
        let id = format!("{paper}/{item}");
        let (a, b) = match (sides[0].read(&paper, &item)?, sides[1].read(&paper, &item)?) {
            (Some(a), Some(b)) => (a, b),
            (a, b) => {
                let own = only.iter_mut().zip([a.is_some(), b.is_some()]);
                own.filter(|(_, is_there)| *is_there).for_each(|(list, _)| list.push(id.clone()));
                continue;
            }
        };
        if let Some(experiment) = catalog.experiment(&paper, &item) {
            claims.extend(changed_claims(&catalog, experiment, &selectors, [&a.0, &b.0]));
        }
        let [own, other] = [&a.0, &b.0].map(|table| {
            let rows = table.rows.iter();
            rows.filter(|r| selectors.matches(&paper, &item, &r.group, &r.method))
                .collect::<Vec<_>>()
        });
        let (changes, surplus) = numbers::compare([&own, &other], options.times);
        numbers.extend(changes.iter().map(|change| format!("{id} {change}")));
        for (list, surplus) in only.iter_mut().zip(surplus) {
            list.extend(surplus.into_iter().map(|what| format!("{id}/{what}")));
        }
        for (text, method) in changed_parameters([&own, &other], [&a.1, &b.1]) {
            let place = method.map_or_else(|| id.clone(), |method| format!("{id}/{method}"));
            parameters.entry(text).or_insert_with(Vec::new).push(place);
        }
    }
    let parameters = parameters.into_iter().map(|(text, places): (String, Vec<String>)| {
        let mut listed = places.iter().take(LISTED).cloned().collect::<Vec<_>>().join(", ");
        if places.len() > LISTED {
            listed += &format!(", and {} more", places.len() - LISTED);
        }
        format!("{text}: {listed}")
    });
    let only = sides.iter().zip(only);
    let only = only.flat_map(|(side, list)| {
        list.into_iter().map(move |what| format!("only in {}: {what}", side.name))
    });
    let mut text = String::new();
    let has_changed = !claims.is_empty();
    for (title, entries) in [
        ("claims that changed", claims),
        ("numbers that differ significantly", numbers),
        ("parameters that differ", parameters.collect()),
        ("only in one record", only.collect()),
    ] {
        if !entries.is_empty() {
            text += &format!("{title}: {}\n", entries.len());
        }
        for entry in entries {
            for (i, line) in entry.lines().enumerate() {
                text += &format!("{}{line}\n", if i == 0 { "  " } else { "    " });
            }
        }
    }
    print_lines(if text.is_empty() { "no difference\n" } else { &text });
    Ok(ExitCode::from(u8::from(has_changed)))
}

/// Selected items with a record on either side: those of the catalog in its order, then others by name.
fn items(
    catalog: &Catalog,
    selectors: &Selectors,
    sides: &[Source; 2],
) -> Result<Vec<(String, String)>> {
    let mut others: BTreeSet<_> = sides[0].items()?.into_iter().chain(sides[1].items()?).collect();
    let mut items = Vec::new();
    for e in &catalog.experiments {
        let item = (e.paper.clone(), e.item.clone());
        if others.remove(&item) && selectors.matches_experiment(e) {
            items.push(item);
        }
    }
    others.retain(|(paper, item)| selectors.matches(paper, item, "", ""));
    items.extend(others);
    Ok(items)
}

/// Claims that read a selected method and whose verdicts differ: verdicts, and what was measured before and after, in three lines.
fn changed_claims(
    catalog: &Catalog,
    experiment: &Experiment,
    selectors: &Selectors,
    tables: [&Table; 2],
) -> Vec<String> {
    let matches = |group: &str, method: &str| {
        selectors.matches(&experiment.paper, &experiment.item, group, method)
    };
    let looks_at = |select: &Select| match &select.method {
        Some(method) => matches(&select.group, method),
        None => {
            let group = experiment.group(&select.group);
            group.is_some_and(|g| g.variants.iter().any(|v| matches(&select.group, &v.id)))
        }
    };
    let is_selected = |claim: &&Claim| selectors.is_everything() || claim.selects().any(looks_at);
    let shown = tables.map(|table| IndexedTable::new(shown_rows(&table.rows).into()));
    let changed = |claim: &Claim| {
        let [before, after] = [&shown[0], &shown[1]].map(|table| {
            let record = Some(table).filter(|table| !table.rows.is_empty());
            judge(claim, Context { experiment, record, published: &catalog.published })
        });
        let measured = |measured: &str, reason: &str| match reason {
            "" => measured.to_owned(),
            reason => format!("{measured} ({reason})"),
        };
        (before.verdict != after.verdict).then(|| {
            format!(
                "{} {}: {} → {}\nbefore: {}\nafter: {}",
                experiment.id(),
                claim.id,
                before.verdict.name(),
                after.verdict.name(),
                measured(&before.measured, &before.reason),
                measured(&after.measured, &after.reason)
            )
        })
    };
    experiment.claims.iter().filter(is_selected).filter_map(changed).collect()
}

/// Values of a parameter by its name.
type Conditions = BTreeMap<&'static str, BTreeSet<String>>;

/// Parameters of the rows by `group/method`.
fn conditions(rows: &[&Row]) -> BTreeMap<String, Conditions> {
    let mut all: BTreeMap<String, Conditions> = BTreeMap::new();
    for row in rows {
        let own = all.entry(format!("{}/{}", row.group, row.method)).or_default();
        for (name, value) in [
            ("profile", row.profile.name().to_owned()),
            ("data", row.data.clone()),
            ("device", row.device.clone()),
            ("seeds", row.seed.to_string()),
        ] {
            own.entry(name).or_default().insert(value);
        }
    }
    all
}

/// Parameters of an item that differ, as text, with the `group/method` that they concern if it is not the whole item.
fn changed_parameters(
    rows: [&[&Row]; 2],
    [before, after]: [&Provenance; 2],
) -> Vec<(String, Option<String>)> {
    let mut found = Vec::new();
    let [own, other] = rows.map(conditions);
    for (method, own) in own {
        let Some(other) = other.get(&method) else { continue };
        for (name, own) in own {
            let Some(other) = other.get(name).filter(|other| **other != own) else { continue };
            let [own, other] = [&own, other].map(|values| match name {
                "seeds" => values.len().to_string(),
                _ => values.iter().cloned().collect::<Vec<_>>().join(", "),
            });
            if own != other {
                found.push((format!("{name} {own} → {other}"), Some(method.clone())));
            }
        }
    }
    if before.seed != after.seed {
        found.push((format!("seed of the run {} → {}", before.seed, after.seed), None));
    }
    let short = |sum: &str| sum.chars().take(12).collect::<String>();
    for (label, own) in &before.data {
        if let Some(other) = after.data.get(label).filter(|other| *other != own) {
            let text = format!("sha256 of {label} {}… → {}…", short(own), short(other));
            found.push((text, None));
        }
    }
    for (name, own) in &before.versions {
        let other = after.versions.get(name).filter(|other| *other != own);
        found.extend(other.map(|other| (format!("{name} {own} → {other}"), None)));
    }
    for (method, own) in &before.origins {
        let differences = after.origins.get(method).map(|other| own.differences(other));
        // The rows above already cover these.
        let is_said = |text: &String| {
            ["seed of the run", "data ", "repetitions"].iter().any(|part| text.starts_with(part))
        };
        let news = differences.into_iter().flatten().filter(|text| !is_said(text));
        found.extend(news.map(|text| (text, Some(method.clone()))));
    }
    found
}
