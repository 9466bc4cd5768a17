//! Claims of an item and their verdicts.

use posenc_experiments::verdict::Judgement;

use crate::markdown::{Align, Grid, anchor, cell, plain};
use crate::pages::named;
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
        grid.column("Verdict", Align::Left);
        grid.column("Measured vs. expected", Align::Left);
        grid.column("Statistics and remarks", Align::Left);
    }
    for (i, claim) in experiment.claims.iter().enumerate() {
        let id = anchor(&format!("{}-{}", experiment.item, claim.id));
        let mut row =
            vec![format!("{id}{}<br><sub>{}</sub>", cell(&claim.says), cell(&claim.source))];
        for judgement in view.sides.iter().filter_map(|s| s.judgements.get(i)) {
            let linked = match &claim.erratum {
                Some(e) => {
                    format!("[{}](errata.md#{})", plain(&e.id), crate::markdown::slug(&e.id))
                }
                None => String::new(),
            };
            if compared {
                row.push(joined(&[
                    named(judgement.verdict),
                    plain(&judgement.measured),
                    small(&remarks(judgement)),
                    linked,
                ]));
            } else {
                row.push(joined(&[named(judgement.verdict), linked]));
                row.push(plain(&judgement.measured));
                row.push(remarks(judgement));
            }
        }
        grid.row(row);
    }
    grid.render()
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
