//! The first page: answers, which method to use, published next to measured values, and counts of statements.

use std::collections::{BTreeMap, BTreeSet};

use minijinja::{Value, context};
use posenc_experiments::schema::ItemKind;
use posenc_experiments::schema::display::{By, PanelKind, Plot};
use posenc_experiments::schema::paper::{Item, Paper};

use super::{cited, item};
use crate::Inputs;
use crate::links;
use crate::markdown::{label, plain};
use crate::records::Side;
use crate::template::safe;
use crate::view::{Views, sides};

/// What the page shows besides the papers: the tables by run whose pages have a figure with a row per method.
pub fn page(inputs: &Inputs<'_>, views: &Views<'_>) -> Value {
    let of_side = |side: Side| {
        let papers = inputs.catalog.papers.iter();
        let items = papers.flat_map(|paper| paper.items.iter().map(move |item| (paper, item)));
        let tables: Vec<Value> =
            items.filter_map(|(paper, own)| table(views, side, paper, own)).collect();
        context! { name => side.name(), tables }
    };
    context! { figures => sides(inputs).into_iter().map(of_side).collect::<Vec<_>>() }
}

/// The first figure of a table with a row per method; `None` if the item has none or is no table.
fn table(views: &Views<'_>, side: Side, paper: &Paper, own: &Item) -> Option<Value> {
    let view = views.get(&paper.key, &own.item)?;
    let run = view.runs().find(|run| run.side == side)?;
    let experiment = view.experiment;
    let is_of_rows = |plot: &&Plot| {
        let mut panels = plot.panels.iter();
        panels.all(|panel| panel.kind == PanelKind::Dots && panel.series == By::Method)
    };
    let source = item::figures(view, run);
    let mut plots = experiment.plots.iter().filter(is_of_rows);
    let plot = plots.find(|plot| experiment.kind == ItemKind::Table && source.shows(plot))?;
    Some(context! {
        name => safe(format!("{}, {}", plain(&cited(paper)), label(&own.name))),
        page => safe(links::item(&paper.key, &own.item)),
        path => safe(links::figure(experiment, &plot.id, side)),
    })
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
