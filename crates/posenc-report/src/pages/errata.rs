//! Errata: errors and ambiguities of the papers, each with the numbers of its check.

use minijinja::{Value, context};
use posenc_experiments::record::Row;
use posenc_experiments::schema::experiment::Experiment;
use posenc_experiments::schema::paper::Paper;
use posenc_math::errata::{self, Erratum};

use super::item_name;
use crate::markdown::plain;
use crate::numbers::{MISSING, distinct, significant};
use crate::records::{Run, Side};
use crate::template::safe;
use crate::view::{SideView, View, Views};
use crate::{Inputs, links};

const GROUP: &str = "checks";

pub fn find(id: &str) -> Option<&'static Erratum> {
    errata::all().into_iter().find(|own| own.id == id)
}

/// A link to an erratum by its id; the bare id if there is no such erratum.
pub fn link(id: &str) -> String {
    match find(id) {
        Some(erratum) => format!("[{}]({})", plain(id), links::erratum(erratum)),
        None => plain(id),
    }
}

/// The errata of a paper with their numbers, if it lists the item that shows them.
pub fn of_paper(inputs: &Inputs<'_>, views: &Views<'_>, paper: &Paper) -> Vec<Value> {
    if !paper.items.iter().any(|item| item.item == links::ERRATA) {
        return Vec::new();
    }
    let own = errata::all().into_iter().filter(|erratum| erratum.paper() == paper.key);
    own.map(|own| erratum(inputs, views, own)).collect()
}

/// The errata that an item lists.
pub fn of_item(inputs: &Inputs<'_>, views: &Views<'_>, experiment: &Experiment) -> Vec<Value> {
    let own = experiment.errata.iter().filter_map(|id| find(id));
    own.map(|own| erratum(inputs, views, own)).collect()
}

fn erratum(inputs: &Inputs<'_>, views: &Views<'_>, erratum: &Erratum) -> Value {
    let view = views.get(erratum.paper(), links::ERRATA);
    let outcome = |side: &SideView| {
        context! { side => side.side.name(), holds => is_confirmed(side.run.as_ref(), erratum) }
    };
    let claims = views.all().flat_map(|view| {
        let experiment = view.experiment;
        let is_own = |e: &posenc_experiments::schema::claim::ErratumLink| e.id == erratum.id;
        let own = experiment.claims.iter().filter(move |c| c.erratum.as_ref().is_some_and(is_own));
        own.map(move |claim| {
            context! {
                item => safe(item_name(inputs, &experiment.paper, &experiment.item)),
                id => &claim.id,
                page => safe(links::claim(&experiment.paper, &experiment.item, &claim.id)),
            }
        })
    });
    let texts = [
        ("Printed", erratum.printed),
        ("Correct", erratum.correct),
        ("Consequence", erratum.consequence),
    ];
    let has = |metric: &str| {
        let runs = view.into_iter().flat_map(|view| view.runs());
        runs.flat_map(|run| rows(Some(run), erratum)).any(|row| row.metric == metric)
    };
    context! {
        id => erratum.id,
        is_measured => has("measured"),
        is_corrected => has("corrected"),
        link => safe(link(erratum.id)),
        place => erratum.place,
        page => safe(links::erratum(erratum)),
        severity => erratum.severity.name(),
        printed => safe(erratum.printed),
        correct => safe(erratum.correct),
        texts => texts.map(|(name, text)| (name, safe(text.trim()))),
        is_confirmed => is_confirmed(view.and_then(|view| view.runs().next()), erratum) == Some(true),
        outcomes => view.iter().flat_map(|view| &view.sides).map(outcome).collect::<Vec<_>>(),
        quantities => view.map(|view| quantities(view, erratum)).unwrap_or_default(),
        claims => claims.collect::<Vec<_>>(),
    }
}

fn rows<'a>(run: Option<&'a Run>, erratum: &Erratum) -> impl Iterator<Item = &'a Row> {
    run.into_iter().flat_map(|run| run.rows(GROUP, erratum.id, None, None))
}

/// Whether the check of an erratum was run and confirms it.
pub fn is_confirmed_on(views: &Views<'_>, side: Side, id: &str) -> bool {
    let Some(erratum) = find(id) else { return false };
    let sides = views.get(erratum.paper(), links::ERRATA).map(|view| &view.sides);
    let own = sides.into_iter().flatten().find(|own| own.side == side);
    is_confirmed(own.and_then(|own| own.run.as_ref()), erratum) == Some(true)
}

/// Whether the check of an erratum confirms it; `None` if it was not run.
fn is_confirmed(run: Option<&Run>, erratum: &Erratum) -> Option<bool> {
    rows(run, erratum).find(|r| r.metric == "holds").map(|row| row.value == 1.0)
}

fn quantities(view: &View<'_>, erratum: &Erratum) -> Vec<Value> {
    let measured = view.sides.iter().flat_map(|side| rows(side.run.as_ref(), erratum));
    let measured = measured.filter(|row| row.metric != "holds");
    let names = distinct(measured.map(|row| row.signal.as_str()));
    let quantity = |name: &str| {
        let number = |side: &SideView, metric: &str| {
            let run = side.run.as_ref()?;
            let own = run.rows(GROUP, erratum.id, Some(name), None);
            let row = own.filter(|row| row.metric == metric).last()?;
            Some(format!("{} {}", significant(row.value, 6), row.unit).trim_end().to_owned())
        };
        let missing = || MISSING.to_owned();
        let any =
            |metric| view.sides.iter().find_map(|s| number(s, metric)).unwrap_or_else(missing);
        let measured = view.sides.iter().map(|s| number(s, "measured").unwrap_or_else(missing));
        context! {
            name,
            printed => any("printed"),
            measured => measured.collect::<Vec<_>>(),
            corrected => any("corrected"),
        }
    };
    names.into_iter().map(quantity).collect()
}
