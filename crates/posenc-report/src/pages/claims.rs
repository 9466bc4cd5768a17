//! Claims of an item and their verdicts.

use std::collections::BTreeMap;

use posenc_experiments::verdict::{Evidence, Judgement};

use super::{errata, named, places};
use crate::markdown::{Align, Grid, anchor, cell, plain};
use crate::numbers::{MISSING, significant};
use crate::view::View;

/// Renders the table of claims; empty if the item has no claims.
pub fn render(view: &View<'_>) -> String {
    let experiment = view.experiment;
    if experiment.claims.is_empty() {
        return String::new();
    }
    let mut grid = Grid::default();
    grid.column("Claim", Align::Left);
    let compared = view.sides.len() > 1;
    if compared {
        for side in &view.sides {
            grid.column(side.side.name(), Align::Left);
        }
    } else {
        grid.columns(["Verdict", "Evidence", "Measured vs. expected"], Align::Left);
        grid.columns(["p", "p (Holm)"], Align::Right);
        grid.column("Statistics and remarks", Align::Left);
    }
    let shared = shared_conditions(view);
    for (i, claim) in experiment.claims.iter().enumerate() {
        let id = anchor(&places::claim_anchor(&experiment.item, &claim.id));
        let mut row =
            vec![format!("{id}{}<br><sub>{}</sub>", cell(&claim.says), cell(&claim.source))];
        for side in &view.sides {
            let Some(judgement) = side.judgements.get(i) else { continue };
            let holm = side.holm.get(i).copied().flatten();
            let linked = match &claim.erratum {
                Some(e) => errata::link(&e.id),
                None => String::new(),
            };
            if compared {
                row.push(joined(&[
                    named(judgement.verdict),
                    evidence(judgement),
                    plain(&judgement.measured),
                    small(&remarks(judgement)),
                    small(&holm.map(|p| format!("Holm: p {}", probability(p))).unwrap_or_default()),
                    linked,
                ]));
            } else {
                row.push(joined(&[named(judgement.verdict), linked]));
                row.push(match judgement.evidence {
                    Some(class) if shared.contains_key(&class) => class.name().to_owned(),
                    _ => evidence(judgement),
                });
                row.push(plain(&judgement.measured));
                row.push(judgement.p().map(probability).unwrap_or_default());
                row.push(holm.map(probability).unwrap_or_default());
                row.push(remarks(judgement));
            }
        }
        grid.row(row);
    }
    let mut text = grid.render();
    if !compared && !shared.is_empty() {
        let note = |(class, condition): (&Evidence, &String)| {
            format!("{}: {}", class.name(), plain(condition))
        };
        let notes: Vec<_> = shared.iter().map(note).collect();
        text.push_str(&format!("<sub>{}</sub>\n\n", notes.join(" · ")));
    }
    text
}

/// Conditions of the evidence that all claims of a class share, for classes with several claims.
fn shared_conditions(view: &View<'_>) -> BTreeMap<Evidence, String> {
    let mut found: BTreeMap<Evidence, Vec<&str>> = BTreeMap::new();
    for judgement in view.sides.iter().flat_map(|side| &side.judgements) {
        if let Some(class) = judgement.evidence {
            found.entry(class).or_default().push(&judgement.condition);
        }
    }
    let of_class = |(class, conditions): (Evidence, Vec<&str>)| {
        let first = *conditions.first().filter(|first| !first.is_empty())?;
        let is_shared = conditions.len() > 1 && conditions.iter().all(|own| *own == first);
        is_shared.then(|| (class, first.to_owned()))
    };
    found.into_iter().filter_map(of_class).collect()
}

/// The class of the evidence, with the condition that limits it.
pub fn evidence(judgement: &Judgement) -> String {
    let Some(class) = judgement.evidence else { return MISSING.to_owned() };
    joined(&[class.name().to_owned(), small(&plain(&judgement.condition))])
}

fn probability(p: f64) -> String {
    if p < 1e-4 { "< 0.0001".to_owned() } else { significant(p, 2) }
}

fn remarks(judgement: &Judgement) -> String {
    joined(&[plain(&judgement.statistics), plain(&judgement.reason)])
}

fn small(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("<sub>{text}</sub>") }
}

fn joined(parts: &[String]) -> String {
    let parts: Vec<_> = parts.iter().filter(|p| !p.is_empty()).map(String::as_str).collect();
    parts.join("<br>")
}
