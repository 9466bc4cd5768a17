//! The first page: the answer, verdicts by paper, findings, published against measured values, scope and conditions.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use posenc_experiments::catalog::PAPER_ORDER;
use posenc_experiments::record::Provenance;
use posenc_experiments::schema::paper::Paper;
use posenc_experiments::verdict::Verdict;

use super::{Content, Files, cited, comparison, failures, paper, places, sentences, statements};
use crate::Inputs;
use crate::markdown::{Align, Grid, code, label, plain};
use crate::numbers::MISSING;
use crate::records::Side;
use crate::view::{Judged, Views, sides};

/// Renders the page; adds its figure to `files`.
pub fn render(inputs: &Inputs<'_>, views: &Views<'_>, files: &mut Files) -> Result<Content> {
    let mut text = opening(inputs, views);
    text.push_str(&failures::count(inputs, views));
    for paper in &inputs.catalog.papers {
        let answers = paper::answers(inputs, views, paper);
        if !answers.is_empty() {
            let place = places::paper(&paper.key);
            text.push_str(&format!("## [{}]({place})\n\n{answers}", plain(&cited(paper))));
        }
    }
    let findings: String = findings(inputs, views).into_iter().map(|(_, line)| line).collect();
    if !findings.is_empty() {
        text.push_str(&format!("## Findings\n\n{findings}\n"));
    }
    for side in sides(inputs) {
        let figure = comparison::render(inputs, views, side, files)?;
        if !figure.is_empty() {
            let who = match inputs.local {
                Some(_) => format!(": {}", side.name().to_lowercase()),
                None => String::new(),
            };
            text.push_str(&format!("## Published against measured values{who}\n\n{figure}"));
        }
    }
    for (title, body) in [
        ("Scope", include_str!("../../templates/scope.md")),
        ("What was easy", include_str!("../../templates/easy.md")),
        ("What was difficult", include_str!("../../templates/difficult.md")),
        ("Contact with the authors", include_str!("../../templates/contact.md")),
    ] {
        text.push_str(&format!("## {title}\n\n{}\n\n", body.trim()));
    }
    text.push_str(&format!("## Machine\n\n{}", machines(inputs, views)));
    let run = include_str!("../../templates/run.md").trim();
    text.push_str(&format!("## How to run it\n\n{run}\n\n"));
    Ok(Content { title: "Reproducibility summary".into(), text })
}

/// The answer, the papers, and links to the overviews.
fn opening(inputs: &Inputs<'_>, views: &Views<'_>) -> String {
    let papers = &inputs.catalog.papers;
    let mut text = String::new();
    for side in sides(inputs) {
        let who = match inputs.local {
            Some(_) => format!("**{}.** ", side.name()),
            None => String::new(),
        };
        text.push_str(&format!(
            "{who}{}\n\n{}",
            statements::summary(inputs, views, side),
            statements::table(inputs, views, side)
        ));
    }
    let list = |published: bool| {
        let known = |p: &&Paper| is_published(&p.key) == published;
        let line = |p: &Paper| {
            let place = places::paper(&p.key);
            format!("- [{}]({place}) ({})\n", label(&p.title), plain(&cited(p)))
        };
        papers.iter().filter(known).map(line).collect::<String>()
    };
    text.push_str(&format!("{}{}\n", list(true), list(false)));
    let mut links = vec![format!("[Claims and verdicts]({})", places::CLAIMS)];
    links.push("[Narrow verdicts](narrow.md)".to_owned());
    if !inputs.catalog.coverage.is_empty() {
        links.push("[Coverage](coverage.md)".to_owned());
    }
    links.push(format!("[Errata]({})", places::ERRATA));
    links.push("[Embedders](embedders.md)".to_owned());
    links.push("[Costs](costs.md)".to_owned());
    text.push_str(&format!("{}\n\n", links.join(" · ")));
    text
}

fn is_published(paper: &str) -> bool {
    PAPER_ORDER.contains(&paper)
}

const DIGEST_FINDINGS: usize = 5;

/// The answer of the reference and its first decided findings; `None` without findings.
pub fn digest(inputs: &Inputs<'_>, views: &Views<'_>) -> Option<String> {
    let findings = findings(inputs, views);
    let decided = [Verdict::Reproduced, Verdict::Holds, Verdict::Erratum, Verdict::NotReproduced];
    let lines = findings.iter().filter(|(verdict, _)| decided.contains(verdict));
    let lines: String = lines.take(DIGEST_FINDINGS).map(|(_, line)| line.as_str()).collect();
    let answer = statements::summary(inputs, views, Side::Reference);
    (!findings.is_empty()).then(|| format!("{answer}\n\n{}", lines.trim_end()))
}

/// The headline claims that hold on the reference: the verdict, and the sentence with numbers and place as a line of a list. A headline
/// whose p is above 5 % after Holm's correction is no finding.
fn findings(inputs: &Inputs<'_>, views: &Views<'_>) -> Vec<(Verdict, String)> {
    let mut list = Vec::new();
    for paper in &inputs.catalog.papers {
        for Judged { item, view, side, claim, judgement, holm, place } in views.judged(paper) {
            if holm.is_some_and(|p| p > sentences::SIGNIFICANT) {
                continue;
            }
            let found = (view, side, claim, judgement);
            let Some(text) = sentences::headline(found) else { continue };
            let verdict = judgement.verdict;
            let source = format!("{}, {}", plain(&cited(paper)), label(&item.name));
            list.push((verdict, format!("- {} {text} ([{source}]({place}))\n", verdict.sign())));
        }
    }
    list
}

/// Renders, for each side, the machines and how many items they ran.
fn machines(inputs: &Inputs<'_>, views: &Views<'_>) -> String {
    let mut text = String::new();
    for side in sides(inputs) {
        let runs = || views.all().flat_map(|v| v.runs()).filter(|r| r.side == side);
        let mut machines: BTreeMap<(&str, usize), Vec<&Provenance>> = BTreeMap::new();
        for own in runs().map(|run| &run.provenance) {
            machines.entry((own.machine.as_str(), own.cores)).or_default().push(own);
        }
        if inputs.local.is_some() {
            text.push_str(&format!("**{}**\n\n", side.name()));
        }
        if machines.is_empty() {
            text.push_str("*No records yet.*\n\n");
            continue;
        }
        let mut grid = Grid::default();
        // A provenance describes the latest run of its item.
        grid.column("Machine", Align::Left)
            .columns(["Cores", "Items, by their latest run"], Align::Right);
        for ((machine, cores), of_items) in &machines {
            grid.row(vec![
                if machine.is_empty() { "not recorded".into() } else { plain(machine) },
                if *cores == 0 { MISSING.into() } else { cores.to_string() },
                of_items.len().to_string(),
            ]);
        }
        text.push_str(&grid.render());
        let mut devices: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for view in views.all() {
            let rows = view.runs().filter(|run| run.side == side).flat_map(|run| &run.table.rows);
            for row in rows.filter(|row| row.device != "cpu") {
                devices.entry(&row.device).or_default().insert(view.experiment.id());
            }
        }
        for (device, items) in devices {
            let items: Vec<String> = items.iter().map(|item| code(item)).collect();
            text.push_str(&format!("On {}: units of {}.\n\n", plain(device), items.join(", ")));
        }
        let dirty = runs().filter(|run| run.changes().is_some()).count();
        if dirty > 0 {
            text.push_str(&format!(
                "{dirty} of {} items have rows that were recorded with uncommitted changes; their pages name the rows.\n\n",
                runs().count()
            ));
        }
    }
    text.push_str("Each item lists its machine, commit and versions under *Provenance*.\n\n");
    text
}
