//! The page of one item: the paper's claim and the answer, figures and tables, verdicts, analysis, and folded details.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use posenc_experiments::record::Row;
use posenc_experiments::schema::ItemKind;
use posenc_experiments::schema::display::Plot;
use posenc_experiments::schema::paper::{Item, Paper};

use super::{
    Content, Files, answer, choice, claims, errata, failures, paired, parameters, pictures,
};
use super::{definition, places, speed};
use crate::markdown::{bare, block, cell, code, details, inline, label, plain};
use crate::plot::FigureSource;
use crate::records::{Conditions, Run, Side};
use crate::view::{View, Views};
use crate::{Inputs, tables};

/// Renders the page of item number `place` of a paper; adds pictures to `files`.
pub fn render(
    inputs: &Inputs<'_>,
    views: &Views<'_>,
    paper: &Paper,
    place: usize,
    files: &mut Files,
) -> Result<Content> {
    let item = &paper.items[place];
    let title = format!("{}. {}", cell(&item.name), cell(&item.title));
    let mut text = navigation(paper, place);
    let Some(view) = views.get(&paper.key, &item.item) else {
        text.push_str("*No experiment yet.*\n\n");
        return Ok(Content { title, text });
    };
    let experiment = view.experiment;
    let topic = match experiment.kind {
        ItemKind::Extra => "About this item",
        _ => "The paper",
    };
    text.push_str(&format!("**{topic}.** {}\n\n", block(&experiment.shows).trim_end()));
    text.push_str(&answer::render(view));
    text.push_str(&missing(view));
    text.push_str(&paired::render(views, view, files)?);
    text.push_str(&choice::render(views, view));
    let mut drawn = String::new();
    for plot in &experiment.plots {
        drawn.push_str(&picture(view, plot, files)?);
    }
    for grid in &experiment.pictures {
        drawn.push_str(&pictures::render(inputs, view, grid, files)?);
    }
    let tabulated: String = experiment.tables.iter().map(|t| tables::render(view, t)).collect();
    // What the paper shows comes first.
    match experiment.kind {
        ItemKind::Table => text.extend([tabulated, drawn]),
        _ => text.extend([drawn, tabulated]),
    }
    text.push_str(&sources(inputs, view));
    text.push_str(&failures::render(view));
    let claims = claims::render(view);
    if !claims.is_empty() {
        text.push_str(&format!("## Verdicts\n\n{claims}"));
        text.push_str(&format!("<sub>[Meaning of the verdicts]({})</sub>\n\n", places::VERDICTS));
    }
    let analysis = block(&experiment.analysis);
    let analysis = analysis.trim_end();
    if !analysis.is_empty() {
        // The text is about the committed record, not about a user's own run.
        let of = if inputs.local.is_some() { " of the reference record" } else { "" };
        text.push_str(&format!("## Analysis{of}\n\n{analysis}\n\n"));
    }
    text.push_str(&errata::beside(views, experiment));
    if item.item == errata::ITEM {
        let page = places::errata_of(&paper.key);
        text.push_str(&format!("The [errata list]({page}) shows the measured numbers.\n\n"));
    }
    text.push_str(&folded(inputs, view));
    Ok(Content { title, text })
}

/// Links to the paper and to the items before and after.
fn navigation(paper: &Paper, place: usize) -> String {
    let link = |item: &Item| places::item(&paper.key, &item.item);
    let mut parts = vec![format!("[{}]({})", label(&paper.title), places::paper(&paper.key))];
    if let Some(before) = place.checked_sub(1).and_then(|i| paper.items.get(i)) {
        parts.push(format!("← [{}]({})", label(&before.name), link(before)));
    }
    if let Some(after) = paper.items.get(place + 1) {
        parts.push(format!("[{}]({}) →", label(&after.name), link(after)));
    }
    format!("<sub>{}</sub>\n\n", parts.join(" · "))
}

/// Notes on runs that have no record.
fn missing(view: &View<'_>) -> String {
    let mut lines = Vec::new();
    // An item without groups shows the records of others.
    let is_run = !view.experiment.groups.is_empty();
    for side in view.sides.iter().filter(|side| is_run && side.run.is_none()) {
        let who = view.who(side.side).map(|who| format!("{who} – ")).unwrap_or_default();
        if side.side == Side::Reference {
            let command = code(&format!("cargo xtask reproduce {}", view.experiment.id()));
            lines.push(format!("{who}**Not run yet:** {command} creates a record."));
        } else {
            lines.push(format!("{who}**Not run yet.**"));
        }
    }
    if lines.is_empty() {
        return String::new();
    }
    let quoted: Vec<_> = lines.iter().map(|l| format!("> {l}")).collect();
    format!("{}\n\n", quoted.join("<br>\n"))
}

/// The collapsed parts of the page: scale and data, deviations, parameters, speed, provenance.
fn folded(inputs: &Inputs<'_>, view: &View<'_>) -> String {
    let mut lines = Vec::new();
    for run in view.runs() {
        let who = view.who(run.side).map(|who| format!("{who} – ")).unwrap_or_default();
        let labels = view.conditions(run).labels().into_iter().chain(run.changes());
        lines.extend(labels.map(|l| format!("- {who}{l}")));
    }
    let mut text = String::new();
    if !lines.is_empty() {
        text.push_str(&details("Scale and data that differ from the paper", &lines.join("\n")));
    }
    text.push_str(&parameters::render(inputs, view, &speed::render(inputs, view)));
    text
}

/// Links to the definition and the numbers behind the figures and tables, and the command that measures them again.
fn sources(inputs: &Inputs<'_>, view: &View<'_>) -> String {
    if view.runs().next().is_none() {
        return String::new();
    }
    let experiment = view.experiment;
    let mut parts = Vec::new();
    let path = definition(experiment);
    parts.extend(path.and_then(|path| inputs.named_link("definition (YAML)", &path)));
    if view.runs().any(|run| run.side == Side::Reference) {
        let table = format!("{}/{}/values.csv", experiment.paper, experiment.item);
        parts.extend(match inputs.record {
            Some(record) => {
                Some(format!("[numbers (CSV)]({}/{table})", record.trim_end_matches('/')))
            }
            None => inputs.named_link("numbers (CSV)", &format!("report/record/{table}")),
        });
    }
    parts.push(code(&format!("cargo xtask reproduce --from report/record {}", experiment.id())));
    format!("<sub>{}</sub>\n\n", parts.join(" · "))
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
        let name = format!("{}-{}{}.svg", experiment.item, plot.id, run.side.ending());
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
                || p.more.iter().any(|n| n.metric == r.metric)
                || p.reference.as_ref().is_some_and(|n| n.metric == r.metric);
            p.group == r.group && metric && p.methods.as_ref().is_none_or(|m| m.contains(&r.method))
        })
    };
    Conditions::of(view.experiment, run, drawn)
}
