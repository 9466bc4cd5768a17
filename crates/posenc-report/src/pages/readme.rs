//! The first page: the answer, verdicts by paper, findings, published against measured values, scope and conditions.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use posenc_experiments::catalog::PAPER_ORDER;
use posenc_experiments::record::Provenance;
use posenc_experiments::schema::paper::Paper;
use posenc_experiments::verdict::{Evidence, Verdict};

use super::{Content, Files, cited, comparison, failures, places, sentences, totals};
use crate::Inputs;
use crate::markdown::{Align, Grid, code, label, plain};
use crate::numbers::MISSING;
use crate::records::Side;
use crate::view::{Counts, Judged, Views, side_counts, sides};

/// Renders the page; adds its figure to `files`.
pub fn render(inputs: &Inputs<'_>, views: &Views<'_>, files: &mut Files) -> Result<Content> {
    let mut text = opening(inputs, views);
    text.push_str(&failures::count(inputs, views));
    text.push_str(&totals::matrix(inputs, views));
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
        text.push_str(&format!("{who}{}\n\n", answer(views, side)));
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
    links.extend(inputs.costs.map(|_| "[Costs](costs.md)".to_owned()));
    text.push_str(&format!("{}\n\n", links.join(" · ")));
    text
}

fn is_published(paper: &str) -> bool {
    PAPER_ORDER.contains(&paper)
}

/// The answer of a run in three sentences: theory, the papers' own data at the full protocol, everything else.
fn answer(views: &Views<'_>, side: Side) -> String {
    let all = side_counts(views, side, |v| is_published(&v.experiment.paper));
    let of = |classes: &[Evidence]| {
        let mut counts = Counts::default();
        classes.iter().for_each(|class| counts.join(&all.of_class(Some(*class))));
        counts
    };
    let total = |counts: &Counts| Verdict::ALL.iter().map(|v| counts.of(*v)).sum::<usize>();
    let theory = of(&[Evidence::Theory]);
    let full = of(&[Evidence::PaperFull]);
    let rest = of(&[Evidence::PaperReduced, Evidence::OtherData]);
    let corrected = theory.of(Verdict::Erratum) + theory.of(Verdict::Ambiguous);
    let open = |counts: &Counts| {
        let decided = counts.of(Verdict::Reproduced) + counts.of(Verdict::NotReproduced);
        let corrected = counts.of(Verdict::Erratum) + counts.of(Verdict::Ambiguous);
        total(counts) - decided - corrected
    };
    format!(
        "Computation alone decides {} statements of the papers: {} hold as printed, {corrected} hold after a correction or in one of two \
         readings, and {} fail. Another {} statements were measured on the papers' own data at the full protocol: {} are reproduced, {} \
         hold after a correction, {} are not reproduced, and {} are undecided or differ by a negligible amount. A further {} statements \
         were measured only at a reduced scale or on other data, which shows tendencies: {} are reproduced, and {} are not.",
        total(&theory),
        theory.of(Verdict::Reproduced),
        theory.of(Verdict::NotReproduced),
        total(&full),
        full.of(Verdict::Reproduced),
        full.of(Verdict::Erratum) + full.of(Verdict::Ambiguous),
        full.of(Verdict::NotReproduced),
        open(&full),
        total(&rest),
        rest.of(Verdict::Reproduced),
        rest.of(Verdict::NotReproduced),
    )
}

const DIGEST_FINDINGS: usize = 5;

/// The answer of the reference and its first decided findings; `None` without findings.
pub fn digest(inputs: &Inputs<'_>, views: &Views<'_>) -> Option<String> {
    let findings = findings(inputs, views);
    let decided = [Verdict::Reproduced, Verdict::Holds, Verdict::Erratum, Verdict::NotReproduced];
    let lines = findings.iter().filter(|(verdict, _)| decided.contains(verdict));
    let lines: String = lines.take(DIGEST_FINDINGS).map(|(_, line)| line.as_str()).collect();
    let answer = answer(views, Side::Reference);
    (!findings.is_empty()).then(|| format!("{answer}\n\n{}", lines.trim_end()))
}

/// The headline claims of the reference: the verdict, and the sentence with numbers and place as a line of a list.
fn findings(inputs: &Inputs<'_>, views: &Views<'_>) -> Vec<(Verdict, String)> {
    let mut list = Vec::new();
    for paper in &inputs.catalog.papers {
        for Judged { item, view, side, claim, judgement, place } in views.judged(paper) {
            let Some(headline) = &claim.headline else { continue };
            let Some(text) = sentences::filled(view, side, headline, Some(claim)) else { continue };
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
