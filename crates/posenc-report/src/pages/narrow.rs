//! Claims whose deviation is near the limit of their check.

use crate::Inputs;
use crate::markdown::{Align, Grid, cell, label, plain};
use crate::numbers::significant;
use crate::pages::{Content, claims, named};
use crate::view::{Judged, Views};

/// Renders the page: a table per paper of the claims that are within 20 % of their limit.
pub fn render(inputs: &Inputs<'_>, views: &Views<'_>) -> Content {
    let mut text = "These claims deviate by 80 % to 120 % of what their check allows. A slightly different tolerance, limit or sample \
                    could change their verdict. For an ordering, the limit is the half width of its 95 % confidence interval or the smallest \
                    effect, whichever is larger.\n\n"
        .to_owned();
    for paper in &inputs.catalog.papers {
        let mut grid = Grid::default();
        grid.columns(["Claim", "Verdict", "Evidence"], Align::Left);
        grid.column("Deviation ÷ limit", Align::Right);
        grid.columns(["Measured vs. expected", "Statistics"], Align::Left);
        for Judged { item, claim, judgement, place, .. } in views.judged(paper) {
            let Some(share) = judgement.of_limit.filter(|_| judgement.is_narrow()) else {
                continue;
            };
            grid.row(vec![
                format!("{}<br><sub>[{}]({place})</sub>", cell(&claim.says), label(&item.name)),
                named(judgement.verdict),
                claims::evidence(judgement),
                significant(share, 3),
                plain(&judgement.measured),
                plain(&judgement.statistics),
            ]);
        }
        if !grid.is_empty() {
            text.push_str(&format!("## {}\n\n{}", cell(&paper.title), grid.render()));
        }
    }
    Content { title: "Narrow verdicts".into(), text }
}
