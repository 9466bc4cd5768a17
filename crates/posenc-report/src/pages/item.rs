//! The page of one item: the paper's claim and the answer, figures and tables, verdicts, analysis, and folded details.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use minijinja::{Value, context};
use posenc_experiments::record::Row;
use posenc_experiments::schema::display::Plot;
use posenc_experiments::schema::{ItemKind, Profile};

use super::{Files, errata, methods, parameters, pictures, sentences, speed};
use crate::links;
use crate::markdown::{code, inline};
use crate::plot::FigureSource;
use crate::records::{Conditions, Run, Side};
use crate::template::safe;
use crate::view::{View, Views};
use crate::{Inputs, tables};

/// What the page of an item shows; adds pictures to `files`.
pub fn page(
    inputs: &Inputs<'_>,
    views: &Views<'_>,
    view: &View<'_>,
    files: &mut Files,
) -> Result<Value> {
    let experiment = view.experiment;
    let [comparisons, lead] = methods::render(views, view, files)?;
    let mut plots = Vec::new();
    for own in &experiment.plots {
        plots.push(plot(view, own, files)?);
    }
    let mut drawn = String::new();
    for grid in &experiment.pictures {
        drawn.push_str(&pictures::render(inputs, view, grid, files)?);
    }
    let repeat = format!("cargo xtask verify {} --all", experiment.id());
    let differences = view.runs().flat_map(|run| {
        let labels = view.conditions(run).labels().into_iter().chain(run.changes());
        labels.map(|own| safe(format!("{}{own}", prefix(view, run.side)))).collect::<Vec<_>>()
    });
    let refused = experiment.groups.iter().filter_map(|group| {
        let reason = group.refused(Profile::Paper)?;
        Some(safe(format!(
            "**Not run at profile `paper`:** {} ({})",
            inline(reason),
            code(&group.id)
        )))
    });
    let shared = super::shared_conditions(view).into_iter().map(|own| {
        context! { name => own.class.name(), condition => own.condition, is_mixed => own.is_mixed }
    });
    Ok(context! {
        is_extra => experiment.kind == ItemKind::Extra,
        is_table => experiment.kind == ItemKind::Table,
        shows => &experiment.shows,
        answers => sentences::of_item(view),
        not_run => not_run(view),
        lead => safe(lead),
        comparisons => safe(comparisons),
        plots,
        pictures => safe(drawn),
        tables => safe(tables::render_all(view)),
        numbers => numbers(inputs, view),
        repeat,
        shared => shared.collect::<Vec<_>>(),
        analysis => experiment.analysis.trim(),
        errata => errata::of_item(inputs, views, experiment),
        differences => differences.chain(refused).collect::<Vec<_>>(),
        speed => speed::of_item(inputs, view),
        ..parameters::of_item(view)
    })
}

/// The name of a run before a text about it; empty if it is the only one.
pub fn prefix(view: &View<'_>, side: Side) -> String {
    view.who(side).map(|who| format!("{who} – ")).unwrap_or_default()
}

/// Runs without a record. An item without groups shows the records of others.
fn not_run(view: &View<'_>) -> Vec<Value> {
    let is_missing = !view.experiment.groups.is_empty();
    let missing = view.sides.iter().filter(|side| is_missing && side.run.is_none());
    let command = format!("cargo xtask reproduce {} --record", view.experiment.id());
    let one = |side: Side| {
        let command = Some(&command).filter(|_| side == Side::Reference);
        context! { prefix => safe(prefix(view, side)), command }
    };
    missing.map(|own| one(own.side)).collect()
}

/// The files with the numbers behind the figures and tables, and what they are called.
fn numbers(inputs: &Inputs<'_>, view: &View<'_>) -> Vec<Value> {
    let (paper, item) = (&view.experiment.paper, &view.experiment.item);
    let file = |side: Side| match side {
        Side::Reference => links::values(inputs, paper, item),
        Side::Local => {
            inputs.local_record.map(|folder| format!("{folder}/{paper}/{item}/values.csv"))
        }
    };
    let shown = view.runs().filter_map(|run| {
        let who = view
            .who(run.side)
            .map_or("numbers".to_owned(), |who| format!("numbers, {}", who.to_lowercase()));
        Some(context! { name => who, file => safe(file(run.side)?) })
    });
    shown.collect()
}

pub fn figures<'a>(view: &'a View<'_>, run: &'a Run) -> FigureSource<'a> {
    let rows = &run.table.rows;
    FigureSource { experiment: view.experiment, rows, published: view.published }
}

/// A plot, drawn for each run that has rows for it.
fn plot(view: &View<'_>, plot: &Plot, files: &mut Files) -> Result<Value> {
    let experiment = view.experiment;
    let mut images = Vec::new();
    for run in view.runs() {
        let source = figures(view, run);
        if !source.shows(plot) {
            continue;
        }
        let conditions = conditions(view, run, plot);
        let figure = source.figure(plot, format!("{} · {}", run.side.name(), conditions.line()))?;
        let svg =
            figure.svg().with_context(|| format!("plot `{}` of {}", plot.id, experiment.id()))?;
        let path = links::figure(experiment, &plot.id, run.side);
        images.push(context! {
            alt => figure.alt,
            path => safe(&path),
            prefix => safe(prefix(view, run.side)),
            remark => conditions.remark(),
        });
        files.insert(PathBuf::from(path), svg.into_bytes());
    }
    Ok(context! { caption => &plot.caption, images })
}

fn conditions(view: &View<'_>, run: &Run, plot: &Plot) -> Conditions {
    let drawn = |r: &Row| {
        plot.panels.iter().any(|p| {
            let metric = p.metric == r.metric
                || p.dashed.as_ref() == Some(&r.metric)
                || p.more.iter().any(|n| n.metric == r.metric)
                || p.reference.as_ref().is_some_and(|n| n.metric == r.metric);
            p.group == r.group && metric && p.methods.as_ref().is_none_or(|m| m.contains(&r.method))
        })
    };
    Conditions::of(view.experiment, run, drawn)
}
