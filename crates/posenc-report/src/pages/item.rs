//! Section of one item.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use posenc_experiments::record::Row;
use posenc_experiments::schema::display::Plot;
use posenc_experiments::schema::paper::Item;

use super::{claims, errata, failures, parameters, pictures, screens, speed};
use crate::markdown::{anchor, bare, block, cell, code, inline, plain, slug};
use crate::records::{Conditions, Run, Side};
use crate::series::FigureSource;
use crate::view::{View, Views};
use crate::{Inputs, Section, tables};

/// Files of the report by path, relative to its directory.
pub type Files = BTreeMap<PathBuf, Vec<u8>>;

/// Renders the section; adds pictures to `files`.
pub fn render(
    inputs: &Inputs<'_>,
    views: &Views<'_>,
    item: &Item,
    view: Option<&View<'_>>,
    files: &mut Files,
) -> Result<Section> {
    let title = format!("{}. {}", cell(&item.name), cell(&item.title));
    let text = format!("{}\n\n## {title}\n\n", anchor(&item.item));
    let mut section = Section { anchor: Some(slug(&item.item)), title, text };
    let text = &mut section.text;
    let Some(view) = view else {
        text.push_str("*No experiment yet.*\n\n");
        return Ok(section);
    };
    let experiment = view.experiment;
    text.push_str(&labels(view));
    text.push_str(&format!(
        "**What the paper shows.** {}\n\n",
        block(&experiment.shows).trim_end()
    ));
    for plot in &experiment.plots {
        text.push_str(&picture(view, plot, files)?);
    }
    for grid in &experiment.pictures {
        text.push_str(&pictures::render(inputs, view, grid, files)?);
    }
    text.push_str(&screens::render(view, files)?);
    for table in &experiment.tables {
        text.push_str(&tables::render(view, table));
    }
    text.push_str(&failures::render(view));
    text.push_str(&speed::render(inputs, view));
    text.push_str(&errata::beside(views, experiment));
    let claims = claims::render(view);
    if !claims.is_empty() {
        text.push_str(&format!("**Claims**\n\n{claims}"));
    }
    let analysis = block(&experiment.analysis);
    let analysis = analysis.trim_end();
    if !analysis.is_empty() {
        text.push_str(&format!("**Analysis.** {analysis}\n\n"));
    }
    if item.item == "errata" {
        let paper = &experiment.paper;
        text.push_str(&format!(
            "The [errata page](errata.md#{paper}) lists all errata with their numbers.\n\n"
        ));
    }
    text.push_str(&parameters::render(inputs, view));
    Ok(section)
}

/// Labels above all numbers: reduced runs, other data, missing runs.
fn labels(view: &View<'_>) -> String {
    let mut lines = Vec::new();
    for side in &view.sides {
        let who = view.who(side.side).map(|who| format!("{who} – ")).unwrap_or_default();
        match &side.run {
            Some(run) => {
                let labels = view.conditions(run).labels();
                lines.extend(labels.into_iter().map(|l| format!("{who}{l}")));
            }
            None if side.side == Side::Reference => {
                let command = code(&format!("cargo xtask reproduce {}", view.experiment.id()));
                lines.push(format!("{who}**Not run yet:** {command} creates a record."));
            }
            None => lines.push(format!("{who}**Not run yet.**")),
        }
    }
    if lines.is_empty() {
        return String::new();
    }
    let quoted: Vec<_> = lines.iter().map(|l| format!("> {l}")).collect();
    format!("{}\n\n", quoted.join("<br>\n"))
}

/// Renders the plot of each run that has rows for it.
fn picture(view: &View<'_>, plot: &Plot, files: &mut Files) -> Result<String> {
    let experiment = view.experiment;
    let mut text = String::new();
    let mut shown = Vec::new();
    for run in view.runs() {
        let source = FigureSource { experiment, rows: &run.table.rows, published: view.published };
        if !source.shows(plot) {
            continue;
        }
        let conditions = conditions(view, run, plot);
        let name = match run.side {
            Side::Reference => format!("{}-{}.svg", experiment.item, plot.id),
            Side::Local => format!("{}-{}-local.svg", experiment.item, plot.id),
        };
        let figure = source.figure(plot, format!("{} · {}", run.side.name(), conditions.line()))?;
        let svg =
            figure.svg().with_context(|| format!("plot `{}` of {}", plot.id, experiment.id()))?;
        let path = format!("figures/{}/{name}", experiment.paper);
        text.push_str(&format!("![{}]({path})\n\n", plain(&bare(&figure.alt))));
        files.insert(PathBuf::from(path), svg.into_bytes());
        let remark = conditions.remark();
        if !remark.is_empty() {
            let who = view.who(run.side).map(|who| format!("{who} – ")).unwrap_or_default();
            shown.push(format!("**{who}{}.**", plain(&remark)));
        }
    }
    if text.is_empty() {
        return Ok(format!("*No plot yet: {}*\n\n", inline(&plot.caption)));
    }
    shown.insert(0, block(&plot.caption));
    text.push_str(&format!("{}\n\n", shown.join(" ")));
    Ok(text)
}

fn conditions(view: &View<'_>, run: &Run, plot: &Plot) -> Conditions {
    let drawn = |r: &Row| {
        plot.panels.iter().any(|p| {
            let metric = p.metric == r.metric
                || p.dashed.as_ref() == Some(&r.metric)
                || p.more.iter().chain(&p.reference).any(|n| n.metric == r.metric);
            p.group == r.group && metric && p.methods.as_ref().is_none_or(|m| m.contains(&r.method))
        })
    };
    Conditions::of(view.experiment, run, drawn)
}
