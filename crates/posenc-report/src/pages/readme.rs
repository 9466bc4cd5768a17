//! The first page: answers, which method to use, published against measured values, and counts of statements.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use minijinja::{Value, context};

use super::{Files, comparison};
use crate::Inputs;
use crate::records::Side;
use crate::template::safe;
use crate::view::{Views, sides};

/// What the page shows besides the papers; adds its figure to `files`.
pub fn page(inputs: &Inputs<'_>, views: &Views<'_>, files: &mut Files) -> Result<Value> {
    let mut figures = Vec::new();
    for side in sides(inputs) {
        let text = comparison::render(inputs, views, side, files)?;
        if !text.is_empty() {
            figures.push(context! { side => side.name(), text => safe(text) });
        }
    }
    Ok(context! { figures })
}

/// What the page on the report itself shows: the machines of each run.
pub fn about(inputs: &Inputs<'_>, views: &Views<'_>) -> Value {
    context! { machines => sides(inputs).into_iter().map(|side| machines(views, side)).collect::<Vec<_>>() }
}

/// The machines of a run and how many items they ran, and the items that ran on other devices.
fn machines(views: &Views<'_>, side: Side) -> Value {
    let runs = || views.all().flat_map(|view| view.runs()).filter(|run| run.side == side);
    // A provenance describes the latest run of its item.
    let mut machines: BTreeMap<(&str, usize), usize> = BTreeMap::new();
    for own in runs().map(|run| &run.provenance) {
        *machines.entry((own.machine.as_str(), own.cores)).or_default() += 1;
    }
    let machine = |((name, cores), items)| context! { name, cores, items };
    let mut devices: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for view in views.all() {
        let rows = view.runs().filter(|run| run.side == side).flat_map(|run| &run.table.rows);
        for row in rows.filter(|row| row.device != "cpu") {
            devices.entry(&row.device).or_default().insert(view.experiment.id());
        }
    }
    let device = |(name, items): (&str, BTreeSet<String>)| {
        context! { name, items => items.into_iter().collect::<Vec<_>>() }
    };
    context! {
        name => side.name(),
        machines => machines.into_iter().map(machine).collect::<Vec<_>>(),
        devices => devices.into_iter().map(device).collect::<Vec<_>>(),
        changed => runs().filter(|run| run.changes().is_some()).count(),
        runs => runs().count(),
    }
}
